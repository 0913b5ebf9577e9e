"""Compacting a stream: whoever reads it, before, meanwhile and afterwards, reads the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from everview.cdc import cli
from everview.cdc.codec.contract import codec_for
from everview.cdc.compaction import forget, is_ours, merge
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import CdcError, InvalidUse
from everview.cdc.files import Folder, FolderInlet, FolderOutlet, base_time
from everview.cdc.inspect import Stream, examine, mangle_copy
from everview.cdc.reader import Reader
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.source import Source
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.cdc.histories import random_history
from tests.cdc.shards import COLUMNS, Writing, contents, expected

SCHEMA = StreamSchema(COLUMNS)


@pytest.fixture(params=[".jsonl", ".avro"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "reading", background=False) as opened:
        yield opened


class Streaming:
    """A collection that is written to a stream, step by step."""

    def __init__(self, tmp_path: Path, suffix: str = ".jsonl") -> None:
        self.writing = Writing(tmp_path / "writing")
        self.path = tmp_path / "stream"
        self.folder = Folder(str(self.path))
        self.sink = Sink.create(
            self.writing.environment,
            "out",
            self.writing.reader,
            FolderOutlet(self.folder, codec_for(suffix, SCHEMA)),
        )

    def write(self, until: int) -> None:
        for time in range(self.writing.writer.frontier.only + 1, until + 1):
            self.writing.advance(time)
            self.sink.step()

    def close(self) -> None:
        self.writing.environment.close()


@pytest.fixture
def streaming(tmp_path: Path, suffix: str) -> Iterator[Streaming]:
    made = Streaming(tmp_path, suffix)
    yield made
    made.close()


def source_of(environment: Environment, name: str, path: Path) -> Source:
    inlet = FolderInlet(Folder(str(path), read_only=True), SCHEMA)
    return Source.create(environment, name, name, inlet, SCHEMA)[0]


def drain(source: Source) -> None:
    while source.poll():
        pass


def plainly(folder: Folder) -> tuple[Counter[Any], Any]:
    """What a reader that knows nothing of bases makes of the files: contents, and the frontier."""
    reader: Reader[Any] = Reader()
    totals: Counter[Any] = Counter()
    for info in folder.files():
        for item in folder.items(info.key, SCHEMA):
            assert isinstance(item, Updates | Progress)
            reader.take(item)
    closed = reader.settle()
    for row, _, diff in [] if closed is None else closed.updates:
        totals[row] += diff
    assert reader.contradiction() is None
    return Counter({row: count for row, count in totals.items() if count}), reader.frontier


def test_merging_says_the_same_in_fewer_files(streaming: Streaming) -> None:
    streaming.write(40)
    before = {update for closed in Stream(str(streaming.path)).closed(Reader()) for update in closed.updates}
    files = len(streaming.folder.files())
    done = merge(streaming.folder, SCHEMA, at_least=2)
    assert done.removed == files > 40 and done.written == len(streaming.folder.files()) == 1
    after = {update for closed in Stream(str(streaming.path)).closed(Reader()) for update in closed.updates}
    assert before == after and examine(Stream(str(streaming.path)), thoroughly=True).sound
    assert merge(streaming.folder, SCHEMA, at_least=2).removed == 0


def test_forgetting_leaves_a_plain_stream_that_begins_with_contents(streaming: Streaming) -> None:
    streaming.write(40)
    done = forget(streaming.folder, SCHEMA, 30)
    assert done.base == 29 and done.removed > 50
    assert plainly(streaming.folder) == (expected(39), Antichain(40)), "to anyone's reader"
    stats = examine(Stream(str(streaming.path)), thoroughly=True)
    assert stats.sound and stats.first == 29 and stats.frontier == Antichain(40)
    streaming.write(50)
    assert forget(streaming.folder, SCHEMA, 45).base == 44
    assert forget(streaming.folder, SCHEMA, 20).base is None, "it is gone already"
    assert [base_time(info.key) for info in streaming.folder.files() if base_time(info.key) is not None] == [44]
    assert plainly(streaming.folder) == (expected(49), Antichain(50))


def test_readers_anywhere_end_with_the_same(
    streaming: Streaming, environment: Environment, tmp_path: Path, rng: random.Random
) -> None:
    """Sources that started before, in the middle and behind; steps of writing and compaction in between, at random."""
    sources: list[Source] = []
    upper = 0
    for _ in range(30):
        match rng.randrange(5):
            case 0:
                upper += rng.randrange(1, 8)
                streaming.write(upper)
            case 1:
                merge(streaming.folder, SCHEMA, at_least=rng.choice((2, 10)))
            case 2 if upper > 1:
                forget(streaming.folder, SCHEMA, rng.randrange(1, upper + 1))
            case 3:
                sources.append(source_of(environment, f"in{len(sources)}", streaming.path))
            case _:
                for source in rng.sample(sources, rng.randrange(len(sources) + 1)):
                    source.poll()
    upper += 5
    streaming.write(upper)
    for source in [*sources, source_of(environment, "last", streaming.path)]:
        drain(source)
        assert (source.status.frontier, source.status.stalls) == (Antichain(upper), ())
        assert contents(environment, source.name, upper - 1) == expected(upper - 1)


def test_a_process_that_dies_anywhere_leaves_the_stream_as_it_was(
    tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    streaming = Streaming(tmp_path)
    streaming.write(30)
    steps = 0
    for number in range(200):
        left = number

        class Died(Exception):
            pass

        def dying(real: Any) -> Any:
            def call(self: Folder, *arguments: Any) -> Any:
                nonlocal left
                if left == 0:
                    raise Died
                left -= 1
                return real(self, *arguments)

            return call

        with monkeypatch.context() as patched:
            patched.setattr(Folder, "put", dying(Folder.put))
            patched.setattr(Folder, "remove", dying(Folder.remove))
            try:
                forget(streaming.folder, SCHEMA, 12 + number // 12)
                merge(streaming.folder, SCHEMA, at_least=2)
                break
            except Died:
                steps += 1
        if number % 6 == 0:
            source = source_of(environment, f"in{number}", streaming.path)
            drain(source)
            assert contents(environment, source.name, 29) == expected(29) and not source.status.stalls
            assert examine(Stream(str(streaming.path)), thoroughly=True).sound
    assert steps > 10
    assert plainly(streaming.folder) == (expected(29), Antichain(30))
    streaming.close()


def test_a_reader_at_local_times_jumps_to_the_contents(
    streaming: Streaming, environment: Environment, tmp_path: Path
) -> None:
    inlet = FolderInlet(Folder(str(streaming.path), read_only=True), SCHEMA)
    source, _ = Source.create(environment, "in", "in", inlet, SCHEMA, at=1000)
    streaming.write(10)
    source.poll(1000)
    streaming.write(40)
    forget(streaming.folder, SCHEMA, 35)
    source.poll(1001)
    assert contents(environment, "in", 1000) == expected(9), "the past stays what it was"
    assert contents(environment, "in", 1001) == expected(34)
    source.poll(1002)
    assert contents(environment, "in", 1002) == expected(39)


def test_what_cannot_be_forgotten(tmp_path: Path) -> None:
    streaming = Streaming(tmp_path)
    streaming.write(10)
    with pytest.raises(InvalidUse, match="not complete up to 19"):
        forget(streaming.folder, SCHEMA, 20)
    with pytest.raises(InvalidUse, match="more than 3 rows"):
        forget(streaming.folder, SCHEMA, 9, contents_max=3)
    wrong: list[Message[Any]] = [Updates([((7, "x"), 11, -1)]), Progress(Antichain(10), Antichain(20), ((11, 1),))]
    streaming.folder.put("w.jsonl", codec_for(".jsonl", SCHEMA).encode_file(wrong))
    with pytest.raises(InvalidUse, match="true of no collection"):
        forget(streaming.folder, SCHEMA, 15)
    assert not is_ours("w.jsonl") and not any(base_time(info.key) for info in streaming.folder.files())
    streaming.close()


def test_a_damaged_base_is_refused(tmp_path: Path, environment: Environment) -> None:
    streaming = Streaming(tmp_path)
    streaming.write(10)
    forget(streaming.folder, SCHEMA, 9)
    (name,) = [info.key for info in streaming.folder.files() if base_time(info.key) is not None]
    path = streaming.path / name
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # without its statement
    with pytest.raises(CdcError, match="contents at time 8 cannot be read"):
        drain(source_of(environment, "in", streaming.path))
    streaming.close()


def test_a_base_can_be_mangled_and_shown(tmp_path: Path) -> None:
    streaming = Streaming(tmp_path)
    streaming.write(20)
    forget(streaming.folder, SCHEMA, 10)
    streaming.close()
    mangle_copy(Stream(str(streaming.path)), tmp_path / "mangled", 3, ".jsonl")
    assert plainly(Folder(str(tmp_path / "mangled"))) == (expected(19), Antichain(20))


def test_the_command(tmp_path: Path) -> None:
    streaming = Streaming(tmp_path)
    streaming.write(30)
    streaming.close()
    run = CliRunner().invoke
    assert "wrote 1 files" in run(cli.app, ["compact", str(streaming.path)]).output
    assert "begins with its contents at 24" in run(cli.app, ["compact", str(streaming.path), "--keep", "5ms"]).output
    assert run(cli.app, ["verify", str(streaming.path)]).exit_code == 0
    assert isinstance(run(cli.app, ["compact", str(streaming.path), "--keep", "soon"]).exception, InvalidUse)
    assert plainly(Folder(str(streaming.path))) == (expected(29), Antichain(30))


def test_the_command_forgets_before_a_time(streaming: Streaming) -> None:
    streaming.write(30)
    run, path = CliRunner().invoke, str(streaming.path)
    assert "begins with its contents at 19" in run(cli.app, ["compact", path, "--before", "20"]).output
    assert [base_time(info.key) for info in streaming.folder.files() if base_time(info.key) is not None] == [19]
    assert run(cli.app, ["verify", path]).exit_code == 0
    assert "first time\t19\n" in run(cli.app, ["stats", path]).output
    assert plainly(streaming.folder) == (expected(29), Antichain(30))
    for before in ("20", "7", "1"):
        again = run(cli.app, ["compact", path, "--before", before])
        assert again.exit_code == 0 and "begins" not in again.output, "it is forgotten already"
    streaming.write(40)
    assert "at 39" in run(cli.app, ["compact", path, "--before", "40"]).output, "all that is closed"
    assert plainly(streaming.folder) == (expected(39), Antichain(40))
    files = {info.key for info in streaming.folder.files()}
    refused = run(cli.app, ["compact", path, "--before", "42"]).exception
    assert isinstance(refused, InvalidUse) and "not complete up to 41" in str(refused)
    both = run(cli.app, ["compact", path, "--before", "40", "--keep", "1s"]).exception
    assert isinstance(both, InvalidUse) and "both say what to forget" in str(both)
    assert run(cli.app, ["compact", path, "--before", "0"]).exit_code == 2
    assert {info.key for info in streaming.folder.files()} == files


def test_verify_while_others_compact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that go while they are read are not missed: all of it is read again."""
    streaming = Streaming(tmp_path)
    streaming.write(20)
    stream, real, steps = Stream(str(streaming.path)), Folder.items, iter((12, 16, None))

    def items(self: Folder, name: str, codec: Any) -> Any:
        found = list(real(self, name, codec))
        if base_time(name) is None and (before := next(steps, None)) is not None:
            merge(streaming.folder, SCHEMA, at_least=2)
            forget(streaming.folder, SCHEMA, before)
        return iter(found)

    monkeypatch.setattr(Folder, "items", items)
    stats = examine(stream, thoroughly=True)
    assert stats.sound and stats.frontier == Antichain(20)
    streaming.close()


def test_partially_ordered_streams_are_merged_and_not_forgotten(tmp_path: Path, rng: random.Random) -> None:
    history = random_history(rng, [(1, "a"), (2, None)], (0, 0))
    while len(history.messages) < 2:
        history = random_history(rng, [(1, "a"), (2, None)], (0, 0))
    schema = StreamSchema(COLUMNS, (0, 0))
    folder, codec = Folder(str(tmp_path)), codec_for(".jsonl", schema)
    for number, message in enumerate(history.messages):
        folder.put(f"{0:019d}-0123abcd-{number:06d}.jsonl", codec.encode_file([message]))
    before = examine(Stream(str(tmp_path)), thoroughly=True)
    assert merge(folder, schema, at_least=2).removed == len(history.messages)
    after = examine(Stream(str(tmp_path)), thoroughly=True)
    assert (before.distinct, before.frontier, before.stalls) == (after.distinct, after.frontier, after.stalls)
    with pytest.raises(InvalidUse, match="partially ordered"):
        forget(folder, schema, 3)
