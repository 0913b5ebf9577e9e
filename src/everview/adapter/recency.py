"""Real-time recency: a read of sources first waits until all is in that their upstreams held when it began.

Upstream of every source below what is read is asked how far it goes. The read is then at a time at which all of that is
in: everything that was committed upstream before the statement came is seen, however it is isolated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from everview.adapter.catalog.items import Source
from everview.adapter.catalog.state import Catalog
from everview.adapter.errors import OBJECT_NOT_READY, QUERY_CANCELED, sql_error
from everview.adapter.interrupts import Interrupts
from everview.compute.sql.errors import FEATURE_NOT_SUPPORTED, SqlError
from everview.compute.sql.references import quoted
from everview.errors import EverviewError
from everview.sources.contract import Arrival
from everview.storage.contract import GlobalId

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator


def wait_for_heads(
    coordinator: Coordinator, ids: Iterable[GlobalId], catalog: Catalog, interrupts: Interrupts, timeout_ms: int
) -> int:
    """Wait until all is in that upstreams hold now; gives the earliest time at which it can be read. 0 is no limit."""
    found: dict[GlobalId, tuple[str, Arrival]] = {}
    for id in sorted({root for each in ids if each in catalog.items for root in catalog.roots(each)}):
        item = catalog.items[id]
        if isinstance(item, Source) and item.whole not in found:
            found[item.whole] = _arrival(coordinator, catalog, item)
    if not found:
        return 0
    waiting, times = dict(found), dict.fromkeys(found, 0)

    def arrived() -> bool:
        for whole, (_, arrival) in list(waiting.items()):
            time = arrival.time()
            if time is not None:
                times[whole] = time
                del waiting[whole]
        return not waiting

    try:
        interrupts.wait(arrived, timeout_ms / 1000 if timeout_ms else None)
    except EverviewError as error:
        raise sql_error(error) from error
    if waiting:
        name, arrival = min(waiting.values(), key=lambda each: each[0])
        raise SqlError(
            QUERY_CANCELED,
            f'canceling statement due to real-time recency timeout: source "{name}" is not up to date',
            detail=arrival.missing(),
            hint="raise real_time_recency_timeout, or read without it: SET real_time_recency = off",
        )
    return max(times.values())


def _arrival(coordinator: Coordinator, catalog: Catalog, item: Source) -> tuple[str, Arrival]:
    whole = catalog.items[item.whole]
    if isinstance(whole, Source) and whole.paused:
        hint = f"ALTER SOURCE {quoted(whole.name)} RESUME, or SET real_time_recency = off"
        raise SqlError(OBJECT_NOT_READY, f'source "{whole.name}" is paused, so it cannot become up to date', hint=hint)
    arrival = coordinator.arrival(whole.id)
    if arrival is None:
        raise SqlError(
            FEATURE_NOT_SUPPORTED,
            f'real-time recency of source "{whole.name}" is not supported',
            detail="nothing upstream of it can be asked how far it goes",
            hint="SET real_time_recency = off",
        )
    return whole.name, arrival
