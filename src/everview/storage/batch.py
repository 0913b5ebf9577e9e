"""A batch: an immutable set of updates, inline as Arrow when small, else as sorted Parquet parts.

`[lower, upper)` is the interval the batch was written for and `since` the time its updates were advanced to. A part
is a Parquet file with the columns `_hash, _time, _diff` and the data, sorted by hash, with its statistics and checksum
kept here: what is not needed is never opened, and what was damaged is never believed.
"""

from __future__ import annotations

import json
import struct
from dataclasses import astuple, dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import xxhash

from everview.storage.errors import Corruption
from everview.timely.consolidate import DIFF, HASH, TIME
from everview.timely.hashing import I64

INLINE_BYTES_MAX = 256 << 10
UNKNOWN = -1  # sums of diffs in what older processes wrote
SUM_MAX = 2**63 - 1  # no row's diffs sum to so much
UNCOMPACTED = -1  # the `since` of a batch that is as its writer left it

_LENGTH = struct.Struct("<I")
Sums: TypeAlias = tuple[int, int]  # of the positive diffs, and of the negative ones without their sign


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file of a batch."""

    key: str
    rows: int
    size_bytes: int
    checksum: str
    hash_min: int
    hash_max: int
    time_min: int
    time_max: int
    retractions: int
    added: int = UNKNOWN  # the sum of its positive diffs, at most `SUM_MAX`
    removed: int = UNKNOWN  # and of its negative ones, without their sign

    @property
    def sums(self) -> Sums:
        """The sums of positive and of negative diffs. Older environments lack them: their diffs are 1 or -1."""
        if self.added == UNKNOWN:
            return self.rows - self.retractions, self.retractions
        return self.added, self.removed


@dataclass(frozen=True, slots=True)
class Batch:
    """The description of a batch; `payload` is there for an inline one."""

    number: int
    lower: int
    upper: int
    since: int
    rows: int
    size_bytes: int
    time_min: int
    time_max: int
    retractions: int
    parts: tuple[Part, ...] = ()
    payload: bytes | None = None
    columns: int = 0  # data columns in the payload; 0: as many as its shard was created with
    added: int = UNKNOWN  # of an inline one, as in `Part`
    removed: int = UNKNOWN

    @property
    def inline(self) -> bool:
        """Whether the updates are in the metadata itself."""
        return not self.parts

    @property
    def sums(self) -> Sums:
        if self.parts:
            return sum(part.sums[0] for part in self.parts), sum(part.sums[1] for part in self.parts)
        if self.added == UNKNOWN:
            return self.rows - self.retractions, self.retractions
        return self.added, self.removed


def sums_of(diffs: I64) -> Sums:
    """The sum of the positive diffs, and of the negative ones without sign; each at most `SUM_MAX`."""
    low, high = int(diffs.min()), int(diffs.max())
    if low == 1 == high:
        return len(diffs), 0
    if max(high, -low) * len(diffs) < SUM_MAX:
        total, added = int(diffs.sum()), int(diffs[diffs > 0].sum())
        return added, added - total
    values = diffs.tolist()
    added, removed = sum(diff for diff in values if diff > 0), -sum(diff for diff in values if diff < 0)
    return min(added, SUM_MAX), min(removed, SUM_MAX)


def update_schema(data: pa.Schema) -> pa.Schema:
    """Columns of updates at rest in an inline batch."""
    return pa.schema([pa.field(TIME, pa.int64(), False), pa.field(DIFF, pa.int64(), False), *data])


def part_schema(data: pa.Schema) -> pa.Schema:
    """Columns of a Parquet part."""
    return pa.schema([pa.field(HASH, pa.int64(), False), *update_schema(data)])


def inline_batch(updates: pa.RecordBatch, lower: int, upper: int, since: int) -> Batch:
    """A batch that holds the updates itself: at least one, with the columns of `update_schema`."""
    payload = updates.serialize().to_pybytes()
    if updates.num_rows <= 16:  # for a handful of numbers Python is quicker than numpy
        times, diffs = updates.column(0).to_pylist(), updates.column(1).to_pylist()
        bounds = min(times), max(times), sum(diff < 0 for diff in diffs)
        sums = sum(diff for diff in diffs if diff > 0), -sum(diff for diff in diffs if diff < 0)
    else:
        time_column, diff_column = updates.column(0).to_numpy(), updates.column(1).to_numpy()
        bounds = int(time_column.min()), int(time_column.max()), int(np.count_nonzero(diff_column < 0))
        sums = sums_of(diff_column)
    columns = updates.num_columns - 2
    return Batch(-1, lower, upper, since, updates.num_rows, len(payload), *bounds, (), payload, columns, *sums)


def part_batch(parts: tuple[Part, ...], lower: int, upper: int, since: int) -> Batch:
    return Batch(
        number=-1,
        lower=lower,
        upper=upper,
        since=since,
        rows=sum(part.rows for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        time_min=min(part.time_min for part in parts),
        time_max=max(part.time_max for part in parts),
        retractions=sum(part.retractions for part in parts),
        parts=parts,
    )


def one_record_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    if isinstance(table, pa.RecordBatch):
        return table
    batches = table.to_batches()
    if len(batches) == 1:
        return batches[0]
    return table.combine_chunks().to_batches()[0] if batches else pa.RecordBatch.from_pylist([], table.schema)


def decode_inline(batch: Batch, schema: pa.Schema, created: int, where: str) -> pa.Table:
    """The updates of an inline batch, in the columns of `schema`.

    The batch may be older than some of the columns; `created` is how many data columns the shard had at first.
    """
    width = 2 + (batch.columns or created)
    written = schema if width == len(schema) else pa.schema([schema.field(index) for index in range(width)])
    try:
        record_batch = pa.ipc.read_record_batch(pa.py_buffer(batch.payload), written)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Corruption(f"{where}, batch {batch.number} does not decode", detail=str(error)) from error
    return as_declared(pa.Table.from_batches([record_batch]), schema)


def as_declared(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly these columns.

    Columns that were added after it was written are NULL. Writers other than ours declare more columns NOT NULL than
    we do.
    """
    if table.schema.equals(schema):
        return table
    given = set(table.column_names)
    columns = []
    for field in schema:
        if field.name in given:
            column = table.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        elif field.nullable:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            raise pa.ArrowInvalid(f"there is no column {field.name}")
    return pa.Table.from_arrays(columns, schema=schema)


