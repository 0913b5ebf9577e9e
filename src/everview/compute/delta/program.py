"""Tick programs: what to compute, in order, to advance a view from l to u.

For a collection X let X⁻ be its contents before l and ΔX its updates in [l, u). A *timed* relation holds updates: its
first column is the time, its multiplicities are the diffs. A program is a list of named timed relations of the same IR
as plans, over

    delta:<id>   the timed updates of input <id> in [l, u)
    <state>      X⁻ of something that an operator must remember, untimed; any superset of the rows of the keys that
                 changed gives the same result, for programs join on the real keys

so an engine that evaluates plans evaluates ticks. Where nothing is remembered yet the same program hydrates: the
inputs' contents at the first time are their updates at that time.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.compute.ir.relation import Constant, Get, Map, Project, Relation, arity, types
from everview.compute.ir.scalar import Column, Literal, Scalar
from everview.compute.ir.types import INT8, SqlType

BEFORE = -1  # the time of what was there before l: before every time of the tick
TIME = Column(0, INT8)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """State of an operator: the contents of `source`, a step, found by the hash of `key` (over its untimed rows)."""

    name: str
    source: str
    key: tuple[Scalar, ...]
    schema: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a step needs of an arrangement: the rows whose keys are the values of `key` over the rows of `source`.

    `source` is an earlier step, and `key` is over its untimed rows; its scalars have the types of the arrangement's.
    """

    state: str
    source: str
    key: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class TickProgram:
    """The steps in order, the last being the change of the output; what to remember and to look up; constants."""

    steps: tuple[tuple[str, Relation], ...]
    arrangements: tuple[Arrangement, ...]
    lookups: tuple[Lookup, ...]
    constants: tuple[tuple[str, Constant], ...]

    @property
    def output(self) -> str:
        """The step that gives the change of the output."""
        return self.steps[-1][0]


def delta_of(id: str) -> str:
    """The name under which a program reads the updates of an input."""
    return f"delta:{id}"


def timed_get(name: str, schema: tuple[SqlType, ...]) -> Relation:
    """A named timed relation over rows of this schema."""
    return Get(name, (INT8, *schema))


def at(relation: Relation, time: int) -> Relation:
    """Untimed rows as updates at one time."""
    width = arity(relation)
    return Project(Map(relation, (Literal(time, INT8),)), (width, *range(width)))


def untimed(relation: Relation) -> tuple[SqlType, ...]:
    """The types of the rows of a timed relation."""
    return types(relation)[1:]
