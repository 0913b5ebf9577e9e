"""SQL types as JSON, for programs of ours: they then have the very columns that the view has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.compute.ir.types import NUMERIC_SCALE, Kind, SqlType


def type_json(sql_type: SqlType) -> dict[str, Any]:
    """A type with its modifiers."""
    said: dict[str, Any] = {"name": sql_type.kind.value}
    if sql_type.kind is Kind.NUMERIC:
        said |= {"precision": sql_type.precision, "scale": sql_type.scale, "constrained": sql_type.constrained}
    if sql_type.length is not None:
        said["length"] = sql_type.length
    if sql_type.element is not None:
        said["element"] = type_json(sql_type.element)
    return said


def type_from_json(said: Mapping[str, Any]) -> SqlType:
    """And back."""
    kind = Kind(said["name"])
    if kind is Kind.NUMERIC:
        scale = int(said.get("scale", NUMERIC_SCALE))
        return SqlType(kind, scale, int(said.get("precision", 38)), constrained=bool(said.get("constrained", True)))
    element = said.get("element")
    return SqlType(kind, length=said.get("length"), element=None if element is None else type_from_json(element))
