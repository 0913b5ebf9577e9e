"""What carrying out a statement needs: the session that asks, and the system that it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.adapter.errors import as_sql_errors
from everview.adapter.host import SessionHost
from everview.adapter.peek import Peek, peek_of
from everview.adapter.planner import Bound, Pins
from everview.adapter.statements.nodes import AsOf
from everview.adapter.surroundings import Surroundings
from everview.adapter.timestamps import Choice, Wanted
from everview.compute.engine.local.collection import Row, Rows
from everview.compute.functions.contract import Failure
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import SqlType
from everview.compute.sql.errors import SqlError, unsupported

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator
    from everview.adapter.session import CoordinatorSession
    from everview.adapter.transaction import Transaction


@dataclass(frozen=True)
class Context:
    """One statement under way."""

    session: CoordinatorSession
    coordinator: Coordinator
    around: Surroundings
    values: tuple[Literal, ...] = ()

    @property
    def transaction(self) -> Transaction:
        """The transaction that the statement is in."""
        return self.session.transaction

    @property
    def host(self) -> SessionHost:
        """The host of the statement, with the values of its parameters."""
        return SessionHost(self.around, values=self.values)

    def bind(self, text: str, pins: Pins | None = None) -> Bound:
        """A query that is to be maintained, bound with the values of the parameters; `pins` if it is stored."""
        with as_sql_errors():
            bound = self.coordinator.planner.query(text, self.around, self.host, pins=pins)
        if bound.recursive:
            hint = "a query that is read once may be recursive"
            raise unsupported("WITH RECURSIVE in a view or subscription", hint=hint)
        return bound

    def bind_read(self, text: str) -> Bound:
        """A query that is to be read now."""
        with as_sql_errors():
            return self.coordinator.planner.read(text, self.around, self.values)

    def read(self, bound: Bound, as_of: int | None = None, *, at_least: bool = False) -> list[Row]:
        """The rows of a query at the time that the transaction, or AS OF, gives it."""
        time = self.time_for(bound, as_of, at_least=at_least)
        return self.coordinator.peeks.rows(peek_of(bound, time), self.around)

    def read_collection(self, bound: Bound) -> Rows:
        """The same as a collection."""
        time = self.time_for(bound)
        return self.coordinator.peeks.collection(bound.plan.relation, time, self.around, optimized=bound.optimized)

    def time_for(self, bound: Bound, as_of: int | None = None, *, at_least: bool = False) -> int:
        """The time at which to read, waited for and held."""
        transaction = self.transaction
        transaction.check_made(bound.reads, self.around.catalog)
        if as_of is not None:
            return self._as_of(bound, as_of, at_least=at_least)
        if not bound.reads and not bound.needs_time:
            return self.coordinator.timeline.upper - 1
        transaction.check_may_read(bound.reads, self.around.catalog)
        catalog = self.around.catalog
        if transaction.time is None:
            wanted = Wanted(bound.reads, transaction.isolation, bound.needs_time)
            choice, transaction.hold = self.coordinator.timestamps.hold(wanted, catalog)
            transaction.time = choice.time
            self.coordinator.timeline.advance(choice.time)
        else:
            self._check_readable(bound, transaction.time)
        for id in bound.reads:
            transaction.read |= {root for root in catalog.roots(id) if catalog.items[root].kind == "table"}
        self.coordinator.timestamps.wait(bound.reads, transaction.time, self.session.interrupts, catalog)
        return transaction.time

    def _as_of(self, bound: Bound, time: int, *, at_least: bool) -> int:
        """A time outside of the timeline; the hold ends with the statement."""
        catalog = self.around.catalog
        wanted = Wanted(bound.reads, self.transaction.isolation, as_of=time, at_least=at_least)
        choice, hold = self.coordinator.timestamps.hold(wanted, catalog)
        self.session.holds.append(hold)
        self.coordinator.timestamps.wait(bound.reads, choice.time, self.session.interrupts, catalog)
        return choice.time

    def _check_readable(self, bound: Bound, time: int) -> None:
        for each in self.coordinator.timestamps.inputs(bound.reads):
            if each.since > time:
                name = self.around.catalog.items[each.id].name
                raise SqlError(
                    "25000",
                    f'"{name}" cannot be read at the time of the transaction',
                    detail=f"the transaction reads at {time}, and the relation begins at {each.since}",
                    hint="read it in a new transaction",
                )

    def choose(self, bound: Bound, as_of: int | None = None, *, at_least: bool = False) -> Choice:
        """The time at which a query would read, without reading."""
        wanted = Wanted(bound.reads, self.transaction.isolation, bound.needs_time, as_of, at_least)
        return self.coordinator.timestamps.choose(wanted, self.around.catalog)

    def as_of(self, clause: AsOf | None) -> int | None:
        """The time that an AS OF clause says."""
        return None if clause is None else self.moment(clause.expression)

    def moment(self, expression: str) -> int:
        """The time that a constant expression means: a number of milliseconds, or a timestamp."""
        for target in ("mz_timestamp", "timestamptz) AS mz_timestamp"):
            opened = "CAST(" * target.count(")") + "CAST("
            try:
                bound = self.bind_read(f"SELECT {opened}({expression.strip()}) AS {target})")
                if bound.reads or bound.needs_time:
                    raise SqlError("42703", "AS OF and UP TO take constant expressions", detail="no relations, no time")
                ((value,),) = self.coordinator.peeks.rows(Peek(bound.plan.relation, (), 1, 0), self.around)
            except (SqlError, Failure) as error:
                if error.sqlstate == "22P02" and target == "mz_timestamp":
                    continue  # text that is no number may be a timestamp
                raise
            if value is None:
                raise SqlError("22004", "AS OF and UP TO take a time, and this is NULL")
            return int(value)
        raise AssertionError("the last attempt gives a time or raises")


def literals(values: Sequence[Any], types: Sequence[SqlType]) -> tuple[Literal, ...]:
    """The values of parameters as the binder takes them."""
    return tuple(Literal(value, each) for value, each in zip(values, types, strict=True))
