"""A value under the name of another type that has the same representation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from everview.compute.ir.scalar import Coalesce, children
from everview.compute.ir.types import SqlType


def relabeled(scalar: Any, to: SqlType) -> Any:
    """The scalar as one of type `to`.

    The type of a call may be what it goes by, as that of a cast to varchar(2) is, and then the call must keep it. And
    an expression stays what it is, for it may be one that rows are grouped by.
    """
    return Coalesce((scalar,), to) if children(scalar) else replace(scalar, type=to)
