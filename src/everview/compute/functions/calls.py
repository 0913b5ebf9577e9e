"""Calls of functions and casts as scalars of a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from everview.compute.functions.casts import cast_between
from everview.compute.functions.resolve import resolve
from everview.compute.ir.scalar import Call, Coalesce, Scalar, children
from everview.compute.ir.types import SqlType


def call(name: str, *args: Scalar) -> Call:
    """The call of a function or operator by its SQL name."""
    found = resolve(name, [arg.type for arg in args])
    return Call(found.function.key, args, found.result)


def cast(scalar: Scalar, to: SqlType) -> Scalar:
    """The scalar as a value of another type."""
    if scalar.type == to:
        return scalar
    found = cast_between(scalar.type, to)
    assert found is not None
    return relabeled(scalar, to) if found.key is None else Call(found.key, (scalar,), to)


def relabeled(scalar: Any, to: SqlType) -> Any:
    """The scalar under the name of a type that has the same representation.

    The type of a call may be what it goes by, as that of a cast to varchar(2) is, and then the call must keep it. And
    an expression stays what it is, for it may be one that rows are grouped by.
    """
    return Coalesce((scalar,), to) if children(scalar) else replace(scalar, type=to)
