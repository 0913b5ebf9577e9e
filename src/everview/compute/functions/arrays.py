"""Functions and operators on arrays of one dimension, which begin at 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from everview.compute.functions.cast_spark import text_sql
from everview.compute.functions.contract import Failure
from everview.compute.functions.naming import ELEMENTS, wider_numeric
from everview.compute.functions.numbers import fit
from everview.compute.functions.order import sort_key, spark_equality_key
from everview.compute.functions.output import untyped_text
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, let, let_arguments, spark_type
from everview.compute.ir.types import Kind, SqlType, array_of, element_of

FUNCTIONS = Family()
define = FUNCTIONS.define
# Types whose values are equal where Python finds them equal.
_PLAIN = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.VARCHAR, Kind.UUID, Kind.DATE, Kind.NUMERIC)
_SLICE = 1 << 16  # elements that are compared while nobody else has the interpreter's lock


def _unified(types: Sequence[SqlType]) -> SqlType:
    """The array type of elements and arrays together."""
    elements = [element_of(each) if each.kind is Kind.ARRAY else each for each in types]
    return array_of(wider_numeric(elements) if elements[0].kind is Kind.NUMERIC else elements[0])


def _scaled(result: SqlType, values: list[Any]) -> list[Any]:
    element = element_of(result)
    if element.kind is not Kind.NUMERIC:
        return values
    return [None if each is None else fit(each, element) for each in values]


def _as(result: SqlType, value: str, *, single: bool = False) -> str:
    """An argument at the scale that the result has."""
    target = element_of(result) if single else result
    numeric = element_of(result).kind is Kind.NUMERIC
    return f"cast({value} as {spark_type(target)})" if numeric else value


def _append_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    array = f"coalesce({_as(result, args[0])}, cast(array() as {spark_type(result)}))"
    return f"concat({array}, array({_as(result, args[1], single=True)}))"


def _prepend_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    array = f"coalesce({_as(result, args[1])}, cast(array() as {spark_type(result)}))"
    return f"concat(array({_as(result, args[0], single=True)}), {array})"


def _concatenated_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    one, other = (_as(result, each) for each in args)
    return f"coalesce(concat({one}, {other}), {one}, {other})"


def _concatenated(result: SqlType, one: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
    if one is None or other is None:
        rest = one if other is None else other
        return None if rest is None else _scaled(result, rest)
    return _scaled(result, [*one, *other])


def _slice_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    empty = f"cast(array() as {spark_type(result)})"
    part = "slice(v.a, greatest(v.b, 1), least(v.c, size(v.a)) - greatest(v.b, 1) + 1)"
    return let(
        f"CASE WHEN v.b IS NULL OR v.c IS NULL OR v.a IS NULL THEN NULL"
        f" WHEN greatest(v.b, 1) <= least(v.c, size(v.a)) THEN {part} ELSE {empty} END",
        *args,
    )


def _trimmed(array: list[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(array):
        raise Failure("2202E", f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def _constructor_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    items = ", ".join(_as(result, each, single=True) for each in args)
    return f"array({items})" if args else f"cast(array() as {spark_type(result)})"


def _keyed(of: SqlType, array: str, name: str) -> str:
    return f"transform({array}, {name} -> {spark_equality_key(of, name)})"


def _membership(of: SqlType) -> None:
    """Containment and overlap, in which a NULL is in nothing; and the position of a value, in which NULL is NULL."""
    key = sort_key(of)

    def within(inner: list[Any], outer: list[Any]) -> bool:
        have = {key(each) for each in outer if each is not None}
        return all(each is not None and key(each) in have for each in inner)

    def overlap(one: list[Any], other: list[Any]) -> bool:
        have = {key(each) for each in one if each is not None}
        return any(each is not None and key(each) in have for each in other)

    def within_sql(inner: str, outer: str) -> str:
        body = f"forall({_keyed(of, 'w.a', 'i')}, i -> coalesce(array_contains(w.b, i), false))"
        keyed = let(body, inner, f"filter({_keyed(of, outer, 'o')}, o -> o IS NOT NULL)", name="w")
        return f"CASE WHEN {inner} IS NOT NULL AND {outer} IS NOT NULL THEN {keyed} END"

    def overlap_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
        return (
            f"CASE WHEN {args[0]} IS NOT NULL AND {args[1]} IS NOT NULL THEN"
            f" coalesce(arrays_overlap({_keyed(of, args[0], 'i')}, {_keyed(of, args[1], 'o')}), false) END"
        )

    contains_sql: Renderer = lambda args, types, result: within_sql(*reversed(args))
    define("@> array_contains(T[], T[]) -> bool", lambda a, b: within(b, a), contains_sql, T=of)
    define("<@ array_within(T[], T[]) -> bool", within, lambda args, types, result: within_sql(*args), T=of)
    define("&& array_overlaps(T[], T[]) -> bool", overlap, overlap_sql, T=of)

    def same(one: Any, other: Any) -> bool:
        return one is other if one is None or other is None else bool(key(one) == key(other))

    def positions(values: list[Any] | None, value: Any) -> list[int] | None:
        return values and [place for place, each in enumerate(values, 1) if same(each, value)]

    def position(values: list[Any] | None, value: Any) -> int | None:
        return next(iter(positions(values, value) or ()), None)

    def removed(values: list[Any] | None, value: Any) -> list[Any] | None:
        return values and [each for each in values if not same(each, value)]

    def replaced(to: SqlType, values: list[Any] | None, old: Any, new: Any) -> list[Any] | None:
        return values and _scaled(to, [new if same(each, old) else each for each in values])

    def same_sql(left: str, right: str) -> str:
        return f"{spark_equality_key(of, left)} <=> {spark_equality_key(of, right)}"

    def replaced_sql(args: Sequence[str], _types: Any, result: SqlType) -> str:
        given = (_as(result, args[0]), *(_as(result, each, single=True) for each in args[1:]))
        return let(f"transform(v.a, e -> CASE WHEN {same_sql('e', 'v.b')} THEN v.c ELSE e END)", *given)

    hits = f"filter(sequence(1, size(v.a)), i -> {same_sql('v.a[i - 1]', 'v.b')})"
    first = let_arguments(f"CASE WHEN size(v.a) > 0 THEN try_element_at({hits}, 1) END", 2)
    every = f"CASE WHEN size(v.a) > 0 THEN {hits} WHEN v.a IS NOT NULL THEN cast(array() as array<int>) END"
    kept = let_arguments(f"filter(v.a, e -> NOT ({same_sql('e', 'v.b')}))", 2)
    define("array_position(T[], T) -> int4", position, first, strict=False, T=of)
    define("array_positions(T[], T) -> int4[]", positions, let_arguments(every, 2), strict=False, T=of)
    define("array_remove(T[], T) -> $1", removed, kept, strict=False, T=of)
    define("array_replace(T[], T, T)", replaced, replaced_sql, result=_unified, strict=False, typed=True, T=of)
    _quantified(of, key)


def _quantified(of: SqlType, key: Callable[[Any], Any]) -> None:
    """value = ANY (array) and value <> ALL (array), with NULLs as SQL has them."""
    plain = of.kind in _PLAIN

    def any_equal(value: Any, values: list[Any] | None) -> bool | None:
        if values is None or (value is None and values):
            return None
        wanted = None if value is None else key(value)
        if plain:
            found = any(wanted in values[start : start + _SLICE] for start in range(0, len(values), _SLICE))
        else:
            found = any(each is not None and key(each) == wanted for each in values)
        return True if found else None if None in values else False

    def negated(value: Any, values: list[Any] | None) -> bool | None:
        found = any_equal(value, values)
        return None if found is None else not found

    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: Any) -> str:
        return f"exists({_keyed(of, args[1], 'e')}, e -> e = {spark_equality_key(types[0], args[0])})"

    define("any_eq(T, T[]) -> bool", any_equal, rendered, strict=False, T=of)
    define("all_ne(T, T[]) -> bool", negated, lambda a, t, r: f"(NOT {rendered(a, t, r)})", strict=False, T=of)


def _to_string(of: SqlType, values: list[Any] | None, glue: str | None, null: str | None = None) -> str | None:
    if values is None or glue is None:
        return None
    parts = [null if each is None else untyped_text(each, of) for each in values]
    return glue.join(part for part in parts if part is not None)


def _to_string_sql(args: Sequence[str], types: Sequence[SqlType], _result: Any) -> str:
    texts = f"transform({args[0]}, e -> {text_sql('e', element_of(types[0]))})"
    plain, full = f"array_join({texts}, {args[1]})", f"array_join({', '.join((texts, *args[1:]))})"
    return plain if len(args) == 2 else f"CASE WHEN {args[2]} IS NULL THEN {plain} ELSE {full} END"


def split(text: str | None, glue: str | None, null: str | None = None) -> list[str | None] | None:
    """The parts of a text between separators; without a separator its characters."""
    if text is None:
        return None
    parts = list(text) if glue is None else [text] if glue == "" else text.split(glue)
    return [None if null is not None and part == null else part for part in parts] if text else []


def split_sql(args: Sequence[str], *_: Any) -> str:
    parts = (
        "CASE WHEN s.a IS NULL THEN NULL WHEN s.a = '' THEN cast(array() as array<string>) WHEN s.b IS NULL THEN"
        " slice(split(s.a, ''), 1, length(s.a)) WHEN s.b = '' THEN array(s.a)"
        " ELSE split(s.a, concat('\\\\Q', replace(s.b, '\\\\E', '\\\\E\\\\\\\\E\\\\Q'), '\\\\E')) END"
    )
    whole = let(parts, *args[:2], name="s")
    return f"transform({whole}, p -> CASE WHEN p = {args[2]} THEN NULL ELSE p END)" if len(args) == 3 else whole


_item = lambda types: element_of(types[0])
_subscript = lambda a, i: a[i - 1] if 1 <= i <= len(a) else None
_first = lambda a, n: 1 if n == 1 and a else None
_last = lambda a, n: len(a) if n == 1 and a else None
_LAST = "CASE WHEN {1} = 1 THEN nullif(size({0}), 0) END"
_DIMS = "CASE WHEN size({0}) > 0 THEN concat('[1:', cast(size({0}) as string), ']') END"
_SUBSCRIPT = let_arguments("CASE WHEN v.b > 0 THEN try_element_at(v.a, v.b) END", 2)
_TRIMMED = let_arguments("CASE WHEN v.b BETWEEN 0 AND size(v.a) THEN slice(v.a, 1, size(v.a) - v.b) END", 2)
_joining: dict[str, Any] = {"result": _unified, "typed": True, "strict": False}
define("string_to_array(text, text [, text]) -> text[]", split, split_sql, strict=False)
define("subscript(T[], int4)", _subscript, _SUBSCRIPT, result=_item, T=ELEMENTS)
_slice = lambda array, low, high: array[max(low, 1) - 1 : max(high, 0)]
define("slice(T[], int4, int4) -> $1", _slice, _slice_sql, T=ELEMENTS)
define("array_length, array_upper(T[], int4) -> int4", _last, _LAST, T=ELEMENTS)
define("array_lower(T[], int4) -> int4", _first, "CASE WHEN {1} = 1 AND size({0}) > 0 THEN 1 END", T=ELEMENTS)
define("array_ndims(T[]) -> int4", lambda a: 1 if a else None, "CASE WHEN size({0}) > 0 THEN 1 END", T=ELEMENTS)
define("array_dims(T[]) -> text", lambda a: f"[1:{len(a)}]" if a else None, _DIMS, T=ELEMENTS)
define("cardinality(T[]) -> int4", len, "size({0})", T=ELEMENTS)
define("trim_array(T[], int4) -> $1", _trimmed, _TRIMMED, fails=True, T=ELEMENTS)
_append = lambda result, array, item: _scaled(result, [*(array or ()), item])
define("array_append, || array_push(T[], T)", _append, _append_sql, **_joining, T=ELEMENTS)
_prepend = lambda result, item, array: _scaled(result, [item, *(array or ())])
define("array_prepend, || array_unshift(T, T[])", _prepend, _prepend_sql, **_joining, T=ELEMENTS)
define("array_cat, || array_concat(T[], T[])", _concatenated, _concatenated_sql, **_joining, T=ELEMENTS)
for _of in ELEMENTS:
    _array_type = lambda types, of=_of: _unified(types or (of,))
    _array = lambda result, *values: _scaled(result, list(values))
    define("array(T...)", _array, _constructor_sql, result=_array_type, typed=True, strict=False, T=_of)
    define("array_to_string(T[], text) -> text", partial(_to_string, _of), _to_string_sql, T=_of)
    define("array_to_string(T[], text, text) -> text", partial(_to_string, _of), _to_string_sql, strict=False, T=_of)
    _membership(_of)
