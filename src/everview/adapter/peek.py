"""Peeks: a plan evaluated at one time over stored collections and relations of the system, in the order asked for.

Small inputs are evaluated in this process, by rows or by columns, and large ones on Spark: the size decides, or the
session's setting, and the answer is the same. Rows of a look-up that an index serves are taken from the index, whatever
the size of its relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everview.adapter.bound_statement import BoundQuery, at_time
from everview.adapter.errors import as_sql_errors
from everview.adapter.peek_engines import Inputs, by_columns, interpreted, on_spark
from everview.adapter.peek_rows import listed, ordered, ordered_batch
from everview.adapter.served_indexes import IndexLookups
from everview.adapter.settings import AUTO, LOCAL, PEEK_ENGINE, SPARK
from everview.adapter.statement_context import StatementContext
from everview.adapter.system.functions import looking_into
from everview.adapter.system.registry import BY_ID
from everview.adapter.system.relation import View
from everview.adapter.tabular import TABLE_ROWS_MIN, Tables, held_tables, picked_columns, stored_tables
from everview.compute.allowance import OutOfMemory
from everview.compute.cancel import Cancellation, cancelable
from everview.compute.capabilities import errors_id, is_awake
from everview.compute.columnar.batch import Batch, NotByColumns
from everview.compute.columnar.eligible import is_wholly_columnar
from everview.compute.columnar.scalars import TooManyByRow
from everview.compute.engine.contract import Engine, EvaluationFailed, NotSupported, RunFailed, TooComplex
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Row, Rows, rows_of
from everview.compute.sql.errors import SqlError
from everview.compute.view import ERROR_SCHEMA
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import UnknownId

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

# Up to so many updates in all inputs together a plan is evaluated in this process; beyond, a Spark job pays.
LOCAL_UPDATES_MAX = 4_000_000
# Beyond so many, by columns: for fewer, rows in Python are quicker.
INTERPRETED_UPDATES_MAX = 500
# So many rows go through Python, where a function or an operator has no meaning over columns and Spark has one.
BY_ROW_MAX = 50_000
COLUMNS = "columns"
_HINT = f"SET {PEEK_ENGINE} = {AUTO}"


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """The rows that a transaction has written so far, by table. The tables in `drafted` are made by its COMMIT."""

    rows: Mapping[GlobalId, Rows] = field(default_factory=dict)
    drafted: frozenset[GlobalId] = frozenset()


NOTHING = OwnWrites()


class Peeks:
    """Evaluates peeks. `spark` gives an engine for large inputs. None without Spark."""

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
        found = self.answer(bound, time, around, own)
        return listed(found, bound.plan.types[: len(bound.plan.names)]) if isinstance(found, Batch) else found

    def answer(
        self, bound: BoundQuery, time: int, around: StatementContext, own: OwnWrites = NOTHING
    ) -> Batch | list[Row]:
        """The same by columns, each row standing as often as it occurs, where they were computed so."""
        plan = bound.plan
        found = self._collection(plan.relation, time, around, optimized=bound.optimized, own=own)
        types, width = ir.types(plan.relation), len(plan.names)
        if isinstance(found, Batch):
            return ordered_batch(found, plan.order, width, types)
        return ordered(found, plan.order, width, types)

    def result(
        self, bound: BoundQuery, time: int, around: StatementContext, own: OwnWrites = NOTHING
    ) -> Tables | list[Row]:
        """The same as tables if there are many rows, read from storage as they are taken if nothing else is needed."""
        streamed = self._streamed(bound, time, around, own)
        if streamed is not None:
            return streamed
        with as_sql_errors():
            found = self.answer(bound, time, around, own)
            if isinstance(found, Batch) and (found.rows < TABLE_ROWS_MIN or not found.width):
                return listed(found, bound.plan.types[: found.width])
            return held_tables(found.columns()) if isinstance(found, Batch) else found

    def _streamed(self, bound: BoundQuery, time: int, around: StatementContext, own: OwnWrites) -> Tables | None:
        """The result of a query that only picks columns of a large stored collection, in any order."""
        plan = bound.plan
        if plan.order or not plan.names or around.settings.get(PEEK_ENGINE, AUTO) == SPARK:
            return None
        picked = picked_columns(plan.relation if bound.optimized else optimize(at_time(plan.relation, time)))
        if picked is None or picked.id in BY_ID or picked.id in own.drafted or own.rows.get(picked.id):
            return None
        with as_sql_errors():
            self.check_errors(picked.id, time)
            selection = self._environment.contents(picked.id, time)
            if selection.rows_max >= TABLE_ROWS_MIN:
                return stored_tables(selection, picked, plan.types, len(plan.names))
            selection.close()
            return None

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
        found = self._collection(relation, time, around, optimized=optimized, own=own)
        return found.to_rows(ir.types(relation)) if isinstance(found, Batch) else found

    def _collection(
        self, relation: Relation, time: int, around: StatementContext, *, optimized: bool, own: OwnWrites
    ) -> Rows | Batch:
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
            view = View(around, self._coordinator)
            relations = {id: BY_ID[id] for id in gets & BY_ID.keys()}
            system = {id: rows_of(((row, 1) for row in each.rows(view)), each.types) for id, each in relations.items()}
            made = {id: own.rows.get(id, {}) for id in gets & own.drafted}
            small = {**found, **system, **made}
            added = {id: rows for id, rows in own.rows.items() if id in selections}
            inputs = Inputs(selections, added, small)
            return self._computed(plan, inputs, around)

    def _computed(self, plan: Relation, inputs: Inputs, around: StatementContext) -> Rows | Batch:
        """The plan by the engine that is chosen, or by another one if that one cannot."""
        wanted = around.settings.get(PEEK_ENGINE, AUTO)
        chosen = self._chosen(inputs.updates_max, around)
        engine = self._spark() if chosen == SPARK else None
        if engine is None and wanted == SPARK:
            raise SqlError("55000", "this environment is open without Spark", hint=_HINT)
        too_large: OutOfMemory | None = None
        if engine is None:
            spark = self._spark() if wanted == AUTO else None
            try:
                return _here(plan, inputs, columnar=chosen == COLUMNS, spark=spark is not None)
            except TooManyByRow:
                engine = spark
            except OutOfMemory as error:
                if spark is None or error.by_value:
                    raise
                engine, too_large = spark, error
            assert engine is not None
        forced = wanted == SPARK
        try:
            with _ended_with_the_statement(around):
                return on_spark(engine, plan, inputs)
        except EvaluationFailed as failed:
            if failed.sqlstate is not None:
                raise SqlError(failed.sqlstate, failed.message) from failed
            # Which row failed, and how, only an evaluation here can tell.
            rows = interpreted(plan, inputs)
            # There, a row that fails and that the transaction has deleted fails all the same.
            if forced and not inputs.added:
                raise SqlError("XX000", "internal error: only Spark fails at this query", hint=_HINT) from failed
            return rows
        except RunFailed as error:
            if too_large is not None:  # it is small enough for Spark, which is not there
                raise too_large from error
            raise
        except NotSupported as error:
            if too_large is not None:
                raise too_large from error
            if forced and isinstance(error, TooComplex):
                raise
            if forced:
                raise SqlError("0A000", "Spark cannot compute this query", detail=str(error), hint=_HINT) from error
            # Some function has no rendering in Spark SQL: it takes longer here, and is answered.
            return interpreted(plan, inputs)

    def _chosen(self, updates_max: int, around: StatementContext) -> str:
        """The engine for a plan over so many updates: LOCAL is the interpreter."""
        wanted = around.settings.get(PEEK_ENGINE, AUTO)
        large = updates_max > self._local_updates_max
        if wanted == SPARK or (wanted == AUTO and large and self._spark() is not None):
            return SPARK
        return COLUMNS if updates_max > INTERPRETED_UPDATES_MAX else LOCAL

    def engine_name(self, plan: Relation, around: StatementContext) -> str:
        """What would compute the plan now."""
        gets = _read_by(plan) - BY_ID.keys()
        standing = [self._environment.standing(id) for id in gets]
        updates = sum(batch.rows for each in standing if each for batch in each[0].batches.values())
        chosen = self._chosen(updates, around)
        if chosen == COLUMNS and not is_wholly_columnar(plan):
            return "columns, and rows for some operators, in the server"
        return {LOCAL: "rows, in the server", COLUMNS: "columns, in the server"}.get(chosen, "Spark")

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


def _read_by(plan: Relation) -> set[str]:
    """The relations that a plan reads and does not define itself."""
    parts = list(ir.walk(plan))
    gets = {each.id for each in parts if isinstance(each, ir.Get)}
    return gets - {each.id for each in parts if isinstance(each, ir.Let | ir.Recursive)}


def _here(plan: Relation, inputs: Inputs, *, columnar: bool, spark: bool) -> Rows | Batch:
    """The plan in this process; where Spark is there, raises `TooManyByRow` if Python would have too many rows."""
    if columnar:
        with suppress(NotByColumns):
            return by_columns(plan, inputs, BY_ROW_MAX if spark else None)
    return interpreted(plan, inputs)


@contextmanager
def _ended_with_the_statement(around: StatementContext) -> Iterator[None]:
    """While inside, jobs of Spark end when the statement is canceled or takes too long."""
    if around.watching is None:
        yield
        return
    wish = Cancellation()
    with around.watching(wish.ask), cancelable(wish):
        yield
