"""Statements that change a materialized view in place: a replacement is staged, looked at, and applied or dropped.

What is refused is refused when the replacement is made; what may have changed meanwhile is looked at again when it is
applied. Errors name both views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from everview.adapter.bound_statement import BoundQuery
from everview.adapter.catalog.items import Item, MaterializedView, Staged, Version
from everview.adapter.catalog.state import Catalog
from everview.adapter.contract import Done, Result, Rows
from everview.adapter.dependency_cycles import CYCLE, cycle
from everview.adapter.errors import (
    DUPLICATE_OBJECT,
    INSUFFICIENT_PRIVILEGE,
    INVALID_PARAMETER_VALUE,
    OBJECT_NOT_READY,
    UNDEFINED_OBJECT,
    WRONG_OBJECT_TYPE,
)
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import create_materialized, exists, view_columns
from everview.adapter.execute.ownership import check_owner
from everview.adapter.execute.queries import run_query
from everview.adapter.planner import Pins
from everview.adapter.replacement_cutover import Pair
from everview.adapter.replacement_guards import EXISTING, Guards, is_guard, shown_guards
from everview.adapter.retention import retain_ms
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.system.registry import RELATIONS
from everview.adapter.versions import is_wider, placed
from everview.compute.functions.datetime_input import duration_ms
from everview.compute.sql import compose
from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import SqlText
from everview.compute.sql.parse import Tree
from everview.compute.sql.references import quoted

_CREATED, _ALTERED = Done("CREATE MATERIALIZED VIEW"), Done("ALTER MATERIALIZED VIEW")


def create_replacement(context: Context, statement: nodes.CreateReplacement) -> Result:
    coordinator, view = context.coordinator, statement.view
    retain, automatic, guards = _options(view.options)
    with context.coordinator.catalog.lock:
        context = context.anew()
        schema = context.around.schema_for(view.path)
        if exists(context, schema, view.path[-1], if_not_exists=view.if_not_exists):
            return _CREATED
        name = view.path[-1]
        target = _target(context, statement.target, name)
        staged = Staged(target.id, automatic, guards)
        item = MaterializedView("", name, schema.id, context.around.user, query="", retain_ms=retain, staged=staged)
        item = _stage(context, target, view, item)
        if automatic:
            coordinator.replacements.apply_when_hydrated(item)
    return _CREATED


def _stage(
    context: Context,
    target: MaterializedView,
    view: nodes.CreateView,
    item: MaterializedView,
    *,
    pins: Pins | None = None,
) -> MaterializedView:
    """Install a replacement, and enter it in the catalog, whose lock is held. A stored query comes with its `pins`."""
    catalog = context.around.catalog
    bound = context.define(view.query, pins)
    columns = view_columns(view, bound)
    _check_staged(catalog, target, item.name, bound)
    context.coordinator.replacements.check_columns(target, item.name, columns)
    columns, layout = placed(target, columns)
    item = replace(item, query=bound.definition, columns=columns, layout=layout)
    return create_materialized(context, item, bound, pins=pins, replaces=catalog.shown(target))


def _options(options: Mapping[str, str]) -> tuple[int | None, bool, dict[str, str]]:
    """RETAIN HISTORY FOR, APPLY WHEN HYDRATED, and the guards with which it is applied then."""
    guards = {name: value for name, value in options.items() if is_guard(name, value)}
    unknown = set(options) - {"retain history", "apply when", *guards}
    if unknown:
        hint = "RETAIN HISTORY FOR and APPLY WHEN HYDRATED exist, and with that FORWARD TIME, ALLOW ERRORS and MAX ROWS"
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=hint)
    if options.get("apply when", "hydrated") != "hydrated":
        raise SqlError(INVALID_PARAMETER_VALUE, "a replacement is applied WHEN HYDRATED, or by a statement")
    automatic = "apply when" in options
    if guards and not automatic:
        name = shown_guards(guards)[0]
        hint = f"say so when it is applied: APPLY REPLACEMENT … WITH ({name}), or add APPLY WHEN HYDRATED"
        raise SqlError(INVALID_PARAMETER_VALUE, f"{name} is no option of a replacement", hint=hint)
    Guards.of(guards)
    retain = retain_ms(options["retain history"]) if "retain history" in options else None
    return retain, automatic, guards


def _target(context: Context, path: Path, name: str) -> MaterializedView:
    """The view that is to be replaced by one of this name."""
    around = context.around
    schemas = [path[-2]] if len(path) > 1 else list(around.all_schemas)
    if around.find(path) is None and any((schema, path[-1]) in RELATIONS for schema in schemas):
        message = f'cannot replace system relation "{".".join(path)}" with "{name}"'
        raise SqlError(INSUFFICIENT_PRIVILEGE, message)
    item = around.relation(path)
    if not isinstance(item, MaterializedView):
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
    uppers = [context.coordinator.environment.frontiers(root).upper for root in catalog.roots(item.id)]
    if all(upper.empty for upper in uppers):
        message = f'cannot replace "{item.name}" with "{name}" because it is complete for ever'
        detail = f'"{item.name}" reads no table or source' + (" whose stream has not ended" if uppers else "")
        raise SqlError(OBJECT_NOT_READY, message, detail=detail)
    return item


def _check_staged(catalog: Catalog, target: MaterializedView, name: str, bound: BoundQuery) -> None:
    """Raise unless a query can take the place of the target's."""
    uses = tuple(bound.uses)
    staged = {each.replaces: each.depends for each in catalog.items.values() if each.replaces is not None}
    if cycle(catalog, {target.id: uses}) and cycle(catalog, {**staged, target.id: uses}):
        above = {each.id: each for each in catalog.closure([target.id])}
        detail = "\n".join(
            f'"{name}" reads "{above[each].name}"'
            + ("" if each == target.id else f', which is made from "{target.name}"')
            for each in sorted(bound.uses & above.keys())
        )
        raise SqlError(CYCLE, f'cannot replace "{target.name}" with "{name}" because it depends on it', detail=detail)
    catalog.check_one_timeline({target.id, *bound.uses}, "the old and the new definition of one view")
    if not any(catalog.roots(each) for each in bound.uses):
        message = f'cannot replace "{target.name}" with "{name}", which reads no table or source'
        raise SqlError("0A000", message, detail=f'"{target.name}" would be complete for ever')


