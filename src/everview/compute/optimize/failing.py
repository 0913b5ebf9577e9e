"""Which expressions can fail, and so must not see rows that they would not have seen."""

from __future__ import annotations

from collections.abc import Iterable

from everview.compute.functions import lookup
from everview.compute.functions.lookup import can_fail
from everview.compute.ir.scalar import Call, Scalar, walk


def any_can_fail(scalars: Iterable[Scalar]) -> bool:
    """Whether the evaluation of one of them fails for some row."""
    return any(can_fail(scalar) for scalar in scalars)


def is_volatile(scalar: Scalar) -> bool:
    """Whether the value depends on more than the row."""
    return any(isinstance(part, Call) and lookup.function(part.function).volatile for part in walk(scalar))
