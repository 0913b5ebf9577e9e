"""Blob: immutable bytes by key, the first of storage's two contracts to the outside world.

* A put is durable when it returns, and visible whole or not at all. Putting the same bytes again is
  harmless (a retry after an `Indeterminate`); putting other bytes under a key that exists is `BlobExists`
  where the store can tell cheaply, and callers never do it.
* A key is relative, of printable ASCII words joined by "/"; anything else is `InvalidUsage`.
* Failures are `Determinate`, `Indeterminate`, or their kinds `BlobMissing`, `StorageFull`, `StorageReadOnly`.
* All methods may be called from several threads at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from everview.storage.errors import InvalidUsage

_KEY = re.compile(r"[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*\Z")


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """An entry of a listing."""

    key: str
    size_bytes: int


class ReadableBlob(Protocol):
    """What readers of parts need of a Blob."""

    def open(self, key: str) -> pa.NativeFile:
        """A file for random reads, or `BlobMissing`."""

    def uri(self, key: str) -> str:
        """Where an engine's executors can read the blob: a file, s3 or other URI; memory has none."""

    def close(self) -> None:
        """Release what is held. Further calls fail."""


class Blob(ReadableBlob, Protocol):
    """The module's docstring says what holds of every implementation."""

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        """Store `data` under `key`, durably."""

    def put_file(self, key: str, path: Path) -> None:
        """Store the file's bytes under `key`, durably. The file is consumed: moved or removed."""

    def seal(self, key: str) -> None:
        """Make durable what someone else wrote where `uri` says; `BlobMissing` if nobody did."""

    def delete(self, key: str) -> bool:
        """Remove the blob durably; true if there was one. Deleting what is gone is not an error."""

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        """Every blob whose key starts with the text `prefix`, in ascending order of key."""


def checked_key(key: str) -> str:
    """The key, if every store can hold it; else `InvalidUsage`."""
    if not _KEY.match(key) or len(key) > 512 or any(part in {".", ".."} for part in key.split("/")):
        raise InvalidUsage(f"not a blob key: {key!r}", hint="use words of letters, digits, . _ = - joined by /")
    return key
