"""Two writers of one stream: what one would say against the other is not written, and it says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from everview.cdc import compaction, watch
from everview.cdc.codec.contract import codec_for
from everview.cdc.compaction import Upkeep, forget, merge
from everview.cdc.contract import Updates
from everview.cdc.errors import CdcError
from everview.cdc.files import Folder, FolderOutlet, base_time
from everview.cdc.inspect import Stream, examine
from everview.cdc.joining import Digest
from everview.cdc.rows import table_of
from everview.cdc.schema import StreamSchema
from everview.cdc.sink import Sink
from everview.cdc.watch import Contradicted, OtherFiles, Standing
from everview.storage.selection import Selection
from everview.timely.antichain import Antichain
from tests.cdc.readers import covered_by
from tests.cdc.shards import COLUMNS, Writing

SCHEMA = StreamSchema(COLUMNS)


class Writer:
    """An environment with its sink into a shared folder."""

    def __init__(self, place: Path, stream: Path, *, joins: bool = False, upper: int = 0) -> None:
        self.writing = Writing(place)
        if upper:
            self.writing.advance(upper)
        self.folder = Folder(str(stream))
        self.outlet = FolderOutlet(self.folder, codec_for(".jsonl", SCHEMA))
        joined = {"joined": covered_by(self.folder, SCHEMA)} if joins else {}
        Sink.create(self.writing.environment, "out", self.writing.reader, self.outlet, **joined)  # type: ignore[arg-type]
        self.open()

    def open(self, *, bulk: bool = False) -> None:
        """Begin a life of the sink; with `bulk`, all is written as Spark writes: by another way than the outlet's."""
        self.outlet = FolderOutlet(self.folder, codec_for(".jsonl", SCHEMA))
        self.in_bulk = 0

        def others(standing: Standing) -> OtherFiles:
            return OtherFiles(Folder(self.folder.url, read_only=True), SCHEMA, self.outlet.writer, standing)

        def write(selection: Selection, advance_to: int | None) -> dict[int, int]:
            messages = list(self.sink._updates(selection, advance_to))
            self.outlet.write(messages)
            self.in_bulk += 1
            return Counter(time for message in messages for _, time, _ in message.updates)  # type: ignore[misc]

        environment, writer = self.writing.environment, write if bulk else None
        self.sink = Sink(environment, "out", self.outlet, bulk=writer, bulk_bytes=0, others=others)

    def write(self, upper: int) -> None:
        self.writing.advance(upper)
        self.sink.step()

    def differ(self, upper: int) -> None:
        """Write something that the other does not."""
        more = [((time, "mine"), time, 1) for time in range(self.writing.writer.frontier.only, upper)]
        environment = self.writing.environment
        self.writing.writer = environment.append(self.writing.writer, table_of(more, COLUMNS), Antichain(upper))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    found: list[Writer] = []

    def make(name: str, **options: Any) -> Writer:
        found.append(Writer(tmp_path / name, tmp_path / "stream", **options))
        return found[-1]

    yield make
    for each in found:
        each.writing.environment.close()


def sound(writer: Writer) -> bool:
    return examine(Stream(writer.folder.url), thoroughly=True).sound


def test_writers_that_agree_go_on(made: Any) -> None:
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    for upper in range(6, 30):
        for writer in (first, second) if upper % 2 else (second, first):
            if upper % 5 or writer is first:
                writer.write(upper)
    assert sound(first) and first.sink.status.frontier == Antichain(29)


def test_the_second_of_two_that_differ_is_stopped_before_it_writes(made: Any) -> None:
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    first.write(10)
    second.differ(10)
    for _ in range(2):
        with pytest.raises(Contradicted, match="says otherwise") as raised:
            second.sink.step()
        assert "time 5" in (raised.value.detail or "")
    assert sound(first), "nothing of it was written"
    second.open()  # a restart does not help
    with pytest.raises(Contradicted):
        second.sink.step()
    first.write(15)
    assert sound(first) and first.sink.status.frontier == Antichain(15)


