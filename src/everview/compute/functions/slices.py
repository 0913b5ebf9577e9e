"""Long texts and bytes in slices.

One call of a function of Python's holds the interpreter's lock until it is done, and a value may have megabytes. So
long values go in slices, between which a statement can be canceled and others have their turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from everview.compute.cancel import check_wanted

_Value = TypeVar("_Value", str, bytes)
SLICE = 1 << 18  # characters, or bytes, for which a function of Python's takes some milliseconds at most


def slices(value: _Value, size: int = SLICE) -> Iterator[_Value]:
    """The value in pieces of so many characters or bytes; raises `Ended` if the statement is to end."""
    for start in range(0, len(value), size):
        check_wanted()
        yield value[start : start + size]


def mapped(function: Callable[[str], str], text: str, size: int = SLICE) -> str:
    """What a function gives that changes each character by itself."""
    return function(text) if len(text) <= size else "".join(map(function, slices(text, size)))


def runs(pattern: re.Pattern[_Value], value: _Value, start: int = 0) -> Iterator[_Value]:
    """What matches one after the other from a place on, until nothing does or the match is empty.

    The pattern takes a bounded part, so that it never holds the lock for long.
    """
    while match := pattern.match(value, start):
        if match.end() == start:
            return
        check_wanted()
        yield match[0]
        start = match.end()
