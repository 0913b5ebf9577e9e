"""The schema of a stream: the columns of its data and the order of its times, written down as an Avro schema.

Both codecs carry the same one: Avro files in their header, JSON files in their first line. A message is a union of an
array of updates `{data, time, diff}` and a progress record `{lower, upper, counts}`. Avro has no names for some
Arrow types and column names; there, attributes beside the Avro ones say what is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from everview.cdc.errors import SchemaDiffers
from everview.cdc.times import Wire
from everview.compute.functions.naming import named
from everview.compute.ir.types import SqlType, array_of, declared_type, numeric
from everview.timely.lattice import Time

SQL = b"sql"  # the attribute with the SQL type of a column, in Arrow as in Avro
_SQL_TYPES = named("bool int2 int4 int8 float4 float8 text bytea date timestamp timestamptz interval")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_PLAIN: list[tuple[pa.DataType, Any]] = [
    (pa.bool_(), "boolean"),
    (pa.int32(), "int"),
    (pa.int64(), "long"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.string(), "string"),
    (pa.binary(), "bytes"),
    (pa.date32(), {"type": "int", "logicalType": "date"}),
    (pa.timestamp("us"), {"type": "long", "logicalType": "local-timestamp-micros"}),
    (pa.timestamp("us", "UTC"), {"type": "long", "logicalType": "timestamp-micros"}),
    (pa.int8(), {"type": "int", "arrow": "int8"}),
    (pa.int16(), {"type": "int", "arrow": "int16"}),
]


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The columns of the data, and the least time: 0, or nested tuples of zeros for a product of orders."""

    data: pa.Schema
    shape: Time = 0

    def check(self, other: StreamSchema, where: str) -> None:
        """Raise SchemaDiffers unless the other has the same columns, in any order, and the same kind of times.

        Decimals may say another number of digits: whether each fits is seen when it is read.
        """
        if self.shape != other.shape:
            detail = f"times like {other.shape}, and should be like {self.shape}"
            raise SchemaDiffers(f"{where} has times of another order", detail=detail)
        ours, theirs = ({column.name: column for column in side.data} for side in (self, other))
        if ours.keys() != theirs.keys():
            detail = f"columns {', '.join(other.data.names)}; wanted {', '.join(self.data.names)}"
            raise SchemaDiffers(f"{where} has other columns", detail=detail)
        for name, column in ours.items():
            if not _alike(column.type, theirs[name].type):
                is_type, wanted = _type_name(theirs[name]), _type_name(column)
                raise SchemaDiffers(f"{where} has column {name} of type {is_type}; wanted {wanted}")


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_decimal128(one) and pa.types.is_decimal128(other):
        return bool(one.scale == other.scale)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _alike(one.value_type, other.value_type)
    return bool(one.equals(other))


def sql_type_for(dtype: pa.DataType) -> SqlType | None:
    if pa.types.is_list(dtype):
        element = sql_type_for(dtype.value_type)
        return None if element is None else array_of(element)
    if pa.types.is_decimal128(dtype):
        unconstrained = numeric()
        return unconstrained if dtype.scale == unconstrained.scale else numeric(dtype.precision, dtype.scale)
    return next((each for each in _SQL_TYPES if declared_type(each).equals(dtype)), None)


def _type_name(column: pa.Field) -> str:
    """The SQL type of a column in words; the Arrow type if SQL has no such type."""
    attribute = (column.metadata or {}).get(SQL)
    return attribute.decode() if attribute is not None else str(sql_type_for(column.type) or column.type)


def message_schema(stream: StreamSchema) -> list[dict[str, Any]]:
    time: Any = "long"
    if not isinstance(stream.shape, int):
        time = {"type": "array", "items": "long", "shape": _nested(stream.shape)}
    names = iter(range(1 << 30))
    update = {
        "type": "record",
        "name": "update",
        "fields": [
            {"name": "data", "type": _record("data", stream.data, names)},
            {"name": "time", "type": time},
            {"name": "diff", "type": "long"},
        ],
    }
    count = {
        "type": "record",
        "name": "count",
        "fields": [{"name": "time", "type": time}, {"name": "count", "type": "long"}],
    }
    progress = {
        "type": "record",
        "name": "progress",
        "fields": [
            {"name": "lower", "type": {"type": "array", "items": time}},
            {"name": "upper", "type": {"type": "array", "items": time}},
            {"name": "counts", "type": {"type": "array", "items": count}},
        ],
    }
    return [{"type": "array", "items": update}, progress]


