"""JSON as Arrow parses it: many lines at once, many times faster than the codec, and never anything else than it.

What is understood here is understood by the codec in the same way. Whatever is odd, be it sound or not, is left to the
codec: then the answer is None. Arrow is stricter than the codec about types, and what it is laxer about is checked.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from everview.cdc.codec.sql_values import surely_right
from everview.cdc.schema import StreamSchema
from everview.cdc.times import flatten

# Words of the protocol: a column of such a name cannot be told from them by its name alone.
_WORDS = {"updates", "data", "time", "diff", "progress", "lower", "upper", "counts", "count", "schema"}
_BETWEEN = b"}\n{"  # where one line ends and the next begins, and nothing else: no message has this inside


class QuickJson:
    """Lines of streams of one schema."""

    def __init__(self, schema: StreamSchema) -> None:
        self._schema = schema
        self._declared = _declared(schema)
        self._right = [right for field in schema.data if (right := surely_right(field)) is not None]
        self._members = [json.dumps(name, ensure_ascii=False).encode() + b":" for name in schema.data.names]

    def updates(self, block: bytes) -> tuple[pa.StructArray, list[int]] | None:
        """The updates in whole lines, as `{data, time, diff}`, and the numbers of the lines that hold none."""
        if self._declared is None or not _line_by_line(block) or b"\\u0000" in block:
            return None
        try:
            block.decode()  # Arrow believes that all text is text
            column = self._parse(block, self._declared)
        except ValueError:  # as are all of Arrow's
            return None
        if len(column) != block.count(b"\n"):
            return None
        found = self._sound(column.flatten())
        if found is None or any(block.count(member) != len(found) for member in self._members):
            return None  # to Arrow a member that is missing is NULL
        others: list[int] = pc.indices_nonzero(column.is_null()).to_pylist()
        if block.count(b'"progress"') > len(others):
            return None  # perhaps beside updates
        return found, others

    def _parse(self, block: bytes, declared: pa.Schema) -> pa.ListArray:
        table = pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(block)),
            parse_options=pj.ParseOptions(explicit_schema=declared, unexpected_field_behavior="error"),
        )
        return table.column("updates").combine_chunks()

    def _sound(self, updates: pa.StructArray) -> pa.StructArray | None:
        """The updates with data of the right types, if all of them are sound."""
        data, times, diffs = (updates.field(name) for name in ("data", "time", "diff"))
        if updates.null_count or data.null_count or diffs.null_count or pc.any(pc.equal(diffs, 0)).as_py():
            return None
        if not self._are_times(times):
            return None
        columns = []
        for place, field in enumerate(self._schema.data):
            column = data.field(place)
            if column.null_count and not field.nullable:
                return None
            if pa.types.is_floating(field.type) and not pc.all(pc.is_finite(column)).as_py():
                return None  # in JSON these are text, and Arrow takes words that are not JSON
            if not self._right[place](column):
                return None
            try:
                columns.append(column if column.type.equals(field.type) else column.cast(field.type))
            except ValueError:
                return None
        rows = pa.StructArray.from_arrays(columns, fields=list(self._schema.data))
        return pa.StructArray.from_arrays([rows, times, diffs], names=["data", "time", "diff"])

    def _are_times(self, times: pa.Array) -> bool:
        if times.null_count:
            return False
        if not isinstance(self._schema.shape, int):
            lengths = pc.unique(times.value_lengths()).to_pylist()
            times = times.flatten()
            if lengths not in ([], [len(flatten(self._schema.shape))]) or times.null_count:
                return False
        return not len(times) or bool(pc.min(times).as_py() >= 0)


def _line_by_line(block: bytes) -> bool:
    """Whether each line looks like one object; Arrow's parser is given nothing else, for on some of it it dies."""
    if not block.startswith(b"{") or not block.endswith(b"}\n"):
        return False
    return block.count(b"\n") == block.count(_BETWEEN) + 1


def _declared(schema: StreamSchema) -> pa.Schema | None:
    """How Arrow is to read a line; None if it cannot read some column as the codec does."""
    if _WORDS & set(schema.data.names):
        return None
    fields = []
    for field in schema.data:
        dtype = _type_in_json(field.type)
        if dtype is None or surely_right(field) is None:
            return None
        fields.append(pa.field(field.name, dtype))
    time = pa.int64() if isinstance(schema.shape, int) else pa.list_(pa.int64())
    update = pa.struct([("data", pa.struct(fields)), ("time", time), ("diff", pa.int64())])
    times = pa.list_(time)
    count = pa.struct([("time", time), ("count", pa.int64())])
    progress = pa.struct([("lower", times), ("upper", times), ("counts", pa.list_(count))])
    return pa.schema([("updates", pa.list_(update)), ("progress", progress)])


def _type_in_json(dtype: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_boolean(dtype) or types.is_integer(dtype) or types.is_float64(dtype) or types.is_string(dtype):
        return dtype
    if types.is_decimal128(dtype) or types.is_date32(dtype) or types.is_timestamp(dtype):
        return pa.string()
    return None
