"""A sink: a shard's changes written down as a change stream, followed as far as the shard is complete.

A step writes the updates in `[next, upper)` and the progress statements that count them, and then commits `next =
upper` together with the downgrade of its read capability. A process that dies in between writes the same again, in
other pieces perhaps, which says nothing new: that is what the protocol is for. For the same reason several environments
that maintain the same view may write one stream, as long as they start at the same time or join what is there. One that
would contradict what others have written stops instead.

A stream keeps the columns that it began with. If the shard gets more, changes in those are none of the stream's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from everview.cdc.contract import Frontier, Message, Progress, Updates, in_messages
from everview.cdc.errors import InvalidUse
from everview.cdc.joining import Digest
from everview.cdc.reader import START
from everview.cdc.rows import Row, updates_of
from everview.cdc.times import bound_of, flatten
from everview.cdc.watch import BOTH_THE_SAME, Contradicted, Others, Standing, Watch
from everview.storage.contract import Clone, Command, Downgrade, Drop, GlobalId, Put, ReadCapability
from everview.storage.environment import Environment
from everview.storage.selection import Selection
from everview.storage.shard import FOREVER, from_frontier, to_frontier
from everview.storage.subscribe import following
from everview.timely.antichain import Antichain
from everview.timely.consolidate import HASH
from everview.timely.lattice import Time

BULK_BYTES = 128 << 20  # from here on Spark writes, where there is one
WRITERS_KEPT = 100
STATEMENT_COUNTS = 5000


class Outlet(Protocol):
    """Where messages go; when `write` returns they are durable."""

    writer: str  # is in all that it writes, and nobody else's, nor that of an earlier life

    def write(self, messages: Iterable[Message[Row]]) -> None: ...


# What others write to the same stream, and what they have written of it from where the sink stands.
OthersOf = Callable[[Standing], Others | None]

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


def statements(lower: Frontier, upper: Frontier, counts: Iterable[tuple[Time, int]]) -> list[Progress]:
    """Progress from `lower` to `upper` in statements of a modest size each, where times can be cut into intervals."""
    ordered = sorted(counts, key=lambda pair: flatten(pair[0]))
    if not all(isinstance(time, int) for time in (*lower, *upper)):
        return [Progress(lower, upper, tuple(ordered))]
    result = []
    for at in range(0, max(1, len(ordered)), STATEMENT_COUNTS):
        some = tuple(ordered[at : at + STATEMENT_COUNTS])
        rest = ordered[at + STATEMENT_COUNTS :][:1]
        until = Antichain(rest[0][0]) if rest else upper
        result.append(Progress(lower, until, some))
        lower = until
    return result


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
    """A stream that is being written; made by `create`; one that is there already goes on."""

    def __init__(
        self,
        environment: Environment,
        name: str,
        outlet: Outlet,
        *,
        bulk: BulkWriter | None = None,
        bulk_bytes: int = BULK_BYTES,
        others: OthersOf | None = None,
    ) -> None:
        """The sink as its last commit left it."""
        self._environment, self.name, self._outlet = environment, name, outlet
        self._bulk, self._bulk_bytes = bulk, bulk_bytes
        self._others = others
        self._watch: Watch | None = None
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
        columns: Sequence[int] | None = None,
        bulk: BulkWriter | None = None,
        bulk_bytes: int = BULK_BYTES,
        also: Sequence[Command] = (),
    ) -> Sink:
        """Write the contents at `start`, by default the capability's frontier, and from then on all changes.

        With `joined`, how far others have written the stream already, all changes from there on. The capability that is
        offered stays the caller's. `columns` are the places of the columns that it tells of, by default of all.
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
        places = list(range(len(environment.shard(held.id).spec.schema)) if columns is None else columns)
        state = {"id": held.id, "token": held.token, "next": first, "snapshot": not joins, "updates": 0}
        state |= {"columns": places, "shared": joins, "joining": joins, "writers": [], "place": {}}
        environment.commit(Downgrade(held, Antichain(hold)), Put(_key(name), json.dumps(state).encode()), *also)
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
        columns: int | list[int] = state.get("columns") or self._environment.shard(self.id).spec.created
        self._columns = columns if isinstance(columns, list) else list(range(columns))  # once it was how many
        self._shared: bool = state.get("shared", False)
        self._joining: bool = state.get("joining", False)  # whether its contents are not compared yet
        self._writers: list[str] | None = state.get("writers")  # None, and no place, in earlier versions
        self._place: dict[str, int] | None = state.get("place")
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        standing = Standing(self._next, self._shared, self._writers, self._place)
        others = None if self._others is None else self._others(standing)
        self._watch = None if others is None else Watch(others, self._next)
        self._stale = False

    @property
    def status(self) -> SinkStatus:
        """Where it stands: for system relations."""
        upper = self._environment.frontiers(self.id).upper
        written = START if self._snapshot else to_frontier(self._next)
        return SinkStatus(self.name, self.id, written, upper, self._updates_total)  # type: ignore[arg-type]

    def due(self) -> bool:
        """Whether there are updates to write, not only progress."""
        upper = from_frontier(self._environment.frontiers(self.id).upper)
        if upper <= self._next:
            return False
        if self._snapshot or self._joining or upper == FOREVER:
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
        if self._joining and not self._has_joined(upper):
            return False
        self._stale = True  # until this step has ended well
        self._sign()
        if self._watch is not None:
            self._watch.look()
            self._watch.forget(self._next)
        checked = self._check(upper)
        counts = self._write(upper)
        stated = self._statements(upper, counts)
        if self._watch is not None and checked:
            self._watch.check(stated)
        self._outlet.write(stated)
        if self._watch is not None:
            self._watch.look()
            if not checked or self._watch.partial:
                self._check(upper)
        self._commit(upper, sum(counts.values()))
        self._stale = False
        return True

    def _has_joined(self, upper: int) -> bool:
        """Compare the contents with those of the stream that it goes on with. False if it is not that far yet."""
        if self._watch is None:
            return True  # nobody looks at what others write
        before, told = self._watch.contents(self._next)
        if before > upper:  # the stream has forgotten what was there before
            return False
        own = Digest()
        with self._environment.contents(self.id, before - 1) as selection:
            for message in self._updates(selection, before - 1):
                own.add(message.updates)
        if own != told:
            rows = f"{told.rows:,} rows, and the collection {own.rows:,}" + (" others" if own.rows == told.rows else "")
            raise Contradicted(
                "the stream tells of another collection",
                detail=f"at time {before - 1} the stream has {rows}",
                hint=BOTH_THE_SAME,
            )
        self._joining = False
        return True

    def _check(self, upper: int) -> bool:
        """Compare what is to be written with what others have written. False if there are no others."""
        if self._watch is None or not self._watch.shared:
            return False
        self._watch.check(self._messages(upper))
        return True

    def _statements(self, upper: int, counts: Mapping[int, int]) -> list[Progress]:
        lower: Frontier = START if self._snapshot else Antichain(self._next)
        return statements(lower, to_frontier(upper), counts.items())  # type: ignore[arg-type]

    def _messages(self, upper: int) -> Iterator[Message[Row]]:
        """What is to be written up to `upper`, whoever writes it."""
        counts: Counter[int] = Counter()
        for selection, advance_to in self._selections(upper):
            for message in self._updates(selection, advance_to):
                counts.update(time for _, time, _ in message.updates)  # type: ignore[misc]
                yield message
        yield from self._statements(upper, counts)

    def _selections(self, upper: int) -> Iterator[tuple[Selection, int | None]]:
        """What to write of the collection, and the time that snapshot rows are moved to."""
        return following(self._environment, self.id, self._next, upper, snapshot=self._snapshot)

    def _write(self, upper: int) -> dict[int, int]:
        """Write the updates before `upper`. Gives how many are at each time."""
        counts: Counter[int] = Counter()
        for selection, advance_to in self._selections(upper):
            counts.update(self._write_selection(selection, advance_to))
        return counts

    def _write_selection(self, selection: Selection, advance_to: int | None) -> dict[int, int]:
        if self._bulk is not None and selection.bytes_max >= self._bulk_bytes:
            return self._bulk(selection, advance_to)
        counts: Counter[int] = Counter()

        def messages() -> Iterator[Message[Row]]:
            for message in self._updates(selection, advance_to):
                counts.update(time for _, time, _ in message.updates)  # type: ignore[misc]
                yield message

        self._outlet.write(messages())
        return counts

    def _updates(self, selection: Selection, advance_to: int | None) -> Iterator[Updates[Row]]:
        columns = [selection.spec.schema.names[place] for place in self._columns]
        for chunk in selection.chunks(0 if advance_to is None else advance_to, columns):
            updates = updates_of(chunk.drop_columns([HASH]))
            updates.sort(key=lambda update: update[1])
            yield from in_messages(updates)

    def _sign(self) -> None:
        """Note this writer's name first: what the stream has under it is never taken for another's."""
        if self._writers is None or self._outlet.writer not in self._writers:
            self._writers = [*(self._writers or ()), self._outlet.writer][-WRITERS_KEPT:]
            self._environment.commit(self._put(self._next, self._snapshot, self._updates_total))

    def _commit(self, upper: int, updates: int) -> None:
        total = self._updates_total + updates
        if self._watch is not None:
            self._shared = self._shared or self._watch.shared
            self._place = self._watch.place(upper)
        held = self._environment.present(self.id, self._token)
        let_go: Command = Drop(held) if upper == FOREVER else Downgrade(held, Antichain(upper - 1))
        self._environment.commit(let_go, self._put(upper, False, total))
        self._next, self._snapshot, self._updates_total = upper, False, total

    def _put(self, upper: int, snapshot: bool, updates: int) -> Put:
        state = {"id": self.id, "token": self._token, "next": upper, "snapshot": snapshot, "updates": updates}
        state |= {"columns": self._columns, "shared": self._shared, "joining": self._joining}
        state |= {"writers": self._writers, "place": self._place}
        return Put(_key(self.name), json.dumps(state).encode())
