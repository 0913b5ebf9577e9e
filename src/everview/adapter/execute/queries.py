"""Statements that read: queries, and EXPLAIN of them."""

from __future__ import annotations

import json
import re

from everview.adapter.bound_statement import BoundQuery, at_time
from everview.adapter.catalog.items import MaterializedView
from everview.adapter.catalog.items import View as ViewItem
from everview.adapter.contract import Result, Rows
from everview.adapter.durable import resumed
from everview.adapter.execute.context import Context
from everview.adapter.results import RowList, columns_of, result_rows, text_columns
from everview.adapter.statements import nodes
from everview.adapter.timestamps import TimestampChoice
from everview.compute.explain import SHARED, explain_view
from everview.compute.functions.lookup import is_volatile
from everview.compute.functions.registry import TABLES
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import all_scalars
from everview.compute.ir.show import show
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.errors import SqlError, unsupported
from everview.compute.view import View
from everview.storage.shard import FOREVER


def run_query(context: Context, statement: nodes.Query) -> Rows:
    bound = context.bind_read(statement.query)
    at_least = statement.as_of is not None and statement.as_of.at_least
    if statement.as_of is not None:
        refuse_system_as_of(bound)
    rows = context.read(bound, context.as_of(statement.as_of), at_least=at_least)
    return result_rows(columns_of(bound.plan.names, bound.plan.types), rows)


def refuse_system_as_of(bound: BoundQuery) -> None:
    """Raise if a query that gives its time reads relations of the system: these are functions of the present."""
    if bound.system:
        names = ", ".join(sorted(bound.system))
        hint = "leave AS OF out, or read tables and views only"
        detail = f"the query reads {names}, and relations of the system have only a present"
        raise SqlError("0A000", "AS OF is not supported for relations of the system", detail=detail, hint=hint)


_ID = re.compile(r"\bu[0-9]+\b")
_COLUMN = re.compile(r"\b(\w+)\.#(\d+)")
EXPLAINED = text_columns("Plan")


def run_explain(context: Context, statement: nodes.Explain) -> Result:
    maintained = statement.stage == "maintained"
    bound, as_of = _explained(context, statement.statement, maintained=maintained)
    if statement.stage == "timestamp":
        at_least = as_of is not None and as_of.at_least
        if as_of is not None:
            refuse_system_as_of(bound)
        choice = context.choose(bound, context.as_of(as_of), at_least=at_least)
        shown = _timestamp_json(context, choice) if statement.form == "json" else _timestamp(context, choice)
        return RowList(text_columns("Timestamp"), [(shown,)], "EXPLAIN")
    text = _installed(context, statement) or _plan(context, bound, statement.stage)
    if isinstance(statement.statement, nodes.Query) and statement.stage == "optimized":
        catalog = context.around.catalog
        plan = optimize(bound.plan.relation)
        used = context.coordinator.indexes.using(plan)
        lines = [f"  {catalog.shown(catalog.items[id])}" for id in dict.fromkeys(used) if id in catalog.items]
        text += "\n".join(["", "", "Used indexes:", *lines]) if lines else ""
        text += f"\n\nEngine: {context.coordinator.peeks.engine_name(plan, context.around)}"
    return RowList(EXPLAINED, [(text,)], "EXPLAIN")


def _explained(
    context: Context, inner: nodes.Statement, *, maintained: bool = False
) -> tuple[BoundQuery, nodes.AsOf | None]:
    match inner:
        case nodes.Query(query, as_of) if maintained:  # as if a view were made of it
            if as_of is not None:
                raise unsupported("AS OF in a query that is maintained", hint="EXPLAIN TIMESTAMP tells when it is read")
            bound = context.prepared(query)
            refuse_unmaintainable(context, bound, "a materialized view")
            return bound, None
        case nodes.Query(query, as_of):
            return context.bind_read(query), as_of
        case nodes.Subscribe(as_of=as_of):
            subscribe, durable = resumed(inner, context.around)
            return context.prepared(subscribe.query, None if durable is None else durable.pins), as_of
        case nodes.CreateView(query=text):
            return context.bind(text), None
        case nodes.ShowCreate(kind, path):
            item = context.around.relation(path)
            if not isinstance(item, ViewItem | MaterializedView) or not isinstance(item, kind):
                raise SqlError("42809", f'"{item.name}" is not a {kind.noun}', detail=f"it is a {item.kind}")
            return context.bind(item.query, item.pins), None
        case nodes.Modify(text):
            return context.bind_change(text)[1], None
        case _:
            raise unsupported("EXPLAIN of this statement", hint="queries and changes of tables can be explained")


def _installed(context: Context, statement: nodes.Explain) -> str | None:
    """The plan by which an existing view is maintained, for EXPLAIN."""
    if statement.stage != "maintained" or not isinstance(statement.statement, nodes.ShowCreate):
        return None
    text = context.coordinator.maintenance.explain(context.around.relation(statement.statement.path).id)
    return None if text is None else _named(context, text)


