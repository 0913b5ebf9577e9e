"""An observer sees what is there, changes nothing, and is not misled by compaction that goes on beside it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.storage.blob.contract import Blob
from everview.storage.blob.local import LocalBlob
from everview.storage.codec import FORMAT, state_key
from everview.storage.consensus.contract import Entry
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import AdvanceClock, Follow, Frontiers, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import (
    BlobMissing,
    Corruption,
    Determinate,
    InvalidUsage,
    NewerFormat,
    NotReadable,
    UnknownId,
)
from everview.storage.observer import TRIES_MAX, Observer, PreopenedBlob, Reading
from everview.timely.antichain import Antichain

from .conftest import SOURCE, Child

WITH_TESTS = {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(SOURCE.parent)])}  # for children that import this file
SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), ("text", pa.string())])


def updates(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Of `(n, time, diff)`."""
    numbers, times, diffs = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"_time": times, "_diff": diffs, "n": numbers, "text": [f"text of {n}" for n in numbers]})


def rows_of(reading: Reading) -> list[tuple[int, ...]]:
    """Sorted `(n, diff)` of contents, `(n, time, diff)` of changes."""
    with reading:
        names = ["n", *(name for name in reading.names if name.startswith("_"))]
        return sorted(row for table in reading for row in zip(*(table[n].to_pylist() for n in names), strict=True))


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    """One that does background work only when told."""
    with Environment.open(tmp_path / "data", background=False) as opened:
        yield opened


@pytest.fixture
def observer(environment: Environment, tmp_path: Path) -> Iterator[Observer]:
    """Of that environment."""
    with Observer.open(tmp_path / "data") as opened:
        yield opened


def fill(environment: Environment, id: str, count: int) -> WriteCapability:
    """A collection of the numbers below `count`, all at time 0."""
    _, write = environment.create(id, SCHEMA)
    return environment.append(write, updates([(n, 0, 1) for n in range(count)]), Antichain(1))


def test_contents_and_changes_at_every_time(environment: Environment, observer: Observer) -> None:
    _, write = environment.create("u1", SCHEMA, at=10)
    write = environment.append(write, updates([(1, 10, 1), (2, 11, 2), (1, 12, -1)]), Antichain(15))
    environment.append(write, updates([(3, 15, 1)]), Antichain(20))
    assert rows_of(observer.contents("u1", 10)) == [(1, 1)]
    assert rows_of(observer.contents("u1", 11)) == [(1, 1), (2, 2)]
    assert rows_of(observer.contents("u1", 14)) == [(2, 2)]
    assert rows_of(observer.contents("u1")) == [(2, 2), (3, 1)]
    assert observer.contents("u1").time_range == (0, 20)
    assert rows_of(observer.changes("u1", 10)) == [(1, 10, 1), (1, 12, -1), (2, 11, 2), (3, 15, 1)]
    assert rows_of(observer.changes("u1", 11, 15)) == [(1, 12, -1), (2, 11, 2)]
    assert rows_of(observer.changes("u1", 13, 13)) == []


def test_it_sees_each_commit_at_once(environment: Environment, observer: Observer) -> None:
    _, write = environment.create("u1", SCHEMA)
    for time_ in range(20):
        write = environment.append(write, updates([(time_, time_, 1)]), Antichain(time_ + 1))
        assert len(rows_of(observer.contents("u1"))) == time_ + 1


def test_frontiers_follow_clocks(environment: Environment, observer: Observer) -> None:
    environment.commit(AdvanceClock("tick", None, 100))
    capabilities = [environment.create(id, SCHEMA, at=100) for id in ("u1", "u2", "u10")]
    for read, write in capabilities:
        environment.commit(Follow(write, "tick"), Follow(read, "tick", lag_ms=30))
    environment.commit(AdvanceClock("tick", 100, 150))
    expected = Frontiers(Antichain(120), Antichain(150))
    assert list(observer.collections().items()) == [("u1", expected), ("u2", expected), ("u10", expected)]
    view = observer.look("u2")
    assert view.frontiers == expected == environment.frontiers("u2")
    assert sorted((held.kind, held.at(view.clocks)) for held in view.shard.held.values()) == [("r", 120), ("w", 150)]
    assert observer.contents("u1").time_range == (0, 150)
    with pytest.raises(NotReadable, match="no longer be read at 119"):
        observer.contents("u1", 119)


class Racing(SqliteConsensus):
    """Lets something happen right after each scan."""

    def __init__(self, path: Path, after: Callable[[], None]) -> None:
        super().__init__(path, read_only=True)
        self._after = after

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        found = super().scan(*prefixes)
        self._after()
        return found


