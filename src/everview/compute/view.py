"""A maintained view as a function: from changes of its inputs to changes of its output, state and errors.

There are three programs for it, with the same arrangements. The first expects that no evaluation fails, and costs
nothing for being wrong about it now and then: where one does fail, the second is run instead, which leaves failing rows
out and gives them too. What exactly went wrong with such a row is found out here, by evaluating it once more. The third
is for ticks in which all rows of some collection have to be seen, such as those that are compared with an average: few
of them will turn out to have changed, and only the state of these is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from everview.compute.delta.calendar import in_calendar
from everview.compute.delta.differentiate import differentiate
from everview.compute.delta.failures import FailingRows, separate
from everview.compute.delta.inline_laterals import inline_laterals
from everview.compute.delta.program import Failing, TickProgram, delta_of
from everview.compute.delta.push_temporal import push_temporal
from everview.compute.delta.temporal import temporal_filters
from everview.compute.engine.contract import Engine, EvaluationFailed
from everview.compute.functions.contract import Failure
from everview.compute.interpreter.scalars import Evaluator, compile_attempt
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import unrelated_groups
from everview.compute.ir.relation import Relation, types
from everview.compute.ir.types import INT8, TEXT, SqlType
from everview.compute.optimize.computed_columns import computed_columns
from everview.compute.optimize.lets import unique_lets
from everview.compute.optimize.pipeline import optimize
from everview.compute.optimize.row_by_row import columns_read
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Row, Rows, add, rows_of
from everview.compute.tick import Ticker, TickResult, TickState, TooMuch

ERROR_SCHEMA = (TEXT, TEXT)  # SQLSTATE, message
# How views are kept, as far as it shows in what is stored. In the first form temporal filters stay above joins, and
# intervals that are moved over to the row may be out of range there. In the second nothing of now is out of range. In
# the third constants that are not true bound nothing below joins. In the fourth what LATERAL computes is joined back to
# the rows that asked, for all that ever did, and outer joins keep what their padded rows cannot show. A view stays in
# the form in which it was made.
FORM = 5
MEETING_MAX = 200_000  # rows of a join without equivalences, in a small tick
UNKNOWN_FAILURE = ("XX000", "an evaluation failed")


@dataclass
class TickChanges(TickResult):
    """The changes of a tick, and of the errors: time, SQLSTATE, message."""

    errors: pa.Table = field(default_factory=lambda: rows_to_arrow({}, (INT8, *ERROR_SCHEMA)))
    careful: bool = False  # whether something failed


@dataclass(frozen=True)
class View:
    """A plan and its programs."""

    plan: Relation
    separated: Relation
    failing: tuple[FailingRows, ...]
    shared: frozenset[str] = frozenset()  # the names of arrangements that are kept elsewhere

    @staticmethod
    def of(plan: Relation, form: int = FORM, shared: Iterable[str] = ()) -> View:
        """The view that a plan defines, kept in this form."""
        inlined = inline_laterals(plan) if form > 4 else plan
        named = unique_lets(plan if inlined == plan else optimize(inlined))
        named = in_calendar(named) if form > 2 else named
        pushed = push_temporal(named, never=form > 3, further=form > 4) if form > 1 else named
        prepared = computed_columns(temporal_filters(pushed, saturating=form > 1))
        separated, failing = separate(prepared)
        return View(prepared, separated, tuple(failing), frozenset(shared))

    @cached_property
    def program(self) -> TickProgram:
        """The program for ticks in which nothing fails."""
        return differentiate(self.plan, shared=self.shared)

    @cached_property
    def careful_program(self) -> TickProgram:
        """The program for ticks in which an evaluation fails."""
        return self._alike(differentiate(self.separated, self.failing, shared=self.shared))

    @cached_property
    def stepwise_program(self) -> TickProgram:
        """The program for ticks in which too much would be looked up."""
        return self._alike(differentiate(self.plan, stepwise=True, shared=self.shared))

    @cached_property
    def times_max(self) -> int | None:
        """How many times a small tick follows at most; None for any number.

        Where n inputs of a join are unrelated, such as n totals in one row, the changes of all times meet: two for each
        time and input.
        """
        unrelated = 1 + sum(unrelated_groups(each) - 1 for each in ir.walk(self.plan) if isinstance(each, ir.Join))
        return None if unrelated == 1 else max(1, int(MEETING_MAX ** (1 / unrelated) / 2))

    @cached_property
    def columns_read(self) -> Mapping[str, set[int]]:
        """Of each input, the columns that matter."""
        return columns_read([self.plan, self.separated, *(each.plan for each in self.failing)])

    def _alike(self, program: TickProgram) -> TickProgram:
        shapes = [[(each.name, each.key, each.schema) for each in p.arrangements] for p in (self.program, program)]
        assert shapes[0] == shapes[1], "all programs keep the same state"
        return program

    @cached_property
    def _ticker(self) -> Ticker:
        return Ticker(self.program, patient=False)

    @cached_property
    def _stepwise_ticker(self) -> Ticker:
        return Ticker(self.stepwise_program)

    @cached_property
    def _careful_ticker(self) -> Ticker:
        return Ticker(self.careful_program, separated=True)

    def check(self, engine: Engine) -> None:
        """Raise NotSupported if the engine cannot maintain the view."""
        self._ticker.check(engine)
        if self.failing:
            self._careful_ticker.check(engine)

    def tick(
        self, engine: Engine, deltas: Mapping[str, pa.Table], state: TickState, within: tuple[int, int], *, first: bool
    ) -> TickChanges:
        """The changes within these times that follow from changes of the inputs; at the `first`, constants appear."""
        lower, upper = within
        tables = {**deltas, **self._constants(lower, first=first)}
        try:
            result, careful = self._run(engine, tables, state, upper), False
        except EvaluationFailed:
            result, careful = self._careful_ticker.run(engine, tables, state, upper), True
        return TickChanges(
            result.output,
            result.states,
            result.failing,
            result.statements,
            result.looked_up,
            self.errors_of(result.failing) if careful else self.no_errors,
            careful,
        )

    def _run(self, engine: Engine, tables: Mapping[str, pa.Table], state: TickState, upper: int) -> TickResult:
        try:
            return self._ticker.run(engine, tables, state, upper)
        except TooMuch:
            return self._stepwise_ticker.run(engine, tables, state, upper)

    def _constants(self, lower: int, *, first: bool) -> dict[str, pa.Table]:
        tables = {}
        for name, constant in self.program.constants:
            schema = (INT8, *constant.schema)
            rows = [((lower, *row), count) for row, count in constant.rows] if first else []
            tables[delta_of(name)] = rows_to_arrow(rows_of(rows, schema), schema)
        return tables

    @property
    def no_errors(self) -> pa.Table:
        return rows_to_arrow({}, (INT8, *ERROR_SCHEMA))

    def errors_of(self, failing: Mapping[str, pa.Table]) -> pa.Table:
        """The changes of the errors, from the changes of failing rows by the names of their steps."""
        errors: Rows = {}
        for each in self.careful_program.failing:
            self._explain(each, failing[each.step], errors)
        return rows_to_arrow(errors, (INT8, *ERROR_SCHEMA))

    def _explain(self, failing: Failing, table: pa.Table, errors: Rows) -> None:
        """Add the errors of failing rows."""
        schema = types(dict(self.careful_program.steps)[failing.step])
        attempts = [compile_attempt(each) for each in failing.scalars]
        for row, diff in rows_from_arrow(table, schema).items():
            add(errors, (row[0], *_error(attempts, row[1:])), diff)


def _error(attempts: Sequence[Evaluator], row: Row) -> tuple[str, str]:
    for attempt in attempts:
        try:
            attempt(row)
        except Failure as failure:
            return failure.sqlstate, failure.message
    return UNKNOWN_FAILURE


def inputs_of(plan: Relation) -> dict[str, tuple[SqlType, ...]]:
    """The collections that a plan reads, and their schemas."""
    bound = {each.id for each in ir.walk(plan) if isinstance(each, ir.Let)}
    return {each.id: each.schema for each in ir.walk(plan) if isinstance(each, ir.Get) and each.id not in bound}
