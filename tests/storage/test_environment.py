"""What each command promises, one at a time: capabilities, frontiers, atomic commits, fencing, bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
import xxhash

import everview
from everview.compute import dataflow
from everview.compute.engine.spark import bulk
from everview.storage import codec
from everview.storage.batch import decode_batch, encode_batch
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import (
    Acquire,
    AdvanceClock,
    AllocateId,
    Clone,
    Command,
    Create,
    Downgrade,
    Drop,
    Follow,
    Put,
    ReadCapability,
    TakeId,
    UpdateAndDowngrade,
    WriteCapability,
)
from everview.storage.disk import close_to_others
from everview.storage.environment import Environment
from everview.storage.errors import (
    Canceled,
    CapabilityExpired,
    CapabilityInvalid,
    DiffOverflow,
    Fenced,
    IdReused,
    Indeterminate,
    InvalidUsage,
    NewerFormat,
    NotReadable,
    SchemaMismatch,
    StorageFull,
    TimesOutOfRange,
    UnknownId,
    UpperMismatch,
)
from everview.storage.sealed import SealedConsensus
from everview.storage.stores import open_blob
from everview.timely.antichain import Antichain
from tests.storage.faulty import Fault, FaultyBlob, FaultyConsensus, scripted
from tests.storage.rows import SCHEMA, contents, updates
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EMPTY: Antichain[int] = Antichain()


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment(MemoryConsensus(), MemoryBlob(), tmp_path, background=False) as opened:
        yield opened


def test_life_cycle_to_the_empty_frontiers(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA, at=5)
    assert environment.frontiers("u1").since == environment.frontiers("u1").upper == Antichain(5)
    write = environment.append(write, updates((1, "a", 5, +1)), Antichain(10))
    assert contents(environment, "u1", 9) == {(1, "a"): 1}
    # Sealed: complete for all times to come, and unwriteable.
    write = environment.append(write, updates((2, "b", 12, +1)), EMPTY)
    assert environment.frontiers("u1").upper == EMPTY
    assert contents(environment, "u1", 1_000_000) == {(1, "a"): 1, (2, "b"): 1}
    with pytest.raises(CapabilityInvalid):
        environment.append(write, None, EMPTY)
    # Released: unreadable; the id stays taken.
    environment.drop(read)
    assert environment.frontiers("u1").since == EMPTY
    with pytest.raises(UnknownId, match="does not exist"):
        environment.contents("u1", 100)
    with pytest.raises(IdReused):
        environment.create("u1", SCHEMA)
    read, write = environment.acquire("u1")
    assert read.frontier == write.frontier == EMPTY


def test_an_allocated_id_is_one_that_nobody_was_ever_given(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA)
    environment.create("u3", SCHEMA)
    environment.drop(read)
    environment.drop(write)  # gone, and its id stays taken
    assert [environment.commit(AllocateId("u"))[0] for _ in range(3)] == ["u2", "u4", "u5"]
    _, (id,) = environment.commit(Create("u6", SCHEMA)), environment.commit(AllocateId("u"))
    assert id == "u7"
    _, other = environment.commit(Create("x8", SCHEMA), AllocateId("x"))
    assert other == "x9"


def test_an_id_is_drawn_without_a_trace_and_is_given_by_a_commit(tmp_path: Path) -> None:
    with Environment.open(tmp_path) as environment:
        environment.create("u2", SCHEMA)
        before = environment.commits
        assert [environment.draw_id(each) for each in ("u", "n", "u", "u")] == ["u1", "n2", "u3", "u4"]
        assert (environment.commits, environment.next_id) == (before, 1)
        assert environment.commit(AllocateId("u")) == ["u5"], "what is drawn is not given to another"
        environment.commit(TakeId("u3"))
        assert environment.next_id == 6, "ids that were given stay given"
        assert environment.draw_id() == "u6"
    with Environment.open(tmp_path) as environment:
        assert environment.draw_id() == "u6", "nobody was given it"
        environment.commit(TakeId("u6"))
    with Environment.open(tmp_path) as environment:
        assert environment.draw_id() == "u7"


@pytest.mark.parametrize("id", ["", "u", "7", "u7x", "catalog/u7"])
def test_only_an_id_can_be_taken(environment: Environment, id: str) -> None:
    with pytest.raises(InvalidUsage):
        environment.commit(TakeId(id))


HUGE = 2**62


def test_diffs_that_might_not_sum_are_refused(environment: Environment) -> None:
    _, write = environment.create("u1", SCHEMA)
    write = environment.append(write, updates((1, "a", 1, HUGE)), Antichain(2))
    for rows in ([(1, "a", 2, HUGE)], [(1, "a", 2, 1), (1, "a", 3, HUGE)]):
        with pytest.raises(DiffOverflow, match="u1"):
            environment.append(write, updates(*rows), Antichain(5))
    with pytest.raises(DiffOverflow, match="u1"):  # by themselves
        environment.append(write, updates((1, "a", 2, HUGE), (1, "a", 3, HUGE)), Antichain(5))
    many = [(number, "b", 2, -(2**48)) for number in range(40_000)]  # which go into parts
    with pytest.raises(DiffOverflow, match="u1"):
        environment.append(write, updates(*many), Antichain(5))
    assert environment.frontiers("u1").upper == Antichain(2)
    write = environment.append(write, updates((1, "a", 2, HUGE - 2), (1, "a", 3, -HUGE)), Antichain(4))
    assert contents(environment, "u1", 2) == {(1, "a"): 2 * HUGE - 2}
    assert contents(environment, "u1", 3) == {(1, "a"): HUGE - 2}


def test_what_was_canceled_counts_no_more_after_compaction(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA)
    for time in range(1, 200, 2):
        rows = updates((1, "a", time, 2**57), (1, "a", time + 1, -(2**57)))
        write = environment.append(write, rows, Antichain(time + 2))
        read = environment.downgrade(read, Antichain(time + 1))
        environment.maintenance.run()
    assert contents(environment, "u1", 200) == {}


def test_batches_of_older_environments_do_not_say_what_their_diffs_sum_to(environment: Environment) -> None:
    _, write = environment.create("u1", SCHEMA)
    environment.append(write, updates((1, "a", 1, 5), (2, "b", 1, -1)), Antichain(2))
    (batch,) = environment.shard("u1").batches.values()
    body = encode_batch(batch)[8:]
    length = int.from_bytes(body[:4], "little")
    head = json.dumps(json.loads(body[4 : 4 + length])[:3]).encode()  # as it was before
    older = len(head).to_bytes(4, "little") + head + body[4 + length :]
    decoded = decode_batch(batch.number, xxhash.xxh3_64_digest(older) + older, "u1")
    assert decoded.payload == batch.payload and batch.sums == (5, 1)
    assert decoded.sums == (1, 1)


def test_upper_is_held_by_the_slowest_writer(environment: Environment) -> None:
    _, first = environment.create("u1", SCHEMA)
    (second,) = environment.commit(Clone(first))
    first = environment.append(first, updates((1, "a", 3, +1)), Antichain(10))
    assert environment.frontiers("u1").upper == Antichain(0)
    with pytest.raises(NotReadable, match="cannot be read at 3 yet"):
        environment.contents("u1", 3)
    environment.append(second, updates((2, "b", 4, +1)), Antichain(6))
    assert environment.frontiers("u1").upper == Antichain(6)
    assert contents(environment, "u1", 5) == {(1, "a"): 1, (2, "b"): 1}


def test_a_retry_of_a_write_that_happened_is_refused_with_the_current_frontier(environment: Environment) -> None:
    _, write = environment.create("u1", SCHEMA)
    environment.append(write, updates((1, "a", 3, +1)), Antichain(10))
    with pytest.raises(UpperMismatch) as caught:
        environment.append(write, updates((1, "a", 3, +1)), Antichain(10))
    assert caught.value.current == Antichain(10)
    assert contents(environment, "u1", 9) == {(1, "a"): 1}


@pytest.mark.parametrize(
    ("times", "to"), [([4], 8), ([8], 8), ([5, 9], 8), ([5], 4)], ids=["below", "at the end", "one beyond", "backwards"]
)
def test_times_outside_the_interval(environment: Environment, times: list[int], to: int) -> None:
    _, write = environment.create("u1", SCHEMA, at=5)
    with pytest.raises(TimesOutOfRange):
        environment.append(write, updates(*((1, "a", time, 1) for time in times)), Antichain(to))
    assert environment.frontiers("u1").upper == Antichain(5)


def test_a_commit_across_collections_is_all_or_nothing(environment: Environment) -> None:
    writers = [environment.create(id, SCHEMA)[1] for id in ("u1", "u2", "u3")]
    good = [UpdateAndDowngrade(w, updates((1, "a", 1, +1)), Antichain(5)) for w in writers[:2]]
    bad = UpdateAndDowngrade(writers[2], updates((1, "a", 7, +1)), Antichain(5))
    with pytest.raises(TimesOutOfRange):
        environment.commit(*good, Put("note", b"x"), bad)
    assert all(environment.frontiers(id).upper == Antichain(0) for id in ("u1", "u2", "u3"))
    assert environment.get("note") is None
    before = environment.commits
    environment.commit(*good, Put("note", b"x"), UpdateAndDowngrade(writers[2], None, Antichain(5)))
    assert environment.commits == before + 1
    assert environment.get("note") == b"x"
    assert environment.scan("no") == {"note": b"x"}


def test_a_thousand_collections_advance_in_one_small_write(tmp_path: Path) -> None:
    consensus = MemoryConsensus()
    with Environment(consensus, MemoryBlob(), tmp_path, background=False) as environment:
        environment.commit(AdvanceClock("tables", None, 1))
        created = environment.commit(*(Create(f"u{n}", SCHEMA, at=1) for n in range(1000)))
        follow = [(Follow(read, "tables", 10), Follow(write, "tables")) for read, write in created]
        bound = environment.commit(*(command for pair in follow for command in pair))
        keys = {key: entry.version for key, entry in consensus.scan("")}
        environment.commit(AdvanceClock("tables", 1, 100))
        written = [key for key, entry in consensus.scan("") if keys.get(key) != entry.version]
        assert written == ["clock/tables"]
        frontiers = environment.frontiers("u500")
        assert (frontiers.since, frontiers.upper) == (Antichain(90), Antichain(100))
        # A write to one of them moves them all.
        write = bound[1001]
        append = UpdateAndDowngrade(write, updates((1, "a", 150, +1)), Antichain(200))
        environment.commit(append, AdvanceClock("tables", 100, 200))
        assert environment.frontiers("u7").upper == Antichain(200)
        assert contents(environment, write.id, 199) == {(1, "a"): 1}


def test_leases(tmp_path: Path) -> None:
    now = [1000]
    with Environment(MemoryConsensus(), MemoryBlob(), tmp_path, now_ms=lambda: now[0], background=False) as environment:
        read, write = environment.create("u1", SCHEMA)
        (leased,) = environment.commit(Clone(read, lease_ms=50))
        write = environment.append(write, updates((1, "a", 3, +1)), Antichain(10))
        environment.downgrade(read, Antichain(8))
        environment.maintenance.run()
        assert environment.frontiers("u1").since == Antichain(0), "a live lease holds since"
        now[0] += 51
        with pytest.raises(CapabilityExpired, match="expired 1 ms ago"):
            environment.downgrade(leased, Antichain(1))
        environment.maintenance.run()
        assert environment.frontiers("u1").since == Antichain(8)
        with pytest.raises(CapabilityInvalid):
            environment.downgrade(leased, Antichain(1))


def test_expiry_of_the_last_capability_leaves_the_frontiers_where_they_are(tmp_path: Path) -> None:
    now = [1000]
    with Environment(MemoryConsensus(), MemoryBlob(), tmp_path, now_ms=lambda: now[0], background=False) as environment:
        _, write = environment.create("u1", SCHEMA, lease_ms=50)
        environment.append(write, updates((1, "a", 3, +1)), Antichain(10))
        now[0] += 100
        environment.maintenance.run()
        read, write = environment.acquire("u1")
        assert (read.frontier, write.frontier) == (Antichain(0), Antichain(10))
        assert contents(environment, "u1", 9) == {(1, "a"): 1}


def test_a_second_process_fences_the_first(tmp_path: Path) -> None:
    script = (
        "import sys; from everview.storage.environment import Environment\n"
        "with Environment.open(sys.argv[1]) as e: print(e.epoch, e.ids())"
    )
    with Environment.open(tmp_path, background=False) as first:
        _, write = first.create("u1", SCHEMA)
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "2 ['u1']"
        with pytest.raises(Fenced, match="another process has opened this environment") as caught:
            first.append(write, updates((1, "a", 3, +1)), Antichain(10))
        assert "epoch 2" in (caught.value.detail or "")
        # A command that only looks invalid from here is told the truth too.
        with pytest.raises(Fenced):
            first.commit(Acquire("u99"))
        with pytest.raises(Fenced):
            first.maintenance.run()
            first.create("u2", SCHEMA)
    with Environment.open(tmp_path, background=False) as third:
        assert third.frontiers("u1").upper == Antichain(0)


def test_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        environment.create("u1", SCHEMA)
    database = tmp_path / "consensus.db"
    consensus = SqliteConsensus(database)
    consensus.commit({}, {codec.FORMAT: json.dumps(codec.FORMAT_VERSION + 1).encode()}, 1)
    consensus.close()
    with pytest.raises(NewerFormat, match="knows formats up to 2"):
        Environment.open(tmp_path)
    consensus = SqliteConsensus(database)
    epoch = json.loads(SealedConsensus(consensus).get([codec.EPOCH])[codec.EPOCH].value)["epoch"]
    assert epoch == 1
    consensus.commit({}, {codec.FORMAT: b"1"}, 2)
    consensus.close()
    with Environment.open(tmp_path, background=False) as environment:
        assert environment.ids() == ["u1"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("a", pa.int64()), ("a", pa.string())]), "same name"),
        (pa.schema([("_time", pa.int64())]), "reserved"),
        (pa.schema([("a", pa.uint64())]), "cannot be stored"),
        (pa.schema([("a", pa.timestamp("ns"))]), "cannot be stored"),
        (pa.schema([]), "at least one column"),
    ],
)
def test_schemas_that_cannot_be_stored(environment: Environment, schema: pa.Schema, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        environment.create("u1", schema)
    assert environment.ids() == []


def test_updates_that_do_not_fit_the_schema(environment: Environment) -> None:
    _, write = environment.create("u1", pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    times = {"_time": pa.array([1], pa.int64()), "_diff": pa.array([1], pa.int64())}
    for columns, message in [
        ({"m": [1]}, "collection's columns"),
        ({"n": pa.array([1], pa.int32())}, "is int32, and should be int64"),
        ({"n": pa.array([None], pa.int64())}, "NULLs"),
    ]:
        with pytest.raises(SchemaMismatch, match=message):
            environment.append(write, pa.table({**columns, **times}), Antichain(5))
    environment.append(write, pa.table({**times, "n": [7]}), Antichain(5))


def test_names_and_numbers_that_make_no_sense(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA)
    commands: list[Command] = [
        Create("u/2", SCHEMA),
        Create("u2", SCHEMA, lease_ms=0),
        Create("u2", SCHEMA, at=-1),
        Create("u2", SCHEMA, key=["nowhere"]),
        Follow(read, "nowhere"),
        Downgrade(read, Antichain(2**63 - 1)),
        UpdateAndDowngrade(write, None, Antichain((1, 2))),  # type: ignore[arg-type]
        AdvanceClock("a/b", None, 1),
        Acquire("u9"),
        Drop(ReadCapability("r-0", "u1", Antichain(0))),
    ]
    for command in commands:
        with pytest.raises(InvalidUsage):
            environment.commit(command)
    assert environment.ids() == ["u1"]


def test_staged_updates_can_be_committed_once(environment: Environment) -> None:
    _, write = environment.create("u1", SCHEMA)
    staged = environment.stage("u1", updates((1, "a", 3, +1)))
    write = environment.append(write, staged, Antichain(10))
    with pytest.raises(InvalidUsage, match="committed before"):
        environment.append(write, staged, Antichain(20))


def large(time: int, rows: int = 30_000) -> pa.Table:
    columns = {"n": np.arange(rows), "word": pa.array([f"word {n}" for n in range(rows)])}
    return pa.table({"_time": np.full(rows, time), "_diff": np.ones(rows, dtype=np.int64), **columns})


def test_a_failed_commit_leaves_no_parts_behind(tmp_path: Path) -> None:
    blob = MemoryBlob()
    with Environment(MemoryConsensus(), blob, tmp_path, background=False) as environment:
        _, write = environment.create("u1", SCHEMA)
        with pytest.raises(TimesOutOfRange):
            environment.append(write, large(12), Antichain(10))
        assert list(blob.list()) == []


def test_a_full_blob_store(tmp_path: Path) -> None:
    blob = MemoryBlob()
    faulty = FaultyBlob(blob, scripted(Fault.FULL, only=["put_file"]))
    with Environment(MemoryConsensus(), faulty, tmp_path, background=False) as environment:
        _, write = environment.create("u1", SCHEMA)
        with pytest.raises(StorageFull):
            environment.append(write, large(1), Antichain(10))
        assert environment.frontiers("u1").upper == Antichain(0)
        assert not list((tmp_path / "scratch").iterdir())
        environment.append(write, large(1), Antichain(10))
        assert len(contents(environment, "u1", 9)) == 30_000


def test_a_commit_in_doubt_is_looked_up_before_anything_else(tmp_path: Path) -> None:
    inner = MemoryConsensus()
    plan = scripted(*[Fault.FINE] * 2, Fault.AFTER, only=["commit"])
    with Environment(FaultyConsensus(inner, plan), MemoryBlob(), tmp_path, background=False) as environment:
        _, write = environment.create("u1", SCHEMA)
        with pytest.raises(Indeterminate):
            environment.append(write, large(1), Antichain(10))
        assert environment.frontiers("u1").upper == Antichain(10), "it did happen, and that is seen"
        with pytest.raises(UpperMismatch):
            environment.append(write, large(1), Antichain(10))
        assert len(contents(environment, "u1", 9)) == 30_000


def test_concurrent_writers_share_durable_writes(tmp_path: Path) -> None:
    with Environment.open(tmp_path) as environment:
        created = environment.commit(*(Create(f"u{n}", SCHEMA) for n in range(8)))
        before = environment.commits

        def write_many(number: int) -> None:
            write = created[number][1]
            for time in range(50):
                write = environment.append(write, updates((time, "a", time, +1)), Antichain(time + 1))

        threads = [threading.Thread(target=write_many, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert environment.commits - before < 8 * 50
        for number in range(8):
            assert contents(environment, f"u{number}", 49) == {(time, "a"): 1 for time in range(50)}


def test_closing_wakes_those_who_wait(tmp_path: Path) -> None:
    environment = Environment.open(tmp_path)
    read, _ = environment.create("u1", SCHEMA)
    subscription = environment.subscribe(read)
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            subscription.next()
        except Canceled as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    environment.close()
    thread.join(10)
    assert not thread.is_alive() and failures
    with pytest.raises(Canceled):
        environment.create("u2", SCHEMA)


def test_an_id_that_is_not_in_use_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read asks for the errors of what it reads, and most relations cannot have any."""
    consensus = MemoryConsensus()
    scans: list[object] = []
    scan = consensus.scan
    monkeypatch.setattr(consensus, "scan", lambda *ranges: scans.append(ranges) or scan(*ranges))  # type: ignore[func-returns-value]
    with Environment(consensus, MemoryBlob(), tmp_path, background=False) as environment:
        for _ in range(3):
            scans.clear()
            with pytest.raises(UnknownId):
                environment.frontiers("u1")
        assert not scans
        environment.create("u1", SCHEMA)
        assert environment.frontiers("u1").upper.only == 0


