"""Files that are repaired, replaced or removed take effect at the next look, without a restart."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everview.cdc import listing
from everview.cdc.codec.contract import codec_for
from everview.cdc.compaction import forget
from everview.cdc.contract import DIFFS, MISSING, NEGATIVE, Message, Progress, Updates
from everview.cdc.files import Folder, FolderInlet
from everview.cdc.listing import FileInfo, LocalListing, RemoteListing
from everview.cdc.schema import StreamSchema
from everview.cdc.source import Source
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.cdc.shards import COLUMNS, contents

SCHEMA = StreamSchema(COLUMNS)
A, B = (1, "a"), (2, "b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "stream"
    made.mkdir()
    return made


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "environment", background=False) as opened:
        yield opened


@pytest.fixture
def source(environment: Environment, folder: Path) -> Source:
    inlet = FolderInlet(Folder(str(folder), read_only=True), SCHEMA)
    return Source.create(environment, "in", "in", inlet, SCHEMA)[0]


def write(path: Path, *messages: Message[Any]) -> None:
    path.write_bytes(codec_for(".jsonl", SCHEMA).encode_file(messages))


def until(upper: int, *counts: tuple[int, int], lower: int = 0) -> Progress:
    return Progress(Antichain(lower), Antichain(upper), counts)


def drain(source: Source) -> None:
    while source.poll():
        pass


def test_a_record_that_is_repaired_in_place(environment: Environment, folder: Path, source: Source) -> None:
    write(folder / "1.jsonl", Updates([(A, 1, 1)]), until(5, (1, 1)))
    good = (folder / "1.jsonl").read_bytes()
    (folder / "1.jsonl").write_bytes(good.replace(b'"a"', b'"a '))
    drain(source)
    assert source.status.bad_records == 1 and source.status.frontier == Antichain(1)
    (folder / "1.jsonl").write_bytes(good)  # of the same size
    drain(source)
    assert (source.status.bad_records, source.status.bad) == (0, ())
    assert source.status.frontier == Antichain(5) and contents(environment, "in", 4) == {A: 1}


def test_a_file_that_contradicts_another_is_removed(environment: Environment, folder: Path, source: Source) -> None:
    write(folder / "1.jsonl", Updates([(A, 1, 1)]))
    write(folder / "2.jsonl", Updates([(A, 1, 2)]), until(5, (1, 1)))
    drain(source)
    assert [stall.reason for stall in source.status.stalls] == [DIFFS]
    (folder / "1.jsonl").unlink()
    drain(source)
    assert not source.status.stalls and contents(environment, "in", 4) == {A: 2}


def test_of_a_file_that_is_replaced_nothing_stays(environment: Environment, folder: Path, source: Source) -> None:
    """With the row that was there before, the count would be met and the time closed."""
    write(folder / "1.jsonl", Updates([(A, 1, 1)]), until(5, (1, 2)))
    drain(source)
    assert [stall.reason for stall in source.status.stalls] == [MISSING]
    write(folder / "1.jsonl", Updates([(B, 1, 1)]), until(5, (1, 2)))
    drain(source)
    assert [stall.reason for stall in source.status.stalls] == [MISSING]
    write(folder / "2.jsonl", Updates([((3, "c"), 1, 1)]))
    drain(source)
    assert contents(environment, "in", 4) == {B: 1, (3, "c"): 1}


def test_a_file_that_grows_is_not_read_as_another(environment: Environment, folder: Path, source: Source) -> None:
    write(folder / "1.jsonl", Updates([(A, 1, 1)]))
    drain(source)
    with (folder / "1.jsonl").open("ab") as file:
        codec = codec_for(".jsonl", SCHEMA)
        file.write(codec.encode(Updates([(B, 1, 1)])) + b"\n" + codec.encode(until(5, (1, 2))) + b"\n")
    drain(source)
    assert contents(environment, "in", 4) == {A: 1, B: 1}


def test_a_spent_file_that_grows_is_read_again(environment: Environment, folder: Path, source: Source) -> None:
    codec = codec_for(".jsonl", SCHEMA)
    write(folder / "log.jsonl", Updates([(A, 1, 1)]), until(5, (1, 1)))
    for time in range(5, 30, 5):
        drain(source)
        assert source.status.frontier == Antichain(time)
        with (folder / "log.jsonl").open("ab") as file:
            file.write(codec.encode(until(time + 5, lower=time)) + b"\n")
    drain(source)
    assert source.status.frontier == Antichain(30)


def test_what_was_saved_in_earlier_days_is_understood(folder: Path) -> None:
    """Then the size of a spent file was all that was remembered of it."""
    write(folder / "1.jsonl", until(5))
    write(folder / "2.jsonl", until(5))
    inlet = FolderInlet(Folder(str(folder), read_only=True), SCHEMA)
    inlet.restore({"1.jsonl": str((folder / "1.jsonl").stat().st_size).encode(), "2.jsonl": b"7"})
    inlet.disturbed()
    assert [info.key for info in inlet.waiting()] == ["2.jsonl"]


# Resets


@pytest.fixture
def local(environment: Environment, folder: Path) -> Source:
    """A source at local times."""
    inlet = FolderInlet(Folder(str(folder), read_only=True), SCHEMA)
    return Source.create(environment, "local", "local", inlet, SCHEMA, at=100)[0]


def at_local(environment: Environment, source: Source) -> int:
    """Poll to the end, each time at a local time of its own; gives the last."""
    at = environment.frontiers("local").upper.only
    while source.poll(at):
        at += 1
    return at


def test_history_that_was_repaired_after_it_was_read(environment: Environment, folder: Path, local: Source) -> None:
    write(folder / "1.jsonl", Updates([(A, 1, 1), (B, 1, 1)]), until(5, (1, 2)))
    first = at_local(environment, local)
    write(folder / "1.jsonl", Updates([(A, 1, 3)]), until(5, (1, 1)))
    assert contents(environment, "local", at_local(environment, local)) == {A: 1, B: 1}, "that was closed"
    local.reset()
    local.advance(environment.frontiers("local").upper.only)
    before = environment.frontiers("local").upper.only - 1
    assert contents(environment, "local", before) == {A: 1, B: 1}, "until all of it is read"
    after = at_local(environment, local)
    assert contents(environment, "local", after) == {A: 3}
    assert contents(environment, "local", first) == {A: 1, B: 1}, "the past stays what it was"
    write(folder / "2.jsonl", Updates([(A, 6, -3)]), until(9, (6, 1), lower=5))
    assert contents(environment, "local", at_local(environment, local)) == {}


def test_a_reset_goes_on_after_a_restart_and_in_parts(
    environment: Environment, folder: Path, local: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    for time in range(20):
        write(folder / f"{time:02d}.jsonl", Updates([((time, "x"), time, 1)]), until(time + 1, (time, 1), lower=time))
    at_local(environment, local)
    monkeypatch.setattr("everview.cdc.source.POLL_UPDATES", 3)
    write(folder / "04.jsonl", Updates([(A, 4, 1)]), until(5, (4, 1), lower=4))
    local.reset()
    for _ in range(3):
        assert local.poll(environment.frontiers("local").upper.only)
    inlet = FolderInlet(Folder(str(folder), read_only=True), SCHEMA)
    again = Source(environment, "local", inlet, SCHEMA)
    found = contents(environment, "local", at_local(environment, again))
    assert found == {A: 1, **{(n, "x"): 1 for n in range(20) if n != 4}}
    assert again.status.frontier == Antichain(20)


def test_a_reset_begins_with_a_base(environment: Environment, folder: Path, local: Source) -> None:
    for time in range(20):
        name = f"{time:019d}-aaaaaaaa-{time:06d}.jsonl"
        write(folder / name, Updates([((time, "x"), time, 1)]), until(time + 1, (time, 1), lower=time))
    at_local(environment, local)
    forget(Folder(str(folder)), SCHEMA, 10)
    local.reset()
    assert len(contents(environment, "local", at_local(environment, local))) == 20
    write(folder / "z.jsonl", Updates([((1, "x"), 20, -2)]), until(30, (20, 1), lower=20))
    local.reset()
    at_local(environment, local)
    assert [stall.reason for stall in local.status.stalls] == [NEGATIVE] and local.status.frontier == Antichain(20)


def test_what_is_put_together_is_kept_in_storage(
    environment: Environment, folder: Path, local: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Piece by piece, and nothing of it stays: neither after a reset, nor after one that begins anew, nor of a base."""
    monkeypatch.setattr("everview.cdc.source.SETTLE_UPDATES", 3)
    monkeypatch.setattr("everview.cdc.source.POLL_UPDATES", 4)
    for time in range(30):
        name, row = f"{time:019d}-aaaaaaaa-{time:06d}.jsonl", (time % 20, "x")
        write(folder / name, Updates([(row, time, 1)]), until(time + 1, (time, 1), lower=time))
    at_local(environment, local)
    before = environment.ids()
    write(folder / f"{7:019d}-aaaaaaaa-{7:06d}.jsonl", Updates([(A, 7, 5)]), until(8, (7, 1), lower=7))
    local.reset()
    assert local.poll(environment.frontiers("local").upper.only) and len(environment.ids()) == len(before) + 1
    local.reset()
    expected = {(n, "x"): 2 if n < 10 else 1 for n in range(20)} | {(7, "x"): 1, A: 5}
    assert contents(environment, "local", at_local(environment, local)) == expected
    assert environment.ids() == before
    forget(Folder(str(folder)), SCHEMA, 25)
    inlet = FolderInlet(Folder(str(folder), read_only=True), SCHEMA)
    late, _ = Source.create(environment, "late", "late", inlet, SCHEMA, at=100)
    at = 100
    while late.poll(at):
        at += 1
    assert contents(environment, "late", at) == expected
    assert environment.ids() == sorted([*before, "late"])


