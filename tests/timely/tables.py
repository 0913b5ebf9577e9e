"""Random values, columns and tables of updates of every supported type, and what updates mean in plain Python.

Columns are built with arbitrary content under their NULLs, and can be cut into chunks that are slices of something
longer: whoever reads buffers must respect validity and offsets at every depth.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from everview.timely.consolidate import DIFF, TIME, data_names

SCALARS: list[pa.DataType] = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.decimal128(18, 0),
    pa.decimal128(19, 5),
    pa.decimal128(38, 10),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
]
_PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
NESTED: list[pa.DataType] = [
    pa.list_(pa.int64()),
    pa.list_(pa.float64()),
    pa.list_(pa.string()),
    pa.list_(pa.decimal128(38, 0)),
    pa.list_(pa.list_(pa.bool_())),
    pa.list_(_PAIR),
    _PAIR,
    pa.struct([("d", pa.float32()), ("inner", _PAIR), ("l", pa.list_(pa.timestamp("us")))]),
    pa.struct([("l", pa.list_(pa.struct([("b", pa.binary()), ("l", pa.list_(pa.int8()))])))]),
]
TYPES = SCALARS + NESTED

_FLOATS = [0.0, -0.0, 1.0, -1.5, math.nan, math.inf, -math.inf, 5e-324, 1e308]
_FIELDS = "abcdefgh"


def value(rng: random.Random, dtype: pa.DataType, nulls: float = 0.15) -> Any:
    """A value in the form that `pa.array` takes, dates and timestamps as integers: NULLs, edges, and anything."""
    if rng.random() < nulls:
        return None
    if pa.types.is_list(dtype):
        return [value(rng, dtype.value_type, nulls) for _ in range(rng.choice([0, 1, 1, 2, 3, 5]))]
    if pa.types.is_struct(dtype):
        return {dtype.field(i).name: value(rng, dtype.field(i).type, nulls) for i in range(dtype.num_fields)}
    if pa.types.is_boolean(dtype):
        return rng.random() < 0.5
    if pa.types.is_floating(dtype):
        number = rng.choice([*_FLOATS, rng.uniform(-1e6, 1e6)])
        with np.errstate(over="ignore"):
            return float(np.float32(number)) if pa.types.is_float32(dtype) else number
    if pa.types.is_decimal(dtype):
        return _decimal(_integer(rng, 10**dtype.precision - 1), dtype.scale)
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        return "".join(rng.choices("ab \0é€𝄞", k=_length(rng)))
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return rng.randbytes(_length(rng))
    # Dates and timestamps are of the years 1 to 9999, or infinite; integers keep all their range.
    limits = {"date32[day]": 700_000, "timestamp[us]": 62 * 10**15, "timestamp[us, tz=UTC]": 62 * 10**15}
    most = 2 ** (dtype.bit_width - 1) - 1
    if str(dtype) in limits and rng.random() < 0.1:
        return rng.choice([most, -most - 1])
    return _integer(rng, limits.get(str(dtype), most))


def column(rng: random.Random, dtype: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """The values as an array, with arbitrary content under every NULL."""
    filled = [value(rng, dtype, nulls=0) if item is None else item for item in values]
    children = None
    if pa.types.is_list(dtype):
        items = column(rng, dtype.value_type, [item for row in filled for item in row])
        offsets = np.cumsum([0, *map(len, filled)], dtype=np.int32)
        buffers, children = [pa.py_buffer(offsets)], [items]
    elif pa.types.is_struct(dtype):
        fields = [dtype.field(i) for i in range(dtype.num_fields)]
        children = [column(rng, field.type, [row[field.name] for row in filled]) for field in fields]
        buffers = []
    else:
        buffers = pa.array(filled, dtype).buffers()[1:]
    valid = np.packbits(np.array([item is not None for item in values], dtype=bool), bitorder="little")
    return pa.Array.from_buffers(dtype, len(values), [pa.py_buffer(valid), *buffers], children=children)


def cut(rng: random.Random, whole: pa.Array) -> pa.ChunkedArray:
    """The same values in chunks that are slices of longer arrays."""
    padding = column(rng, whole.type, [value(rng, whole.type) for _ in range(rng.randrange(12))])
    bounds = sorted([0, len(whole), *(rng.randint(0, len(whole)) for _ in range(rng.randrange(4)))])
    chunks = []
    for start, stop in itertools.pairwise(bounds):
        longer = pa.concat_arrays([padding, whole.slice(start, stop - start), padding])
        chunks.append(longer.slice(len(padding), stop - start))
    return pa.chunked_array(chunks, whole.type)


def row(rng: random.Random, dtypes: Sequence[pa.DataType]) -> tuple[Any, ...]:
    return tuple(value(rng, dtype) for dtype in dtypes)


def table(rng: random.Random, dtypes: Sequence[pa.DataType], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows as a table with columns a, b, ..., each cut into chunks in its own way."""
    columns = [cut(rng, column(rng, dtype, [row[i] for row in rows])) for i, dtype in enumerate(dtypes)]
    return pa.table(columns, names=list(_FIELDS[: len(dtypes)]))


