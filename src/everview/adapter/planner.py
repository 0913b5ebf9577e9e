"""Statements to plans: names looked up in the catalog, views replaced by their queries, sessions asked where needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from everview.adapter.bound_statement import BoundQuery, BoundStatement, weight_of
from everview.adapter.catalog.items import NO_RELATIONS, Index, Item, MaterializedView, Source, Table, View, oid_of
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import WRONG_OBJECT_TYPE
from everview.adapter.session_binding import SessionBinding
from everview.adapter.statement_cache import Key, StatementCache, size_of
from everview.adapter.statement_context import Meaning, StatementContext
from everview.adapter.statements import nodes
from everview.adapter.system.functions import looking_into, system_oid
from everview.adapter.system.registry import BY_ID, RELATIONS
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import all_scalars
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Literal, Scalar, columns_of, substitute
from everview.compute.ir.scalar import walk as walk_scalar
from everview.compute.ir.types import TEXT, SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.optimize.prune_columns import columns_read
from everview.compute.sql import compose
from everview.compute.sql import query as sql
from everview.compute.sql.dml import Change, Target, bind_change, default_row, delete_all
from everview.compute.sql.errors import SqlError, unsupported
from everview.compute.sql.hosting import Parameter, ParameterTypes, hosted
from everview.compute.sql.parse import Tree, parse_expression
from everview.compute.sql.query import Plan
from everview.compute.sql.scope import Collection
from everview.storage.contract import GlobalId

Pins: TypeAlias = Mapping[GlobalId, GlobalId]

VIEW_DEPTH_MAX = 64


@dataclass
class Names:
    """Names in force for one statement; remembers which items were found."""

    around: StatementContext
    used: set[GlobalId] = field(default_factory=set)
    pins: Pins | None = None  # of a stored query; others see views as they are now

    def find(self, path: Sequence[str]) -> Collection | None:
        """The relation that a name means; on the search path, the system's come first."""
        places = [path[-2]] if len(path) > 1 else self.around.all_schemas
        first = next((name for name in places if self._in(name, path[-1])), "")
        system = RELATIONS.get((first, path[-1]))
        if system is not None:
            full = (self.around.database, first, path[-1])
            return Collection(system.id, system.names, system.types, system_oid(first, path[-1]), path=full)
        item = self.around.find(path)
        if item is None:
            return None
        if isinstance(item, (Index, *NO_RELATIONS)):
            message = f'"{item.name}" is not a table, view, materialized view or source'
            detail = f"it is {'an' if isinstance(item, Index) else 'a'} {item.kind}"
            raise SqlError(WRONG_OBJECT_TYPE, message, detail=detail)
        if isinstance(item, Source) and not item.columns:
            hint = "read the tables of the source: SHOW SOURCES lists them"
            raise SqlError(WRONG_OBJECT_TYPE, f'source "{item.name}" has no rows of its own', hint=hint)
        self.used.add(item.id)
        if self.pins is not None:
            item = item.at_version(self.pins.get(item.id, item.id))
        full = self.around.catalog.full_name(item)
        seen = Collection(item.id, item.names, item.types, oid_of(item.id), path=full)
        earlier = tuple(each.earlier for each in item.columns)
        if item.places == tuple(range(len(item.columns))) and not any(earlier):
            return seen
        return replace(seen, stored=item.stored_types, places=item.places, earlier=earlier)

    def _in(self, schema: str, name: str) -> bool:
        return (schema, name) in RELATIONS or self.around.find_any([schema, name]) is not None

    def names(self) -> Iterable[str]:
        return [*self.around.names(), *(name for schema, name in RELATIONS if schema in self.around.all_schemas)]


QuerySource: TypeAlias = str | nodes.Named | Tree  # SQL, a relation by its name, or a tree that stands for a query


