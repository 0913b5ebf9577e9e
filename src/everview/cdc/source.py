"""A source: a change stream, wherever it comes from, kept as a shard, each of its times exactly once.

A poll reads what is new, and commits in one atomic step the updates at the times that closed, how far the stream is
read, and which files or offsets are spent. What is open is not saved: it is read again after a restart, for it is still
where it was read first. So restarts are exact wherever they happen, and what is remembered durably is small.

What a stream says may be complete and still impossible: a row that is taken away and was never there. Such a time is
held open, with all that are beyond it. If a file with anything open is changed or removed, all that is open is read
again, so that a repair takes effect. A repair of times that were closed before takes effect by `reset`: all of the
stream is read again, and the difference to what is there becomes visible in one step.

The shard has the times of the stream. Or, where every poll is given a time of the local timeline, what has closed since
the last poll becomes visible there at that time, all at once, and the shard goes along with local time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.cdc.codec.contract import Bad, Partial
from everview.cdc.compaction import read_base
from everview.cdc.contract import Frontier, Progress, Stall, Update, Updates
from everview.cdc.errors import CdcError, InvalidUse
from everview.cdc.files import FolderInlet, Inlet, Piece
from everview.cdc.multiplicity import COUNT_MAX, Offence, Sums, first_offence
from everview.cdc.reader import Reader
from everview.cdc.rows import Row, arrays_of, rows_of, table_of, updates_of
from everview.cdc.schema import StreamSchema
from everview.cdc.scratch import Scratch
from everview.cdc.times import bound_of
from everview.compute.cancel import in_background
from everview.storage.contract import Create, GlobalId, Put, ReadCapability, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable
from everview.storage.shard import FOREVER, WRITE
from everview.storage.staging import Staged
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME, int_column, with_column
from everview.timely.hashing import I64

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_UPDATES = 500_000  # a poll ends, with more to come, when it has so many closed updates
POLL_BYTES = 256 << 20
SETTLE_UPDATES = 200_000  # so many are taken in before any time is closed
BULK_BYTES = 128 << 20  # from here on Spark reads files that are new, where there is one
BAD_KEPT = 100
BAD_BYTES_KEPT = 4096
FORGOTTEN_AT_ONCE = 1_000
REBUILD_IDLE_POLLS = 20  # of a topic that gives nothing more, before what was read is taken for all


@dataclass(frozen=True, slots=True)
class BadRecord:
    """Bytes of a stream that are not a message: their place, their beginning, and what is wrong with them."""

    piece: str
    position: int
    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class SourceStatus:
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
    """The command that turns a collection into a source, for a commit of the caller's. The token is its writer's."""
    state = {"id": id, "token": token, "frontier": 0, "updates": 0}
    return Put(_key(name), json.dumps(state).encode())


def forget(environment: Environment, name: str) -> None:
    """Remove all notes of a dropped source, a bounded number in each commit."""
    keys = [_key(name), *environment.keys(_spent_key(name))]
    for at in range(0, len(keys), FORGOTTEN_AT_ONCE):
        environment.commit(*(Put(key, None) for key in keys[at : at + FORGOTTEN_AT_ONCE]))


def known(environment: Environment) -> list[str]:
    return [key.removeprefix(_key("")) for key in environment.keys(_key(""))]


class Source:
    """A stream that is being read into a shard; made by `create`; one that is there already goes on."""

    def __init__(
        self,
        environment: Environment,
        name: str,
        inlet: Inlet,
        schema: StreamSchema,
        *,
        session: SparkSession | None = None,
        bulk_bytes: int = BULK_BYTES,
        every_time: bool = False,
    ) -> None:
        """The source as its last commit left it.

        With `every_time` it has the stream's times, and its contents are the stream's at each of them: it takes no
        contents over that stand for a history which it has not read.
        """
        if schema.shape != 0:
            raise InvalidUse(
                f"source {name} has partially ordered times", detail="a collection's times are totally ordered"
            )
        self._environment, self.name, self._inlet, self._schema = environment, name, inlet, schema
        self._session, self._bulk_bytes, self._every_time = session, bulk_bytes, every_time
        self._stale = False
        self._hold: Offence | None = None
        self._scratch: Scratch | None = None  # what is put together of the stream before it becomes visible
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

    def _load(self) -> None:
        saved = self._environment.get(_key(self.name))
        if saved is None:
            raise InvalidUse(f"there is no source {self.name}", hint="create it")
        state = json.loads(saved)
        self.id: GlobalId = state["id"]
        held = self._environment.shard(self.id).held
        token = state["token"] or next(token for token, each in held.items() if each.kind == WRITE)
        writer = self._environment.present(self.id, token)
        assert isinstance(writer, WriteCapability)
        self._writer = writer
        self._frontier: int | None = state["frontier"]
        self._updates_total: int = state["updates"]
        self._sums: Sums = (state.get("added", state["updates"]), state.get("removed", 0))
        self._rebuild: int | None = state.get("rebuild")  # after a reset: how far it had been read before
        self._drop_scratch()
        self._idle = 0
        self._reader = self._new_reader()
        self._unsettled = 0
        self._partial: set[str] = set()
        self._bad: dict[str, list[BadRecord]] = {}
        self._bad_numbers: Counter[str] = Counter()
        self._bulk_seen: set[tuple[str, int]] = set()
        prefix = _spent_key(self.name)
        spent = self._environment.scan(prefix)
        self._inlet.restore({key.removeprefix(prefix): value for key, value in spent.items()})
        self._stale = False

    def _new_reader(self, start: Frontier | None = None) -> Reader[Row]:
        reader: Reader[Row] = Reader(self._reported if start is None else start)
        if self._hold is not None:
            reader.hold(self._hold.time, self._hold.reason, self._hold.detail)
        return reader

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
            open_times=reader.tracker.open_times,
            open_updates=reader.open_updates,
            statements_waiting=reader.tracker.statements_waiting,
            updates_total=self._updates_total,
            bad_records=self._bad_numbers.total(),
            partial=tuple(sorted(self._partial)),
            bad=tuple(bad for kept in self._bad.values() for bad in kept)[:BAD_KEPT],
            stalls=tuple(reader.stalls()),
        )

    def use(self, session: SparkSession | None) -> None:
        """Let Spark read large piles of files from now on; None leaves them to this process."""
        self._session = session

    def close(self) -> None:
        self._inlet.close()

    def poll(self, at: int | None = None) -> bool:
        """Read what is new and commit what it closes; gives whether there may be more right now.

        With `at`, a time of the local timeline not before the shard's upper, all that closes becomes visible at that
        time. A failure leaves the shard as it was or with all of the commit; the next poll goes on from what is stored.
        """
        if self._stale:
            self._load()
        self._stale = True  # until this poll has ended well
        if self._inlet.disturbed():
            self._hold = None
            self._load()
            self._stale = True
        base = self._inlet.base(self._frontier)
        if self._rebuild is not None:
            more = self._poll_rebuild(at)
        elif base is not None:
            more = self._poll_base(*base, at)
        else:
            more = self._poll_bulk(at) if self._bulk_due() else self._poll(at)
        self._stale = False
        return more

    def advance(self, at: int) -> None:
        """Advance the shard to local time `at` without looking for new files."""
        if self._stale:
            self._load()
        self._stale = True
        self._commit(None, self._reported, 0, at)
        self._stale = False

    def reset(self) -> None:
        """Let the next polls read the stream from its beginning; when all is read, all of it becomes visible at once.

        For a source at local times.
        """
        if self._stale:
            self._load()
        spent = list(self._environment.scan(_spent_key(self.name)))
        for place in range(0, len(spent), FORGOTTEN_AT_ONCE):  # before all else: what is not spent can be read twice
            self._environment.commit(*(Put(key, None) for key in spent[place : place + FORGOTTEN_AT_ONCE]))
        before = FOREVER if self._frontier is None else self._frontier
        state = {"id": self.id, "token": self._writer.token, "frontier": 0, "updates": self._updates_total}
        state |= {"added": 0, "removed": 0, "rebuild": before if self._rebuild is None else self._rebuild}
        self._environment.commit(Put(_key(self.name), json.dumps(state).encode()))
        self._hold = None
        self._load()

    def _poll_rebuild(self, at: int | None) -> bool:
        if at is None:
            raise InvalidUse(f"source {self.name} has the times of its stream, and cannot be reset")
        assert self._rebuild is not None
        base = self._inlet.base(bound_of(self._reader.frontier))
        if base is not None:
            time, piece = base
            there = self._take_base(time, piece) is not None
            self._commit(None, self._reported, 0, at)
            if there:
                self._reader = self._new_reader(Antichain(time + 1))
                self._inlet.restore({})
            return there
        table, _, full = self._collected()
        if table is not None and self._impossible(table):
            return True
        scratch = self._scratch = self._scratch or Scratch(self._environment, self.id)
        if table is not None:
            scratch.add(table)
        self._idle = 0 if table is not None else self._idle + 1
        behind = not self._reader.frontier.empty and self._reader.frontier.only < self._rebuild  # type: ignore[operator]
        if full or (behind and not isinstance(self._inlet, FolderInlet) and self._idle < REBUILD_IDLE_POLLS):
            self._commit(None, self._reported, 0, at)
            return full
        self._rebuild = None
        self._commit_contents(scratch, at, self._reader.frontier, 0, at)
        return False

    def _commit_contents(self, scratch: Scratch, time: int, frontier: Frontier, rows: int, at: int | None) -> None:
        """Let the collection hold the contents of the scratch collection from a time on."""
        scratch.subtract(self.id)
        changes, added, removed = scratch.staged(self.id, time)
        self._commit(changes, frontier, rows, at, (added, removed))
        self._drop_scratch()

    def _drop_scratch(self) -> None:
        scratch, self._scratch = self._scratch, None
        if scratch is not None:
            scratch.drop()

    def _take_base(self, time: int, piece: Piece) -> int | None:
        """Read the contents of a base file into the scratch collection. Gives how many rows; None if it is gone."""
        self._drop_scratch()
        scratch = self._scratch = Scratch(self._environment, self.id)
        number = 0
        waiting: list[Update[Row]] = []

        def take(updates: Sequence[Update[Row]]) -> None:
            nonlocal number
            number += len(updates)
            waiting.extend(updates)
            if len(waiting) >= SETTLE_UPDATES:
                scratch.add(self._table(waiting))
                waiting.clear()

        there = read_base(piece.items, time, piece.name, take)
        if waiting:
            scratch.add(self._table(waiting))
        if not there:
            self._drop_scratch()
        return number if there else None

    def _poll(self, at: int | None) -> bool:
        table, rows, full = self._collected()
        if table is not None and self._impossible(table):
            return True
        if table is not None and at is not None:
            table = with_column(table, TIME, np.full(table.num_rows, at))
        self._commit(table, self._reader.frontier, rows, at)
        return full

    def _collected(self) -> tuple[pa.Table | None, int, bool]:
        """Read what is new. Gives the updates that close, their number, and whether there may be more right now."""
        tables: list[pa.Table] = []
        rows = size = 0
        # Nothing is closed before much is read: what contradicts it may be behind it.
        self._unsettled, full = 0, False
        for piece in self._inlet.pieces():
            for updates in self._read(piece):
                rows += len(updates)
                tables.append(self._table(updates))  # as Arrow, updates take a fraction of the memory
            self._inlet.finish(piece)
            size += piece.size_bytes
            full = rows + self._unsettled >= POLL_UPDATES or size >= POLL_BYTES
            if full:
                break
        for updates in self._settled():
            rows += len(updates)
            tables.append(self._table(updates))
        return pa.concat_tables(tables) if tables else None, rows, full

    def _read(self, piece: Piece) -> Iterator[list[Update[Row]]]:
        self._partial.discard(piece.name)
        self._bad.pop(piece.name, None)
        self._bad_numbers.pop(piece.name, None)
        for item in piece.items:
            match item:
                case Bad(position, raw, reason):
                    piece.flawed = True
                    self._bad_numbers[piece.name] += 1
                    kept = self._bad.setdefault(piece.name, [])
                    if len(kept) < BAD_KEPT:
                        kept.append(BadRecord(piece.name, position, raw[:BAD_BYTES_KEPT], reason))
                    continue
                case Partial():
                    piece.flawed = True
                    self._partial.add(piece.name)
                    continue
                case Updates():
                    self._unsettled += len(item.updates)
                    times = [time for _, time, _ in item.updates if isinstance(time, int)]
                    _need(piece, max(times, default=-1) + 1)
                case Progress():
                    _need(piece, bound_of(item.upper))
            self._reader.take(item)
            if self._unsettled >= SETTLE_UPDATES:
                yield from self._settled()

    def _settled(self) -> Iterator[list[Update[Row]]]:
        self._unsettled = 0
        result = self._reader.settle()
        if result is not None and result.updates:
            yield result.updates

    def _table(self, updates: list[Update[Row]]) -> pa.Table:
        table = table_of(updates, self._schema.data)
        # The collection's columns may have other names than the stream's; their order is the same.
        return table.rename_columns([*table.column_names[:2], *self._environment.shard(self.id).spec.schema.names])

    # What cannot be

    def _impossible(self, updates: pa.Table) -> bool:
        """Whether updates, at times of the stream, make a row occur fewer than zero or too many times.

        If so, the first time at which that happens is held open, and what is open is read again.
        """
        diffs = int_column(updates, DIFF)
        if not len(diffs) or (int(diffs.min()) > 0 and max(_added(self._sums, diffs)) < COUNT_MAX):
            return False
        offence = first_offence(updates_of(updates), self._occurrences, self._sums)
        if offence is None:
            return False
        self._hold = offence
        self._load()
        return True

    def _occurrences(self, rows: Sequence[Row]) -> Mapping[Row, int]:
        """How often rows occur in the collection; after a reset, in the stream as far as it is read."""
        if self._rebuild is not None and self._scratch is None:
            return {}
        id = self.id if self._rebuild is None or self._scratch is None else self._scratch.id
        table = pa.table(arrays_of(rows, self._schema.data), names=self._environment.shard(id).spec.schema.names)
        try:
            hashes = self._environment.key_hashes(id, table)
            with self._environment.everything(id, hashes) as selection:
                found = selection.contents()
        except NotReadable:
            return {}  # nobody can read it
        return dict(zip(rows_of(found.drop_columns([DIFF])), found.column(DIFF).to_pylist(), strict=True))

    # Contents that stand for a history

    def _poll_base(self, time: int, piece: Piece, at: int | None) -> bool:
        """Take over the contents at a time, whatever was read before, and go on after it."""
        if self._every_time and time > self._writer.frontier.only:
            raise CdcError(
                f"the stream has forgotten what happened before {time}, and the source has read it before"
                f" {self._writer.frontier.only} only",
                hint="drop the source and create it again: it then begins where the stream does",
            )
        total = self._take_base(time, piece)
        if total is None:
            return False  # a later one has taken its place
        assert self._scratch is not None
        self._commit_contents(self._scratch, time if at is None else at, Antichain(time + 1), total, at)
        self._load()
        return True

    # Many files at once

    def _bulk_due(self) -> bool:
        if self._session is None or not isinstance(self._inlet, FolderInlet):
            return False
        waiting = self._inlet.waiting()
        fresh = sum(info.size_bytes for info in waiting if (info.key, info.size_bytes) not in self._bulk_seen)
        return fresh >= self._bulk_bytes

    def _poll_bulk(self, at: int | None) -> bool:
        """Read all files that are not spent on Spark. Files with open times are read again later."""
        from everview.compute.engine.spark.jobs import jobs_of_run

        assert self._session is not None
        with in_background(), jobs_of_run(self._session):  # a pile gives way to ticks
            return self._read_pile(self._session, at)

    def _read_pile(self, session: SparkSession, at: int | None) -> bool:
        from everview.cdc.spark.reader import SparkReader
        from everview.cdc.spark.staging import stage

        assert isinstance(self._inlet, FolderInlet)
        files = self._inlet.unspent()
        reader = SparkReader(session, self._schema, self._inlet.folder)
        hold = self._hold
        holds = {} if hold is None else {hold.time: (hold.reason, hold.detail)}
        pile = reader.read([info.key for info in files], self._reported, holds)
        try:
            if max(self._sums) + pile.weight_max >= COUNT_MAX:
                return self._poll(at)  # when exactly it is too much is not for Spark to say
            staged = stage(self._environment, self.id, pile, self._schema, at=at, refuses=self._impossible)
            if staged is None:
                return True
            for info, needed in zip(files, pile.may_be_open([info.key for info in files]), strict=True):
                self._inlet.take(info, needed)
                self._bulk_seen.add((info.key, info.size_bytes))
            self._commit(staged, pile.frontier, pile.closed_updates, at, (pile.weight_max, pile.weight_max))
        finally:
            pile.close()
        self._reader = self._new_reader()
        return True

    def _commit(
        self, updates: pa.Table | Staged | None, frontier: Frontier, rows: int, at: int | None, more: Sums = (0, 0)
    ) -> None:
        reported, total = bound_of(frontier), self._updates_total + rows
        sums = (self._sums[0] + more[0], self._sums[1] + more[1])
        if isinstance(updates, pa.Table):
            sums = _added(self._sums, int_column(updates, DIFF))
        to: Antichain[int] = Antichain(at + 1) if at is not None else frontier  # type: ignore[assignment]
        if at is None and to <= self._writer.frontier:  # a shard may begin where the stream has forgotten what was
            to = self._writer.frontier
        changes = self._inlet.spend(reported)
        moves = to != self._writer.frontier
        if not moves and not changes and reported == self._frontier:
            return
        state = {"id": self.id, "token": self._writer.token, "frontier": reported, "updates": total}
        state["added"], state["removed"] = sums
        if self._rebuild is not None:
            state["rebuild"] = self._rebuild
        commands: list[UpdateAndDowngrade | Put] = []
        if moves:
            commands.append(UpdateAndDowngrade(self._writer, updates, to))
        commands.append(Put(_key(self.name), json.dumps(state).encode()))
        commands += [Put(_spent_key(self.name, piece), value) for piece, value in changes.items()]
        results = self._environment.commit(*commands)
        if moves:
            self._writer = results[0]
        self._frontier, self._updates_total, self._sums = reported, total, sums


def _added(sums: Sums, diffs: I64) -> Sums:
    if not len(diffs):
        return sums
    if max(int(diffs.max()), -int(diffs.min())) * len(diffs) < COUNT_MAX:
        more = int(diffs[diffs > 0].sum())
        return sums[0] + more, sums[1] + more - int(diffs.sum())
    values = diffs.tolist()
    return sums[0] + sum(d for d in values if d > 0), sums[1] - sum(d for d in values if d < 0)


def _need(piece: Piece, until: int | None) -> None:
    if until is None or piece.needed_until is None:
        piece.needed_until = None
    else:
        piece.needed_until = max(piece.needed_until, until)
