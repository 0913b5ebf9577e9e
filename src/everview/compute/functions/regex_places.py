"""Regular expressions from a place on, and the match of a number: regexp_substr, regexp_instr and their like.

On Spark these are called in Python, where an empty pattern, a start behind the end and lookbehinds mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from everview.compute.functions import regex
from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.ir.types import INT4, TEXT

FUNCTIONS = Family()


def check_places(name: str, start: int = 1, number: int = 1, group: int = 0, end: int = 0) -> None:
    """Raise unless these are what the function can be asked for."""
    least = 0 if name == "regexp_replace" else 1
    for title, value, low in (("start", start, 1), ("n", number, least), ("subexpr", group, 0)):
        if value < low:
            raise Failure("22023", f'invalid value for parameter "{title}": {value}')
    if end not in (0, 1):
        raise Failure("22023", f'invalid value for parameter "endoption": {end}')


def _matches(text: str, pattern: str, start: int, flags: str, name: str) -> Iterator[regex.Match]:
    if "g" in flags and name != "regexp_replace":
        raise Failure("22023", f'{name}() does not support the "global" option')
    compiled = regex.compiled(pattern, flags)
    return compiled.matches(text, start - 1) if start <= len(text) + 1 else iter(())


class Wanted(NamedTuple):
    """Which match from which place on, by which options, and which group of it, 0 being the whole."""

    start: int = 1
    number: int = 1
    flags: str = ""
    group: int = 0


def _nth(text: str, pattern: str, wanted: Wanted, name: str) -> regex.Match | None:
    """The match that is wanted, if it has such a group and the group takes part."""
    matches = _matches(text, pattern, wanted.start, wanted.flags, name)
    found = next(islice(matches, wanted.number - 1, None), None)
    takes_part = found is not None and wanted.group < len(found.spans) and found.spans[wanted.group][0] >= 0
    return found if takes_part else None


def _substr(text: str, pattern: str, *more: Any) -> str | None:
    wanted = Wanted(*more)
    check_places("regexp_substr", wanted.start, wanted.number, wanted.group)
    found = _nth(text, pattern, wanted, "regexp_substr")
    return None if found is None else found[wanted.group]


def _instr(text: str, pattern: str, *more: Any) -> int:
    """Where the match begins, or with a third number of 1 where it has ended; 0 if there is none."""
    wanted, end = Wanted(*more[:2], *more[3:]), more[2] if len(more) > 2 else 0
    check_places("regexp_instr", wanted.start, wanted.number, wanted.group, end)
    found = _nth(text, pattern, wanted, "regexp_instr")
    return 0 if found is None else found.spans[wanted.group][end] + 1


def _count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    check_places("regexp_count", start)
    return sum(1 for _ in _matches(text, pattern, start, flags, "regexp_count"))


def _replace(text: str, pattern: str, new: str, *more: Any) -> str:
    """The match of that number is replaced, or with 0 every one."""
    wanted = Wanted(*more)
    check_places("regexp_replace", wanted.start, wanted.number)
    if wanted.start > len(text) + 1:
        return text
    return regex.compiled(pattern, wanted.flags).replaced(text, new, start=wanted.start - 1, number=wanted.number)


_SUBSTR = (TEXT, TEXT, INT4, INT4, TEXT, INT4)
_INSTR = (TEXT, TEXT, INT4, INT4, INT4, TEXT, INT4)
_COUNT = (TEXT, TEXT, INT4, TEXT)
_REPLACE = (TEXT, TEXT, TEXT, INT4, INT4, TEXT)
for _size in range(2, 7):
    # It does not `fail`, since NULL is an answer: the binder sees to what it can be asked for.
    FUNCTIONS.add("regexp_substr", _SUBSTR[:_size], TEXT, _substr, not_on_spark("regexp_substr"))
for _size in range(2, 8):
    FUNCTIONS.add("regexp_instr", _INSTR[:_size], INT4, _instr, not_on_spark("regexp_instr"), fails=True)
for _size in range(3, 5):
    FUNCTIONS.add("regexp_count", _COUNT[:_size], INT4, _count, not_on_spark("regexp_count"), fails=True)
for _size in range(4, 7):
    FUNCTIONS.add("regexp_replace", _REPLACE[:_size], TEXT, _replace, not_on_spark("regexp_replace"), fails=True)
