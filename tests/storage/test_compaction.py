"""Compaction: merging means the same, batches stay few, what can cancel does, and memory stays bounded."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.storage import compaction
from everview.storage.batch import UNCOMPACTED, Batch
from everview.storage.blob.local import LocalBlob
from everview.storage.environment import Environment
from everview.storage.merge import merge
from everview.storage.shard import READ, Held, Shard, Spec
from everview.timely.antichain import Antichain
from everview.timely.consolidate import HASH, TIME, consolidate, int_column, with_hash
from tests.storage.rows import SCHEMA, contents, updates

rows = st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 9), st.sampled_from([1, 2, -1]))


@given(
    runs=st.lists(st.lists(rows, max_size=30), max_size=5),
    key=st.sampled_from([("n", "word"), ("n",), ("word",)]),
    size=st.integers(1, 5),
    since=st.integers(0, 10),
)
def test_merging_means_the_same(
    runs: list[list[tuple[int, str, int, int]]], key: tuple[str, ...], size: int, since: int
) -> None:
    spec = Spec(SCHEMA, key, 0)
    sorted_runs = [consolidate(with_hash(updates(*run), key), key) for run in runs]
    slices = [[run.slice(at, size) for at in range(0, run.num_rows, size)] for run in sorted_runs]
    starts = [int(int_column(run, HASH)[0]) if run.num_rows else 0 for run in sorted_runs]
    chunks = list(merge([iter(tables) for tables in slices], starts, spec, since))
    found: Counter[tuple[object, ...]] = Counter()
    for chunk in chunks:
        for row in chunk.to_pylist():
            identity = (row["n"], row["word"], row[TIME])
            assert identity not in found, "each update once, over all chunks"
            found[identity] = row["_diff"]
    hashes = [int(hash) for chunk in chunks for hash in int_column(chunk, HASH)]
    assert hashes == sorted(hashes)
    expected: Counter[tuple[object, ...]] = Counter()
    for number, word, time, diff in (row for run in runs for row in run):
        expected[number, word, max(time, since)] += diff
    assert found == Counter({identity: diff for identity, diff in expected.items() if diff})


def batch(number: int, size_bytes: int, retractions: int = 0, time: int = 5, since: int = UNCOMPACTED) -> Batch:
    return Batch(number, 0, 10, since, 100, size_bytes, time, time, retractions, (), b"")


def shard(*batches: Batch, since: int = 0) -> Shard:
    held = {"r-1": Held(READ, since)}
    return Shard("u1", Spec(SCHEMA, ("n",), 0), since, 10, held, {b.number: b for b in batches}, len(batches))


def test_small_batches_are_merged_when_there_are_many() -> None:
    few = [batch(n, 100) for n in range(compaction.SMALLEST_FAN_IN - 1)]
    assert compaction.plan(shard(*few), {}) is None
    work = compaction.plan(shard(*few, batch(99, 100)), {})
    assert work is not None and len(work.inputs) == compaction.SMALLEST_FAN_IN


def test_negative_updates_with_nothing_to_cancel_are_left_alone() -> None:
    waiting = batch(0, 10**9, retractions=100, since=3)
    assert compaction.plan(shard(waiting, since=8), {}) is None
    assert compaction.plan(shard(waiting, batch(1, 100, retractions=100), since=8), {}) is None
    work = compaction.plan(shard(waiting, batch(1, 100), since=8), {})
    assert work is not None and work.inputs == (0, 1), "half of these may cancel"


def test_a_large_batch_is_left_alone_by_small_ones() -> None:
    large, small = batch(0, 10**9), [batch(n, 100) for n in range(1, 70)]
    work = compaction.plan(shard(large, *small), {})
    assert work is not None and 0 not in work.inputs


def test_what_can_cancel_is_merged_once_its_times_are_settled() -> None:
    pair = batch(0, 10**6), batch(1, 10**6, retractions=60)
    assert compaction.plan(shard(*pair, since=4), {}) is None
    work = compaction.plan(shard(*pair, since=5), {})
    assert work is not None and work.inputs == (0, 1)
    assert compaction.plan(shard(batch(0, 10**6, 60, since=5), since=5), {}) is None, "it has been tried"


def test_nothing_is_planned_for_what_cannot_be_read() -> None:
    released = Shard("u1", Spec(SCHEMA, ("n",), 0), 2**63 - 1, 10, {}, {0: batch(0, 1)}, 1)
    assert compaction.plan(released, {}) is None


def test_batches_stay_few_and_contents_exact_while_writing(tmp_path: Path, rng: random.Random) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        read, write = environment.create("u1", SCHEMA)
        model: Counter[tuple[int, str]] = Counter()
        for time in range(700):
            number, diff = rng.randrange(50), rng.choice([1, 1, -1])
            model[number, "x"] += diff
            write = environment.append(write, updates((number, "x", time, diff)), Antichain(time + 1))
            read = environment.downgrade(read, Antichain(time))
            if time % 10 == 0:
                environment.maintenance.run()
        assert len(environment.shard("u1").batches) <= compaction.SMALLEST_FAN_IN + 10 + compaction.FAN_IN
        assert contents(environment, "u1", 699) == {row: n for row, n in model.items() if n}


def test_a_collection_that_lives_in_a_window_does_not_grow(tmp_path: Path) -> None:
    def wave(time: int, diff: int) -> pa.Table:
        numbers = np.arange(time * 5000, time * 5000 + 5000)
        words = pa.array(np.char.add("word ", numbers.astype(str)))
        return pa.table(
            {"_time": np.full(5000, time + (diff < 0) * 3), "_diff": np.full(5000, diff), "n": numbers, "word": words}
        )

    with Environment.open(tmp_path, background=False) as environment:
        read, write = environment.create("u1", SCHEMA)
        sizes = []
        for time in range(40):
            tables = [wave(time, +1)] + ([wave(time - 3, -1)] if time >= 3 else [])
            write = environment.append(write, pa.concat_tables(tables), Antichain(time + 1))
            read = environment.downgrade(read, Antichain(time))
            environment.maintenance.run()
            sizes.append(sum(b.rows for b in environment.shard("u1").batches.values()))
        assert max(sizes[20:]) <= 8 * 15_000, "a few times what is alive"
        assert len(contents(environment, "u1", 39)) == 15_000
        stored = {info.key for info in LocalBlob(tmp_path / "blob").list()}
        assert stored == {part.key for b in environment.shard("u1").batches.values() for part in b.parts}


def test_a_compaction_that_fails_is_no_failure_of_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everview.storage.errors import StorageFull

    with Environment.open(tmp_path, background=False) as environment:
        _, write = environment.create("u1", SCHEMA)
        numbers = np.arange(50_000)
        words = pa.array(np.char.add("word ", numbers.astype(str)))
        large = pa.table({"_time": np.zeros(50_000, int), "_diff": np.ones(50_000, int), "n": numbers, "word": words})

        def fail() -> None:
            raise StorageFull("no space left")

        monkeypatch.setattr(environment.maintenance, "run", fail)
        environment.maintenance.behind = True
        environment.append(write, large, Antichain(1))
        assert len(contents(environment, "u1", 0)) == 50_000


def test_writers_that_outrun_compaction_lend_a_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everview.storage import maintenance

    monkeypatch.setattr(maintenance, "BATCHES_MAX", 100)
    with Environment.open(tmp_path, background=False) as environment:
        _, write = environment.create("u1", SCHEMA)
        for time in range(350):
            write = environment.append(write, updates((time, "x", time, 1)), Antichain(time + 1))
        assert len(environment.shard("u1").batches) <= 100
