"""Consensus: a small ordered map with atomic multi-key compare-and-write, storage's second contract outward.

Every key holds a value and the version its last writer chose. Versions are unique per commit, so a
writer that lost its connection in mid-commit can tell by reading whether its commit happened.

* `commit` compares every expected version (None: the key is absent), then applies every write (None:
  delete), all or nothing, durable when it returns. Any difference raises `Conflict` with the current
  entries of the expected keys, and nothing changes.
* `get` and `scan` see one instant: never half of a commit, never less than what a returned commit wrote.
* Failures are `Determinate` (nothing happened), `Indeterminate` (a commit may have happened), and their
  kinds `StorageFull`, `StorageReadOnly`. All methods may be called from several threads at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from everview.storage.errors import StorageError


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and the version of the commit that wrote it."""

    version: int
    value: bytes


class Conflict(StorageError):
    """Some expected version was not the current one; `current` holds the expected keys that exist."""

    def __init__(self, current: Mapping[str, Entry]) -> None:
        super().__init__("the state changed since it was read")
        self.current = dict(current)


class Consensus(Protocol):
    """The module's docstring says what holds of every implementation."""

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        """The entries of the `keys` that exist."""

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        """The entries whose keys start with any of the texts `prefixes`, ascending by key, each once."""

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        """Apply `writes` under `version` if every key of `expected` is as stated, else `Conflict`."""

    def close(self) -> None:
        """Release what is held. Further calls fail."""


def entry_at(consensus: Consensus, key: str) -> Entry | None:
    return consensus.get([key]).get(key)


_SURROGATES_FIRST, _SURROGATES_LAST = 0xD800, 0xDFFF


def ranges_of(prefixes: Iterable[str]) -> list[tuple[str, str | None]]:
    """Disjoint ascending ranges `[low, high)` of the keys that start with any of `prefixes`; high None is unbounded.

    Databases find ranges by index, and not prefixes. Keys are ordered by code point, as their UTF-8 bytes are.
    """
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
