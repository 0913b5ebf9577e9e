"""What Spark calls Arrow's types and frontiers, what it must be told of a data source, and what it fails of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.cdc.contract import Frontier
from everview.cdc.errors import SchemaDiffers, TransportFailed
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


if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSource

_NO_PACKAGE = "No module named 'everview'"


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """While inside, failures of Spark are TransportFailed."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error).strip()
        hint = None
        if _NO_PACKAGE in text:
            hint = "spark's python must have everview: set PYSPARK_PYTHON to one that has before spark starts"
        detail = _NO_PACKAGE.lower() if hint else text.split("\n", 1)[0]
        raise TransportFailed(f"spark failed while {doing}", detail=detail, hint=hint) from error


def register(session: SparkSession, source: type[DataSource]) -> None:
    """Make a data source known to a session, which becomes the one of this thread: Spark asks that one."""
    session.dataSource.register(source)
    session.createDataFrame([], "nothing int")  # whoever makes a DataFrame of local rows becomes the active session