def test_the_first_is_the_second_if_the_other_is_ahead(made: Any) -> None:
    """It did not know that it would not be alone."""
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    first.write(6)
    second.differ(10)
    with pytest.raises(Contradicted):
        second.sink.step()
    third = made("three", joins=True, upper=6)
    third.differ(12)
    third.sink.step()
    with pytest.raises(Contradicted):
        first.write(11)
    assert sound(first)


def test_both_at_the_same_instant_are_both_stopped(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    first.write(6)
    second.write(6)
    first.writing.advance(9)
    second.differ(9)
    real = first.outlet.write

    def meanwhile(messages: Any) -> None:
        monkeypatch.setattr(first.outlet, "write", real)
        second.sink.step()
        real(messages)

    monkeypatch.setattr(first.outlet, "write", meanwhile)
    with pytest.raises(Contradicted):
        first.sink.step()


@pytest.mark.parametrize("kept", [0, 1_000_000])
def test_what_is_written_in_bulk_is_compared_as_well(made: Any, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(watch, "KEPT_UPDATES", kept)
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    second.open(bulk=True)
    second.write(8)
    assert second.in_bulk, "what agrees is written"
    first.write(12)
    second.differ(12)
    before = second.in_bulk
    with pytest.raises(Contradicted, match="says otherwise"):
        second.sink.step()
    assert second.in_bulk == before and sound(first), "nothing of it was written"


@pytest.mark.parametrize("kept", [0, 1_000_000])
def test_what_others_say_while_one_writes_in_bulk_is_compared(
    made: Any, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Of so much, what was written is not kept: it is read again, where others have spoken meanwhile."""
    monkeypatch.setattr(watch, "KEPT_UPDATES", kept)
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    first.write(6)
    second.write(6)
    first.write(7)
    second.open(bulk=True)
    second.differ(9)
    bulk = second.sink._bulk

    def meanwhile(selection: Selection, advance_to: int | None) -> dict[int, int]:
        first.outlet.write([Updates([((8, "mine"), 8, 5)])])
        return bulk(selection, advance_to)

    monkeypatch.setattr(second.sink, "_bulk", meanwhile)
    with pytest.raises(Contradicted):
        second.sink.step()


def test_one_that_was_away_compares_with_what_is_there_then(made: Any) -> None:
    """It was alone before, and knows its own files of earlier lives from those of others."""
    first = made("one")
    first.write(5)
    joining = made("two", joins=True, upper=5)
    joining.differ(12)
    joining.sink.step()
    first.open()
    with pytest.raises(Contradicted):
        first.write(11)
    assert sound(first), "nothing of it was written"


def test_what_a_life_wrote_that_died_is_not_anothers(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made("one")
    first.write(5)

    def dies(*_: Any) -> None:
        raise OSError("it dies")

    monkeypatch.setattr(first.sink, "_commit", dies)
    with pytest.raises(OSError, match="it dies"):
        first.write(9)
    monkeypatch.undo()
    first.open()
    first.write(12)
    assert not first.sink._shared and sound(first) and first.sink.status.frontier == Antichain(12)


def test_upkeep_merges_and_forgets(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "EVERY_FILES", 20)
    monkeypatch.setattr(compaction, "FORGET_BYTES", 1)
    monkeypatch.setattr(compaction, "merge", lambda folder, schema: merge(folder, schema, at_least=10))
    writer = made("one")
    looking = Upkeep(writer.folder, SCHEMA, retain_ms=10)
    for upper in range(1, 120):
        writer.write(upper)
        looking.after(writer.outlet.files_written, upper)
        if upper % 30 == 0:
            writer.open()
            looking = Upkeep(writer.folder, SCHEMA, retain_ms=10)
    assert not writer.sink._shared, "its own merged files are nobody else's"
    files = writer.folder.files()
    bases = [time for info in files if (time := base_time(info.key)) is not None]
    assert len(files) < 45 and len(bases) == 1 and bases[0] > 60
    assert sound(writer)


def test_a_sink_that_never_lives_long_merges_nonetheless(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "EVERY_FILES", 80)
    writer = made("one")
    done = []
    for upper in range(1, 120):
        writer.write(upper)
        if upper % 10 == 1:  # it writes a few files in each of its lives
            writer.open()
            looking = Upkeep(writer.folder, SCHEMA)
        done.append(looking.after(writer.outlet.files_written, upper))
    merged = [each for each in done if each is not None]
    assert merged and merged[0].removed >= 64 and len(writer.folder.files()) < 120
    assert len(merged) < 10, "not in each of them"
    assert sound(writer)


def test_what_cannot_be_forgotten_is_merged_nonetheless(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "EVERY_FILES", 20)
    monkeypatch.setattr(compaction, "FORGET_BYTES", 1)
    writer = made("one")
    for upper in range(1, 80):
        writer.write(upper)
    before = len(writer.folder.files())
    looking = Upkeep(writer.folder, SCHEMA, retain_ms=-1000)  # beyond what is complete
    with pytest.raises(CdcError, match="not complete"):
        looking.after(writer.outlet.files_written, 80)
    assert len(writer.folder.files()) < before and sound(writer)


def test_one_with_other_contents_cannot_join(made: Any) -> None:
    """Its changes would each be sound, and the stream would not."""
    first = made("one")
    first.write(5)
    second = made("two", joins=True)
    second.differ(3)
    second.writing.advance(9)
    for _ in range(2):
        with pytest.raises(Contradicted, match="the stream tells of another collection") as raised:
            second.sink.step()
        assert "at time 4 the stream has " in (raised.value.detail or "")
        second.open()  # a restart does not help
    first.write(10)
    assert sound(first) and first.sink.status.frontier == Antichain(10)


def test_one_joins_a_stream_that_has_forgotten_the_time(made: Any) -> None:
    first = made("one")
    first.write(5)
    second, other = made("two", joins=True), made("three", joins=True)
    first.write(30)
    forget(first.folder, SCHEMA, 20)
    second.write(10)
    assert second.sink.status.frontier == Antichain(5), "it is compared at the time of the base"
    second.write(40)
    other.differ(15)
    other.writing.advance(50)
    with pytest.raises(Contradicted, match="the stream tells of another collection"):
        other.sink.step()
    first.write(41)
    assert sound(first) and second.sink.status.frontier == Antichain(40)


def test_what_another_says_late_is_compared(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was about to write when this one did, and is slow: both stop, though this one has gone on meanwhile."""
    monkeypatch.setattr(watch, "RECENT_S", 1e9)
    first = made("one")
    first.write(5)
    second = made("two", joins=True, upper=5)
    first.write(6)
    second.write(6)
    first.writing.advance(9)
    second.differ(9)
    real = first.outlet.write

    def slowly(messages: Any) -> None:
        monkeypatch.setattr(first.outlet, "write", real)
        for upper in (9, 11, 13):
            second.write(upper)
        real(messages)

    monkeypatch.setattr(first.outlet, "write", slowly)
    with pytest.raises(Contradicted):
        first.sink.step()
    second.writing.advance(15)
    with pytest.raises(Contradicted):
        second.sink.step()


def test_contents_are_told_apart() -> None:
    """Also where Python has one hash for two numbers."""

    def digest(*rows: tuple[Any, ...]) -> Digest:
        found = Digest()
        found.add((row, 0, 1) for row in rows)
        return found

    assert digest((-1, "a")) != digest((-2, "a")) and digest((Decimal(-1),)) != digest((Decimal(-2),))
    assert digest((1,), (2,)) == digest((2,), (1,)) != digest((1,), (1,), (2,))
    assert digest((1.0, Decimal("1.50"))) == digest((1.0, Decimal("1.5")))
