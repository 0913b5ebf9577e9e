"""`differentiate`: a plan to its tick program, bottom up, by the rule of each operator."""

from __future__ import annotations

import itertools

from everview.compute.delta import join, linear, per_key
from everview.compute.delta.binary_joins import binary_joins
from everview.compute.delta.program import Arrangement, Lookup, TickProgram, delta_of, timed_get, untimed
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import SqlType


def differentiate(plan: Relation) -> TickProgram:
    """The program that maintains the plan."""
    build = Build()
    build.finish(build.delta(binary_joins(plan)))
    return TickProgram(
        tuple(build.steps), tuple(build.arrangements), tuple(dict.fromkeys(build.lookups)), tuple(build.constants)
    )


class Build:
    """A program in the making."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Relation]] = []
        self.arrangements: list[Arrangement] = []
        self.lookups: list[Lookup] = []
        self.constants: list[tuple[str, ir.Constant]] = []
        self._bound: dict[str, Relation] = {}
        self._numbers = itertools.count()

    def delta(self, plan: Relation) -> Relation:
        """The change of a plan, timed."""
        match plan:
            case ir.Constant():
                name = f"constant{len(self.constants)}"
                self.constants.append((name, plan))
                return timed_get(delta_of(name), plan.schema)
            case ir.Get(id, schema):
                return self._bound.get(id) or timed_get(delta_of(id), schema)
            case ir.Let(id, value, body):
                return self._let(id, value, body)
            case ir.Join(inputs):
                return join.delta(plan, [self.step(self.delta(each)) for each in inputs], self)
            case ir.Reduce() | ir.TopK() | ir.Window() | ir.Threshold():
                return per_key.delta(plan, self.step(self.delta(plan.input)), self)
            case ir.Union(inputs):
                return ir.Union(tuple(self.delta(each) for each in inputs))
            case _:
                return linear.delta(plan, self.delta(plan.input))

    def _let(self, id: str, value: Relation, body: Relation) -> Relation:
        hidden = self._bound.get(id)
        self._bound[id] = self.step(self.delta(value))
        result = self.delta(body)
        if hidden is None:
            del self._bound[id]
        else:
            self._bound[id] = hidden
        return result

    def step(self, relation: Relation) -> Relation:
        """Name a relation that is used more than once, or remembered."""
        if isinstance(relation, ir.Get) and any(name == relation.id for name, _ in self.steps):
            return relation
        name = f"d{next(self._numbers)}"
        self.steps.append((name, relation))
        return ir.Get(name, ir.types(relation))

    def finish(self, relation: Relation) -> None:
        """The change of the output is the last step, whatever it is."""
        self.steps.append((f"d{next(self._numbers)}", relation))

    def look_up(self, state: Relation, step: Relation, key: tuple[Scalar, ...]) -> None:
        """A step that follows needs the rows of `state` with the keys that occur in `step`."""
        assert isinstance(state, ir.Get) and isinstance(step, ir.Get)
        self.lookups.append(Lookup(state.id, step.id, key))

    def remember(self, step: Relation, key: tuple[Scalar, ...]) -> Relation:
        """State with the contents of a step, to be found by `key`; the same one if it is remembered so already."""
        assert isinstance(step, ir.Get)
        schema: tuple[SqlType, ...] = untimed(step)
        for known in self.arrangements:
            if (known.source, known.key) == (step.id, key):
                return ir.Get(known.name, schema)
        name = f"s{len(self.arrangements)}"
        self.arrangements.append(Arrangement(name, step.id, key, schema))
        return ir.Get(name, schema)
