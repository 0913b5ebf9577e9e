"""Short words to write plans with in tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from everview.compute.functions import registry
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.relation import Aggregate, Constant, Frame, Get, Order, Relation, WindowFunction, types
from everview.compute.ir.scalar import Call, Column, Literal, Scalar
from everview.compute.ir.types import BOOLEAN, DATE, FLOAT8, INT4, TEXT, SqlType, numeric
from everview.compute.rows.collection import Rows, rows_of

WHOLE = Frame("rows", None, None)
DEFAULT = Frame("range", None, 0)

_TYPES = {bool: BOOLEAN, int: INT4, str: TEXT, float: FLOAT8, date: DATE, Infinite: DATE, Decimal: numeric(10, 2)}


def col(index: int, sql_type: SqlType = INT4) -> Column:
    """A column, of integers if nothing is said."""
    return Column(index, sql_type)


def lit(value: Any, sql_type: SqlType | None = None) -> Literal:
    """A literal of the type that the Python value suggests."""
    return Literal(value, sql_type or _TYPES.get(type(value), INT4))


def call(key: str, *args: Scalar) -> Call:
    """A call of the function with that key."""
    result = registry.FUNCTIONS[key].result
    return Call(key, args, result if isinstance(result, SqlType) else result([arg.type for arg in args]))


def compare(name: str, left: Scalar, right: Scalar) -> Call:
    """A comparison of two integers."""
    return call(f"{name}(int4,int4)", left, right)


def aggregate(key: str, *args: Scalar, **more: Any) -> Aggregate:
    """An aggregate."""
    result = registry.AGGREGATES[key].result
    sql_type = result if isinstance(result, SqlType) else result([arg.type for arg in args])
    return Aggregate(key, args, sql_type, **more)


def window(key: str, sql_type: SqlType, *args: Scalar, frame: Frame = DEFAULT, **more: Any) -> WindowFunction:
    """A window function."""
    return WindowFunction(key, args, sql_type, frame, **more)


def asc(scalar: Scalar, *, nulls_first: bool = False) -> Order:
    """An ascending sort key."""
    return Order(scalar, False, nulls_first)


def desc(scalar: Scalar, *, nulls_first: bool = True) -> Order:
    """A descending sort key."""
    return Order(scalar, True, nulls_first)


def get(name: str = "t", width: int = 2, schema: Sequence[SqlType] | None = None) -> Get:
    """A collection, of `width` columns of integers if nothing is said."""
    return Get(name, tuple(schema or [INT4] * width))


def constant(*rows: tuple[Any, ...], schema: Sequence[SqlType] | None = None) -> Constant:
    """Written-down rows, each once."""
    return Constant(tuple((row, 1) for row in rows), tuple(schema or [lit(value).type for value in rows[0]]))


def rows(relation: Relation, *values: tuple[Any, ...]) -> Rows:
    """The collection of these rows, in the relation's types."""
    return rows_of([(value, 1) for value in values], types(relation))
