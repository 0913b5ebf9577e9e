"""Changes of jsonb by a path, and objects from arrays of text; on Spark these are called in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.json_value import dump, parse
from everview.compute.functions.jsonb import INDEX
from everview.compute.functions.signatures import Family

FUNCTIONS = Family()
define = FUNCTIONS.define
_ABSENT = "2202E"
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


def _insert(json: str, path: list[str | None], new: str, after: bool = False) -> str:
    """A field that is there is refused; an element makes the others move on."""

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


_delete = lambda json, path: _edited(json, path if parse(json) else [], _deleted, "delete path")
define("#- json_delete_path(jsonb, text[]) -> jsonb", _delete, fails=True)
define("jsonb_insert(jsonb, text[], jsonb [, bool]) -> jsonb", _insert, fails=True)
define("jsonb_set(jsonb, text[], jsonb [, bool]) -> jsonb", _set, fails=True)
define("jsonb_object(text[] [, text[]]) -> jsonb", _object, fails=True)
