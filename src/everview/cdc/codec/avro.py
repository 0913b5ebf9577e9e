"""Messages as Avro: a union of an array of updates and a progress record, alone or in container files."""

from __future__ import annotations

import io
import json
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pyarrow as pa

from everview.cdc.codec.container import (
    MARKER_BYTES,
    Block,
    CutOff,
    block_bytes,
    header_bytes,
    long_bytes,
    read_blocks,
    read_header,
)
from everview.cdc.codec.contract import Bad, Item, Partial, progress_json
from everview.cdc.codec.sql_values import sql_conversion
from everview.cdc.codec.values import wrong_text
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import InvalidStatement, InvalidUse, Undecodable
from everview.cdc.reader import check_progress
from everview.cdc.rows import NAN, Convert, Row
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.cdc.times import from_wire, frontier_from_wire, to_wire
from everview.compute.ir.infinite import Infinite, date_of, timestamp_of

try:
    import fastavro
except ImportError as missing:
    raise InvalidUse(
        "streams in Avro need the fastavro library", hint="install it: pip install 'everview[avro]'"
    ) from missing

_BLOCK_BYTES = 256 << 10
_DIGITS_MAX = 1000
# What fastavro raises over bytes that are not of the schema; it has no one kind for them.
_BROKEN = (ValueError, EOFError, IndexError, KeyError, TypeError, ArithmeticError, struct.error)


class AvroCodec:
    suffix = ".avro"

    def __init__(self, schema: StreamSchema, wanted: StreamSchema | None = None) -> None:
        """`wanted` are the columns to read into, if their decimals have fewer digits than the schema's."""
        self.schema = schema
        self._described = message_schema(schema)
        roomy = _with_room(self._described)
        self._parsed, self._numbers = _parsed(roomy), _parsed(_without_moments(roomy))
        # To write a union fastavro looks through all of a value for what it is, which takes as long as to write it.
        self._branches = [_parsed(branch) for branch in self._described]
        fields = self._described[0]["items"]["fields"][0]["type"]["fields"]
        self._names = [field["name"] for field in fields]
        self._columns = [AvroColumn((wanted or schema).data.field(name)) for name in schema.data.names]

    def encode(self, message: Message[Row]) -> bytes:
        branch = 1 if isinstance(message, Progress) else 0
        out = io.BytesIO()
        out.write(long_bytes(branch))
        fastavro.schemaless_writer(out, self._branches[branch], self._plain(message))
        return out.getvalue()

    def decode(self, data: bytes) -> Message[Row]:
        source = io.BytesIO(data)
        try:
            message = self._message(self._read(source))
            if source.read(1):
                raise ValueError("bytes are left over behind the message")
        except (*_BROKEN, InvalidStatement) as error:
            raise Undecodable("not a message of this stream", detail=_said(error)) from error
        return message

    def decoding(self, theirs: StreamSchema) -> Callable[[bytes], Message[Row]]:
        """A function that decodes messages written with another schema of the same columns."""
        if theirs == self.schema:
            return self.decode
        codec = AvroCodec(theirs, self.schema)
        order = [theirs.data.get_field_index(name) for name in self.schema.data.names]

        def read(data: bytes) -> Message[Row]:
            message = codec.decode(data)
            return _reordered(message, order) if isinstance(message, Updates) else message

        return read

    def encode_file(self, messages: Iterable[Message[Row]]) -> bytes:
        marker = secrets.token_bytes(MARKER_BYTES)
        pieces = [header_bytes(self._described, marker)]
        records: list[bytes] = []
        size = 0
        for record in map(self.encode, messages):
            records.append(record)
            size += len(record)
            if size >= _BLOCK_BYTES:
                pieces.append(block_bytes(records, marker))
                records, size = [], 0
        if records:
            pieces.append(block_bytes(records, marker))
        return b"".join(pieces)

    def decode_file(self, file: pa.NativeFile, where: str) -> Iterator[Item]:
        try:
            header = read_header(file)
        except CutOff:
            file.seek(0)
            yield Partial(0, file.read(1 << 20))
            return
        except ValueError as error:
            file.seek(0)
            yield Bad(0, file.read(1 << 20), _said(error))
            return
        theirs = stream_schema(header.schema)
        self.schema.check(theirs, where)
        codec = self if theirs == self.schema else AvroCodec(theirs, self.schema)
        order = [theirs.data.get_field_index(name) for name in self.schema.data.names]
        for block in read_blocks(file, header):
            if isinstance(block, Block):
                for item in codec._records(block):
                    yield item if codec is self or not isinstance(item, Updates) else _reordered(item, order)
            else:
                yield block

    def _records(self, block: Block) -> Iterator[Item]:
        source = io.BytesIO(block.data)
        for _ in range(block.records):
            start = source.tell()
            try:
                record = self._read(source)
            except _BROKEN as error:
                # Where the next record starts is not known, so the rest of the block goes with this one.
                yield Bad(block.position, block.data[start:], _said(error))
                return
            try:
                yield self._message(record)
            except (*_BROKEN, InvalidStatement) as error:
                yield Bad(block.position, block.data[start : source.tell()], _said(error))

    def _read(self, source: io.BytesIO) -> Any:
        """The next record. If fastavro cannot make a date or timestamp of a number, all of them stay numbers."""
        start = source.tell()
        try:
            return fastavro.schemaless_reader(source, self._parsed, None)
        except (ValueError, OverflowError):
            source.seek(start)
            return fastavro.schemaless_reader(source, self._numbers, None)

    def _plain(self, message: Message[Row]) -> Any:
        if isinstance(message, Progress):
            return progress_json(message)
        columns = list(zip(*(update[0] for update in message.updates), strict=True))
        plain = zip(*(each.encode(values) for each, values in zip(self._columns, columns, strict=False)), strict=True)
        names = self._names
        return [
            {"data": dict(zip(names, row, strict=True)), "time": to_wire(time), "diff": diff}
            for row, (_, time, diff) in zip(plain, message.updates, strict=True)
        ]

    def _message(self, value: Any) -> Message[Row]:
        shape = self.schema.shape
        if isinstance(value, list):
            data = list(map(itemgetter("data"), value))
            diffs = list(map(itemgetter("diff"), value))
            if 0 in diffs:
                raise ValueError("a diff is 0")
            columns = [
                each.decode(list(map(itemgetter(name), data)))
                for name, each in zip(self._names, self._columns, strict=True)
            ]
            times = [from_wire(update["time"], shape) for update in value]
            rows: Iterable[Row] = zip(*columns, strict=True) if columns else [()] * len(value)
            return Updates(list(zip(rows, times, diffs, strict=True)))
        counts = ((from_wire(each["time"], shape), each["count"]) for each in value["counts"])
        lower, upper = (frontier_from_wire(value[name], shape) for name in ("lower", "upper"))
        pairs = tuple(counts)
        check_progress(Progress(lower, upper, pairs), shape)
        return Progress(lower, upper, tuple(pair for pair in pairs if pair[1]))