# Listings


def ours(key: str) -> bool:
    return key.endswith(".jsonl")


def names(found: list[FileInfo]) -> list[str]:
    return [info.key for info in found]


def test_a_listing_tells_what_changed(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("a.jsonl", "_hidden.jsonl", "no.txt", "deep/b.jsonl", "deep/er/c.jsonl"):
        (tmp_path / name).write_text("1")
    local = LocalListing(tmp_path, ours)
    assert names(local.look().fresh) == ["a.jsonl", "deep/b.jsonl", "deep/er/c.jsonl"]
    assert local.look() == listing.Look()
    (tmp_path / "deep" / "er" / "c.jsonl").unlink()
    (tmp_path / "deep" / "er" / "d.jsonl").write_text("1")
    (tmp_path / "a.jsonl").write_text("12")
    look = local.look()
    assert (names(look.fresh), look.gone) == (["a.jsonl", "deep/er/d.jsonl"], ["deep/er/c.jsonl"])
    os.rename(tmp_path / "deep", tmp_path / "steep")
    look = local.look()
    assert names(look.fresh) == ["steep/b.jsonl", "steep/er/d.jsonl"]
    assert sorted(look.gone) == ["deep/b.jsonl", "deep/er/d.jsonl"]
    assert sorted(local.files) == ["a.jsonl", "steep/b.jsonl", "steep/er/d.jsonl"]


def test_an_idle_folder_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files there are, a look touches a bounded number of them."""
    monkeypatch.setattr(listing, "SWEEP_FILES", 5)
    for number in range(100):
        (tmp_path / f"{number:03d}.jsonl").write_text("1")
    os.utime(tmp_path, (1, 1))
    local = LocalListing(tmp_path, ours)
    local.look()
    calls: list[Any] = []
    real_scan, real_stat = os.scandir, os.stat

    def counted(name: str, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(path: Any) -> Any:
            calls.append(name)
            return real(path)

        return call

    monkeypatch.setattr(os, "scandir", counted("list", real_scan))
    monkeypatch.setattr(os, "stat", counted("stat", real_stat))
    for _ in range(10):
        local.look()
    assert calls.count("list") == 0 and calls.count("stat") <= 10 * 6
    (tmp_path / "050.jsonl").write_text("12")
    found = [info for _ in range(40) for info in local.look().fresh]
    assert names(found) == ["050.jsonl"], "within a turn, what nobody watched is seen to have grown"
    (tmp_path / "050.jsonl").write_text("123")
    assert names(local.look().fresh) == ["050.jsonl"], "and from then on at once"


def test_a_store_is_listed_from_where_all_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{number:03d}.jsonl": 1 for number in range(10)}
    asked: list[str] = []
    now = 0.0

    def after(name: str) -> list[FileInfo]:
        asked.append(name)
        return [FileInfo(key, size) for key, size in sorted(files.items()) if key > name]

    remote = RemoteListing(after, ours, "somewhere", clock=lambda: now)
    assert len(remote.look().fresh) == 10
    files["011.jsonl"] = 1
    del files["003.jsonl"]
    look = remote.look(settled="009.jsonl")
    assert (names(look.fresh), look.gone, asked[-1]) == (["011.jsonl"], [], "009.jsonl")
    now = listing.FULL_LIST_S + 1
    look = remote.look(settled="009.jsonl")
    assert (look.gone, asked[-1]) == (["003.jsonl"], "")
