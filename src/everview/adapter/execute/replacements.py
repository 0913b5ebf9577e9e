"""Statements that change a materialized view in place: a replacement is staged, looked at, and applied or dropped.

What is refused is refused when the replacement is made; what may have changed meanwhile is looked at again when it is
applied. Errors name both views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from everview.adapter.catalog.items import Item
from everview.adapter.catalog.state import Catalog
from everview.adapter.contract import Done, Result, Rows
from everview.adapter.errors import (
    DUPLICATE_OBJECT,
    INSUFFICIENT_PRIVILEGE,
    INVALID_PARAMETER_VALUE,
    OBJECT_NOT_READY,
    WRONG_OBJECT_TYPE,
)
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import create_materialized, exists, retain_ms, view_columns
from everview.adapter.execute.ownership import check_owner
from everview.adapter.execute.queries import run_query
from everview.adapter.planner import Bound, Pins
from everview.adapter.settings import duration_ms
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.surroundings import Surroundings
from everview.adapter.system.relations import RELATIONS
from everview.compute.sql.errors import SqlError
from everview.compute.sql.references import quoted

_CREATED, _ALTERED = Done("CREATE MATERIALIZED VIEW"), Done("ALTER MATERIALIZED VIEW")


def create_replacement(context: Context, statement: nodes.CreateReplacement) -> Result:
    """CREATE MATERIALIZED VIEW … REPLACING."""
    coordinator, view = context.coordinator, statement.view
    retain, automatic = _options(view.options)
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        schema = context.around.schema_for(view.path)
        if exists(context, schema, view.path[-1], if_not_exists=view.if_not_exists):
            return _CREATED
        name = view.path[-1]
        target = _target(context, statement.target, name)
        item = Item("", "materialized view", name, schema.id, context.around.user)
        item = _stage(context, target, view, replace(item, retain_ms=retain, automatic=automatic))
        if automatic:
            coordinator.replacements.apply_when_hydrated(item)
    return _CREATED


def _stage(
    context: Context,
    target: Item,
    view: nodes.CreateView,
    item: Item,
    *,
    pins: Pins | None = None,
) -> Item:
    """Install a replacement, and enter it in the catalog, whose lock is held; `pins` are those of a stored query."""
    catalog = context.around.catalog
    bound = context.bind(view.query, pins)
    columns = view_columns(view, bound)
    _check_staged(catalog, target, item.name, bound)
    context.coordinator.replacements.check_columns(target, item.name, columns)
    item = replace(item, columns=columns, replaces=target.id)
    return create_materialized(context, item, view.query, bound, pins=pins, replaces=catalog.shown(target))


def _options(options: Mapping[str, str]) -> tuple[int | None, bool]:
    """RETAIN HISTORY FOR, and APPLY WHEN HYDRATED."""
    if options.get("forward") == "time":
        hint = "say so when it is applied: APPLY REPLACEMENT … WITH (FORWARD TIME)"
        raise SqlError(INVALID_PARAMETER_VALUE, "FORWARD TIME is no option of a replacement", hint=hint)
    unknown = set(options) - {"retain history", "apply when"}
    if unknown:
        hint = "RETAIN HISTORY FOR and APPLY WHEN HYDRATED exist"
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=hint)
    if options.get("apply when", "hydrated") != "hydrated":
        raise SqlError(INVALID_PARAMETER_VALUE, "a replacement is applied WHEN HYDRATED, or by a statement")
    retain = retain_ms(options["retain history"]) if "retain history" in options else None
    return retain, "apply when" in options


def _target(context: Context, path: Path, name: str) -> Item:
    """The view that is to be replaced by one of this name."""
    around = context.around
    item = around.find(path)
    schemas = [path[-2]] if len(path) > 1 else list(around.all_schemas)
    if item is None and any((schema, path[-1]) in RELATIONS for schema in schemas):
        message = f'cannot replace system relation "{".".join(path)}" with "{name}"'
        raise SqlError(INSUFFICIENT_PRIVILEGE, message)
    if item is None:
        raise around.missing(path)
    if item.kind != "materialized view":
        message = f'cannot replace {item.kind} "{item.name}" with "{name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message, detail="only materialized views can be replaced")
    check_owner(context, item)
    catalog = around.catalog
    if item.replaces is not None:
        message = f'cannot replace "{item.name}" with "{name}" because it is a replacement itself'
        hint = f'drop "{item.name}", and replace "{catalog.items[item.replaces].name}" with "{name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message, hint=hint)
    other = catalog.replacement_of(item.id)
    if other is not None:
        message = f'cannot replace "{item.name}" with "{name}" because "{other.name}" is staged to replace it'
        raise SqlError(DUPLICATE_OBJECT, message, hint=f"apply or drop it: DROP MATERIALIZED VIEW {quoted(other.name)}")
    if not catalog.roots(item.id):
        message = f'cannot replace "{item.name}" with "{name}" because it is complete for ever'
        raise SqlError(OBJECT_NOT_READY, message, detail=f'"{item.name}" reads no table or source')
    return item


def _check_staged(catalog: Catalog, target: Item, name: str, bound: Bound) -> None:
    """Raise unless a query can take the place of the target's."""
    above = {each.id: each for each in catalog.closure([target.id])}
    cycle = sorted(bound.uses & above.keys())
    if cycle:
        detail = "\n".join(
            f'"{name}" reads "{above[each].name}"'
            + ("" if each == target.id else f', which is made from "{target.name}"')
            for each in cycle
        )
        raise SqlError("42P19", f'cannot replace "{target.name}" with "{name}" because it depends on it', detail=detail)
    if not any(catalog.roots(each) for each in bound.uses):
        message = f'cannot replace "{target.name}" with "{name}", which reads no table or source'
        raise SqlError("0A000", message, detail=f'"{target.name}" would be complete for ever')


