"""Writing and reading Parquet parts: sorted by hash, bounded in memory, checked against their checksums."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from everview.storage.batch import SUM_MAX, Part, as_declared, part_schema, sums_of
from everview.storage.blob.contract import Blob, ReadableBlob
from everview.storage.disk import make_private, make_private_file, write_failure
from everview.storage.errors import BlobMissing, Corruption, StorageError
from everview.storage.faults import failpoint
from everview.timely.consolidate import DIFF, HASH, TIME, int_column

ROW_GROUP_ROWS = 1 << 16
PART_ROWS_MAX = 1 << 24
PART_BYTES_MAX = 1 << 30  # of Arrow memory, before encoding
_CHECK_BYTES = 16 << 20


class PartWriter:
    """Writes sorted, consolidated chunks of updates into as few parts as the limits allow.

    `finish` makes the parts durable and gives them. After a failure, call `abandon`.
    """

    def __init__(self, blob: Blob, schema: pa.Schema, new_key: Callable[[], str], scratch: Path) -> None:
        self._blob = blob
        self._schema = part_schema(schema)
        self._new_key = new_key
        self._scratch = scratch
        self._file: _OpenPart | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self.parts: list[Part] = []

    def write(self, chunk: pa.Table) -> None:
        """Add updates whose hashes are not below those written before."""
        if chunk.num_rows == 0:
            return
        self._pending.append(chunk.select(self._schema.names))
        self._pending_rows += chunk.num_rows
        if self._pending_rows >= ROW_GROUP_ROWS:
            self._flush(keep_remainder=True)

    def finish(self) -> tuple[Part, ...]:
        """Make everything durable and give the parts."""
        self._flush(keep_remainder=False)
        self._close_file()
        return tuple(self.parts)

    def abandon(self) -> None:
        """Remove what was written so far."""
        if self._file is not None:
            self._file.discard()
            self._file = None
        for part in self.parts:
            with suppress(StorageError):  # what cannot be removed now is found by the next process
                self._blob.delete(part.key)
        self.parts = []

    def _flush(self, *, keep_remainder: bool) -> None:
        if not self._pending:
            return
        table = pa.concat_tables(self._pending)
        whole = table.num_rows - table.num_rows % ROW_GROUP_ROWS if keep_remainder else table.num_rows
        rest = table.slice(whole)
        self._pending, self._pending_rows = ([rest] if rest.num_rows else []), rest.num_rows
        if whole:
            try:
                if self._file is None:
                    key = self._new_key()
                    make_private(self._scratch)  # someone may have removed it since the environment was opened
                    path = self._scratch / key.replace("/", "_")
                    make_private_file(path)
                    self._file = _OpenPart(self._schema, path, key)
                self._file.write(table.slice(0, whole))
            except OSError as error:
                raise write_failure(error, "writing a part", self._scratch) from error
            if self._file.rows >= PART_ROWS_MAX or self._file.arrow_bytes >= PART_BYTES_MAX:
                self._close_file()

    def _close_file(self) -> None:
        if self._file is None:
            return
        try:
            part, path = self._file.close()
        except OSError as error:
            raise write_failure(error, "writing a part", self._scratch) from error
        self._file = None
        self.parts.append(part)  # from here on it may exist, and is removed if the rest fails
        try:
            self._blob.put_file(part.key, path)
        finally:
            path.unlink(missing_ok=True)
        failpoint("part.written")


def write_run(updates: pa.Table, path: Path) -> Part:
    """Write consolidated updates, with the columns of a part, to a file; its key is the name of the file."""
    part = _OpenPart(updates.schema, path, path.name)
    try:
        part.write(updates)
        return part.close()[0]
    except BaseException:
        part.discard()
        raise


class _OpenPart:
    """A part while it is being written to a scratch file."""

    def __init__(self, schema: pa.Schema, path: Path, key: str) -> None:
        self._key = key
        self._path = path
        # Dictionaries never pay for hashes, and the tries to build them cost as much as the rest of the writing.
        distinct = (pa.types.is_int64, pa.types.is_floating, pa.types.is_timestamp)  # mostly
        coded = [f for f in schema if f.name in (TIME, DIFF) or not any(test(f.type) for test in distinct)]
        self._writer = pq.ParquetWriter(
            self._path,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[f.name for f in coded] or False,
            write_page_checksum=True,
            store_schema=True,
            store_decimal_as_integer=True,  # those that fit a word: as Spark writes them
        )
        self.rows = self.arrow_bytes = self._retractions = self._added = self._removed = 0
        self._hash_min = self._hash_max = self._time_min = self._time_max = 0

    def write(self, table: pa.Table) -> None:
        hashes, times, diffs = (int_column(table, name) for name in (HASH, TIME, DIFF))
        low, high = int(times.min()), int(times.max())
        if self.rows == 0:
            self._hash_min, self._time_min, self._time_max = int(hashes[0]), low, high
        self._hash_max = int(hashes[-1])
        self._time_min, self._time_max = min(self._time_min, low), max(self._time_max, high)
        self._retractions += int(np.count_nonzero(diffs < 0))
        added, removed = sums_of(diffs)
        self._added, self._removed = min(self._added + added, SUM_MAX), min(self._removed + removed, SUM_MAX)
        self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self.rows += table.num_rows
        self.arrow_bytes += table.nbytes

    def close(self) -> tuple[Part, Path]:
        self._writer.close()
        with pa.memory_map(str(self._path)) as file:
            size, checksum = file.size(), checksum_of(file)
        bounds = (self._hash_min, self._hash_max, self._time_min, self._time_max)
        sums = (self._added, self._removed)
        return Part(self._key, self.rows, size, checksum, *bounds, self._retractions, *sums), self._path

    def discard(self) -> None:
        with suppress(OSError):  # the disk may be full; the file goes anyway
            self._writer.close()
        self._path.unlink(missing_ok=True)


def checksum_of(file: pa.NativeFile) -> str:
    digest = xxhash.xxh3_128()
    file.seek(0)
    while piece := file.read_buffer(_CHECK_BYTES):
        digest.update(piece)
    return digest.hexdigest()


def check_part(file: pa.NativeFile, part: Part, where: str) -> None:
    """Raise `Corruption` unless the file is the part as it was written."""
    detail = None
    if file.size() != part.size_bytes:
        detail = f"it has {file.size()} bytes and should have {part.size_bytes}"
    elif checksum_of(file) != part.checksum:
        detail = "its checksum does not match its bytes"
    if detail is not None:
        raise Corruption(f"{where}, part {part.key} is damaged", detail=detail)


class PartReader:
    """Opens parts for reading; the first time a part is opened here, all of it is checked.

    Row groups carry checksums of their own, which are verified on every read, so damage that happens later is seen too.
    """

    def __init__(self, blob: ReadableBlob) -> None:
        self._blob = blob
        self._checked: set[str] = set()
        self._lock = threading.Lock()

    def open(self, part: Part, where: str) -> pq.ParquetFile:
        try:
            file = self._blob.open(part.key)
        except BlobMissing as error:
            raise Corruption(f"{where}, part {part.key} is missing", hint="restore the blob store") from error
        if part.key not in self._checked:
            check_part(file, part, where)
            file.seek(0)
            with self._lock:
                self._checked.add(part.key)
        try:
            return pq.ParquetFile(file, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise Corruption(f"{where}, part {part.key} does not decode", detail=str(error)) from error

    def row_groups(self, part: Part, where: str, schema: pa.Schema) -> Iterator[pa.Table]:
        """The row groups of a part in hash order, one in memory at a time; columns that it lacks are NULL."""
        file = self.open(part, where)
        try:
            for index in range(file.metadata.num_row_groups):
                yield self._decoded(file, [index], schema, part, where)
        finally:
            file.close(force=True)

    def read(
        self,
        part: Part,
        where: str,
        schema: pa.Schema,
        hash_range: tuple[int, int] | None = None,
        *,
        threads: bool = True,
    ) -> pa.Table:
        """These columns of the whole part, or of the row groups that can hold hashes in the range."""
        file = self.open(part, where)
        try:
            groups = list(range(file.metadata.num_row_groups))
            if hash_range is not None:
                groups = [g for g in groups if _may_hold(file.metadata.row_group(g), hash_range)]
            return self._decoded(file, groups, schema, part, where, threads=threads)
        finally:
            file.close(force=True)

    def uri(self, part: Part) -> str:
        return self._blob.uri(part.key)

    def forget(self, key: str) -> None:
        """The part is being removed."""
        with self._lock:
            self._checked.discard(key)

    def _decoded(
        self,
        file: pq.ParquetFile,
        groups: list[int],
        schema: pa.Schema,
        part: Part,
        where: str,
        *,
        threads: bool = False,
    ) -> pa.Table:
        try:
            return as_declared(file.read_row_groups(groups, columns=schema.names, use_threads=threads), schema)
        except (pa.ArrowException, OSError) as error:
            raise Corruption(f"{where}, part {part.key} does not decode", detail=str(error)) from error


def _may_hold(group: pq.RowGroupMetaData, hash_range: tuple[int, int]) -> bool:
    statistics = group.column(0).statistics
    low, high = hash_range
    return statistics is None or not (statistics.max < low or statistics.min > high)
