"""Limits of an evaluation: it ends when it is asked to, and when it gives more rows than it is allowed.

What an operator gives is not known from what it is given: a join or a table function makes many rows of few. So each
operator looks now and then whether to go on, and who evaluates says how many rows may come up, in all operators.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from everview.compute.allowance import Allowance, TooManyRows, allowance, allowing
from everview.compute.cancel import check_wanted
from everview.compute.functions.sorting import sort
from everview.errors import EverviewError

__all__ = ["LOOK_ROWS", "TooManyRows", "at_most", "count", "emptied", "emptied_if_ended", "hold", "look", "look_ahead"]
__all__ += ["paced", "sort"]
LOOK_ROWS = 4_096  # after so many rows of one operator it is looked whether to go on
LOOK_PARTS = 20_000  # likewise, after so many expressions or parts of them, where rows have many
LET_GO_ROWS = 512
MANY_ROWS = 10_000  # to let go of so many at once holds up others
_Item = TypeVar("_Item")


def at_most(rows: int) -> AbstractContextManager[None]:
    """While inside, an evaluation in which more rows come up than this raises `TooManyRows`."""
    return allowing(Allowance(rows))


def look(rows: int) -> None:
    """Raise if an operator that has given so many rows is not to go on."""
    check_wanted()
    allowed = allowance()
    if allowed is not None:
        allowed.look(rows)


def count(rows: int) -> None:
    """An operator has given so many rows; raise if that was too much."""
    check_wanted()
    allowed = allowance()
    if allowed is not None:
        allowed.count(rows)


def hold(rows: int, size: int) -> None:
    """So many rows have come up, in columns of so many bytes; raise if that is too much."""
    check_wanted()
    allowed = allowance()
    if allowed is not None:
        allowed.hold(rows, size)


def look_ahead(rows: int, size: int) -> None:
    """Raise if so many rows, in columns of so many bytes, would be too much."""
    check_wanted()
    allowed = allowance()
    if allowed is not None:
        allowed.look_ahead(rows, size)


def between_looks(parts: int) -> int:
    """The number of rows between two looks, if so many expressions are evaluated for each row."""
    return max(1, min(LOOK_ROWS, LOOK_PARTS // max(1, parts)))


def paced(items: Iterable[_Item], parts: int = 1) -> Iterator[_Item]:
    """The items, for each of which so many expressions are evaluated; raises if the evaluation is not to go on."""
    every = between_looks(parts)
    for number, item in enumerate(items, 1):
        if number % every == 0:
            look(number)
        yield item


def empty(rows: dict[Any, Any] | list[Any]) -> None:
    """Empty rows that nobody needs any more, piece by piece.

    Python would let go of all at once, and hold everyone up until hundreds of thousands of rows are gone.
    """
    if isinstance(rows, list):
        while rows:
            del rows[-LET_GO_ROWS:]
    else:
        while rows:
            rows.popitem()


@contextmanager
def emptied(rows: dict[Any, Any] | list[Any]) -> Iterator[None]:
    """While inside, rows are used; afterwards nobody needs them."""
    try:
        yield
    finally:
        empty(rows)


class Made:
    """Large results that operators have made, and others have read or still read, in one evaluation.

    Once nobody else has one any more it is let go of, piece by piece. If the evaluation ends, all are.
    """

    def __init__(self) -> None:
        self._results: list[dict[Any, Any]] = []

    def add(self, rows: dict[Any, Any]) -> None:
        """One more, which is no input of the evaluation."""
        if len(rows) >= MANY_ROWS:
            self._results.append(rows)

    def tidy(self) -> None:
        """Empty the results that nobody else refers to."""
        kept = []
        while self._results:
            rows = self._results.pop()
            if sys.getrefcount(rows) == _ONLY_HERE:
                empty(rows)
            else:
                kept.append(rows)
        self._results = kept

    def end(self) -> None:
        for rows in self._results:
            empty(rows)


_ONLY_HERE = 2  # references: a name, and the argument of the function that counts


@contextmanager
def emptied_if_ended(rows: dict[Any, Any] | list[Any]) -> Iterator[None]:
    """While inside, rows are collected, which nobody needs if the evaluation ends."""
    try:
        yield
    except EverviewError:
        empty(rows)
        raise
