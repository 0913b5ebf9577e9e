"""Calls that are computed below the place where they stand: aggregates and window functions, and their placeholders."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from everview.compute.functions.registry import AGGREGATES, WINDOWS
from everview.compute.ir.relation import Aggregate
from everview.compute.ir.scalar import Scalar
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


@dataclass
class Calls:
    """Aggregates and window functions met so far. `aggregates` is None where none are allowed."""

    aggregates: list[Aggregate] | None = None
    windows: list[Any] | None = None
    groupings: list[tuple[hir.HScalar, ...]] = field(default_factory=list)
