"""Blobs in this process's memory: for tests, and for environments that need not outlive it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from everview.storage.blob.contract import BlobInfo, checked_key
from everview.storage.errors import BlobExists, BlobMissing, InvalidUsage


class MemoryBlob:
    """A dictionary behind a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blobs: dict[str, bytes] | None = {}

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        checked_key(key)
        held = bytes(memoryview(data))  # a copy: the caller may reuse its buffer
        with self._lock:
            if self._open_blobs().setdefault(key, held) != held:
                raise BlobExists(f"another blob is stored as {key}", hint="use a new key for other bytes")

    def put_file(self, key: str, path: Path) -> None:
        try:
            data = path.read_bytes()
        except FileNotFoundError as failure:
            raise InvalidUsage(f"no file to store at {path}") from failure
        self.put(key, data)
        path.unlink(missing_ok=True)

    def seal(self, key: str) -> None:
        self.open(key).close()

    def open(self, key: str) -> pa.NativeFile:
        checked_key(key)
        with self._lock:
            data = self._open_blobs().get(key)
        if data is None:
            raise BlobMissing(f"no blob is stored as {key}")
        return pa.BufferReader(data)

    def delete(self, key: str) -> bool:
        checked_key(key)
        with self._lock:
            return self._open_blobs().pop(key, None) is not None

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        with self._lock:
            found = [BlobInfo(key, len(data)) for key, data in self._open_blobs().items() if key.startswith(prefix)]
        return iter(sorted(found, key=lambda info: info.key))

    def uri(self, key: str) -> str:
        raise InvalidUsage(
            f"a blob in memory has no address: {checked_key(key)}", hint="keep blobs in a folder or an object store"
        )

    def close(self) -> None:
        with self._lock:
            self._blobs = None

    def _open_blobs(self) -> dict[str, bytes]:
        if self._blobs is None:
            raise InvalidUsage("the blob store is closed")
        return self._blobs