class AvroColumn:
    """The values of one column; fastavro converts all but structs, lists and what must be one value for equality."""

    def __init__(self, field: pa.Field) -> None:
        self._name, self._is_text = field.name, pa.types.is_string(field.type)
        self._in, self._out = _conversion(field.type)
        self._sql = sql_conversion(field)

    def encode(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values as fastavro takes them."""
        convert = self._out
        return values if convert is None else [None if v is None else convert(v) for v in values]

    def decode(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values that fastavro gives as these; raises ValueError."""
        if self._is_text and (wrong := wrong_text(values)):
            raise ValueError(f"column {self._name} has {wrong}")
        for convert in (self._in, self._sql):
            if convert is not None:
                values = [None if v is None else convert(v) for v in values]
        return values


def _conversion(dtype: pa.DataType) -> tuple[Convert | None, Convert | None]:
    if pa.types.is_floating(dtype):
        return (lambda value: NAN if value != value else value), None  # noqa: PLR0124 - the quickest test for NaN
    if pa.types.is_timestamp(dtype) and dtype.tz is not None:
        return (
            lambda value: timestamp_of(value, zoned=True) if type(value) is int else value.astimezone(UTC)
        ), _moment_out
    if pa.types.is_timestamp(dtype):
        return (lambda value: timestamp_of(value, zoned=False) if type(value) is int else value), _moment_out
    if pa.types.is_date32(dtype):
        return (lambda value: date_of(value) if type(value) is int else value), (
            lambda value: value.days if isinstance(value, Infinite) else value
        )
    if pa.types.is_decimal128(dtype):
        return _fitting(dtype), None
    if pa.types.is_list(dtype):
        item = AvroColumn(pa.field("item", dtype.value_type))
        return (lambda values: tuple(item.decode(values))), (lambda values: list(item.encode(values)))
    if pa.types.is_struct(dtype):
        fields = message_schema(StreamSchema(pa.schema(list(dtype))))[0]["items"]["fields"][0]["type"]["fields"]
        parts = [(each["name"], AvroColumn(dtype.field(i))) for i, each in enumerate(fields)]
        return (
            lambda value: tuple(part.decode([value[name]])[0] for name, part in parts),
            lambda value: {name: part.encode([v])[0] for (name, part), v in zip(parts, value, strict=True)},
        )
    return None, None


def _moment_out(value: Any) -> Any:
    return value.micros if isinstance(value, Infinite) else value


def _fitting(dtype: pa.DataType) -> Convert:
    limit = Decimal(10) ** (dtype.precision - dtype.scale)

    def read(value: Decimal) -> Decimal:
        if not -limit < value < limit:
            raise ValueError(f"{value} does not fit")
        return value

    return read


def _with_room(described: Any) -> Any:
    """The schema with as many digits for decimals as can be: fastavro rounds to the digits that are declared."""
    if isinstance(described, list):
        return [_with_room(each) for each in described]
    if not isinstance(described, dict):
        return described
    found = {name: _with_room(value) for name, value in described.items()}
    return found | {"precision": _DIGITS_MAX} if found.get("logicalType") == "decimal" else found


def _without_moments(described: Any) -> Any:
    if isinstance(described, list):
        return [_without_moments(each) for each in described]
    if not isinstance(described, dict):
        return described
    if described.get("logicalType") in ("date", "timestamp-micros", "local-timestamp-micros"):
        return described["type"]
    return {name: _without_moments(value) for name, value in described.items()}


def _parsed(described: Any) -> Any:
    return fastavro.parse_schema(json.loads(json.dumps(described)))


def _reordered(updates: Updates[Row], order: list[int]) -> Updates[Row]:
    return Updates([(tuple(row[place] for place in order), time, diff) for row, time, diff in updates.updates])


def header_of(file: pa.NativeFile) -> StreamSchema | None:
    try:
        return stream_schema(read_header(file).schema)
    except (CutOff, ValueError):
        return None


def _said(error: Exception) -> str:
    return (str(error) or type(error).__name__).split("\n")[0]
