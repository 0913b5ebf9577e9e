"""A sink: a shard's changes written down as a change stream, followed as far as the shard is complete.

A step writes the updates in `[next, upper)` and the progress statements that count them, and then commits `next =
upper` together with the downgrade of its read capability. A process that dies in between writes the same again, in
other pieces perhaps, which says nothing new: that is what the protocol is for. For the same reason several environments
that maintain the same view may write one stream, as long as they start at the same time or join what is there.

A stream keeps the columns that it began with. If the shard gets more, changes in those are none of the stream's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from everview.cdc.codec.contract import codec_for
from everview.cdc.contract import Frontier, Message, Progress, Updates
from everview.cdc.errors import InvalidUse
from everview.cdc.files import MESSAGE_UPDATES, Folder
from everview.cdc.reader import START
from everview.cdc.rows import Row, updates_of
from everview.cdc.schema import StreamSchema
from everview.cdc.times import bound_of
from everview.cdc.tracker import Tracker
from everview.cdc.writer import statements
from everview.storage.contract import Clone, Command, Downgrade, Drop, GlobalId, Put, ReadCapability
from everview.storage.environment import Environment
from everview.storage.reading import Selection
from everview.storage.shard import FOREVER, from_frontier, to_frontier
from everview.timely.antichain import Antichain
from everview.timely.consolidate import HASH

BULK_BYTES = 128 << 20  # from here on Spark writes, where there is one


class Outlet(Protocol):
    """Where messages go; when `write` returns they are durable."""

    def write(self, messages: Iterable[Message[Row]]) -> None: ...


# Writes a large selection, its times advanced to the second argument if any; gives how many updates are at each time.
BulkWriter = Callable[[Selection, int | None], dict[int, int]]


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """Where a sink stands: all before `frontier` is written, and `upper` is how far it could be."""

    name: str
    id: GlobalId
    frontier: Frontier
    upper: Frontier
    updates_total: int


def _key(name: str) -> str:
    return f"cdc/sink/{name}"


def covered_by(folder: Folder, schema: StreamSchema) -> Frontier:
    """How far the progress statements in a folder reach: where a writer that joins the stream goes on."""
    tracker = Tracker(START)
    for info in folder.files():
        codec = codec_for("." + info.key.rpartition(".")[2], schema)
        for item in folder.items(info.key, codec):
            if isinstance(item, Progress):
                tracker.hear(item)
    return tracker.covered


def held_token(environment: Environment, name: str) -> tuple[GlobalId, str] | None:
    """The collection that a sink reads, and the token of the capability by which it does."""
    saved = environment.get(_key(name))
    if saved is None:
        return None
    state = json.loads(saved)
    return state["id"], state["token"]


def let_go(environment: Environment, name: str) -> list[Command]:
    """The commands that drop a sink with what it holds; what it has written stays."""
    found = held_token(environment, name)
    if found is None:
        return []
    id, token = found
    held = [Drop(environment.present(id, token))] if token in environment.shard(id).held else []
    return [*held, Put(_key(name), None)]


class Sink:
    """A stream that is being written; made by `create` or, when it is there already, by `resume`."""

    def __init__(
        self,
        environment: Environment,
        name: str,
        outlet: Outlet,
        *,
        bulk: BulkWriter | None = None,
        bulk_bytes: int = BULK_BYTES,
    ) -> None:
        self._environment, self.name, self._outlet = environment, name, outlet
        self._bulk, self._bulk_bytes = bulk, bulk_bytes
        self._stale = False
        self._load()

    @classmethod
    def create(
        cls,
        environment: Environment,
        name: str,
        capability: ReadCapability,
        outlet: Outlet,
        *,
        start: int | None = None,
        joined: Frontier = START,
        columns: int | None = None,
        bulk: BulkWriter | None = None,
        bulk_bytes: int = BULK_BYTES,
        also: Sequence[Command] = (),
    ) -> Sink:
        """Write the contents at `start`, by default the capability's frontier, and from then on all changes.

        With `joined`, how far others have written the stream already, all changes from there on. The capability that is
        offered stays the caller's. `columns` is how many of the collection's it tells of, by default all of them.
        `also` are commands for the same durable step, such as the entry in a catalog.
        """
        if environment.get(_key(name)) is not None:
            raise InvalidUse(f"sink {name} exists already", hint="resume it")
        since = from_frontier(capability.frontier)
        joins = joined != START
        goes_on = bound_of(joined)
        if goes_on is None:
            raise InvalidUse(f"sink {name} cannot join a stream that has ended", hint="name another place")
        first = goes_on if joins else since if start is None else start
        hold = first - 1 if joins else first
        if hold < since:
            detail = f"the stream goes on at {first}, and changes of {capability.id} are known beyond {since}"
            raise InvalidUse(f"sink {name} would leave a gap", detail=detail, hint="start a stream of its own")
        (held,) = environment.commit(Clone(capability))
        width = len(environment.shard(held.id).spec.schema) if columns is None else columns
        state = {"id": held.id, "token": held.token, "next": first, "snapshot": not joins, "updates": 0}
        state["columns"] = width
        environment.commit(Downgrade(held, Antichain(hold)), Put(_key(name), json.dumps(state).encode()), *also)
        return cls(environment, name, outlet, bulk=bulk, bulk_bytes=bulk_bytes)

    @classmethod
    def resume(
        cls,
        environment: Environment,
        name: str,
        outlet: Outlet,
        *,
        bulk: BulkWriter | None = None,
        bulk_bytes: int = BULK_BYTES,
    ) -> Sink:
        """The sink as its last commit left it."""
        return cls(environment, name, outlet, bulk=bulk, bulk_bytes=bulk_bytes)

    def _load(self) -> None:
        saved = self._environment.get(_key(self.name))
        if saved is None:
            raise InvalidUse(f"there is no sink {self.name}", hint="create it")
        state = json.loads(saved)
        self.id: GlobalId = state["id"]
        self._token: str = state["token"]
        self._next: int = state["next"]
        self._snapshot: bool = state["snapshot"]
        self._updates_total: int = state["updates"]
        self._columns: int = state.get("columns") or self._environment.shard(self.id).spec.created
        self._stale = False

    @property
    def status(self) -> SinkStatus:
        """Where it stands: for system relations."""
        upper = self._environment.frontiers(self.id).upper
        written = START if self._snapshot else to_frontier(self._next)
        return SinkStatus(self.name, self.id, written, upper, self._updates_total)  # type: ignore[arg-type]

    def due(self) -> bool:
        """Whether there is anything to write beyond that time has passed."""
        upper = from_frontier(self._environment.frontiers(self.id).upper)
        if upper <= self._next:
            return False
        if self._snapshot or upper == FOREVER:
            return True
        with self._environment.changes(self.id, self._next, upper) as selection:
            return selection.rows_max > 0

    def step(self, until: int | None = None) -> bool:
        """Write all that is complete, or up to `until`; false if there was nothing to write."""
        if self._stale:
            self._load()
        upper = from_frontier(self._environment.frontiers(self.id).upper)
        upper = upper if until is None else min(upper, until)
        if upper <= self._next or self._next == FOREVER:
            return False
        self._stale = True  # until this step has ended well
        counts = self._write(upper)
        lower: Frontier = START if self._snapshot else Antichain(self._next)
        self._outlet.write(statements(lower, to_frontier(upper), counts.items()))  # type: ignore[arg-type]
        self._commit(upper, sum(counts.values()))
        self._stale = False
        return True

    def _write(self, upper: int) -> dict[int, int]:
        """Write the updates before `upper`; gives how many are at each time."""
        counts: Counter[int] = Counter()
        after = self._next
        if self._snapshot:
            with self._environment.contents(self.id, self._next) as selection:
                counts.update(self._write_selection(selection, self._next))
            after = self._next + 1
        if after < upper:
            with self._environment.changes(self.id, after, upper) as selection:
                counts.update(self._write_selection(selection, None))
        return counts

    def _write_selection(self, selection: Selection, advance_to: int | None) -> dict[int, int]:
        if self._bulk is not None and selection.bytes_max >= self._bulk_bytes:
            return self._bulk(selection, advance_to)
        counts: Counter[int] = Counter()
        columns = selection.spec.schema.names[: self._columns]

        def messages() -> Iterator[Message[Row]]:
            for chunk in selection.chunks(0 if advance_to is None else advance_to, columns):
                updates = updates_of(chunk.drop_columns([HASH]))
                updates.sort(key=lambda update: update[1])
                counts.update(time for _, time, _ in updates)  # type: ignore[misc]
                for at in range(0, len(updates), MESSAGE_UPDATES):
                    yield Updates(updates[at : at + MESSAGE_UPDATES])

        self._outlet.write(messages())
        return counts

    def _commit(self, upper: int, updates: int) -> None:
        total = self._updates_total + updates
        state = {"id": self.id, "token": self._token, "next": upper, "snapshot": False, "updates": total}
        state["columns"] = self._columns
        held = self._environment.present(self.id, self._token)
        done = Put(_key(self.name), json.dumps(state).encode())
        let_go: Command = Drop(held) if upper == FOREVER else Downgrade(held, Antichain(upper - 1))
        self._environment.commit(let_go, done)
        self._next, self._snapshot, self._updates_total = upper, False, total
