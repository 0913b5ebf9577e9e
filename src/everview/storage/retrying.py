"""Trying again, a bounded number of times, and finding out what became of a commit that may have happened.

Only failures that may pass are tried again: not a full or read-only store, nor a missing blob. A commit in
doubt is looked up by its version. Seen on a key it wrote: it happened. Some key it would have changed still
as it was expected: it did not, so far, and trying again is safe, for the same comparison guards it. Anything
else (it was overwritten, or never happened and a rival was first; or it only deletes) stays `Indeterminate`.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from everview.storage import errors
from everview.storage.blob.contract import Blob, BlobInfo
from everview.storage.consensus.contract import Conflict, Consensus, Entry

T = TypeVar("T")

_LASTING = (errors.StorageFull, errors.StorageReadOnly, errors.BlobMissing, errors.BlobExists)


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try, and the pause between tries: doubled each time, with jitter."""

    tries_max: int = 5
    delay_s_first: float = 0.02
    delay_s_max: float = 2.0
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform

    def wait(self, tries: int) -> None:
        delay_s = min(self.delay_s_max, self.delay_s_first * 2.0 ** (tries - 1))
        self.sleep(self.uniform(delay_s / 2, delay_s))

    def persist(self, work: Callable[[], T]) -> T:
        """The result of `work`, tried again after failures that may pass; doing it twice must be harmless."""
        doubt: errors.Indeterminate | None = None
        tries = 1
        while True:
            try:
                return work()
            except errors.Indeterminate as failure:
                doubt = failure
                if tries >= self.tries_max:
                    raise
            except errors.Determinate as failure:
                if isinstance(failure, errors.BlobExists):
                    raise
                if tries >= self.tries_max or isinstance(failure, _LASTING):
                    # That this try had no effect says nothing of an earlier one.
                    raise doubt or failure from failure.__cause__
            self.wait(tries)
            tries += 1


class RetryingBlob:
    """A Blob that tries again. Puts may be repeated: the same bytes under the same key are harmless."""

    def __init__(self, inner: Blob, patience: Patience | None = None) -> None:
        self._inner = inner
        self._patience = patience or Patience()

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        self._patience.persist(lambda: self._inner.put(key, data))

    def put_file(self, key: str, path: Path) -> None:
        doubt = False

        def work() -> None:
            nonlocal doubt
            if doubt and not os.path.lexists(path):
                self._inner.open(key).close()  # consumed, so it was stored
                return
            try:
                self._inner.put_file(key, path)
            except errors.Indeterminate:
                doubt = True
                raise

        self._patience.persist(work)

    def seal(self, key: str) -> None:
        self._patience.persist(lambda: self._inner.seal(key))

    def open(self, key: str) -> pa.NativeFile:
        return self._patience.persist(lambda: self._inner.open(key))

    def delete(self, key: str) -> bool:
        """Delete a blob. After a try in doubt, True also if that try may have removed it."""
        doubt = False

        def work() -> bool:
            nonlocal doubt
            try:
                return self._inner.delete(key) or doubt
            except errors.Indeterminate:
                doubt = True
                raise

        return self._patience.persist(work)

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """A listing that breaks off is restarted and continues after the last key that was seen."""
        last = ""
        tries = 1
        while True:
            try:
                for info in self._inner.list(prefix):
                    if info.key > last:
                        yield info
                        last = info.key
                return
            except errors.Determinate:
                if tries >= self._patience.tries_max:
                    raise
            self._patience.wait(tries)
            tries += 1

    def uri(self, key: str) -> str:
        return self._inner.uri(key)

    def close(self) -> None:
        self._inner.close()


class RetryingConsensus:
    """A Consensus that tries again, and reads back what became of a commit in doubt."""

    def __init__(self, inner: Consensus, patience: Patience | None = None) -> None:
        self._inner = inner
        self._patience = patience or Patience()

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        return self._patience.persist(lambda: self._inner.get(keys))

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        return self._patience.persist(lambda: self._inner.scan(*prefixes))

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        doubt: errors.Indeterminate | None = None
        tries = 1
        while True:
            try:
                return self._inner.commit(expected, writes, version)
            except Conflict:
                if doubt is None:
                    raise
                # Perhaps with an earlier try of itself.
                happened = self._happened(expected, writes, version)
                if happened is False:
                    raise
            except errors.Indeterminate as failure:
                doubt = failure
                happened = self._happened(expected, writes, version)
            except errors.Determinate as failure:
                if tries >= self._patience.tries_max or isinstance(failure, _LASTING):
                    raise doubt or failure from failure.__cause__
                happened = False
            if happened:
                return None
            if doubt and (happened is None or tries >= self._patience.tries_max):
                raise doubt
            self._patience.wait(tries)
            tries += 1

    def close(self) -> None:
        self._inner.close()

    def _happened(
        self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int
    ) -> bool | None:
        """Whether the commit has happened, as far as reading tells; None if it cannot tell."""
        if not writes:
            return False  # there is nothing that could have happened
        try:
            found = self.get(list(writes))
        except errors.StorageError:
            return None
        current = {key: found[key].version if key in found else None for key in writes}
        if any(current[key] == version for key, value in writes.items() if value is not None):
            return True
        for key, value in writes.items():
            # A version never returns. An absence could, had a rival deleted what we wrote; names are not used twice.
            untouched = key in expected and current[key] == expected[key]
            if untouched and not (value is None and expected[key] is None):
                return False
        return None
