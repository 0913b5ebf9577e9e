"""Calls that are computed below the place where they stand: aggregates and window functions, and their placeholders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from everview.compute.functions.registry import AGGREGATES, WINDOWS
from everview.compute.ir.relation import Aggregate
from everview.compute.ir.scalar import Scalar, transform
from everview.compute.ir.types import SqlType
from everview.compute.sql import hir

AGGREGATE_NAMES = frozenset(function.name for function in AGGREGATES.values())
WINDOW_NAMES = frozenset(function.name for function in WINDOWS.values())


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Where the value of aggregate or window function number `index` will be."""

    kind: str
    index: int
    type: SqlType
    args: tuple[Scalar, ...] = ()


def fill(scalar: hir.HScalar, value: Callable[[Placeholder], hir.HScalar | None], depth: int = 0) -> hir.HScalar:
    """The scalar with values for placeholders, also for those in queries inside, which are compared with them."""

    def look(part: hir.HScalar) -> hir.HScalar | None:
        if isinstance(part, hir.Subquery):
            return replace(part, query=hir.map_scalars(part.query, lambda each, at: fill(each, value, at), depth + 1))
        found = value(part) if isinstance(part, Placeholder) else None
        return found if found is None or depth == 0 else hir.deepened(found, depth)

    return transform(scalar, look)


@dataclass
class Calls:
    """Aggregates and window functions met so far. `aggregates` is None where none are allowed."""

    aggregates: list[Aggregate] | None = None
    windows: list[Any] | None = None
    groupings: list[tuple[hir.HScalar, ...]] = field(default_factory=list)
