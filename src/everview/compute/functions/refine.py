"""What resolution must know beyond types: results that follow a literal, and arguments that go through a function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from everview.compute.functions.contract import Function
from everview.compute.functions.fields import field_scale
from everview.compute.functions.mathematics import scaled_type
from everview.compute.functions.naming import base, key_of
from everview.compute.ir.types import TEXT, Kind, SqlType, numeric

# Functions of arguments of any type, and the function that each such argument goes through first.
_THROUGH = {"concat": "text_of", "concat_ws": "text_of", "format": "text_of", "jsonb_build_array": "to_jsonb"}


def refined(function: Function, args: Sequence[SqlType], values: Sequence[Any] | None) -> SqlType | None:
    """The type of the result, where a literal argument decides it."""
    if function.key in ("round(numeric,int4)", "trunc(numeric,int4)") and values and isinstance(values[1], int):
        return scaled_type(args, values[1])
    if function.name == "extract" and values and isinstance(values[0], str):
        return numeric(38, field_scale(values[0], args[1].kind))
    return None


def literal_types(function: Function, arg_types: Sequence[SqlType]) -> Iterator[str | None]:
    """For each argument the key of the function that it goes through, None for those that are cast as usual."""
    word = _THROUGH.get(function.name)
    for place, actual in enumerate(arg_types):
        declared = function.args[min(place, len(function.args) - 1)]
        if function.name == "jsonb_build_object":
            yield key_of("text_of" if place % 2 == 0 else "to_jsonb", (_known(actual),))
        elif word and declared.kind is Kind.UNKNOWN:
            yield key_of(word, (_known(actual),))
        else:
            yield None


def _known(actual: SqlType) -> SqlType:
    if actual.kind in (Kind.UNKNOWN, Kind.VARCHAR):
        return TEXT
    return base(actual)