class Planner:
    """Plans statements. Statements and views that were bound are kept until the catalog changes."""

    def __init__(self) -> None:
        self.cache = StatementCache()
        self._numbers = itertools.count()

    def query(
        self,
        query: QuerySource,
        around: StatementContext,
        host: SessionBinding | None = None,
        *,
        indexed: bool = False,
        pins: Pins | None = None,
    ) -> BoundQuery:
        """Bind a query. `indexed` lets it read views from their indexes; a stored query has `pins`."""
        host = host or SessionBinding(around)
        names = Names(around, pins=pins)
        with _binding(host, around, stored=pins is not None):
            if isinstance(query, nodes.Named):
                query = compose.relation(query.path, query.columns, query.position)
            plan = sql.plan(query, names)
        if indexed:
            plan = replace(plan, relation=_from_indexes(plan.relation, around.catalog))
        return self._bound(plan, names, host)

    def definition(
        self, query: str, around: StatementContext, host: SessionBinding, pins: Pins | None = None
    ) -> BoundQuery:
        """A query that is to be stored: bound, and written with the names of relations in full."""
        names = Names(around, pins=pins)

        def in_full(path: Sequence[str]) -> tuple[str, ...] | None:
            item = around.find(path)
            return None if item is None else around.catalog.full_name(item)

        with _binding(host, around, stored=pins is not None):
            plan, text = sql.definition(query, names, in_full)
        return replace(self._bound(plan, names, host), definition=text.strip())

    def value(
        self, text: str, around: StatementContext, to: Sequence[SqlType], values: Sequence[Literal] = ()
    ) -> BoundQuery:
        """One row with one value: an expression, cast to one type after the other."""
        names, host = Names(around), SessionBinding(around, values=values)
        with _binding(host, around):
            plan = sql.value(text, names, to)
        return self._bound(plan, names, host)

    def change(
        self, text: str, around: StatementContext, host: SessionBinding | None = None
    ) -> tuple[Change, BoundQuery]:
        """An INSERT, UPDATE or DELETE: what it changes, and what it reads."""
        host, names = host or SessionBinding(around), Names(around)
        with _binding(host, around):
            change = bind_change(text, names, lambda path, position: _target(around, path, position))
        return self._changing(change, names, host)

    def delete_all(self, path: Sequence[str], around: StatementContext) -> tuple[Change, BoundQuery]:
        names = Names(around)
        target = _target(around, path, None)
        names.used.add(target.id)
        return self._changing(delete_all(target), names, SessionBinding(around))

    def default_row(self, path: Sequence[str], around: StatementContext) -> BoundQuery:
        """One row of a table, with the default of each column."""
        host, names = SessionBinding(around), Names(around)
        with _binding(host, around):
            change = default_row(_target(around, path, None), names)
        return self._changing(change, names, host)[1]

    def _changing(self, change: Change, names: Names, host: SessionBinding) -> tuple[Change, BoundQuery]:
        plan = Plan(change.relation, change.target.names, change.target.types)
        bound = self._bound(plan, names, host)
        names.around.catalog.check_one_timeline({change.target.id, *names.used}, "read and written by one statement")
        return replace(change, relation=bound.plan.relation), bound

    def statement(
        self,
        query: QuerySource,
        around: StatementContext,
        given: Sequence[SqlType | None] = (),
        *,
        change: bool = False,
        indexed: bool = True,
        optimized: bool = True,
        pins: Pins | None = None,
    ) -> tuple[BoundStatement, ParameterTypes]:
        """A statement bound once, for any values of its parameters, whose types are found out as far as not `given`.

        `indexed` lets it read views from their indexes, and it is `optimized` unless its plan is of interest as it is.
        """
        types = ParameterTypes(
            {number + 1: each for number, each in enumerate(given) if each is not None}, len(given), places=True
        )
        host = SessionBinding(around, types)

        def bind(host: SessionBinding) -> tuple[Change | None, BoundQuery]:
            if change:
                assert isinstance(query, str)
                return self.change(query, around, host)
            return None, self.query(query, around, host, indexed=indexed, pins=pins)

        try:
            found, bound = bind(host)
        except SqlError:
            if not types.highest and not host.asked:
                raise
            return self._open(bind, around, given)
        if _undecided(bound.plan.relation, found):
            known = [types.known.get(number + 1, TEXT) for number in range(types.highest)]
            options = {"change": change, "indexed": indexed, "optimized": optimized}
            return self.statement(query, around, known, pins=pins, **options)[0], types
        if bound.asked - host.asked:  # functions in views, of which this session's values are in the plan
            return self._open(bind, around, given)
        if optimized:
            with looking_into(around):
                relation = optimize(bound.plan.relation)
            bound = replace(bound, plan=replace(bound.plan, relation=relation), optimized=True)
            found = None if found is None else replace(found, relation=relation)
        parameters = tuple(types.known.get(number + 1, TEXT) for number in range(types.highest))
        weight = weight_of(bound.plan.relation)
        values = tuple(host.session_values)
        return BoundStatement(around.meaning, bound, found, parameters, values, weight=weight), types

    def _open(
        self,
        bind: Callable[[SessionBinding], tuple[Change | None, BoundQuery]],
        around: StatementContext,
        given: Sequence[SqlType | None],
    ) -> tuple[BoundStatement, ParameterTypes]:
        """A statement that has to be bound with its values, with NULLs for them until then."""
        types = ParameterTypes({number + 1: each for number, each in enumerate(given) if each is not None}, len(given))
        change, bound = bind(SessionBinding(around, types))
        parameters = tuple(types.known.get(number + 1, TEXT) for number in range(types.highest))
        return BoundStatement(around.meaning, bound, change, parameters, open=True), types

    def maintained(self, item: View | MaterializedView, around: StatementContext) -> Relation:
        """The plan that is maintained for the query of an item; indexes play no part in it."""
        bound = self.query(item.query, around, pins=item.pins)
        return optimize(laid_out(bound.plan.relation, item))

    def columns_read(self, item: Item, of: Item, around: StatementContext) -> set[int]:
        """The columns of a view's collection that an item, which names the view, needs."""
        seen = of.at_version(item.pins.get(of.id, of.id))
        if isinstance(item, Index):
            return set().union(*map(columns_of, self.keys(around.catalog, of, item.keys, around, stored=True)))
        if not isinstance(item, View | MaterializedView):
            return set(seen.places)
        with _binding(SessionBinding(around, stored=True), around, stored=True):
            plan = sql.plan(item.query, Names(around, pins=item.pins))
        return columns_read(ir.Project(plan.relation, tuple(range(len(item.columns)))), of.id)

    def keys(
        self, catalog: Catalog, on: Item, texts: Sequence[str], around: StatementContext, *, stored: bool = False
    ) -> tuple[Scalar, ...]:
        """The key expressions of an index, over the columns of its relation."""
        names = Names(around)
        host = SessionBinding(around)
        with _binding(host, around, stored=stored):
            tree = compose.relation(catalog.full_name(on), items=[parse_expression(each) for each in texts])
            plan = sql.plan(tree, names)
        found = None if host.asked else _over_columns(plan.relation)
        if found is None:
            raise unsupported("an index on this expression", hint="columns, and functions of columns, can be keys")
        return found

    def _bound(self, plan: Plan, names: Names, host: SessionBinding, depth: int = 0) -> BoundQuery:
        asked = set(host.asked)
        relation = _one_width(self._inlined(plan.relation, names.around, asked, depth))
        gets = {each.id for each in ir.walk(relation) if isinstance(each, ir.Get)}
        system = frozenset(id for id in gets if id in BY_ID)
        stored = frozenset(id for id in gets if id in names.around.catalog.items)
        names.around.catalog.check_one_timeline(names.used)
        return BoundQuery(replace(plan, relation=relation), frozenset(names.used), stored, system, frozenset(asked))

    def _inlined(self, relation: Relation, around: StatementContext, asked: set[str], depth: int) -> Relation:
        """The plan with every view replaced by its query."""
        if depth > VIEW_DEPTH_MAX:
            raise SqlError("54001", f"views are nested more than {VIEW_DEPTH_MAX} deep")

        def look(part: Relation) -> Relation:
            if not isinstance(part, ir.Get):
                return part
            item = around.catalog.items.get(part.id)
            if not isinstance(item, View):
                return part
            bound, body = self._view(item, around, depth + 1)
            asked.update(bound.asked)
            return self._renamed(body)

        return ir.transform(relation, look)

    def _view(self, item: View, around: StatementContext, depth: int) -> tuple[BoundQuery, Relation]:
        key = Key(f"view {item.id}", (), Meaning(around.catalog.version))
        kept: tuple[BoundQuery, Relation] | None = self.cache.get(key)
        if kept is not None:
            return kept
        host = SessionBinding(around, stored=True)
        names = Names(around, pins=item.pins)
        with _binding(host, around, stored=True):
            plan = sql.plan(item.query, names)
        bound = self._bound(plan, names, host, depth)
        shown = ir.Project(bound.plan.relation, tuple(range(len(item.columns))))
        if not bound.asked:  # else it means something else for another session, or a moment later
            self.cache.put(key, (bound, shown), size_of(item.query, weight_of(shown)))
        return bound, shown

    def _renamed(self, relation: Relation) -> Relation:
        """Rename what a plan binds, so that no name clashes with one of the plan around it."""
        new = {each.id: f"v{next(self._numbers)}" for each in ir.walk(relation) if isinstance(each, ir.Let)}
        if not new:
            return relation

        def look(part: Relation) -> Relation:
            if isinstance(part, ir.Get):
                return replace(part, id=new.get(part.id, part.id))
            return replace(part, id=new[part.id]) if isinstance(part, ir.Let) else part

        return ir.transform(relation, look)