# ALTER


def apply_replacement(context: Context, statement: nodes.ApplyReplacement) -> Result:
    coordinator = context.coordinator
    pairs = pairs_of(context, statement)
    timeouts = [each for each in map(_timeout_s, _parts(statement)) if each is not None]
    interrupts = context.session.interrupts
    coordinator.replacements.apply(pairs, interrupts, context.around.user, min(timeouts, default=None))
    return _ALTERED


def _parts(statement: nodes.ApplyReplacement) -> tuple[nodes.ApplyReplacement, ...]:
    return (statement, *statement.also)


def pairs_of(context: Context, statement: nodes.ApplyReplacement) -> list[Pair]:
    """What is to be applied to what; raises if something of it cannot be.

    Cycles are looked for when it is applied: in a block, another statement may end one.
    """
    pairs = [_pair(context, each) for each in _parts(statement)]
    for place, pair in enumerate(pairs):
        if any(pair.item.id == other.item.id for other in pairs[:place]):
            raise SqlError(DUPLICATE_OBJECT, f'replacement "{pair.item.name}" is named more than once')
    context.around.catalog.check_one_timeline([each.target.id for each in pairs], "replaced in one step")
    return pairs


def _pair(context: Context, statement: nodes.ApplyReplacement) -> Pair:
    around = context.around
    target, item = around.relation(statement.target), around.relation(statement.replacement)
    if not isinstance(target, MaterializedView):
        message = f'cannot apply replacement "{item.name}" to {target.kind} "{target.name}"'
        raise SqlError(WRONG_OBJECT_TYPE, message)
    if not isinstance(item, MaterializedView) or item.replaces is None:
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
    unknown = {name for name, value in statement.options.items() if name != "timeout" and not is_guard(name, value)}
    if unknown:
        raise SqlError(INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=f"{EXISTING} exist")
    return Pair(target, item, Guards.of(statement.options))


def _timeout_s(statement: nodes.ApplyReplacement) -> float | None:
    text = statement.options.get("timeout")
    if text is None:
        return None
    try:
        return duration_ms(text) / 1000
    except ValueError as error:
        raise SqlError(INVALID_PARAMETER_VALUE, f'invalid TIMEOUT: "{text}"', detail=str(error)) from error


def rollback_replacement(context: Context, statement: nodes.RollbackReplacement) -> Result:
    """ALTER MATERIALIZED VIEW … ROLLBACK REPLACEMENT: an earlier definition is staged as a replacement."""
    with context.coordinator.catalog.lock:
        context = context.anew()
        catalog = context.around.catalog
        found = context.around.relation(statement.target)
        schema = catalog.schemas[found.schema]
        name, number = f"{found.name}_rollback", 0
        while catalog.item(schema, name) is not None:
            number += 1
            name = f"{found.name}_rollback{number}"
        target = _target(context, statement.target, name)
        before = _version(target, statement.version)
        _check_inputs(catalog, target, before)
        names = tuple(column.name for column in before.columns)
        view = nodes.CreateView((schema.name, name), names, SqlText(before.query), True)
        item = MaterializedView("", name, target.schema, target.owner, query="", staged=Staged(target.id))
        _stage(context, target, view, item, pins=before.pins)
        what = "the definition before" if statement.version is None else f"version {before.number}"
        context.session.notice(
            f'{what} is staged as "{name}": ALTER MATERIALIZED VIEW {quoted(target.name)}'
            f" APPLY REPLACEMENT {quoted(name)}"
        )
    return _ALTERED


