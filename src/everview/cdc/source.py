"""A source: a change stream, wherever it comes from, kept as a shard, each of its times exactly once.

A poll reads what is new, and commits in one atomic step the updates at the times that closed, how far the stream is
read, and which files or offsets are spent. What is open is not saved: it is read again after a restart, for it is still
where it was read first. So restarts are exact wherever they happen, and what is remembered durably is small.

The shard has the times of the stream. Or, where every poll is given a time of the local timeline, what has closed since
the last poll becomes visible there at that time, all at once, and the shard goes along with local time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.cdc.codec.contract import Bad, Partial
from everview.cdc.contract import Frontier, Progress, Stall, Update, Updates
from everview.cdc.errors import InvalidUse
from everview.cdc.files import FolderInlet, Inlet, Piece
from everview.cdc.reader import Reader
from everview.cdc.rows import Row, table_of
from everview.cdc.schema import StreamSchema
from everview.cdc.times import bound_of
from everview.storage.contract import Create, GlobalId, Put, ReadCapability, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.shard import WRITE
from everview.storage.stage import Staged
from everview.timely.antichain import Antichain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_UPDATES = 500_000  # a poll ends, with more to come, when it has so many closed updates
POLL_BYTES = 256 << 20
BULK_BYTES = 128 << 20  # from here on Spark reads files that are new, where there is one
BAD_KEPT = 100
BAD_BYTES_KEPT = 4096
FORGOTTEN_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class BadRecord:
    """Bytes of a stream that are no message: where they are, what they start with, and what is wrong with them."""

    piece: str
    position: int
    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Where a source stands."""

    name: str
    id: GlobalId
    frontier: Frontier
    covered: Frontier
    open_times: int
    open_updates: int
    statements_waiting: int
    updates_total: int
    bad_records: int
    partial: tuple[str, ...]
    bad: tuple[BadRecord, ...]
    stalls: tuple[Stall, ...]


def _key(name: str) -> str:
    return f"cdc/source/{name}"


def _spent_key(name: str, piece: str = "") -> str:
    return f"cdc/spent/{name}/{piece}"


def entry(name: str, id: GlobalId, token: str) -> Put:
    """What makes a source of a collection that is there, whose writer has this token: for a commit of the caller's."""
    state = {"id": id, "token": token, "frontier": 0, "updates": 0}
    return Put(_key(name), json.dumps(state).encode())


def forget(environment: Environment, name: str) -> None:
    """Remove what is remembered of a source that was dropped, and with it what it has spent, bit by bit."""
    keys = [_key(name), *environment.scan(_spent_key(name))]
    for at in range(0, len(keys), FORGOTTEN_AT_ONCE):
        environment.commit(*(Put(key, None) for key in keys[at : at + FORGOTTEN_AT_ONCE]))


def known(environment: Environment) -> list[str]:
    """The names of all sources that are remembered."""
    return [key.removeprefix(_key("")) for key in environment.scan(_key(""))]


