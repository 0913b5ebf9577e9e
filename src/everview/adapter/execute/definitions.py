"""Statements that make and change objects: tables, views, schemas, databases, roles, comments.

A definition takes effect in one commit of storage, which holds the catalog's entry and what keeps the collection. What
is made before that commit is not in the catalog, so after a crash it is found and removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from everview.adapter import errors
from everview.adapter.bound_statement import BoundQuery
from everview.adapter.catalog import items
from everview.adapter.catalog.state import SYSTEM_SCHEMA_IDS
from everview.adapter.catalog.store import Change
from everview.adapter.contract import Done, Result
from everview.adapter.execute.context import Context
from everview.adapter.execute.ownership import check_may_give, check_owner, check_owner_of, check_superuser
from everview.adapter.execute.queries import refuse_unmaintainable
from everview.adapter.expiry import DUE_TYPES
from everview.adapter.passwords import verifier_of
from everview.adapter.planner import Pins, laid_out
from everview.adapter.retention import lag_ms, retain_ms
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.adapter.transaction import DRAFTED
from everview.compute.functions.datetime_input import duration_ms
from everview.compute.ir.relation import Relation
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.datatypes import named_type
from everview.compute.sql.dml import bind_scalar
from everview.compute.sql.errors import DUPLICATE_COLUMN, SqlError, did_you_mean, unsupported
from everview.compute.sql.hosting import hosted
from everview.storage.contract import Follow, ReadCapability
from everview.timely.lattice import TIME_MAX

NAME_BYTES_MAX = 255


def exists(
    context: Context, schema: items.Schema, name: str, *, if_not_exists: bool, change: Change | None = None
) -> bool:
    """Whether the name is taken. Raises if it is, unless IF NOT EXISTS was given: then the client is told.

    A plan tells by its `change`.
    """
    if len(name.encode()) > NAME_BYTES_MAX:
        raise SqlError("42622", f'identifier "{name[:40]}…" is longer than {NAME_BYTES_MAX} bytes')
    taken = context.around.catalog.item(schema, name)
    if taken is None:
        return False
    message = f'{"index" if isinstance(taken, items.Index) else "relation"} "{name}" already exists'
    if if_not_exists:
        (context.session if change is None else change).notice(f"{message}, skipping", errors.DUPLICATE_TABLE)
        return True
    raise SqlError(errors.DUPLICATE_TABLE, message)


def retain_option(options: dict[str, str], hint: str = "RETAIN HISTORY exists") -> int | None:
    """RETAIN HISTORY FOR, in milliseconds."""
    unknown = set(options) - {"retain history"}
    if unknown:
        raise SqlError(errors.INVALID_PARAMETER_VALUE, f"unknown option {min(unknown).upper()}", hint=hint)
    return retain_ms(options["retain history"]) if "retain history" in options else None


def ttl_of(columns: Sequence[items.ColumnInfo], text: str, column: str) -> tuple[int, int]:
    """The TTL of a table: the place of the column with the times of rows, and a number of milliseconds."""
    try:
        ttl_ms = duration_ms(text, TIME_MAX)
    except ValueError as error:
        raise SqlError(errors.INVALID_PARAMETER_VALUE, f'invalid TTL: "{text}"', detail=str(error)) from error
    names = [each.name for each in columns]
    if column not in names:
        raise SqlError("42703", f'column "{column}" does not exist', hint=did_you_mean(column, names))
    place = names.index(column)
    if columns[place].type.kind not in DUE_TYPES:
        detail = f'column "{column}" is of type {columns[place].type}'
        hint = "use timestamptz, timestamp, date, bigint or numeric (milliseconds since 1970), or mz_timestamp"
        raise SqlError("42804", "a TTL needs a column that is a time", detail=detail, hint=hint)
    return place, ttl_ms


def create_table(context: Context, statement: nodes.CreateTable, change: Change) -> Result:
    done, schema = Done("CREATE TABLE"), context.around.schema_for(statement.path)
    columns = columns_of(context, statement.columns)
    options = dict(statement.options)
    ttl = ttl_of(columns, options.pop("ttl"), options.pop("ttl on")) if "ttl" in options else None
    retain = retain_option(options, "RETAIN HISTORY and TTL exist")
    if exists(context, schema, statement.path[-1], if_not_exists=statement.if_not_exists, change=change):
        return done
    id = context.coordinator.catalog.draw_id()
    item = items.Table(
        id, statement.path[-1], schema.id, context.around.user, columns=columns, retain_ms=retain, ttl=ttl
    )
    change.create(replace(item, reader=DRAFTED, writer=DRAFTED))
    change.made.append(id)
    change.expiring += [] if ttl is None else [id]
    return done


def columns_of(context: Context, definitions: Sequence[nodes.ColumnDefinition]) -> tuple[items.ColumnInfo, ...]:
    if not definitions:
        raise unsupported("a table without columns")
    columns: list[items.ColumnInfo] = []
    for each in definitions:
        if any(column.name == each.name for column in columns):
            raise SqlError(DUPLICATE_COLUMN, f'column "{each.name}" specified more than once', position=each.position)
        sql_type = named_type(each.type, each.position)
        if each.default is not None:
            with errors.as_sql_errors(), hosted(context.host):
                bind_scalar(each.default, sql_type, each.name, _NoNames())
        columns.append(items.ColumnInfo(each.name, sql_type, not each.not_null, each.default and str(each.default)))
    return tuple(columns)


class _NoNames:
    """A catalog without relations: defaults speak of none."""

    def find(self, path: Sequence[str]) -> None:
        return None

    def names(self) -> list[str]:
        return []


def deliverable(around: StatementContext, path: Path, what: str) -> items.Item:
    """A collection that others can follow; `what` they are, such as `sink from`."""
    item, noun = around.relation(path), what.split(maxsplit=1)[0]
    if isinstance(item, items.View):
        hint = f"create a materialized view of it, and the {what} that"
        raise SqlError(errors.WRONG_OBJECT_TYPE, f'cannot create a {what} view "{item.name}"', hint=hint)
    if not item.stored:
        detail = "it has tables, and no rows of its own" if isinstance(item, items.Source) else f"it is a {item.kind}"
        hint = f"a {noun} is of a table, a materialized view or a source"
        raise SqlError(errors.WRONG_OBJECT_TYPE, f'cannot create a {what} "{item.name}"', detail=detail, hint=hint)
    return item


# Views


def create_view(context: Context, statement: nodes.CreateView, change: Change) -> Result:
    around, done = context.around, Done("CREATE VIEW")
    schema, name = around.schema_for(statement.path), statement.path[-1]
    taken = around.catalog.item(schema, name) if statement.or_replace else None
    if taken is None and exists(context, schema, name, if_not_exists=statement.if_not_exists, change=change):
        return done
    bound, columns = _bound_view(context, statement)
    depends, pins = tuple(sorted(bound.uses)), around.catalog.pins(bound.uses)
    if taken is None:
        id = context.coordinator.catalog.draw_id()
        view = items.View(id, name, schema.id, around.user, columns=columns, query=bound.definition)
        view = replace(view, depends=depends, pins=pins)
        change.create(view)
    else:
        view = _replaceable(context, taken, columns, bound)
        view = replace(view, query=bound.definition, columns=columns, depends=depends, pins=pins)
        change.alter(view, replaced="true")
    return done


def create_materialized_view(context: Context, statement: nodes.CreateView) -> Result:
    done, name = Done("CREATE MATERIALIZED VIEW"), statement.path[-1]
    with context.coordinator.catalog.lock:
        context = context.anew()
        schema, owner = context.around.schema_for(statement.path), context.around.user
        if exists(context, schema, name, if_not_exists=statement.if_not_exists):
            return done
        bound, columns = _bound_view(context, statement)
        retain = retain_option(dict(statement.options))
        item = items.MaterializedView(
            "", name, schema.id, owner, columns=columns, query=bound.definition, retain_ms=retain
        )
        create_materialized(context, item, bound)
    return done


def _bound_view(context: Context, statement: nodes.CreateView) -> tuple[BoundQuery, tuple[items.ColumnInfo, ...]]:
    """Bind the query of a view, and give the view's columns."""
    bound = context.define(statement.query)
    columns = view_columns(statement, bound)
    context.around.catalog.check_lasting(statement.path[-1], bound.uses)
    return bound, columns