def test_a_shard_and_its_clocks_are_of_one_instant(environment: Environment, tmp_path: Path) -> None:
    environment.commit(AdvanceClock("tick", None, 0))
    _, write = environment.create("u1", SCHEMA)
    (write,) = environment.commit(Follow(write, "tick"))

    def commit() -> None:
        now = environment.clock("tick") or 0
        rows = UpdateAndDowngrade(write, updates([(now, now, 1)]), Antichain(now + 1))
        environment.commit(AdvanceClock("tick", now, now + 1), rows)

    commit()
    racing = Racing(tmp_path / "data" / "consensus.db", commit)
    with Observer(racing, LocalBlob(tmp_path / "data" / "blob")) as observer:
        for seen in range(1, 10):
            assert rows_of(observer.contents("u1")) == [(n, 1) for n in range(seen)]


def test_the_life_of_a_collection(environment: Environment, observer: Observer) -> None:
    assert observer.collections() == {}
    with pytest.raises(UnknownId) as unknown:
        observer.look("u1")
    assert unknown.value.hint == "the environment has no collections"

    read, write = environment.create("u1", SCHEMA, at=5)
    with pytest.raises(NotReadable, match="cannot be read at any time yet"):
        observer.contents("u1")
    with pytest.raises(NotReadable, match="cannot be read at 5 yet"):
        observer.contents("u1", 5)
    write = environment.append(write, updates([(1, 7, 1)]), Antichain(9))
    environment.append(write, None, Antichain())
    assert observer.collections() == {"u1": Frontiers(Antichain(5), Antichain())}
    assert observer.contents("u1").time_range == (0, 8), "of a closed collection, that of its last change"
    assert rows_of(observer.contents("u1")) == [(1, 1)] == rows_of(observer.contents("u1", 10**15))
    assert rows_of(observer.changes("u1", 5)) == [(1, 7, 1)]

    environment.drop(read)
    assert observer.collections() == {}
    with pytest.raises(UnknownId) as gone:
        observer.look("u1")
    assert gone.value.detail == "it was dropped"


def test_what_nobody_may_read_is_not_read(environment: Environment, observer: Observer) -> None:
    read, write = environment.create("u1", SCHEMA)
    environment.append(write, updates([(1, 0, 1)]), Antichain(9))
    environment.drop(read)
    assert observer.collections() == {"u1": Frontiers(Antichain(), Antichain(9))}
    with pytest.raises(NotReadable, match="can no longer be read"):
        observer.contents("u1")


def test_changes_are_exact_or_refused(environment: Environment, observer: Observer) -> None:
    read, write = environment.create("u1", SCHEMA)
    environment.append(write, updates([(n, n, 1) for n in range(10)]), Antichain(10))
    environment.downgrade(read, Antichain(4))
    environment.maintenance.compact("u1")
    for lower in (0, 3, 4):
        with pytest.raises(NotReadable) as refused:
            observer.changes("u1", lower)
        assert refused.value.message == f"changes of collection u1 from {lower} on are no longer known"
    assert rows_of(observer.changes("u1", 5)) == [(n, n, 1) for n in range(5, 10)]
    with pytest.raises(NotReadable, match="up to 11 are not complete yet"):
        observer.changes("u1", 5, 11)


@pytest.mark.parametrize(
    ("id", "hint"),
    [("bid", "did you mean bids?"), ("zzz", "the environment has asks, bids")],
)
def test_an_unknown_id_gets_a_hint(environment: Environment, observer: Observer, id: str, hint: str) -> None:
    for known in ("bids", "asks"):
        environment.create(known, SCHEMA)
    with pytest.raises(UnknownId) as unknown:
        observer.contents(id)
    assert unknown.value.hint == hint


def snapshot_of(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Everything about every file below a folder that a change would change."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.stat()
        found[str(path)] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)
    return found


def look_at_everything(data: Path) -> None:
    with Observer.open(data) as observer:
        for id in observer.collections():
            observer.look(id)
            rows_of(observer.contents(id))


def test_nothing_changes_where_nobody_has_it_open(tmp_path: Path) -> None:
    with Environment.open(tmp_path / "data", background=False) as environment:
        fill(environment, "u1", 50_000)
        fill(environment, "u2", 5)
    leftover = tmp_path / "data" / "blob" / ".tmp~" / "leftover"
    leftover.parent.mkdir(exist_ok=True)
    leftover.touch()
    os.utime(leftover, (0, 0))
    before = snapshot_of(tmp_path / "data")
    look_at_everything(tmp_path / "data")
    assert snapshot_of(tmp_path / "data") == before


