"""The aggregates that list the values of a group: string_agg, array_agg, jsonb_agg, jsonb_object_agg.

Their result follows the order of the rows. Without ORDER BY that order is by the arguments, NULLs last (jsonb by its
text), so that it is the same on every engine. With ORDER BY the Spark engine collects structs `a, b, ...` of the
arguments in its order, and `finish` makes the result of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everview.compute.cancel import paced
from everview.compute.functions.contract import Failure, GroupRows
from everview.compute.functions.json_value import canonical, dump, parse
from everview.compute.functions.jsonb import jsonb_of
from everview.compute.functions.jsonb_spark import object_sql, to_jsonb_sql
from everview.compute.functions.naming import ARRAYS, ELEMENTS
from everview.compute.functions.order import spark_equality_key
from everview.compute.functions.signatures import Aggregates, Types
from everview.compute.functions.spark_sql import Renderer
from everview.compute.ir.types import SqlType, array_of

AGGREGATES = Aggregates()

Finish = Callable[[str, Sequence[SqlType]], str]

# By key: from an array of structs a, b, ... and the argument types to the result.
FINISH: dict[str, Finish] = {}


def _rendering(finish: Finish) -> Renderer:
    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        order = [
            part
            for place, (arg, each) in enumerate(zip(args, types, strict=True))
            for part in (f"'n{place}', {arg} IS NULL", f"'k{place}', {spark_equality_key(each, arg)}")
        ]
        fields = [f"'{letter}', {arg}" for letter, arg in zip("ab", args, strict=False)]
        return finish(f"array_sort(collect_list(named_struct({', '.join([*order, *fields])})))", types)

    return rendered


def _add(
    signature: str, evaluate: Callable[[SqlType, GroupRows], Any], finish: Finish, *, T: Types = (), **more: Any
) -> None:
    before = len(AGGREGATES)
    AGGREGATES.define(signature, evaluate, _rendering(finish), T=T, takes_nulls=True, **more)
    FINISH.update((each.key, finish) for each in AGGREGATES[before:])


def _joined(empty: Any) -> Callable[[SqlType, GroupRows], Any]:
    """The values, each after the first with its own separator in front."""

    def evaluate(_: SqlType, rows: GroupRows) -> Any:
        present = [row for row in rows if row[0] is not None]
        if not present:
            return None
        return present[0][0] + empty.join((glue or empty) + value for value, glue in present[1:])

    return evaluate


def _joined_sql(empty: str) -> Finish:
    def finish(array: str, _types: Sequence[SqlType]) -> str:
        step = f"CASE WHEN s IS NULL THEN e.a ELSE concat(s, coalesce(e.b, {empty}), e.a) END"
        kind = "string" if empty == "''" else "binary"
        return f"aggregate(filter({array}, e -> e.a IS NOT NULL), cast(NULL as {kind}), (s, e) -> {step})"

    return finish


def _jsonb_array(of: SqlType) -> Callable[[SqlType, GroupRows], Any]:
    return lambda _, rows: "[" + ", ".join(jsonb_of(row[0], of) for row in paced(rows)) + "]" if rows else None


def _jsonb_array_sql(array: str, types: Sequence[SqlType]) -> str:
    items = f"transform({array}, e -> coalesce({to_jsonb_sql('e.a', types[0])}, 'null'))"
    return f"nullif(concat('[', array_join({items}, ', '), ']'), '[]')"


def _jsonb_object(of: SqlType) -> Callable[[SqlType, GroupRows], Any]:
    def evaluate(_: SqlType, rows: GroupRows) -> Any:
        if any(row[0] is None for row in rows):
            raise Failure("22023", "field name must not be null")
        return canonical(dump({name: parse(jsonb_of(value, of)) for name, value in rows})) if rows else None

    return evaluate


def _jsonb_object_sql(array: str, types: Sequence[SqlType]) -> str:
    pairs = f"transform({array}, e -> struct(e.a as k, coalesce({to_jsonb_sql('e.b', types[1])}, 'null') as v))"
    return f"nullif({object_sql(pairs)}, '{{}}')"


_array_type = lambda types: array_of(types[0])
_add("string_agg(text, text) -> text", _joined(""), _joined_sql("''"))
_add("string_agg(bytea, bytea) -> bytea", _joined(b""), _joined_sql("X''"))
_array_sql = lambda array, _types: f"nullif(transform({array}, e -> e.a), array())"
_add("array_agg(T)", lambda _, rows: [row[0] for row in rows] or None, _array_sql, result=_array_type, T=ELEMENTS)
for _of in (*ELEMENTS, *ARRAYS):
    _add("jsonb_agg(T) -> jsonb", _jsonb_array(_of), _jsonb_array_sql, T=_of)
    _add("jsonb_object_agg(text, T) -> jsonb", _jsonb_object(_of), _jsonb_object_sql, T=_of)
