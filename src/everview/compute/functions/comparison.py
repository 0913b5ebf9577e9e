"""Comparisons of any type with itself, and the tests that are never NULL: IS DISTINCT FROM, IS NULL, IS TRUE."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from everview.compute.functions.contract import Function
from everview.compute.functions.naming import ANY, ARRAYS, ORDERED, TEXT_ARRAY, key_of, merged
from everview.compute.functions.numbers import fit
from everview.compute.functions.order import sort_key, spark_equality_key, spark_sort_key
from everview.compute.functions.spark_sql import Renderer, spark_type
from everview.compute.ir.types import BOOLEAN, FLOAT4, FLOAT8, NUMERIC_PRECISION, TEXT, Kind, SqlType

FUNCTIONS: list[Function] = []

_OPERATORS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("eq", "=", operator.eq),
    ("ne", "<>", operator.ne),
    ("lt", "<", operator.lt),
    ("le", "<=", operator.le),
    ("gt", ">", operator.gt),
    ("ge", ">=", operator.ge),
)


def _compared(symbol: str) -> Renderer:
    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
        if types[0] != types[1] and Kind.NUMERIC in (
            types[0].kind,
            *(each.element.kind for each in types if each.element),
        ):
            args, types = _aligned(args, types)
        key = spark_equality_key if symbol in ("=", "<>", "<=>") else spark_sort_key
        left, right = (key(each, arg) for arg, each in zip(args, types, strict=True))
        return f"({left} {symbol} {right})"

    return rendered


def _aligned(args: Sequence[str], types: Sequence[SqlType]) -> tuple[Sequence[str], Sequence[SqlType]]:
    """Decimals at one scale. Spark would choose one that drops digits where both do not fit into 38 together."""
    common = merged(types)
    number = common.element or common
    if (
        number.precision - number.scale + max(each.scale for each in (e.element or e for e in types))
        <= NUMERIC_PRECISION
    ):
        return [f"cast({arg} as {spark_type(common)})" for arg in args], [common, common]
    parts = "struct(cast({0} - {0} % 1 as decimal(38,0)), cast({0} % 1 as decimal(38,37)))"
    split = f"CASE WHEN {{0}} IS NOT NULL THEN {parts} END"
    if common.kind is Kind.ARRAY:
        return [f"transform({arg}, d -> {split.format('d')})" for arg in args], [TEXT_ARRAY, TEXT_ARRAY]
    return [split.format(arg) for arg in args], [TEXT, TEXT]


def _negated(symbol: str) -> Renderer:
    positive = _compared(symbol)
    return lambda args, types, result: f"(NOT {positive(args, types, result)})"


def _comparisons(left: SqlType, right: SqlType) -> None:
    pair, key = (left, right), sort_key(left)
    plain = left.kind not in (Kind.ARRAY, Kind.FLOAT4, Kind.FLOAT8, Kind.INTERVAL, Kind.JSONB)
    for name, symbol, compare in _OPERATORS:
        evaluate = compare if plain else (lambda a, b, compare=compare: compare(key(a), key(b)))
        FUNCTIONS.append(Function(key_of(name, pair), symbol, pair, BOOLEAN, evaluate, _compared(symbol)))
    if left is not right:
        return

    def same(a: Any, b: Any) -> bool:
        return a is b if a is None or b is None else bool(key(a) == key(b))

    for name, title, test, spark in (
        ("is_distinct_from", "is distinct from", lambda a, b: not same(a, b), _negated("<=>")),
        ("is_not_distinct_from", "is not distinct from", same, _compared("<=>")),
    ):
        FUNCTIONS.append(Function(key_of(name, pair), title, pair, BOOLEAN, test, spark, strict=False))


def _tests() -> None:
    tests: tuple[tuple[str, SqlType, Callable[[Any], bool], str], ...] = (
        ("is null", ANY, lambda a: a is None, "({0} IS NULL)"),
        ("is not null", ANY, lambda a: a is not None, "({0} IS NOT NULL)"),
        ("is true", BOOLEAN, lambda a: a is True, "({0} IS TRUE)"),
        ("is not true", BOOLEAN, lambda a: a is not True, "({0} IS NOT TRUE)"),
        ("is false", BOOLEAN, lambda a: a is False, "({0} IS FALSE)"),
        ("is not false", BOOLEAN, lambda a: a is not False, "({0} IS NOT FALSE)"),
        ("is unknown", BOOLEAN, lambda a: a is None, "({0} IS NULL)"),
        ("is not unknown", BOOLEAN, lambda a: a is not None, "({0} IS NOT NULL)"),
    )
    for name, arg, test, spark in tests:
        key = key_of(name.replace(" ", "_"), (arg,))
        FUNCTIONS.append(Function(key, name, (arg,), BOOLEAN, test, spark, strict=False))
    FUNCTIONS.append(Function("not(bool)", "not", (BOOLEAN,), BOOLEAN, operator.not_, "(NOT {0})"))


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
        FUNCTIONS.append(
            Function(
                key_of(name, (of,), variadic=True),
                name,
                (of,),
                merged,
                chosen(pick),
                spark(name),
                strict=False,
                typed=True,
                variadic=True,
            )
        )


for _type in (*ORDERED, *ARRAYS):
    _comparisons(_type, _type)
    _extremes(_type)
_comparisons(FLOAT4, FLOAT8)
_comparisons(FLOAT8, FLOAT4)
_tests()