def test_nobody_is_fenced(environment: Environment, tmp_path: Path) -> None:
    write = fill(environment, "u1", 50_000)
    before = snapshot_of(tmp_path / "data" / "blob")
    look_at_everything(tmp_path / "data")
    assert snapshot_of(tmp_path / "data" / "blob") == before
    environment.append(write, updates([(1, 1, 1)]), Antichain(2))
    environment.close()
    with Environment.open(tmp_path / "data", background=False) as again:
        assert again.epoch == 2


def test_opened_and_closed_meanwhile(tmp_path: Path) -> None:
    """What nobody has open is read without leaving a trace, which must not miss that someone opens it."""
    rounds = 30

    with Environment.open(tmp_path / "data", background=False) as environment:
        _, write = environment.create("u1", SCHEMA)

    def write_in_rounds(write: WriteCapability) -> None:
        for number in range(rounds):
            with Environment.open(tmp_path / "data", background=False) as environment:
                write = environment.append(write, updates([(number, number, 1)]), Antichain(number + 1))

    with Observer.open(tmp_path / "data") as observer, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_in_rounds, write)
        seen = 0
        while not writing.done():
            with suppress(NotReadable):  # before the first
                count = len(rows_of(observer.contents("u1")))
                assert count >= seen
                seen = count
        writing.result()
        assert rows_of(observer.contents("u1")) == [(n, 1) for n in range(rounds)]


MAKE = """
    import os, sys
    from everview.storage.environment import Environment
    from tests.storage.test_observer import fill

    with Environment.open(sys.argv[1], background=False) as environment:
        fill(environment, "u1", 50_000)
        fill(environment, "u2", 5)
        if sys.argv[2] == "crash":
            os._exit(0)
"""

# As a user whom file permissions bind; after the imports, for that user may not reach the libraries.
READ_AS_NOBODY = """
    import os, sys
    from contextlib import suppress
    from tests.storage.test_observer import Observer, rows_of

    with suppress(ImportError):
        import pandas  # which pyarrow looks for when it converts first

    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    with Observer.open(sys.argv[1]) as observer:
        for id in observer.collections():
            print(id, len(rows_of(observer.contents(id))))
"""


@pytest.mark.parametrize("crashed", [False, True], ids=["closed", "crashed"])
def test_a_folder_that_refuses_writes(open_folder: Path, child: Child, crashed: bool) -> None:
    made = child(MAKE, open_folder / "data", "crash" if crashed else "close", environment=WITH_TESTS)
    assert made.returncode == 0, made.stderr
    assert (open_folder / "data" / "consensus.db-wal").exists() == crashed
    for path in [open_folder / "data", *(open_folder / "data").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = snapshot_of(open_folder)
    looked = child(READ_AS_NOBODY, open_folder / "data", environment=WITH_TESTS)
    assert (looked.stdout.split("\n"), looked.stderr) == (["u1 50000", "u2 5", ""], "")
    assert snapshot_of(open_folder) == before


def test_a_folder_without_blobs(tmp_path: Path) -> None:
    with Environment.open(tmp_path / "data", background=False) as environment:
        fill(environment, "u1", 5)
    (tmp_path / "data" / "blob").rmdir()
    look_at_everything(tmp_path / "data")
    assert not (tmp_path / "data" / "blob").exists()


def test_stores_elsewhere(tmp_path: Path, postgres_url: str, s3_url: Callable[[str], str]) -> None:
    places = {"consensus": f"{postgres_url}&everview_schema=observed{os.getpid()}", "blob": s3_url("observed")}
    with Environment.open(tmp_path / "data", background=False, **places) as environment:
        fill(environment, "u1", 50_000)
        with Observer.open(tmp_path / "nothing", **places) as observer:
            assert observer.look("u1").part_keys
            assert rows_of(observer.contents("u1")) == [(n, 1) for n in range(50_000)]
    assert not (tmp_path / "nothing").exists()


def test_no_environment(tmp_path: Path) -> None:
    with pytest.raises(InvalidUsage, match="there is no environment in"):
        Observer.open(tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_newer_format(tmp_path: Path) -> None:
    Environment.open(tmp_path / "data", background=False).close()
    consensus = SqliteConsensus(tmp_path / "data" / "consensus.db")
    consensus.commit({}, {FORMAT: b"99"}, 1 << 40)
    consensus.close()
    with pytest.raises(NewerFormat, match="format 99"):
        Observer.open(tmp_path / "data")


# Damage


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[tuple[Observer, Path]]:
    """A collection of one part, and the file of that part."""
    with Environment.open(tmp_path / "data", background=False) as environment:
        fill(environment, "u1", 50_000)
    (part,) = (tmp_path / "data" / "blob").rglob("*.parquet")
    with Observer.open(tmp_path / "data") as observer:
        yield observer, part


def test_a_part_that_is_wanted_and_missing(damaged: tuple[Observer, Path]) -> None:
    observer, part = damaged
    part.unlink()
    with pytest.raises(Corruption) as found:
        observer.contents("u1")
    assert "collection u1" in found.value.message and part.name in found.value.message


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[:1000] + bytes([b[1000] ^ 1]) + b[1001:]])
def test_a_part_that_is_damaged(damaged: tuple[Observer, Path], change: Callable[[bytes], bytes]) -> None:
    observer, part = damaged
    part.write_bytes(change(part.read_bytes()))
    with pytest.raises(Corruption) as found:
        rows_of(observer.contents("u1"))
    assert found.value.message.startswith("collection u1, part ") and "is damaged" in found.value.message


