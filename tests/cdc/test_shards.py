"""From shard to shard through files: sinks and sources, restarts anywhere, mangled folders, two writers, one killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.cdc.codec.contract import codec_for
from everview.cdc.contract import GAP, MISSING, Progress, Updates
from everview.cdc.errors import InvalidUse
from everview.cdc.files import Folder, FolderInlet, FolderOutlet
from everview.cdc.mangle import mangle
from everview.cdc.rows import table_of
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.storage.contract import Extend, UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.cdc.readers import covered_by
from tests.cdc.shards import COLUMNS, Writing, contents, expected

SCHEMA = StreamSchema(COLUMNS)


@pytest.fixture(params=[".jsonl", ".avro"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    made = Writing(tmp_path / "writing")
    yield made
    made.environment.close()


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "reading", background=False) as environment:
        yield environment


def outlet(path: Path, suffix: str = ".jsonl") -> FolderOutlet:
    return FolderOutlet(Folder(str(path)), codec_for(suffix, SCHEMA))


def inlet(path: Path) -> FolderInlet:
    return FolderInlet(Folder(str(path)), SCHEMA)


def drain(source: Source) -> None:
    while source.poll():
        pass


def check_copy(environment: Environment, upper: int, start: int = 0) -> None:
    assert environment.frontiers("copy").upper == Antichain(upper)
    for as_of in range(start, upper):
        assert contents(environment, "copy", as_of) == expected(as_of), as_of


def test_a_sink_and_a_source_follow(writing: Writing, reading: Environment, tmp_path: Path, suffix: str) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream", suffix))
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    assert not sink.step(), "nothing is complete yet"
    for upper in (1, 2, 9, 10, 30):
        writing.advance(upper)
        assert sink.step() and not sink.step()
        drain(source)
        check_copy(reading, upper)
    assert sink.status.frontier == sink.status.upper == source.status.frontier == Antichain(30)
    assert source.status.updates_total == sink.status.updates_total > 0
    assert (source.status.open_updates, source.status.stalls) == (0, ())


def test_a_sink_that_starts_later_writes_a_snapshot(writing: Writing, reading: Environment, tmp_path: Path) -> None:
    writing.advance(20)
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"), start=12)
    sink.step()
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    drain(source)
    assert contents(reading, "copy", 11) == Counter()
    check_copy(reading, 20, start=12)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_stream_keeps_the_columns_that_it_began_with(
    writing: Writing, reading: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: bool
) -> None:
    """The shard gets one more, and rows that change only there: the stream says each thing once, or not at all."""
    monkeypatch.setattr("everview.storage.selection.PASS_BYTES", 100)  # many passes
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    writing.advance(10)
    if not snapshot:  # else the first that is written is written when the column is there
        sink.step()
    wider = pa.schema([*COLUMNS, ("more", pa.int32())])
    more = []
    for row, count in expected(9).items():
        more += [((*row, None), 10, -count), ((*row, 1), 10, 1), *([((*row, 2), 10, count - 1)] if count > 1 else [])]
    more += [((-7, "new", 1), 10, 1), ((-7, "new", 2), 10, 1)]
    extended = Extend(writing.writer, wider)
    _, writing.writer = writing.environment.commit(
        extended, UpdateAndDowngrade(writing.writer, table_of(more, wider), Antichain(11))
    )
    before = sink.status.updates_total
    sink = Sink(writing.environment, "out", outlet(tmp_path / "stream"))
    sink.step()
    if not snapshot:
        assert sink.status.updates_total == before + 1
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    drain(source)
    for as_of in range(10):
        assert contents(reading, "copy", as_of) == expected(as_of), as_of
    assert contents(reading, "copy", 10) == expected(9) + Counter({(-7, "new"): 2})
    assert (source.status.open_updates, source.status.stalls) == (0, ())


def test_the_end_of_a_shard_is_the_end_of_the_stream(writing: Writing, reading: Environment, tmp_path: Path) -> None:
    writing.advance(5)
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    writing.environment.drop(writing.writer)
    assert sink.step() and not sink.step()
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    drain(source)
    assert reading.frontiers("copy").upper == Antichain() == source.status.frontier
    assert contents(reading, "copy", 100) == expected(4)
    assert not source.poll()


def test_at_local_times_all_that_closed_becomes_visible_at_once(
    writing: Writing, reading: Environment, tmp_path: Path
) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA, at=1000)
    writing.advance(10)
    sink.step()
    source.poll(at=1005)
    assert contents(reading, "copy", 1004) == Counter()
    assert contents(reading, "copy", 1005) == expected(9)
    source.poll(at=1007)
    assert reading.frontiers("copy").upper == Antichain(1008), "it goes along with local time"
    writing.advance(20)
    sink.step()
    source = Source(reading, "in", inlet(tmp_path / "stream"), SCHEMA)
    source.poll(at=1010)
    assert contents(reading, "copy", 1009) == expected(9)
    assert contents(reading, "copy", 1010) == expected(19)


def test_a_writer_that_dies_before_it_commits_says_the_same_again(
    writing: Writing, reading: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    writing.advance(4)
    sink.step()
    writing.advance(9)
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "_commit", lambda *_: (_ for _ in ()).throw(OSError("the machine is gone")))
        with pytest.raises(OSError, match="gone"):
            sink.step()
    writing.advance(12)
    sink = Sink(writing.environment, "out", outlet(tmp_path / "stream"))
    sink.step()
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    drain(source)
    check_copy(reading, 12)


def test_a_source_that_dies_anywhere_goes_on_exactly(
    writing: Writing, reading: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    commit = reading.commit
    for upper in range(1, 40, 3):
        writing.advance(upper)
        sink.step()
        before_it = rng.random() < 0.5

        def dying(*commands: Any, before_it: bool = before_it) -> Any:
            if not before_it:
                commit(*commands)
            raise OSError("the connection is gone")

        with monkeypatch.context() as patch:
            patch.setattr(reading, "commit", dying)
            with pytest.raises(OSError, match="gone"):
                source.poll()
        if rng.random() < 0.5:
            source = Source(reading, "in", inlet(tmp_path / "stream"), SCHEMA)
        drain(source)
        check_copy(reading, upper)
    spent = reading.scan("cdc/spent/in/")
    assert len(spent) == len(inlet(tmp_path / "stream").folder.files()), "what is done is never read again"


def test_a_mangled_folder(
    writing: Writing, reading: Environment, tmp_path: Path, rng: random.Random, suffix: str
) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream", suffix))
    for upper in (3, 11, 12, 40):
        writing.advance(upper)
        sink.step()
    folder = Folder(str(tmp_path / "stream"))
    messages = [item for info in folder.files() for item in folder.items(info.key, SCHEMA)]
    mangled = mangle([m for m in messages if isinstance(m, Updates | Progress)], rng)
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "mangled"), SCHEMA)
    last = 0
    for number, message in enumerate(mangled):
        other = codec_for(rng.choice([".jsonl", ".avro"]), SCHEMA)
        name = f"{rng.randrange(1000):04d}-{number}{other.suffix}"
        (tmp_path / "mangled" / name).write_bytes(other.encode_file([message]))
        if rng.random() < 0.3:
            source.poll()
        if rng.random() < 0.1:
            source = Source(reading, "in", inlet(tmp_path / "mangled"), SCHEMA)
        upper = reading.frontiers("copy").upper.only
        assert upper >= last
        last = upper
    drain(source)
    check_copy(reading, 40)


def test_two_writers_one_of_which_dies(tmp_path: Path, reading: Environment, rng: random.Random) -> None:
    """Two environments maintain the same collection and write one stream; a reader notices nothing."""
    both = [Writing(tmp_path / name) for name in ("left", "right")]
    sinks = [Sink.create(each.environment, "out", each.reader, outlet(tmp_path / "stream")) for each in both]
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    alive = [0, 1]
    for step in range(30):
        chosen = rng.choice(alive)
        both[chosen].advance(both[chosen].writer.frontier.only + rng.randint(1, 4))
        sinks[chosen].step()
        if step == 15:
            dead = rng.choice(alive)
            alive.remove(dead)
            both[dead].environment.close()
        source.poll()
        assert source.status.stalls == ()
    (left,) = alive
    upper = both[left].writer.frontier.only
    drain(source)
    found = source.status.frontier.only
    assert isinstance(found, int) and found >= upper
    check_copy(reading, found)
    both[left].environment.close()


def test_a_third_writer_joins_where_the_stream_stands(writing: Writing, reading: Environment, tmp_path: Path) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    writing.advance(10)
    sink.step()
    late = Writing(tmp_path / "late")
    late.advance(25)
    joined = covered_by(Folder(str(tmp_path / "stream")), SCHEMA)
    assert joined == Antichain(10)
    Sink.create(late.environment, "out", late.reader, outlet(tmp_path / "stream"), joined=joined).step()
    late.reader = late.environment.downgrade(late.reader, Antichain(20))
    with pytest.raises(InvalidUse, match="gap"):
        Sink.create(late.environment, "other", late.reader, outlet(tmp_path / "stream"), joined=joined)
    late.environment.close()
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    drain(source)
    check_copy(reading, 25)


def test_what_cannot_be_decoded_is_kept_and_reported(writing: Writing, reading: Environment, tmp_path: Path) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    writing.advance(6)
    sink.step()
    updates = next(path for path in sorted((tmp_path / "stream").glob("*.jsonl")) if b'"updates"' in path.read_bytes())
    whole = updates.read_bytes()
    updates.write_bytes(whole.replace(b'{"updates"', b'{"upsets"', 1))
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    for _ in range(2):
        drain(source)
        assert source.status.bad_records == 1 and source.status.bad[0].piece == updates.name
        assert source.status.bad[0].raw.startswith(b'{"upsets"')
        assert source.status.stalls[0].reason == MISSING
        source = Source(reading, "in", inlet(tmp_path / "stream"), SCHEMA)
    (tmp_path / "stream" / "mended.jsonl").write_bytes(whole)
    drain(source)
    check_copy(reading, 6)


def test_files_that_are_still_being_written(
    writing: Writing, reading: Environment, tmp_path: Path, suffix: str
) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "whole", suffix))
    for upper in (5, 14):
        writing.advance(upper)
        sink.step()
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    for path in sorted((tmp_path / "whole").glob(f"*{suffix}")):
        data = path.read_bytes()
        for size in {1, len(data) // 3, len(data) // 2, len(data) - 2}:
            (tmp_path / "stream" / path.name).write_bytes(data[:size])
            drain(source)
            assert source.status.bad_records == 0
            if size < len(data) - 2:
                assert source.status.partial in ((path.name,), ())
        (tmp_path / "stream" / path.name).write_bytes(data)
        drain(source)
        assert source.status.partial == ()
    check_copy(reading, 14)


def test_files_of_another_schema_are_reported(reading: Environment, tmp_path: Path) -> None:
    import pyarrow as pa

    other = codec_for(".jsonl", StreamSchema(pa.schema([("n", pa.int32())])))
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    (tmp_path / "stream" / "other.jsonl").write_bytes(other.encode_file([]))
    source.poll()
    assert "has other columns" in source.status.bad[0].reason


class CommitsFirst(Sink):
    """A defect: it remembers that it wrote before it has."""

    def _write(self, upper: int) -> dict[int, int]:
        before = self._next, self._snapshot
        self._commit(upper, 0)
        self._next, self._snapshot = before
        return super()._write(upper)


@pytest.mark.parametrize("kind", [Sink, CommitsFirst])
def test_a_writer_that_dies_while_it_writes(
    kind: type[Sink], writing: Writing, reading: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = kind.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    writing.advance(4)
    sink.step()
    writing.advance(9)
    with monkeypatch.context() as patch:
        patch.setattr(FolderOutlet, "write", lambda *_: (_ for _ in ()).throw(OSError("the machine is gone")))
        with pytest.raises(OSError, match="gone"):
            sink.step()
    writing.advance(12)
    kind(writing.environment, "out", outlet(tmp_path / "stream")).step()
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    drain(source)
    if kind is Sink:
        check_copy(reading, 12)
    else:
        assert source.status.frontier == Antichain(4) and source.status.stalls[0].reason == GAP, "the defect is seen"


def test_a_poll_reads_so_much_and_leaves_the_rest_for_the_next(
    writing: Writing, reading: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    for upper in range(1, 20):
        writing.advance(upper)
        sink.step()
    monkeypatch.setattr("everview.cdc.source.POLL_BYTES", 1)
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    polls = 0
    while source.poll():
        polls += 1
    assert polls == len(Folder(str(tmp_path / "stream")).files())
    check_copy(reading, 19)


def test_files_that_are_removed_are_forgotten(writing: Writing, reading: Environment, tmp_path: Path) -> None:
    sink = Sink.create(writing.environment, "out", writing.reader, outlet(tmp_path / "stream"))
    source, _ = Source.create(reading, "in", "copy", inlet(tmp_path / "stream"), SCHEMA)
    for upper in (3, 6):
        writing.advance(upper)
        sink.step()
        drain(source)
        for path in (tmp_path / "stream").glob("*.jsonl"):
            path.unlink()
    drain(source)
    assert reading.scan("cdc/spent/in/") == {}
    check_copy(reading, 6)