def widens(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether the types are the same, except that given decimals may have fewer digits."""
    if pa.types.is_list(given) and pa.types.is_list(wanted):
        return widens(given.value_type, wanted.value_type)
    if pa.types.is_decimal128(given) and pa.types.is_decimal128(wanted):
        return bool(given.scale == wanted.scale and given.precision <= wanted.precision)
    return bool(given == wanted)


def encode_batch(batch: Batch) -> bytes:
    """The batch as a value for consensus: its description, a checksum, and what is inline."""
    payload = batch.payload or b""
    numbers = [batch.lower, batch.upper, batch.since, batch.rows, batch.size_bytes]
    numbers += [batch.time_min, batch.time_max, batch.retractions]
    parts = [astuple(part) for part in batch.parts]
    tail = [batch.columns, batch.added, batch.removed]
    head = json.dumps([numbers, parts, *tail], separators=(",", ":")).encode()
    body = _LENGTH.pack(len(head)) + head + payload
    return xxhash.xxh3_64_digest(body) + body


def decode_batch(number: int, value: bytes, where: str) -> Batch:
    """The batch that `encode_batch` wrote, or `Corruption`."""
    checksum, body = value[:8], value[8:]
    if len(body) < _LENGTH.size or xxhash.xxh3_64_digest(body) != checksum:
        raise Corruption(f"{where}, batch {number} is damaged", detail="its checksum does not match its bytes")
    (length,) = _LENGTH.unpack_from(body)
    numbers, parts, *tail = json.loads(body[_LENGTH.size : _LENGTH.size + length])
    payload = None if parts else body[_LENGTH.size + length :]
    fields = (number, *numbers, tuple(Part(*part) for part in parts), payload, *tail)
    return Batch(*fields)
