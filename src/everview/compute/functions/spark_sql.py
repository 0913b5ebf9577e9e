"""Pieces of Spark SQL that renderings are put together from.

Renderings count on two settings of the session: `spark.sql.ansi.enabled` is true (the default), and
`spark.sql.decimalOperations.allowPrecisionLoss` is false, so that sums and quotients of decimals keep their scale.
The session's time zone is UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.compute.functions.contract import AggregateFunction, Function
from everview.compute.ir.types import Kind, SqlType, stored_precision

Renderer = Callable[[Sequence[str], Sequence[SqlType], SqlType], str]

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    # It takes one predicate for granted in another that is evaluated before it, for rows where it does not hold; what
    # raises an error there would do so for rows that are guarded.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantPropagation",
}


class NotOnSpark(Exception):
    """The function has no rendering in Spark SQL: only the local engine can evaluate it."""


def not_on_spark(name: str) -> Renderer:
    """The rendering of a function that has none."""

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
    Kind.UNKNOWN: "string",
    Kind.BOOLEAN: "boolean",
    Kind.INT2: "smallint",
    Kind.INT4: "int",
    Kind.INT8: "bigint",
    Kind.FLOAT4: "float",
    Kind.FLOAT8: "double",
    Kind.TEXT: "string",
    Kind.VARCHAR: "string",
    Kind.CHAR: "string",
    Kind.BYTEA: "binary",
    Kind.DATE: "date",
    Kind.TIME: "bigint",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPTZ: "timestamp",
    Kind.INTERVAL: "struct<months: int, days: int, micros: bigint>",
    Kind.UUID: "string",
    Kind.JSONB: "string",
    Kind.MZ_TIMESTAMP: "bigint",
}


def spark_type(sql_type: SqlType) -> str:
    """The Spark type that values of this type have."""
    if sql_type.kind is Kind.NUMERIC:
        return f"decimal({stored_precision(sql_type)},{sql_type.scale})"
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return f"array<{spark_type(sql_type.element)}>"
    return _SPARK[sql_type.kind]


def let(body: str, *values: str, name: str = "v") -> str:
    """`body` with each value computed once, as v.a, v.b, ... (or under another name, inside another `let`)."""
    fields = ", ".join(f"'{letter}', {value}" for letter, value in zip("abcdefghij", values, strict=False))
    return f"transform(array(named_struct({fields})), {name} -> {body})[0]"


def quoted(text: str) -> str:
    """A Spark string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def interval(months: str, days: str, micros: str) -> str:
    """An interval of three rendered parts; NULL where one is."""
    # Each field is nullable, for Arrow takes no NULL struct whose fields are not.
    parts = ", ".join(
        f"'{name}', CASE WHEN v.{letter} IS NOT NULL THEN v.{letter} END"
        for name, letter in (("months", "a"), ("days", "b"), ("micros", "c"))
    )
    whole = f"named_struct({parts})"
    return let(
        f"CASE WHEN v.a IS NOT NULL AND v.b IS NOT NULL AND v.c IS NOT NULL THEN {whole} END",
        f"try_cast({months} as int)",
        f"try_cast({days} as int)",
        f"try_cast({micros} as bigint)",
    )


def infinite(value: str) -> str:
    """Whether a float is one of the infinities."""
    return f"abs({value}) = double('Infinity')"


def micros_of(value: str, sql_type: SqlType) -> str:
    """A date or timestamp as microseconds since the epoch."""
    if sql_type.kind is Kind.DATE:
        return f"unix_date({value}) * 86400000000L"
    return f"unix_micros(cast({value} as timestamp))"


# The years 1 to 9999, which is what the Python values can say.
DAY_MIN, DAY_MAX = -719162, 2932896
MICROS_MIN, MICROS_MAX = DAY_MIN * 86_400_000_000, (DAY_MAX + 1) * 86_400_000_000 - 1


def timestamp_of(micros: str, sql_type: SqlType) -> str:
    """The timestamp at so many microseconds since the epoch; NULL if out of range."""
    bounded = let(
        f"CASE WHEN w.a BETWEEN {MICROS_MIN}L AND {MICROS_MAX}L THEN timestamp_micros(cast(w.a as bigint)) END",
        micros,
        name="w",
    )
    return f"cast({bounded} as {spark_type(sql_type)})"


def date_of(days: str) -> str:
    """The date so many days after the epoch; NULL if out of range."""
    return let(
        f"CASE WHEN w.a BETWEEN {DAY_MIN} AND {DAY_MAX} THEN date_from_unix_date(cast(w.a as int)) END", days, name="w"
    )


def unquoted(rendered: str) -> str | None:
    """The text of a string literal as `quoted` writes them; None of anything else."""
    if len(rendered) < 2 or rendered[0] != "'" or rendered[-1] != "'":
        return None
    text, escaped = [], False
    for character in rendered[1:-1]:
        if escaped or character not in "\\'":
            text.append(character)
            escaped = False
        elif character == "'":
            return None
        else:
            escaped = True
    return None if escaped else "".join(text)