def test_metadata_that_do_not_decode(tmp_path: Path) -> None:
    with Environment.open(tmp_path / "data", background=False) as environment:
        fill(environment, "u1", 1)
    consensus = SqliteConsensus(tmp_path / "data" / "consensus.db")
    consensus.commit({}, {state_key("u1"): b"[1, 2"}, 1 << 40)
    consensus.close()
    with Observer.open(tmp_path / "data") as observer:
        for look in (observer.collections, lambda: observer.look("u1")):
            with pytest.raises(Corruption, match="the metadata of collection u1 are damaged"):
                look()


# Compaction and collection going on meanwhile


class Vanishing(LocalBlob):
    """Blobs as in an object store: what is removed can no longer be read, open or not. `before` runs first."""

    def __init__(self, root: Path, before: Callable[[], None] = lambda: None) -> None:
        super().__init__(root, read_only=True)
        self._before = before

    def open(self, key: str) -> pa.NativeFile:
        self._before()
        super().open(key).close()
        return pa.PythonFile(_Reopening(self._path(key)), mode="r")


class _Reopening(io.RawIOBase):
    """A file that is opened anew for every read."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._size = path, 0, path.stat().st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read(size)
        except FileNotFoundError as failure:
            raise BlobMissing(f"no blob is stored as {self._path.name}") from failure
        self._at += len(data)
        return data


class Churn:
    """A collection of the even numbers below `count` whose part is replaced by another whenever it is called."""

    def __init__(self, environment: Environment, count: int) -> None:
        self._environment = environment
        self._read, write = environment.create("u1", SCHEMA)
        self._write = environment.append(write, updates([(n, 0, 1) for n in range(0, count, 2)]), Antichain(1))
        self._time = 1

    def __call__(self) -> None:
        """Each row that is added is odd, at a later time."""
        self._write = self._environment.append(
            self._write, updates([(2 * self._time + 1, self._time, 1)]), Antichain(self._time + 1)
        )
        self._time += 1
        self._environment.maintenance.compact("u1")

    def forget_history(self) -> None:
        self._read = self._environment.downgrade(self._read, Antichain(self._time - 1))


def observer_through(blob: Blob, tmp_path: Path) -> Observer:
    return Observer(SqliteConsensus(tmp_path / "data" / "consensus.db", read_only=True), blob)


@pytest.mark.parametrize("times", [1, 3, TRIES_MAX - 1])
def test_a_part_that_goes_before_it_is_opened(environment: Environment, tmp_path: Path, times: int) -> None:
    churn = Churn(environment, 50_000)
    left = iter(range(times))
    blob = Vanishing(tmp_path / "data" / "blob", lambda: churn() if next(left, None) is not None else None)
    with observer_through(blob, tmp_path) as observer:
        assert rows_of(observer.contents("u1", 0)) == [(n, 1) for n in range(0, 50_000, 2)]
        assert next(left, None) is None


def test_parts_that_always_go_before_they_are_opened(environment: Environment, tmp_path: Path) -> None:
    churn = Churn(environment, 50_000)
    with (
        observer_through(Vanishing(tmp_path / "data" / "blob", churn), tmp_path) as observer,
        pytest.raises(Determinate, match="changes faster than it can be read"),
    ):
        observer.contents("u1", 0)


def test_an_interrupted_reading_goes_on_where_it_was(environment: Environment, tmp_path: Path) -> None:
    churn = Churn(environment, 400_000)  # several row groups, so several pieces
    with observer_through(Vanishing(tmp_path / "data" / "blob"), tmp_path) as observer:
        for reading in (observer.contents("u1", 0), observer.changes("u1", 0, 1)):
            numbers, before = [], reading.snapshot.part_keys
            with reading:
                for table in reading:
                    numbers += table["n"].to_pylist()
                    churn()
            exact = sorted(numbers) == list(range(0, 400_000, 2))
            assert exact, f"{len(numbers)} rows, {len(set(numbers))} of them different"
            assert not before & reading.snapshot.part_keys, "it was interrupted"


def test_a_reading_whose_time_is_compacted_away_says_so(environment: Environment, tmp_path: Path) -> None:
    churn = Churn(environment, 400_000)
    with (
        observer_through(Vanishing(tmp_path / "data" / "blob"), tmp_path) as observer,
        observer.contents("u1", 0) as reading,
        pytest.raises(NotReadable, match="can no longer be read at 0"),
    ):
        for _ in reading:
            churn()
            churn.forget_history()


def test_files_that_are_open_are_read_to_the_end(environment: Environment, observer: Observer) -> None:
    churn = Churn(environment, 400_000)
    with observer.contents("u1", 0) as reading:
        churn()
        churn.forget_history()
        churn()
        with pytest.raises(NotReadable):
            observer.contents("u1", 0)
        assert sum(table.num_rows for table in reading) == 200_000


def test_what_is_opened_ahead_is_read_though_it_was_removed(tmp_path: Path) -> None:
    blob = LocalBlob(tmp_path)
    blob.put("a", b"a")
    ahead = PreopenedBlob(blob, ["a"])
    blob.delete("a")
    with ahead.open("a") as file:
        assert file.read() == b"a"
    with pytest.raises(BlobMissing):
        ahead.open("a")


WINDOW, STEP = 80, 200

# At time t the collection holds the rows of the last WINDOW steps, STEP rows a step, whatever is compacted when.
WRITE_AND_COMPACT = """
    import sys
    import pyarrow as pa
    from tests.storage.test_observer import SCHEMA, STEP, WINDOW, updates
    from everview.storage.contract import AdvanceClock, Follow, UpdateAndDowngrade
    from everview.storage.environment import Environment
    from everview.timely.antichain import Antichain

    with Environment.open(sys.argv[1]) as environment:
        now = WINDOW - 1
        environment.commit(AdvanceClock("tick", None, now))
        read, write = environment.create("u1", SCHEMA, at=now)
        _, write = environment.commit(Follow(read, "tick", lag_ms=50), Follow(write, "tick"))
        rows = [(n, now, 1) for n in range(WINDOW * STEP)]
        print("ready", flush=True)
        while True:
            environment.commit(
                AdvanceClock("tick", now, now + 1), UpdateAndDowngrade(write, updates(rows), Antichain(now + 1))
            )
            now += 1
            rows = [(n, now, 1) for n in range(now * STEP, (now + 1) * STEP)]
            rows += [(n - WINDOW * STEP, now, -1) for n, _, _ in rows]
            if now % 2 == 0:
                environment.maintenance.compact("u1")