# ALTER


def apply_replacement(context: Context, statement: nodes.ApplyReplacement) -> Result:
    """ALTER MATERIALIZED VIEW … APPLY REPLACEMENT."""
    around = context.around
    target, item = around.relation(statement.target), around.relation(statement.replacement)
    if target.kind != "materialized view":
        message = f'cannot apply replacement "{item.name}" to {target.kind} "{target.name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message)
    if item.replaces is None:
        message = f'cannot apply {item.kind} "{item.name}" to "{target.name}": it is not a replacement'
        hint = f"stage one: CREATE MATERIALIZED VIEW … REPLACING {quoted(target.name)} AS …"
        raise SqlError(WRONG_OBJECT_TYPE, message, hint=hint)
    if item.replaces != target.id:
        other = around.catalog.items[item.replaces]
        message = f'cannot apply replacement "{item.name}" to "{target.name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message, detail=f'"{item.name}" is staged to replace "{other.name}"')
    check_owner(context, target)
    check_owner(context, item)
    context.coordinator.replacements.check_columns(target, item.name, item.columns)
    timeout, forward = _timeout_s(statement.options), statement.options.get("forward") == "time"
    interrupts = context.session.interrupts
    context.coordinator.replacements.apply(target, item, interrupts, around.user, timeout, forward=forward)
    return _ALTERED


def _timeout_s(options: Mapping[str, str]) -> float | None:
    unknown = {name for name, value in options.items() if name != "timeout" and (name, value) != ("forward", "time")}
    if unknown:
        hint = "TIMEOUT and FORWARD TIME exist"
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=hint)
    if "timeout" not in options:
        return None
    try:
        return duration_ms(options["timeout"]) / 1000
    except ValueError as error:
        message = f'invalid TIMEOUT: "{options["timeout"]}"'
        raise SqlError(INVALID_PARAMETER_VALUE, message, detail=str(error)) from error


def rollback_replacement(context: Context, statement: nodes.RollbackReplacement) -> Result:
    """ALTER MATERIALIZED VIEW … ROLLBACK REPLACEMENT: the definition before is staged as a replacement."""
    with context.coordinator.catalog.lock:
        context = replace(context, around=context.session.surroundings())
        catalog = context.around.catalog
        found = context.around.relation(statement.target)
        schema = catalog.schemas[found.schema]
        name, number = f"{found.name}_rollback", 0
        while catalog.item(schema, name) is not None:
            number += 1
            name = f"{found.name}_rollback{number}"
        target = _target(context, statement.target, name)
        if not target.history:
            message = f'materialized view "{target.name}" has had no definition before this one'
            raise SqlError(OBJECT_NOT_READY, message)
        before = target.history[-1]
        names = tuple(column.name for column in before.columns)
        view = nodes.CreateView((schema.name, name), names, before.query, True)
        item = Item("", "materialized view", name, target.schema, target.owner)
        _stage(context, target, view, item, pins=before.pins)
        context.session.notice(
            f'the definition before is staged as "{name}": ALTER MATERIALIZED VIEW {quoted(target.name)}'
            f" APPLY REPLACEMENT {quoted(name)}"
        )
    return _ALTERED


# SHOW


def show_difference(context: Context, statement: nodes.ShowReplacementDiff) -> Rows:
    """SHOW REPLACEMENT DIFF."""
    return run_query(context, nodes.Query(difference_query(statement, context.around)))


def difference_query(statement: nodes.ShowReplacementDiff, around: Surroundings) -> str:
    """The query that SHOW REPLACEMENT DIFF stands for: rows to be added, and rows to be removed."""
    item = around.relation(statement.path)
    if item.replaces is None:
        raise SqlError(WRONG_OBJECT_TYPE, f'{item.kind} "{item.name}" is not a replacement')
    catalog = around.catalog
    target = catalog.items[item.replaces]
    widest = max(item, target, key=lambda each: len(each.columns))
    new, old = (_padded(catalog, each, widest) for each in (item, target))
    columns = ", ".join(map(quoted, widest.names))
    limit = "" if statement.limit is None else f" LIMIT {statement.limit}"
    return (
        f"SELECT 1 AS mz_diff, added.* FROM ({new} EXCEPT ALL {old}) AS added"
        f" UNION ALL SELECT -1 AS mz_diff, removed.* FROM ({old} EXCEPT ALL {new}) AS removed"
        f" ORDER BY {columns}, mz_diff{limit}"
    )


def _padded(catalog: Catalog, item: Item, widest: Item) -> str:
    """The rows of a view as those of one that may have more columns at the end, which are NULL."""
    name = ".".join(map(quoted, catalog.full_name(item)))
    missing = widest.columns[len(item.columns) :]
    if not missing:
        return f"TABLE {name}"
    nulls = [f"CAST(NULL AS {each.type}) AS {quoted(each.name)}" for each in missing]
    return f"SELECT {', '.join([*map(quoted, item.names), *nulls])} FROM {name}"
