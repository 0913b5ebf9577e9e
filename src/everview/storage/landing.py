"""Parts that an engine's executors write: they put Parquet files into the blob store themselves.

A `Landing` is a folder for these files. Like the name of a part, its name carries the epoch of this process, so that
the next process finds what was not committed. `staged` trusts nothing: it checks columns, order and hashes, and takes
the checksum of every file. Files may overlap in hashes and need not be consolidated, but each is one sorted run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from everview.storage.batch import (
    INLINE_BYTES_MAX,
    Batch,
    Part,
    as_declared,
    inline_batch,
    one_record_batch,
    part_batch,
    sums_of,
)
from everview.storage.blob.contract import Blob
from everview.storage.errors import Determinate, InvalidUsage, SchemaMismatch
from everview.storage.parts import PART_ROWS_MAX, ROW_GROUP_ROWS, checksum_of
from everview.storage.shard import Shard, Spec
from everview.storage.staging import Staged
from everview.timely.consolidate import DIFF, HASH, TIME, int_column
from everview.timely.hashing import I64, hash_rows

_THREADS = 4
_HASHES_CHECKED = 1024  # of each file: a writer that hashes other columns, or other types, is wrong everywhere
_UPDATE_BYTES_MIN = 16  # of an inline update: its time and its diff


class BlobFolder:
    def __init__(self, blob: Blob, prefix: str) -> None:
        self._blob = blob
        self._prefix = prefix

    @property
    def uri(self) -> str:
        """The address to which executors write; each file below it is a blob."""
        return self._blob.uri(self._prefix)

    def keys(self) -> list[str]:
        """All keys in the folder, including what Hadoop leaves there: checksums, markers, drafts."""
        return [info.key for info in self._blob.list(f"{self._prefix}/")]

    def files(self) -> list[str]:
        """The Parquet files that were completed."""
        return [key for key in self.keys() if key.endswith(".parquet") and not self._hidden(key)]

    def put(self, name: str, data: pa.Buffer) -> str:
        """Store a file; gives its address."""
        self._blob.put(f"{self._prefix}/{name}", data)
        return self._blob.uri(f"{self._prefix}/{name}")

    def open(self, key: str) -> pa.NativeFile:
        return self._blob.open(key)

    def discard(self) -> None:
        self._remove(self.keys())

    def _remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._blob.delete(key)

    def _hidden(self, key: str) -> bool:
        """Whether Hadoop's programs pass it over, like a folder of uncommitted output."""
        return any(word[0] in "_." for word in key.removeprefix(f"{self._prefix}/").split("/"))