def test_what_stands_has_all_before_its_upper(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is committed while one looks."""
    assert environment.standing("u1") is None
    environment.commit(AdvanceClock("tables", None, 1))
    ((_, write),) = environment.commit(Create("u1", SCHEMA, at=1))
    (write,) = environment.commit(Follow(write, "tables"))
    cached = environment._applier.cached

    def write_meanwhile(id: str) -> object:
        found = cached(id)
        present = environment.present("u1", write.token)
        assert isinstance(present, WriteCapability)
        append = UpdateAndDowngrade(present, updates((1, "a", 5, +1)), Antichain(9))
        environment.commit(append, AdvanceClock("tables", 1, 9))
        return found

    monkeypatch.setattr(environment._applier, "cached", write_meanwhile)
    standing = environment.standing("u1")
    monkeypatch.undo()
    assert standing is not None and (len(standing[0].batches), standing[1]) == (0, 1)
    standing = environment.standing("u1")
    assert standing is not None and (len(standing[0].batches), standing[1]) == (1, 9)
    environment.commit(AdvanceClock("tables", 9, 20))
    later = environment.standing("u1")
    assert later is not None and later[0].batches is standing[0].batches and later[1] == 20


@pytest.fixture
def generous_umask() -> Iterator[None]:
    """What processes make is for everyone to read, unless they see to it."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """What in a folder, itself included, others than its owner can do something with, and its mode."""
    modes = {}
    for path in [folder, *folder.rglob("*")]:
        with suppress(FileNotFoundError):  # it was temporary
            modes[str(path)] = path.stat().st_mode
    return {path: oct(mode) for path, mode in modes.items() if mode & 0o077}


def fill(environment: Environment) -> None:
    """Write a part, and have a copy of it made for searching."""
    rows = 20_000
    columns = {"_time": [1] * rows, "_diff": [1] * rows, "n": list(range(rows)), "word": [f"w{n}" for n in range(rows)]}
    _, write = environment.create("u1", SCHEMA)
    environment.append(write, pa.table(columns), Antichain(2))
    hashes = environment.key_hashes("u1", pa.table({"n": [7], "word": ["w7"]}))
    with environment.contents("u1", 1, hashes) as selection:
        assert selection.contents().num_rows == 1


@pytest.mark.usefixtures("generous_umask")
def test_only_its_owner_can_look_inside(tmp_path: Path) -> None:
    """Secrets of connections, verifiers of passwords and everybody's rows are in there."""
    data = tmp_path / "new" / "data"
    with Environment.open(data) as environment:
        fill(environment)
        assert {"consensus.db", "consensus.db-wal", "blob", "hot", "scratch"} <= {path.name for path in data.iterdir()}
        assert list((data / "blob" / "parts").rglob("*.parquet")) and list((data / "hot").rglob("*.arrow"))
        assert open_to_others(data) == {}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o755  # what is around it is not ours


@pytest.mark.usefixtures("generous_umask")
@pytest.mark.parametrize("closed", [(), (".", "blob", "hot")], ids=["all open", "as version 0.1 left it"])
def test_what_was_open_to_others_is_closed_when_it_is_opened(tmp_path: Path, closed: tuple[str, ...]) -> None:
    data = tmp_path / "data"
    with Environment.open(data) as environment:
        fill(environment)
    for name in ("lock", "spark.log", "notes.txt"):
        (data / name).touch()
    for path in [data, *data.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name in closed:
        (data / name).chmod(0o700)
    outside = tmp_path / "outside"
    outside.touch()
    (data / "blob" / "link").symlink_to(outside)
    Environment.open(data).close()
    (data / "blob" / "link").unlink()
    assert open_to_others(data) == {str(data / "notes.txt"): "0o100644"}  # which is somebody else's
    assert outside.stat().st_mode & 0o777 == 0o644


@pytest.mark.spark
@pytest.mark.usefixtures("generous_umask")
@pytest.mark.parametrize("by_spark", [False, True], ids=["runs", "spark's writer"])
def test_what_executors_write_is_closed_to_others(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, by_spark: bool
) -> None:
    """Large ticks, whose parts this process only adopts."""
    monkeypatch.setattr(dataflow, "LARGE_ROWS_MIN", 100)
    if by_spark:
        monkeypatch.setattr(bulk, "can_write_runs", lambda *_: False)
    adopted: list[str] = []
    seal = LocalBlob.seal

    def noted(blob: LocalBlob, key: str) -> None:
        adopted.append(key)
        seal(blob, key)

    monkeypatch.setattr(LocalBlob, "seal", noted)
    with everview.open(tmp_path / "data", spark=spark) as db:
        db.sql("CREATE TABLE t (k int, v text)")
        db.sql("INSERT INTO t SELECT g, 'value ' || g FROM generate_series(1, 30000) AS g")
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT k, max(v) AS v FROM t GROUP BY k")
        db.sql("CREATE INDEX m_by_k ON m (k)")
        assert db.sql("SELECT v FROM m WHERE k = 7") == [("value 7",)]
        assert adopted
        left = tmp_path / "data"  # while a tick writes, its files may be open, in a folder that is closed
        assert eventually(lambda: not open_to_others(left)), open_to_others(left)


def test_a_folder_that_is_not_the_environments_own_stays_open(tmp_path: Path) -> None:
    """Others are to read the change streams and files that sinks write."""
    folder = tmp_path / "stream"
    folder.mkdir()
    folder.chmod(0o755)
    open_blob(str(folder)).put("a/b.jsonl", b"1")
    assert folder.stat().st_mode & 0o777 == 0o755
    shared = tmp_path / "shared"  # as /tmp is, where anyone may have files
    shared.mkdir()
    shared.chmod(0o1777)
    close_to_others(shared)
    assert shared.stat().st_mode & 0o7777 == 0o1777
