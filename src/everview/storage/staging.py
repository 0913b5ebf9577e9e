"""Staging: turning a table of updates into a batch that a commit can take, however large.

Small batches are stored inside the commit. Large ones are first sorted, consolidated and written as Parquet parts, by
several threads over separate ranges of hashes. Parts to which no commit refers are removed as garbage.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from everview.storage.batch import (
    INLINE_BYTES_MAX,
    SUM_MAX,
    Batch,
    Part,
    inline_batch,
    one_record_batch,
    part_batch,
    sums_of,
    widens,
)
from everview.storage.blob.contract import Blob
from everview.storage.contract import GlobalId
from everview.storage.errors import DiffOverflow, SchemaMismatch
from everview.storage.parts import PartWriter
from everview.storage.shard import Spec
from everview.timely.consolidate import DIFF, HASH, RESERVED, consolidate, with_column, with_hash
from everview.timely.hashing import hash_rows, hashable

_ROWS_PER_THREAD = 1 << 19
_PIECES_BYTES = 32 << 20  # of pieces that are written together
_SURELY_SMALL_ROWS = 64  # encoding so few to see their size costs less than asking for it


@dataclass(slots=True)
class Staged:
    """Updates that can be committed to one shard, once."""

    id: GlobalId
    batch: Batch | None
    used: bool = field(default=False, compare=False)


class Stager:
    """Writes the parts of one environment, under names that carry the epoch of their writer."""

    def __init__(self, blob: Blob, scratch: Path, epoch: int) -> None:
        self._blob = blob
        self._scratch = scratch
        self._epoch = epoch
        self._numbers = itertools.count()
        self.threads = min(4, os.cpu_count() or 1)

    def writer(self, id: GlobalId, spec: Spec) -> PartWriter:
        return PartWriter(self._blob, spec.schema, lambda: f"{self.new_folder(id)}.parquet", self._scratch)

    def new_folder(self, id: GlobalId) -> str:
        """A new name for parts: by the epoch in it a later process tells leftovers from work in progress."""
        return f"parts/{id}/{self._epoch:08d}-{next(self._numbers):08d}"

    def stage(self, id: GlobalId, spec: Spec, updates: pa.Table | pa.RecordBatch | None) -> Staged:
        """Prepare `updates` for a commit; the commit says for which interval."""
        if updates is None or updates.num_rows == 0:
            return Staged(id, None)
        updates = conformed(updates, spec)
        check_sums(id, updates)
        if updates.num_rows <= _SURELY_SMALL_ROWS or updates.nbytes <= INLINE_BYTES_MAX:
            batch = inline_batch(one_record_batch(updates), 0, 0, 0)
            if batch.size_bytes <= INLINE_BYTES_MAX:
                return Staged(id, batch)
        parts = self._write(id, spec, _as_table(updates))
        return Staged(id, part_batch(parts, 0, 0, 0) if parts else None)

    def stage_pieces(self, id: GlobalId, spec: Spec, pieces: Iterable[pa.Table]) -> Staged:
        """Prepare updates that come in pieces, of which few are in memory at a time."""
        parts: list[Part] = []
        pending: list[pa.Table | pa.RecordBatch] = []
        try:
            for piece in pieces:
                if not piece.num_rows:
                    continue
                check_sums(id, piece)
                pending.append(conformed(piece, spec))
                if sum(each.nbytes for each in pending) >= _PIECES_BYTES:
                    parts += self._write(id, spec, _together(pending))
                    pending = []
            if not parts:
                return self.stage(id, spec, _together(pending) if pending else None)
            parts += self._write(id, spec, _together(pending)) if pending else ()
            return Staged(id, part_batch(tuple(parts), 0, 0, 0))
        except BaseException:
            for part in parts:
                self._blob.delete(part.key)
            raise

    def discard(self, staged: Staged) -> None:
        """Remove parts that will not be committed."""
        for part in staged.batch.parts if staged.batch else ():
            self._blob.delete(part.key)

    def _write(self, id: GlobalId, spec: Spec, table: pa.Table) -> tuple[Part, ...]:
        ranges = max(1, min(self.threads, table.num_rows // _ROWS_PER_THREAD))
        table = table.combine_chunks()
        if ranges == 1:
            return self._write_range(id, spec, with_hash(table, spec.key), None)
        span = 2**64 // ranges
        with ThreadPoolExecutor(ranges, thread_name_prefix="stage") as pool:
            step = -(-table.num_rows // ranges)
            columns = [table.column(name) for name in spec.key]
            slices = ([c.slice(at, step) for c in columns] for at in range(0, table.num_rows, step))
            hashes = np.concatenate(list(pool.map(lambda piece: hash_rows(piece, len(piece[0])), slices)))
            table = with_column(table, HASH, hashes)
            jobs = []
            for number in range(ranges):
                inside = hashes >= -(2**63) + number * span
                if number + 1 < ranges:
                    inside &= hashes < -(2**63) + (number + 1) * span
                jobs.append(pool.submit(self._write_range, id, spec, table, np.flatnonzero(inside)))
            failures = [error for job in jobs if (error := job.exception())]
            parts = tuple(part for job in jobs if not job.exception() for part in job.result())
        if failures:
            for part in parts:
                self._blob.delete(part.key)
            raise failures[0]
        return parts

    def _write_range(
        self, id: GlobalId, spec: Spec, table: pa.Table, rows: np.ndarray[tuple[int], np.dtype[np.intp]] | None
    ) -> tuple[Part, ...]:
        writer = self.writer(id, spec)
        try:
            writer.write(consolidate(table, spec.key, rows))
            return writer.finish()
        except BaseException:
            writer.abandon()
            raise


def _together(pieces: Iterable[pa.Table | pa.RecordBatch]) -> pa.Table:
    return pa.concat_tables(map(_as_table, pieces))


def _as_table(updates: pa.Table | pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([updates]) if isinstance(updates, pa.RecordBatch) else updates


def check_sums(id: GlobalId, updates: pa.Table | pa.RecordBatch) -> None:
    """Raise if the diffs of these updates alone might not fit 64 bits for one row."""
    if max(sums_of(updates.column(DIFF).to_numpy())) >= SUM_MAX:
        hint = "write rows with smaller diffs"
        raise DiffOverflow(f"the diffs of a row of {id} might not sum to 64 bits", hint=hint)


def checked_schema(schema: pa.Schema, key: tuple[str, ...]) -> None:
    """Raise `SchemaMismatch` unless collections of this schema can be stored, hashed and read by every engine."""
    names = schema.names
    if len(set(names)) != len(names):
        raise SchemaMismatch("two columns have the same name", detail=", ".join(names))
    if reserved := [name for name in names if name in RESERVED]:
        raise SchemaMismatch(f"column name {reserved[0]} is reserved", hint="rename the column")
    for column in schema:
        if not hashable(column.type):
            raise SchemaMismatch(
                f"column {column.name} has type {column.type}, which cannot be stored",
                hint="use booleans, signed integers, floats, decimal128, strings, binary, date32, timestamps in "
                "microseconds without zone or in UTC, and lists and structs of these",
            )
    if not names:
        raise SchemaMismatch("a collection needs at least one column")
    if unknown := [name for name in key if name not in names]:
        raise SchemaMismatch(f"key column {unknown[0]} is not a column", detail=f"columns: {', '.join(names)}")


def extended_spec(id: GlobalId, spec: Spec, schema: pa.Schema) -> Spec:
    """The spec with these columns, the same one if it has them already; or `SchemaMismatch`."""
    schema = schema.remove_metadata()
    had = len(spec.schema)
    lines = [
        f"column {number + 1} is {old.name} {old.type}, and would be {new.name} {new.type}"
        for number, (old, new) in enumerate(zip(spec.schema, schema, strict=False))
        if (old.name, old.type, old.nullable) != (new.name, new.type, new.nullable)
    ]
    lines += [f"column {name} is missing" for name in spec.schema.names[len(schema) :]]
    lines += [f"column {new.name} is new, and could not be NULL" for new in list(schema)[had:] if not new.nullable]
    if lines:
        raise SchemaMismatch(
            f"these are not the columns of {id} and more",
            detail="\n".join(lines),
            hint="columns that can be NULL may be added at the end",
        )
    if len(schema) == had:
        return spec
    extended = spec.extended(schema)
    checked_schema(schema, extended.key)
    return extended


def conformed(updates: pa.Table | pa.RecordBatch, spec: Spec) -> pa.Table | pa.RecordBatch:
    """The updates with exactly the columns at rest, or `SchemaMismatch`; columns added later may be left out.

    Decimals may have fewer digits than those at rest: collections of earlier versions have 38 everywhere.
    """
    wanted = spec.at_rest
    if not updates.schema.equals(wanted):
        names = [name for name in updates.schema.names if name != HASH]
        needed = wanted.names[: 2 + spec.created]
        if len(set(names)) != len(names) or not set(needed) <= set(names) <= set(wanted.names):
            detail = f"given {', '.join(names)}; wanted {', '.join(wanted.names)}"
            raise SchemaMismatch("updates do not have the collection's columns", detail=detail)
        columns = []
        for column in wanted:
            given = updates.column(column.name) if column.name in names else pa.nulls(updates.num_rows, column.type)
            if given.type != column.type:
                if not widens(given.type, column.type):
                    raise SchemaMismatch(f"column {column.name} is {given.type}, and should be {column.type}")
                given = given.cast(column.type)
            columns.append(given)
        updates = type(updates).from_arrays(columns, schema=wanted)
    for index in spec.required:
        if updates.column(index).null_count:
            raise SchemaMismatch(f"column {wanted.field(index).name} has NULLs and must not")
    return updates