def view_columns(statement: nodes.CreateView, bound: BoundQuery) -> tuple[items.ColumnInfo, ...]:
    """The columns of a view, with the names that the statement gives them."""
    given, names = statement.columns, bound.plan.names
    if len(given) > len(names):
        raise SqlError("42601", "CREATE VIEW specifies more column names than columns")
    chosen = (*given, *names[len(given) :])
    for index, name in enumerate(chosen):
        if name in chosen[:index]:
            hint = "give one of them another name: AS …"
            raise SqlError(DUPLICATE_COLUMN, f'column "{name}" specified more than once', hint=hint)
    return tuple(items.ColumnInfo(name, each) for name, each in zip(chosen, bound.plan.types, strict=True))


def _replaceable(
    context: Context, taken: items.Item, columns: tuple[items.ColumnInfo, ...], bound: BoundQuery
) -> items.View:
    """OR REPLACE: the view keeps its id, so whatever names it goes on; what is maintained over it cannot change."""
    catalog = context.around.catalog
    if not isinstance(taken, items.View):
        raise SqlError(errors.WRONG_OBJECT_TYPE, f'"{taken.name}" is not a view', detail=f"it is a {taken.kind}")
    check_owner(context, taken)
    below = {each.id for each in catalog.closure([taken.id])}
    if bound.uses & below:
        raise SqlError("42P19", f'view "{taken.name}" would depend on itself')
    others = [each for each in catalog.closure([taken.id]) if each.id != taken.id]
    maintained = [each for each in others if isinstance(each, items.MaterializedView | items.Index | items.Sink)]
    if maintained:
        detail = "\n".join(f"{each.kind} {catalog.shown(each)} depends on it" for each in maintained)
        raise SqlError(errors.DEPENDENT_OBJECTS, f'cannot replace view "{taken.name}"', detail=detail)
    before = [(column.name, column.type) for column in taken.columns]
    if others and before != [(column.name, column.type) for column in columns][: len(before)]:
        detail = "\n".join(f"{each.kind} {catalog.shown(each)} depends on it" for each in others)
        raise SqlError("42P16", f'cannot change the columns of view "{taken.name}"', detail=detail)
    return taken


