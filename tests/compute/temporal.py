"""Plans that speak of `mz_now()`: what they mean at a time, and random comparisons with it.

A maintained view fails for a row whose bound fails, for as long as the row is there. Asked at one time, the same filter
may come to an end before it sees that bound. So there are two accounts of a plan at a time: `at_time`, which is what
somebody who asks gets, and `at_time_in_full`, in which all bounds are looked at: their rows are the same.
"""

from __future__ import annotations

from everview.compute.delta.push_temporal import push_temporal
from everview.compute.delta.temporal import temporal_filters
from everview.compute.functions.calendar import timestamp
from everview.compute.functions.naming import key_of
from everview.compute.functions.resolve import cast
from everview.compute.functions.temporal import MZ_NOW, now
from everview.compute.functions.time_sets import INTERVALS, TIMES
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.parts import map_scalars
from everview.compute.ir.relation import Filter, FlatMap, Map, Project, Relation, Temporal, arity, transform
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar
from everview.compute.ir.scalar import transform as transform_scalar
from everview.compute.ir.types import BOOLEAN, DATE, INT4, INT8, INTERVAL, MZ_TIMESTAMP, TIMESTAMPTZ, Interval, SqlType
from everview.compute.optimize.lets import unique_lets
from tests.compute.choosing import Choose, flip
from tests.compute.expressions import NUMERIC, Expressions

COMPARISONS = ("ge", "lt", "ge", "lt", "gt", "le", "eq", "ne")
TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
TESTS = ("is_true", "is_not_true", "is_false", "is_not_false", "is_unknown", "is_not_unknown")
MOVES_MAX = 6


def at_time(relation: Relation, time: int) -> Relation:
    """The plan with a time in place of `mz_now()`."""

    def look(part: Scalar) -> Scalar | None:
        return Literal(time, MZ_TIMESTAMP) if isinstance(part, Call) and part.function == MZ_NOW else None

    return map_scalars(relation, lambda scalar: transform_scalar(scalar, look))


def at_time_in_full(relation: Relation, time: int) -> Relation:
    """The plan at a time, where a bound that fails is an error whatever the others say."""
    return transform(temporal_filters(relation), lambda each: _bounded(each, time))


def sunk_at_time(relation: Relation, time: int) -> Relation:
    """The same with temporal filters where a view has them: where the row of another input is over, nothing fails."""
    return at_time_in_full(push_temporal(unique_lets(relation)), time)


def _bounded(relation: Relation, time: int) -> Relation:
    if not isinstance(relation, Temporal):
        return relation
    width, bounds = arity(relation.input), relation.lowers + relation.uppers
    met = tuple(
        _compare(
            "ge" if index < len(relation.lowers) else "lt", Literal(time, bound.type), Column(width + index, bound.type)
        )
        for index, bound in enumerate(bounds)
    )
    if relation.times is None:
        return Project(Filter(Map(relation.input, bounds), met), tuple(range(width)))
    mapped = Map(relation.input, (*bounds, relation.times))
    last = width + len(bounds)
    several = FlatMap(mapped, key_of(INTERVALS, (TIMES,)), (Column(last, TIMES),), (INT8, INT8))
    within = (
        _compare("ge", Literal(time, INT8), Column(last + 1, INT8)),
        _compare("lt", Literal(time, INT8), Column(last + 2, INT8)),
    )
    return Project(Filter(several, (*met, *within)), tuple(range(width)))


def comparison(choose: Choose, expressions: Expressions) -> Scalar:
    """A comparison of `mz_now()`, moved or not, as one type or another, with an expression of the row."""
    form = choose.pick((_as_time, _as_time, _as_time, _as_number, _as_moment))
    left, right = form(choose, expressions)
    name = choose.pick(COMPARISONS)
    return _compare(name, left, right) if choose.integer(0, 3) else _compare(TURNED[name], right, left)


