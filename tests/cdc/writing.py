"""A writer of streams for tests: changes as they happen in, statements that will stay true out.

Changes are added up per `(data, time)` while their time is open. When the frontier passes a time its updates are final:
they are stated once, and a progress statement counts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from everview.cdc.contract import Frontier, Message, Update, Updates
from everview.cdc.errors import InvalidUse, TooMuchOpen
from everview.cdc.reader import START
from everview.cdc.sink import statements
from everview.cdc.times import shape_of, time_set
from everview.timely.lattice import Time

D = TypeVar("D")

MESSAGE_UPDATES = 1000
OPEN_UPDATES_MAX = 20_000_000


class Writer(Generic[D]):
    """Writes one history from `start` on; another writer of the same history may be at work anywhere else."""

    def __init__(
        self,
        start: Frontier = START,
        *,
        message_updates: int = MESSAGE_UPDATES,
        open_updates_max: int = OPEN_UPDATES_MAX,
    ) -> None:
        self.frontier = start
        self._message_updates = message_updates
        self._open_updates_max = open_updates_max
        self._open: dict[Time, dict[D, int]] = {}
        self._times = time_set(shape_of(start.elements[0]) if start.elements else 0)
        self.open_updates = 0

    def push(self, updates: Iterable[Update[D]]) -> None:
        """Changes at times beyond the frontier; several of the same data at the same time add up."""
        for data, time, diff in updates:
            rows = self._open.get(time)
            if rows is None:
                if not self.frontier.less_equal(time):
                    detail = f"the writer is at {self.frontier}"
                    raise InvalidUse(f"changes at time {time} come too late", detail=detail)
                rows = self._open[time] = {}
                self._times.add(time)
            before = len(rows)
            total = rows.get(data, 0) + diff
            if total:
                rows[data] = total
            else:
                rows.pop(data, None)
            self.open_updates += len(rows) - before
            if self.open_updates > self._open_updates_max:
                hint = "advance the frontier more often"
                raise TooMuchOpen(f"more than {self._open_updates_max} updates wait for their times to end", hint=hint)

    def advance(self, to: Frontier) -> list[Message[D]]:
        """Times not beyond `to` will see no more changes: what there is to say about them."""
        if not self.frontier <= to:
            raise InvalidUse(f"a writer at {self.frontier} cannot go back to {to}")
        if to == self.frontier:
            return []
        final: list[Update[D]] = []
        counts: list[tuple[Time, int]] = []
        for time in self._times.take_before(to):
            rows = self._open.pop(time)
            final += [(data, time, diff) for data, diff in rows.items()]
            if rows:
                counts.append((time, len(rows)))
        self.open_updates -= len(final)
        size = self._message_updates
        messages: list[Message[D]] = [Updates(final[at : at + size]) for at in range(0, len(final), size)]
        messages += statements(self.frontier, to, counts)
        self.frontier = to
        return messages
