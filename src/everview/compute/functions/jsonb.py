"""Functions and operators on jsonb."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from everview.compute.functions import jsonb_spark as spark
from everview.compute.functions.cast_spark import text_sql
from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.json_value import dump, key_order, parse, quote
from everview.compute.functions.jsonb_spark import object_sql, to_jsonb_sql
from everview.compute.functions.naming import ANY, ARRAYS, CHAR, ELEMENTS, element_of
from everview.compute.functions.output import to_text, untyped_text
from everview.compute.functions.spark_sql import Renderer, let, not_on_spark
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import BOOLEAN, INT4, JSONB, TEXT, Kind, SqlType, array_of

FUNCTIONS = Family()
_PATH = array_of(TEXT)
_add = FUNCTIONS.add

__all__ = ["FUNCTIONS", "jsonb_of", "object_sql", "to_jsonb_sql"]


def jsonb_of(value: Any, sql_type: SqlType) -> str:
    """A value of any type as canonical JSON."""
    if value is None:
        return "null"
    kind = sql_type.kind
    if kind is Kind.JSONB:
        return str(value)
    if kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if kind in (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP, Kind.NUMERIC):
        return dump(Decimal(value))
    if kind in (Kind.FLOAT4, Kind.FLOAT8):
        text = to_text(value, sql_type)
        return dump(Decimal(text)) if text[-1].isdigit() else quote(text)
    if kind is Kind.ARRAY:
        return "[" + ", ".join(jsonb_of(each, element_of(sql_type)) for each in value) + "]"
    text = to_text(value, sql_type)
    if isinstance(value, Infinite):
        return quote(text)
    if kind is Kind.TIMESTAMP:
        text = text.replace(" ", "T")
    elif kind is Kind.TIMESTAMPTZ:
        text = text.replace(" ", "T") + ":00"
    return quote(text)


def as_text(value: Any) -> str | None:
    """What ->> gives of a parsed value."""
    return value if value is None or isinstance(value, str) else dump(value)


def _field(json: str, key: str) -> Any:
    value = parse(json)
    return value[key] if isinstance(value, dict) and key in value else _MISSING


def _item(json: str, index: int) -> Any:
    value = parse(json)
    if not isinstance(value, dict | list):
        value = [value]  # PostgreSQL keeps a scalar as an array of one
    inside = isinstance(value, list) and -len(value) <= index < len(value)
    return value[index] if inside else _MISSING


def _at(json: str, path: list[str | None]) -> Any:
    value = parse(json)
    for step in path:
        if step is None:
            return _MISSING
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and _is_index(step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _is_index(step: str) -> bool:
    return _INDEX.fullmatch(step) is not None


_MISSING = object()
_INDEX = re.compile("[+-]?[0-9]{1,10}")


def _json(find: Callable[..., Any]) -> Callable[..., str | None]:
    return lambda *args: None if (found := find(*args)) is _MISSING else dump(found)


def _text(find: Callable[..., Any]) -> Callable[..., str | None]:
    return lambda *args: None if (found := find(*args)) is _MISSING else as_text(found)


def _found(sql: Callable[[str, str], str], *, text: bool = False) -> Renderer:
    return lambda args, types, result: spark.as_text(sql(*args)) if text else sql(*args)


def _accessors() -> None:
    shapes: tuple[tuple[str, SqlType, Callable[..., Any], Callable[[str, str], str]], ...] = (
        ("->", TEXT, _field, spark.field),
        ("->", INT4, _item, spark.item),
        ("#>", _PATH, _at, spark.at_path),
    )
    for symbol, by, find, sql in shapes:
        word = "json_get" if symbol == "->" else "json_path"
        args = (JSONB, by)
        _add(symbol, args, JSONB, _json(find), _found(sql), word=word)
        _add(f"{symbol}>", args, TEXT, _text(find), _found(sql, text=True), word=f"{word}_text")
    for name, wrap in (("jsonb_extract_path", _json), ("jsonb_extract_path_text", _text)):
        text = name.endswith("text")

        def rendered(args: Sequence[str], _types: Any, _result: Any, text: bool = text) -> str:
            found = spark.at_path(args[0], f"array({', '.join(args[1:])})") if len(args) > 1 else args[0]
            return spark.as_text(found) if text else found

        evaluate = wrap(lambda json, *path: _at(json, list(path)))
        _add(name, (JSONB, TEXT), TEXT if text else JSONB, evaluate, rendered, variadic=True)


def contains(outer: Any, inner: Any, top: bool = True) -> bool:
    """Whether every part of `inner` is in `outer`; at the top, an array contains a value that is an element."""
    if isinstance(outer, dict) and isinstance(inner, dict):
        return all(key in outer and _part(outer[key], value) for key, value in inner.items())
    if isinstance(outer, list) and isinstance(inner, list):
        return all(any(_part(have, want) for have in outer) for want in inner)
    if top and isinstance(outer, list) and not isinstance(inner, dict):
        return any(_part(have, inner) for have in outer)
    return False if isinstance(outer, dict | list) or isinstance(inner, dict | list) else _equal(outer, inner)


def _part(outer: Any, inner: Any) -> bool:
    return contains(outer, inner, top=False)


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _exists(json: str, key: str) -> bool:
    value = parse(json)
    return key in value if isinstance(value, dict | list) else value == key


def _exists_sql(json: str, key: str) -> str:
    where = f"CASE WHEN {spark.is_object('x.a')} THEN {spark.keys('x.a')} WHEN {spark.is_array('x.a')}"
    return let(
        f"array_contains({where} THEN {spark.elements('x.a')} ELSE array(x.a) END, x.b)",
        json,
        spark.quote(key),
        name="x",
    )


def _some_sql(quantifier: str) -> Callable[..., str]:
    def rendered(args: Sequence[str], _types: Any, _result: Any) -> str:
        keys = f"filter({args[1]}, n -> n IS NOT NULL)"
        return f"CASE WHEN {args[0]} IS NOT NULL THEN {quantifier}({keys}, n -> {_exists_sql(args[0], 'n')}) END"

    return rendered


def _tests() -> None:
    pair = (JSONB, JSONB)
    _add(
        "@>",
        pair,
        BOOLEAN,
        lambda a, b: contains(parse(a), parse(b)),
        not_on_spark("jsonb @> jsonb"),
        word="json_contains",
    )
    _add(
        "<@",
        pair,
        BOOLEAN,
        lambda a, b: contains(parse(b), parse(a)),
        not_on_spark("jsonb <@ jsonb"),
        word="json_within",
    )
    _add("?", (JSONB, TEXT), BOOLEAN, _exists, lambda a, t, r: _exists_sql(*a), word="json_has")
    _add(
        "?|",
        (JSONB, _PATH),
        BOOLEAN,
        lambda a, keys: any(_exists(a, key) for key in keys if key is not None),
        _some_sql("exists"),
        word="json_has_any",
    )
    _add(
        "?&",
        (JSONB, _PATH),
        BOOLEAN,
        lambda a, keys: all(_exists(a, key) for key in keys if key is not None),
        _some_sql("forall"),
        word="json_has_all",
    )


def _merge(left: str, right: str) -> str:
    a, b = parse(left), parse(right)
    if isinstance(a, dict) and isinstance(b, dict):
        return dump({**a, **b})
    return dump([*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])])


def _without(json: str, keys: list[str]) -> str:
    value = parse(json)
    if isinstance(value, dict):
        return dump({key: each for key, each in value.items() if key not in keys})
    if isinstance(value, list):
        return dump([each for each in value if not (isinstance(each, str) and each in keys)])
    raise Failure("22023", "cannot delete from scalar")


def _without_index(json: str, index: int) -> str:
    value = parse(json)
    if isinstance(value, dict):
        raise Failure("22023", "cannot delete from object using integer index")
    if not isinstance(value, list):
        raise Failure("22023", "cannot delete from scalar")
    place = index + len(value) if index < 0 else index
    return dump([each for at, each in enumerate(value) if at != place])


def _without_index_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    kept = "filter(y.a, (e, i) -> i <> CASE WHEN x.b < 0 THEN x.b + size(y.a) ELSE x.b END)"
    rest = let(spark.array_sql(kept), spark.elements("x.a"), name="y")
    return let(f"CASE WHEN {spark.is_array('x.a')} AND x.b IS NOT NULL THEN {rest} END", *args, name="x")


def _changes() -> None:
    _add("||", (JSONB, JSONB), JSONB, _merge, lambda a, t, r: spark.merged(*a), word="json_concat")
    _add(
        "-",
        (JSONB, TEXT),
        JSONB,
        lambda a, key: _without(a, [key]),
        lambda a, t, r: spark.without_keys(a[0], f"CASE WHEN {a[1]} IS NOT NULL THEN array({a[1]}) END"),
        word="json_without",
        fails=True,
    )
    _add("-", (JSONB, _PATH), JSONB, _without, lambda a, t, r: spark.without_keys(*a), word="json_without", fails=True)
    _add("-", (JSONB, INT4), JSONB, _without_index, _without_index_sql, word="json_without", fails=True)
    _add("jsonb_strip_nulls", (JSONB,), JSONB, lambda a: dump(_stripped(parse(a))), not_on_spark("jsonb_strip_nulls"))
    _add("jsonb_pretty", (JSONB,), TEXT, lambda a: _pretty(parse(a)), not_on_spark("jsonb_pretty"))
    _add("jsonb_set", (JSONB, _PATH, JSONB), JSONB, _set, not_on_spark("jsonb_set"), fails=True)
    _add("jsonb_set", (JSONB, _PATH, JSONB, BOOLEAN), JSONB, _set, not_on_spark("jsonb_set"), fails=True)


def _pretty(value: Any, depth: int = 0) -> str:
    """Over several lines, each of which has an element or a field."""
    inner, outer = "\n" + " " * 4 * (depth + 1), "\n" + " " * 4 * depth
    if isinstance(value, dict):
        fields = [f"{quote(key)}: {_pretty(value[key], depth + 1)}" for key in sorted(value, key=key_order)]
        return "{" + "".join(f"{',' if at else ''}{inner}{each}" for at, each in enumerate(fields)) + outer + "}"
    if isinstance(value, list):
        parts = [_pretty(each, depth + 1) for each in value]
        return "[" + "".join(f"{',' if at else ''}{inner}{each}" for at, each in enumerate(parts)) + outer + "]"
    return dump(value)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(each) for key, each in value.items() if each is not None}
    return [_stripped(each) for each in value] if isinstance(value, list) else value


def _set(json: str, path: list[str | None], new: str, create: bool = True) -> str:
    value = parse(json)
    if not isinstance(value, dict | list):
        raise Failure("22023", "cannot set path in scalar")
    return dump(_put(value, path, parse(new), create, 1) if path else value)


def _put(value: Any, path: list[str | None], new: Any, create: bool, depth: int) -> Any:
    step, rest = path[0], path[1:]
    if not isinstance(value, dict | list):
        return value
    if step is None:
        raise Failure("22004", f"path element at position {depth} is null")
    if isinstance(value, dict):
        if step in value:
            return {**value, step: _put(value[step], rest, new, create, depth + 1) if rest else new}
        return {**value, step: new} if create and not rest else value
    if not _is_index(step):
        raise Failure("22P02", f'path element at position {depth} is not an integer: "{step}"')
    index = int(step) + (len(value) if int(step) < 0 else 0)
    if 0 <= index < len(value):
        return [*value[:index], _put(value[index], rest, new, create, depth + 1) if rest else new, *value[index + 1 :]]
    if rest or not create:
        return value
    return [new, *value] if index < 0 else [*value, new]


_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", Decimal: "number", type(None): "null"}


def _length(json: str) -> int:
    value = parse(json)
    if isinstance(value, list):
        return len(value)
    raise Failure("22023", f"cannot get array length of {'a non-array' if isinstance(value, dict) else 'a scalar'}")


def _build_object(*args: str | None) -> str:
    if len(args) % 2:
        raise Failure("22023", "argument list must have even number of elements")
    pairs = list(zip(args[::2], args[1::2], strict=True))
    if any(name is None for name, _ in pairs):
        raise Failure("22023", "argument must not be null")
    return dump({name: None if value is None else parse(value) for name, value in pairs})


def _build_object_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    pairs = ", ".join(
        f"struct({k} as k, coalesce({v}, 'null') as v)" for k, v in zip(args[::2], args[1::2], strict=True)
    )
    return object_sql(f"array({pairs})") if args else "'{}'"


def _builders() -> None:
    kinds = "CASE substring({0}, 1, 1) WHEN '{{' THEN 'object' WHEN '[' THEN 'array' WHEN '\"' THEN 'string'"
    _add(
        "jsonb_typeof",
        (JSONB,),
        TEXT,
        lambda a: _NAMES[type(parse(a))],
        kinds + " WHEN 't' THEN 'boolean' WHEN 'f' THEN 'boolean' WHEN 'n' THEN 'null' ELSE"
        " CASE WHEN {0} IS NOT NULL THEN 'number' END END",
    )
    _add(
        "jsonb_array_length",
        (JSONB,),
        INT4,
        _length,
        lambda a, t, r: let(f"CASE WHEN {spark.is_array('x.a')} THEN size({spark.elements('x.a')}) END", *a, name="x"),
        fails=True,
    )
    for of in (*ELEMENTS, CHAR, *ARRAYS):
        _add("to_jsonb", (of,), JSONB, lambda a, of=of: jsonb_of(a, of), lambda a, t, r: to_jsonb_sql(a[0], t[0]))
        _add("text_of", (of,), TEXT, lambda a, of=of: untyped_text(a, of), lambda a, t, r: text_sql(a[0], t[0]))
    _add("jsonb_build_object", (ANY,), JSONB, _build_object, _build_object_sql, strict=False, variadic=True, fails=True)
    _add(
        "jsonb_build_array",
        (ANY,),
        JSONB,
        lambda *args: "[" + ", ".join(each or "null" for each in args) + "]",
        lambda a, t, r: (
            spark.array_sql(f"array({', '.join(f'coalesce({each}, {_NULL})' for each in a)})") if a else "'[]'"
        ),
        strict=False,
        variadic=True,
    )


_NULL = "'null'"
_accessors()
_tests()
_changes()
_builders()
