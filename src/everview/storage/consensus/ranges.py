"""Prefixes as ranges of keys, for databases that find ranges by index and not prefixes.

Keys are ordered by code point, which is also the order of their UTF-8 bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

_SURROGATES_FIRST, _SURROGATES_LAST = 0xD800, 0xDFFF


def ranges_of(prefixes: Iterable[str]) -> list[tuple[str, str | None]]:
    """Disjoint ascending ranges `[low, high)` of the keys that start with any of `prefixes`; high None is unbounded."""
    found: list[tuple[str, str | None]] = []
    last: str | None = None
    for prefix in sorted(set(prefixes)):
        if last is None or not prefix.startswith(last):  # else its keys are in the last range already
            found.append((prefix, _end_of(prefix)))
            last = prefix
    return found


def _end_of(prefix: str) -> str | None:
    """The least text that is greater than every text that starts with `prefix`."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    if _SURROGATES_FIRST <= following <= _SURROGATES_LAST:
        following = _SURROGATES_LAST + 1
    return stem[:-1] + chr(following)
