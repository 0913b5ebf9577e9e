"""Watches views while they are maintained: their frontiers, their rates, and the changes that subscribers receive."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

from everview.api import Database
from everview.errors import EverviewError
from everview.instance import Instance
from everview.storage.contract import Frontiers

RATE_S = 3.0  # rates are those of the last few seconds
CATCH_UP_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a relation at one moment."""

    name: str
    frontiers: Frontiers
    behind_ms: int
    ticks: int
    tick_ms: float
    updates: int  # put out so far
    rate: float  # of updates, per second


class Watch:
    """Looks at the relations again and again, and computes rates and the median distance behind the present."""

    def __init__(self, instance: Instance, names: tuple[str, ...]) -> None:
        self._instance, self._names = instance, names
        self._seen: dict[str, deque[tuple[float, int]]] = {name: deque() for name in names}
        self._began = time.monotonic()
        self._behind_ms: dict[str, list[tuple[float, int]]] = {name: [] for name in names}

    def look(self) -> list[Standing]:
        coordinator = self._instance.coordinator
        items = {item.name: item for item in coordinator.catalog.state.items.values()}
        statuses = self._instance.statuses()
        found = []
        for name in self._names:
            frontiers = coordinator.frontiers(items[name].id)
            assert frontiers is not None
            behind = max(0, coordinator.now_ms - frontiers.upper.only)
            status = statuses.get(items[name].id)
            ticks, updates, busy_s = (status.ticks, status.rows_out, status.busy_s) if status else (0, 0, 0.0)
            if status is None:  # a source: what it brought is what is stored, for it takes nothing back
                batches = coordinator.environment.shard(items[name].id).batches.values()
                updates = sum(batch.rows for batch in batches)
            seen, now = self._seen[name], time.monotonic()
            seen.append((now, updates))
            while now - seen[0][0] > RATE_S:
                seen.popleft()
            since, before = seen[0]
            rate = (updates - before) / (now - since) if now > since else 0.0
            found.append(Standing(name, frontiers, behind, ticks, 1000 * busy_s / max(1, ticks), updates, rate))
        return found

    def remember(self, standings: list[Standing]) -> None:
        """Remember these for the median distance."""
        age = time.monotonic() - self._began
        for each in standings:
            self._behind_ms[each.name].append((age, each.behind_ms))

    def usual_ms(self, name: str, seconds: float | None = None) -> float:
        """The median of how far the relation was behind, in all or in the first seconds that were watched."""
        behind = [ms for age, ms in self._behind_ms[name] if seconds is None or age <= seconds]
        return statistics.median(behind) if behind else 0.0


class Follower:
    """Subscribes to a view on a thread of its own, and adds up the changes."""

    def __init__(self, database: Database, schema: str, view: str) -> None:
        self.view = view
        self.contents: Counter[tuple[Any, ...]] = Counter()
        self.updates = 0
        self.frontier = 0  # all changes before this time have been received
        self.error: Exception | None = None
        self._until: int | None = None
        self._rows: Any = database.stream(f"SUBSCRIBE TO {schema}.{view} WITH (PROGRESS)")
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"demo-{view}", daemon=True)
        self._thread.start()

    def rows(self) -> list[tuple[Any, ...]]:
        """The contents of the view, from the changes so far."""
        with self._lock:
            return list(self.contents.elements())

    def finish(self, until: int) -> None:
        """Follow up to `until`; `frontier` says how far it came."""
        self._until = until
        self._thread.join(CATCH_UP_S_MAX)
        if self._thread.is_alive() and self.error is None:
            self.error = EverviewError(f"the subscription did not catch up within {CATCH_UP_S_MAX:.0f} s")

    def _run(self) -> None:
        pending: list[tuple[tuple[Any, ...], int]] = []
        try:
            for timestamp, progressed, diff, *row in self._rows:
                if not progressed:
                    pending.append((tuple(row), diff))
                    continue
                self._add(pending)  # all changes of a time at once, so that nobody sees half of them
                pending, self.frontier = [], int(timestamp)
                if self._until is not None and self.frontier >= self._until:
                    return
        except Exception as error:  # told with the checks
            self.error = error
        finally:
            self._rows.close()

    def _add(self, changes: list[tuple[tuple[Any, ...], int]]) -> None:
        with self._lock:
            for row, diff in changes:
                self.contents[row] += diff
                if not self.contents[row]:
                    del self.contents[row]
            self.updates += len(changes)