def create_materialized(
    context: Context, item: items.MaterializedView, bound: BoundQuery, *, pins: Pins | None = None, **details: str
) -> items.MaterializedView:
    """Install the view, then enter it in the catalog; gives the item as it is there.

    `pins` are those of a query that is stored already; another one names the versions that there are now.
    """
    coordinator = context.coordinator
    refuse_unmaintainable(context, bound, "a materialized view")
    id, reader = install(context, optimize(laid_out(bound.plan.relation, item)), bound)
    change = coordinator.catalog.change(context.around.user)
    depends = tuple(sorted(bound.uses))
    pins = context.around.catalog.pins(bound.uses) if pins is None else pins
    item = replace(item, id=id, reader=reader.token, depends=depends, pins=pins)
    change.create(item, **details)
    history = coordinator.timelines.of(bound.reads).history_clock
    coordinator.catalog.commit(change, Follow(reader, history, lag_ms(item.retain_ms)))
    return item


def install(context: Context, plan: Relation, bound: BoundQuery) -> tuple[str, ReadCapability]:
    """Begin to maintain a plan under a new id."""
    coordinator = context.coordinator
    id = coordinator.catalog.draw_id()
    timeline = coordinator.timelines.of(bound.reads)
    with timeline.still(), errors.as_sql_errors():  # the past of the inputs stays as it is until this holds it
        inputs = []
        for each in sorted(bound.reads):
            reader = coordinator.environment.present(each, coordinator.catalog.state.items[each].reader or "")
            assert isinstance(reader, ReadCapability)
            inputs.append(reader)
        return id, coordinator.maintenance.install(id, plan, inputs)


# Namespaces and roles


