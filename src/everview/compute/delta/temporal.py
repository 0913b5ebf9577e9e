"""Temporal filters: rows that come and go by themselves, at the times that they say.

`temporal_filters` finds in a plan the predicates over `mz_now()`. Each bounds the times at which a row is there:
`times` says to which intervals, `thresholds` where those begin and end.

An update of a row at t becomes one at the latest of t and its lower bounds, and the opposite one at the earliest of its
upper bounds, if that is later; a NULL bound leaves no time at all. A row with several intervals has such a pair for
each. What falls beyond the end of the tick waits in a *pending* arrangement, found by its time, and is an update of its
own when its time has come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from everview.compute.delta.program import TICK_END, TIME
from everview.compute.delta.thresholds import refused, speaks_of_now
from everview.compute.delta.times import Bounds, bounds_of, conjuncts
from everview.compute.functions.resolve import call
from everview.compute.functions.temporal import TIME_MAX
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import scalars_of
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import Column, Literal, Scalar, shift
from everview.compute.ir.types import INT8

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build


def temporal_filters(plan: Relation, *, saturating: bool = True) -> Relation:
    """Make temporal filters of filters by `mz_now()`; raises SqlError for any other use of it.

    Without `saturating`, bounds are moved as views once did that still are kept so: see `thresholds.reached`.
    """

    def change(relation: Relation) -> Relation:
        return _filter(relation, saturating=saturating) if isinstance(relation, ir.Filter) else relation

    changed = ir.transform(plan, change)
    for part in ir.walk(changed):
        for scalar in scalars_of(part):
            if speaks_of_now(scalar):
                message = "mz_now() can stand only in comparisons that restrict a maintained query"
                raise refused(message, scalar, detail=f"here it is in {_place(part)}")
    return changed


def _place(relation: Relation) -> str:
    """The clause of a query that the operator stands for."""
    match relation:
        case ir.Map():
            return "an expression that is computed: of a SELECT list, GROUP BY, ORDER BY or an aggregate"
        case ir.Join():
            return "the condition of a join"
        case ir.Reduce():
            return "an aggregate, GROUP BY, or IN, ANY or ALL with a query inside of another expression"
        case ir.FlatMap():
            return "the arguments of a table function"
        case _:
            return "an ORDER BY or a window"


def _filter(filtering: ir.Filter, *, saturating: bool) -> Relation:
    own, others = apart(filtering.predicates)
    if not own:
        return filtering
    input = ir.Filter(filtering.input, others) if others else filtering.input
    return bounded(input, bounds_of(own, saturating=saturating))


def apart(predicates: Iterable[Scalar]) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The predicates with `mz_now()`, and the predicates without."""
    flat = conjuncts(predicates)
    own = tuple(each for each in flat if speaks_of_now(each))
    return own, tuple(each for each in flat if not speaks_of_now(each))


def bounded(input: Relation, bounds: Bounds) -> Relation:
    return ir.Temporal(input, bounds.lowers, bounds.uppers, bounds.times)


_LAST = Literal(TIME_MAX, INT8)


def delta(operator: ir.Temporal, change: Relation, build: Build) -> Relation:
    """The change of the output: updates of this tick, and pending updates that are due."""
    assert operator.times is None, "a row is there once for each of its intervals: see computed_columns"
    width = arity(change)
    lowers = tuple(_as_time(each) for each in operator.lowers)
    uppers = tuple(_as_time(each) for each in operator.uppers)
    present = tuple(call("is not null", each) for each in lowers + uppers)
    kept: Relation = ir.Filter(change, present) if present else change
    lower = call("greatest", TIME, *lowers) if lowers else TIME
    upper = (call("least", *uppers) if len(uppers) > 1 else uppers[0],) if uppers else ()
    mapped: Relation = ir.Map(kept, (lower, *upper))
    begins, ends = Column(width, INT8), Column(width + 1, INT8)
    mapped = ir.Filter(mapped, (call("<", begins, ends if uppers else _LAST),))
    mapped = build.step(mapped) if uppers else mapped
    row = range(1, width)
    updates: Relation = ir.Project(mapped, (width, *row))
    if uppers:
        ended = ir.Filter(mapped, (call("<", ends, _LAST),))  # the last of all times never comes
        updates = ir.Union((updates, ir.Negate(ir.Project(ended, (width + 1, *row)))))
    emitted = build.step(updates)
    come = build.pending(emitted)
    # The end comes as data, so that the statement is the same in every tick.
    places = arity(emitted)
    beside = ir.Join((emitted, ir.Get(TICK_END, (INT8,))))
    within = ir.Filter(beside, (call("<", TIME, Column(places, INT8)),))
    return ir.Union((come, ir.Project(within, tuple(range(places)))))


def _as_time(scalar: Scalar) -> Scalar:
    """A bound over a row with the time in front; times are plain integers in a program."""
    moved = shift(scalar, 1)
    if isinstance(moved, (Column, Literal)):
        return Column(moved.index, INT8) if isinstance(moved, Column) else Literal(moved.value, INT8)
    raise AssertionError("bounds are columns: see computed_columns")
