"""Functions that plans use and SQL has no name for: what the maintenance of aggregates and subqueries is made of."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from everview.compute.functions import exact_floats
from everview.compute.functions.aggregates import AVERAGE, average_sql
from everview.compute.functions.contract import Failure, fail
from everview.compute.functions.kernels import numeric_quotient
from everview.compute.functions.numbers import quotient
from everview.compute.functions.patterns import ALL_CAPTURED, folded
from everview.compute.functions.regex import compiled
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import is_infinite, once
from everview.compute.functions.table import Tables
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import SqlType

FUNCTIONS = Family(exact_floats.FUNCTIONS)
TABLES = Tables()
define = FUNCTIONS.define

ONE_ROW, NUMBERS, A_PATTERN = "the only row", "numbers", "a regular expression"
PARAMETER = "a parameter(int4)"  # the key: by its number, in a plan that is kept without values
FITS, FIELD_NAME, FINITE = "fits", "a field name", "a finite value"


def _numbers_sql(args: Sequence[str], _types: Sequence[SqlType], _columns: Sequence[SqlType]) -> str:
    first, last = (int(arg.rstrip("L")) for arg in args)
    return "array(" + ", ".join(f"named_struct('c0', {number}L)" for number in range(first, last + 1)) + ")"


def _is_pattern(text: str, pattern: str, options: str) -> bool:
    expression = compiled(pattern, options)
    if expression.may_give_up:
        for _ in expression.matches(text):
            pass
    return True


def _finite(value: Any) -> Any:
    if isinstance(value, Infinite):
        raise Failure("22008", f"fields of {value.value} can be extracted only by names that are literals")
    return value


def _finite_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    return once(args[0], lambda name: f"CASE WHEN NOT ({is_infinite(name, types[0])}) THEN {name} END", "k")


# Each number from a literal to a literal that is not smaller.
_numbers = lambda _columns, first, last: [(number,) for number in range(first, last + 1)]
TABLES.define(f"{NUMBERS}(int8, int8) -> int8", _numbers, _numbers_sql, names=())
_SEVERAL = "more than one row returned by a subquery used as an expression"
_one_row = lambda count: count <= 1 or fail("21000", _SEVERAL)
define(f"{ONE_ROW}(int8) -> bool", _one_row, "CASE WHEN {0} <= 1L THEN true END", fails=True)
# It fails where the average has too many digits.
_average = lambda to, total, count: quotient(total, Decimal(count), to)
_average_sql = lambda args, types, _result: average_sql(f"cast({args[0]} as decimal(38,{types[0].scale}))", args[1])
define(f"{AVERAGE}(numeric, int8) -> numeric", _average, _average_sql, fails=True, typed=True, arrow=numeric_quotient)
# Whether the second text is a regular expression with such options that can be searched for in the first; it fails
# where it is none, or where that takes too long.
define(f"{A_PATTERN}(text, text, text) -> bool", _is_pattern, fails=True)
define(f"{ALL_CAPTURED}(text, text [, text]) -> text[]", folded, fails=True)
define("a parameter(int4) -> text", lambda _: fail("08P01", "a parameter has no value"))
# Whether a value is absent though so many rows are counted, which is a failure of that kind.
_FITS = "CASE WHEN NOT ({0} AND {1} >= {2}) AND concat({0}, {1}, {2}, {3}, {4}) IS NOT NULL THEN true END"
_fits = lambda absent, count, least, sqlstate, message: not (absent and count >= least) or fail(sqlstate, message)
define(f"{FITS}(bool, int8, int8, text, text) -> bool", _fits, _FITS, fails=True)
_field_name = lambda name: fail("22023", "field name must not be null") if name is None else name
define(f"{FIELD_NAME}(text) -> text", _field_name, "{0}", strict=False, fails=True)
# A date or timestamp itself, unless it is infinite: then it fails.
define(f"{FINITE}(T) -> T", _finite, _finite_sql, fails=True, T="date timestamp timestamptz")
