"""A bound query: a plan, with what it names and reads, and its time put in where it speaks of it."""

from __future__ import annotations

from dataclasses import dataclass

from everview.compute.functions.temporal import MZ_NOW
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import all_scalars, map_scalars
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Literal, Scalar, transform, walk
from everview.compute.ir.types import MZ_TIMESTAMP
from everview.compute.sql.query import Plan
from everview.storage.contract import GlobalId


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound query. `uses` are the items that it names; `reads` the stored collections below all views."""

    plan: Plan
    uses: frozenset[GlobalId]
    reads: frozenset[GlobalId]
    system: frozenset[str]
    asked: frozenset[str]  # functions of the session
    optimized: bool = False
    present: bool = False  # it is read at the present, whatever it says

    @property
    def recursive(self) -> bool:
        """Whether it cannot be maintained because it refers to itself."""
        return any(isinstance(each, ir.Recursive) for each in ir.walk(self.plan.relation))

    @property
    def needs_time(self) -> bool:
        """Whether it speaks of its own time, or is to be read at the present for another reason."""
        return self.present or speaks_of_time(self.plan.relation)


def speaks_of_time(relation: Relation) -> bool:
    """Whether `mz_now()` is in the plan."""
    return any(
        isinstance(part, Call) and part.function == MZ_NOW for scalar in all_scalars(relation) for part in walk(scalar)
    )


def at_time(relation: Relation, time: int) -> Relation:
    """The plan with `mz_now()` being this time."""

    def look(part: Scalar) -> Scalar | None:
        return Literal(time, MZ_TIMESTAMP) if isinstance(part, Call) and part.function == MZ_NOW else None

    return map_scalars(relation, lambda scalar: transform(scalar, look)) if speaks_of_time(relation) else relation
