"""A value under the name of another type that has the same representation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from everview.compute.functions.registry import FUNCTIONS
from everview.compute.ir.scalar import Call, Coalesce
from everview.compute.ir.types import SqlType


def relabeled(scalar: Any, to: SqlType) -> Any:
    """The scalar as one of type `to`.

    The type of a call may be what it goes by, as that of a cast to varchar(2) is, and then the call must keep it.
    """
    if isinstance(scalar, Call) and FUNCTIONS[scalar.function].typed:
        return Coalesce((scalar,), to)
    return replace(scalar, type=to)
