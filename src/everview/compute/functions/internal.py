"""Functions that plans use and SQL has no name for: what the maintenance of aggregates and subqueries is made of."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from everview.compute.functions import exact_floats
from everview.compute.functions.aggregates import AVERAGE, average_sql
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.naming import NUMERIC, TEXT_ARRAY, key_of
from everview.compute.functions.numbers import quotient
from everview.compute.functions.patterns import ALL_CAPTURED, folded
from everview.compute.functions.regex import compiled
from everview.compute.functions.spark_sql import is_infinite, not_on_spark, once
from everview.compute.functions.table import TableFunction
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import BOOLEAN, DATE, INT4, INT8, TEXT, TIMESTAMP, TIMESTAMPTZ, SqlType

FUNCTIONS: list[Function] = [*exact_floats.FUNCTIONS]

TABLES: list[TableFunction] = []

ONE_ROW, NUMBERS, A_PATTERN = "the only row", "numbers", "a regular expression"
PARAMETER = "a parameter(int4)"  # the key: by its number, in a plan that is kept without values
FITS, FIELD_NAME, FINITE = "fits", "a field name", "a finite value"


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


def _is_pattern(text: str, pattern: str, options: str) -> bool:
    expression = compiled(pattern, options)
    if expression.may_give_up:
        for _ in expression.matches(text):
            pass
    return True


# Whether the second text is a regular expression with such options that can be searched for in the first; it fails
# where it is none, or where that takes too long.
FUNCTIONS.append(
    Function(
        key_of(A_PATTERN, (TEXT, TEXT, TEXT)),
        A_PATTERN,
        (TEXT, TEXT, TEXT),
        BOOLEAN,
        _is_pattern,
        not_on_spark(A_PATTERN),
        fails=True,
    )
)

for _args in ((TEXT, TEXT), (TEXT, TEXT, TEXT)):
    FUNCTIONS.append(
        Function(
            key_of(ALL_CAPTURED, _args),
            ALL_CAPTURED,
            _args,
            TEXT_ARRAY,
            folded,
            not_on_spark(ALL_CAPTURED),
            fails=True,
        )
    )


def _without_value(_number: int) -> Any:
    raise Failure("08P01", "a parameter has no value")


FUNCTIONS.append(Function(PARAMETER, "a parameter", (INT4,), TEXT, _without_value, not_on_spark("a parameter")))


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


def _finite(value: Any) -> Any:
    if isinstance(value, Infinite):
        raise Failure("22008", f"fields of {value.value} can be extracted only by names that are literals")
    return value


# A date or timestamp itself, unless it is infinite: then it fails.
FUNCTIONS.extend(
    Function(
        key_of(FINITE, (of,)),
        FINITE,
        (of,),
        of,
        _finite,
        lambda a, t, r: once(a[0], lambda name: f"CASE WHEN NOT ({is_infinite(name, t[0])}) THEN {name} END", "k"),
        fails=True,
    )
    for of in (DATE, TIMESTAMP, TIMESTAMPTZ)
)
