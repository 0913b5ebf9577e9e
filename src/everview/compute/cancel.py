"""Ending a run from another thread: who runs something lets it be asked for, and engines that can end theirs see to it.

Runs go through several hands, and few of them care. So the wish is not handed down: it is in force while something is
run, by `cancelable`. The same goes for how urgent a run is: what is computed `in_background` gives way to the rest, and
what is there for the first time gives way to what `follows` its inputs already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from everview.errors import EverviewError

_Item = TypeVar("_Item")
_CHECK_EVERY = 4_096


class Ended(EverviewError):
    """A run ended because it was asked to; it has changed nothing."""

    def __init__(self) -> None:
        super().__init__("this computation was ended, for nobody wants its result any more")


class Cancellation:
    """Asks a run to end. `due`, if given, tells at any time whether the run is to end."""

    def __init__(self, due: Callable[[], bool] = lambda: False) -> None:
        self._lock = threading.Lock()
        self._ends: list[Callable[[], None]] = []
        self._asked, self._due = False, due

    @property
    def asked(self) -> bool:
        """Whether what runs is to end."""
        return self._asked or self._due()

    def ask(self) -> None:
        """End what runs now and what would run later; may be repeated, for a run may only be about to begin."""
        with self._lock:
            self._asked = True
            ends = list(self._ends)
        for end in ends:
            end()

    @contextmanager
    def running(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, `end` ends the run."""
        with self._lock:
            self._ends.append(end)
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)


_in_force: ContextVar[Cancellation | None] = ContextVar("everview_cancellation", default=None)
_background: ContextVar[bool] = ContextVar("everview_background", default=False)
_follows: ContextVar[bool] = ContextVar("everview_follows", default=False)


def cancellation() -> Cancellation | None:
    """The cancellation that this thread runs under. None if nobody can cancel what it runs."""
    return _in_force.get()


def check_wanted() -> None:
    """Raise `Ended` if what this thread runs is to end."""
    wish = _in_force.get()
    if wish is not None and wish.asked:
        raise Ended


def paced(items: Iterable[_Item], every: int = _CHECK_EVERY) -> Iterator[_Item]:
    """The items; raises `Ended`, before one of every so many, if what this thread runs is to end."""
    for number, item in enumerate(items):
        if number % every == 0:
            check_wanted()
        yield item


@contextmanager
def cancelable(by: Cancellation) -> Iterator[None]:
    """While inside, what this thread runs can be ended by this."""
    token = _in_force.set(by)
    try:
        yield
    finally:
        _in_force.reset(token)


def is_in_background() -> bool:
    """Whether what this thread runs is to give way to what others run."""
    return _background.get()


def is_following() -> bool:
    """Whether what this thread runs in the background is for something that can be read already."""
    return _follows.get()


@contextmanager
def in_background(*, follows: bool = False) -> Iterator[None]:
    """While inside, what this thread runs gives way; less so if it `follows`, for what can be read already."""
    tokens = _background.set(True), _follows.set(follows)
    try:
        yield
    finally:
        _background.reset(tokens[0])
        _follows.reset(tokens[1])
