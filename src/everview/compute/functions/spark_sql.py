"""Pieces of Spark SQL that renderings are put together from.

Renderings count on two settings of the session: `spark.sql.ansi.enabled` is true (the default), and
`spark.sql.decimalOperations.allowPrecisionLoss` is false, so that sums and quotients of decimals keep their scale.
The session's time zone is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everview.compute.functions.contract import AggregateFunction, Function
from everview.compute.ir.infinite import INFINITY, MINUS_INFINITY, Infinite
from everview.compute.ir.types import Kind, SqlType, element_of, stored_precision

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?")
Renderer = Callable[[Sequence[str], Sequence[SqlType], SqlType], str]

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    # A text means what it says: `${env:HOME}` in a literal is not the server's home, and a backslash escapes.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    # And a name is what it says: columns "a" and "A" of a collection are two.
    "spark.sql.caseSensitive": "true",
    # The older classes of Java have no room for what a filter over files compares -infinity with.
    "spark.sql.datetime.java8API.enabled": "true",
    # It takes one predicate for granted in another that is evaluated before it, for rows where it does not hold; what
    # raises an error there would do so for rows that are guarded.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantPropagation",
}


class NotOnSpark(Exception):
    """The function has no rendering in Spark SQL: only the local engine can evaluate it."""


class TooLong(Exception):
    """The rendering is longer than Spark, or this process, has room for."""


def not_on_spark(name: str) -> Renderer:
    """The rendering of a function without Spark SQL."""

    def refuse(_args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
        raise NotOnSpark(name)

    return refuse


def render(
    function: Function | AggregateFunction, args: Sequence[str], types: Sequence[SqlType], result: SqlType
) -> str:
    """The Spark SQL of a function applied to rendered arguments; raises NotOnSpark."""
    if isinstance(function.spark, str):
        return function.spark.format(*args, args=", ".join(args))
    return function.spark(args, types, result)


_SPARK = {
    **dict.fromkeys((Kind.UNKNOWN, Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.UUID, Kind.JSONB), "string"),
    **dict.fromkeys((Kind.INT8, Kind.TIME, Kind.MZ_TIMESTAMP), "bigint"),
    **{Kind.BOOLEAN: "boolean", Kind.INT2: "smallint", Kind.INT4: "int", Kind.FLOAT4: "float", Kind.FLOAT8: "double"},
    **{Kind.BYTEA: "binary", Kind.DATE: "date", Kind.TIMESTAMP: "timestamp_ntz", Kind.TIMESTAMPTZ: "timestamp"},
    Kind.INTERVAL: "struct<months: int, days: int, micros: bigint>",
}


def spark_type(sql_type: SqlType) -> str:
    """The Spark type that values of this type have."""
    if sql_type.kind is Kind.NUMERIC:
        return f"decimal({stored_precision(sql_type)},{sql_type.scale})"
    if sql_type.kind is Kind.ARRAY:
        return f"array<{spark_type(element_of(sql_type))}>"
    return _SPARK[sql_type.kind]


def let(body: str, *values: str, name: str = "v") -> str:
    """`body` with each value computed once, as v.a, v.b, ... (or under another name, inside another `let`)."""
    fields = ", ".join(f"'{letter}', {value}" for letter, value in zip("abcdefghij", values, strict=False))
    return f"transform(array(named_struct({fields})), {name} -> {body})[0]"


def let_arguments(body: str, count: int, name: str = "v") -> str:
    """`let` for the arguments of a function, v.a being the first."""
    return let(body, *(f"{{{place}}}" for place in range(count)), name=name)


def interval(months: str, days: str, micros: str) -> str:
    """An interval of three rendered parts; NULL where one is."""
    # Each field is nullable, for Arrow takes no NULL struct whose fields are not.
    parts = ", ".join(
        f"'{name}', CASE WHEN v.{letter} IS NOT NULL THEN v.{letter} END"
        for name, letter in (("months", "a"), ("days", "b"), ("micros", "c"))
    )
    whole = f"named_struct({parts})"
    body = f"CASE WHEN v.a IS NOT NULL AND v.b IS NOT NULL AND v.c IS NOT NULL THEN {whole} END"
    return let(body, f"try_cast({months} as int)", f"try_cast({days} as int)", f"try_cast({micros} as bigint)")


def infinite(value: str) -> str:
    """Whether a float is one of the infinities."""
    return f"abs({value}) = double('Infinity')"


def micros_of(value: str, sql_type: SqlType) -> str:
    """A date or timestamp as microseconds since the epoch; NULL of an infinity."""
    if sql_type.kind is Kind.DATE:
        return f"try_multiply(unix_date({value}), 86400000000L)"
    # The greatest and the least number are left out by sums that they have no room for.
    less = f"try_subtract(try_add(unix_micros(cast({value} as timestamp)), 1L), 1L)"
    return f"try_add(try_subtract({less}, 1L), 1L)"


def days_of(value: str) -> str:
    """A date as days since the epoch; NULL of an infinity."""
    return f"(try_multiply(unix_date({value}), 86400000000L) div 86400000000L)"


def infinity(sql_type: SqlType, which: Infinite = INFINITY) -> str:
    """An infinity of a type of dates or timestamps."""
    if sql_type.kind is Kind.DATE:
        return f"date_from_unix_date({which.days})"
    if sql_type.kind is Kind.MZ_TIMESTAMP:  # the last of all times, and the first
        return f"{which.micros}L"
    moment = f"timestamp_micros({which.micros}L)"
    return moment if sql_type.kind is Kind.TIMESTAMPTZ else f"cast({moment} as timestamp_ntz)"


def is_infinite(value: str, sql_type: SqlType) -> str:
    """Whether a date or timestamp is infinite."""
    return f"{value} IN ({infinity(sql_type)}, {infinity(sql_type, MINUS_INFINITY)})"


def carried(value: str, source: SqlType, target: SqlType, otherwise: str, present: Sequence[str] = ()) -> str:
    """An infinity as the same infinity of another type; any other value as `otherwise` says.

    The value is a name, as it is said several times (`once`). `present` is what must not be NULL beside it.
    """
    also = "".join(f" AND {each} IS NOT NULL" for each in present)
    if source.kind is target.kind:
        return f"CASE WHEN {is_infinite(value, source)}{also} THEN {value} ELSE {otherwise} END"
    cases = (f"WHEN {value} = {infinity(source, each)}{also} THEN {infinity(target, each)}" for each in Infinite)
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"


def once(value: str, body: Callable[[str], str], name: str) -> str:
    """`body` over a value that is computed once, even if `body` names it several times."""
    return body(value) if _NAME.fullmatch(value) else let(body(f"{name}.a"), value, name=name)


# The years 1 to 9999, which is what the Python values can say.
DAY_MIN, DAY_MAX = -719162, 2932896
MICROS_MIN, MICROS_MAX = DAY_MIN * 86_400_000_000, (DAY_MAX + 1) * 86_400_000_000 - 1


def timestamp_of(micros: str, sql_type: SqlType) -> str:
    """The timestamp at so many microseconds since the epoch; NULL if out of range."""
    body = f"CASE WHEN w.a BETWEEN {MICROS_MIN}L AND {MICROS_MAX}L THEN timestamp_micros(cast(w.a as bigint)) END"
    bounded = let(body, micros, name="w")
    return f"cast({bounded} as {spark_type(sql_type)})"


def date_of(days: str) -> str:
    """The date so many days after the epoch; NULL if out of range."""
    body = f"CASE WHEN w.a BETWEEN {DAY_MIN} AND {DAY_MAX} THEN date_from_unix_date(cast(w.a as int)) END"
    return let(body, days, name="w")


_QUOTED_ESCAPE = re.compile(r"\\(?:(u0024)|.)", re.DOTALL)
_QUOTED_BODY = re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL)


def unquoted(rendered: str) -> str | None:
    """The text of a string literal as `spark_literal` writes them; None of anything else."""
    if len(rendered) < 2 or rendered[0] != "'" or rendered[-1] != "'":
        return None
    body = rendered[1:-1]
    if not _QUOTED_BODY.fullmatch(body):
        return None
    return _QUOTED_ESCAPE.sub(lambda match: "$" if match[1] else match[0][1:], body)
