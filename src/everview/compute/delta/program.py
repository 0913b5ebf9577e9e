"""Tick programs: what to look up and what to compute, to advance a view from l to u.

For a collection X let X⁻ be its contents before l and ΔX its updates in [l, u). A *timed* relation holds updates: its
first column is the time, its multiplicities are the diffs. A relation of *moments* holds what a key's output is from a
time until a next one, or for good: (time, next, row). It stands for the updates + at `time`, if within the tick,
and − at `next`, if there is one.

A program is a list of steps, relations of the same IR as plans, over

    delta:<id>   the timed updates of input <id> in [l, u)
    <reading>    rows of X⁻ that an operator needs; any superset of the rows of the keys that changed gives the same
                 result, for steps join on the real keys
    tick:end     the end of the tick, u
    <step>       a step before it

so an engine that evaluates plans evaluates ticks. The driver finds what readings hold, by the hashes of keys that it
takes from the changes and from what was looked up before. Only where keys can't be had so must a step be computed
first: then the program has more than one stage, and each stage is one statement. Where nothing is remembered yet the
same program hydrates: the inputs' contents at the first time are their updates at that time.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from everview.compute.functions.resolve import call
from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Column, Literal, Scalar
from everview.compute.ir.types import INT8, SqlType

BEFORE = -1  # the time of what was there before l: before every time of the tick
TIME = Column(0, INT8)
NEXT = Column(1, INT8)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """State: rows of this schema, found by the hash of the columns `key`.

    It follows the step `source`. Of a timed step it holds the contents; of one with running `totals`, which is a
    relation of moments, the last totals of each key, with their number of rows first. One of `pending` updates
    holds those of the step that lie beyond the tick: (bucket, time, row), found by the bucket of the time.

    One that is `shared` is kept elsewhere, for several views: this program only looks it up.
    """

    name: str
    source: str
    key: tuple[int, ...]
    schema: tuple[SqlType, ...]
    contents: ir.Relation | None  # as a plan over the inputs; None if time alone changes them
    totals: bool = False
    pending: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where keys come from: scalars over the columns of a table, which is a delta, a step, or what a look-up found."""

    table: str
    key: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class First:
    """So many rows of each key, in an order, are wanted at every time.

    The rows looked up are timed, with those of the one source; of keys of which no such row changes only if asked.
    """

    order: tuple[ir.Order, ...]
    count: int
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of an arrangement with keys from the sources; if the key has no columns, all if the sources have any.

    They go to a reading. That of a join's input is fed by several look-ups, one for each other input that may change,
    and the rows are tagged with the number of that input, in front.
    """

    name: str
    arrangement: str
    sources: tuple[Source, ...]
    reading: str
    tag: int | None = None
    due: bool = False  # of pending updates: those whose time has come, whatever the keys
    first: First | None = None  # of rows and changes, only those that may be among the first
    yields: bool = False  # where it finds many rows, another program would look up only the first of them


@dataclass(frozen=True, slots=True)
class Stage:
    """Look-ups, in order, and then one statement for the steps that are asked for."""

    lookups: tuple[Lookup, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failing:
    """A timed step of the rows for which one of the scalars, over the untimed row, fails."""

    step: str
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class TickProgram:
    """Steps and stages, what to remember, constants, and what the change of the output is."""

    steps: tuple[tuple[str, ir.Relation], ...]
    arrangements: tuple[Arrangement, ...]
    readings: tuple[tuple[str, tuple[SqlType, ...]], ...]
    stages: tuple[Stage, ...]
    constants: tuple[tuple[str, ir.Constant], ...]
    output: str
    moments: bool  # whether the output is a relation of moments
    failing: tuple[Failing, ...] = ()

    @property
    def kept(self) -> tuple[Arrangement, ...]:
        """The arrangements that the program itself keeps."""
        return tuple(each for each in self.arrangements if not each.shared)


def reads_all(lookup: Lookup, keyed: Collection[str]) -> bool:
    """Whether the look-up finds all rows of its arrangement, because the arrangement has no key."""
    return lookup.arrangement not in keyed and lookup.first is None and not lookup.due


TICK_END = "tick:end"  # a table of one row: the end of the tick
BUCKET_BITS = 8  # pending updates of so many milliseconds, 2 to this power, are found together


def delta_of(id: str) -> str:
    """The name under which a program reads the updates of an input."""
    return f"delta:{id}"


def timed_get(name: str, schema: tuple[SqlType, ...]) -> ir.Relation:
    """A named timed relation over rows of this schema."""
    return ir.Get(name, (INT8, *schema))


def at(relation: ir.Relation, time: int) -> ir.Relation:
    """Untimed rows as updates at one time."""
    width = ir.arity(relation)
    return ir.Project(ir.Map(relation, (Literal(time, INT8),)), (width, *range(width)))


def untimed(relation: ir.Relation) -> tuple[SqlType, ...]:
    """The types of the rows of a timed relation."""
    return ir.types(relation)[1:]


def updates_of(moments: ir.Relation) -> ir.Relation:
    """A relation of moments as timed updates."""
    width = ir.arity(moments)
    from_then = ir.Filter(moments, (call(">=", TIME, Literal(0, INT8)),))
    until_next = ir.Filter(moments, (call("is not null", NEXT),))
    gained = ir.Project(from_then, (0, *range(2, width)))
    lost = ir.Negate(ir.Project(until_next, (1, *range(2, width))))
    return ir.Union((gained, lost))
