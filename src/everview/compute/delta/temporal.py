"""Temporal filters: rows that come and go by themselves, at the times that they say.

`temporal_filters` finds in a plan the comparisons of `mz_now()` with what a row says. Each bounds an interval:

    mz_now() >= e   from e        mz_now() < e    before e        mz_now() = e   both
    mz_now() >  e   from e + 1    mz_now() <= e   before e + 1

where an e that lies within a millisecond, as a timestamptz may, counts as the next one on the first line, and on the
second as the one that it is in.

An update of a row at t becomes one at the latest of t and its lower bounds, and the opposite one at the earliest of its
upper bounds, if that is later; a NULL bound leaves no time at all. What falls beyond the end of the tick waits in a
*pending* arrangement, found by its time, and is an update of its own when its time has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everview.compute.delta.program import TICK_END, TIME, call
from everview.compute.functions.bounds import first_time_from, following, moved
from everview.compute.functions.temporal import MZ_NOW, Now, without_months
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import scalars_of
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import And, Call, Column, Literal, Or, Scalar, shift, walk
from everview.compute.ir.types import INT8, MZ_TIMESTAMP, TIMESTAMPTZ, Kind
from everview.compute.optimize.computed_columns import cast
from everview.compute.sql.errors import FEATURE_NOT_SUPPORTED, SqlError

if TYPE_CHECKING:
    from everview.compute.delta.differentiate import Build

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def temporal_filters(plan: Relation) -> Relation:
    """The plan with its temporal filters as such; raises SqlError for any other use of `mz_now()`."""
    changed = ir.transform(plan, lambda each: _filter(each) if isinstance(each, ir.Filter) else each)
    for part in ir.walk(changed):
        for scalar in scalars_of(part):
            if _speaks_of_now(scalar):
                message = "mz_now() can stand only in comparisons that restrict a maintained query"
                raise _refused(message, scalar, detail=f"here it is in {_place(part)}")
    return changed


def _place(relation: Relation) -> str:
    """What of a query the operator stands for."""
    match relation:
        case ir.Map():
            return "an expression that is computed: of a SELECT list, GROUP BY, ORDER BY or an aggregate"
        case ir.Join():
            return "the condition of a join"
        case ir.Reduce():
            return "an aggregate or GROUP BY"
        case ir.FlatMap():
            return "the arguments of a table function"
        case _:
            return "an ORDER BY or a window"


def _filter(filtering: ir.Filter) -> Relation:
    predicates: list[Scalar] = []
    for each in filtering.predicates:
        predicates += each.args if isinstance(each, And) else [each]
    temporal = [each for each in predicates if _speaks_of_now(each)]
    if not temporal:
        return filtering
    others = tuple(each for each in predicates if not _speaks_of_now(each))
    lowers: list[Scalar] = []
    uppers: list[Scalar] = []
    for predicate in temporal:
        _bound(predicate, lowers, uppers)
    input = ir.Filter(filtering.input, others) if others else filtering.input
    return ir.Temporal(input, tuple(lowers), tuple(uppers))


def _bound(predicate: Scalar, lowers: list[Scalar], uppers: list[Scalar]) -> None:
    if isinstance(predicate, Or):
        hint = "write a UNION ALL of queries, one for each condition"
        raise _refused("mz_now() under OR cannot be maintained", predicate, hint)
    name = predicate.function.partition("(")[0] if isinstance(predicate, Call) else ""
    if name == "ne":
        hint = "write a UNION ALL of two queries, with < and with >"
        raise _refused("mz_now() <> … cannot be maintained", predicate, hint)
    if not isinstance(predicate, Call) or name not in _TURNED or len(predicate.args) != 2:
        raise _refused("mz_now() must be compared directly, by =, <, <=, >, >= or BETWEEN", predicate)
    left, right = predicate.args
    if _speaks_of_now(left) and _speaks_of_now(right):
        raise _refused("mz_now() is compared with an expression of itself", predicate)
    if _speaks_of_now(right):
        left, right, name = right, left, _TURNED[name]
    bound = _isolated(left, right)
    if name in ("ge", "eq"):
        lowers.append(_time_from(bound))
    if name in ("le", "eq"):
        uppers.append(following(_time(bound)))
    if name == "gt":
        lowers.append(following(_time(bound)))
    if name == "lt":
        uppers.append(_time_from(bound))


def _isolated(left: Scalar, right: Scalar) -> Scalar:
    """What bare `mz_now()` is compared with if `left`, an expression of it, is compared with `right`."""
    if _is_now(left):
        return right
    if not isinstance(left, Call):
        raise _refused("mz_now() is inside an expression that cannot be turned around", left)
    name = left.function.partition("(")[0]
    if name == "cast" and left.type in (TIMESTAMPTZ, INT8) and len(left.args) == 1:
        return _isolated(left.args[0], right)
    if name in ("add", "sub") and len(left.args) == 2:
        inside, by = left.args if _speaks_of_now(left.args[0]) else left.args[::-1]
        if _speaks_of_now(by) or (name == "sub" and inside is left.args[1]):
            raise _refused("mz_now() is inside an expression that cannot be turned around", left)
        if by.type.kind is Kind.INTERVAL and not (isinstance(by, Literal) and by.value and without_months(by.value)):
            raise _refused(
                "mz_now() can be moved only by a constant interval without months or years",
                left,
                "months differ in length: add the interval to the other side of the comparison",
            )
        if right.type in (MZ_TIMESTAMP, INT8) and by.type == INT8:
            return _isolated(inside, moved(right, by, back=name == "add"))
        return _isolated(inside, call("-" if name == "add" else "+", right, by))
    raise _refused("mz_now() is inside an expression that cannot be turned around", left)


def _time(bound: Scalar) -> Scalar:
    """The last time that is not beyond a bound. Numbers are taken as they are: one may be below all times."""
    return bound if bound.type in (MZ_TIMESTAMP, INT8) else cast(bound, MZ_TIMESTAMP)


def _time_from(bound: Scalar) -> Scalar:
    """The first time that is not before a bound."""
    return first_time_from(bound) if bound.type.kind is Kind.TIMESTAMPTZ else _time(bound)


def _is_now(scalar: Scalar) -> bool:
    return isinstance(scalar, Call) and scalar.function == MZ_NOW


def _speaks_of_now(scalar: Scalar) -> bool:
    return any(map(_is_now, walk(scalar)))


_HINT = "compare mz_now() with an expression of the row, in a conjunction"


def _refused(message: str, scalar: Scalar, hint: str = _HINT, detail: str | None = None) -> SqlError:
    """The error about `mz_now()` in this expression, at the place where it is written, if that is known."""
    places = [part.position for part in walk(scalar) if isinstance(part, Now) and part.position is not None]
    position = min(places, default=None)
    return SqlError(FEATURE_NOT_SUPPORTED, message, detail=detail, hint=hint, position=position)


def delta(operator: ir.Temporal, change: Relation, build: Build) -> Relation:
    """The change of the output: updates of now, and those whose time has come."""
    width = arity(change)
    lowers = tuple(_as_time(each) for each in operator.lowers)
    uppers = tuple(_as_time(each) for each in operator.uppers)
    bounded = tuple(call("is not null", each) for each in lowers + uppers)
    present = ir.Filter(change, bounded) if bounded else change
    lower = call("greatest", TIME, *lowers) if lowers else TIME
    upper = (call("least", *uppers) if len(uppers) > 1 else uppers[0],) if uppers else ()
    mapped: Relation = ir.Map(present, (lower, *upper))
    if uppers:
        mapped = ir.Filter(mapped, (call("<", Column(width, INT8), Column(width + 1, INT8)),))
    mapped = build.step(mapped) if uppers else mapped
    row = range(1, width)
    updates: Relation = ir.Project(mapped, (width, *row))
    if uppers:
        updates = ir.Union((updates, ir.Negate(ir.Project(mapped, (width + 1, *row)))))
    emitted = build.step(updates)
    come = build.pending(emitted)
    # The end comes as data, so that the statement is the same in every tick.
    places = arity(emitted)
    ended = ir.Join((emitted, ir.Get(TICK_END, (INT8,))))
    within = ir.Filter(ended, (call("<", TIME, Column(places, INT8)),))
    return ir.Union((come, ir.Project(within, tuple(range(places)))))


def _as_time(scalar: Scalar) -> Scalar:
    """A bound over a row with the time in front; times are plain integers in a program."""
    moved = shift(scalar, 1)
    if isinstance(moved, (Column, Literal)):
        return Column(moved.index, INT8) if isinstance(moved, Column) else Literal(moved.value, INT8)
    raise AssertionError("bounds are columns: see computed_columns")