def _undecided(relation: Relation, change: Change | None) -> bool:
    """Whether a parameter is left whose type nothing has decided."""
    relations = [relation]
    if change is not None and change.returning is not None:
        relations.append(change.returning.relation)
    return any(
        isinstance(part, Parameter)
        for each in relations
        for scalar in all_scalars(each)
        for part in walk_scalar(scalar)
    )


def laid_out(relation: Relation, item: Item) -> Relation:
    """The columns of a query as the columns of an item's collection: what the item has no column for is NULL."""
    width, places, stored = len(item.columns), item.places, item.stored_types
    shown = ir.Project(relation, tuple(range(width)))
    if places == tuple(range(width)):
        return shown
    others = [place for place in range(len(stored)) if place not in places]
    filled_up = ir.Map(shown, tuple(Literal(None, stored[place]) for place in others))
    order = {place: index for index, place in enumerate((*places, *others))}
    return ir.Project(filled_up, tuple(order[place] for place in range(len(stored))))


def _one_width(relation: Relation) -> Relation:
    """The plan with one schema for each collection: views that it names may know fewer columns than it does itself."""
    bound = {each.id for each in ir.walk(relation) if isinstance(each, ir.Let)}
    widest: dict[str, ir.Get] = {}
    for each in ir.walk(relation):
        if isinstance(each, ir.Get) and each.id not in bound:
            other = widest.setdefault(each.id, each)
            widest[each.id] = max(other, each, key=lambda get: len(get.schema))

    def look(part: Relation) -> Relation:
        if not isinstance(part, ir.Get) or part.id not in widest or part.schema == widest[part.id].schema:
            return part
        return ir.Project(widest[part.id], tuple(range(len(part.schema))))

    return ir.transform(relation, look)


