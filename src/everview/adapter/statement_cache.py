"""Statements and views that were bound before, for all sessions.

A key says all that an entry depends on: a text, the types of its parameters, and the catalog and settings by which it
was bound. So an entry is never wrong, and when the catalog changes, all entries go.

A text that comes only once, as an INSERT with its values in it, pushes nothing out that is in use: an entry is among
the few latest ones until it is asked for again, and from then on among the many that are in use. In both the least
recently used goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, NamedTuple

from everview.adapter.statement_context import Meaning

LATEST_MAX, IN_USE_MAX = 100, 1_000
BYTES_MAX = 64 << 20  # of all entries together
ENTRY_BYTES_MAX = 500_000
TEXT_CHARACTERS_MAX = 10_000  # longer statements are not kept


class Key(NamedTuple):
    """Everything that an entry depends on. `text` is a statement's text, or names a view by its id."""

    text: str
    types: tuple[Any, ...]
    meaning: Meaning


def size_of(text: str, weight: int) -> int:
    """About how many bytes a bound statement takes: its plan, and the values in it."""
    return 4_000 + 20 * len(text) + weight


class StatementCache:
    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max, self._bytes = bytes_max, 0
        self._latest: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._in_use: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._version = 0  # of the catalog
        self._lock = threading.Lock()

    def get(self, key: Key) -> Any | None:
        """An entry, if there is one."""
        with self._lock:
            found = self._in_use.get(key)
            if found is not None:
                self._in_use.move_to_end(key)
                return found[0]
            found = self._latest.pop(key, None)
            if found is None:
                return None
            self._in_use[key] = found
            if len(self._in_use) > IN_USE_MAX:
                self._drop_from(self._in_use)
            return found[0]

    def put(self, key: Key, entry: Any, size: int) -> None:
        """Keep an entry, unless it takes much memory. What depends on a draft of the catalog is of no use to others."""
        version = key.meaning.version
        if size > ENTRY_BYTES_MAX or len(key.text) > TEXT_CHARACTERS_MAX or version < 0:
            return
        with self._lock:
            if version < self._version:
                return
            if version > self._version:
                self._latest.clear()
                self._in_use.clear()
                self._bytes, self._version = 0, version
            for kept in (self._latest, self._in_use):
                if key in kept:
                    self._bytes -= kept.pop(key)[1]
            self._latest[key] = entry, size
            self._bytes += size
            while len(self._latest) > LATEST_MAX:
                self._drop_from(self._latest)
            while self._bytes > self._bytes_max:
                self._drop_from(self._latest if len(self._latest) > 1 or not self._in_use else self._in_use)

    def _drop_from(self, kept: OrderedDict[Hashable, tuple[Any, int]]) -> None:
        _, (_, size) = kept.popitem(last=False)
        self._bytes -= size
