"""What carrying out a statement needs: the session that asks, and the system that it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from everview.adapter.bound_statement import BoundQuery, BoundStatement
from everview.adapter.catalog.items import Index, Table
from everview.adapter.errors import as_sql_errors
from everview.adapter.peek import OwnWrites
from everview.adapter.planner import Pins, QuerySource
from everview.adapter.recency import wait_for_heads
from everview.adapter.session_binding import SessionBinding
from everview.adapter.settings import RECENCY, RECENCY_TIMEOUT, STRICT
from everview.adapter.statement_context import StatementContext
from everview.adapter.statements.nodes import AsOf
from everview.adapter.tabular import Tables
from everview.adapter.timestamps import TimestampChoice, TimestampRequest
from everview.compute.functions.contract import Failure
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import MZ_TIMESTAMP, TIMESTAMPTZ, SqlType
from everview.compute.rows.collection import Row
from everview.compute.sql.dml import Change
from everview.compute.sql.errors import SqlError, unsupported
from everview.storage.contract import GlobalId

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.session import CoordinatorSession
    from everview.adapter.transaction import Transaction

_TIMES = "AS OF and UP TO"
BEHIND_MS_MAX = 1_000  # how far the time of a block may be behind the wall clock when it begins


@dataclass(frozen=True)
class Context:
    """One statement under way."""

    session: CoordinatorSession
    coordinator: Coordinator
    around: StatementContext
    values: tuple[Literal, ...] = ()
    statement: BoundStatement | None = None  # its query or change, bound when it was prepared

    @property
    def transaction(self) -> Transaction:
        return self.session.transaction

    @property
    def host(self) -> SessionBinding:
        """What binds parts of the statement, with the values of its parameters."""
        return SessionBinding(self.around, values=self.values)

    def anew(self) -> Context:
        """The statement on the catalog as it is by now."""
        return replace(self, around=self.session.statement_context())

    def bind(self, query: QuerySource, pins: Pins | None = None) -> BoundQuery:
        """A query that is to be maintained, bound with the values of the parameters; `pins` if it is stored."""
        with as_sql_errors():
            return _maintainable(self.coordinator.planner.query(query, self.around, self.host, pins=pins))

    def define(self, query: str, pins: Pins | None = None) -> BoundQuery:
        """A query that is to be maintained and stored: its names are written in full."""
        with as_sql_errors():
            return _maintainable(self.coordinator.planner.definition(query, self.around, self.host, pins))

    def prepared(self, query: QuerySource, pins: Pins | None = None) -> BoundQuery:
        """The query of a statement that is to be maintained, as it was bound when the statement was prepared."""
        if self.statement is None or self.statement.open:
            return self.bind(query, pins)
        return _maintainable(self.statement.filled(self.values, self.around)[1])

    def bind_read(self, query: QuerySource) -> BoundQuery:
        """A query that is to be read now; from the tables where an index does not know what the transaction wrote."""
        planner, items = self.coordinator.planner, self.around.catalog.items
        with as_sql_errors():
            if self.statement is not None and not self.statement.open:
                _, bound = self.statement.filled(self.values, self.around)
            else:
                bound = planner.query(query, self.around, self.host, indexed=True)
            if self.transaction.written and any(isinstance(items[id], Index) for id in bound.reads):
                below = {id for id in bound.reads if isinstance(items[id], Index)}
                if self.tables_below(replace(bound, reads=frozenset(below))) & self.transaction.written.keys():
                    return planner.query(query, self.around, self.host)
            return bound

    def bind_change(self, text: str) -> tuple[Change, BoundQuery]:
        with as_sql_errors():
            if self.statement is not None and not self.statement.open:
                change, bound = self.statement.filled(self.values, self.around)
                assert change is not None
                return change, bound
            return self.coordinator.planner.change(text, self.around, self.host)

    def value(self, text: str, *to: SqlType, what: str) -> Any:
        """The value of an expression, cast to one type after the other."""
        with as_sql_errors():
            bound = self.coordinator.planner.value(text, self.around, to, self.values)
            if bound.reads or bound.needs_time:
                raise SqlError("42703", f"{what} take constant expressions", detail="no relations, no time")
        ((value,),) = self.coordinator.peeks.rows(bound, 0, self.around)
        return value

    def read(self, bound: BoundQuery, as_of: int | None = None, *, at_least: bool = False) -> list[Row] | Tables:
        """The rows of a query at the time that the transaction, or AS OF, gives it."""
        time = self.time_for(bound, as_of, at_least=at_least)
        return self.coordinator.peeks.result(bound, time, self.around, self.own(bound, time))

    def own(self, bound: BoundQuery, time: int) -> OwnWrites:
        """What the transaction has written, of what a query reads at this time."""
        return self.transaction.own(bound.reads, self.around.catalog, time)

    def time_for(
        self, bound: BoundQuery, as_of: int | None = None, *, at_least: bool = False, isolation: str | None = None
    ) -> int:
        """Choose the time at which to read, hold it and wait for it. A transaction reads at one time."""
        transaction = self.transaction
        catalog = self.around.catalog
        if as_of is not None:
            transaction.check_unwritten(bound.reads, catalog, "AS OF")
            return self._as_of(bound, as_of, at_least=at_least)
        bound = self._without_drafts(bound)
        if not bound.reads and not bound.needs_time:
            return self.coordinator.timeline.upper - 1
        transaction.check_may_read(bound.reads, catalog)
        timeline = self.coordinator.timelines.of(bound.reads, catalog)
        if bound.reads:
            transaction.check_timeline(timeline.name, bound.reads, catalog)
        if transaction.time is None:
            self.coordinator.timestamps.begin(bound.reads, self.session.interrupts, catalog)
            isolation = isolation or transaction.isolation
            needs_now, recent = bound.needs_time or self._behind(bound, isolation), self._recent(bound)
            wanted = TimestampRequest(bound.reads, isolation, needs_now, not_before=recent)
            domain = None if self.session.alone else lambda: self._timedomain(bound)
            choice, transaction.hold = self.coordinator.timestamps.hold(wanted, catalog, domain)
            transaction.time, transaction.timeline = choice.time, choice.name
            if choice.name is None:
                self.coordinator.timeline.advance(choice.time)
        else:
            if transaction.hold is not None:
                transaction.hold.extend(bound.reads)
            self._check_readable(bound, transaction.time)
        transaction.read |= self.tables_below(bound)
        self.coordinator.timestamps.wait(bound.reads, transaction.time, self.session.interrupts, catalog)
        return transaction.time

    def _recent(self, bound: BoundQuery) -> int:
        """With real-time recency, wait for what is upstream now; gives the time from which on it can be read."""
        settings = self.session.settings
        if settings.get(RECENCY) == "off":
            return 0
        limit_ms = int(settings.get(RECENCY_TIMEOUT))
        interrupts = self.session.interrupts
        return wait_for_heads(self.coordinator, bound.reads, self.around.catalog, interrupts, limit_ms)

    def _timedomain(self, bound: BoundQuery) -> set[GlobalId]:
        """What a transaction can read that begins with this query; if that names nothing, what needs no schema."""
        catalog, around = self.around.catalog, self.around
        schemas = {catalog.items[id].schema for id in bound.uses | bound.reads}
        if not schemas:
            found = (catalog.schema(around.database, name) for name in around.search_path)
            schemas = {each.id for each in found if each is not None}
        name = self.coordinator.timelines.of(bound.reads, catalog).name
        return {id for id in catalog.timedomain(schemas) if catalog.timeline(id) == name}

    def _without_drafts(self, bound: BoundQuery) -> BoundQuery:
        """Leave out of a query's reads the tables that only the transaction has: nobody need wait for them.

        With a TTL they have other rows at other times, so the transaction needs to have one.
        """
        items = self.around.catalog.items
        drafted = self.transaction.drafted(bound.reads, self.around.catalog)
        if not drafted:
            return bound
        timed = any(isinstance(item := items[id], Table) and item.ttl is not None for id in drafted)
        return replace(bound, reads=bound.reads - drafted, present=bound.present or timed)

    def tables_below(self, bound: BoundQuery) -> set[GlobalId]:
        """The tables that a query is made from, through all views."""
        catalog = self.around.catalog
        return {root for id in bound.reads for root in catalog.roots(id) if isinstance(catalog.items[root], Table)}

    def _behind(self, bound: BoundQuery, isolation: str) -> bool:
        """Whether a block would begin far in the past, since nothing has moved the timeline for a while.

        Its time is what `mz_now()` is in all of its statements. What sources feed is read as far as they have come.
        """
        if not self.transaction.explicit or isolation != STRICT:
            return False
        catalog, timeline = self.around.catalog, self.coordinator.timeline
        fed = any(not isinstance(catalog.items[root], Table) for id in bound.reads for root in catalog.roots(id))
        return not fed and timeline.now_ms - timeline.upper > BEHIND_MS_MAX

    def _as_of(self, bound: BoundQuery, time: int, *, at_least: bool) -> int:
        """A time outside of the timeline; the hold ends with the statement."""
        catalog = self.around.catalog
        wanted = TimestampRequest(bound.reads, self.transaction.isolation, as_of=time, at_least=at_least)
        choice, hold = self.coordinator.timestamps.hold(wanted, catalog)
        self.session.holds.append(hold)
        self.coordinator.timestamps.wait(bound.reads, choice.time, self.session.interrupts, catalog)
        return choice.time

    def _check_readable(self, bound: BoundQuery, time: int) -> None:
        for each in self.coordinator.timestamps.inputs(bound.reads):
            if each.since > time:
                name = self.around.catalog.items[each.id].name
                raise SqlError(
                    "25000",
                    f'"{name}" cannot be read at the time of the transaction',
                    detail=f"the transaction reads at {time}, and the relation begins at {each.since}",
                    hint="read it in a new transaction",
                )

    def choose(self, bound: BoundQuery, as_of: int | None = None, *, at_least: bool = False) -> TimestampChoice:
        """The time at which a query would read, without reading."""
        bound = self._without_drafts(bound)
        wanted = TimestampRequest(bound.reads, self.transaction.isolation, bound.needs_time, as_of, at_least)
        return self.coordinator.timestamps.choose(wanted, self.around.catalog)

    def as_of(self, clause: AsOf | None) -> int | None:
        return None if clause is None else self.moment(clause.expression)

    def moment(self, expression: str) -> int:
        """The time that a constant expression means: a number of milliseconds, or a timestamp."""
        try:
            value = self.value(expression, MZ_TIMESTAMP, what=_TIMES)
        except (SqlError, Failure) as error:
            if error.sqlstate != "22P02":
                raise
            # Text that is no number may be a timestamp.
            value = self.value(expression, TIMESTAMPTZ, MZ_TIMESTAMP, what=_TIMES)
        if value is None:
            raise SqlError("22004", f"{_TIMES} take a time, and this is NULL")
        return int(value)


def _maintainable(bound: BoundQuery) -> BoundQuery:
    if bound.recursive:
        hint = "a query that is read once may be recursive"
        raise unsupported("WITH RECURSIVE in a view or subscription", hint=hint)
    return bound


def literals(values: Sequence[Any], types: Sequence[SqlType]) -> tuple[Literal, ...]:
    """The values of parameters as the binder takes them."""
    return tuple(Literal(value, each) for value, each in zip(values, types, strict=True))
