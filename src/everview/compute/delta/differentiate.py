"""`differentiate`: a plan to its tick program, bottom up, by the rule of each operator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from everview.compute.delta import extremes, join, per_key, temporal, totals
from everview.compute.delta.failures import FailingRows
from everview.compute.delta.program import (
    Arrangement,
    Failing,
    First,
    Lookup,
    Source,
    TickProgram,
    delta_of,
    reads_all,
    timed_get,
    untimed,
    updates_of,
)
from everview.compute.delta.stages import stages
from everview.compute.delta.trace import trace
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import with_scalars
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Column, Scalar, shift
from everview.compute.ir.types import INT8, SqlType


def differentiate(
    plan: Relation, failing: Sequence[FailingRows] = (), *, stepwise: bool = False, shared: Collection[str] = ()
) -> TickProgram:
    """The program that maintains a plan with its computed columns, and the rows that fail in it if they are separate.

    With and without those the program has the same arrangements. So it has if it goes `stepwise`: keys are not taken
    from where all rows are read, but from what is computed of these. Arrangements of the names `shared` are kept
    elsewhere.
    """
    build = Build(stepwise=stepwise)
    change = build.delta(plan)
    output = build.step(change.relation)
    missing = tuple(Failing(build.step(build.updates(each.plan)).id, each.scalars) for each in failing)
    arrangements = [replace(each, shared=True) if each.name in shared else each for each in build.arrangements]
    kept = (each.source for each in arrangements if not each.shared)
    wanted = {output.id, *kept, *(each.step for each in missing)}
    return TickProgram(
        tuple(build.steps.items()),
        tuple(arrangements),
        tuple(build.readings.items()),
        stages(build.steps, build.lookups, wanted, build.cut),
        tuple(build.constants),
        output.id,
        change.front == 2,
        missing,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """The change of a plan: timed, with one column in front, or moments, with two."""

    relation: Relation
    front: int = 1


@dataclass
class Totals:
    """Totals of a Reduce that are being built: first their look-up, then the step that updates them."""

    build: Build
    place: int
    reading: ir.Get

    def follow(self, accumulated: Relation) -> Relation:
        """The step, which the arrangement follows from now on."""
        step = self.build.step(accumulated)
        arrangements = self.build.arrangements
        arrangements[self.place] = replace(arrangements[self.place], source=step.id)
        return step


class Build:
    """A program in the making. Equal plans and equal relations are there once."""

    def __init__(self, *, stepwise: bool = False) -> None:
        self._stepwise = stepwise
        self.steps: dict[str, Relation] = {}
        self.arrangements: list[Arrangement] = []
        self.lookups: list[Lookup] = []
        self.readings: dict[str, tuple[SqlType, ...]] = {}
        self.constants: list[tuple[str, ir.Constant]] = []
        self.cut: set[str] = set()
        self._names: dict[Relation, str] = {}
        self._changes: dict[Relation, Change] = {}
        self._bound: dict[str, Change] = {}
        self._plans: dict[str, Relation] = {}
        self._lets: dict[str, Relation] = {}

    def delta(self, plan: Relation) -> Change:
        """The change of a plan."""
        if isinstance(plan, ir.Let):  # its name is its own, as that of every Let in a plan
            change = self.delta(plan.value)
            self._lets.setdefault(plan.id, plan.value)
            self._bound[plan.id] = replace(change, relation=self.step(change.relation))
            return self.delta(plan.body)
        known = self._changes.get(plan)
        if known is None:
            known = self._changes[plan] = self._delta(plan)
        return known

    def updates(self, plan: Relation) -> Relation:
        """The change of a plan, timed."""
        change = self.delta(plan)
        return change.relation if change.front == 1 else updates_of(self.step(change.relation))

    def _delta(self, plan: Relation) -> Change:
        match plan:
            case ir.Constant():
                name = f"constant{len(self.constants)}"
                self.constants.append((name, plan))
                return Change(timed_get(delta_of(name), plan.schema))
            case ir.Get(id, schema):
                return self._bound.get(id) or Change(timed_get(delta_of(id), schema))
            case ir.Join():
                inputs, classes = join.tidy(plan)
                if len(inputs) == 1:
                    return self.delta(inputs[0])
                return Change(join.delta([self._change(each) for each in inputs], classes, self))
            case ir.Reduce() if totals.is_additive(plan):
                return Change(totals.delta(plan, self._change(plan.input), self), 2)
            case ir.Reduce() if extremes.is_mixed(plan):
                return Change(extremes.delta(plan, self._change(plan.input), self), 2)
            case ir.Reduce() | ir.TopK() | ir.Window() | ir.Threshold():
                return Change(per_key.delta(plan, self._change(plan.input), self), 2)
            case ir.Temporal():
                return Change(temporal.delta(plan, self._change(plan.input), self))
            case ir.Union(inputs):
                return Change(ir.Union(tuple(self.updates(each) for each in inputs)))
            case ir.Let() | ir.Accumulate() | ir.Occurring() | ir.Recursive():
                raise AssertionError("not in a plan, or seen to already")
            case _:
                change = self.delta(plan.input)
                return Change(_linear(plan, change.relation, change.front), change.front)

    def _change(self, plan: Relation) -> ir.Get:
        """The change of a plan as a step; what the plan means is what an arrangement of the step holds."""
        step = self.step(self.updates(plan))
        self._plans.setdefault(step.id, plan)
        return step

    def closed(self, plan: Relation) -> Relation:
        """A part of the plan as one by itself, with the Lets that it speaks of."""
        for id, value in reversed(self._lets.items()):
            if any(isinstance(each, ir.Get) and each.id == id for each in ir.walk(plan)):
                plan = ir.Let(id, value, plan)
        return plan

    def step(self, relation: Relation) -> ir.Get:
        """Name a relation that is used more than once, remembered, or given."""
        if isinstance(relation, ir.Get) and relation.id in self.steps:
            return relation
        name = self._names.get(relation)
        if name is None:
            name = self._names[relation] = f"d{len(self.steps)}"
            self.steps[name] = relation
        return ir.Get(name, ir.types(relation))

    def remember(self, step: Relation, key: tuple[int, ...]) -> Arrangement:
        """An arrangement of a step, found by these columns; equal arrangements are made once."""
        assert isinstance(step, ir.Get)
        for known in self.arrangements:
            if (known.source, known.key, known.totals) == (step.id, key, False):
                return known
        contents = self.closed(self._plans[step.id])
        self.arrangements.append(Arrangement(f"s{len(self.arrangements)}", step.id, key, untimed(step), contents))
        return self.arrangements[-1]

    def look_up(
        self, arrangement: Arrangement, change: Relation, key: tuple[int, ...], *, yields: bool = False
    ) -> ir.Get:
        """The rows of an arrangement with the keys that occur in these columns of a change."""
        reading = self.reading(arrangement.schema)
        self.add_lookup(arrangement, tuple(self.sources(change, _timed_key(change, key))), reading, yields=yields)
        return reading

    def is_known(self, change: Relation, key: tuple[int, ...]) -> bool:
        """Whether a change is computed before its keys are looked up."""
        if self._stepwise or not key:
            return True
        return trace(change, _timed_key(change, key), self.steps, self._leaf) is None

    def look_up_first(self, arrangement: Arrangement, change: Relation, first: First) -> ir.Get:
        """The rows of an arrangement and of a change, timed, that may be among the first of their key."""
        assert isinstance(change, ir.Get)
        if change.id in self.steps:  # what changes has to be known
            self.cut.add(change.id)
        reading = self.reading((INT8, *arrangement.schema))
        self.add_lookup(arrangement, (Source(change.id, ()),), reading, first=first)
        return reading

    def totals(self, contents: Relation, keys: int, change: Relation, key: tuple[int, ...]) -> Totals:
        """Totals that are kept by key, of the keys that occur in these columns of a change."""
        place = len(self.arrangements)
        schema, contents = ir.types(contents), self.closed(contents)
        self.arrangements.append(Arrangement(f"s{place}", "", tuple(range(keys)), schema, contents, totals=True))
        return Totals(self, place, self.look_up(self.arrangements[place], change, key))

    def pending(self, emitted: ir.Get) -> ir.Get:
        """The updates of a step that were put off and are due now, timed; updates of this tick may be put off."""
        schema = ir.types(emitted)
        place = len(self.arrangements)
        self.arrangements.append(Arrangement(f"s{place}", emitted.id, (0,), (INT8, *schema), None, pending=True))
        reading = self.reading(schema)
        name = f"l{len(self.lookups)}"
        self.lookups.append(Lookup(name, f"s{place}", (), reading.id, due=True))
        return reading

    def reading(self, schema: tuple[SqlType, ...]) -> ir.Get:
        """The table that a look-up fills."""
        name = f"r{len(self.readings)}"
        self.readings[name] = schema
        return ir.Get(name, schema)

    def add_lookup(
        self,
        arrangement: Arrangement,
        sources: tuple[Source, ...],
        reading: ir.Get,
        tag: int | None = None,
        first: First | None = None,
        *,
        yields: bool = False,
    ) -> str:
        """Look keys up for a reading; gives the name by which the rows found are a source of further keys."""
        name = f"l{len(self.lookups)}"
        known = tuple(dict.fromkeys(sources))
        self.lookups.append(Lookup(name, arrangement.name, known, reading.id, tag, first=first, yields=yields))
        return name

    def sources(self, relation: Relation, key: tuple[Scalar, ...]) -> list[Source]:
        """Where the values of the key in a step come from."""
        found = trace(relation, key, self.steps, self._leaf)
        if found is None:
            step = self.step(relation)
            self.cut.add(step.id)
            return [Source(step.id, key)]
        return found

    def _leaf(self, get: ir.Get, key: tuple[Scalar, ...]) -> list[Source] | None:
        if get.id not in self.readings:
            return [Source(get.id, key)]
        feeding = [lookup for lookup in self.lookups if lookup.reading == get.id]
        keyed = {each.name for each in self.arrangements if each.key}
        if self._stepwise and any(reads_all(lookup, keyed) for lookup in feeding):
            return None
        return [
            Source(lookup.name, tuple(shift(each, 0 if lookup.tag is None else -1) for each in key))
            for lookup in feeding
        ]


def _timed_key(change: Relation, key: tuple[int, ...]) -> tuple[Scalar, ...]:
    schema = untimed(change)
    return tuple(Column(index + 1, schema[index]) for index in key)


def _linear(operator: Relation, change: Relation, front: int) -> Relation:
    """Δf(X) = f(ΔX). The times are `front` more columns in front, which linear operators carry along."""
    if isinstance(operator, ir.Project):
        return ir.Project(change, (*range(front), *(index + front for index in operator.columns)))
    return ir.with_inputs(with_scalars(operator, lambda scalar: shift(scalar, front)), (change,))