class Source:
    """A stream that is being read into a shard; made by `create` or, when it is there already, by `resume`."""

    def __init__(
        self,
        environment: Environment,
        name: str,
        inlet: Inlet,
        schema: StreamSchema,
        *,
        session: SparkSession | None = None,
        bulk_bytes: int = BULK_BYTES,
    ) -> None:
        if schema.shape != 0:
            raise InvalidUse(
                f"source {name} has partially ordered times", detail="a collection's times are totally ordered"
            )
        self._environment, self.name, self._inlet, self._schema = environment, name, inlet, schema
        self._session, self._bulk_bytes = session, bulk_bytes
        self._stale = False
        self._load()

    @classmethod
    def create(
        cls,
        environment: Environment,
        name: str,
        id: GlobalId,
        inlet: Inlet,
        schema: StreamSchema,
        *,
        at: int = 0,
        session: SparkSession | None = None,
        bulk_bytes: int = BULK_BYTES,
    ) -> tuple[Source, ReadCapability]:
        """Bind `id` to a new collection and let it follow the stream from its beginning.

        Gives the source and a capability to read the collection. Without polls at local times, `at` must be 0.
        """
        if environment.get(_key(name)) is not None:
            raise InvalidUse(f"source {name} exists already", hint="resume it")
        # The token is not known yet, but whose it is: the one that the new collection's writer has.
        state = {"id": id, "token": None, "frontier": 0, "updates": 0}
        created = environment.commit(Create(id, schema.data, at=at), Put(_key(name), json.dumps(state).encode()))
        source = cls(environment, name, inlet, schema, session=session, bulk_bytes=bulk_bytes)
        return source, created[0][0]

    @classmethod
    def resume(
        cls,
        environment: Environment,
        name: str,
        inlet: Inlet,
        schema: StreamSchema,
        *,
        session: SparkSession | None = None,
        bulk_bytes: int = BULK_BYTES,
    ) -> Source:
        """The source as its last commit left it."""
        return cls(environment, name, inlet, schema, session=session, bulk_bytes=bulk_bytes)

    def _load(self) -> None:
        saved = self._environment.get(_key(self.name))
        if saved is None:
            raise InvalidUse(f"there is no source {self.name}", hint="create it")
        state = json.loads(saved)
        self.id: GlobalId = state["id"]
        token = state["token"] or self._first_writer()
        writer = self._environment.present(self.id, token)
        assert isinstance(writer, WriteCapability)
        self._writer = writer
        self._frontier: int | None = state["frontier"]
        self._updates_total: int = state["updates"]
        self._reader: Reader[Row] = Reader(self._reported)
        self._partial: set[str] = set()
        self._bad: dict[tuple[str, int], BadRecord] = {}
        self._bad_total = 0
        self._bulk_seen: set[tuple[str, int]] = set()
        prefix = _spent_key(self.name)
        spent = self._environment.scan(prefix)
        self._inlet.restore({key.removeprefix(prefix): value for key, value in spent.items()})
        self._stale = False

    def _first_writer(self) -> str:
        held = self._environment.shard(self.id).held
        return next(token for token, each in held.items() if each.kind == WRITE)

    @property
    def _reported(self) -> Frontier:
        return Antichain() if self._frontier is None else Antichain(self._frontier)

    @property
    def status(self) -> SourceStatus:
        """Where it stands: for system relations."""
        reader = self._reader
        return SourceStatus(
            name=self.name,
            id=self.id,
            frontier=self._reported,
            covered=reader.covered,
            open_times=reader.open_times,
            open_updates=reader.open_updates,
            statements_waiting=reader.statements_waiting,
            updates_total=self._updates_total,
            bad_records=self._bad_total,
            partial=tuple(sorted(self._partial)),
            bad=tuple(self._bad.values()),
            stalls=tuple(reader.stalls()),
        )

    def use(self, session: SparkSession | None) -> None:
        """Let Spark read large piles of files from now on, or nobody but this process."""
        self._session = session

    def close(self) -> None:
        """Let go of where the stream is read from."""
        self._inlet.close()

    def poll(self, at: int | None = None) -> bool:
        """Read what is new and commit what it closes; gives whether there may be more right now.

        With `at`, a time of the local timeline not before the shard's upper, all that closes becomes visible at that
        time. A failure leaves the shard as it was or with all of the commit; the next poll goes on from what is stored.
        """
        if self._stale:
            self._load()
        self._stale = True  # until this poll has ended well
        more = self._poll_bulk(at) if self._bulk_due() else self._poll(at)
        self._stale = False
        return more

    def advance(self, at: int) -> None:
        """Let local time go on over `at` without looking for anything new."""
        if self._stale:
            self._load()
        self._stale = True
        self._commit(None, self._reported, 0, at)
        self._stale = False

    def _poll(self, at: int | None) -> bool:
        tables: list[pa.Table] = []
        rows = size = 0
        closed: list[Update[Row]] = []
        for piece in self._inlet.pieces():
            for updates in self._read(piece):
                closed += updates
                rows += len(updates)
                if len(closed) >= POLL_UPDATES:
                    # As Arrow, updates take a fraction of the memory.
                    tables.append(self._table(closed, at))
                    closed = []
            self._inlet.finish(piece)
            size += piece.size_bytes
            if rows >= POLL_UPDATES or size >= POLL_BYTES:
                break
        if closed:
            tables.append(self._table(closed, at))
        self._commit(pa.concat_tables(tables) if tables else None, self._reader.frontier, rows, at)
        return rows >= POLL_UPDATES or size >= POLL_BYTES

    def _read(self, piece: Piece) -> Iterator[list[Update[Row]]]:
        """What a piece closes."""
        self._partial.discard(piece.name)
        for item in piece.items:
            match item:
                case Bad():
                    self._note_bad(piece, item)
                    continue
                case Partial():
                    piece.flawed = True
                    self._partial.add(piece.name)
                    continue
                case Updates():
                    times = [time for _, time, _ in item.updates if isinstance(time, int)]
                    _need(piece, max(times, default=-1) + 1)
                case Progress():
                    _need(piece, bound_of(item.upper))
            result = self._reader.push(item)
            if result is not None and result.updates:
                yield result.updates

    def _note_bad(self, piece: Piece, bad: Bad) -> None:
        piece.flawed = True
        place = (piece.name, bad.position)
        if place in self._bad:
            return
        self._bad_total += 1
        if len(self._bad) < BAD_KEPT:
            self._bad[place] = BadRecord(piece.name, bad.position, bad.raw[:BAD_BYTES_KEPT], bad.reason)

    def _table(self, updates: list[Update[Row]], at: int | None) -> pa.Table:
        if at is not None:
            updates = [(row, at, diff) for row, _, diff in updates]
        table = table_of(updates, self._schema.data)
        # The collection's columns may have other names than the stream's; their order is the same.
        return table.rename_columns([*table.column_names[:2], *self._environment.shard(self.id).spec.schema.names])

    # Many files at once

    def _bulk_due(self) -> bool:
        if self._session is None or not isinstance(self._inlet, FolderInlet):
            return False
        waiting = self._inlet.waiting()
        fresh = sum(info.size_bytes for info in waiting if (info.key, info.size_bytes) not in self._bulk_seen)
        return fresh >= self._bulk_bytes

    def _poll_bulk(self, at: int | None) -> bool:
        """Read all files that are not spent on Spark; those with anything open are then read again as ever."""
        from everview.cdc.spark.reader import SparkReader
        from everview.cdc.spark.staging import stage

        assert self._session is not None and isinstance(self._inlet, FolderInlet)
        files = self._inlet.unspent()
        reader = SparkReader(self._session, self._schema, self._inlet.folder)
        pile = reader.read([info.key for info in files], self._reported)
        try:
            staged = stage(self._environment, self.id, pile, self._schema, at)
            for info, needed in zip(files, pile.may_be_open([info.key for info in files]), strict=True):
                self._inlet.take(info, needed)
                self._bulk_seen.add((info.key, info.size_bytes))
            self._commit(staged, pile.frontier, pile.closed_updates, at)
        finally:
            pile.close()
        self._reader = Reader(self._reported)
        return True

    def _commit(self, updates: pa.Table | Staged | None, frontier: Frontier, rows: int, at: int | None) -> None:
        """Make visible what closed, and remember how far the stream is read, in one atomic step."""
        reported, total = bound_of(frontier), self._updates_total + rows
        to: Antichain[int] = Antichain(at + 1) if at is not None else frontier  # type: ignore[assignment]
        changes = self._inlet.spend(reported)
        moves = to != self._writer.frontier
        if not moves and not changes and reported == self._frontier:
            return
        state = {"id": self.id, "token": self._writer.token, "frontier": reported, "updates": total}
        commands: list[UpdateAndDowngrade | Put] = []
        if moves:
            commands.append(UpdateAndDowngrade(self._writer, updates, to))
        commands.append(Put(_key(self.name), json.dumps(state).encode()))
        commands += [Put(_spent_key(self.name, piece), value) for piece, value in changes.items()]
        results = self._environment.commit(*commands)
        if moves:
            self._writer = results[0]
        self._frontier, self._updates_total = reported, total


def _need(piece: Piece, until: int | None) -> None:
    """The piece is needed until the frontier has reached that; None stands for the empty frontier."""
    if until is None or piece.needed_until is None:
        piece.needed_until = None
    else:
        piece.needed_until = max(piece.needed_until, until)
