"""Calls that are computed below the place where they stand: aggregates and window functions, and their placeholders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from everview.compute.functions.registry import AGGREGATES, WINDOWS
from everview.compute.ir.relation import Aggregate
from everview.compute.sql import hir
from everview.compute.sql.hir import Placeholder

FUNCTION_SCHEMAS = ("pg_catalog", "information_schema", "mz_catalog", "mz_internal", "mz_unsafe")
AGGREGATE_NAMES = frozenset(function.name for function in AGGREGATES.values())
WINDOW_NAMES = frozenset(function.name for function in WINDOWS.values())


def fill(scalar: hir.HScalar, value: Callable[[Placeholder], hir.HScalar | None]) -> hir.HScalar:
    """The scalar with values for placeholders of this query, also for those in queries inside."""
    return hir.map_placeholders(scalar, value, around=False)


@dataclass
class Calls:
    """Aggregates and window functions met so far. `aggregates` or `windows` is None where none are allowed."""

    aggregates: list[Aggregate] | None = None
    windows: list[Any] | None = None
    named: Mapping[str, Any] = field(default_factory=dict)  # the windows of the WINDOW clause
    groupings: list[tuple[hir.HScalar, ...]] = field(default_factory=list)
