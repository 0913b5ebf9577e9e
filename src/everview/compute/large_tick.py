"""Large ticks: hydration and catching up, run where the data are.

The same program, over whole collections instead of what the driver looked up: what an arrangement holds is read in
full, and nothing is looked up. So it takes one evaluation on all cores, however much there is, and the result is the
same as that of a small tick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from everview.compute.arranged import Reading
from everview.compute.delta.program import (
    BEFORE,
    BUCKET_BITS,
    NEXT,
    TICK_END,
    TIME,
    Arrangement,
    TickProgram,
    at,
    delta_of,
    updates_of,
)
from everview.compute.delta.prune import prune
from everview.compute.engine.contract import Early, EvaluationFailed, LargeEngine, Stored
from everview.compute.functions.resolve import call
from everview.compute.hydration import can_hydrate, hydration_steps
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, Steps
from everview.compute.ir.scalar import Column, Literal
from everview.compute.ir.types import INT8, SqlType
from everview.compute.stored_state import time_before
from everview.compute.tick import empty_table
from everview.compute.view import View
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.selection import Selection
from everview.storage.staging import Staged
from everview.storage.subscribe import selections


@dataclass(frozen=True, slots=True)
class LargeChanges:
    """Staged changes of the output and the arrangements, by the ids of their collections, and the errors."""

    staged: Mapping[GlobalId, Staged | pa.Table]
    errors: pa.Table
    careful: bool


@dataclass(frozen=True)
class LargeTick:
    """A tick from `lower` to `upper`, the `first` or a later one."""

    environment: Environment
    view: View
    output: GlobalId
    states: Mapping[str, GlobalId]
    readings: Mapping[str, Reading]  # of the arrangements that are shared
    inputs: Mapping[GlobalId, tuple[SqlType, ...]]
    lower: int
    upper: int
    first: bool

    def run(self, engine: LargeEngine) -> LargeChanges:
        """Compute and write everything; nothing is committed yet."""
        hydrates = self.first and self.upper == self.lower + 1 and can_hydrate(self.view.program)
        run = self._hydrate if hydrates else self._run
        try:
            return run(engine, self.view.program, separated=False)
        except EvaluationFailed:
            return run(engine, self.view.careful_program, separated=True)

    def hydrate_result_first(
        self, engine: LargeEngine, then: Callable[[Staged | pa.Table | None], None]
    ) -> Mapping[GlobalId, Staged | pa.Table]:
        """Hand the result over as soon as it is written, then write the arrangements, by their collections' ids."""
        return self._hydrate(engine, self.view.program, separated=False, then=then).staged

    def hydrate_state(self, engine: LargeEngine) -> Mapping[GlobalId, Staged | pa.Table]:
        """Write only the arrangements."""
        return self._hydrate(engine, self.view.program, separated=False, result=False).staged

    def _hydrate(
        self,
        engine: LargeEngine,
        program: TickProgram,
        *,
        separated: bool,
        result: bool = True,
        then: Callable[[Staged | pa.Table | None], None] | None = None,
    ) -> LargeChanges:
        """The first time alone, from the contents of the inputs."""
        plan = self.view.separated if separated else self.view.plan
        failing = [each.plan for each in self.view.failing] if separated else []
        steps, kept = hydration_steps(program.kept, plan if result else None, failing, self.lower)
        left, nothing = prune(steps, ())
        targets = {step: self.states[name] for name, step in kept.items()}
        if result:
            targets["output"] = self.output
        with ExitStack() as open_while_read:
            stored = {
                id: self._open(open_while_read, self.environment.contents(id, self.lower), schema)
                for id, schema in self.inputs.items()
            }
            landings = {name: self.environment.landing(id) for name, id in targets.items() if name not in nothing}
            names = [f"failing:{place}" for place in range(len(failing))]
            collected = [name for name in names if name not in nothing]
            early = None if then is None else _early(then, empty="output" in nothing)
            written, tables = engine.run_large(left, stored, landings, collected, separated=separated, early=early)
        relations = dict(steps)
        rows = {
            each.step: tables[name] if name in tables else empty_table(ir.types(relations[name]))
            for name, each in zip(names, program.failing, strict=False)
        }
        errors = self.view.errors_of(rows) if separated else self.view.no_errors
        return LargeChanges({targets[name]: staged for name, staged in written.items()}, errors, separated)

    def _run(self, engine: LargeEngine, program: TickProgram, *, separated: bool) -> LargeChanges:
        with ExitStack() as open_while_read:
            steps, stored = self._inputs(open_while_read)
            constants = [
                (delta_of(name), at(constant if self.first else ir.Constant((), constant.schema), self.lower))
                for name, constant in program.constants
            ]
            readings = self._readings(program, open_while_read, stored)
            steps = _in_order([*steps, *constants, *program.steps], readings)
            steps = [(TICK_END, ir.Constant((((self.upper,), 1),), (INT8,))), *steps]
            due = {each.arrangement: each.reading for stage in program.stages for each in stage.lookups if each.due}
            targets: dict[str, GlobalId] = {}
            for arrangement in program.kept:
                targets[f"kept:{arrangement.name}"] = self.states[arrangement.name]
                come = ir.Get(due.get(arrangement.name, ""), arrangement.schema[1:])
                steps.append((f"kept:{arrangement.name}", self._kept(arrangement, dict(program.steps), come)))
            targets["output"] = self.output
            get = ir.Get(program.output, ir.types(dict(program.steps)[program.output]))
            steps.append(("output", updates_of(get) if program.moments else get))
            landings = {name: self.environment.landing(id) for name, id in targets.items()}
            left, nothing = prune(steps, ())
            failing = [each.step for each in program.failing if each.step not in nothing]
            wanted = {name: landing for name, landing in landings.items() if name not in nothing}
            written, tables = engine.run_large(left, stored, wanted, failing, separated=separated)
            relations = dict(program.steps)
            tables |= {
                each.step: empty_table(ir.types(relations[each.step]))
                for each in program.failing
                if each.step in nothing
            }
        errors = self.view.errors_of(tables) if separated else self.view.no_errors
        return LargeChanges({targets[name]: staged for name, staged in written.items()}, errors, separated)

    def _inputs(self, stack: ExitStack) -> tuple[Steps, dict[str, Stored]]:
        """The timed updates of the inputs; at the start these are the contents, all at that time."""
        steps: list[tuple[str, Relation]] = []
        stored: dict[str, Stored] = {}
        for id, schema in self.inputs.items():
            pieces: list[Relation] = []
            for selection, time in selections(self.environment, id, self.lower, self.upper, snapshot=self.first):
                name = f"changes:{id}" if time is None else f"contents:{id}"
                stored[name] = self._open(stack, selection, schema, timed=time is None)
                pieces.append(ir.Get(name, (INT8, *schema)) if time is None else at(ir.Get(name, schema), time))
            steps.append((delta_of(id), pieces[0] if len(pieces) == 1 else ir.Union(tuple(pieces))))
        return steps, stored

    def _open(
        self, stack: ExitStack, selection: Selection, schema: tuple[SqlType, ...], *, timed: bool = False
    ) -> Stored:
        return Stored(stack.enter_context(selection), timed, len(schema))

    def _readings(
        self, program: TickProgram, stack: ExitStack, stored: dict[str, Stored]
    ) -> list[tuple[str, Relation]]:
        """The tables that the driver would look up: whole arrangements, for every path of a join."""
        pieces: dict[str, list[Relation]] = {name: [] for name, _ in program.readings}
        arrangements = {each.name: each for each in program.arrangements}
        for lookup in (each for stage in program.stages for each in stage.lookups):
            arrangement = arrangements[lookup.arrangement]
            if lookup.first is not None:  # of which the changes are a part
                pieces[lookup.reading].append(ir.Get(lookup.sources[0].table, (INT8, *arrangement.schema)))
            if self.first:
                continue
            name, shared = f"state:{arrangement.name}", self.readings.get(arrangement.name)
            schema = arrangement.schema if shared is None else shared.schema
            if name not in stored:
                id = self.states[arrangement.name] if shared is None else shared.id
                contents = self.environment.contents(id, time_before(self.environment, id, self.lower))
                stored[name] = self._open(stack, contents, schema)
            rows: Relation = ir.Get(name, schema)
            if shared is not None:
                rows = shared.relation(rows)
            if lookup.due:
                due = ir.Filter(rows, (call("<", Column(1, INT8), Literal(self.upper, INT8)),))
                rows = ir.Project(due, tuple(range(1, len(arrangement.schema))))
            if lookup.first is not None:
                rows = at(rows, BEFORE)
            pieces[lookup.reading].append(rows if lookup.tag is None else at(rows, lookup.tag))
        schemas = dict(program.readings)
        return [
            (name, ir.Union(tuple(each)) if len(each) > 1 else each[0] if each else ir.Constant((), schemas[name]))
            for name, each in pieces.items()
        ]

    def _put_off(self, arrangement: Arrangement, source: Relation, come: ir.Get) -> Relation:
        """Updates beyond the tick, without the pending updates that are due, with their buckets, at one time."""
        later = ir.Filter(source, (call(">=", TIME, Literal(self.upper, INT8)),))
        both = ir.Union((later, ir.Negate(come)))
        width = ir.arity(both)
        bucket = call("/", TIME, Literal(1 << BUCKET_BITS, INT8))
        return at(ir.Project(ir.Map(both, (bucket,)), (width, *range(width))), self.lower)

    def _kept(self, arrangement: Arrangement, relations: Mapping[str, Relation], come: ir.Get) -> Relation:
        """The rows to add to an arrangement, at one time, for nobody reads the times in between."""
        source = ir.Get(arrangement.source, ir.types(relations[arrangement.source]))
        width = ir.arity(source)
        if arrangement.pending:
            return self._put_off(arrangement, source, come)
        if not arrangement.totals:
            return at(ir.Project(source, tuple(range(1, width))), self.lower)
        before, last = call("=", TIME, Literal(BEFORE, INT8)), call("is null", NEXT)
        counted = call("<>", Column(2 + len(arrangement.key), INT8), Literal(0, INT8))
        new = ir.Filter(source, (last, call("<>", TIME, Literal(BEFORE, INT8)), counted))
        old = ir.Filter(source, (before, call("is not null", NEXT)))
        rows = tuple(range(2, width))
        return at(ir.Union((ir.Project(new, rows), ir.Negate(ir.Project(old, rows)))), self.lower)


def _early(then: Callable[[Staged | pa.Table | None], None], *, empty: bool) -> Early | None:
    if not empty:
        return Early(("output",), lambda written: then(written["output"]))
    then(None)
    return None


def _in_order(steps: Steps, readings: Steps) -> list[tuple[str, Relation]]:
    """Steps and readings, each behind what it reads: a few readings have changes in them that steps compute."""
    names = {name for name, _ in steps}
    waiting = {name: {each.id for each in ir.walk(of) if isinstance(each, ir.Get)} & names for name, of in readings}
    ordered = [(name, reading) for name, reading in readings if not waiting[name]]
    done: set[str] = set()
    for step in steps:
        ordered.append(step)
        done.add(step[0])
        ordered += [each for each in readings if step[0] in waiting[each[0]] and waiting[each[0]] <= done]
    return ordered
