"""Comparisons of any type with itself, and the tests that are never NULL: IS DISTINCT FROM, IS NULL, IS TRUE."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from everview.compute.functions import kernels
from everview.compute.functions.columns import named
from everview.compute.functions.naming import ARRAYS, ORDERED, TEXT_ARRAY, merged, short_name
from everview.compute.functions.numbers import fit
from everview.compute.functions.order import sort_key, spark_equality_key, spark_sort_key
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, spark_type
from everview.compute.ir.types import FLOAT4, FLOAT8, NUMERIC_PRECISION, TEXT, Kind, SqlType

FUNCTIONS = Family()
define = FUNCTIONS.define
_OPERATORS = ("= eq", "<> ne", "< lt", "<= le", "> gt", ">= ge")


def _compared(symbol: str) -> Renderer:
    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        if types[0] != types[1] and (types[0].element or types[0]).kind is Kind.NUMERIC:
            args, types = _aligned(args, types)
        key = spark_equality_key if symbol in ("=", "<>", "<=>") else spark_sort_key
        left, right = (key(each, arg) for arg, each in zip(args, types, strict=True))
        return f"({left} {symbol} {right})"

    return rendered


def _aligned(args: Sequence[str], types: Sequence[SqlType]) -> tuple[Sequence[str], Sequence[SqlType]]:
    """Decimals at one scale. Spark would choose one that drops digits where both do not fit into 38 together."""
    common = merged(types)
    number = common.element or common
    scale = max((each.element or each).scale for each in types)
    if number.precision - number.scale + scale <= NUMERIC_PRECISION:
        return [f"cast({arg} as {spark_type(common)})" for arg in args], [common, common]
    parts = "struct(cast({0} - {0} % 1 as decimal(38,0)), cast({0} % 1 as decimal(38,37)))"
    split = f"CASE WHEN {{0}} IS NOT NULL THEN {parts} END"
    if common.kind is Kind.ARRAY:
        return [f"transform({arg}, d -> {split.format('d')})" for arg in args], [TEXT_ARRAY, TEXT_ARRAY]
    return [split.format(arg) for arg in args], [TEXT, TEXT]


def _comparisons(left: SqlType, right: SqlType) -> None:
    key, args = sort_key(left), f"({short_name(left)}, {short_name(right)}) -> bool"
    plain = left.kind not in (Kind.ARRAY, Kind.FLOAT4, Kind.FLOAT8, Kind.INTERVAL, Kind.JSONB)
    over_columns = left.kind not in (Kind.ARRAY, Kind.INTERVAL, Kind.JSONB)
    for each in _OPERATORS:
        symbol, _, name = each.partition(" ")
        compare = getattr(operator, name)
        evaluate = compare if plain else (lambda a, b, compare=compare: compare(key(a), key(b)))
        define(each + args, evaluate, _compared(symbol), arrow=kernels.compared(name) if over_columns else None)
    if left is not right:
        return

    def same(a: Any, b: Any) -> bool:
        return a is b if a is None or b is None else bool(key(a) == key(b))

    same_sql = _compared("<=>")
    differ_sql: Renderer = lambda args, types, result: f"(NOT {same_sql(args, types, result)})"
    differs, alike = (kernels.distinct(negated=negated) if over_columns else None for negated in (False, True))
    differ = lambda a, b: not same(a, b)
    define(f"is distinct from as is_distinct_from{args}", differ, differ_sql, strict=False, arrow=differs)
    define(f"is not distinct from as is_not_distinct_from{args}", same, same_sql, strict=False, arrow=alike)


def _extremes(of: SqlType) -> None:
    """The greatest and least of any number of values, in which NULLs do not count."""
    key = sort_key(of)
    numeric = of.kind is Kind.NUMERIC

    def chosen(pick: Callable[..., Any]) -> Callable[..., Any]:
        def evaluate(result: SqlType, *values: Any) -> Any:
            present = [value for value in values if value is not None]
            best = pick(present, key=key) if present else None
            return fit(best, result) if numeric and best is not None else best

        return evaluate

    def spark(name: str) -> Renderer:
        def rendered(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
            if len(args) == 1:
                return args[0]
            if of.kind not in (Kind.INTERVAL, Kind.JSONB, Kind.ARRAY):
                return f"{name}({', '.join(f'cast({arg} as {spark_type(result)})' for arg in args)})"
            sorting = "array_max" if name == "greatest" else "array_min"
            # Of equal ones the first: 1 month and 30 days are.
            sign = "-" if name == "greatest" else ""
            pairs = ", ".join(
                f"named_struct('k', {spark_sort_key(of, arg)}, 'i', {sign}{place}, 'v', {arg})"
                for place, arg in enumerate(args)
            )
            return f"{sorting}(filter(array({pairs}), e -> e.v IS NOT NULL)).v"

        return rendered

    for name, pick in (("greatest", max), ("least", min)):
        define(f"{name}(T...)", chosen(pick), spark(name), result=merged, strict=False, typed=True, T=of)


for _type in (*ORDERED, *ARRAYS):
    _comparisons(_type, _type)
    _extremes(_type)
_comparisons(FLOAT4, FLOAT8)
_comparisons(FLOAT8, FLOAT4)
_PRESENT, _NOT = named("is_valid"), named("invert")
define("is null as is_null(any) -> bool", lambda a: a is None, "({0} IS NULL)", strict=False, arrow=named("is_null"))
define(
    "is not null as is_not_null(any) -> bool",
    lambda a: a is not None,
    "({0} IS NOT NULL)",
    strict=False,
    arrow=_PRESENT,
)
define("is true as is_true(bool) -> bool", lambda a: a is True, "({0} IS TRUE)", strict=False)
define("is not true as is_not_true(bool) -> bool", lambda a: a is not True, "({0} IS NOT TRUE)", strict=False)
define("is false as is_false(bool) -> bool", lambda a: a is False, "({0} IS FALSE)", strict=False)
define("is not false as is_not_false(bool) -> bool", lambda a: a is not False, "({0} IS NOT FALSE)", strict=False)
define("is unknown as is_unknown(bool) -> bool", lambda a: a is None, "({0} IS NULL)", strict=False)
define("is not unknown as is_not_unknown(bool) -> bool", lambda a: a is not None, "({0} IS NOT NULL)", strict=False)
define("not(bool) -> bool", operator.not_, "(NOT {0})", arrow=_NOT)
