"""The JSON schemas by which a connector says what settings it takes: checking settings, and finding what is secret.

To check, only what such schemas use is understood: properties, required, types, enumerations, constants, lengths and
bounds, items, and alternatives (oneOf, anyOf, allOf), with references into the same document. A setting that no schema
names is an error, unless additional properties are allowed by name: it is most likely a slip. What is secret is found
in every branch of a schema, whether or not the settings are of that branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from everview.flow.errors import InvalidMaterialization

Schema = Mapping[str, Any]
_DEPTH_MAX = 20
_NESTED_MAX = 100  # what lies deeper in settings is secret


def check(title: str, value: Any, schema: Schema) -> None:
    """An error that names every place where settings do not match the schema."""
    wrong = list(_problems(value, schema, schema, "", 0))
    if wrong:
        raise InvalidMaterialization(
            f"{title} is not what the connector takes",
            detail="; ".join(f'"{path or "/"}" {why}' for path, why in wrong),
        )


def secrets(value: Any, schema: Schema) -> set[str]:
    """The strings at places that the schema calls secret."""
    return set(_secrets(value, schema, schema, 0, inside=False))


def marked(schema: Schema, annotation: str) -> list[tuple[str, ...]]:
    """The places that carry an annotation, such as `x-delta-updates`, as paths of names."""
    return list(_marked(schema, schema, annotation, (), 0))


def escaped(name: str) -> str:
    """A name as a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _parts(schema: Schema, root: Schema, depth: int) -> Iterator[Schema]:
    """The schema with all that it refers to; alternatives are left to the caller."""
    if depth > _DEPTH_MAX:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        yield from _parts(_referred(reference, root), root, depth + 1)
    for each in schema.get("allOf", ()):
        yield from _parts(each, root, depth + 1)


def _referred(reference: str, root: Schema) -> Any:
    found: Any = root
    for part in filter(None, reference.lstrip("#").split("/")):
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, Mapping) else {}
    return found


def _alternatives(schema: Schema) -> list[list[Schema]]:
    return [list(schema[name]) for name in ("oneOf", "anyOf") if schema.get(name)]


def _problems(value: Any, schema: Schema, root: Schema, path: str, depth: int) -> Iterator[tuple[str, str]]:
    parts = list(_parts(schema, root, depth))
    for part in parts:
        yield from _own_problems(value, part, path)
        for choices in _alternatives(part):
            # Of alternatives the one counts that fits best.
            yield from min(
                (list(_problems(value, {**_names(parts), **each}, root, path, depth + 1)) for each in choices), key=len
            )
    if isinstance(value, Mapping):
        yield from _member_problems(value, parts, root, path, depth)
    elif isinstance(value, list):
        for part in parts:
            items = part.get("items")
            if isinstance(items, Mapping):
                for at, each in enumerate(value):
                    yield from _problems(each, items, root, f"{path}/{at}", depth + 1)


def _names(parts: list[Schema]) -> dict[str, Any]:
    """The properties beside alternatives. Each alternative allows them; their own values are checked elsewhere."""
    return {
        "x-known": sorted({name for part in parts for name in (*part.get("properties", ()), *part.get("x-known", ()))})
    }


def _member_problems(
    value: Mapping[str, Any], parts: list[Schema], root: Schema, path: str, depth: int
) -> Iterator[tuple[str, str]]:
    known = {name: each for part in parts for name, each in part.get("properties", {}).items()}
    beside = {name for part in parts for name in part.get("x-known", ())}
    choices = any(_alternatives(part) for part in parts)
    extra = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
    patterns = [each for part in parts for each in part.get("patternProperties", {}).items()]
    for name, each in value.items():
        place = f"{path}/{escaped(name)}"
        if name in known:
            yield from _problems(each, known[name], root, place, depth + 1)
            continue
        matching = [schema for pattern, schema in patterns if _matches(pattern, name)]
        schemas = [*matching, *(each for each in extra if isinstance(each, Mapping))]
        for schema in schemas:
            yield from _problems(each, schema, root, place, depth + 1)
        if not schemas and name not in beside and not choices and (known or beside) and True not in extra:
            close = get_close_matches(name, [*known, *beside], n=1)
            yield place, f"is no setting of it; did you mean {close[0]}?" if close else "is no setting of it"
    for name in dict.fromkeys(name for part in parts for name in part.get("required", ())):
        if name not in value:
            about = known.get(name, {})
            shown = about.get("title") or about.get("description") or ""
            yield f"{path}/{escaped(name)}", "is missing" + (f" ({shown})" if shown else "")


