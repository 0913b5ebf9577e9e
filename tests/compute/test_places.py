"""Places: a few runs begin at once, and none waits for the end of one that takes long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from everview.compute.places import Places
from tests.waiting import eventually

LONG_S = 10_000.0


class Run:
    """Begins, and goes on when it is told to."""

    def __init__(self) -> None:
        self.inside, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.inside.set()
        self.go_on.wait()


@contextmanager
def submitted(places: Places[Run], count: int) -> Iterator[list[Run]]:
    runs = [Run() for _ in range(count)]
    try:
        for each in runs:
            places.submit(each, each)
        yield runs
    finally:
        places.close()
        for each in runs:
            each.go_on.set()


def inside(runs: list[Run]) -> list[bool]:
    return [each.inside.is_set() for each in runs]


def test_a_run_that_ends_makes_room() -> None:
    places: Places[Run] = Places("run", 2, 10, LONG_S)
    with submitted(places, 4) as runs:
        eventually(lambda: inside(runs) == [True, True, False, False])
        wait_s = places.next_s()
        assert wait_s is not None and 0 < wait_s <= LONG_S
        assert places.withdraw(runs[2]) and not places.withdraw(runs[2]) and not places.withdraw(runs[0])
        runs[0].go_on.set()
        eventually(lambda: inside(runs) == [True, True, False, True])
        assert places.next_s() is None, "nothing waits"


def test_a_run_that_takes_long_holds_no_place() -> None:
    places: Places[Run] = Places("run", 2, 5, 0.0)
    with submitted(places, 7) as runs:
        eventually(lambda: sum(inside(runs)) == 5)
        places.begin()
        assert places.next_s() is None, "there are no more threads"
        runs[3].go_on.set()
        eventually(lambda: inside(runs) == [True] * 6 + [False])


def test_what_waits_at_the_end_does_not_begin() -> None:
    places: Places[Run] = Places("run", 1, 5, LONG_S)
    with submitted(places, 3) as runs:
        eventually(lambda: inside(runs) == [True, False, False])
        assert places.close() == runs[1:]
        runs[0].go_on.set()
        places.submit(runs[1], runs[1])
        assert not places.withdraw(runs[0])
    assert inside(runs) == [True, False, False]


@pytest.mark.parametrize("held_s", [0.0, LONG_S])
def test_a_run_that_fails_makes_room(held_s: float) -> None:
    def fail() -> None:
        raise SystemExit

    places: Places[Run] = Places("run", 1, 1, held_s)
    places.submit(Run(), fail)
    with submitted(places, 1) as runs:
        eventually(lambda: inside(runs) == [True])