class Landing(BlobFolder):
    """A folder for the parts of one shard, all written by one job.

    `staged` prepares them for a commit. If the job or the commit fails, call `discard`.
    """

    def __init__(
        self, blob: Blob, prefix: str, current: Callable[[], Shard], retire: Callable[[Iterable[str]], None]
    ) -> None:
        super().__init__(blob, prefix)
        self._current, self._retire = current, retire
        shard = current()
        self.id, self.spec = shard.id, shard.spec
        self._staged: Staged | None = None

    def _other_files(self, detail: str) -> Determinate:
        message = f"the files that arrived for {self.id} are not those that were written"
        hint = "the executors must write to the same blob store that this process reads"
        return Determinate(message, detail=detail, hint=hint)

    def written(self, runs: Sequence[Part]) -> Staged:
        """Make files durable that our own code wrote on executors; `runs` has their names in this folder as keys.

        Other files are left over from failed tasks.
        """
        self._check_unused()
        parts = tuple(replace(part, key=f"{self._prefix}/{part.key}") for part in runs)
        sizes = {info.key: info.size_bytes for info in self._blob.list(f"{self._prefix}/")}
        for part in parts:
            if sizes.get(part.key) != part.size_bytes:
                has = sizes.get(part.key, "no")
                raise self._other_files(f"{part.key} should have {part.size_bytes} bytes, and has {has}")
        return self._stage(parts)

    def staged(self, rows: int | None = None) -> Staged:
        """Check the files and make them durable; `rows` is the number of updates that were written."""
        self._check_unused()
        keys = self.files()
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="adopt") as pool:
            parts = tuple(part for part in pool.map(self._examined, keys) if part is not None)
            found = sum(part.rows for part in parts)
            if rows is not None and found != rows:
                place = f"the {len(parts)} files at {self._prefix}"
                raise self._other_files(f"{rows} updates were written, {found} are in {place}")
        return self._stage(parts)

    def _check_unused(self) -> None:
        if self._staged is not None:
            raise InvalidUsage(f"this landing for {self.id} was staged before", hint="write to a new landing")

    def _stage(self, parts: tuple[Part, ...]) -> Staged:
        batch = self._inline(parts) or (part_batch(parts, 0, 0, 0) if parts else None)
        kept = {part.key for part in batch.parts} if batch else set()
        self._remove(key for key in self.keys() if key not in kept)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="adopt") as pool:
            list(pool.map(self._blob.seal, kept))
        self._staged = Staged(self.id, batch)
        return self._staged

    def discard(self) -> None:
        """Remove everything. Do not call it after a commit in doubt: the next process cleans up."""
        if self._staged is None or not self._staged.used:
            super().discard()
            return
        keys = self.keys()
        if {part.key for batch in self._current().batches.values() for part in batch.parts}.intersection(keys):
            raise InvalidUsage(f"this landing for {self.id} is committed", detail=f"it is at {self._prefix}")
        self._retire(keys)  # the commit failed; or else compaction replaced them, and somebody may be reading them

    def _inline(self, parts: tuple[Part, ...]) -> Batch | None:
        """The updates as an inline batch if they are few: a file would cost more."""
        small = sum(part.size_bytes for part in parts) <= INLINE_BYTES_MAX
        if not parts or not small or sum(part.rows for part in parts) * _UPDATE_BYTES_MIN > INLINE_BYTES_MAX:
            return None
        tables = []
        for part in parts:
            with self._blob.open(part.key) as file:
                tables.append(as_declared(pq.ParquetFile(file).read(), self.spec.in_parts))
        updates = pa.concat_tables(tables).combine_chunks().select(self.spec.at_rest.names)
        batch = inline_batch(one_record_batch(updates), 0, 0, 0)
        return batch if batch.size_bytes <= INLINE_BYTES_MAX else None

    def _examined(self, key: str) -> Part | None:
        """The part that the file is; None if there is nothing in it."""
        with self._blob.open(key) as file:
            try:
                return _Examination(key, file, self.spec).part()
            except (pa.ArrowException, OSError) as error:
                raise Determinate(f"file {key} is no Parquet file", detail=str(error)) from error