def _own_problems(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    types = schema.get("type")
    wanted = [types] if isinstance(types, str) else list(types or ())
    if wanted and not any(_is(value, each) for each in wanted):
        yield path, f"must be {' or '.join(wanted)}, and is {_type_of(value)}"
        return
    if "const" in schema and value != schema["const"]:
        yield path, f"must be {schema['const']}"
    if schema.get("enum") and value not in schema["enum"]:
        yield path, f"must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield path, f"must have at least {schema['minLength']} characters"
        if len(value) > schema.get("maxLength", len(value)):
            yield path, f"must have at most {schema['maxLength']} characters"
        if schema.get("pattern") and not _matches(schema["pattern"], value):
            yield path, f"must match {schema['pattern']}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield path, f"must be at least {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield path, f"must be at most {schema['maximum']}"


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # of another dialect: left to the connector
        return True


def _is(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return not isinstance(value, bool) and (
            isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        )
    return _type_of(value) == kind


def _type_of(value: Any) -> str:
    kinds = {bool: "boolean", str: "string", list: "array", int: "integer", float: "number", type(None): "null"}
    return kinds.get(type(value), "object")


def _secrets(value: Any, schema: Any, root: Schema, depth: int, *, inside: bool) -> Iterator[str]:
    branches = _branches(schema, root)
    inside = inside or depth > _NESTED_MAX
    inside = inside or any(each.get("secret") is True or each.get("airbyte_secret") is True for each in branches)
    if isinstance(value, Mapping):
        for name, each in value.items():
            for found in _of_member(name, branches) or [{}]:
                yield from _secrets(each, found, root, depth + 1, inside=inside)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            for found in _of_item(at, branches) or [{}]:
                yield from _secrets(each, found, root, depth + 1, inside=inside)
    elif inside and value is not None and not isinstance(value, bool):
        yield str(value)


def _branches(schema: Any, root: Schema) -> list[Schema]:
    """The schema with all that may hold for the same value: references, alternatives, conditions."""
    found: dict[int, Schema] = {}
    open_ = [schema]
    while open_:
        each = open_.pop()
        if not isinstance(each, Mapping) or id(each) in found:
            continue
        found[id(each)] = each
        reference = each.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            open_.append(_referred(reference, root))
        for name in ("allOf", "oneOf", "anyOf"):
            open_ += each.get(name) or ()
        open_ += [each.get(name) for name in ("if", "then", "else", "not")]
        for name in ("dependentSchemas", "dependencies"):
            open_ += (each.get(name) or {}).values()
    return list(found.values())


def _of_member(name: str, branches: Sequence[Schema]) -> list[Any]:
    """The schemas of a member of an object."""
    found = []
    for each in branches:
        own = [each["properties"][name]] if name in each.get("properties", {}) else []
        own += [one for pattern, one in each.get("patternProperties", {}).items() if _matches(pattern, name)]
        found += own or [each.get("additionalProperties")]
        found.append(each.get("unevaluatedProperties"))
    return [each for each in found if isinstance(each, Mapping)]


def _of_item(at: int, branches: Sequence[Schema]) -> list[Any]:
    """The schemas of an item of a list."""
    found = []
    for each in branches:
        items, first = each.get("items"), each.get("prefixItems") or ()
        if isinstance(items, list):  # as older schemas say it
            items, first = each.get("additionalItems"), items
        found += [first[at] if at < len(first) else items, each.get("contains"), each.get("unevaluatedItems")]
    return [each for each in found if isinstance(each, Mapping)]


def _marked(
    schema: Schema, root: Schema, annotation: str, path: tuple[str, ...], depth: int
) -> Iterator[tuple[str, ...]]:
    if depth > _DEPTH_MAX:
        return
    for part in _parts(schema, root, depth):
        if part.get(annotation):
            yield path
        for name, each in part.get("properties", {}).items():
            yield from _marked(each, root, annotation, (*path, name), depth + 1)