def _plan(context: Context, bound: BoundQuery, stage: str) -> str:
    relation = bound.plan.relation
    if stage == "raw":
        return _named(context, show(relation))
    relation = maintained_plan(bound, len(bound.plan.names)) if stage == "maintained" else optimize(relation)
    if stage == "optimized" or bound.recursive:  # which is read, never maintained
        return _named(context, show(relation))
    return _named(context, explain_view(View.of(relation)))


def maintained_plan(bound: BoundQuery, width: int) -> ir.Relation:
    """The plan that is maintained for a query: its shown columns only, optimized."""
    return optimize(ir.Project(bound.plan.relation, tuple(range(width))))


def _named(context: Context, text: str) -> str:
    """The text of a plan with names in place of ids."""
    catalog = context.around.catalog
    lines = []
    for line in text.splitlines():
        head, word, id = line.rpartition("Get ")
        item = catalog.items.get(id) if word else None
        shown = f"{head}Get {catalog.shown(item)}" if item is not None else line
        kept, word, shared = shown.partition(SHARED)
        shown = kept + word + _ID.sub(lambda id: _shown(context, id[0]), shared)
        lines.append(_COLUMN.sub(lambda found: _column(context, found), shown))
    return "\n".join(lines)


def _shown(context: Context, id: str) -> str:
    """The name of an item."""
    item = context.around.catalog.items.get(id)
    return id if item is None else context.around.catalog.shown(item)


def _column(context: Context, found: re.Match[str]) -> str:
    """The name of a column that a plan gives by its collection's id and its place."""
    item = context.around.catalog.items.get(found[1])
    place = int(found[2])
    return f"{item.name}.{item.columns[place].name}" if item and place < len(item.columns) else found[0]


def _timestamp(context: Context, choice: TimestampChoice) -> str:
    catalog = context.around.catalog
    wanted = choice.wanted
    lines = [
        f"query timestamp: {choice.time}",
        *([] if choice.name is None else [f"timeline: {choice.name}"]),
        f"timeline frontier: [{choice.timeline}]",
        f"isolation level: {wanted.isolation}",
        f"can respond immediately: {str(choice.immediate).lower()}",
    ]
    if wanted.as_of is not None:
        lines.append(f"as of: {wanted.as_of}{' at least' if wanted.at_least else ''}")
    for each in choice.inputs:
        lines.append(f"source {catalog.shown(catalog.items[each.id])} ({each.id}):")
        lines.append(f"  read frontier: [{_frontier(each.since)}]")
        lines.append(f"  write frontier: [{_frontier(each.upper)}]")
    return "\n".join(lines)


def _timestamp_json(context: Context, choice: TimestampChoice) -> str:
    """The same as one JSON document: times are numbers, and a frontier is a list that is empty at the end of time."""
    catalog, wanted = context.around.catalog, choice.wanted
    sources = [
        {
            "name": catalog.shown(catalog.items[each.id]),
            "id": each.id,
            "read_frontier": [] if each.since == FOREVER else [each.since],
            "write_frontier": [] if each.upper == FOREVER else [each.upper],
        }
        for each in choice.inputs
    ]
    told = {
        "query_timestamp": choice.time,
        **({} if choice.name is None else {"timeline": choice.name}),
        "timeline_frontier": [choice.timeline],
        "isolation_level": wanted.isolation,
        "can_respond_immediately": choice.immediate,
        "as_of": wanted.as_of,
        "at_least": wanted.at_least,
        "sources": sources,
    }
    return json.dumps(told, indent=2)


def _frontier(time: int) -> str:
    return "" if time == FOREVER else str(time)


def refuse_unmaintainable(context: Context, bound: BoundQuery, what: str) -> None:
    """Raise unless the query means the same for everyone and at each time by itself.

    Whether what it says of `mz_now()` can be maintained is known to the view that is then made of it.
    """
    if bound.asked:
        name = min(bound.asked)
        hint = "temporal filters with mz_now() are the way to speak of time in maintained queries"
        raise SqlError("0A000", f"cannot materialize call to {name}()", detail=f"{what} must be definite", hint=hint)
    if bound.system:
        names = ", ".join(sorted(bound.system))
        raise SqlError("0A000", f"{what} cannot depend on relations of the system", detail=f"it reads {names}")
    for scalar in all_scalars(at_time(bound.plan.relation, 0)):
        if is_volatile(scalar):
            raise SqlError("0A000", f"{what} cannot call functions that look into the catalog")
    for part in ir.walk(bound.plan.relation):
        if isinstance(part, ir.FlatMap) and TABLES[part.function].volatile:
            raise SqlError("0A000", f"{what} cannot call functions that look into the catalog")
