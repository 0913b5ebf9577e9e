"""Replacements that are staged: what they would change, and those that are applied by themselves.

A replacement is a materialized view of its own, with its own collections, so nothing that befalls it touches its
target; `applying.py` is how it takes the target's place.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from everview.adapter.applying import Applying
from everview.adapter.catalog.items import ColumnInfo, Item
from everview.adapter.errors import as_sql_errors
from everview.adapter.interrupts import Interrupts
from everview.adapter.system.relation import StagedChange
from everview.adapter.versions import check_columns
from everview.compute.difference import Difference, counts
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId
from everview.storage.errors import StorageError

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

# What a replacement would change is told without being asked to wait up to this many updates in both collections.
TOLD_UPDATES_MAX = 2_000_000
RETRY_S = 5.0  # after an attempt to apply one by itself has failed

_log = structlog.get_logger()


class Replacements:
    """The replacements of one environment that are staged."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._differences: dict[GlobalId, Difference] = {}
        self._lock = threading.Lock()
        self._waiting: dict[GlobalId, tuple[threading.Thread, Interrupts]] = {}

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

    def check_columns(self, target: Item, name: str, columns: Sequence[ColumnInfo]) -> None:
        """Raise unless a definition with these columns can follow the target's."""
        around = self._coordinator.stored_surroundings()
        planner = self._coordinator.planner
        with as_sql_errors():
            check_columns(
                around.catalog, target, name, columns, lambda item, of: planner.columns_read(item, of, around)
            )

    def gone(self, id: GlobalId) -> None:
        """A replacement was applied or dropped."""
        with self._lock:
            self._differences.pop(id, None)

    def apply(
        self,
        target: Item,
        item: Item,
        interrupts: Interrupts,
        user: str,
        timeout_s: float | None = None,
        *,
        forward: bool = False,
    ) -> int:
        """Apply a replacement once that is possible; gives the time from which on the new definition holds.

        With `forward`, times may be left out that neither of the two knows of; they then read as an error.
        """
        with as_sql_errors():
            return Applying(self._coordinator, target, item, interrupts, timeout_s, forward=forward).run(user)

    def apply_when_hydrated(self, item: Item) -> None:
        """Apply a replacement by itself, in the background, once that is possible."""
        interrupts = Interrupts(self._coordinator.environment)
        thread = threading.Thread(
            target=self._apply_alone, args=(item, interrupts), name=f"replacement-{item.id}", daemon=True
        )
        with self._lock:
            self._waiting[item.id] = thread, interrupts
        thread.start()

    def close(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            waiting = list(self._waiting.values())
        for thread, interrupts in waiting:
            interrupts.close()
            thread.join(timeout=5)

    def _apply_alone(self, item: Item, interrupts: Interrupts) -> None:
        try:
            while True:
                items = self._coordinator.catalog.state.items
                target = items.get(item.replaces or "")
                if item.id not in items or target is None:
                    return
                try:
                    self.apply(target, items[item.id], interrupts, items[item.id].owner)
                    return
                except SqlError as error:
                    if interrupts.due or item.id not in self._coordinator.catalog.state.items:
                        return
                    name = self._coordinator.catalog.state.shown(item)
                    _log.warning("replacement not applied", replacement=name, error=str(error), retry_s=RETRY_S)
                    interrupts.wait(lambda: item.id not in self._coordinator.catalog.state.items, RETRY_S)
        except (SqlError, StorageError):
            return  # everything closes
        finally:
            with self._lock:
                self._waiting.pop(item.id, None)
