"""What a source held at every time that can be read, straight from storage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from everview.adapter.catalog.items import Source
from everview.adapter.coordinator import Coordinator
from everview.storage.shard import from_frontier
from everview.timely.consolidate import DIFF, TIME


def table(coordinator: Coordinator, name: str) -> Source:
    """A table of a source by its name."""
    (found,) = [each for each in coordinator.catalog.state.of(Source) if each.name == name]
    return found


def sums(coordinator: Coordinator, columns: dict[str, str]) -> Iterator[tuple[int, dict[str, int]]]:
    """At each time at which any of these columns changes, the sum of each: `columns` are tables and their columns."""
    items = {name: table(coordinator, name) for name in columns}
    environment = coordinator.environment
    since = max(from_frontier(environment.frontiers(each.id).since) for each in items.values())
    upper = min(from_frontier(environment.frontiers(each.id).upper) for each in items.values())
    moves: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(columns, 0))
    for name, item in items.items():
        place = f"c{item.names.index(columns[name])}"
        with environment.contents(item.id, since) as selection:
            _add(moves[since], name, selection.contents(), place)
        with environment.changes(item.id, since + 1, upper) as selection:
            changes = selection.changes()
            for time, value, diff in zip(
                changes.column(TIME).to_pylist(),
                changes.column(place).to_pylist(),
                changes.column(DIFF).to_pylist(),
                strict=True,
            ):
                moves[time][name] += (value or 0) * diff
    total = dict.fromkeys(columns, 0)
    for time in sorted(moves):
        for name, change in moves[time].items():
            total[name] += change
        yield time, dict(total)


def _add(into: dict[str, int], name: str, rows: Any, place: str) -> None:
    for value, diff in zip(rows.column(place).to_pylist(), rows.column(DIFF).to_pylist(), strict=True):
        into[name] += (value or 0) * diff