"""


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """An environment in which another process writes, compacts and removes as fast as it can."""
    code = textwrap.dedent(WRITE_AND_COMPACT)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        env={**os.environ, **WITH_TESTS},
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        try:
            yield tmp_path / "data"
            assert writer.poll() is None, "the writer is still at work"
        finally:
            writer.kill()


def test_beside_a_busy_process(busy: Path, long_forms: bool) -> None:
    begun = time.monotonic()
    times: set[int] = set()
    parts: set[Any] = set()
    exact_changes = 0
    with Observer.open(busy) as observer:
        while (took := time.monotonic() - begun) < 60 and (long_forms or took < 3 or min(len(times), len(parts)) <= 5):
            try:
                reading = observer.contents("u1")
            except NotReadable as error:
                assert "at any time yet" in error.message and not times, "only before the first commit"
                continue
            as_of = reading.time_range[1] - 1
            expected = range((as_of - WINDOW + 1) * STEP, (as_of + 1) * STEP)
            assert rows_of(reading) == [(n, 1) for n in expected]
            times.add(as_of)
            parts |= reading.snapshot.part_keys
            with suppress(NotReadable):  # history that is gone
                changes = observer.changes("u1", as_of)
                exact_changes += 1
                assert {row[1] for row in rows_of(changes)} == set(range(as_of, changes.time_range[1]))
    assert len(times) > 5 and len(parts) > 5 and exact_changes > 0, (len(times), len(parts), exact_changes)
