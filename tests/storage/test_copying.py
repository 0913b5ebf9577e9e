"""Copies hold what the source held at one instant, whatever is written and removed meanwhile."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from everview.storage.blob.contract import Blob
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.codec import BLOB_ID, FORMAT
from everview.storage.consensus.contract import Consensus
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import UpdateAndDowngrade, WriteCapability
from everview.storage.copying import INSTANTS_MAX, Progress, copy_environment
from everview.storage.environment import Environment
from everview.storage.errors import Corruption, Determinate, InvalidUsage
from everview.storage.opening import open_stores
from everview.timely.antichain import Antichain

SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False)])
ROWS = 40_000  # of a batch: too many for one that is inline


def rows_at(environment: Environment, id: str, time: int) -> list[int]:
    with environment.contents(id, time) as selection:
        return sorted(selection.contents()["n"].to_pylist())


def written(environment: Environment, writer: WriteCapability, time: int, rows: range) -> WriteCapability:
    table = pa.table({"_time": [time] * len(rows), "_diff": [1] * len(rows), "n": list(rows)})
    (writer,) = environment.commit(UpdateAndDowngrade(writer, table, Antichain(time + 1)))
    return writer


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "source", background=False) as environment:
        yield environment


def stores_of(folder: Path) -> tuple[Consensus, Blob]:
    return open_stores(folder, None, None, as_target=True)


def copied(tmp_path: Path, name: str, source: Path) -> Environment:
    copy_environment(open_stores(source, None, None, read_only=True), stores_of(tmp_path / name))
    return Environment.open(tmp_path / name, background=False)


def test_a_copy_is_equal_at_every_time_and_goes_on(source: Environment, tmp_path: Path) -> None:
    _, writer = source.create("u1", SCHEMA, at=1)
    for time in range(1, 5):
        writer = written(source, writer, time, range(time * ROWS, (time + 1) * ROWS))
    writer = written(source, writer, 5, range(3))
    with copied(tmp_path, "copy", tmp_path / "source") as copy:
        assert copy.frontiers("u1") == source.frontiers("u1")
        for time in range(1, 6):
            assert rows_at(copy, "u1", time) == rows_at(source, "u1", time)
        assert copy.epoch == source.epoch + 1
        again = copy.present("u1", writer.token)
        assert isinstance(again, WriteCapability)
        written(copy, again, 6, range(10, 17))
        assert len(rows_at(copy, "u1", 6)) == len(rows_at(copy, "u1", 5)) + 7
    written(source, writer, 6, range(1))  # the source goes on as well


def test_a_copy_of_what_is_written_and_compacted_meanwhile(source: Environment, tmp_path: Path) -> None:
    """Each copy is one instant: a time is in it whole, and all before it."""
    _, writer = source.create("u1", SCHEMA, at=1)
    over = threading.Event()
    failures: list[BaseException] = []

    def write(writer: WriteCapability) -> None:
        try:
            for time in range(1, 10_000):
                if over.is_set():
                    return
                writer = written(source, writer, time, range(time * ROWS, (time + 1) * ROWS))
                source.maintenance.compact("u1")  # what was there before is removed
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write, args=(writer,))
    thread.start()
    try:
        for number in range(3):
            with copied(tmp_path, f"copy{number}", tmp_path / "source") as copy:
                upper = copy.frontiers("u1").upper
                end = upper.only
                if end > 1:
                    assert rows_at(copy, "u1", end - 1) == list(range(ROWS, end * ROWS))
    finally:
        over.set()
        thread.join()
    assert not failures


class Leaky(MemoryBlob):
    """Objects vanish when they are opened, as if the owner had just removed them."""

    def __init__(self, vanish: Callable[[str], bool]) -> None:
        super().__init__()
        self._vanish = vanish

    def open(self, key: str) -> pa.NativeFile:
        if self._vanish(key):
            self.delete(key)
        return super().open(key)


def test_it_gives_up_where_objects_are_missing(tmp_path: Path) -> None:
    consensus, blob = MemoryConsensus(), Leaky(lambda key: key.startswith("parts/"))
    environment = Environment(consensus, blob, tmp_path, background=False)
    _, writer = environment.create("u1", SCHEMA, at=1)
    written(environment, writer, 1, range(ROWS))
    target = MemoryConsensus(), MemoryBlob()
    with pytest.raises(Determinate, match=f"removed {INSTANTS_MAX} times"):
        copy_environment((consensus, blob), target)
    with pytest.raises(InvalidUsage, match="has not finished"):
        Environment(*target, tmp_path / "t", background=False)


def test_an_interrupted_copy_goes_on(source: Environment, tmp_path: Path) -> None:
    _, writer = source.create("u1", SCHEMA, at=1)
    for time in range(1, 4):
        writer = written(source, writer, time, range(time * ROWS, (time + 1) * ROWS))

    class Interrupted(Exception):
        pass

    def interrupt(progress: Progress) -> None:
        if progress.objects == 2:
            raise Interrupted

    read = open_stores(tmp_path / "source", None, None, read_only=True)
    with pytest.raises(Interrupted):
        copy_environment(read, stores_of(tmp_path / "copy"), interrupt)
    with pytest.raises(InvalidUsage, match="has not finished"):
        Environment.open(tmp_path / "copy", background=False)
    with copied(tmp_path, "copy", tmp_path / "source") as copy:
        assert rows_at(copy, "u1", 3) == rows_at(source, "u1", 3)


def test_what_is_there_is_not_overwritten(source: Environment, tmp_path: Path) -> None:
    source.create("u1", SCHEMA, at=1)
    read = open_stores(tmp_path / "source", None, None, read_only=True)
    Environment.open(tmp_path / "used", background=False).close()
    with pytest.raises(InvalidUsage, match="an environment at the target already"):
        copy_environment(read, stores_of(tmp_path / "used"))
    LocalBlob(tmp_path / "other" / "blob").put("something", b"else")
    with pytest.raises(InvalidUsage, match="store of data is not empty"):
        copy_environment(read, stores_of(tmp_path / "other"))
    with pytest.raises(InvalidUsage, match="there is no environment to copy"):
        copy_environment((MemoryConsensus(), MemoryBlob()), (MemoryConsensus(), MemoryBlob()))


def test_damage_is_not_copied(source: Environment, tmp_path: Path) -> None:
    _, writer = source.create("u1", SCHEMA, at=1)
    written(source, writer, 1, range(ROWS))
    (part,) = (part for batch in source.shard("u1").batches.values() for part in batch.parts)
    path = tmp_path / "source" / "blob" / part.key
    damaged = bytearray(path.read_bytes())
    damaged[random.Random(1).randrange(len(damaged))] ^= 1
    path.chmod(0o600)
    path.write_bytes(damaged)
    with pytest.raises(Corruption, match="is damaged"):
        copied(tmp_path, "copy", tmp_path / "source")


def test_a_copy_of_a_shared_environment_gets_a_mark_of_its_own(tmp_path: Path) -> None:
    consensus, blob = SqliteConsensus(tmp_path / "c.db"), LocalBlob(tmp_path / "blob")
    Environment(consensus, blob, tmp_path / "s", background=False, shared=True).close()
    consensus, blob = SqliteConsensus(tmp_path / "c.db"), LocalBlob(tmp_path / "blob")
    target = MemoryConsensus(), MemoryBlob()
    copy_environment((consensus, blob), target)
    assert BLOB_ID not in target[0].get([BLOB_ID]) and FORMAT in target[0].get([FORMAT])
    Environment(*target, tmp_path / "t", background=False, shared=True).close()
