"""CREATE and ALTER of secrets and connections, and VALIDATE CONNECTION.

What a secret is reaches the catalog sealed. Who may use a secret is its owner; who may make a connection may let the
server reach any address, and so is a superuser, who can give it to another role: ALTER CONNECTION … OWNER TO.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from everview.adapter.catalog.items import ENVIRONMENT, FILE, SEALED, Connection, Secret, Sink, Source
from everview.adapter.catalog.store import Change
from everview.adapter.connection_kinds import connection_kind
from everview.adapter.connections import check_options, check_secret_text
from everview.adapter.contract import Done, Result
from everview.adapter.errors import INSUFFICIENT_PRIVILEGE, INVALID_PARAMETER_VALUE, as_sql_errors
from everview.adapter.execute.alterations import existing
from everview.adapter.execute.context import Context
from everview.adapter.execute.definitions import exists
from everview.adapter.execute.ownership import check_superuser, is_superuser
from everview.adapter.sealing import KEY_VARIABLE
from everview.adapter.statements import nodes
from everview.adapter.statements.words import Path
from everview.compute.sql.errors import SqlError
from everview.reach.files import check_inside
from everview.storage.contract import Command, GlobalId


def create_secret(context: Context, statement: nodes.CreateSecret, change: Change) -> Result:
    done, schema = Done("CREATE SECRET"), context.around.schema_for(statement.path)
    name, origin = statement.path[-1], statement.origin
    if exists(context, schema, name, if_not_exists=statement.if_not_exists, change=change):
        return done
    id = context.coordinator.catalog.draw_id()
    value, confined = _kept(context, origin, statement.value)
    secret = Secret(id, name, schema.id, context.around.user, origin=origin, value=value, confined=confined)
    change.create(secret)
    _seal(context, change, secret, statement.value)
    return done


def _seal(context: Context, change: Change, secret: Secret, text: str) -> None:
    """Let a text be sealed when the change is made, for that may make the key."""
    sealer = context.coordinator.connections.sealer

    @contextmanager
    def sealing(change: Change) -> Iterator[Sequence[Command]]:
        item = change.state.items[secret.id]  # a block may have altered it since
        if isinstance(item, Secret) and item.origin == SEALED:
            with as_sql_errors():
                change.fill(replace(item, value=sealer.seal(text, item.id)))
        yield ()

    if secret.origin == SEALED:
        change.along.append(sealing)


def _kept(context: Context, origin: str, value: str) -> tuple[str, bool]:
    """What the catalog keeps of a secret, and whether it has to stay in the allowed folders.

    Of a text it keeps nothing until the text is sealed.
    """
    if origin == SEALED:
        check_secret_text(value)
        return "", False
    confined = not is_superuser(context)
    if origin == ENVIRONMENT:
        check_superuser(context, "read the server's environment")
        if not value or "=" in value or "\0" in value or value == KEY_VARIABLE:
            raise SqlError(INVALID_PARAMETER_VALUE, f'"{value}" cannot be the variable of a secret')
        return value, False
    assert origin == FILE
    path = os.path.abspath(value)
    if confined:
        try:
            check_inside(path)
        except Exception as error:
            message = "permission denied to read a file of the server"
            hint = "the server's option --files lets other roles have files in a folder"
            raise SqlError(INSUFFICIENT_PRIVILEGE, message, detail=str(error), hint=hint) from None
    return path, confined


def alter_secret(context: Context, statement: nodes.AlterSecret, change: Change) -> Result:
    """ALTER SECRET … AS and FROM: whoever uses it connects anew."""
    secret = existing(context, Secret, statement.path, if_exists=statement.if_exists, change=change)
    if secret is not None:
        value, confined = _kept(context, statement.origin, statement.value)
        secret = replace(secret, origin=statement.origin, value=value, confined=confined)
        change.alter(secret)
        _seal(context, change, secret, statement.value)
        change.after.append(lambda: _connect_anew(context, secret))
    return Done("ALTER SECRET")


def create_connection(context: Context, statement: nodes.CreateConnection) -> Result:
    coordinator, done, name = context.coordinator, Done("CREATE CONNECTION"), statement.path[-1]
    check_superuser(context, "create a connection")
    connection_kind(statement.to)
    schema = context.around.schema_for(statement.path)
    if exists(context, schema, name, if_not_exists=statement.if_not_exists):
        return done
    secrets = _secrets(context, statement.secrets)
    check_options(statement.to, statement.options, secrets)
    depends = tuple(sorted(set(secrets.values())))
    found = Connection(
        "", name, schema.id, context.around.user, depends=depends, to=statement.to, options=statement.options,
        secrets=secrets,
    )  # fmt: skip
    if statement.validate:
        _validate(context, found)
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.statement_context())
        schema = context.around.schema_for(statement.path)
        if exists(context, schema, name, if_not_exists=statement.if_not_exists):
            return done
        _check_there(context, found)
        change = coordinator.catalog.change(context.around.user)
        change.create(replace(found, id=coordinator.catalog.draw_id(), schema=schema.id))
        coordinator.catalog.commit(change)
    return done


def _secrets(context: Context, named: Mapping[str, Path]) -> dict[str, GlobalId]:
    """The secrets that options name; the user has to own them."""
    found = {}
    for option, path in named.items():
        secret = existing(context, Secret, path, if_exists=False)
        assert secret is not None
        found[option] = secret.id
    return found


def _check_there(context: Context, connection: Connection) -> None:
    """Raise if a secret was dropped while the connection was tried."""
    for id in connection.depends:
        if id not in context.around.catalog.items:
            raise SqlError("42704", "a secret of the connection was dropped meanwhile", hint="try again")


def _validate(context: Context, connection: Connection) -> None:
    """Connect, or raise; tell what a source would lack, which a sink does without."""
    with as_sql_errors():
        lacks = context.coordinator.connections.validate(connection)
    for each in lacks:
        text = f"a source by this connection would fail: {each.message}"
        text += f" ({each.detail})" if each.detail else ""
        context.session.notice(f"{text}; {each.hint}" if each.hint else text, "01000", "WARNING")


def alter_connection(context: Context, statement: nodes.AlterConnection) -> Result:
    """ALTER CONNECTION … SET and RESET: whoever uses it connects anew."""
    coordinator, done = context.coordinator, Done("ALTER CONNECTION")
    before = existing(context, Connection, statement.path, if_exists=statement.if_exists)
    if before is None:
        return done
    check_superuser(context, "change a connection")
    after = _altered(context, statement, before)
    if statement.validate:
        _validate(context, after)
    with coordinator.catalog.lock:
        context = replace(context, around=context.session.statement_context())
        if context.around.catalog.items.get(before.id) != before:
            raise SqlError("40001", f'connection "{before.name}" was changed meanwhile', hint="try again")
        _check_there(context, after)
        change = coordinator.catalog.change(context.around.user)
        change.alter(after)
        coordinator.catalog.commit(change)
        _connect_anew(context, after)
    return done


def _altered(context: Context, statement: nodes.AlterConnection, before: Connection) -> Connection:
    """The connection as it will be: what is set takes the place of a text or a secret of that name."""
    for name in statement.reset:
        if name not in before.options and name not in before.secrets:
            message = f'connection "{before.name}" has no option {name.upper()} to reset'
            raise SqlError(INVALID_PARAMETER_VALUE, message)
    secrets = _secrets(context, statement.secrets)
    gone = {*statement.reset, *statement.options, *secrets}
    options = {name: text for name, text in before.options.items() if name not in gone} | dict(statement.options)
    secrets = {name: id for name, id in before.secrets.items() if name not in gone} | secrets
    check_options(before.to, options, secrets)
    return replace(before, options=options, secrets=secrets, depends=tuple(sorted(set(secrets.values()))))


def _connect_anew(context: Context, item: Secret | Connection) -> None:
    """Let those connect anew who use what has changed. The catalog is locked."""
    coordinator = context.coordinator
    for each in coordinator.connections.users(item):
        if isinstance(each, Source) and each.whole == each.id:
            coordinator.feed_again(each)
        elif isinstance(each, Sink) and not each.paused:
            coordinator.sinks.get(each.id).halt()
            coordinator.sinks.reopen(each, coordinator.catalog.state)


def validate_connection(context: Context, statement: nodes.ValidateConnection) -> Result:
    connection = existing(context, Connection, statement.path, if_exists=False)
    assert connection is not None
    _validate(context, connection)
    return Done("VALIDATE CONNECTION")
