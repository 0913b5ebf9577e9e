"""Literals of every type in Spark SQL, each with the type that its column would have."""

from __future__ import annotations

import math
from typing import Any

from everview.compute.functions.spark_sql import infinity, spark_type
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Kind, SqlType
from everview.quoting import spark_literal

_SUFFIX = {Kind.INT2: "S", Kind.INT4: "", Kind.INT8: "L", Kind.TIME: "L", Kind.MZ_TIMESTAMP: "L"}


def render_literal(value: Any, sql_type: SqlType) -> str:
    """A value in the representation of its type; None is a NULL of that type."""
    if value is None:
        return f"cast(NULL as {spark_type(sql_type)})"
    if isinstance(value, Infinite):
        return infinity(sql_type, value)
    match sql_type.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.INT2 | Kind.INT4 | Kind.INT8 | Kind.TIME | Kind.MZ_TIMESTAMP:
            written = f"{value}{_SUFFIX[sql_type.kind]}"
            return f"({written})" if value < 0 else written
        case Kind.FLOAT4 | Kind.FLOAT8:
            return f"cast('{_float(value)}' as {spark_type(sql_type)})"
        case Kind.NUMERIC:
            return f"cast('{value:f}' as {spark_type(sql_type)})"
        case Kind.BYTEA:
            return f"X'{value.hex()}'"
        case Kind.DATE:
            return f"DATE '{value.isoformat()}'"
        case Kind.TIMESTAMP:
            return f"TIMESTAMP_NTZ '{value.isoformat(' ')}'"
        case Kind.TIMESTAMPTZ:
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case Kind.INTERVAL:
            months, days, micros = value
            return f"named_struct('months', {months}, 'days', {days}, 'micros', {micros}L)"
        case Kind.ARRAY:
            assert sql_type.element is not None
            items = ", ".join(render_literal(each, sql_type.element) for each in value)
            return f"cast(array({items}) as {spark_type(sql_type)})"
        case _:
            return spark_literal(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))
