"""Waiting, and being told."""

from __future__ import annotations

import threading
from typing import Any

from everview.storage.signal import Signal


def test_nothing_is_locked_while_one_looks() -> None:
    """Otherwise whoever looks at what a commit holds, and the commit that tells of itself, wait for each other."""
    signal, told = Signal(), []

    def ready() -> bool:
        other = threading.Thread(target=signal.tell, daemon=True)
        other.start()
        other.join(10)
        told.append(not other.is_alive())
        return True

    assert signal.wait(ready, 60)
    assert told == [True]


def test_a_change_while_one_looks_is_not_overlooked() -> None:
    signal = Signal()
    looks: list[Any] = []

    def ready() -> bool:
        looks.append(len(looks))
        if len(looks) == 1:
            signal.tell()
        return len(looks) == 2

    assert signal.wait(ready)  # for ever, if it were
    assert looks == [0, 1]


def test_time_runs_out() -> None:
    assert not Signal().wait(lambda: False, 0.01)
    assert Signal().wait(lambda: True, 0)


def test_those_who_wait_are_told() -> None:
    signal, flag, seen = Signal(), threading.Event(), []
    waiting = [threading.Thread(target=lambda: seen.append(signal.wait(flag.is_set, 60))) for _ in range(4)]
    for each in waiting:
        each.start()
    flag.set()
    signal.tell()
    for each in waiting:
        each.join(60)
    assert seen == [True] * 4
