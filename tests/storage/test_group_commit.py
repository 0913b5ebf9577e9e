"""Those who wait for a commit share it: everyone is committed once, whoever leads, gives up or fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from everview.storage.group_commit import Queue, Waiting
from tests.waiting import eventually


@dataclass(slots=True, eq=False, kw_only=True)
class Write(Waiting):
    """A write with a number."""

    number: int


class Full(Exception):
    """Too many wait."""


class Interrupted(Exception):
    """Somebody no longer wants to wait."""


def test_everyone_is_committed_once() -> None:
    queue: Queue[Write, Write] = Queue(1_000, Full)
    groups: list[list[int]] = []

    def write(number: int) -> None:
        queue.commit(Write(number=number), 10, lambda group: groups.append([each.number for each in group]))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for group in groups for number in group) == list(range(100))
    assert all(1 <= len(group) <= 10 for group in groups)
    assert len(queue) == 0


def test_those_who_wait_go_together_and_who_gives_up_is_left_out() -> None:
    queue: Queue[Write, Write] = Queue(3, Full)
    groups: list[list[int]] = []
    going, give_up = threading.Event(), threading.Event()
    raised: list[Exception] = []

    def commit(group: list[Write]) -> None:
        groups.append([each.number for each in group])
        going.wait()

    def interrupt() -> None:
        if give_up.is_set():
            raise Interrupted

    def impatient() -> None:
        try:
            queue.commit(Write(number=2), 10, commit, interrupt)
        except Interrupted as error:
            raised.append(error)

    works = [
        lambda: queue.commit(Write(number=0), 10, commit),
        lambda: queue.commit(Write(number=1), 10, commit),
        impatient,
        lambda: queue.commit(Write(number=3), 10, commit),
    ]
    threads = []
    for number, work in enumerate(works):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        eventually(lambda: len(groups) == 1 and len(queue) == number)  # noqa: B023 - it is over before the next
    with pytest.raises(Full):
        queue.commit(Write(number=4), 10, commit)
    give_up.set()
    eventually(lambda: raised)
    going.set()
    for thread in threads:
        thread.join()
    assert groups == [[0], [1, 3]]


def test_a_commit_that_fails_ends_nobody_elses_wait() -> None:
    queue: Queue[Write, Write] = Queue(10, Full)

    def failing(group: list[Write]) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        queue.commit(Write(number=0), 10, failing)
    done: list[int] = []
    queue.commit(Write(number=1), 10, lambda group: done.extend(each.number for each in group))
    assert done == [1]