def updates(
    rng: random.Random,
    dtypes: Sequence[pa.DataType],
    rows: int,
    *,
    distinct: int = 4,
    times: Sequence[int] = (0, 1, 2, 7),
    diffs: Sequence[int] = (-2, -1, -1, 0, 1, 1, 3),
) -> pa.Table:
    """Random updates over a few distinct rows, so that many of them meet."""
    pool = [row(rng, dtypes) for _ in range(distinct)]
    data = table(rng, dtypes, [_disguised(rng, rng.choice(pool)) for _ in range(rows)])
    return with_updates(rng, data, [rng.choice(times) for _ in range(rows)], [rng.choice(diffs) for _ in range(rows)])


def with_updates(rng: random.Random, data: pa.Table, times: Sequence[int], diffs: Sequence[int]) -> pa.Table:
    """The table with the columns of updates."""
    columns = [*data.columns, *(cut(rng, pa.array(numbers, pa.int64())) for numbers in (times, diffs))]
    fields = [pa.field(name, pa.int64(), nullable=False) for name in (TIME, DIFF)]
    return pa.table(columns, schema=pa.schema([*data.schema, *fields]))


def plain_rows(data: pa.Table, names: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    """The rows as hashable Python values that are equal exactly when the rows are the same."""
    columns = [data.column(name) for name in (data_names(data) if names is None else names)]
    values = [map(plain, column.cast(_plain_type(column.type)).to_pylist()) for column in columns]
    return list(zip(*values, strict=True)) if columns else [()] * data.num_rows


def plain(item: Any) -> Any:
    """One value so: every NaN is the same, -0.0 is 0.0, and lists and structs are tuples."""
    if isinstance(item, list):
        return tuple(map(plain, item))
    if isinstance(item, dict):
        return tuple((name, plain(field)) for name, field in item.items())
    if isinstance(item, float):
        return "NaN" if math.isnan(item) else item + 0.0
    return item


def meaning(updates: pa.Table) -> dict[tuple[tuple[Any, ...], int], int]:
    """What updates say, from (row, time) to the change of the row's multiplicity at the time."""
    sums: Counter[tuple[tuple[Any, ...], int]] = Counter()
    times, diffs = updates.column(TIME).to_pylist(), updates.column(DIFF).to_pylist()
    for row, time, diff in zip(plain_rows(updates), times, diffs, strict=True):
        sums[row, time] += diff
    return {update: diff for update, diff in sums.items() if diff}


def contents(updates: pa.Table, time: int) -> dict[tuple[Any, ...], int]:
    """The rows that are there at a time, with their multiplicities."""
    sums: Counter[tuple[Any, ...]] = Counter()
    for (row, at), diff in meaning(updates).items():
        if at <= time:
            sums[row] += diff
    return {row: count for row, count in sums.items() if count}


def _integer(rng: random.Random, greatest: int) -> int:
    """Small ones, powers of two and their neighbours, the ends of the range, and anything."""
    power = 2 ** rng.randrange(greatest.bit_length())
    near = rng.choice([rng.randint(0, 3), power - 1, power, power + 1, greatest, rng.randint(0, greatest)])
    return rng.choice([1, -1]) * min(near, greatest)


def _decimal(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _length(rng: random.Random) -> int:
    return rng.choice([rng.randrange(9), rng.randrange(40), rng.choice([31, 32, 33, 63, 64, 100])])


def _disguised(rng: random.Random, row: Any) -> Any:
    """The same row in another guise: zeros change their signs."""
    if isinstance(row, tuple):
        return tuple(_disguised(rng, item) for item in row)
    if isinstance(row, list):
        return [_disguised(rng, item) for item in row]
    if isinstance(row, dict):
        return {name: _disguised(rng, item) for name, item in row.items()}
    if isinstance(row, float) and row == 0.0:
        return rng.choice([0.0, -0.0])
    return row


def _plain_type(dtype: pa.DataType) -> pa.DataType:
    """The type with integers for dates and timestamps, which Python cannot hold all of."""
    if pa.types.is_list(dtype):
        return pa.list_(_plain_type(dtype.value_type))
    if pa.types.is_struct(dtype):
        return pa.struct([(dtype.field(i).name, _plain_type(dtype.field(i).type)) for i in range(dtype.num_fields)])
    if pa.types.is_timestamp(dtype):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(dtype) else dtype


def odd_nans(dtype: pa.DataType) -> pa.Array:
    """NaNs of every kind: quiet and signalling, of both signs, with and without a payload."""
    patterns = [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF]
    if pa.types.is_float32(dtype):
        raw = struct.pack("<5I", *patterns)
    else:
        raw = struct.pack("<5Q", *(((p & 0x80000000) << 32) | 0x7FF << 52 | (p & 0x7FFFFF) << 29 for p in patterns))
    return pa.Array.from_buffers(dtype, len(patterns), [None, pa.py_buffer(raw)])
