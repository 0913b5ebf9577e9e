"""Histories of collections, and a view maintained over them tick by tick on the local engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from everview.compute.delta.program import Arrangement, delta_of
from everview.compute.delta.temporal import temporal_filters
from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.ir.relation import Filter, Get, Relation, types, walk
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import INT8, TEXT
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Row, Rows, add, add_all
from everview.compute.view import View
from everview.timely.hashing import I64, hash_rows
from everview.timely.ordering import Sort

Updates = Sequence[tuple[Row, int, int]]  # row, time, diff


def contents(updates: Updates, time: int) -> Rows:
    """A collection at a time."""
    rows: Rows = {}
    for row, when, diff in updates:
        if when <= time:
            add(rows, row, diff)
    return rows


def timed(updates: Updates, lower: int, upper: int) -> Rows:
    """The updates in `[lower, upper)` as a timed relation."""
    rows: Rows = {}
    for row, when, diff in updates:
        if lower <= when < upper:
            add(rows, (when, *row), diff)
    return rows


@dataclass
class Maintained:
    """A view, its state, and all changes of its output and its errors so far."""

    plan: Relation
    engine: Engine = field(default_factory=LocalEngine)
    states: dict[str, Rows] = field(default_factory=dict)
    output: list[tuple[Row, int, int]] = field(default_factory=list)
    errors: list[tuple[Row, int, int]] = field(default_factory=list)
    ticks: int = 0
    careful: int = 0
    statements: int = 0

    def __post_init__(self) -> None:
        self.view = View.of(self.plan)
        self.states = {each.name: {} for each in self.view.program.arrangements}

    def tick(self, history: Mapping[str, Updates], lower: int, upper: int) -> None:
        """Advance from `lower` to `upper`."""
        scope = {
            delta_of(get.id): rows_to_arrow(timed(history[get.id], lower, upper), (INT8, *get.schema))
            for get in walk(self.plan)
            if isinstance(get, Get) and get.id in history
        }
        result = self.view.tick(self.engine, scope, self, (lower, upper), first=self.ticks == 0)
        self.careful += result.careful
        self.statements += result.statements
        for each in self.view.program.arrangements:
            changed = dict(self.states[each.name])
            add_all(changed, rows_from_arrow(result.states[each.name], each.schema))
            self.states[each.name] = changed
            assert all(count > 0 for count in changed.values()) or not each.totals
            assert not each.pending or all(row[1] >= upper for row in changed), "what is pending is yet to come"
        schema = types(self.plan)
        for row, diff in rows_from_arrow(result.output, (INT8, *schema)).items():
            assert lower <= row[0] < upper, "changes lie within the tick"
            self.output.append((row[1:], row[0], diff))
        for row, diff in rows_from_arrow(result.errors, (INT8, TEXT, TEXT)).items():
            self.errors.append((row[1:], row[0], diff))
        self.ticks += 1

    def look_up(self, arrangement: Arrangement, hashes: I64 | None) -> pa.Table:
        """Rows by hash."""
        table = rows_to_arrow(self.states[arrangement.name], arrangement.schema)
        if hashes is None:
            return table
        own = hash_rows([table.column(index) for index in arrangement.key], table.num_rows)
        return table.filter(pa.array(np.isin(own, hashes)))

    def look_up_first(
        self, arrangement: Arrangement, hashes: I64 | None, sorts: Sequence[Sort], counts: I64
    ) -> pa.Table:
        """Rows by hash, all of them."""
        return self.look_up(arrangement, hashes)

    def rows_max(self, arrangement: Arrangement, hashes: I64) -> int:
        """How many rows have these hashes."""
        return int(self.look_up(arrangement, hashes).num_rows)

    def due(self, arrangement: Arrangement, upper: int) -> pa.Table:
        """Pending updates before `upper`."""
        rows = {row[1:]: diff for row, diff in self.states[arrangement.name].items() if row[1] < upper}
        return rows_to_arrow(rows, arrangement.schema[1:])


def has_constant_filter(plan: Relation) -> bool:
    """Whether some filter has no row to decide about: no view has one, and what is below it may be computed or not."""
    filters = (each for each in walk(temporal_filters(plan)) if isinstance(each, Filter))
    return any(isinstance(predicate, Literal) for each in filters for predicate in each.predicates)
