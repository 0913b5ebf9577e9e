"""Trimming: characters or bytes of a set are taken away at the ends of a value.

Python's `strip` looks for each character in all those of the set, and holds the interpreter's lock until it is done.
So where there is much to do, a table tells at once whether a character is in the set, and the value goes in slices,
between which a statement can be canceled and others have their turn.
"""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from everview.compute.cancel import paced
from everview.compute.functions.slices import SLICE

_Value = TypeVar("_Value", str, bytes)
_SHORT = 1 << 20  # comparisons that need no slices: characters of the value times those of the set


def trimmed(value: _Value, ends: _Value, *, front: bool, back: bool) -> _Value:
    """The value without the characters, or bytes, of a set at its front and its back."""
    if not ends:
        return value
    if len(value) * len(ends) <= _SHORT:
        value = value.lstrip(ends) if front else value
        return value.rstrip(ends) if back else value
    table = np.zeros(sys.maxunicode + 1 if isinstance(ends, str) else 256, np.bool_)
    for start in paced(range(0, len(ends), SLICE), 1):
        table[_codes(ends[start : start + SLICE])] = True
    first = _first_kept(value, table) if front else 0
    return value[first : _end_kept(value, table, first) if back else len(value)]


def _first_kept(value: str | bytes, table: npt.NDArray[np.bool_]) -> int:
    for start in paced(range(0, len(value), SLICE), 1):
        kept = np.flatnonzero(~table[_codes(value[start : start + SLICE])])
        if kept.size:
            return start + int(kept[0])
    return len(value)


def _end_kept(value: str | bytes, table: npt.NDArray[np.bool_], first: int) -> int:
    for end in paced(range(len(value), first, -SLICE), 1):
        start = max(first, end - SLICE)
        kept = np.flatnonzero(~table[_codes(value[start:end])])
        if kept.size:
            return start + int(kept[-1]) + 1
    return first


def _codes(part: str | bytes) -> Any:
    if isinstance(part, str):
        return np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.frombuffer(part, np.uint8)
