"""Changes of jsonb by a path, and objects from arrays of text; on Spark these are called in Python."""

from __future__ import annotations

import re
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.json_value import dump, parse
from everview.compute.functions.naming import TEXT_ARRAY
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.ir.types import BOOLEAN, JSONB

FUNCTIONS = Family()
_add = FUNCTIONS.add
_ABSENT = "2202E"


def _container(json: str, what: str) -> Any:
    value = parse(json)
    if isinstance(value, dict | list):
        return value
    raise Failure("22023", f"cannot {what} in scalar")


_INDEX = re.compile("[+-]?[0-9]{1,10}")


def _place(step: str | None, depth: int, count: int) -> int:
    """The place in an array that a step of a path means, counted from the end if it is negative."""
    if step is None:
        raise Failure("22004", f"path element at position {depth + 1} is null")
    if not _INDEX.fullmatch(step):
        raise Failure("22P02", f'path element at position {depth + 1} is not an integer: "{step}"')
    return int(step) + (count if int(step) < 0 else 0)


def _delete(json: str, path: list[str | None]) -> str:
    value = _container(json, "delete path")
    return dump(_without(value, path, 0) if path and value else value)


def _without(value: Any, path: list[str | None], depth: int) -> Any:
    step, last = path[depth], depth + 1 == len(path)
    if isinstance(value, dict):
        if step is None:
            raise Failure("22004", f"path element at position {depth + 1} is null")
        if step not in value:
            return value
        rest = {key: each for key, each in value.items() if key != step}
        return rest if last else {**value, step: _without(value[step], path, depth + 1)}
    if not isinstance(value, list):
        return value
    place = _place(step, depth, len(value))
    if not 0 <= place < len(value):
        return value
    inside = [] if last else [_without(value[place], path, depth + 1)]
    return [*value[:place], *inside, *value[place + 1 :]]


def _insert(json: str, path: list[str | None], new: str, after: bool = False) -> str:
    value = _container(json, "set path")
    return dump(_with(value, path, parse(new), after, 0) if path else value)


def _with(value: Any, path: list[str | None], new: Any, after: bool, depth: int) -> Any:
    """A field that is there is refused; an element makes the others move on."""
    step, last = path[depth], depth + 1 == len(path)
    if isinstance(value, dict):
        if step is None:
            raise Failure("22004", f"path element at position {depth + 1} is null")
        if step not in value:
            return {**value, step: new} if last else value
        if last:
            raise Failure("22023", "cannot replace existing key")
        return {**value, step: _with(value[step], path, new, after, depth + 1)}
    if not isinstance(value, list):
        return value
    place = _place(step, depth, len(value))
    if not last:
        if not 0 <= place < len(value):
            return value
        return [*value[:place], _with(value[place], path, new, after, depth + 1), *value[place + 1 :]]
    if place < 0:
        return [new, *value]
    where = min(place + after, len(value))
    return [*value[:where], new, *value[where:]]


def _object(names: list[str | None], values: list[str | None] | None = None) -> str:
    """Of names and values, or of an array in which they take turns."""
    if values is None:
        if len(names) % 2:
            raise Failure(_ABSENT, "array must have even number of elements")
        names, values = names[::2], names[1::2]
    if len(names) != len(values):
        raise Failure(_ABSENT, "mismatched array dimensions")
    if None in names:
        raise Failure("22004", "null value not allowed for object key")
    return dump(dict(zip(names, values, strict=True)))


_add("#-", (JSONB, TEXT_ARRAY), JSONB, _delete, not_on_spark("#-"), word="json_delete_path", fails=True)
for _more in ((), (BOOLEAN,)):
    _add("jsonb_insert", (JSONB, TEXT_ARRAY, JSONB, *_more), JSONB, _insert, not_on_spark("jsonb_insert"), fails=True)
for _count in (1, 2):
    _add("jsonb_object", (TEXT_ARRAY,) * _count, JSONB, _object, not_on_spark("jsonb_object"), fails=True)
