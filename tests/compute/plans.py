"""Random plans over random collections: every operator, nested, with NULLs and several types.

A plan never asks for what has no meaning: Reduce, TopK and Window are only put over plain multisets. Nor do functions
that can fail see rows with a negative multiplicity, whose errors would cancel others: no lowering of SQL does that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hypothesis import strategies as st

from everview.compute.functions import registry
from everview.compute.ir.relation import (
    Aggregate,
    Constant,
    Filter,
    FlatMap,
    Frame,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Order,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFunction,
    arity,
    types,
)
from everview.compute.ir.scalar import Call, Column, Literal, Scalar, columns_of, shift
from everview.compute.ir.show import show
from everview.compute.ir.types import BOOLEAN, FLOAT8, INT4, INT8, Kind, SqlType, arrow_type
from everview.compute.rows.collection import Rows, rows_of
from everview.compute.sql import hir
from everview.compute.sql.lower import UNIT, Context, Lowering
from tests.compute import temporal as times
from tests.compute.choosing import Choose, Drawn, flip
from tests.compute.expressions import (
    KINDS,
    TYPES,
    Expressions,
    aggregates_over,
    comparison,
    result_type,
    schema_of,
    value_of,
)
from tests.compute.sizes import PRODUCT_MAX, ROWS_MAX, rows_max

RANKS = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), INT8),
    **dict.fromkeys(("percent_rank", "cume_dist"), FLOAT8),
}
# Filters and joins are what most passes are about.
OPERATORS = (
    *("filter", "filter", "join", "join", "project", "map", "reduce", "union", "flat_map"),
    *("topk", "window", "threshold", "let", "negate", "outer_join", "exists"),
)
TEMPORAL = ("temporal",) * 8  # only where a plan is looked at with a time
TABLES_MAX, JOIN_INPUTS_MAX = 3, 3


@dataclass(frozen=True)
class Sample:
    """A plan and the collections that it reads."""

    plan: Relation
    inputs: dict[str, Rows]

    def __repr__(self) -> str:
        inputs = "\n".join(f"{name}: {rows}" for name, rows in self.inputs.items())
        return f"\n{show(self.plan)}\n{inputs}\n{self.plan}"


def collection(choose: Choose, schema: Sequence[SqlType], *, signed: bool = False) -> Rows:
    """A collection of rows of these types; seldom an empty one, over which little can go wrong."""
    multiplicities = (1, 1, 2, -1) if signed else (1, 1, 2)
    size = choose.integer(0 if choose.integer(0, 9) == 9 else 3, ROWS_MAX)
    pairs = [(tuple(value_of(choose, each) for each in schema), choose.pick(multiplicities)) for _ in range(size)]
    return rows_of(pairs, schema)


def sample(
    choose: Choose, depth: int = 4, *, fails: bool = True, favour: Sequence[str] = (), temporal: bool = False
) -> Sample:
    """A plan over up to three stored collections.

    With `fails`, it may hold functions that can fail; most of its operators are of those to `favour`, if any. With
    `temporal`, it has comparisons with `mz_now()`, and more columns that can be a time.
    """
    extra = (INT4, INT8) if temporal else ()
    tables = {f"t{index}": schema_of(choose) + extra for index in range(choose.integer(1, TABLES_MAX))}
    operators = OPERATORS + TEMPORAL if temporal else OPERATORS
    plans = Plans(choose, tables, fails=fails, favour=favour, operators=operators)
    plan = plans.relation(choose.integer(1, depth), signed=False)
    return Sample(plan, {name: collection(choose, schema) for name, schema in tables.items()})


@st.composite
def samples(draw: st.DrawFn, /, **options: Any) -> Sample:
    """The same for hypothesis."""
    return sample(Drawn(draw), **options)


class Plans:
    """Draws relations over the collections in scope."""

    def __init__(
        self,
        choose: Choose,
        scope: dict[str, tuple[SqlType, ...]],
        *,
        fails: bool,
        favour: Sequence[str] = (),
        operators: Sequence[str] = OPERATORS,
    ) -> None:
        self.choose, self.scope, self.fails, self.favour, self.operators = choose, scope, fails, favour, operators
        self.signed_names: set[str] = set()
        self.lets = 0
        self.lowering = Lowering()  # one for the whole plan: all names differ

    def relation(self, depth: int, *, signed: bool) -> Relation:
        """A relation no deeper than this; only a `signed` one may hold rows with negative multiplicities."""
        if depth == 0:
            return self.source(signed=signed)
        names = self.favour if self.favour and self.choose.integer(0, 3) < 3 else self.operators
        name = self.choose.pick([each for each in names if signed or each != "negate"])
        made: Relation = getattr(self, name)(depth - 1, signed=signed)
        return made

    def source(self, *, signed: bool) -> Relation:
        names = [name for name in self.scope if signed or name not in self.signed_names]
        if names and self.choose.integer(0, 5) < 5:
            name = self.choose.pick(names)
            return Get(name, self.scope[name])
        schema = schema_of(self.choose)
        rows = collection(self.choose, schema, signed=signed)
        return Constant(tuple(rows.items()), schema)

    def expressions(self, relation: Relation, *, signed: bool) -> Expressions:
        """Expressions over the relation's rows."""
        return Expressions(self.choose, types(relation), fails=self.fails and not signed)

    def project(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=signed)
        size = self.choose.integer(1, arity(below) + 1)
        return Project(below, tuple(self.choose.integer(0, arity(below) - 1) for _ in range(size)))

    def map(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=signed)
        result = below
        for _ in range(self.choose.integer(1, 2)):  # one over the other, so that scalars read earlier ones
            scalar = self.expressions(result, signed=signed).any()
            result = Map(
                below, (*result.scalars, scalar) if isinstance(result, Map) and result is not below else (scalar,)
            )
        return result

    def filter(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=signed)
        expressions = self.expressions(below, signed=signed)
        return Filter(below, tuple(expressions.predicate() for _ in range(self.choose.integer(1, 2))))

    def temporal(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=signed)
        expressions = self.expressions(below, signed=signed)
        draw = times.condition if self.choose.integer(0, 2) == 0 else times.comparison
        predicates = [draw(self.choose, expressions) for _ in range(self.choose.integer(1, 3))]
        if self.choose.integer(0, 3) == 0:
            predicates.insert(self.choose.integer(0, len(predicates)), expressions.predicate(1))
        return Filter(below, tuple(predicates))

    def flat_map(self, depth: int, *, signed: bool) -> Relation:
        entries = [
            entry
            for entry in registry.TABLES.values()
            if entry.name == "generate_series" and all(arg.kind is Kind.INT4 for arg in entry.args)
        ]
        below = self.relation(depth, signed=signed)
        entry = self.choose.pick(entries)
        # Only small literals: a series between two columns may be very long.
        args = tuple(Literal(self.choose.integer(index, index + 2), INT4) for index, _ in enumerate(entry.args))
        return FlatMap(below, entry.key, args, entry.columns_of(entry.args))

    def join(self, depth: int, *, signed: bool) -> Relation:
        count = self.choose.integer(2, JOIN_INPUTS_MAX if depth < 2 else 2)
        # At most one input may be deep, and the product of the sizes is kept small.
        inputs = [self.relation(depth if index == 0 else min(depth, 1), signed=signed) for index in range(count)]
        while prod(map(rows_max, inputs)) > PRODUCT_MAX and len(inputs) > 1:
            inputs.pop()
        equivalences: list[tuple[Scalar, ...]] = []
        nullsafe: list[tuple[Scalar, ...]] = []
        for _ in range(self.choose.integer(0, 2)):
            members = self.members(inputs, signed=signed)
            if len(members) > 1:
                (equivalences if self.choose.integer(0, 3) else nullsafe).append(members)
        join: Relation = Join(tuple(inputs), tuple(equivalences), tuple(nullsafe))
        if flip(self.choose):
            expressions = self.expressions(join, signed=signed)
            if equality := expressions.equality():
                join = Filter(join, (equality,))
            join = Filter(join, tuple(expressions.predicate(1) for _ in range(self.choose.integer(1, 2))))
        return join

    def members(self, inputs: Sequence[Relation], *, signed: bool) -> tuple[Scalar, ...]:
        """Expressions of one representation, each over another input."""
        sql_type = self.choose.pick(TYPES)
        members: list[Scalar] = []
        start = 0
        for each in inputs:
            places = [index for index, column in enumerate(types(each)) if column == sql_type]
            choice = self.choose.integer(0, 4)
            if places and choice > 1:
                members.append(Column(start + self.choose.pick(places), sql_type))
            elif choice == 1:
                scalar = self.expressions(each, signed=signed).of_kind(sql_type.kind, 1)
                if columns_of(scalar) and arrow_type(scalar.type) == arrow_type(sql_type):
                    members.append(shift(scalar, start))
            start += arity(each)
        return tuple(members)

    def outer_join(self, depth: int, *, signed: bool) -> Relation:
        """As the binder says it and `lower` takes it apart, over two plain multisets."""
        left, right = self.relation(depth, signed=False), self.relation(min(depth, 1), signed=False)
        if rows_max(left) * rows_max(right) > PRODUCT_MAX:
            return left
        expressions = self.expressions(Join((left, right)), signed=False)
        on = (expressions.equality() or expressions.predicate(1),)
        kind = self.choose.pick(("left", "full"))
        return self.lowered(left, right, lambda one, other: hir.OuterJoin(one, other, on, kind))

    def exists(self, depth: int, *, signed: bool) -> Relation:
        """A subquery that refers to the rows around it, or to none of their columns; or its opposite."""
        left, right = self.relation(depth, signed=False), self.relation(min(depth, 2), signed=False)
        if rows_max(left) * rows_max(right) > PRODUCT_MAX:
            return left
        pairs = [
            (a, b)
            for a, one in enumerate(types(left))
            for b, other in enumerate(types(right))
            if one.kind is other.kind
        ]
        conditions: tuple[Scalar, ...] = ()
        if pairs and self.choose.integer(0, 4):
            place, own = self.choose.pick(pairs)
            sql_type = types(left)[place]
            outer: Any = hir.Outer(1, place, sql_type)
            inner = Column(own, types(right)[own])
            entry = comparison(self.choose.pick(("eq", "eq", "is_not_distinct_from", "lt")), sql_type)
            conditions = (Call(entry.key, (outer, inner), BOOLEAN),)
        negated = flip(self.choose)

        def query(one: Relation, other: Relation) -> Any:
            found: Any = hir.Subquery("exists", Filter(other, conditions))
            return Filter(one, (Call("not(bool)", (found,), BOOLEAN) if negated else found,))

        return self.lowered(left, right, query)

    def lowered(self, left: Relation, right: Relation, query: Callable[[Relation, Relation], Any]) -> Relation:
        """A query over two relations, which it knows by names that no lowering gives."""
        number, self.lets = self.lets, self.lets + 2
        names = [f"x{number}", f"x{number + 1}"]
        body = self.lowering.lower(query(Get(names[0], types(left)), Get(names[1], types(right))), Context(UNIT, {}))
        return Let(names[0], left, Let(names[1], right, body))

    def union(self, depth: int, *, signed: bool) -> Relation:
        first = self.relation(depth, signed=signed)
        return Union((first, self.conform(self.relation(min(depth, 2), signed=signed), types(first))))

    def conform(self, relation: Relation, schema: Sequence[SqlType]) -> Relation:
        """The relation's rows as rows of these types."""
        if types(relation) == tuple(schema):
            return relation
        expressions = self.expressions(relation, signed=True)
        width = arity(relation)
        columns = range(width, width + len(schema))
        return Project(Map(relation, tuple(expressions.leaf(each) for each in schema)), tuple(columns))

    def negate(self, depth: int, *, signed: bool) -> Relation:
        return Negate(self.relation(depth, signed=signed))

    def threshold(self, depth: int, *, signed: bool) -> Relation:
        """Often what EXCEPT lowers to."""
        first = self.relation(depth, signed=True)
        if flip(self.choose):
            return Threshold(first)
        return Threshold(Union((first, Negate(self.conform(self.relation(min(depth, 1), signed=True), types(first))))))

    def let(self, depth: int, *, signed: bool) -> Relation:
        value = self.relation(depth, signed=signed)
        name = f"w{self.lets}"
        self.lets += 1
        self.scope[name] = types(value)
        if signed:
            self.signed_names.add(name)
        body = self.relation(depth, signed=signed)
        del self.scope[name]
        return Let(name, value, body)

    def orders(self, expressions: Expressions, size_max: int = 2) -> tuple[Order, ...]:
        return tuple(
            Order(expressions.any(1), flip(self.choose), flip(self.choose))
            for _ in range(self.choose.integer(0, size_max))
        )

    def reduce(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=False)
        expressions = self.expressions(below, signed=False)
        keys = tuple(expressions.any(1) for _ in range(self.choose.integer(0, 2)))
        least = 0 if keys else 1
        aggregates = tuple(self.aggregate(expressions) for _ in range(self.choose.integer(least, 2)))
        return Reduce(below, keys, aggregates)

    def aggregate(self, expressions: Expressions) -> Aggregate:
        key, args, sql_type = self.aggregate_call(expressions)
        distinct = bool(args) and flip(self.choose)
        condition = expressions.predicate(1) if self.choose.integer(0, 2) == 0 else None
        order = () if distinct else self.orders(expressions, 1)
        return Aggregate(key, args, sql_type, distinct, condition, order)

    def aggregate_call(self, expressions: Expressions) -> tuple[str, tuple[Scalar, ...], SqlType]:
        entry = self.choose.pick(aggregates_over(tuple(sorted(KINDS, key=lambda kind: kind.value))))
        args = tuple(
            expressions.any(1) if arg.kind is Kind.UNKNOWN else expressions.of_kind(arg.kind, 1) for arg in entry.args
        )
        return entry.key, args, result_type(entry, [arg.type for arg in args])

    def topk(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=False)
        group = {self.choose.integer(0, arity(below) - 1) for _ in range(self.choose.integer(0, 2))}
        order = self.orders(self.expressions(below, signed=False))
        limit = self.choose.pick([2, 1, 3, None, 0])
        return TopK(below, tuple(sorted(group)), order, limit, self.choose.pick([0, 0, 0, 1, 2]))

    def window(self, depth: int, *, signed: bool) -> Relation:
        below = self.relation(depth, signed=False)
        expressions = self.expressions(below, signed=False)
        partition = tuple(expressions.any(0) for _ in range(self.choose.integer(0, 2)))
        order = self.orders(expressions)
        functions = tuple(self.window_function(expressions, order) for _ in range(self.choose.integer(1, 2)))
        return Window(below, partition, order, functions)

    def window_function(self, expressions: Expressions, order: tuple[Order, ...]) -> WindowFunction:
        frame = self.frame(order)
        match self.choose.integer(0, 3):
            case 0:
                name = self.choose.pick(sorted(RANKS))
                return WindowFunction(name, (), RANKS[name], frame)
            case 1:
                value = expressions.any(1)
                name = self.choose.pick(["lag", "lead", "first_value", "last_value", "nth_value"])
                more = () if name.endswith("t_value") else (Literal(self.choose.integer(1, 2), INT4),)
                return WindowFunction(name, (value, *more), value.type, frame)
            case 2:
                return WindowFunction("ntile", (Literal(self.choose.integer(1, 3), INT4),), INT4, frame)
            case _:
                key, args, sql_type = self.aggregate_call(expressions)
                condition = expressions.predicate(1) if self.choose.integer(0, 3) == 0 else None
                return WindowFunction(key, args, sql_type, frame, condition)

    def frame(self, order: tuple[Order, ...]) -> Frame:
        unit = self.choose.pick(["rows", "range", "groups"])
        offsets: list[Any] = [0]
        numbers = (Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT8)
        if unit != "range" or (len(order) == 1 and order[0].scalar.type.kind in numbers):
            offsets += [-2, -1, 1, 2]
        start = self.choose.pick([None, *offsets])
        end = self.choose.pick([None, *(each for each in offsets if start is None or each >= start)])
        exclude = self.choose.pick([None, None, "current row", "group", "ties"])
        return Frame(unit, start, end, exclude)
