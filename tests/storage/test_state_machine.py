"""Random commands from several writers and readers, with faults, crashes and restarts, against the model.

Everything small is made tiny here (inline batches, row groups, fan-ins), so that short histories already go through
parts, merges and collection. Frontiers agree after every step, contents and changes at every readable time.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from everview.storage import compaction, merge, parts, staging
from everview.storage import selection as selection_module
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import (
    Acquire,
    AdvanceClock,
    AllocateId,
    Capability,
    Clone,
    Create,
    Downgrade,
    Drop,
    Extend,
    Follow,
    Progress,
    Put,
    ReadCapability,
    Renew,
    TakeId,
    UpdateAndDowngrade,
    Updates,
    WriteCapability,
)
from everview.storage.environment import Environment
from everview.storage.errors import (
    CapabilityExpired,
    CapabilityInvalid,
    Fenced,
    IdReused,
    Indeterminate,
    InvalidUsage,
    NotReadable,
    SchemaMismatch,
    StorageError,
    TimesOutOfRange,
    UnknownId,
    UpperMismatch,
)
from everview.storage.faults import Crash, armed
from everview.storage.retrying import Patience, RetryingBlob, RetryingConsensus
from everview.storage.shard import to_frontier
from everview.storage.subscribe import Subscription
from everview.timely.antichain import Antichain
from tests.storage.faulty import Fault, FaultyBlob, FaultyConsensus, random_faults
from tests.storage.model import FOREVER, Collection, Update, at

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])
# Columns that a collection may get later; a row of the model has all of them, NULL where the collection does not.
WIDEST = pa.schema([*SCHEMA, ("later", pa.int32()), ("last", pa.list_(pa.string()))])
TIME_LAST = 60
FAILPOINTS = ["part.written", "commit.before", "commit.after", "compaction.written", "gc.before_delete"]

times = st.integers(0, TIME_LAST)
words = st.sampled_from(["a", "b", None, "a long word that does not fit"])
columns = (st.integers(0, 3), words, st.sampled_from([None, 1]), st.sampled_from([None, (), ("a",)]))
steps = st.integers(0, 6)
leases = st.sampled_from([None, 50])
keys = st.sampled_from([None, ["n"], ["word"]])
indexes = st.integers(0, 99)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "INLINE_BYTES_MAX", 500)
    monkeypatch.setattr(compaction, "INLINE_BYTES_MAX", 500)
    # One thread at a time: faults and failpoints are then met in the same order whenever an example is run again.
    monkeypatch.setattr(staging, "_ROWS_PER_THREAD", 10**9)
    monkeypatch.setattr(selection_module, "_THREADS", 1)
    monkeypatch.setattr(selection_module, "PASS_BYTES", 400)
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", 2)
    monkeypatch.setattr(parts, "PART_ROWS_MAX", 6)
    monkeypatch.setattr(compaction, "SMALLEST_BYTES", 600)
    monkeypatch.setattr(compaction, "LEVEL_FACTOR", 2)
    monkeypatch.setattr(compaction, "SMALLEST_FAN_IN", 3)
    monkeypatch.setattr(compaction, "FAN_IN", 2)
    assert merge  # the merge itself has no limits to make smaller


def table(updates: list[Update], width: int = 2) -> pa.Table:
    """Of rows that have NULL behind the first `width` columns."""
    columns = {
        "_time": pa.array([t for _, t, _ in updates], pa.int64()),
        "_diff": pa.array([d for _, _, d in updates], pa.int64()),
    }
    for place, field in enumerate(list(WIDEST)[:width]):
        columns[field.name] = pa.array([row[place] for row, _, _ in updates], field.type)
    return pa.table(columns)


def counted(rows: pa.Table, *names: str) -> Counter[Any]:
    result: Counter[Any] = Counter()
    for row in rows.to_pylist():
        last = row.get("last")
        key = (row["n"], row["word"], row.get("later"), last if last is None else tuple(last))
        result[(key, row["_time"]) if names else key] += row["_diff"]
    assert all(result.values()), "consolidated rows have a diff"
    return result


class Storage(RuleBasedStateMachine):
    """Commands, and what the model says they do.

    `readers` and `writers` hold every capability ever given, the latest form of each last: rules pick from the end
    mostly, so that most commands are valid, and from anywhere sometimes, so that stale ones are presented too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[str, Collection] = {}
        self.clocks: dict[str, int] = {}
        self.leases: dict[str, tuple[int, int]] = {}  # token: lease, deadline
        self.value: bytes | None = None
        self.now = 1000
        self.zombies: list[Environment] = []
        self.readers: list[ReadCapability] = []
        self.writers: list[WriteCapability] = []
        self.stale: list[Any] = []

    @initialize(
        durable=st.booleans(),
        seed=st.integers(0, 2**32),
        rate=st.sampled_from([0.0, 0.05]),
        keys=st.lists(keys, min_size=2),
    )
    def start(self, durable: bool, seed: int, rate: float, keys: list[Any]) -> None:
        self.durable = durable
        self.memory = (MemoryConsensus(), MemoryBlob())
        self.plan = random_faults(seed, {Fault.BEFORE: rate, Fault.AFTER: rate}) if rate else None
        self.env = self.reopen()
        for key in keys[:3]:
            self.create(0, None, key)

    def reopen(self) -> Environment:
        consensus: Any
        blob: Any
        if self.durable:
            consensus, blob = SqliteConsensus(self.folder / "c.db"), LocalBlob(self.folder / "blob")
        else:
            consensus, blob = self.memory
        if self.plan is not None:
            patience = Patience(tries_max=12, sleep=lambda _: None)
            consensus = RetryingConsensus(FaultyConsensus(consensus, self.plan), patience)
            blob = RetryingBlob(FaultyBlob(blob, self.plan), patience)
        return Environment(consensus, blob, self.folder / "work", now_ms=lambda: self.now, background=False)

    def teardown(self) -> None:
        try:
            if hasattr(self, "env"):
                self.everything_agrees()
        finally:
            for environment in [*self.zombies, self.env] if hasattr(self, "env") else []:
                if self.durable:
                    environment.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # Doing it on both sides

    def commit(self, commands: list[Any], change: Any, errors: tuple[type[Exception], ...] = ()) -> list[Any] | None:
        """Commit; on success `change` is applied to the model. `errors`: what must be raised instead."""
        try:
            results = self.env.commit(*commands)
        except StorageError as error:
            assert errors and isinstance(error, errors), f"unexpected: {type(error).__name__}: {error}"
            return None
        assert not errors, f"{errors} expected of {commands}"
        change(results)
        for result in results:
            self.know(result)
        return results

    def know(self, result: Any) -> None:
        """Remember the latest form of capabilities, and the former one as stale."""
        for capability in result if isinstance(result, tuple) else [result]:
            if isinstance(capability, Capability):
                known: list[Any] = self.readers if isinstance(capability, ReadCapability) else self.writers
                self.stale += [other for other in known if other.token == capability.token and other != capability]
                known[:] = [other for other in known if other.token != capability.token]
                if not capability.frontier.empty:
                    known.append(capability)

    def pick(self, known: list[Any], index: int) -> Any:
        """One of the capabilities; for large indexes one that is stale, if there is any of the kind."""
        kind = ReadCapability if known is self.readers else WriteCapability
        stale = [capability for capability in self.stale if isinstance(capability, kind)]
        if index >= 95 and stale:
            return stale[index % len(stale)]
        return known[index % len(known)] if known else None

    def expected(self, capability: Any) -> tuple[type[Exception], ...]:
        """The error that using this capability must raise, if any."""
        collection = self.model[capability.id]
        if not collection.held and collection.floors == {"r": FOREVER, "w": FOREVER}:
            return (UnknownId,)
        if capability.token not in collection.held:
            return (CapabilityInvalid,)
        lease = self.leases.get(capability.token)
        if lease is not None and lease[1] < self.now:
            return (CapabilityExpired,)
        held = collection.held[capability.token]
        same_clock = isinstance(held, int) == (capability.clock is None)
        if not same_clock or (isinstance(held, int) and to_frontier(held) != capability.frontier):
            return (UpperMismatch,) if capability.token[0] == "w" else (CapabilityInvalid,)
        return ()

    def hold(self, capability: Any, lease: int | None) -> None:
        if not capability.frontier.empty:
            self.model[capability.id].held[capability.token] = capability.frontier.only
            if lease is not None:
                self.leases[capability.token] = (lease, self.now + lease)

    # Rules

    @rule(at=times, lease=leases, key=keys)
    def create_more(self, at: int, lease: int | None, key: list[str] | None) -> None:
        if len(self.model) < 5:
            self.create(at, lease, key)

    def create(self, at: int, lease: int | None, key: list[str] | None) -> None:
        drawn = len(self.model) % 2 == 0
        id = self.env.draw_id() if drawn else self.env.commit(AllocateId("u"))[0]
        assert id not in self.model

        def change(results: list[Any]) -> None:
            read, write = results[0]
            assert read.frontier == write.frontier == Antichain(at)
            self.model[id] = Collection(at, floors={"r": at, "w": at})
            self.hold(read, lease)
            self.hold(write, lease)

        create = Create(id, SCHEMA, key=key, at=at, lease_ms=lease)
        self.commit([create, TakeId(id)] if drawn else [create], change)

    @rule(index=indexes)
    def create_again(self, index: int) -> None:
        self.commit([Create(sorted(self.model)[index % len(self.model)], SCHEMA)], None, (IdReused,))

    @rule(index=indexes, step=steps, data=st.data(), close=st.sampled_from([False] * 30 + [True]))
    def append(self, index: int, step: int, data: st.DataObject, close: bool) -> None:
        writer = self.pick(self.writers, index)
        if writer is None:
            return
        lower = writer.frontier.only
        to = FOREVER if close else lower + step
        errors = self.expected(writer)
        if writer.clock is not None:
            errors = errors or (InvalidUsage,)
        width = data.draw(st.integers(2, self.model[writer.id].width))  # columns that came later may be left out
        updates = data.draw(updates_between(lower, min(to, lower + 6) - 1, width))
        command = UpdateAndDowngrade(writer, table(updates, width), to_frontier(to))
        self.commit([command], lambda _: self.appended(writer, updates, to), errors)

    def appended(self, writer: Any, updates: list[Update], to: int) -> None:
        collection = self.model[writer.id]
        collection.updates += updates
        if to == FOREVER:
            collection.release(writer.token, self.clocks)
        else:
            collection.held[writer.token] = to
            collection.settle(self.clocks)

    @rule(index=indexes, to=st.integers(2, 4), step=st.integers(1, 3), data=st.data())
    def extend(self, index: int, to: int, step: int, data: st.DataObject) -> None:
        """More columns, and in the same commit rows that have them; what leaves columns out is refused."""
        writer = self.pick(self.writers, index)
        if writer is None or writer.clock is not None:
            return
        collection, lower = self.model[writer.id], writer.frontier.only
        errors = (*self.expected(writer), *((SchemaMismatch,) if to < collection.width else ()))
        updates = data.draw(updates_between(lower, lower + step - 1, to))
        until = lower + step

        def change(_: Any) -> None:
            collection.width = to
            self.appended(writer, updates, until)

        extended = Extend(writer, pa.schema(list(WIDEST)[:to]))
        self.commit([extended, UpdateAndDowngrade(writer, table(updates, to), Antichain(until))], change, errors)

    @rule(index=indexes, data=st.data())
    def append_outside(self, index: int, data: st.DataObject) -> None:
        writer = self.pick(self.writers, index)
        if writer is None or writer.clock is not None:
            return
        lower = writer.frontier.only
        time = data.draw(st.sampled_from([max(lower - 1, 0), lower + 3, lower + 8]))
        if not lower <= time < lower + 3:
            bad = table([((1, "a", None, None), time, 1)])
            errors = self.expected(writer) or (TimesOutOfRange,)
            self.commit([UpdateAndDowngrade(writer, bad, Antichain(lower + 3))], None, errors)

    @rule(one=indexes, other=indexes, step=st.integers(1, 4), data=st.data())
    def append_two(self, one: int, other: int, step: int, data: st.DataObject) -> None:
        """Two collections in one commit, with a value: all or nothing."""
        pair = [self.pick(self.writers, one), self.pick(self.writers, other)]
        if None in pair or pair[0].id == pair[1].id or any(writer.clock is not None for writer in pair):
            return
        commands, changes = [], []
        for writer in pair:
            to = writer.frontier.only + step
            updates = data.draw(updates_between(writer.frontier.only, to - 1))
            commands.append(UpdateAndDowngrade(writer, table(updates), Antichain(to)))
            changes.append((writer, updates, to))
        value = str(self.now).encode()

        def change(_: Any) -> None:
            for writer, updates, to in changes:
                self.appended(writer, updates, to)
            self.value = value

        errors = self.expected(pair[0]) or self.expected(pair[1])
        self.commit([*commands, Put("two", value)], change, errors)

    @rule(index=indexes, step=st.sampled_from([0, 1, 2, 5]))
    def downgrade(self, index: int, step: int) -> None:
        reader = self.pick(self.readers, index)
        if reader is None:
            return
        errors = self.expected(reader)
        if reader.clock is not None:
            errors = errors or (InvalidUsage,)
        to = reader.frontier.only + step

        def change(_: Any) -> None:
            self.model[reader.id].held[reader.token] = to
            self.model[reader.id].settle(self.clocks)

        self.commit([Downgrade(reader, Antichain(to))], change, errors)

    @rule(index=indexes)
    def downgrade_back(self, index: int) -> None:
        reader = self.pick(self.readers, index)
        if reader is not None and reader.frontier.only > 0 and reader.clock is None:
            errors = self.expected(reader) or (TimesOutOfRange,)
            self.commit([Downgrade(reader, Antichain(reader.frontier.only - 1))], None, errors)

    @rule(reading=st.booleans(), index=indexes, lease=leases)
    def clone(self, reading: bool, index: int, lease: int | None) -> None:
        capability = self.pick(self.readers if reading else self.writers, index)
        if capability is not None and len(self.model[capability.id].held) < 6:
            errors = self.expected(capability)
            self.commit([Clone(capability, lease)], lambda results: self.hold(results[0], lease), errors)

    @rule(reading=st.booleans(), index=indexes, really=st.integers(0, 3))
    def drop(self, reading: bool, index: int, really: int) -> None:
        capability = self.pick(self.readers if reading else self.writers, index)
        if capability is None:
            return
        collection = self.model[capability.id]
        last = sum(token[0] == capability.token[0] for token in collection.held) == 1
        if last and really:
            return  # the last ones go rarely, or nothing would be left to test
        errors = self.expected(capability)
        self.commit([Drop(capability)], lambda _: collection.release(capability.token, self.clocks), errors)

    @rule(index=indexes, lease=leases)
    def acquire(self, index: int, lease: int | None) -> None:
        id = sorted(self.model)[index % len(self.model)]
        collection = self.model[id]
        if len(collection.held) >= 6:
            return

        def change(results: list[Any]) -> None:
            for capability, kind in zip(results[0], "rw", strict=True):
                assert capability.frontier == to_frontier(collection.frontier(kind, self.clocks))
                self.hold(capability, lease)

        self.commit([Acquire(id, lease)], change)

    # Leases

    @rule(ms=st.sampled_from([10, 60]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(reading=st.booleans(), index=indexes, lag=st.sampled_from([0, 3]))
    def lease_runs_out(self, reading: bool, index: int, lag: int) -> None:
        """A leased capability, following a clock if there is one, that is used too late and then removed."""
        self.clone(reading, index, 50)
        token = next(reversed(self.leases), None)
        leased = [c for c in (self.readers if reading else self.writers) if c.token == token]
        if leased and "c" in self.clocks and reading:
            self.follow(leased[0], lag)
            self.advance_clock(4)
        self.now += 60
        if leased:
            self.commit([Renew(leased[0])], None, self.expected(leased[0]))
        self.maintain()

    @rule(reading=st.booleans(), index=indexes)
    def renew(self, reading: bool, index: int) -> None:
        capability = self.pick(self.readers if reading else self.writers, index)
        if capability is None or capability.token not in self.leases:
            return
        lease, _ = self.leases[capability.token]

        def change(_: Any) -> None:
            self.leases[capability.token] = (lease, self.now + lease)

        self.commit([Renew(capability)], change, self.expected(capability))

    def expire(self) -> None:
        for collection in self.model.values():
            over = [t for t in collection.held if t in self.leases and self.leases[t][1] < self.now]
            collection.settle(self.clocks)
            for token in over:
                del collection.held[token]
            collection.settle(self.clocks)

    # Clocks

    @rule(step=steps)
    def advance_clock(self, step: int) -> None:
        before = self.clocks.get("c")
        to = (before or 0) + step
        self.commit([AdvanceClock("c", before, to)], lambda _: self.clocks.update(c=to))

    @rule(step=st.integers(1, 3))
    def advance_clock_wrongly(self, step: int) -> None:
        before = self.clocks.get("c", 0)
        self.commit([AdvanceClock("c", before + step, before + step + 1)], None, (UpperMismatch,))

    @precondition(lambda self: "c" in self.clocks)
    @rule(index=indexes, lag=st.sampled_from([0, 2, 10]))
    def follow_reading(self, index: int, lag: int) -> None:
        self.follow(self.pick(self.readers, index), lag)

    @precondition(lambda self: "c" in self.clocks)
    @rule(index=indexes)
    def follow_writing(self, index: int) -> None:
        self.follow(self.pick(self.writers, index), 0)

    def follow(self, capability: Any, lag: int) -> None:
        if capability is None:
            return
        collection, errors = self.model[capability.id], self.expected(capability)
        if not errors and capability.token[0] == "w":
            beyond = at(collection.held[capability.token], self.clocks) > self.clocks["c"]
            errors = (TimesOutOfRange,) if beyond else ()

        def change(_: Any) -> None:
            now = at(collection.held[capability.token], self.clocks)
            collection.held[capability.token] = ("c", lag, now)
            collection.settle(self.clocks)

        self.commit([Follow(capability, "c", lag)], change, errors)

    @precondition(lambda self: "c" in self.clocks and any(writer.clock for writer in self.writers))
    @rule(index=indexes, step=st.integers(1, 5), data=st.data())
    def append_by_clock(self, index: int, step: int, data: st.DataObject) -> None:
        bound = [writer for writer in self.writers if writer.clock is not None]
        writer, before = bound[index % len(bound)], self.clocks["c"]
        updates = data.draw(updates_between(before, before + step - 1))

        def change(_: Any) -> None:
            self.clocks["c"] = before + step
            self.model[writer.id].updates += updates

        append = UpdateAndDowngrade(writer, table(updates), Antichain(before + step))
        self.commit([append, AdvanceClock("c", before, before + step)], change, self.expected(writer))

    # Background work, crashes, restarts

    @rule()
    def maintain(self) -> None:
        self.env.maintenance.run()
        self.expire()

    @rule(index=indexes)
    def compact(self, index: int) -> None:
        self.env.maintenance.compact(sorted(self.model)[index % len(self.model)])

    @rule()
    def restart(self) -> None:
        self.zombies.append(self.env)
        self.env = self.reopen()

    @rule(
        point=st.sampled_from(FAILPOINTS), hit=st.integers(1, 2), index=indexes, step=st.integers(1, 4), data=st.data()
    )
    def crash(self, point: str, hit: int, index: int, step: int, data: st.DataObject) -> None:
        """Crash while writing, compacting or collecting; what was under way happened entirely or not at all."""
        writer = self.pick(self.writers, index)
        if writer is None or self.expected(writer) or writer.clock is not None:
            return
        lower, to = writer.frontier.only, writer.frontier.only + step
        updates = data.draw(updates_between(lower, to - 1))
        acknowledged = False
        try:
            with armed(point, hit):
                self.know(self.env.append(writer, table(updates), Antichain(to)))
                acknowledged = True
                self.env.maintenance.run()
        except (Crash, Indeterminate):
            pass
        self.restart()
        held = self.env.shard(writer.id).held[writer.token]
        assert held.frontier in (lower, to) and (held.frontier == to or not acknowledged)
        if held.frontier == to:
            self.appended(writer, updates, to)
            self.know(WriteCapability(writer.token, writer.id, Antichain(to)))
        self.maintain()
        self.everything_agrees()

    @precondition(lambda self: self.zombies)
    @rule(index=indexes)
    def zombie(self, index: int) -> None:
        """A process that was fenced can write nothing, whatever it tries."""
        reader = self.pick(self.readers, index)
        with pytest.raises(Fenced):
            self.zombies[-1].commit(AllocateId() if reader is None else Clone(reader))

    @rule()
    def nothing_is_orphaned(self) -> None:
        """After a restart and its first sweep, the blob store holds what the shards refer to and nothing else."""
        self.restart()
        self.maintain()
        shards = [self.env.shard(id) for id in self.env.ids()]
        wanted = {part.key for shard in shards for batch in shard.batches.values() for part in batch.parts}
        blob = LocalBlob(self.folder / "blob") if self.durable else self.memory[1]
        assert {info.key for info in blob.list()} == wanted

    # What must hold

    @invariant()
    def frontiers_agree(self) -> None:
        for id, collection in self.model.items():
            found = self.env.frontiers(id)
            assert found.since == to_frontier(collection.frontier("r", self.clocks)), id
            assert found.upper == to_frontier(collection.frontier("w", self.clocks)), id

    @rule()
    def everything_agrees(self) -> None:
        for id, collection in self.model.items():
            since, upper = (collection.frontier(kind, self.clocks) for kind in "rw")
            last = min(upper, max([t for _, t, _ in collection.updates], default=0) + 3)
            for time in range(since, last):
                with self.env.contents(id, time) as selection:
                    assert counted(selection.contents()) == collection.contents(time), (id, time)
            for time in {since - 1, upper} if since < FOREVER else {0}:
                if 0 <= time < FOREVER:
                    with pytest.raises((NotReadable, UnknownId)):
                        self.env.contents(id, time)
            if since + 1 < last:
                self.check_changes(id, collection, since + 1, last)
                self.check_lookup(id, collection, last - 1)
        assert self.env.get("two") == self.value

    def check_changes(self, id: str, collection: Collection, lower: int, upper: int) -> None:
        expected = collection.changes(lower, upper)
        with self.env.changes(id, lower, upper) as selection:
            assert counted(selection.changes(), "_time") == expected
            pieces: Counter[Any] = Counter()
            for chunk in selection.chunks():
                piece = counted(chunk, "_time")
                assert not piece.keys() & pieces.keys()
                pieces.update(piece)
            assert pieces == expected
            narrow: Counter[Any] = Counter()
            for (row, when), diff in expected.items():
                narrow[row[0], when] += diff
            found = [
                (row["n"], row["_time"], row["_diff"])
                for chunk in selection.chunks(columns=["n"])
                for row in chunk.to_pylist()
            ]
            assert sorted(found) == sorted((n, when, diff) for (n, when), diff in narrow.items() if diff)

    def check_lookup(self, id: str, collection: Collection, time: int) -> None:
        wanted = table([((1, "a", None, None), 0, 1), ((9, "a", None, None), 0, 1)], collection.width)
        key = self.env.shard(id).spec.key
        keys = {tuple(row[name] for name in key) for row in wanted.to_pylist()}
        hashes = self.env.key_hashes(id, wanted)
        with self.env.contents(id, time, hashes) as selection:
            found = counted(selection.contents())
        columns = [WIDEST.names.index(name) for name in key]
        contents = collection.contents(time)
        asked = {row: n for row, n in contents.items() if tuple(row[c] for c in columns) in keys}
        assert {row: n for row, n in found.items() if row in asked} == asked
        # Keys that differ may have one hash: NULLs do not enter it.
        for row in found.keys() - asked.keys():
            assert found[row] == contents[row]
            assert set(self.env.key_hashes(id, table([(row, 0, 1)], collection.width))) <= set(hashes)

    @rule(index=indexes, snapshot=st.booleans())
    def subscribe(self, index: int, snapshot: bool) -> None:
        """What a subscription says sums to the contents, and every change comes at its time."""
        reader = self.pick(self.readers, index)
        if reader is None or self.expected(reader) or reader.clock is not None:
            return
        collection, start = self.model[reader.id], reader.frontier.only
        subscription = self.env.subscribe(reader, snapshot=snapshot)
        seen: Counter[Any] = Counter()
        promised = 0
        while (event := next_or_none(subscription)) is not None:
            if isinstance(event, Progress):
                promised = FOREVER if event.frontier.empty else event.frontier.only
            else:
                news = counted(event.table, "_time")
                assert all(time >= promised for _, time in news)
                seen.update(news)
        upper = collection.frontier("w", self.clocks)
        expected: Counter[Any] = Counter()
        if start < upper:
            expected = collection.changes(start + 1, upper)
            if snapshot:
                expected.update({(row, start): count for row, count in collection.contents(start).items()})
        assert {key: n for key, n in seen.items() if n} == expected
        assert promised in (0, upper)


def next_or_none(subscription: Subscription) -> Updates | Progress | None:
    try:
        return subscription.next(0)
    except StopIteration:
        return None


@st.composite
def updates_between(draw: st.DrawFn, low: int, high: int, width: int = 2) -> list[Update]:
    if high < low:
        return []
    row = st.tuples(*columns[:width], *(st.none() for _ in columns[width:]))
    return draw(st.lists(st.tuples(row, st.integers(low, high), st.sampled_from([1, 1, 2, -1])), max_size=12))


@pytest.mark.usefixtures("tiny")
class TestStorage(Storage.TestCase):  # type: ignore[valid-type, misc]
    """The machine as a test; `copy` keeps its settings its own."""

    settings = copy.copy(Storage.TestCase.settings)
