"""Which function carries out which kind of statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from everview.adapter.catalog.items import View
from everview.adapter.contract import Done, Result
from everview.adapter.ddl import Plan, carry_out, conclude, define
from everview.adapter.execute import (
    alterations,
    connections,
    copy,
    definitions,
    durable,
    indexes,
    queries,
    replacements,
    sessions,
    show,
    sinks,
    sources,
    subscriptions,
    writes,
)
from everview.adapter.execute.context import Context
from everview.adapter.statements import nodes

Handler = Callable[[Context, Any], Result]

# What is decided by reading the catalog alone, see `ddl`.
PLANS: Mapping[type, Plan] = {
    nodes.CreateTable: definitions.create_table,
    nodes.CreateView: definitions.create_view,
    nodes.CreateIndex: indexes.create_index,
    nodes.CreateNamespace: definitions.create_namespace,
    nodes.CreateRole: definitions.create_role,
    nodes.AlterRole: definitions.alter_role,
    nodes.CreateSecret: connections.create_secret,
    nodes.Drop: alterations.drop,
    nodes.Rename: alterations.rename,
    nodes.AlterOwner: alterations.alter_owner,
    nodes.AlterTtl: alterations.alter_ttl,
    nodes.AlterRetain: alterations.alter_retain,
    nodes.AlterSecret: connections.alter_secret,
    nodes.PauseSource: sources.pause_source,
    nodes.CreateSubscription: durable.create_subscription,
    nodes.AlterSubscription: durable.alter_subscription,
    nodes.CommentOn: definitions.comment_on,
}
# Other definitions take several steps.
STEPS: Mapping[type, Handler] = {
    nodes.CreateView: definitions.create_materialized_view,
    nodes.CreateIndex: indexes.create_maintained_index,
    nodes.CreateReplacement: replacements.create_replacement,
    nodes.ApplyReplacement: replacements.apply_replacement,
    nodes.RollbackReplacement: replacements.rollback_replacement,
    nodes.CreateSource: sources.create_source,
    nodes.ResetSource: sources.reset_source,
    nodes.CreateSink: sinks.create_sink,
    nodes.AlterSink: sinks.alter_sink,
    nodes.CreateConnection: connections.create_connection,
    nodes.AlterConnection: connections.alter_connection,
}


def _plan_of(context: Context, statement: nodes.Statement) -> Plan | None:
    """How a definition is planned; None if it takes several steps."""
    match statement:
        case nodes.CreateView(materialized=True):
            return None
        case nodes.CreateIndex(on=on) if isinstance(context.session.statement_context().find(on), View):
            return None
        case _:
            return PLANS.get(type(statement))


def _define(context: Context, statement: nodes.Statement) -> Result:
    """Carry a definition out, as a transaction of its own."""
    plan = _plan_of(context, statement)
    return STEPS[type(statement)](context, statement) if plan is None else carry_out(context, statement, plan)


def _end(context: Context, statement: nodes.End) -> Result:
    """COMMIT and ROLLBACK. COMMIT first makes what the block has defined; if that fails, the block is rolled back."""
    if statement.commit and not context.transaction.failed:
        try:
            conclude(context, _plan_of, _define)
        except BaseException:
            context.session.end_transaction(commit=False)
            raise
    return sessions.end(context, statement)


OTHERS: Mapping[type, Handler] = {
    nodes.Query: queries.run_query,
    nodes.Explain: queries.run_explain,
    nodes.Modify: writes.run_modify,
    nodes.Truncate: writes.run_truncate,
    nodes.Subscribe: subscriptions.run_subscribe,
    nodes.AcknowledgeSubscription: durable.acknowledge,
    nodes.Copy: copy.run_copy,
    nodes.Begin: sessions.begin,
    nodes.End: _end,
    nodes.SetTransaction: sessions.set_transaction,
    nodes.Set: sessions.set_setting,
    nodes.Reset: sessions.reset,
    nodes.Show: sessions.show,
    nodes.ShowObjects: show.show_objects,
    nodes.ShowCreate: show.show_create,
    nodes.ShowReplacementDiff: replacements.show_difference,
    nodes.Declare: sessions.declare,
    nodes.Fetch: sessions.fetch,
    nodes.CloseCursor: sessions.close_cursor,
    nodes.Discard: sessions.discard,
    nodes.SetSavepoint: sessions.set_savepoint,
    nodes.ReleaseSavepoint: sessions.release_savepoint,
    nodes.RollbackTo: sessions.rollback_to,
    nodes.ValidateConnection: connections.validate_connection,
    nodes.Unlisten: lambda context, statement: Done("UNLISTEN"),  # nobody can listen
    nodes.PrepareStatement: sessions.prepare,
    nodes.Execute: sessions.execute_prepared,
    nodes.Deallocate: sessions.deallocate,
    nodes.Empty: lambda context, statement: Done(None),
}


def execute(context: Context, statement: nodes.Statement) -> Result:
    if type(statement) in OTHERS:
        return OTHERS[type(statement)](context, statement)
    if context.transaction.explicit:
        return define(context, statement, _plan_of) or Done(_title(statement))
    context.session.refuse_in_block(_title(statement))
    return _define(context, statement)


def _title(statement: nodes.Statement) -> str:
    match statement:
        case nodes.CreateReplacement() | nodes.CreateView(materialized=True):
            return "CREATE MATERIALIZED VIEW"
        case nodes.ApplyReplacement() | nodes.RollbackReplacement():
            return "ALTER MATERIALIZED VIEW"
        case nodes.CommentOn():
            return "COMMENT"
        case nodes.AlterTtl():
            return "ALTER TABLE"
        case nodes.CreateNamespace(kind) | nodes.Drop(kind):
            verb = "DROP" if isinstance(statement, nodes.Drop) else "CREATE"
            return f"{verb} {kind.noun.upper()}"
        case nodes.Rename(kind) | nodes.AlterOwner(kind) | nodes.AlterRetain(kind):
            return f"ALTER {kind.noun.upper()}"
        case _:
            words = "".join(f" {letter}" if letter.isupper() else letter for letter in type(statement).__name__)
            return words.strip().upper()
