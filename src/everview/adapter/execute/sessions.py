"""Statements about the session itself: transactions, settings, cursors and prepared statements."""

from __future__ import annotations

from everview.adapter import errors
from everview.adapter.contract import Done, Prepared, Result, count_weight
from everview.adapter.cursors import FETCHED_ROWS_MAX, Cursor, SubscriptionCursor
from everview.adapter.execute.context import Context
from everview.adapter.execute.queries import run_query
from everview.adapter.execute.subscriptions import run_subscribe
from everview.adapter.results import RowList, text_columns
from everview.adapter.settings import SETTINGS
from everview.adapter.statements import nodes
from everview.compute.functions.datetime_input import duration_ms
from everview.compute.ir.scalar import Literal
from everview.compute.sql.datatypes import named_type
from everview.compute.sql.errors import SqlError, did_you_mean, unsupported

PREPARED_MAX = 10_000


def begin(context: Context, statement: nodes.Begin) -> Result:
    context.session.begin_block(statement.isolation, statement.read_only)
    return Done(statement.tag)


def end(context: Context, statement: nodes.End) -> Result:
    transaction = context.transaction
    if not transaction.explicit:
        context.session.notice("there is no transaction in progress", errors.NO_ACTIVE_TRANSACTION, "WARNING")
    failed = transaction.failed
    context.session.end_transaction(commit=statement.commit)
    return Done("COMMIT" if statement.commit and not failed else "ROLLBACK")


def set_savepoint(context: Context, statement: nodes.SetSavepoint) -> Result:
    _check_block(context, "SAVEPOINT")
    session = context.session
    context.transaction.mark(statement.name, session.settings.mark(), session.cursors)
    return Done("SAVEPOINT")


def release_savepoint(context: Context, statement: nodes.ReleaseSavepoint) -> Result:
    """RELEASE SAVEPOINT: what was done since stays done."""
    _check_block(context, "RELEASE SAVEPOINT")
    transaction = context.transaction
    del transaction.savepoints[transaction.savepoint(statement.name) :]
    return Done("RELEASE")


def rollback_to(context: Context, statement: nodes.RollbackTo) -> Result:
    _check_block(context, "ROLLBACK TO SAVEPOINT")
    session = context.session
    point = context.transaction.back_to(statement.name)
    session.settings.back_to(point.settings)
    for name in session.cursors.keys() - point.cursors:
        session.cursors.pop(name).close()
    return Done("ROLLBACK")


def _check_block(context: Context, what: str) -> None:
    if not context.transaction.explicit:
        raise SqlError(errors.NO_ACTIVE_TRANSACTION, f"{what} can only be used in transaction blocks")


def set_transaction(context: Context, statement: nodes.SetTransaction) -> Result:
    transaction = context.transaction
    if statement.session:
        settings = context.session.settings
        if statement.isolation is not None:
            settings.set("default_transaction_isolation", statement.isolation)
        if statement.read_only is not None:
            settings.set("default_transaction_read_only", "on" if statement.read_only else "off")
        return Done("SET")
    if not transaction.explicit:
        message = "SET TRANSACTION can only be used in transaction blocks"
        context.session.notice(message, errors.NO_ACTIVE_TRANSACTION, "WARNING")
    if statement.isolation is not None:
        if transaction.time is not None:
            raise SqlError("25001", "the isolation level must be set before any query of the transaction")
        transaction.isolation = statement.isolation
    if statement.read_only is not None:
        transaction.read_only = statement.read_only
    return Done("SET")


def set_setting(context: Context, statement: nodes.Set) -> Result:
    context.session.settings.set(statement.name, statement.value, local=statement.local)
    if statement.local and not context.transaction.explicit:
        message = "SET LOCAL can only be used in transaction blocks"
        context.session.notice(message, errors.NO_ACTIVE_TRANSACTION, "WARNING")
    if statement.name.lower().endswith("transaction_isolation") and context.transaction.time is None:
        context.transaction.isolation = context.session.settings.get("transaction_isolation")
    if statement.name.lower() == "transaction_read_only":
        context.transaction.read_only = context.session.settings.get("transaction_read_only") == "on"
    return Done("SET")


def reset(context: Context, statement: nodes.Reset) -> Result:
    if statement.name is None:
        context.session.settings.reset()
    else:
        context.session.settings.set(statement.name, None)
    return Done("RESET")


def show(context: Context, statement: nodes.Show) -> Result:
    settings = context.session.settings
    if statement.name is None:
        rows = [(each.name, settings.get(name), each.description) for name, each in sorted(SETTINGS.items())]
        return RowList(text_columns("name", "setting", "description"), rows, "SHOW")
    name = statement.name.lower()
    if name == "transaction_isolation":
        value = context.transaction.isolation
    elif name == "transaction_read_only":
        value = "on" if context.transaction.read_only else "off"
    else:
        value = settings.get(name)
    return RowList(text_columns(name), [(value,)], "SHOW")