def stream_schema(schema: Any) -> StreamSchema:
    """The stream that an Avro schema of messages describes, or SchemaDiffers."""
    try:
        arrays = [each for each in schema if isinstance(each, dict) and each.get("type") == "array"]
        if not arrays:
            raise ValueError("it has no array of updates")
        update = arrays[0]["items"]
        fields = {field["name"]: field["type"] for field in update["fields"]}
        if fields["diff"] != "long":
            raise ValueError("diffs are not of type long")
        time = fields["time"]
        shape = 0 if time in ("long", {"type": "long"}) else _tuples(time["shape"])
        return StreamSchema(pa.schema(_columns(fields["data"])), shape)
    except KeyError as error:
        raise SchemaDiffers(
            "not the schema of a change stream", detail=f'"{error.args[0]}" is missing', hint="see docs/cdc.md"
        ) from error
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as error:
        # What a file or a registry says may be anything: its parts may be of any kind.
        detail = str(error) if isinstance(error, ValueError) else "a part of it is not what stands there in one"
        raise SchemaDiffers("not the schema of a change stream", detail=detail, hint="see docs/cdc.md") from error


def _nested(shape: Time) -> Any:
    return shape if isinstance(shape, int) else [_nested(part) for part in shape]


def _tuples(shape: Wire | Any) -> Time:
    return 0 if isinstance(shape, int) else tuple(_tuples(part) for part in shape)


def _record(name: str, columns: Any, names: Any) -> dict[str, Any]:
    fields = []
    for place, column in enumerate(columns):
        kind = _avro(column.type, names)
        field: dict[str, Any] = {"name": column.name, "type": ["null", kind] if column.nullable else kind}
        if not _NAME.match(column.name):
            field |= {"name": f"_{place}", "column": column.name}
        if (sql := (column.metadata or {}).get(SQL)) is not None:
            field["sql"] = sql.decode()
        fields.append(field)
    return {"type": "record", "name": name, "fields": fields}


def _avro(dtype: pa.DataType, names: Any) -> Any:
    for plain, avro in _PLAIN:
        if plain.equals(dtype):
            return avro
    if pa.types.is_decimal128(dtype):
        return {"type": "bytes", "logicalType": "decimal", "precision": dtype.precision, "scale": dtype.scale}
    if pa.types.is_list(dtype):
        return {"type": "array", "items": ["null", _avro(dtype.value_type, names)]}
    if pa.types.is_struct(dtype):
        return _record(f"struct_{next(names)}", [dtype.field(i) for i in range(dtype.num_fields)], names)
    raise SchemaDiffers(f"data of type {dtype} cannot be written to a change stream", hint="cast the column")


def _columns(record: Any) -> list[pa.Field]:
    found = []
    for field in record["fields"]:
        column = _column(field.get("column", field["name"]), field["type"])
        sql = field.get("sql")
        found.append(column.with_metadata({SQL: sql.encode()}) if isinstance(sql, str) else column)
    names = [each.name for each in found]
    if twice := [each for each in names if names.count(each) > 1]:
        raise ValueError(f'column "{twice[0]}" comes twice')
    return found


def _column(name: str, avro: Any) -> pa.Field:
    nullable = isinstance(avro, list)
    if isinstance(avro, list):
        (avro,) = [each for each in avro if each != "null"]
    return pa.field(name, _arrow(avro), nullable)


def _arrow(avro: Any) -> pa.DataType:
    for plain, known in _PLAIN:
        if avro in (known, {"type": known}):
            return plain
    match avro:
        case {"type": "bytes", "logicalType": "decimal", "precision": int(precision)}:
            return pa.decimal128(precision, avro.get("scale", 0))
        case {"type": "array", "items": items}:
            return pa.list_(_column("item", items).type)
        case {"type": "record"}:
            return pa.struct(_columns(avro))
    raise ValueError(f"no column has type {avro!r}")
