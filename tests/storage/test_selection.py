"""Reading: snapshots, changes and look-ups over inline batches and parts, pruning, pins, and damage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.storage import parts
from everview.storage import selection as selection_module
from everview.storage.blob.local import LocalBlob
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import Progress, Updates
from everview.storage.environment import Environment
from everview.storage.errors import CapabilityInvalid, Corruption, NotReadable
from everview.timely.antichain import Antichain
from everview.timely.consolidate import HASH, int_column
from tests.storage.rows import SCHEMA, contents, updates

ROWS = 200_000


def large(time: int, first: int = 0, rows: int = ROWS, diff: int = 1) -> pa.Table:
    numbers = np.arange(first, first + rows)
    columns = {"n": numbers, "word": pa.array(np.char.add("w", (numbers % 1000).astype(str)))}
    return pa.table({"_time": np.full(rows, time), "_diff": np.full(rows, diff), **columns})


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "data", background=False) as opened:
        yield opened


def test_parts_are_sorted_with_statistics_that_are_true(environment: Environment, tmp_path: Path) -> None:
    _, write = environment.create("u1", SCHEMA)
    environment.append(write, large(3), Antichain(10))
    (batch,) = environment.shard("u1").batches.values()
    assert batch.rows == ROWS and not batch.inline
    for part in batch.parts:
        table = pq.read_table(tmp_path / "data" / "blob" / part.key)
        hashes = int_column(table, HASH)
        assert (np.diff(hashes) >= 0).all()
        assert (part.hash_min, part.hash_max, part.rows) == (hashes[0], hashes[-1], table.num_rows)
        assert (part.time_min, part.time_max) == (3, 3)
        assert pq.ParquetFile(tmp_path / "data" / "blob" / part.key).num_row_groups == -(
            -part.rows // parts.ROW_GROUP_ROWS
        )


def test_a_large_batch_is_written_by_several_threads_without_overlap(environment: Environment) -> None:
    environment._stager.threads = 3
    _, write = environment.create("u1", SCHEMA)
    environment.append(write, large(3, rows=1_600_000), Antichain(10))
    (batch,) = environment.shard("u1").batches.values()
    bounds = sorted((part.hash_min, part.hash_max) for part in batch.parts)
    assert len(bounds) == 3
    assert all(left[1] < right[0] for left, right in pairwise(bounds))
    with environment.contents("u1", 9) as selection:
        assert selection.contents().num_rows == 1_600_000


@pytest.mark.parametrize("key", [None, ["word"]])
def test_a_lookup_finds_the_rows_of_its_keys_everywhere(environment: Environment, key: list[str] | None) -> None:
    _, write = environment.create("u1", SCHEMA, key=key)
    write = environment.append(write, large(1), Antichain(5))
    write = environment.append(write, large(6, rows=100, diff=-1), Antichain(10))
    write = environment.append(write, large(12, first=ROWS), Antichain(15))
    wanted = pa.table({"n": [5, 150, ROWS + 1, 10**9], "word": ["w5", "w150", "w1", "nowhere"]})
    hashes = environment.key_hashes("u1", wanted)
    for as_of in (4, 9, 14):
        everything = contents(environment, "u1", as_of)
        rows = {(row["n"], row["word"]) for row in wanted.to_pylist()}
        words = {word for _, word in rows}
        expected = {row: n for row, n in everything.items() if (row in rows if key is None else row[1] in words)}
        for limit in (selection_module.LOOKUP_HASHES_MAX, 0):  # through hot copies, and through row groups
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(selection_module, "LOOKUP_HASHES_MAX", limit)
                with environment.contents("u1", as_of, hashes) as selection:
                    found = selection.contents().to_pylist()
            assert {(row["n"], row["word"]): row["_diff"] for row in found} == expected
    with environment.changes("u1", 5, 15, hashes) as selection:
        assert all(part.time_max >= 5 for part in selection.parts), "the first batch is not even looked at"


def test_projection_adds_up_rows_that_become_equal(environment: Environment) -> None:
    _, write = environment.create("u1", SCHEMA)
    environment.append(write, updates((1, "a", 1, +1), (2, "a", 1, +2), (3, "b", 1, +1)), Antichain(5))
    with environment.contents("u1", 4) as selection:
        rows = selection.contents(["word"]).to_pylist()
    assert {row["word"]: row["_diff"] for row in rows} == {"a": 3, "b": 1}


def test_changes_are_exact_only_beyond_since(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA)
    write = environment.append(write, updates((1, "a", 1, +1), (2, "b", 4, +1)), Antichain(10))
    environment.changes("u1", 0, 10).close()
    read = environment.downgrade(read, Antichain(4))
    with pytest.raises(NotReadable, match="no longer known"):
        environment.changes("u1", 4, 10)
    environment.changes("u1", 5, 10).close()
    with pytest.raises(NotReadable, match="not complete yet"):
        environment.changes("u1", 5, 11)
    with pytest.raises(NotReadable, match="no longer known"):
        environment.changes("u1", 0, 3)  # nothing was earlier, but times up to since have become one


def test_what_is_being_read_is_not_collected(environment: Environment, tmp_path: Path) -> None:
    read, write = environment.create("u1", SCHEMA)
    write = environment.append(write, large(1), Antichain(5))
    write = environment.append(write, large(6, diff=-1), Antichain(10))
    selection = environment.contents("u1", 4)
    environment.downgrade(read, Antichain(8))
    environment.maintenance.compact("u1")
    assert environment.shard("u1").batches == {}, "everything canceled out"
    stored = list(LocalBlob(tmp_path / "data" / "blob").list())
    assert stored, "someone still reads"
    assert selection.contents().num_rows == ROWS
    selection.close()
    environment.maintenance.run()
    assert list(LocalBlob(tmp_path / "data" / "blob").list()) == []


def test_a_pin_that_is_never_released_expires(tmp_path: Path) -> None:
    now = [1000]
    with Environment.open(tmp_path, background=False, now_ms=lambda: now[0]) as environment:
        read, write = environment.create("u1", SCHEMA)
        environment.append(write, large(1), Antichain(5))
        environment.contents("u1", 4)
        environment.drop(read)
        environment.maintenance.run()
        assert list(LocalBlob(tmp_path / "blob").list())
        now[0] += 2 * 60 * 60 * 1000
        environment.maintenance.run()
        assert not list(LocalBlob(tmp_path / "blob").list())


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "empty"])
def test_damaged_parts_are_named_and_nothing_else_suffers(tmp_path: Path, damage: str) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        for id in ("u1", "u2"):
            _, write = environment.create(id, SCHEMA)
            environment.append(write, large(1), Antichain(5))
        (batch,) = environment.shard("u1").batches.values()
        part = batch.parts[0]
    path = tmp_path / "blob" / part.key
    data = bytearray(path.read_bytes())
    os.chmod(path, 0o644)
    if damage == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    with Environment.open(tmp_path, background=False) as environment:
        hashes = environment.key_hashes("u1", pa.table({"n": [1], "word": ["w1"]}))
        for wanted in (None, hashes):
            with environment.contents("u1", 4, wanted) as selection, pytest.raises(Corruption) as caught:
                if part in selection.parts:
                    selection.contents()
                else:
                    raise Corruption("collection u1, part elsewhere")
        assert "collection u1" in caught.value.message
        assert len(contents(environment, "u2", 4)) == ROWS
        with environment.contents("u1", 4) as selection, pytest.raises(Corruption, match=part.key):
            list(selection.chunks())


def test_a_damaged_inline_batch_is_named(tmp_path: Path) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        _, write = environment.create("u1", SCHEMA)
        environment.append(write, updates((1, "a", 1, +1)), Antichain(5))
    consensus = SqliteConsensus(tmp_path / "consensus.db")
    ((key, entry),) = consensus.scan("inline/u1/")
    value = bytearray(entry.value)
    value[-1] ^= 1
    consensus.commit({}, {key: bytes(value)}, 99)
    consensus.close()
    with Environment.open(tmp_path, background=False) as environment:
        with pytest.raises(Corruption, match="collection u1, batch 0 is damaged"):
            environment.contents("u1", 4)
        environment.create("u2", SCHEMA)


@pytest.mark.parametrize("key", ["state/u1/", "spec/u1/"])
def test_damaged_metadata_are_named(tmp_path: Path, key: str) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        environment.create("u1", SCHEMA)
    consensus = SqliteConsensus(tmp_path / "consensus.db")
    consensus.commit({}, {key: b"[1, {"}, 99)
    consensus.close()
    with Environment.open(tmp_path, background=False) as environment:
        with pytest.raises(Corruption, match="metadata of collection u1"):
            environment.frontiers("u1")
        environment.create("u2", SCHEMA)


def test_a_damaged_hot_copy_is_made_again(tmp_path: Path) -> None:
    def look_up() -> int:
        with Environment.open(tmp_path, background=False) as environment:
            if not environment.ids():
                _, write = environment.create("u1", SCHEMA)
                environment.append(write, large(1), Antichain(5))
            hashes = environment.key_hashes("u1", pa.table({"n": np.arange(50), "word": [f"w{n}" for n in range(50)]}))
            with environment.contents("u1", 4, hashes) as selection:
                return int(selection.contents().num_rows)

    assert look_up() == 50
    copies = [path for path in (tmp_path / "hot").rglob("*") if path.is_file()]
    assert copies
    for path in copies:
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 255
        path.write_bytes(data)
    assert look_up() == 50


# Subscriptions


def drain(subscription: object) -> list[Updates | Progress]:
    events: list[Updates | Progress] = []
    while True:
        try:
            event = subscription.next(0)  # type: ignore[attr-defined]
        except StopIteration:
            return events
        if event is None:
            return events
        events.append(event)


def test_a_subscription_gives_the_snapshot_then_changes_at_their_times(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA)
    write = environment.append(write, updates((1, "a", 1, +1), (2, "b", 3, +1)), Antichain(10))
    read = environment.downgrade(read, Antichain(5))
    subscription = environment.subscribe(read)
    snapshot, progress = drain(subscription)
    assert isinstance(snapshot, Updates) and isinstance(progress, Progress)
    assert {row["_time"] for row in snapshot.table.to_pylist()} == {5}
    assert progress.frontier == Antichain(10)
    write = environment.append(write, updates((1, "a", 12, -1)), Antichain(20))
    changes, progress = drain(subscription)
    assert changes.table.to_pylist() == [{"_time": 12, "_diff": -1, "n": 1, "word": "a"}]  # type: ignore[union-attr]
    assert subscription.next(0.01) is None
    environment.append(write, None, Antichain())
    (last,) = drain(subscription)
    assert isinstance(last, Progress) and last.frontier.empty
    with pytest.raises(StopIteration):
        subscription.next()


def test_a_subscription_filters_projects_and_skips_the_snapshot(environment: Environment) -> None:
    import pyarrow.compute as pc

    read, write = environment.create("u1", SCHEMA)
    write = environment.append(write, updates((1, "a", 0, +1)), Antichain(1))
    subscription = environment.subscribe(read, snapshot=False, where=pc.field("n") > 1, columns=["word"])
    environment.append(write, updates((1, "x", 2, +1), (2, "y", 2, +1), (3, "y", 2, +1)), Antichain(5))
    changes, _ = drain(subscription)
    assert changes.table.to_pylist() == [{"_time": 2, "_diff": 2, "word": "y"}]  # type: ignore[union-attr]


def test_a_large_subscription_comes_in_bounded_pieces(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from everview.storage import subscribe

    monkeypatch.setattr(subscribe, "SMALL_BYTES", 1000)
    read, write = environment.create("u1", SCHEMA)
    for time in range(4):
        write = environment.append(write, large(time, first=time * 1000), Antichain(time + 1))
    events = drain(environment.subscribe(environment.downgrade(read, Antichain(3))))
    pieces = [event.table for event in events if isinstance(event, Updates)]
    assert max(piece.num_rows for piece in pieces) <= 4 * 2 * parts.ROW_GROUP_ROWS
    assert sum(int_column(piece, "_diff").sum() for piece in pieces) == 4 * ROWS


def test_subscriptions_end_from_either_side(environment: Environment) -> None:
    read, write = environment.create("u1", SCHEMA)
    environment.append(write, updates((1, "a", 1, +1)), Antichain(10))
    first = environment.subscribe(read)
    first.cancel()
    with pytest.raises(Exception, match="was canceled"):
        first.next()
    second = environment.subscribe(read)
    assert len(drain(second)) == 2
    environment.drop(read)
    with pytest.raises((NotReadable, CapabilityInvalid)):
        second.next(0)
    with pytest.raises(CapabilityInvalid):
        environment.subscribe(read)


def test_everything_is_known_where_nothing_can_be_read(environment: Environment) -> None:
    """Readers went beyond the writer: no time can be read, and what is there is known all the same."""
    read, write = environment.create("u1", SCHEMA)
    environment.append(write, large(3), Antichain(5))
    environment.downgrade(read, Antichain(9))
    environment.maintenance.run()
    with pytest.raises(NotReadable):
        environment.contents("u1", 4)
    with environment.everything("u1") as selection:
        assert selection.contents().num_rows == ROWS
        assert sum(piece.num_rows for piece in selection.chunks(9)) == ROWS
    environment.drop(environment.present("u1", read.token))
    with pytest.raises(NotReadable, match="can no longer be read"):
        environment.everything("u1")