def condition(choose: Choose, expressions: Expressions, depth: int = 2) -> Scalar:
    """Comparisons with `mz_now()` and predicates of the row under OR, AND, NOT, CASE, COALESCE and tests."""
    if depth == 0 or choose.integer(0, 2) == 0:
        return comparison(choose, expressions) if choose.integer(0, 3) else expressions.predicate(1)

    def inner() -> Scalar:
        return condition(choose, expressions, depth - 1)

    match choose.integer(0, 6):
        case 0 | 1:
            return Or(tuple(inner() for _ in range(choose.integer(2, 3))))
        case 2:
            return And((inner(), inner()))
        case 3:
            return Call("not(bool)", (inner(),), BOOLEAN)
        case 4:
            return Call(f"{choose.pick(TESTS)}(bool)", (inner(),), BOOLEAN)
        case 5:
            return Case(((inner(), inner()),), inner(), BOOLEAN)
        case _:
            return Coalesce((inner(), inner()), BOOLEAN)


def _as_time(choose: Choose, expressions: Expressions) -> tuple[Scalar, Scalar]:
    left: Scalar = now(None)
    if flip(choose):
        key = choose.pick(("add(mz_timestamp,int8)", "sub(mz_timestamp,int8)", "add(int8,mz_timestamp)"))
        by = _milliseconds(choose)
        left = Call(key, (by, left) if key.startswith("add(int8") else (left, by), MZ_TIMESTAMP)
    types: list[SqlType] = [INT4, INT8, INT4, INT8, DATE]
    if expressions.fails:  # a number with a fraction is no time
        types += [NUMERIC]
    sql_type = choose.pick([each for each in types if each in expressions.columns] or types)
    value = expressions.of_kind(sql_type.kind, choose.integer(0, 2))
    if not expressions.fails and sql_type != DATE:  # neither is one below zero
        name = "int4" if sql_type == INT4 else "int8"
        below = Call(f"lt({name},{name})", (value, Literal(0, sql_type)), BOOLEAN)
        value = Case(((below, Literal(None, sql_type)),), value, sql_type)
    return left, cast(value, MZ_TIMESTAMP)


def _as_number(choose: Choose, expressions: Expressions) -> tuple[Scalar, Scalar]:
    left = cast(now(None), INT8)
    if flip(choose):
        left = Call(choose.pick(("add(int8,int8)", "sub(int8,int8)")), (left, _milliseconds(choose)), INT8)
    return left, expressions.of_kind(INT8.kind, choose.integer(0, 2))


def _as_moment(choose: Choose, expressions: Expressions) -> tuple[Scalar, Scalar]:
    """Moments have a thousand times more places than there are times."""
    left = cast(now(None), TIMESTAMPTZ)
    if flip(choose):
        by = Literal(Interval(0, 0, 500 * choose.integer(0, MOVES_MAX)), INTERVAL)
        left = Call(
            choose.pick(("add(mz_timestamp,interval)", "sub(mz_timestamp,interval)")), (now(None), by), TIMESTAMPTZ
        )
    moments = [Literal(timestamp(500 * choose.integer(-4, 24), TIMESTAMPTZ.kind), TIMESTAMPTZ) for _ in range(2)]
    if not choose.integer(0, 3):
        moments[1] = Literal(choose.pick(list(Infinite)), TIMESTAMPTZ)
    if not choose.integer(0, 5):
        moments[0] = Literal(None, TIMESTAMPTZ)
    return left, Case(((expressions.predicate(1), moments[0]),), moments[1], TIMESTAMPTZ)


def _milliseconds(choose: Choose) -> Scalar:
    return Literal(choose.integer(0, MOVES_MAX), INT8)


def _compare(name: str, left: Scalar, right: Scalar) -> Scalar:
    kinds = {MZ_TIMESTAMP: "mz_timestamp", INT8: "int8", TIMESTAMPTZ: "timestamptz"}
    return Call(f"{name}({kinds[left.type]},{kinds[left.type]})", (left, right), BOOLEAN)
