"""Statements to plans: names looked up in the catalog, views replaced by their queries, sessions asked where needed."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from everview.adapter.bound import Bound
from everview.adapter.catalog.items import (
    Index,
    Item,
    MaterializedView,
    Sink,
    Source,
    Subscription,
    Table,
    View,
    oid_of,
)
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import WRONG_OBJECT_TYPE
from everview.adapter.host import SessionHost
from everview.adapter.surroundings import Surroundings
from everview.adapter.system.functions import looking_into, system_oid
from everview.adapter.system.registry import BY_ID, RELATIONS
from everview.adapter.system.relation import SystemRelation
from everview.adapter.templates import TEXT_CHARACTERS_MAX, Template, TemplateHost, Templates, weight_of
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Literal, Scalar, columns_of, substitute
from everview.compute.ir.types import SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.optimize.prune_columns import columns_read
from everview.compute.sql import query as sql
from everview.compute.sql.dml import Change, Target, bind_change
from everview.compute.sql.errors import SqlError, unsupported
from everview.compute.sql.hosting import ParameterTypes, hosted
from everview.compute.sql.query import Plan
from everview.compute.sql.references import quoted
from everview.compute.sql.scope import Collection
from everview.storage.contract import GlobalId

Pins: TypeAlias = Mapping[GlobalId, GlobalId]

VIEWS_CACHED_MAX = 1_000
VIEW_DEPTH_MAX = 64


@dataclass
class Names:
    """Names in force for one statement; remembers which items were found."""

    around: Surroundings
    used: set[GlobalId] = field(default_factory=set)
    pins: Pins | None = None  # of a stored query; others see views as they are now

    def find(self, path: Sequence[str]) -> Collection | None:
        """The relation that a name means; on the search path, the system's come first."""
        places = [path[-2]] if len(path) > 1 else self.around.all_schemas
        first = next((name for name in places if self._in(name, path[-1])), "")
        system = RELATIONS.get((first, path[-1]))
        if system is not None:
            return Collection(system.id, system.names, system.types, system_oid(first, path[-1]))
        item = self.around.find(path)
        if item is None:
            return None
        if isinstance(item, Index | Sink | Subscription):
            message = f'"{item.name}" is not a table, view, materialized view or source'
            detail = f"it is {'an' if isinstance(item, Index) else 'a'} {item.kind}"
            raise SqlError(WRONG_OBJECT_TYPE, message, detail=detail)
        if isinstance(item, Source) and not item.columns:
            hint = "read the tables of the source: SHOW SOURCES lists them"
            raise SqlError(WRONG_OBJECT_TYPE, f'source "{item.name}" has no rows of its own', hint=hint)
        self.used.add(item.id)
        if self.pins is not None:
            item = item.at_version(self.pins.get(item.id, item.id))
        seen = Collection(item.id, item.names, item.types, oid_of(item.id))
        earlier = tuple(each.earlier for each in item.columns)
        if item.places == tuple(range(len(item.columns))) and not any(earlier):
            return seen
        return replace(seen, stored=item.stored_types, places=item.places, earlier=earlier)

    def _in(self, schema: str, name: str) -> bool:
        return (schema, name) in RELATIONS or self.around.find_any([schema, name]) is not None

    def names(self) -> Iterable[str]:
        """Names that exist."""
        return [*self.around.names(), *(name for schema, name in RELATIONS if schema in self.around.all_schemas)]