class _Examination:
    """Checks that a file has the columns and the order of a part of the shard."""

    def __init__(self, key: str, file: pa.NativeFile, spec: Spec) -> None:
        self._key, self._file, self._spec = key, file, spec
        self._parquet = pq.ParquetFile(file, page_checksum_verification=True)
        self._metadata = self._parquet.metadata

    def part(self) -> Part | None:
        self._check_columns()
        rows = self._metadata.num_rows
        if rows == 0:
            return None
        if rows > PART_ROWS_MAX:
            raise self._wrong(f"it holds {rows} rows", f"write at most {PART_ROWS_MAX} rows to a file")
        largest = max(self._metadata.row_group(g).num_rows for g in range(self._metadata.num_row_groups))
        if largest > ROW_GROUP_ROWS:
            raise self._wrong(f"it has row groups of {largest} rows", f"write row groups of {ROW_GROUP_ROWS} rows")
        self._check_nulls()
        hash_min, hash_max = self._check_order()
        self._check_hashes()
        time_min, time_max = self._bounds(TIME)
        diffs = self._ints(DIFF)
        bounds = (hash_min, hash_max, time_min, time_max)
        return Part(
            self._key,
            rows,
            self._file.size(),
            checksum_of(self._file),
            *bounds,
            int(np.count_nonzero(diffs < 0)),
            *sums_of(diffs),
        )

    def _check_columns(self) -> None:
        given, wanted = self._parquet.schema_arrow, self._spec.in_parts
        if given.names != wanted.names:
            raise SchemaMismatch(
                f"file {self._key} does not have the columns of a part",
                detail=f"given {', '.join(given.names)}; wanted {', '.join(wanted.names)}",
            )
        for ours, theirs in zip(wanted, given, strict=True):
            if not _reads_as(theirs.type, ours.type):
                detail = f"column {ours.name} is {theirs.type}, and should be {ours.type}"
                raise SchemaMismatch(f"file {self._key} does not have the types of the collection", detail=detail)

    def _check_nulls(self) -> None:
        given = self._parquet.schema_arrow
        for column in self._spec.in_parts:
            if column.nullable or not given.field(column.name).nullable:
                continue
            known = self._statistics(column.name)
            nulls = sum(s.null_count for s in known) if known else self._column(column.name).null_count
            if nulls:
                raise SchemaMismatch(f"column {column.name} has NULLs and must not", detail=f"file {self._key}")

    def _check_order(self) -> tuple[int, int]:
        """Raise unless the file is one run as `merge` needs it; gives its least and its greatest hash.

        Hashes ascend within a row group. Where a hash continues in the next group, the rows of the first group come
        before those of the second. So `merge` can sort one group at a time and never has to go back.
        """
        first = last = 0
        for group in range(self._metadata.num_row_groups):
            hashes = self._group_ints(HASH, group)
            if group == 0:
                first = last = int(hashes[0])
            if int(hashes[0]) < last or (hashes[1:] < hashes[:-1]).any():
                raise self._wrong(f"row group {group} is not sorted by {HASH}", f"sort each file by {HASH}")
            if group and int(hashes[0]) == last and self._points(group - 1, last)[-1] > self._points(group, last)[0]:
                detail = f"rows of hash {last} go on in row group {group} and are not sorted there"
                raise self._wrong(detail, f"sort each file by {HASH}, the hash of all columns, and {TIME}")
            last = int(hashes[-1])
        return first, last

    def _points(self, group: int, hash: int) -> list[tuple[int, int]]:
        """Row hash and time of the rows with this hash in a row group, sorted."""
        if self._spec.keyed:
            table = as_declared(self._parquet.read_row_group(group), self._spec.in_parts)
            row_hashes = hash_rows([table.column(name) for name in self._spec.schema.names], table.num_rows)
            hashes, times = int_column(table, HASH), int_column(table, TIME)
        else:
            hashes, times = self._group_ints(HASH, group), self._group_ints(TIME, group)
            row_hashes = hashes
        here = hashes == hash
        return sorted(zip(row_hashes[here].tolist(), times[here].tolist(), strict=True))

    def _check_hashes(self) -> None:
        """Raise unless the writer hashes as we do: otherwise no look-up would find its rows."""
        schema = self._spec.in_parts
        names = [HASH, *self._spec.key]
        head = self._parquet.read_row_group(0, columns=names).slice(0, _HASHES_CHECKED)
        head = as_declared(head.select(names), pa.schema([schema.field(name) for name in names]))
        expected = hash_rows([head.column(name) for name in self._spec.key], head.num_rows)
        if (expected != int_column(head, HASH)).any():
            columns = ", ".join(self._spec.key)
            raise self._wrong(f"its {HASH} is not the hash of {columns}", f"write {HASH} as xxhash64({columns})")

    def _bounds(self, name: str) -> tuple[int, int]:
        known = self._statistics(name)
        if known and all(statistics.has_min_max for statistics in known):
            return min(s.min for s in known), max(s.max for s in known)
        values = self._ints(name)
        return int(values.min()), int(values.max())

    def _statistics(self, name: str) -> list[Any]:
        """The statistics of a plain column in every row group; empty if a row group has none."""
        leaf = next(i for i in range(self._metadata.num_columns) if self._leaf(i).partition(".")[0] == name)
        groups = (self._metadata.row_group(g) for g in range(self._metadata.num_row_groups))
        found = [group.column(leaf).statistics for group in groups]
        plain = self._leaf(leaf) == name
        return found if plain and all(s is not None and s.has_null_count for s in found) else []

    def _leaf(self, index: int) -> str:
        return str(self._metadata.schema.column(index).path)

    def _column(self, name: str) -> pa.ChunkedArray:
        return self._parquet.read(columns=[name]).column(0)

    def _ints(self, name: str) -> I64:
        return self._column(name).to_numpy()  # type: ignore[no-any-return]

    def _group_ints(self, name: str, group: int) -> I64:
        return self._parquet.read_row_group(group, columns=[name]).column(0).to_numpy()  # type: ignore[no-any-return]

    def _wrong(self, detail: str, hint: str) -> InvalidUsage:
        return InvalidUsage(f"file {self._key} cannot be a part", detail=detail, hint=hint)


def _reads_as(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the types hold the same values. Writers differ in the names of list items, and in NULLs."""
    if pa.types.is_list(wanted):
        return pa.types.is_list(given) and _reads_as(given.value_type, wanted.value_type)
    if pa.types.is_struct(wanted):
        if not pa.types.is_struct(given) or [f.name for f in given] != [f.name for f in wanted]:
            return False
        return all(_reads_as(theirs.type, ours.type) for theirs, ours in zip(given, wanted, strict=True))
    if pa.types.is_large_string(wanted) and pa.types.is_string(given):
        return True
    if pa.types.is_large_binary(wanted) and pa.types.is_binary(given):
        return True
    return bool(given == wanted)