def _version(target: MaterializedView, number: int | None) -> Version:
    """The version of a view to go back to: of this number, or the one before."""
    if number == target.version:
        message = f'materialized view "{target.name}" is at version {number} already'
        raise SqlError(OBJECT_NOT_READY, message)
    if not target.history:
        message = f'materialized view "{target.name}" has had no definition before this one'
        raise SqlError(OBJECT_NOT_READY, message)
    if number is None:
        return target.history[-1]
    known = {each.number: each for each in target.history}
    if number not in known:
        message = f'materialized view "{target.name}" has no version {number}'
        if 0 < number < target.version:
            message = f'version {number} of materialized view "{target.name}" is no longer remembered'
        numbers = ", ".join(map(str, sorted(known)))
        detail = f"versions {numbers} can be gone back to; it is at version {target.version}"
        hint = "SELECT * FROM mz_internal.mz_materialized_view_versions"
        raise SqlError(UNDEFINED_OBJECT, message, detail=detail, hint=hint)
    return known[number]


def _check_inputs(catalog: Catalog, target: MaterializedView, version: Version) -> None:
    """Raise if something that a version reads was dropped."""
    gone = [id for id in version.depends if id not in catalog.items]
    if gone:
        raise SqlError(
            UNDEFINED_OBJECT,
            f'cannot go back to version {version.number} of "{target.name}": something that it reads was dropped',
            detail=f"its definition is: {version.query}\ndropped: {', '.join(gone)}",
            hint="an object of the same name is another one; CREATE MATERIALIZED VIEW … REPLACING can name it",
        )


# SHOW


def show_difference(context: Context, statement: nodes.ShowReplacementDiff) -> Rows:
    try:
        return run_query(context, nodes.Query(difference_query(statement, context.around)))
    except SqlError as error:
        raise _side_that_fails(context, statement, error) from error


def _side_that_fails(context: Context, statement: nodes.ShowReplacementDiff, error: SqlError) -> SqlError:
    """The error of a difference, which says whose it is if a view of the two cannot be read."""
    item = context.around.find(statement.path)
    if item is None or item.replaces is None:
        return error
    target = context.around.catalog.items[item.replaces]
    failures = context.coordinator.replacements.failure
    sides = (("replacement", item, failures(item.id)), ("materialized view", target, failures(target.id)))
    lines = [f'{what} "{each.name}" fails: {failure[1]}' for what, each, failure in sides if failure is not None]
    if not lines:
        return error
    message = f'the difference of "{item.name}" and "{target.name}" is not known: {lines[0]}'
    return SqlError(error.sqlstate, message, detail="\n".join(lines[1:]) or None, hint=error.hint)


def difference_query(statement: nodes.ShowReplacementDiff, around: StatementContext) -> Tree:
    """The query that SHOW REPLACEMENT DIFF stands for: rows to be added, and rows to be removed."""
    item = around.relation(statement.path)
    if item.replaces is None:
        raise SqlError(WRONG_OBJECT_TYPE, f'{item.kind} "{item.name}" is not a replacement')
    catalog = around.catalog
    target = catalog.items[item.replaces]
    new, old = zip(*_compared(item, target), strict=True)
    before = compose.relation(catalog.full_name(target), items=old)
    after = compose.relation(catalog.full_name(item), items=new)
    return compose.difference(before, after, "mz_diff", statement.limit)


def _compared(item: Item, target: Item) -> list[tuple[Tree, Tree]]:
    """The columns of a replacement and of its target beside one another, NULL where only the other has one."""
    left = {each.name: each for each in target.columns}
    pairs = []
    for each in item.columns:
        name, other = each.name, left.get(each.name)
        if other is not None and other.type == each.type:
            pairs.append((compose.column(name), compose.column(name)))
        elif other is not None and is_wider(other.type, each.type):
            pairs.append((compose.column(name), compose.column(name, each.type)))
        elif other is not None and is_wider(each.type, other.type):
            pairs.append((compose.column(name, other.type), compose.column(name)))
        else:
            pairs.append((compose.column(name), compose.null(name, each.type)))
            continue
        del left[name]
    return pairs + [(compose.null(name, each.type), compose.column(name)) for name, each in left.items()]