class Planner:
    """Plans statements. Plans of views are kept until the catalog changes."""

    def __init__(self) -> None:
        self._views: OrderedDict[tuple[int, GlobalId], tuple[Bound, Relation]] = OrderedDict()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._templates = Templates()

    def query(
        self,
        text: str,
        around: Surroundings,
        host: SessionHost | None = None,
        *,
        indexed: bool = False,
        pins: Pins | None = None,
    ) -> Bound:
        """A query; `indexed` lets it read views from their indexes, and `pins` are those of a query that is stored."""
        host = host or SessionHost(around)
        names = Names(around, pins=pins)
        with _binding(host, around):
            plan = sql.plan(text, names)
        if indexed:
            plan = replace(plan, relation=_from_indexes(plan.relation, around.catalog))
        return self._bound(plan, names, host)

    def read(
        self, text: str, around: Surroundings, values: Sequence[Literal] = (), prepared: Template | None = None
    ) -> Bound:
        """A query that is read now, with the values of its parameters: from a template, if it can be."""
        template = self.template(text, around, [value.type for value in values], prepared=prepared)
        if template is None:
            return self.query(text, around, SessionHost(around, values=values), indexed=True)
        return template.filled(values).bound

    def write(
        self, text: str, around: Surroundings, values: Sequence[Literal] = (), prepared: Template | None = None
    ) -> tuple[Change, Bound]:
        """An INSERT, UPDATE or DELETE, with the values of its parameters: from a template, if it can be."""
        template = self.template(text, around, [value.type for value in values], change=True, prepared=prepared)
        if template is None:
            return self.change(text, around, SessionHost(around, values=values))
        filled = template.filled(values)
        assert filled.change is not None
        return filled.change, filled.bound

    def template(
        self,
        text: str,
        around: Surroundings,
        types: Sequence[SqlType],
        *,
        change: bool = False,
        prepared: Template | None = None,
    ) -> Template | None:
        """A statement with places for its parameters; None if it can only be bound with their values.

        It is the one that was `prepared`, if that still means the same.
        """
        key = self._templates.key(text, around, types)
        if prepared is not None and prepared.key == key:
            return prepared
        if len(text) > TEXT_CHARACTERS_MAX:
            return self._template(key, text, around, types, change=change)
        known, template = self._templates.get(key)
        if not known:
            template = self._template(key, text, around, types, change=change)
            self._templates.put(key, template)
        return template

    def _template(
        self, key: Hashable, text: str, around: Surroundings, types: Sequence[SqlType], *, change: bool
    ) -> Template | None:
        host = TemplateHost(around, types)
        changed: Change | None = None
        try:
            if change:
                changed, bound = self.change(text, around, host)
            else:
                bound = self.query(text, around, host, indexed=True)
        except SqlError:
            return None  # with the values it may be bound, and if not, the error is about those
        if bound.asked:
            return None
        with looking_into(around):
            relation = optimize(bound.plan.relation)
        bound = replace(bound, plan=replace(bound.plan, relation=relation), optimized=True)
        change_of = None if changed is None else replace(changed, relation=relation)
        return Template(key, bound, change_of, weight_of(relation))

    def change(self, text: str, around: Surroundings, host: SessionHost | None = None) -> tuple[Change, Bound]:
        """An INSERT, UPDATE or DELETE: what it changes, and what it reads."""
        host = host or SessionHost(around)
        names = Names(around)
        with _binding(host, around):
            change = bind_change(text, names, lambda path, position: _target(around, path, position))
        plan = Plan(change.relation, change.target.names, change.target.types)
        bound = self._bound(plan, names, host)
        around.catalog.check_one_timeline({change.target.id, *names.used}, "read and written by one statement")
        return replace(change, relation=bound.plan.relation), bound

    def parameters(
        self, text: str, around: Surroundings, given: ParameterTypes, *, change: bool, pins: Pins | None = None
    ) -> tuple[Plan | None, ParameterTypes]:
        """What a statement gives, and the types of its parameters as far as they can be known."""
        host = SessionHost(around, types=given)
        names = Names(around, pins=pins)
        with _binding(host, around):
            if change:
                # What RETURNING gives is all there is to describe; names in it are looked up as in a query.
                bound = bind_change(text, names, lambda path, position: _target(around, path, position))
                return bound.returning, given
            return sql.plan(text, names), given

    def maintained(self, item: View | MaterializedView, around: Surroundings) -> Relation:
        """The plan that is maintained for the query of an item; indexes play no part in it."""
        bound = self.query(item.query, around, pins=item.pins)
        return optimize(laid_out(bound.plan.relation, item))

    def columns_read(self, item: Item, of: Item, around: Surroundings) -> set[int]:
        """The columns of a view's collection that an item, which names the view, needs."""
        seen = of.at_version(item.pins.get(of.id, of.id))
        if isinstance(item, Index):
            return set().union(*map(columns_of, self.keys(around.catalog, of, item.keys, around)))
        if not isinstance(item, View | MaterializedView):
            return set(seen.places)
        with _binding(SessionHost(around, stored=True), around):
            plan = sql.plan(item.query, Names(around, pins=item.pins))
        return columns_read(ir.Project(plan.relation, tuple(range(len(item.columns)))), of.id)

    def keys(self, catalog: Catalog, on: Item, texts: Sequence[str], around: Surroundings) -> tuple[Scalar, ...]:
        """The key expressions of an index, over the columns of its relation."""
        name = ".".join(map(quoted, catalog.full_name(on)))
        names = Names(around)
        host = SessionHost(around)
        with _binding(host, around):
            keys = ", ".join(f"({text})" for text in texts)  # an expression each, and nothing behind it
            plan = sql.plan(f"SELECT {keys} FROM {name}", names)
        found = None if host.asked else _over_columns(plan.relation)
        if found is None:
            raise unsupported("an index on this expression", hint="columns, and functions of columns, can be keys")
        return found

    def _bound(self, plan: Plan, names: Names, host: SessionHost, depth: int = 0) -> Bound:
        asked = set(host.asked)
        relation = _one_width(self._inlined(plan.relation, names.around, asked, depth))
        gets = {each.id for each in ir.walk(relation) if isinstance(each, ir.Get)}
        system = frozenset(id for id in gets if id in BY_ID)
        stored = frozenset(id for id in gets if id in names.around.catalog.items)
        names.around.catalog.check_one_timeline(names.used)
        return Bound(replace(plan, relation=relation), frozenset(names.used), stored, system, frozenset(asked))

    def _inlined(self, relation: Relation, around: Surroundings, asked: set[str], depth: int) -> Relation:
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

    def _view(self, item: View, around: Surroundings, depth: int) -> tuple[Bound, Relation]:
        key = (around.catalog.version, item.id)
        with self._lock:
            if key in self._views:
                self._views.move_to_end(key)
                return self._views[key]
        host = SessionHost(around, stored=True)
        names = Names(around, pins=item.pins)
        with _binding(host, around):
            plan = sql.plan(item.query, names)
        bound = self._bound(plan, names, host, depth)
        shown = ir.Project(bound.plan.relation, tuple(range(len(item.columns))))
        if not bound.asked:  # else it means something else for another session, or a moment later
            with self._lock:
                self._views[key] = bound, shown
                while len(self._views) > VIEWS_CACHED_MAX:
                    self._views.popitem(last=False)
        return bound, shown

    def _renamed(self, relation: Relation) -> Relation:
        """The plan with new names for what it binds, so that none meets a name of the plan around."""
        new = {each.id: f"v{next(self._numbers)}" for each in ir.walk(relation) if isinstance(each, ir.Let)}
        if not new:
            return relation

        def look(part: Relation) -> Relation:
            if isinstance(part, ir.Get):
                return replace(part, id=new.get(part.id, part.id))
            return replace(part, id=new[part.id]) if isinstance(part, ir.Let) else part

        return ir.transform(relation, look)


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
def _binding(host: SessionHost, around: Surroundings) -> Iterator[None]:
    with hosted(host), looking_into(around):
        yield


def _target(around: Surroundings, path: Sequence[str], position: int | None) -> Target:
    """The table that a statement writes to."""
    if len(path) > 1 and (path[-2], path[-1]) in RELATIONS:
        raise SqlError("42501", f'system relation "{".".join(path)}" cannot be written to', position=position)
    item = around.relation(path, position)
    if not isinstance(item, Table):
        message = f'cannot write to {item.kind} "{item.name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message, hint="only tables can be written to", position=position)
    return Target(item.id, item.names, item.types, tuple(column.default for column in item.columns))


def _over_columns(relation: Relation) -> tuple[Scalar, ...] | None:
    """The columns of a relation as scalars over the one collection below; None if there is more to it than that."""
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


def system_relation(id: str) -> SystemRelation:
    """The relation of the system that a plan reads."""
    return BY_ID[id]
