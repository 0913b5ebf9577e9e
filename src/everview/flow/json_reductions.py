"""Reductions over JSON values: comparing by parts, deep merges, set operations, and the union of JSON schemas."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from everview.compute.functions.json_value import dump

_RANKS: dict[type, int] = {type(None): 0, bool: 1, int: 2, float: 2, Decimal: 2, str: 3, list: 4, dict: 5}


class Irreducible(Exception):
    """Values that a reduction cannot make one of."""


def at(value: Any, pointer: str) -> Any:
    """The value that a JSON pointer points to; None if there is none."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
        else:
            return None
    return value


def compare(left: Any, right: Any) -> int:
    """A total order of JSON values: by kind, then by value."""
    ranks = _RANKS[type(left)], _RANKS[type(right)]
    if ranks[0] != ranks[1]:
        return (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])
    if isinstance(left, dict):
        left, right = sorted(left.items()), sorted(right.items())
    if isinstance(left, list | tuple):
        for one, other in zip(left, right, strict=False):
            order = _compare_items(one, other)
            if order:
                return order
        left, right = len(left), len(right)
    if left is None:
        return 0
    return int(left > right) - int(left < right)


def _compare_items(one: Any, other: Any) -> int:
    if isinstance(one, tuple):  # a member of an object: its name, then its value
        return (one[0] > other[0]) - (one[0] < other[0]) or compare(one[1], other[1])
    return compare(one, other)


def compare_by(left: Any, right: Any, key: Sequence[str]) -> int:
    """Compare the parts that the pointers of `key` point to; without a key, the whole values."""
    for pointer in key or ("",):
        order = compare(at(left, pointer), at(right, pointer))
        if order:
            return order
    return 0


def merge(left: Any, right: Any, key: Sequence[str]) -> Any:
    """Merge objects member by member, arrays by index or in the order of `key`. Else the right value wins."""
    if isinstance(left, dict) and isinstance(right, dict):
        both = {name: merge(left[name], right[name], ()) for name in left.keys() & right.keys()}
        return {**left, **right, **both}
    if isinstance(left, list) and isinstance(right, list):
        if key:
            return _merge_by_key(left, right, key)
        common = [merge(one, other, ()) for one, other in zip(left, right, strict=False)]
        return common + left[len(common) :] + right[len(common) :]
    return right


def _merge_by_key(left: list[Any], right: list[Any], key: Sequence[str]) -> list[Any]:
    """Arrays that are in order of a key, merged into one."""
    result: list[Any] = []
    first = second = 0
    while first < len(left) and second < len(right):
        order = compare_by(left[first], right[second], key)
        if order == 0:
            result.append(merge(left[first], right[second], ()))
        else:
            result.append(left[first] if order < 0 else right[second])
        first += order <= 0
        second += order >= 0
    return result + left[first:] + right[second:]


Members = dict[str, Any]


def set_operation(left: Any, right: Any, key: Sequence[str], full: bool) -> dict[str, Any]:
    """One set after another. A set is what it adds, and what it keeps (`intersect`) or drops (`remove`) before that.

    Together they are again of that form: for (X kept by f1, plus a1) kept by f2, plus a2, what is kept of X is kept by
    both, and what is added is what f2 keeps of a1, plus a2. Nothing comes before a full one, so it only adds.
    """
    as_object = any(
        isinstance(side.get(name), dict) for side in (left, right) if isinstance(side, dict) for name in _PARTS
    )
    one, other = (_parsed(side, key) for side in (left, right))
    (add1, drop1, keep1), (add2, drop2, keep2) = one, other
    added = {**_filtered(add1, drop2, keep2), **add2}
    result: dict[str, Any] = {"add": _shown(added, as_object)}
    if full:
        return result
    if keep1 is not None or keep2 is not None:
        kept = keep1 if keep1 is not None else keep2
        assert kept is not None
        if keep1 is not None and keep2 is not None:
            kept = {name: value for name, value in keep1.items() if name in keep2}
        result["intersect"] = _shown(_filtered(kept, {**drop1, **drop2}, None), as_object)
    elif drop1 or drop2:
        result["remove"] = _shown({**drop1, **drop2}, as_object)
    return result


_PARTS = ("add", "intersect", "remove")


def _parsed(value: Any, key: Sequence[str]) -> tuple[Members, Members, Members | None]:
    if not isinstance(value, dict) or set(value) - set(_PARTS):
        raise Irreducible("a set is an object of add, intersect and remove")
    if "intersect" in value and "remove" in value:
        raise Irreducible("a set has either intersect or remove, not both")
    keep = _members(value["intersect"], key) if "intersect" in value else None
    return _members(value.get("add", []), key), _members(value.get("remove", []), key), keep


def _members(given: Any, key: Sequence[str]) -> Members:
    """Members by their identity: the name in an object; in an array, the key's values or the whole value."""
    if isinstance(given, dict):
        return dict(given)
    if not isinstance(given, list):
        raise Irreducible("the members of a set are an array or an object")
    return {dump([at(each, pointer) for pointer in key or ("",)]): each for each in given}


def _filtered(members: Members, drop: Members, keep: Members | None) -> Members:
    return {name: value for name, value in members.items() if name not in drop and (keep is None or name in keep)}


def _shown(members: Members, as_object: bool) -> Any:
    return dict(sorted(members.items())) if as_object else [members[name] for name in sorted(members)]


def merge_schemas(left: Any, right: Any) -> Any:
    """A JSON schema that allows whatever either allows, as far as types, members and bounds go."""
    if not isinstance(left, dict) or not isinstance(right, dict):
        raise Irreducible("a JSON schema is an object")
    types = sorted({*_types(left), *_types(right)})
    result: dict[str, Any] = {"type": types[0] if len(types) == 1 else types} if types else {}
    if "properties" in left or "properties" in right:
        first, second = left.get("properties", {}), right.get("properties", {})
        both = {name: merge_schemas(first[name], second[name]) for name in first.keys() & second.keys()}
        result["properties"] = dict(sorted({**first, **second, **both}.items()))
    if required := sorted(set(left.get("required", ())) & set(right.get("required", ()))):
        result["required"] = required
    if "items" in left or "items" in right:
        one, other = left.get("items"), right.get("items")
        result["items"] = merge_schemas(one, other) if one is not None and other is not None else one or other
    for name, choose in (("minimum", min), ("maximum", max), ("minLength", min), ("maxLength", max)):
        if name in left and name in right:
            result[name] = choose(left[name], right[name])
    if "format" in left and left.get("format") == right.get("format"):
        result["format"] = left["format"]
    return result


def _types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type", [])
    return [given] if isinstance(given, str) else list(given)