# Cursors


def declare(context: Context, statement: nodes.Declare) -> Result:
    session = context.session
    if not context.transaction.explicit:
        raise SqlError(errors.NO_ACTIVE_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks")
    if statement.name in session.cursors:
        raise SqlError(errors.DUPLICATE_CURSOR, f'cursor "{statement.name}" already exists')
    match statement.statement:
        case nodes.Query() as query:
            session.add_cursor(statement.name, Cursor(run_query(context, query)))
        case nodes.Subscribe() as subscribe:
            rows = run_subscribe(context, subscribe)
            session.add_cursor(statement.name, SubscriptionCursor(rows, subscribe.acknowledge))
        case _:
            raise unsupported("a cursor over this statement", hint="queries and SUBSCRIBE can have cursors")
    return Done("DECLARE CURSOR")


def fetch(context: Context, statement: nodes.Fetch) -> Result:
    cursor = context.session.cursors.get(statement.cursor)
    if cursor is None:
        # From a portal of the carrier's, which is a cursor as well.
        carried = context.session.carried(statement.cursor)
        if carried is None:
            raise _no_cursor(context, statement.cursor)
        if statement.timeout is not None:
            raise unsupported("a TIMEOUT for a portal", hint="declare a cursor")
        wanted = FETCHED_ROWS_MAX if statement.count is None else min(statement.count, FETCHED_ROWS_MAX)
        rows = carried.take(wanted)
        return Done(f"MOVE {len(rows)}") if statement.move else RowList(carried.columns, rows, "FETCH")
    timeout_s = None
    if statement.timeout is not None:
        try:
            timeout_s = duration_ms(statement.timeout) / 1000
        except ValueError as error:
            raise SqlError(errors.INVALID_PARAMETER_VALUE, "invalid TIMEOUT", detail=str(error)) from error
    found = cursor.fetch(statement.count, timeout_s, context.session.interrupts)
    return Done(f"MOVE {len(found)}") if statement.move else found.result("FETCH")


def close_cursor(context: Context, statement: nodes.CloseCursor) -> Result:
    cursors = context.session.cursors
    if statement.name is not None and statement.name not in cursors:
        raise _no_cursor(context, statement.name)
    for name in [statement.name] if statement.name is not None else list(cursors):
        cursors.pop(name).close()
    return Done("CLOSE CURSOR" if statement.name is not None else "CLOSE CURSOR ALL")


def _no_cursor(context: Context, name: str) -> SqlError:
    hint = did_you_mean(name, context.session.cursors)
    return SqlError(errors.INVALID_CURSOR_NAME, f'cursor "{name}" does not exist', hint=hint)


def discard(context: Context, statement: nodes.Discard) -> Result:
    session = context.session
    if statement.what == "all":
        session.refuse_in_block("DISCARD ALL")
        for cursor in session.cursors.values():
            cursor.close()
        session.cursors.clear()
        session.statements.clear()
        session.settings.reset()
    return Done(f"DISCARD {statement.what.upper()}")


# Prepared statements by name


def prepare(context: Context, statement: nodes.PrepareStatement) -> Result:
    session = context.session
    if statement.name in session.statements:
        raise SqlError(errors.DUPLICATE_STATEMENT, f'prepared statement "{statement.name}" already exists')
    if len(session.statements) >= PREPARED_MAX:
        raise SqlError(errors.PROGRAM_LIMIT, f"a session can have at most {PREPARED_MAX} prepared statements")
    prepared = session.prepare(statement.text, [named_type(each) for each in statement.types])
    count_weight(prepared, session.statements.values())
    session.statements[statement.name] = prepared
    return Done("PREPARE")


def execute_prepared(context: Context, statement: nodes.Execute) -> Result:
    prepared = context.session.statements.get(statement.name)
    if prepared is None:
        raise SqlError(errors.INVALID_STATEMENT_NAME, f'prepared statement "{statement.name}" does not exist')
    return context.session.carry_out(prepared, _values(context, prepared, statement))


def _values(context: Context, prepared: Prepared, statement: nodes.Execute) -> tuple[Literal, ...]:
    types = prepared.parameters
    if len(types) != len(statement.values):
        message = f'wrong number of parameters for prepared statement "{statement.name}"'
        detail = f"expected {len(types)} parameters but got {len(statement.values)}"
        raise SqlError("42601", message, detail=detail)
    values = zip(statement.values, types, strict=True)
    return tuple(Literal(context.value(text, each, what="values of EXECUTE"), each) for text, each in values)


def deallocate(context: Context, statement: nodes.Deallocate) -> Result:
    statements = context.session.statements
    if statement.name is None:
        statements.clear()
        return Done("DEALLOCATE ALL")
    if statement.name not in statements:
        raise SqlError(errors.INVALID_STATEMENT_NAME, f'prepared statement "{statement.name}" does not exist')
    del statements[statement.name]
    return Done("DEALLOCATE")
