"""Arrow types and frontiers in Spark's words."""

from __future__ import annotations

import pyarrow as pa

from everview.cdc.contract import Frontier
from everview.cdc.errors import SchemaDiffers
from everview.cdc.times import flatten
from everview.quoting import spark_identifier
from everview.timely.lattice import Time

_PLAIN = [
    (pa.bool_(), "boolean"),
    (pa.int8(), "tinyint"),
    (pa.int16(), "smallint"),
    (pa.int32(), "int"),
    (pa.int64(), "bigint"),
    (pa.float32(), "float"),
    (pa.float64(), "double"),
    (pa.string(), "string"),
    (pa.binary(), "binary"),
    (pa.date32(), "date"),
    (pa.timestamp("us"), "timestamp_ntz"),
    (pa.timestamp("us", "UTC"), "timestamp"),
]


def spark_type(dtype: pa.DataType) -> str:
    """The Spark type that holds the same values."""
    for plain, name in _PLAIN:
        if plain.equals(dtype):
            return name
    if pa.types.is_decimal128(dtype):
        return f"decimal({dtype.precision},{dtype.scale})"
    if pa.types.is_list(dtype):
        return f"array<{spark_type(dtype.value_type)}>"
    if pa.types.is_struct(dtype):
        fields = (dtype.field(i) for i in range(dtype.num_fields))
        return f"struct<{', '.join(f'{spark_identifier(field.name)}: {spark_type(field.type)}' for field in fields)}>"
    raise SchemaDiffers(f"data of type {dtype} cannot be read by spark", hint="cast the column")


def time_type(shape: Time) -> str:
    """The type of times."""
    return "bigint" if isinstance(shape, int) else "array<bigint>"


def beyond(value: str, frontier: Frontier) -> str:
    """The condition that a time is beyond the frontier."""
    parts = []
    for time in frontier:
        if isinstance(time, int):
            parts.append(f"{value} >= {time}L")
        else:
            each = (f"{value}[{place}] >= {number}L" for place, number in enumerate(flatten(time)))
            parts.append(f"({' AND '.join(each)})")
    return f"({' OR '.join(parts)})" if parts else "false"