@contextmanager
def _binding(host: SessionBinding, around: StatementContext, *, stored: bool = False) -> Iterator[None]:
    with hosted(host, stored=stored), looking_into(around):
        yield


def _target(around: StatementContext, path: Sequence[str], position: int | None) -> Target:
    """The table that a statement writes to."""
    if len(path) > 1 and (path[-2], path[-1]) in RELATIONS:
        raise SqlError("42501", f'system relation "{".".join(path)}" cannot be written to', position=position)
    item = around.relation(path, position)
    if not isinstance(item, Table):
        message = f'cannot write to {item.kind} "{item.name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message, hint="only tables can be written to", position=position)
    path = around.catalog.full_name(item)
    return Target(item.id, path, item.names, item.types, tuple(column.default for column in item.columns))


def _over_columns(relation: Relation) -> tuple[Scalar, ...] | None:
    """Express the columns of a relation as scalars over the one collection below. None if it does more than that."""
    match relation:
        case ir.Get():
            return ir.all_columns(relation)
        case ir.Project(below, columns):
            inner = _over_columns(below)
            return None if inner is None else tuple(inner[index] for index in columns)
        case ir.Map(below, scalars):
            inner = _over_columns(below)
            if inner is None:
                return None
            values = list(inner)
            for scalar in scalars:
                values.append(substitute(scalar, values))
            return tuple(values)
        case _:
            return None


def _from_indexes(relation: Relation, catalog: Catalog) -> Relation:
    """The plan with views that are maintained for an index read from there."""

    def look(part: Relation) -> Relation:
        item = catalog.items.get(part.id) if isinstance(part, ir.Get) else None
        if not isinstance(item, View):
            return part
        if catalog.stream_timelines and not catalog.roots(item.id):
            return part  # constants are the same on all timelines, and what is kept of them is on one
        maintained = [index for index in catalog.indexes_on(item.id) if index.reader is not None]
        return ir.Get(maintained[0].id, item.types) if maintained else part

    return ir.transform(relation, look)
