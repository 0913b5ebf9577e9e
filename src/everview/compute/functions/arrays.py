"""Functions and operators on arrays of one dimension, which begin at 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everview.compute.functions.cast_spark import text_sql
from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.naming import ELEMENTS, TEXT_ARRAY, element_of, wider_numeric
from everview.compute.functions.numbers import fit
from everview.compute.functions.order import sort_key, spark_equality_key
from everview.compute.functions.output import untyped_text
from everview.compute.functions.spark_sql import Renderer, let, spark_type
from everview.compute.ir.types import BOOLEAN, INT4, TEXT, Kind, SqlType, array_of

FUNCTIONS = Family()
_add = FUNCTIONS.add


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


def _appended(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    array = f"coalesce({_as(result, args[0])}, cast(array() as {spark_type(result)}))"
    return f"concat({array}, array({_as(result, args[1], single=True)}))"


def _prepended(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    array = f"coalesce({_as(result, args[1])}, cast(array() as {spark_type(result)}))"
    return f"concat(array({_as(result, args[0], single=True)}), {array})"


def _joined(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    one, other = (_as(result, each) for each in args)
    return f"coalesce(concat({one}, {other}), {one}, {other})"


def _concatenated(result: SqlType, one: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
    if one is None or other is None:
        rest = one if other is None else other
        return None if rest is None else _scaled(result, rest)
    return _scaled(result, [*one, *other])


def _subscript_sql(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
    return let("CASE WHEN v.b > 0 THEN try_element_at(v.a, v.b) END", *args)


def _slice(array: list[Any], low: int | None, high: int | None) -> list[Any]:
    return array[max(low or 1, 1) - 1 : max(high, 0)] if low is not None and high is not None else []


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


def _trimmed_sql(args: Sequence[str], _types: Sequence[SqlType], _result: SqlType) -> str:
    return let("CASE WHEN v.b BETWEEN 0 AND size(v.a) THEN slice(v.a, 1, size(v.a) - v.b) END", *args)


def _constructor(of: SqlType) -> None:
    def rendered(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
        return (
            f"array({', '.join(_as(result, each, single=True) for each in args)})"
            if args
            else (f"cast(array() as {spark_type(result)})")
        )

    _add(
        "array",
        (of,),
        lambda types: _unified(types or (of,)),
        lambda result, *values: _scaled(result, list(values)),
        rendered,
        typed=True,
        strict=False,
        variadic=True,
    )


def _keyed(of: SqlType, array: str, name: str) -> str:
    return f"transform({array}, {name} -> {spark_equality_key(of, name)})"


def _membership(of: SqlType) -> None:
    """Containment and overlap, in which a NULL is in nothing; and the position of a value, in which NULL is NULL."""
    array, key = array_of(of), sort_key(of)

    def within(inner: list[Any], outer: list[Any]) -> bool:
        have = {key(each) for each in outer if each is not None}
        return all(each is not None and key(each) in have for each in inner)

    def overlap(one: list[Any], other: list[Any]) -> bool:
        have = {key(each) for each in one if each is not None}
        return any(each is not None and key(each) in have for each in other)

    def within_sql(inner: str, outer: str) -> str:
        keyed = let(
            f"forall({_keyed(of, 'w.a', 'i')}, i -> coalesce(array_contains(w.b, i), false))",
            inner,
            f"filter({_keyed(of, outer, 'o')}, o -> o IS NOT NULL)",
            name="w",
        )
        return f"CASE WHEN {inner} IS NOT NULL AND {outer} IS NOT NULL THEN {keyed} END"

    def overlap_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
        return (
            f"CASE WHEN {args[0]} IS NOT NULL AND {args[1]} IS NOT NULL THEN"
            f" coalesce(arrays_overlap({_keyed(of, args[0], 'i')}, {_keyed(of, args[1], 'o')}), false) END"
        )

    pair = (array, array)
    _add("@>", pair, BOOLEAN, lambda a, b: within(b, a), lambda a, t, r: within_sql(a[1], a[0]), word="array_contains")
    _add("<@", pair, BOOLEAN, within, lambda a, t, r: within_sql(a[0], a[1]), word="array_within")
    _add("&&", pair, BOOLEAN, overlap, overlap_sql, word="array_overlaps")

    def position(values: list[Any] | None, value: Any, start: int = 1) -> int | None:
        for place, each in enumerate(values or (), 1):
            if place >= start and (
                (each is None and value is None) or (each is not None and value is not None and key(each) == key(value))
            ):
                return place
        return None

    def same(left: str, right: str) -> str:
        return f"{spark_equality_key(of, left)} <=> {spark_equality_key(of, right)}"

    def position_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
        hits = f"filter(sequence(1, size(v.a)), i -> {same('v.a[i - 1]', 'v.b')})"
        return let(f"CASE WHEN size(v.a) > 0 THEN try_element_at({hits}, 1) END", *args)

    _add("array_position", (array, of), INT4, position, position_sql, strict=False)

    def removed(values: list[Any] | None, value: Any) -> list[Any] | None:
        if values is None:
            return None
        return [each for each in values if not position([each], value)]

    _add(
        "array_remove",
        (array, of),
        lambda types: types[0],
        removed,
        lambda a, t, r: let(f"filter(v.a, e -> NOT ({same('e', 'v.b')}))", *a),
        strict=False,
    )

    def replaced(to: SqlType, values: list[Any] | None, old: Any, new: Any) -> list[Any] | None:
        if values is None:
            return None
        return _scaled(to, [new if position([each], old) else each for each in values])

    def replaced_sql(args: Sequence[str], _types: Any, result: SqlType) -> str:
        given = (_as(result, args[0]), *(_as(result, each, single=True) for each in args[1:]))
        return let(f"transform(v.a, e -> CASE WHEN {same('e', 'v.b')} THEN v.c ELSE e END)", *given)

    _add("array_replace", (array, of, of), _unified, replaced, replaced_sql, strict=False, typed=True)

    def positions(values: list[Any] | None, value: Any) -> list[int] | None:
        if values is None:
            return None
        return [place for place, each in enumerate(values, 1) if position([each], value)]

    def positions_sql(args: Sequence[str], _types: Any, result: SqlType) -> str:
        hits = f"filter(sequence(1, size(v.a)), i -> {same('v.a[i - 1]', 'v.b')})"
        none = f"cast(array() as {spark_type(result)})"
        return let(f"CASE WHEN size(v.a) > 0 THEN {hits} WHEN v.a IS NOT NULL THEN {none} END", *args)

    _add("array_positions", (array, of), array_of(INT4), positions, positions_sql, strict=False)
    _quantified(of, key)


def _quantified(of: SqlType, key: Callable[[Any], Any]) -> None:
    """value = ANY (array) and value <> ALL (array), with NULLs as SQL has them."""

    def any_equal(value: Any, values: list[Any] | None) -> bool | None:
        if values is None or (value is None and values):
            return None
        wanted = None if value is None else key(value)
        if any(each is not None and key(each) == wanted for each in values):
            return True
        return None if None in values else False

    def negated(value: Any, values: list[Any] | None) -> bool | None:
        found = any_equal(value, values)
        return None if found is None else not found

    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: Any) -> str:
        return f"exists({_keyed(of, args[1], 'e')}, e -> e = {spark_equality_key(types[0], args[0])})"

    pair = (of, array_of(of))
    _add("any_eq", pair, BOOLEAN, any_equal, rendered, strict=False)
    _add("all_ne", pair, BOOLEAN, negated, lambda a, t, r: f"(NOT {rendered(a, t, r)})", strict=False)


def _shape(of: SqlType) -> None:
    array = array_of(of)
    _add(
        "subscript",
        (array, INT4),
        lambda types: element_of(types[0]),
        lambda a, i: a[i - 1] if 1 <= i <= len(a) else None,
        _subscript_sql,
    )
    _add("slice", (array, INT4, INT4), lambda types: types[0], _slice, _slice_sql)
    for name in ("array_length", "array_upper"):
        _add(
            name,
            (array, INT4),
            INT4,
            lambda a, n: len(a) if n == 1 and a else None,
            "CASE WHEN {1} = 1 THEN nullif(size({0}), 0) END",
        )
    _add(
        "array_lower",
        (array, INT4),
        INT4,
        lambda a, n: 1 if n == 1 and a else None,
        "CASE WHEN {1} = 1 AND size({0}) > 0 THEN 1 END",
    )
    _add("array_ndims", (array,), INT4, lambda a: 1 if a else None, "CASE WHEN size({0}) > 0 THEN 1 END")
    _add(
        "array_dims",
        (array,),
        TEXT,
        lambda a: f"[1:{len(a)}]" if a else None,
        "CASE WHEN size({0}) > 0 THEN concat('[1:', cast(size({0}) as string), ']') END",
    )
    _add("cardinality", (array,), INT4, len, "size({0})")
    _add("trim_array", (array, INT4), lambda types: types[0], _trimmed, _trimmed_sql, fails=True)
    for name, word in (("array_append", "array_append"), ("||", "array_push")):
        _add(
            name,
            (array, of),
            _unified,
            lambda to, a, e: _scaled(to, [*(a or ()), e]),
            _appended,
            word=word,
            typed=True,
            strict=False,
        )
    for name, word in (("array_prepend", "array_prepend"), ("||", "array_unshift")):
        _add(
            name,
            (of, array),
            _unified,
            lambda to, e, a: _scaled(to, [e, *(a or ())]),
            _prepended,
            word=word,
            typed=True,
            strict=False,
        )
    for name, word in (("array_cat", "array_cat"), ("||", "array_concat")):
        _add(name, (array, array), _unified, _concatenated, _joined, word=word, typed=True, strict=False)


def _texts(of: SqlType) -> None:
    array = array_of(of)

    def shown(values: list[Any], glue: str, null: str | None = None) -> str:
        parts = [null if each is None else untyped_text(each, of) for each in values]
        return glue.join(part for part in parts if part is not None)

    def rendered(args: Sequence[str], types: Sequence[SqlType], _result: Any) -> str:
        texts = f"transform({args[0]}, e -> {text_sql('e', element_of(types[0]))})"
        return f"array_join({', '.join((texts, *args[1:]))})"

    _add("array_to_string", (array, TEXT), TEXT, shown, rendered)

    def with_null(values: list[Any] | None, glue: str | None, null: str | None) -> str | None:
        return None if values is None or glue is None else shown(values, glue, null)

    def rendered_null(args: Sequence[str], types: Sequence[SqlType], result: Any) -> str:
        plain, full = rendered(args[:2], types, result), rendered(args, types, result)
        return f"CASE WHEN {args[2]} IS NULL THEN {plain} ELSE {full} END"

    _add("array_to_string", (array, TEXT, TEXT), TEXT, with_null, rendered_null, strict=False)


def split(text: str | None, glue: str | None, null: str | None = None) -> list[str | None] | None:
    """The parts of a text between separators; without a separator its characters."""
    if text is None:
        return None
    parts = list(text) if glue is None else [text] if glue == "" else text.split(glue)
    return [None if null is not None and part == null else part for part in parts] if text else []


def split_sql(args: Sequence[str], *_: Any) -> str:
    """The same in Spark."""
    parts = (
        "CASE WHEN s.a IS NULL THEN NULL WHEN s.a = '' THEN cast(array() as array<string>) WHEN s.b IS NULL THEN"
        " slice(split(s.a, ''), 1, length(s.a)) WHEN s.b = '' THEN array(s.a)"
        " ELSE split(s.a, concat('\\\\Q', replace(s.b, '\\\\E', '\\\\E\\\\\\\\E\\\\Q'), '\\\\E')) END"
    )
    whole = let(parts, *args[:2], name="s")
    return f"transform({whole}, p -> CASE WHEN p = {args[2]} THEN NULL ELSE p END)" if len(args) == 3 else whole


_renderer: Renderer = split_sql
_add("string_to_array", (TEXT, TEXT), TEXT_ARRAY, split, _renderer, strict=False)
_add("string_to_array", (TEXT, TEXT, TEXT), TEXT_ARRAY, split, _renderer, strict=False)
for _of in ELEMENTS:
    _constructor(_of)
    _shape(_of)
    _membership(_of)
    _texts(_of)
