"""A Blob for someone who looks at an environment that others change: it refuses changes, and opens blobs ahead of need.

A file of a local folder that is open can be read to its end even when it is removed meanwhile. An object store
makes no such promise: whoever reads from one must be prepared for a blob that disappears half-way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from everview.storage.blob.contract import Blob, BlobInfo
from everview.storage.errors import StorageReadOnly

OPEN_MAX = 200  # files; processes may have few


class OpenedAhead:
    """`inner`, with the first of `keys` opened now; each is handed out once, to whoever opens it first."""

    def __init__(self, inner: Blob, keys: Iterable[str]) -> None:
        self._inner = inner
        self._files: dict[str, pa.NativeFile] = {}
        try:
            for key, _ in zip(keys, range(OPEN_MAX), strict=False):
                self._files[key] = inner.open(key)
        except BaseException:
            self.close()
            raise

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        raise _refusal(f"storing blob {key}")

    def put_file(self, key: str, path: Path) -> None:
        raise _refusal(f"storing blob {key}")

    def seal(self, key: str) -> None:
        raise _refusal(f"sealing blob {key}")

    def open(self, key: str) -> pa.NativeFile:
        return self._files.pop(key) if key in self._files else self._inner.open(key)

    def delete(self, key: str) -> bool:
        raise _refusal(f"deleting blob {key}")

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        return self._inner.list(prefix)

    def uri(self, key: str) -> str:
        return self._inner.uri(key)

    def close(self) -> None:
        """Close what was opened and not handed out; `inner` stays open, for others may be using it."""
        while self._files:
            self._files.popitem()[1].close()


def _refusal(doing: str) -> StorageReadOnly:
    return StorageReadOnly(f"{doing} was refused", detail="the environment was opened for reading only")
