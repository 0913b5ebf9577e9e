"""Histories of collections, and a view maintained over them tick by tick on the local engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from everview.compute.delta.differentiate import differentiate
from everview.compute.delta.program import TickProgram, delta_of
from everview.compute.engine.local.collection import Row, Rows, add, add_all
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.ir.relation import Relation

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
    """A view, its state, and all changes of its output so far."""

    plan: Relation
    program: TickProgram = field(init=False)
    states: dict[str, Rows] = field(default_factory=dict)
    output: list[tuple[Row, int, int]] = field(default_factory=list)
    ticks: int = 0

    def __post_init__(self) -> None:
        self.program = differentiate(self.plan)
        self.states = {each.name: {} for each in self.program.arrangements}

    def tick(self, history: Mapping[str, Updates], lower: int, upper: int) -> None:
        """Advance from `lower` to `upper`."""
        scope = {delta_of(name): timed(updates, lower, upper) for name, updates in history.items()}
        for name, constant in self.program.constants:
            rows = {(lower, *row): count for row, count in evaluate(constant, {}).rows.items()}
            scope[delta_of(name)] = rows if self.ticks == 0 else {}
        scope.update(self.states)
        for name, step in self.program.steps:
            result = evaluate(step, scope)
            assert not result.errors, result.errors
            scope[name] = result.rows
        for each in self.program.arrangements:
            changed = dict(self.states[each.name])
            grown: Rows = {}
            for row, diff in scope[each.source].items():
                add(grown, row[1:], diff)
            add_all(changed, grown)
            self.states[each.name] = changed
        for row, diff in scope[self.program.output].items():
            assert lower <= row[0] < upper, "changes lie within the tick"
            self.output.append((row[1:], row[0], diff))
        self.ticks += 1
