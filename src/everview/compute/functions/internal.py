"""Functions that plans use and SQL has no name for: what the maintenance of aggregates and subqueries is made of."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from everview.compute.functions import exact_floats
from everview.compute.functions.aggregates import average_sql
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.naming import NUMERIC, key_of
from everview.compute.functions.numbers import quotient
from everview.compute.functions.regex import compiled
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.functions.table import TableFunction
from everview.compute.ir.types import BOOLEAN, INT8, TEXT, SqlType

FUNCTIONS: list[Function] = [*exact_floats.FUNCTIONS]

TABLES: list[TableFunction] = []

ONE_ROW, AVERAGE, NUMBERS, A_PATTERN = "the only row", "total by count", "numbers", "a regular expression"
FITS, FIELD_NAME = "fits", "a field name"


def _numbers_sql(args: Sequence[str], _types: Sequence[SqlType], _columns: Sequence[SqlType]) -> str:
    first, last = (int(arg.rstrip("L")) for arg in args)
    return "array(" + ", ".join(f"named_struct('c0', {number}L)" for number in range(first, last + 1)) + ")"


# Each number from a literal to a literal that is not smaller.
TABLES.append(
    TableFunction(
        key_of(NUMBERS, (INT8, INT8)),
        NUMBERS,
        (INT8, INT8),
        (INT8,),
        lambda _, first, last: [(number,) for number in range(first, last + 1)],
        _numbers_sql,
    )
)


def _one_row(count: int) -> bool:
    if count > 1:
        raise Failure("21000", "more than one row returned by a subquery used as an expression")
    return True


def _average(to: SqlType, total: Decimal, count: int) -> Any:
    return quotient(total, Decimal(count), to)


def _average_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    return average_sql(f"cast({args[0]} as decimal(38,{types[0].scale}))", args[1])


FUNCTIONS.append(
    Function(
        key_of(ONE_ROW, (INT8,)),
        ONE_ROW,
        (INT8,),
        BOOLEAN,
        _one_row,
        "CASE WHEN {0} <= 1L THEN true END",
        fails=True,
    )
)
# It fails where the average has too many digits.
FUNCTIONS.append(
    Function(
        key_of(AVERAGE, (NUMERIC, INT8)),
        AVERAGE,
        (NUMERIC, INT8),
        NUMERIC,
        _average,
        _average_sql,
        fails=True,
        typed=True,
    )
)
# Whether the second text is a regular expression with such options, if there is a first; it fails where it is none.
FUNCTIONS.append(
    Function(
        key_of(A_PATTERN, (TEXT, TEXT, TEXT)),
        A_PATTERN,
        (TEXT, TEXT, TEXT),
        BOOLEAN,
        lambda _, pattern, options: bool(compiled(pattern, options)),
        not_on_spark(A_PATTERN),
        fails=True,
    )
)


def _fits(absent: bool, count: int, least: int, sqlstate: str, message: str) -> bool:
    if absent and count >= least:
        raise Failure(sqlstate, message)
    return True


# Whether a value is absent though so many rows are counted, which is a failure of that kind.
FUNCTIONS.append(
    Function(
        key_of(FITS, (BOOLEAN, INT8, INT8, TEXT, TEXT)),
        FITS,
        (BOOLEAN, INT8, INT8, TEXT, TEXT),
        BOOLEAN,
        _fits,
        "CASE WHEN NOT ({0} AND {1} >= {2}) AND concat({0}, {1}, {2}, {3}, {4}) IS NOT NULL THEN true END",
        fails=True,
    )
)


def _field_name(name: str | None) -> str:
    if name is None:
        raise Failure("22023", "field name must not be null")
    return name


FUNCTIONS.append(
    Function(key_of(FIELD_NAME, (TEXT,)), FIELD_NAME, (TEXT,), TEXT, _field_name, "{0}", strict=False, fails=True)
)
