"""Consensus in this process's memory: for tests, and for environments that need not outlive it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from everview.storage.consensus.contract import Conflict, Entry
from everview.storage.errors import InvalidUsage


class MemoryConsensus:
    """A dictionary behind a lock: what the other implementations are compared with."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] | None = {}

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        with self._lock:
            entries = self._open_entries()
            return {key: entries[key] for key in keys if key in entries}

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        with self._lock:
            return sorted(item for item in self._open_entries().items() if item[0].startswith(prefixes))

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        with self._lock:
            entries = self._open_entries()
            current = {key: entries[key] for key in expected if key in entries}
            if any(expected[key] != (current[key].version if key in current else None) for key in expected):
                raise Conflict(current)
            for key, value in writes.items():
                if value is None:
                    entries.pop(key, None)
                else:
                    entries[key] = Entry(version, bytes(value))

    def close(self) -> None:
        with self._lock:
            self._entries = None

    def _open_entries(self) -> dict[str, Entry]:
        if self._entries is None:
            raise InvalidUsage("the consensus is closed")
        return self._entries
