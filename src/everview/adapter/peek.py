"""Peeks: a plan evaluated at one time over stored collections and relations of the system, in the order asked for.

Small inputs are evaluated in this process, large ones on Spark: the size decides, or the session's setting, and the
answer is the same. Rows of a look-up that an index serves are taken from the index, whatever the size of its relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.adapter.bound_statement import BoundQuery, at_time
from everview.adapter.errors import as_sql_errors
from everview.adapter.served_indexes import IndexLookups
from everview.adapter.settings import AUTO, LOCAL, PEEK_ENGINE, SPARK
from everview.adapter.statement_context import StatementContext
from everview.adapter.system.functions import looking_into
from everview.adapter.system.registry import BY_ID
from everview.adapter.system.relation import SystemRelation, View
from everview.compute.allowance import OutOfMemory
from everview.compute.cancel import Cancellation, cancelable
from everview.compute.capabilities import errors_id, is_awake
from everview.compute.engine.contract import Batch, Engine, EvaluationFailed, NotSupported, Parts, RunFailed
from everview.compute.interpreter import limits
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.interpreter.ordering import compile_order, row_order_key, sort_by
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Order, Relation
from everview.compute.ir.types import SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Row, Rows, add, plain, rows_of
from everview.compute.sql.errors import SqlError
from everview.compute.view import ERROR_SCHEMA
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import UnknownId
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF, data_names

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

# Up to so many updates in all inputs together a plan is evaluated here; beyond, a Spark job pays.
LOCAL_UPDATES_MAX = 50_000
RESULT_ROWS_MAX = 5_000_000
_HINT = f"SET {PEEK_ENGINE} = {AUTO}"


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """The rows that a transaction has written so far, by table. The tables in `drafted` are made by its COMMIT."""

    rows: Mapping[GlobalId, Rows] = field(default_factory=dict)
    drafted: frozenset[GlobalId] = frozenset()


NOTHING = OwnWrites()


class Peeks:
    """Evaluates peeks. `spark` gives an engine for large inputs, or None if there is none."""

    def __init__(
        self,
        environment: Environment,
        lookups: IndexLookups,
        coordinator: Coordinator,
        spark: Callable[[], Engine | None],
        *,
        local_updates_max: int = LOCAL_UPDATES_MAX,
    ) -> None:
        self._environment, self._lookups, self._spark = environment, lookups, spark
        self._coordinator = coordinator
        self._local_updates_max = local_updates_max

    def rows(self, bound: BoundQuery, time: int, around: StatementContext, own: OwnWrites = NOTHING) -> list[Row]:
        """The rows of a query at a time, in order, each as often as it occurs."""
        plan = bound.plan
        found = self.collection(plan.relation, time, around, optimized=bound.optimized, own=own)
        return ordered(found, plan.order, len(plan.names), ir.types(plan.relation))

    def collection(
        self,
        relation: Relation,
        time: int,
        around: StatementContext,
        *,
        optimized: bool = False,
        own: OwnWrites = NOTHING,
    ) -> Rows:
        """The rows that the plan means at the time; raises what its evaluation fails with."""
        with as_sql_errors(), looking_into(around), ExitStack() as stack:
            plan = at_time(relation, time)
            plan = plan if optimized else optimize(plan)
            gets = _read_by(plan)
            # Also of those that an index serves: it has the rows without errors.
            for id in gets - BY_ID.keys() - own.drafted:
                self.check_errors(id, time)
            plan, found = self._lookups.rewrite(plan, time, own.rows)
            if found:
                gets = _read_by(plan) - found.keys()
            stored = gets - BY_ID.keys() - own.drafted
            selections = {id: stack.enter_context(self._environment.contents(id, time)) for id in stored}
            system = {id: self._system_rows(BY_ID[id], around) for id in gets & BY_ID.keys()}
            made = {id: own.rows.get(id, {}) for id in gets & own.drafted}
            small = {**found, **system, **made}
            added = {id: rows for id, rows in own.rows.items() if id in selections}
            engine = self._engine_for(selections.values(), added.values(), around)
            too_large: OutOfMemory | None = None
            if engine is None:
                wanted = around.settings.get(PEEK_ENGINE, AUTO)
                try:
                    return _locally(plan, selections, small, added)
                except OutOfMemory as error:
                    engine = self._spark() if wanted == AUTO and not error.by_value else None
                    if engine is None:
                        raise
                    too_large = error
            forced = around.settings.get(PEEK_ENGINE) == SPARK
            try:
                with _ended_with_the_statement(around):
                    return _on_spark(engine, plan, selections, small, added)
            except EvaluationFailed as failed:
                if failed.sqlstate is not None:
                    raise SqlError(failed.sqlstate, failed.message) from failed
                # Which row failed, and how, only an evaluation here can tell.
                rows = _locally(plan, selections, small, added)
                # On Spark, a row that fails and that the transaction has deleted fails all the same.
                if forced and not added:
                    raise SqlError("XX000", "internal error: only Spark fails at this query", hint=_HINT) from failed
                return rows
            except RunFailed as error:
                if too_large is not None:  # it is small enough for Spark, which is not there
                    raise too_large from error
                raise
            except NotSupported as error:
                if too_large is not None:
                    raise too_large from error
                if forced:
                    raise SqlError("0A000", "Spark cannot compute this query", detail=str(error), hint=_HINT) from error
                # Some function has no rendering in Spark SQL: it takes longer here, and is answered.
                return _locally(plan, selections, small, added)

    def _engine_for(self, inputs: Iterable[Selection], own: Iterable[Rows], around: StatementContext) -> Engine | None:
        """Choose Spark if the session asks for it or the inputs are large. None means to compute here."""
        wanted = around.settings.get(PEEK_ENGINE, AUTO)
        small = sum(each.rows_max for each in inputs) + sum(map(len, own)) <= self._local_updates_max
        if wanted == LOCAL or (wanted == AUTO and small):
            return None
        engine = self._spark()
        if engine is None and wanted == SPARK:
            raise SqlError("55000", "this environment is open without Spark", hint=_HINT)
        return engine

    def check_errors(self, id: GlobalId, time: int, upper: int | None = None) -> None:
        """Raise if the view cannot be read at a time, or up to `upper`: some row of it could not be computed."""
        errors = errors_id(id)
        if not is_awake(self._environment, errors):
            return  # it never failed
        try:
            with self._environment.contents(errors, time) as selection:
                found = rows_from_arrow(selection.contents(), ERROR_SCHEMA)
            if not found and upper is not None and time + 1 < upper:
                with self._environment.changes(errors, time + 1, upper) as selection:
                    found = rows_from_arrow(selection.changes(), ERROR_SCHEMA)
        except UnknownId:
            return  # it never fails
        if found:
            raise SqlError(*min(found))

    def _system_rows(self, relation: SystemRelation, around: StatementContext) -> Rows:
        rows = relation.rows(View(around, self._coordinator))
        return rows_of(((row, 1) for row in rows), relation.types)


def _read_by(plan: Relation) -> set[str]:
    """The relations that a plan reads, without those that it defines itself."""
    parts = list(ir.walk(plan))
    gets = {each.id for each in parts if isinstance(each, ir.Get)}
    return gets - {each.id for each in parts if isinstance(each, ir.Let | ir.Recursive)}


def _locally(
    plan: Relation, selections: Mapping[GlobalId, Selection], small: Mapping[str, Rows], added: Mapping[GlobalId, Rows]
) -> Rows:
    schemas = {each.id: each.schema for each in ir.walk(plan) if isinstance(each, ir.Get)}
    stored = {}
    limits.look(sum(each.rows_max for each in selections.values()))
    for id, each in selections.items():
        contents = each.contents(each.first_columns(len(schemas[id])))
        stored[id] = rows_from_arrow(contents, schemas[id])
        for row, multiplicity in added.get(id, {}).items():
            add(stored[id], row, multiplicity)
    result = evaluate(plan, {**stored, **small})
    if result.errors:
        raise SqlError(*min(result.errors))
    return result.rows


@contextmanager
def _ended_with_the_statement(around: StatementContext) -> Iterator[None]:
    """While inside, jobs of Spark end when the statement is canceled or takes too long."""
    if around.watching is None:
        yield
        return
    wish = Cancellation()
    with around.watching(wish.ask), cancelable(wish):
        yield


def _on_spark(
    engine: Engine,
    plan: Relation,
    selections: Mapping[GlobalId, Selection],
    small: Mapping[str, Rows],
    added: Mapping[GlobalId, Rows],
) -> Rows:
    """The plan as one statement of Spark. Parts that hold nothing later than the time are read by Spark itself."""
    schemas = {each.id: each.schema for each in ir.walk(plan) if isinstance(each, ir.Get)}
    batches: dict[str, Batch] = {name: rows_to_arrow(rows, schemas[name]) for name, rows in small.items()}
    whole: dict[GlobalId, str] = {}
    for id, selection in selections.items():
        ready = [index for index, part in enumerate(selection.parts) if part.time_max < selection.time_range[1]]
        uris = selection.uris
        if ready and len(ready) == len(selection.parts):
            batches[f"{id} parts"] = Parts(tuple(uris[index] for index in ready), selection.spec.schema)
            whole[id] = f"{id} parts"
        updates = selection.inline_updates() if id in whole else selection.contents()
        table = updates.select([*data_names(updates), DIFF])  # the data columns as engines name them
        if id in added:
            rows = rows_to_arrow(added[id], schemas[id]).select(table.column_names)
            table = pa.concat_tables([table, rows.cast(table.schema)])
        batches[id] = table

    def look(part: Relation) -> Relation:
        if isinstance(part, ir.Get) and part.id in whole:
            return ir.Union((part, ir.Get(whole[part.id], part.schema)))
        return part

    return rows_from_arrow(engine.run(ir.transform(plan, look), batches), ir.types(plan))


def ordered(rows: Rows, order: Sequence[Order], width: int, types: Sequence[SqlType]) -> list[Row]:
    """A collection as a list: in order, ties by the whole row, in the values that clients are given."""
    items = list(rows.items())
    if order:
        key = row_order_key(types)
        limits.sort(items, lambda item: key(item[0]))
        values = compile_order(order)
        sort_by(items, order, lambda item: values(item[0]))
    count = sum(multiplicity for _, multiplicity in items)
    if count > RESULT_ROWS_MAX:
        hint = "read fewer rows, or use COPY with a condition"
        raise SqlError("54000", f"the result has more than {RESULT_ROWS_MAX} rows", hint=hint)
    shown = plain_rows(types[:width])
    result: list[Row] = []
    for row, multiplicity in items:
        if multiplicity < 0:
            raise SqlError("XX000", "internal error: a row with a negative multiplicity", detail=f"row {row!r}")
        result.extend([shown(row)] * multiplicity)
    return result


def plain_rows(types: Sequence[SqlType]) -> Callable[[Row], Row]:
    """What turns a row of a collection into one for a client: its first columns, arrays as lists."""
    width = len(types)
    thaws = [(index, thaw) for index, each in enumerate(types) if (thaw := plain(each))]
    if not thaws:
        return lambda row: row[:width]

    def shown(row: Row) -> Row:
        values: list[Any] = list(row[:width])
        for index, thaw in thaws:
            values[index] = thaw(values[index])
        return tuple(values)

    return shown