def create_namespace(context: Context, statement: nodes.CreateNamespace, change: Change) -> Result:
    catalog, name, draw_id = change.state, statement.path[-1], context.coordinator.catalog.draw_id
    noun = statement.kind.noun
    done = Done(f"CREATE {noun.upper()}")
    owner = statement.owner or context.around.user
    if statement.owner is not None:
        catalog.named_role(owner)
        check_may_give(context, owner)
    home: items.Database | None = None
    if statement.kind is items.Database:
        check_superuser(context, "create database")
        taken: object = catalog.database(name)
        state = errors.DUPLICATE_DATABASE
    else:
        home = catalog.named_database(statement.path[0] if len(statement.path) > 1 else context.around.database)
        taken, state = catalog.schema(home.name, name), errors.DUPLICATE_SCHEMA
    if taken is not None:
        message = f'{noun} "{name}" already exists'
        if not statement.if_not_exists:
            raise SqlError(state, message)
        change.notice(f"{message}, skipping", state)
        return done
    if name.startswith(("pg_", "mz_")):
        raise SqlError("42939", f'unacceptable {noun} name "{name}"', detail="the prefix is reserved")
    if home is None:
        home = items.Database(draw_id("d"), name, owner)
        change.create(home)
        name = "public"
    change.create(items.Schema(draw_id("n"), name, home.id, owner))
    return done


def create_role(context: Context, statement: nodes.CreateRole, change: Change) -> Result:
    check_superuser(context, "create role")
    if change.state.role(statement.name) is not None:
        raise SqlError(errors.DUPLICATE_OBJECT, f'role "{statement.name}" already exists')
    verifier = None if statement.password is None else verifier_of(statement.password)
    id = context.coordinator.catalog.draw_id("r")
    change.create(items.Role(id, statement.name, statement.login, statement.superuser, verifier))
    return Done("CREATE ROLE")


def alter_role(context: Context, statement: nodes.AlterRole, change: Change) -> Result:
    role = change.state.named_role(statement.name)
    if role.name != context.around.user:
        check_superuser(context, f'alter role "{role.name}"')
    verifier = None if statement.password is None else verifier_of(statement.password)
    change.alter(replace(role, verifier=verifier))
    return Done("ALTER ROLE")


def comment_on(context: Context, statement: nodes.CommentOn, change: Change) -> Result:
    kind, path = statement.kind, statement.path
    if is_namespace(kind):
        entry = namespace(context, kind, path)
        check_owner_of(context, entry)
        change.comment(kind.noun, entry.id, 0, statement.text)
        return Done("COMMENT")
    relation: Path = path[:-1] if kind is items.ColumnInfo else path
    if not relation:
        raise SqlError("42601", "the name of a column needs the name of its relation")
    item = context.around.relation(relation)
    check_owner(context, item)
    place = 0
    if kind is items.ColumnInfo:
        if path[-1] not in item.names:
            raise SqlError("42703", f'column "{path[-1]}" of relation "{item.name}" does not exist')
        place = item.names.index(path[-1]) + 1
    elif not isinstance(item, kind):
        raise SqlError(errors.WRONG_OBJECT_TYPE, f'"{item.name}" is not a {kind.noun}', detail=f"it is a {item.kind}")
    change.comment(kind.noun, item.id, place, statement.text)
    return Done("COMMENT")


def is_namespace(kind: items.ObjectKind) -> TypeGuard[items.NamespaceKind]:
    """Whether objects of a kind are in no schema."""
    return kind in (items.Database, items.Schema, items.Role)


def namespace(context: Context, kind: items.NamespaceKind, path: Path) -> items.Database | items.Schema | items.Role:
    """A schema, database or role by its name."""
    state = context.around.catalog
    if kind is items.Schema:
        database = path[0] if len(path) > 1 else context.around.database
        if path[-1] in SYSTEM_SCHEMA_IDS:
            raise SqlError("42501", f'schema "{path[-1]}" belongs to the system')
        return state.named_schema(database, path[-1])
    return state.named_database(path[-1]) if kind is items.Database else state.named_role(path[-1])
