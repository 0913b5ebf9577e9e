"""Garbage collection: parts that no shard refers to are removed, but never while someone may still be reading them.

Two kinds of garbage exist. Parts that a commit of this process replaced wait here until the last reader has let go.
Parts that an earlier process wrote and never committed, or replaced and did not live to remove, are found by comparing
the blob store with the metadata: their names carry the epoch of their writer, and writers of older epochs are fenced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from everview.storage.batch import Part, decode_batch
from everview.storage.blob.contract import Blob
from everview.storage.consensus.contract import Consensus
from everview.storage.errors import StorageError
from everview.storage.faults import failpoint

NEVER = 2**63
PIN_LEASE_MS = 60 * 60 * 1000


class Pins:
    """Knows which parts are being read, and which wait to be removed."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.lock = threading.Lock()
        self._now_ms = now_ms
        self._pins: dict[int, tuple[int, frozenset[str]]] = {}
        self._garbage: set[str] = set()
        self._next = 0

    def pin_locked(self, parts: Iterable[Part]) -> Callable[[], None]:
        """Keep the parts until the result is called or the lease is over. The caller holds `lock`."""
        self._next += 1
        number = self._next
        self._pins[number] = (self._now_ms() + PIN_LEASE_MS, frozenset(part.key for part in parts))

        def release() -> None:
            with self.lock:
                self._pins.pop(number, None)

        return release

    def retire(self, keys: Iterable[str]) -> None:
        """No shard refers to these any more."""
        with self.lock:
            self._garbage.update(keys)

    def removable(self) -> list[str]:
        """Retired parts that nobody reads. Each is given once."""
        with self.lock:
            if not self._garbage:
                return []
            now = self._now_ms()
            self._pins = {n: pin for n, pin in self._pins.items() if pin[0] >= now}
            free = self._garbage - frozenset().union(*(keys for _, keys in self._pins.values()))
            self._garbage -= free
            return sorted(free)

    def __len__(self) -> int:
        return len(self._pins)


def referenced(consensus: Consensus) -> set[str]:
    """The keys of all parts that some shard refers to."""
    runs = consensus.scan("run/")
    return {
        part.key
        for key, entry in runs
        for part in decode_batch(int(key.rpartition("/")[2]), entry.value, f"batch {key}").parts
    }


def orphans(consensus: Consensus, blob: Blob, epoch: int) -> list[str]:
    """Parts of earlier epochs that nothing refers to.

    The listing comes first: a part can become unreferenced between the two readings, but never referenced again.
    """
    stored = [info.key for info in blob.list("parts/") if _epoch_of(info.key) < epoch]
    wanted = referenced(consensus) if stored else set()
    return [key for key in stored if key not in wanted]


def _epoch_of(key: str) -> int:
    """The epoch at the start of the third word of a key, in our own parts as in the executors'."""
    words = key.split("/")
    epoch = words[2].partition("-")[0] if len(words) > 2 else ""
    return int(epoch) if epoch.isdigit() else NEVER  # not one of our files, so it stays


def remove(blob: Blob, keys: Iterable[str], forget: Callable[[str], None]) -> tuple[int, list[str]]:
    """Delete blobs. Gives the number that is gone, and the keys to try again."""
    count, failed = 0, []
    for key in keys:
        failpoint("gc.before_delete")
        forget(key)
        try:
            blob.delete(key)
            count += 1
        except StorageError:
            failed.append(key)  # the store may be away; it is garbage all the same, and stays on the list
    return count, failed
