"""Blobs in an object store: Amazon's S3 and what speaks like it, Google's, Azure's, all through `obstore`.

Small blobs are stored by one conditional request, which the store itself refuses if the key exists. Large
ones go up in parts after a look at the key, so there the refusal is only as good as callers' manners; give
the bucket a rule that removes unfinished uploads. Every request has a time limit and a bounded number of tries.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.reach.addresses import check_endpoints
from everview.storage import errors
from everview.storage.blob.contract import BlobInfo, checked_key

try:
    import obstore
    from obstore import exceptions as store_errors
    from obstore.store import AzureStore, GCSStore, S3Store, from_url
except ImportError as missing:
    raise errors.InvalidUsage(
        "blobs in an object store need the obstore library", hint="install it: pip install 'everview[s3]'"
    ) from missing

_PART_BYTES = 8 << 20  # also the most that one conditional request stores
_WHOLE_BYTES_MAX = 1 << 20  # a blob up to this size is fetched whole on opening: one request is the cheapest
_UPLOADS_MAX = 4
_CLIENT: dict[str, Any] = {"timeout": "30s", "connect_timeout": "5s"}
_RETRIES: Any = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2},
}
_FULL = ("StorageFull", "QuotaExceeded", "507 Insufficient")


class ObjectBlob:
    """One bucket, or what lies below a prefix of it.

    `url` is `s3://bucket/prefix`, `gs://...`, `az://...`; `options` are obstore's for that store (`endpoint`,
    `region`, ...) and `allow_http`. What is not given is taken from the usual environment variables.
    """

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        config: dict[str, Any] = dict(options or {})
        check_endpoints(config)
        client = dict(_CLIENT)
        client["allow_http"] = str(config.pop("allow_http", "")).lower() in {"1", "true", "yes"}
        try:
            store = from_url(url, config=config or None, client_options=client, retry_config=_RETRIES)  # type: ignore[call-overload]
        except (store_errors.BaseError, ValueError) as failure:
            raise errors.InvalidUsage(
                f"cannot use object store {url}", detail=_first_line(failure), hint="check the URL and its parameters"
            ) from failure
        self._store: Any = store
        self._url = url.rstrip("/")
        self._base = _engine_base(store, url)
        self._closed = False

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        self._check(key)
        view = memoryview(data).cast("B")
        if len(view) <= _PART_BYTES:
            self._put_small(key, bytes(view))
        else:
            self._put_large(key, view, len(view))

    def put_file(self, key: str, path: Path) -> None:
        self._check(key)
        try:
            size = path.stat().st_size
            if size <= _PART_BYTES:
                self._put_small(key, path.read_bytes())
            else:
                self._put_large(key, path, size)
        except FileNotFoundError as failure:
            raise errors.InvalidUsage(f"no file to store at {path}") from failure
        path.unlink(missing_ok=True)

    def seal(self, key: str) -> None:
        self._check(key)
        with self._reading(key):  # an object that can be seen is durable
            obstore.head(self._store, key)

    def open(self, key: str) -> pa.NativeFile:
        self._check(key)
        with self._reading(key):
            size = obstore.head(self._store, key)["size"]
            if size <= _WHOLE_BYTES_MAX:
                return pa.BufferReader(obstore.get(self._store, key).bytes().to_bytes())
        return pa.PythonFile(_Ranges(self, key, size), mode="r")

    def stored_at(self, key: str) -> datetime:
        """When the blob was stored, by the clock of the store."""
        self._check(key)
        with self._reading(key):
            return obstore.head(self._store, key)["last_modified"]

    def delete(self, key: str) -> bool:
        self._check(key)
        if not self._exists(key):  # deleting alone would not say whether there was anything
            return False
        with self._writing("deleting", key):
            obstore.delete(self._store, key)
        return True

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        self._check()
        folder = prefix.rpartition("/")[0]  # stores list by whole words of a path; the rest is filtered here
        try:
            checked_key(folder or "any")
        except errors.InvalidUsage:
            return iter(())  # nor can any key start with it
        found = []
        with self._reading(f"{prefix}*"):
            for chunk in obstore.list(self._store, folder or None, chunk_size=1000):
                found += [BlobInfo(meta["path"], meta["size"]) for meta in chunk if meta["path"].startswith(prefix)]
        return iter(sorted(found, key=lambda info: info.key))  # some stores do not list in order

    def versions(self, after: str) -> Iterator[tuple[str, int, str]]:
        """Keys greater than `after` with their sizes, and what differs whenever their bytes do; in no order."""
        self._check()
        with self._reading("*"):
            for chunk in obstore.list(self._store, None, offset=after or None, chunk_size=1000):
                for meta in chunk:
                    yield meta["path"], meta["size"], f"{meta['e_tag']} {meta['last_modified']}"

    def uri(self, key: str) -> str:
        """The address for Hadoop's connectors, which Spark reads through: theirs for S3 is called `s3a`."""
        self._check(key)
        return f"{self._base}/{key}"

    def close(self) -> None:
        self._closed = True

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Some bytes of a blob; fewer than asked for is an error."""
        self._check()
        with self._reading(key):
            data = obstore.get_range(self._store, key, start=start, length=length).to_bytes()
        if len(data) != length:
            raise errors.Determinate(f"blob {key} ended early", detail=f"{len(data)} of {length} bytes at {start}")
        return data

    def _put_small(self, key: str, data: bytes) -> None:
        try:
            with self._writing("storing", key):
                obstore.put(self._store, key, data, mode="create", use_multipart=False)
        except errors.BlobExists:
            # Perhaps by a try of this very put whose answer was lost.
            self._check_same(key, memoryview(data), len(data))

    def _put_large(self, key: str, data: memoryview | Path, size: int) -> None:
        if self._exists(key):
            self._check_same(key, data, size)
            return
        with self._writing("storing", key):
            obstore.put(
                self._store, key, data, use_multipart=True, chunk_size=_PART_BYTES, max_concurrency=_UPLOADS_MAX
            )

    def _exists(self, key: str) -> bool:
        try:
            with self._reading(key):
                obstore.head(self._store, key)
        except errors.BlobMissing:
            return False
        return True

    def _check_same(self, key: str, data: memoryview | Path, size: int) -> None:
        with self._reading(key), data.open("rb") if isinstance(data, Path) else io.BytesIO(data) as ours:
            stored = obstore.get(self._store, key)
            chunks = stored.stream(min_chunk_size=1 << 20)
            if stored.meta["size"] != size or any(ours.read(len(chunk)) != bytes(chunk) for chunk in chunks):
                hint = "use a new key for other bytes"
                raise errors.BlobExists(f"another blob is stored as {key}", detail=self._url, hint=hint)

    def _check(self, key: str | None = None) -> None:
        if self._closed:
            raise errors.InvalidUsage(f"the blob store is closed: {self._url}")
        if key is not None:
            checked_key(key)

    @contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as failure:
            raise errors.BlobMissing(f"no blob is stored as {key}", detail=_first_line(failure)) from failure
        except store_errors.BaseError as failure:
            raise errors.Determinate(
                f"the object store failed while reading blob {key}",
                detail=_first_line(failure),
                hint=f"check that {self._url} can be reached with these credentials",
            ) from failure

    @contextmanager
    def _writing(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, store_errors.BaseError) as failure:
            raise self._write_failure(failure, f"{doing} blob {key}") from failure

    def _write_failure(self, failure: Exception, doing: str) -> errors.StorageError:
        detail = _first_line(failure)
        if isinstance(failure, store_errors.AlreadyExistsError):
            return errors.BlobExists(
                f"the key is taken while {doing}", detail=self._url, hint="use a new key for other bytes"
            )
        if isinstance(failure, FileNotFoundError):
            return errors.Determinate(
                f"no such bucket while {doing}", detail=detail, hint=f"make the bucket of {self._url}"
            )
        if isinstance(failure, store_errors.PermissionDeniedError | store_errors.UnauthenticatedError):
            hint = "check the credentials and what they permit"
            return errors.StorageReadOnly(f"the object store refused {doing}", detail=detail, hint=hint)
        if any(word in detail for word in _FULL):
            return errors.StorageFull(
                f"no space left while {doing}", detail=detail, hint="raise the quota or delete objects"
            )
        if isinstance(failure, store_errors.NotSupportedError | store_errors.InvalidPathError):
            return errors.Determinate(f"the object store cannot do it while {doing}", detail=detail)
        # A time limit or a lost connection, perhaps after some try had reached the store.
        return errors.Indeterminate(f"the object store failed while {doing}", detail=detail, hint="do it again")


class _Ranges(io.RawIOBase):
    """One large blob as a file: each read is a request. pyarrow locks around seeks and reads."""

    def __init__(self, blob: ObjectBlob, key: str, size: int) -> None:
        self._blob = blob
        self._key = key
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        rest = max(0, self._size - self._at)
        length = rest if size is None or size < 0 else min(size, rest)
        data = self._blob.read_range(self._key, self._at, length) if length else b""
        self._at += len(data)
        return data


def _engine_base(store: object, url: str) -> str:
    match store:
        case S3Store():
            base = f"s3a://{store.config['bucket']}"
        case GCSStore():
            base = f"gs://{store.config['bucket']}"
        case AzureStore():
            base = f"abfss://{store.config['container_name']}@{store.config['account_name']}.dfs.core.windows.net"
        case _:
            raise errors.InvalidUsage(f"blobs cannot be kept in {url}", hint="use s3://, gs:// or az://")
    return f"{base}/{store.prefix}" if store.prefix else base


def _first_line(failure: Exception) -> str:
    return str(failure).strip().split("\n", 1)[0]  # the rest is obstore's own view of it
