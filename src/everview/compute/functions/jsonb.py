"""Functions and operators on jsonb."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from everview.compute.allowance import look_at_value
from everview.compute.cancel import check_wanted, paced
from everview.compute.functions import jsonb_spark as spark
from everview.compute.functions.cast_spark import text_sql
from everview.compute.functions.contract import Failure
from everview.compute.functions.json_value import dump, elements, fields, parse, quote
from everview.compute.functions.jsonb_spark import object_sql, to_jsonb_sql
from everview.compute.functions.naming import ARRAYS, CHAR, ELEMENTS
from everview.compute.functions.output import to_text, untyped_text
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, let
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import MZ_TIMESTAMP, Kind, SqlType, element_of

FUNCTIONS = Family()
define = FUNCTIONS.define


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
        return "[" + ", ".join(jsonb_of(each, element_of(sql_type)) for each in elements(value)) + "]"
    text = to_text(value, sql_type)
    if isinstance(value, Infinite):
        return quote(text)
    if kind is Kind.TIMESTAMP:
        text = text.replace(" ", "T")
    elif kind is Kind.TIMESTAMPTZ:
        text = text.replace(" ", "T") + ":00"
    return quote(text)


def as_text(value: Any) -> str | None:
    """The result of ->> for a parsed value."""
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


def _at(json: str, path: Sequence[str | None]) -> Any:
    value = parse(json)
    for step in path:
        if step is None:
            return _MISSING
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and INDEX.fullmatch(step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


_MISSING = object()
_CHECK_EVERY = 4_096
INDEX = re.compile("[+-]?[0-9]{1,10}")  # a step of a path that is a place in an array


def _json(find: Callable[..., Any]) -> Callable[..., str | None]:
    return lambda *args: None if (found := find(*args)) is _MISSING else dump(found)


def _text(find: Callable[..., Any]) -> Callable[..., str | None]:
    return lambda *args: None if (found := find(*args)) is _MISSING else as_text(found)


def _found(sql: Callable[[str, str], str], *, text: bool = False) -> Renderer:
    return lambda args, types, result: spark.as_text(sql(*args)) if text else sql(*args)


def _at_path_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    return spark.at_path(args[0], f"array({', '.join(args[1:])})") if len(args) > 1 else args[0]


def contains(outer: Any, inner: Any, top: bool = True) -> bool:
    """Whether every part of `inner` is in `outer`; at the top, an array contains a value that is an element."""
    if isinstance(outer, dict) and isinstance(inner, dict):
        return all(key in outer and _part(outer[key], value) for key, value in paced(inner.items()))
    if isinstance(outer, list) and isinstance(inner, list):
        return _has_elements(outer, inner)
    if top and isinstance(outer, list) and not isinstance(inner, dict):
        return _has_elements(outer, [inner])
    if isinstance(outer, dict | list) or isinstance(inner, dict | list):
        return False
    return _scalar_key(outer) == _scalar_key(inner)


def _part(outer: Any, inner: Any) -> bool:
    return contains(outer, inner, top=False)


def _has_elements(outer: list[Any], inner: list[Any]) -> bool:
    """Whether each element of one array is in another: a scalar is looked up, an object or array compared with all."""
    scalars = {_scalar_key(each) for each in elements(outer) if not isinstance(each, dict | list)}
    compared = [each for each in elements(outer) if isinstance(each, dict | list)]
    for each in elements(inner):
        if not isinstance(each, dict | list):
            if _scalar_key(each) not in scalars:
                return False
        elif not any(_part(have, each) for have in paced(compared)):
            return False
    return True


def _scalar_key(value: Any) -> tuple[bool, Any]:
    """Equal for equal scalars: to Python, true is 1."""
    return isinstance(value, bool), value


def _keys(json: str) -> Container[Any]:
    """What `?` finds: the keys of an object, the texts in an array, or the value itself if it is a text."""
    value = parse(json)
    if isinstance(value, dict):
        return value
    return {each for each in elements(value if isinstance(value, list) else [value]) if isinstance(each, str)}


def _has_some(json: str, keys: list[str | None]) -> bool:
    have = _keys(json)
    return any(key in have for key in elements(keys) if key is not None)


def _has_all(json: str, keys: list[str | None]) -> bool:
    have = _keys(json)
    return all(key in have for key in elements(keys) if key is not None)


def _exists_sql(json: str, key: str) -> str:
    where = f"CASE WHEN {spark.is_object('x.a')} THEN {spark.keys('x.a')} WHEN {spark.is_array('x.a')}"
    body = f"array_contains({where} THEN {spark.elements('x.a')} ELSE array(x.a) END, x.b)"
    return let(body, json, spark.quote(key), name="x")


def _some_sql(quantifier: str) -> Callable[..., str]:
    def rendered(args: Sequence[str], _types: Any, _result: Any) -> str:
        keys = f"filter({args[1]}, n -> n IS NOT NULL)"
        return f"CASE WHEN {args[0]} IS NOT NULL THEN {quantifier}({keys}, n -> {_exists_sql(args[0], 'n')}) END"

    return rendered


def _merge(left: str, right: str) -> str:
    a, b = parse(left), parse(right)
    if isinstance(a, dict) and isinstance(b, dict):
        return dump({**a, **b})
    return dump([*(a if isinstance(a, list) else [a]), *(b if isinstance(b, list) else [b])])


def _without(json: str, keys: list[str | None]) -> str:
    value, unwanted = parse(json), set(keys)
    if isinstance(value, dict):
        return dump({key: each for key, each in paced(value.items()) if key not in unwanted})
    if isinstance(value, list):
        return dump([each for each in elements(value) if not (isinstance(each, str) and each in unwanted)])
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


def _pretty(json: str) -> str:
    """Write one element or field per line."""
    parts: list[str] = []
    size = 0

    def add(part: str) -> None:
        nonlocal size
        size += len(part)
        if len(parts) % _CHECK_EVERY == 0:
            check_wanted()
        look_at_value(size)  # each line may have a thousand blanks in front
        parts.append(part)

    _write_pretty(parse(json), add, 0)
    return "".join(parts)


def _write_pretty(value: Any, add: Callable[[str], None], depth: int) -> None:
    if not isinstance(value, dict | list):
        add(dump(value))
        return
    inner, outer = "\n" + " " * 4 * (depth + 1), "\n" + " " * 4 * depth
    add("{" if isinstance(value, dict) else "[")
    if isinstance(value, dict):
        for number, (name, each) in enumerate(fields(value)):
            add(f"{',' if number else ''}{inner}{quote(name)}: ")
            _write_pretty(each, add, depth + 1)
    else:
        for number, each in enumerate(value):
            add(f"{',' if number else ''}{inner}")
            _write_pretty(each, add, depth + 1)
    add(outer + ("}" if isinstance(value, dict) else "]"))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(each) for key, each in value.items() if each is not None}
    return [_stripped(each) for each in value] if isinstance(value, list) else value


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


_TYPEOF_SQL = (
    "CASE substring({0}, 1, 1) WHEN '{{' THEN 'object' WHEN '[' THEN 'array' WHEN '\"' THEN 'string'"
    " WHEN 't' THEN 'boolean' WHEN 'f' THEN 'boolean' WHEN 'n' THEN 'null' ELSE"
    " CASE WHEN {0} IS NOT NULL THEN 'number' END END"
)
_LENGTH_SQL = f"CASE WHEN {spark.is_array('x.a')} THEN size({spark.elements('x.a')}) END"


def _build_array_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    items = ", ".join(f"coalesce({each}, 'null')" for each in args)
    return spark.array_sql(f"array({items})") if args else "'[]'"


def _without_key_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    return spark.without_keys(args[0], f"CASE WHEN {args[1]} IS NOT NULL THEN array({args[1]}) END")


# Changes by a path, and objects from arrays of text. On Spark these are called in Python.

# What becomes of an object or an array, given the key or the place at the end of the path.
Edit = Callable[[Any, Any], Any]


def _edited(json: str, path: list[str | None], edit: Edit, what: str) -> str:
    """The JSON with the container edited that the path leads to."""
    value = parse(json)
    if not isinstance(value, dict | list):
        raise Failure("22023", f"cannot {what} in scalar")
    return dump(_edited_below(value, path, 0, edit) if path else value)


def _edited_below(value: Any, path: list[str | None], depth: int, edit: Edit) -> Any:
    """The value with the edit made from a step of the path on; unchanged where the path leads nowhere."""
    if not isinstance(value, dict | list):
        return value
    at: Any = path[depth]
    if at is None:
        raise Failure("22004", f"path element at position {depth + 1} is null")
    if isinstance(value, list):
        if not INDEX.fullmatch(at):
            raise Failure("22P02", f'path element at position {depth + 1} is not an integer: "{at}"')
        at = int(at) + (len(value) if int(at) < 0 else 0)
    if depth + 1 == len(path):
        return edit(value, at)
    if isinstance(value, dict):
        return {**value, at: _edited_below(value[at], path, depth + 1, edit)} if at in value else value
    if not 0 <= at < len(value):
        return value
    return [*value[:at], _edited_below(value[at], path, depth + 1, edit), *value[at + 1 :]]


def _deleted(value: Any, at: Any) -> Any:
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if key != at}
    return [each for place, each in enumerate(value) if place != at]


def _inserted(json: str, path: list[str | None], new: str, after: bool = False) -> str:
    """Insert a new field, or an element before or after another."""

    def edit(value: Any, at: Any) -> Any:
        if isinstance(value, dict):
            if at in value:
                raise Failure("22023", "cannot replace existing key")
            return {**value, at: parse(new)}
        place = 0 if at < 0 else min(at + after, len(value))
        return [*value[:place], parse(new), *value[place:]]

    return _edited(json, path, edit, "set path")


def _set(json: str, path: list[str | None], new: str, create: bool = True) -> str:
    def edit(value: Any, at: Any) -> Any:
        if isinstance(value, dict):
            return {**value, at: parse(new)} if create or at in value else value
        if 0 <= at < len(value):
            return [*value[:at], parse(new), *value[at + 1 :]]
        return value if not create else [parse(new), *value] if at < 0 else [*value, parse(new)]

    return _edited(json, path, edit, "set path")


def _object(names: list[str | None], values: list[str | None] | None = None) -> str:
    """Make an object of names and values, or of one array of alternating names and values."""
    if values is None:
        if len(names) % 2:
            raise Failure("2202E", "array must have even number of elements")
        names, values = names[::2], names[1::2]
    if len(names) != len(values):
        raise Failure("2202E", "mismatched array dimensions")
    if None in names:
        raise Failure("22004", "null value not allowed for object key")
    return dump(dict(zip(names, values, strict=True)))


define("-> json_get(jsonb, text) -> jsonb", _json(_field), _found(spark.field))
define("->> json_get_text(jsonb, text) -> text", _text(_field), _found(spark.field, text=True))
define("-> json_get(jsonb, int4) -> jsonb", _json(_item), _found(spark.item))
define("->> json_get_text(jsonb, int4) -> text", _text(_item), _found(spark.item, text=True))
define("#> json_path(jsonb, text[]) -> jsonb", _json(_at), _found(spark.at_path))
define("#>> json_path_text(jsonb, text[]) -> text", _text(_at), _found(spark.at_path, text=True))
define("jsonb_extract_path(jsonb, text...) -> jsonb", _json(lambda json, *path: _at(json, path)), _at_path_sql)
_text_at_path_sql = lambda args, types, result: spark.as_text(_at_path_sql(args, types, result))
define("jsonb_extract_path_text(jsonb, text...) -> text", _text(lambda json, *path: _at(json, path)), _text_at_path_sql)

define("@> json_contains(jsonb, jsonb) -> bool", lambda a, b: contains(parse(a), parse(b)))
define("<@ json_within(jsonb, jsonb) -> bool", lambda a, b: contains(parse(b), parse(a)))
define(
    "? json_has(jsonb, text) -> bool", lambda a, key: key in _keys(a), lambda args, types, result: _exists_sql(*args)
)
define("?| json_has_any(jsonb, text[]) -> bool", _has_some, _some_sql("exists"))
define("?& json_has_all(jsonb, text[]) -> bool", _has_all, _some_sql("forall"))

define("|| json_concat(jsonb, jsonb) -> jsonb", _merge, _found(spark.merged))
define("- json_without(jsonb, text) -> jsonb", lambda a, key: _without(a, [key]), _without_key_sql, fails=True)
define("- json_without(jsonb, text[]) -> jsonb", _without, _found(spark.without_keys), fails=True)
define("- json_without(jsonb, int4) -> jsonb", _without_index, _without_index_sql, fails=True)
define("jsonb_strip_nulls(jsonb) -> jsonb", lambda a: dump(_stripped(parse(a))))
define("jsonb_pretty(jsonb) -> text", _pretty)

define("jsonb_typeof(jsonb) -> text", lambda a: _NAMES[type(parse(a))], _TYPEOF_SQL)
_length_sql: Renderer = lambda args, types, result: let(_LENGTH_SQL, *args, name="x")
define("jsonb_array_length(jsonb) -> int4", _length, _length_sql, fails=True)
for _of in (*ELEMENTS, CHAR, MZ_TIMESTAMP, *ARRAYS):
    _to_jsonb: Renderer = lambda args, types, result: to_jsonb_sql(args[0], types[0])
    _text_of: Renderer = lambda args, types, result: text_sql(args[0], types[0])
    define("to_jsonb(T) -> jsonb", partial(jsonb_of, sql_type=_of), _to_jsonb, T=_of)
    define("text_of(T) -> text", partial(untyped_text, base_type=_of), _text_of, T=_of)
define("jsonb_build_object(any...) -> jsonb", _build_object, _build_object_sql, strict=False, fails=True)
_build_array = lambda *args: "[" + ", ".join(each or "null" for each in args) + "]"
define("jsonb_build_array(any...) -> jsonb", _build_array, _build_array_sql, strict=False)

_delete = lambda json, path: _edited(json, path if parse(json) else [], _deleted, "delete path")
define("#- json_delete_path(jsonb, text[]) -> jsonb", _delete, fails=True)
define("jsonb_insert(jsonb, text[], jsonb [, bool]) -> jsonb", _inserted, fails=True)
define("jsonb_set(jsonb, text[], jsonb [, bool]) -> jsonb", _set, fails=True)
define("jsonb_object(text[] [, text[]]) -> jsonb", _object, fails=True)
