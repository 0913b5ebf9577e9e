"""Sorting long lists while others have their turn."""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge
from typing import Any, TypeVar

from everview.compute.cancel import check_wanted, paced

_Item = TypeVar("_Item")
_PIECE = 4_096


def sort(items: list[_Item], key: Callable[[_Item], Any], *, reverse: bool = False) -> None:
    """Sort in place, items that tie staying as they are.

    A long list is sorted in pieces that are merged: one call of `list.sort` would hold the interpreter's lock, and so
    everyone else, until it is done.
    """
    if len(items) <= _PIECE:
        items.sort(key=key, reverse=reverse)
        return
    pieces = []
    for start in range(0, len(items), _PIECE):
        check_wanted()
        pieces.append(sorted(items[start : start + _PIECE], key=key, reverse=reverse))
    items[:] = paced(merge(*pieces, key=key, reverse=reverse))  # nothing is let go of: these are the same items
