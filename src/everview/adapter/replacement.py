"""Staged replacements: what they would change, and when they are applied by themselves.

A replacement is a materialized view of its own, with its own collections, so nothing that befalls it touches its
target; `replacement_cutover.py` is how it takes the target's place.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from everview.adapter.catalog.items import ColumnInfo, Item, MaterializedView
from everview.adapter.errors import as_sql_errors
from everview.adapter.interrupts import Interrupts
from everview.adapter.replacement_cutover import Cutover, Pair
from everview.adapter.replacement_guards import Guards
from everview.adapter.system.relation import StagedChange, StagedStatus
from everview.adapter.versions import check_columns
from everview.background import Backoff, Loop
from everview.compute.capabilities import errors_id, is_awake
from everview.compute.difference import Difference, counts
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.sql.errors import SqlError
from everview.compute.view import ERROR_SCHEMA
from everview.storage.contract import GlobalId
from everview.storage.errors import StorageError

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

# What a replacement would change is told without being asked to wait up to this many updates in both collections.
TOLD_UPDATES_MAX = 2_000_000
RETRY_S = 5.0  # after an attempt to apply one by itself has failed
CLOSE_S = 5.0

_log = structlog.get_logger()


class Replacements:
    """The replacements of one environment that are staged."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._differences: dict[GlobalId, Difference] = {}
        self._lock = threading.Lock()
        self._waiting: dict[GlobalId, Loop] = {}  # those that are applied by themselves
        self._refused: dict[GlobalId, SqlError] = {}  # why one is not applied by itself

    def difference(self, item: Item) -> Difference:
        """How a replacement differs from its target."""
        assert item.replaces is not None
        with self._lock:
            if item.id not in self._differences:
                self._differences[item.id] = Difference(self._coordinator.environment, item.id, item.replaces)
            return self._differences[item.id]

    def change(self, item: Item) -> StagedChange | None:
        """What a replacement would change; None if that is not known, or takes long to find out."""
        assert item.replaces is not None
        environment = self._coordinator.environment
        try:
            uppers = [environment.frontiers(each).upper for each in (item.id, item.replaces)]
            latest = min((upper.only for upper in uppers if not upper.empty), default=0) - 1
            difference = self.difference(item)
            if not difference.known and difference.rows_max(latest) > TOLD_UPDATES_MAX:
                return None
            table = difference.at(latest)
        except StorageError:
            return None  # not hydrated yet, or dropped a moment ago
        return StagedChange(*counts(table), int(table.nbytes))

    def check_columns(self, target: MaterializedView, name: str, columns: Sequence[ColumnInfo]) -> None:
        """Raise unless a definition with these columns can follow the target's."""
        around = self._coordinator.stored_context()
        planner = self._coordinator.planner
        with as_sql_errors():
            check_columns(
                around.catalog, target, name, columns, lambda item, of: planner.columns_read(item, of, around)
            )

    def gone(self, id: GlobalId) -> None:
        with self._lock:
            self._differences.pop(id, None)
            self._refused.pop(id, None)
            self._waiting.pop(id, None)

    def failure(self, id: GlobalId) -> tuple[str, str] | None:
        """SQLSTATE and message of an error that reading the view gives at the latest time that is known, if it does."""
        environment, errors = self._coordinator.environment, errors_id(id)
        if not is_awake(environment, errors) or (upper := environment.frontiers(errors).upper).empty:
            return None
        with environment.contents(errors, upper.only - 1) as selection:
            rows = rows_from_arrow(selection.contents(), ERROR_SCHEMA)
        return min(rows) if rows else None

    def status(self, item: Item) -> StagedStatus:
        """How a replacement is doing, and its target."""
        assert item.replaces is not None
        failures: list[str | None] = []
        for id in (item.id, item.replaces):
            stopped = self._coordinator.maintenance.error(id)
            try:
                failure = self.failure(id)
            except StorageError:
                failure = None  # dropped a moment ago
            failures.append(str(stopped) if stopped is not None else failure[1] if failure is not None else None)
        own, target = failures
        refused = self._refused.get(item.id)
        if self._coordinator.maintenance.error(item.id) is not None:
            return StagedStatus("stalled", own, target)
        if not self._coordinator.hydrated(item):
            return StagedStatus("hydrating", None, target)
        if own is not None:
            return StagedStatus("failing", own, target)
        if refused is not None:
            return StagedStatus("refused", f"{refused.message}\n{refused.detail or ''}".strip(), target)
        return StagedStatus("ready", None, target)

    def apply(self, pairs: Sequence[Pair], interrupts: Interrupts, user: str, timeout_s: float | None = None) -> int:
        """Apply replacements once that is possible; gives the time from which on the new definitions hold."""
        with as_sql_errors():
            return Cutover(self._coordinator, pairs, interrupts, timeout_s).run(user)

    def apply_when_hydrated(self, item: Item) -> None:
        """Apply a replacement by itself, in the background, once that is possible."""
        interrupts = Interrupts(self._coordinator.environment)
        loop = Loop(
            f"replacement-{item.id}",
            lambda: self._apply_alone(item, interrupts),
            backoff=Backoff(RETRY_S, RETRY_S),
            ends=(SqlError, StorageError),  # everything closes
            on_failure=lambda error, _: _log.error("replacement not applied", replacement=item.name, exc_info=error),
            on_stop=interrupts.close,
        )
        with self._lock:
            self._waiting[item.id] = loop
        loop.start()

    def close(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            waiting = list(self._waiting.values())
        for loop in waiting:
            loop.stop(CLOSE_S)

    def _apply_alone(self, item: Item, interrupts: Interrupts) -> float | None:
        """Try to apply a replacement; if it is refused, wait until trying again makes sense."""
        items = self._coordinator.catalog.state.items
        target, staged = items.get(item.replaces or ""), items.get(item.id)
        if not isinstance(target, MaterializedView) or not isinstance(staged, MaterializedView) or not staged.staged:
            return None
        try:
            self.apply([Pair(target, staged, Guards.of(staged.staged.guards))], interrupts, staged.owner)
            return None
        except SqlError as error:
            if interrupts.due or item.id not in self._coordinator.catalog.state.items:
                return None
            self._note_refusal(item, error)
            self._wait_for_a_change(item, interrupts)
            return 0.0

    def _note_refusal(self, item: Item, error: SqlError) -> None:
        before = self._refused.get(item.id)
        self._refused[item.id] = error
        if before is None or before.message != error.message:
            name = self._coordinator.catalog.state.shown(item)
            _log.warning("replacement not applied", replacement=name, error=str(error), retry_s=RETRY_S)

    def _wait_for_a_change(self, item: Item, interrupts: Interrupts) -> None:
        """Until something has changed that may have been in the way: the definitions, or the replacement's contents."""
        environment, catalog = self._coordinator.environment, self._coordinator.catalog
        version, upper = catalog.state.version, environment.frontiers(item.id).upper
        interrupts.wait(
            lambda: catalog.state.version != version or environment.frontiers(item.id).upper != upper, RETRY_S
        )
