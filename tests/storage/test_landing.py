"""Parts that others wrote: adopted only if they are what they should be, then read like our own, and never leaked."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.storage.blob.contract import Blob
from everview.storage.blob.local import LocalBlob
from everview.storage.blob.memory import MemoryBlob
from everview.storage.contract import UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.storage.errors import BlobMissing, Determinate, InvalidUsage, SchemaMismatch, TimesOutOfRange
from everview.storage.landing import Landing
from everview.storage.parts import ROW_GROUP_ROWS
from everview.storage.retrying import RetryingBlob
from everview.storage.shard import Spec
from everview.storage.stores import open_blob
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, HASH, TIME, consolidate, int_column
from everview.timely.hashing import hash_rows
from tests.storage.faulty import Fault, FaultyBlob
from tests.storage.rows import SCHEMA, contents, updates

ROWS = 150_000  # several row groups

# Every Arrow type that a column can have, with values that tell representations apart.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 2**15 - 1],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.float32(): [-0.0, 0.0, float("nan"), float("-inf"), 1.5],
    pa.float64(): [-0.0, 0.0, float("nan"), float("inf"), 5e-324],
    pa.decimal128(9, 2): [Decimal("-1234567.89"), Decimal("0.00")],
    pa.decimal128(18, 0): [Decimal(10**17)],
    pa.decimal128(38, 18): [Decimal("-1.5").quantize(Decimal("1e-18"))],
    pa.decimal128(38, 2): [Decimal("9" * 36 + ".99"), Decimal("-0.01")],
    pa.string(): ["", "é", "\U0001f600" * 20],
    pa.large_string(): ["", "x"],
    pa.binary(): [b"", b"\xff\x00"],
    pa.date32(): [date(1, 1, 1), date(1582, 10, 10), date(9999, 12, 31)],
    pa.timestamp("us"): [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    pa.timestamp("us", "UTC"): [datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 3, 31, 1, 2, 3, 4, tzinfo=UTC)],
    pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())]): [
        {"months": -1, "days": 2, "micros": 2**62}
    ],
    pa.list_(pa.int32()): [[], [1, None, 3]],
    pa.list_(pa.list_(pa.string())): [[["a"], None, []]],
    pa.list_(pa.decimal128(38, 3)): [[Decimal("1.000")]],
}
TYPES = pa.schema([(f"c{place}", dtype) for place, dtype in enumerate(VALUES)])


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "data", background=False) as opened:
        yield opened


def write(landing: Landing, *tables: pa.Table, row_group_size: int = ROW_GROUP_ROWS, **options: Any) -> None:
    """Files as another program would write them: without the Arrow schema of ours, with markers beside them."""
    folder = Path(landing.uri.removeprefix("file://"))
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        path = folder / f"part-{number:05d}-c000.zstd.parquet"
        pq.write_table(table, path, row_group_size=row_group_size, **{"store_schema": False, **options})
        (folder / f".{path.name}.crc").write_bytes(b"crc")
    (folder / "_SUCCESS").write_bytes(b"")


def sorted_part(table: pa.Table, spec: Spec) -> pa.Table:
    """Consolidated updates in the columns and the order of a part."""
    return consolidate(table, spec.key).select(spec.in_parts.names).cast(spec.in_parts)


def large(time: int = 3, rows: int = ROWS, first: int = 0, diff: int = 1) -> pa.Table:
    numbers = np.arange(first, first + rows)
    words = pa.array(np.char.add("w", (numbers % 7).astype(str)))
    return pa.table({"_time": np.full(rows, time), "_diff": np.full(rows, diff), "n": numbers, "word": words})


def adopted(environment: Environment, id: str, *tables: pa.Table, rows: int | None = None, **options: Any) -> Landing:
    landing = environment.landing(id)
    write(landing, *(sorted_part(t, environment.shard(id).spec) for t in tables), **options)
    landing.staged(rows)
    return landing


def of_all_types(rng: random.Random, rows: int) -> pa.Table:
    columns = {
        name: pa.array([rng.choice([None, *VALUES[dtype]]) for _ in range(rows)], dtype)
        for name, dtype in zip(TYPES.names, VALUES, strict=True)
    }
    times = pa.array([rng.randrange(5) for _ in range(rows)], pa.int64())
    diffs = pa.array([rng.choice([-2, -1, 1, 3]) for _ in range(rows)], pa.int64())
    return pa.table({TIME: times, DIFF: diffs, **columns})


def every_reading(environment: Environment, id: str) -> list[list[Any]]:
    """All updates of a shard through every path that there is, in text because NaN is not equal to itself."""
    last = environment.frontiers(id).upper.only - 1
    with environment.changes(id, 0, last + 1) as selection:
        changes, chunks = selection.changes(), list(selection.chunks())
        hashes = np.unique(int_column(changes, HASH))
    tables = [changes, pa.concat_tables(chunks)]
    with environment.changes(id, 0, last + 1, hashes) as selection:
        tables.append(selection.changes())
    with environment.changes(id, 0, last + 1, hashes[:50]) as selection:
        few = selection.changes()
    few_hashes = set(int_column(few, HASH).tolist())
    assert few_hashes == set(hashes[:50].tolist())
    readings = [sorted(map(repr, table.drop_columns([HASH]).to_pylist())) for table in tables]
    assert readings[0] == readings[1] == readings[2]
    with environment.contents(id, last) as selection:
        readings.append(sorted(map(repr, selection.contents().to_pylist())))
    readings.append(sorted(map(repr, few.to_pylist())))
    return readings


@pytest.mark.parametrize("key", [None, ["c2", "c5", "c10"]])
@pytest.mark.parametrize("rows", [100, 3000])
def test_all_types_are_read_as_if_we_had_written_them(
    environment: Environment, rng: random.Random, key: list[str] | None, rows: int
) -> None:
    table = of_all_types(rng, rows)
    ours, theirs = (environment.create(id, TYPES, key=key)[1] for id in ("ours", "theirs"))
    environment.append(ours, table, Antichain(5))
    spec = environment.shard("theirs").spec
    part = sorted_part(table, spec)
    halves = [part.slice(0, part.num_rows // 2), part.slice(part.num_rows // 2)]
    landing = environment.landing("theirs")
    write(landing, *halves, row_group_size=100)
    environment.append(theirs, landing.staged(part.num_rows), Antichain(5))
    before = every_reading(environment, "theirs")
    assert before == every_reading(environment, "ours")
    environment.maintenance.compact("theirs")
    assert every_reading(environment, "theirs") == before


def test_columns_declared_without_nulls_are_read_beside_inline_batches(environment: Environment) -> None:
    inner = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int64()))])
    schema = pa.schema([("c0", pa.int64()), ("c1", inner), ("c2", pa.list_(pa.string()))])
    _, writer = environment.create("u1", schema)
    count = 20_000
    rows: dict[str, list[Any]] = {
        "c0": list(range(count)),
        "c1": [{"a": 1, "b": [n]} for n in range(count)],
        "c2": [["x"]] * count,
    }
    times = {TIME: [0] * count, DIFF: [1] * count}
    part = sorted_part(pa.table({**times, **rows}, schema=environment.shard("u1").spec.at_rest), _spec(schema))
    strict_struct = pa.struct(
        [pa.field("a", pa.int32(), False), pa.field("b", pa.list_(pa.field("element", pa.int64(), False)), False)]
    )
    strict = [
        *(part.schema.field(name) for name in (HASH, TIME, DIFF)),
        pa.field("c0", pa.int64(), False),
        pa.field("c1", strict_struct, False),
        pa.field("c2", pa.list_(pa.field("element", pa.string(), False)), False),
    ]
    columns = [column.cast(field.type) for column, field in zip(part.columns, strict, strict=True)]
    landing = environment.landing("u1")
    write(landing, pa.table(columns, schema=pa.schema(strict)))
    writer = environment.append(writer, landing.staged(), Antichain(1))
    more = pa.table({TIME: [1], DIFF: [-1], **{name: values[:1] for name, values in rows.items()}})
    environment.append(writer, more.cast(environment.shard("u1").spec.at_rest), Antichain(2))
    assert len(environment.shard("u1").batches) == 2 and not next(iter(environment.shard("u1").batches.values())).inline
    before = every_reading(environment, "u1")
    assert len(before[3]) == count - 1
    environment.maintenance.compact("u1")
    assert every_reading(environment, "u1")[3] == before[3]


def _spec(schema: pa.Schema) -> Spec:
    return Spec(schema, tuple(schema.names), 0)


@pytest.mark.parametrize("key", [None, ["word"], ["n"]])
def test_the_parts_are_described_as_if_we_had_written_them(environment: Environment, key: list[str] | None) -> None:
    tables = [large(3), large(4, ROWS // 2, diff=-1)]
    together = pa.concat_tables(tables)
    mine, yours = (environment.create(id, SCHEMA, key=key)[1] for id in ("ours", "theirs"))
    environment._stager.threads = 1
    environment.append(mine, together, Antichain(10))
    environment.append(yours, _staged(environment, "theirs", together), Antichain(10))
    ((ours,), (theirs,)) = ([*environment.shard(id).batches.values()] for id in ("ours", "theirs"))
    assert (ours.rows, ours.time_min, ours.time_max, ours.retractions) == (
        theirs.rows,
        theirs.time_min,
        theirs.time_max,
        theirs.retractions,
    )
    assert [(p.hash_min, p.hash_max, p.rows) for p in ours.parts] == [
        (p.hash_min, p.hash_max, p.rows) for p in theirs.parts
    ]
    assert every_reading(environment, "theirs") == every_reading(environment, "ours")


def _staged(environment: Environment, id: str, *tables: pa.Table) -> Any:
    landing = environment.landing(id)
    write(landing, *(sorted_part(table, environment.shard(id).spec) for table in tables))
    return landing.staged()


def test_files_may_overlap_in_hashes_and_repeat_updates(environment: Environment) -> None:
    _, writer = environment.create("u1", SCHEMA)
    staged = _staged(environment, "u1", large(), large(rows=ROWS // 2), large(rows=ROWS // 3, diff=-1))
    environment.append(writer, staged, Antichain(10))
    counts = contents(environment, "u1", 9)
    assert counts[(0, "w0")] == 1 and counts[(60_000, "w3")] == 2 and counts[(ROWS - 1, "w3")] == 1
    before = every_reading(environment, "u1")
    environment.maintenance.compact("u1")
    assert every_reading(environment, "u1") == before


def test_what_is_beside_the_parts_goes_and_the_parts_stay_in_place(environment: Environment) -> None:
    _, writer = environment.create("u1", SCHEMA)
    landing = adopted(environment, "u1", large(), rows=ROWS)
    (key,) = landing.keys()
    assert key.endswith("/part-00000-c000.zstd.parquet")
    staged = landing._staged
    assert staged is not None
    environment.append(writer, staged, Antichain(10))
    with environment.contents("u1", 5) as selection:
        assert selection.uris == [f"{landing.uri}/part-00000-c000.zstd.parquet"]
    with pytest.raises(InvalidUsage, match="is committed"):
        landing.discard()
    with pytest.raises(InvalidUsage, match="staged before"):
        landing.staged()


def test_few_updates_become_an_inline_batch_and_none_becomes_nothing(environment: Environment) -> None:
    _, writer = environment.create("u1", SCHEMA)
    landing = environment.landing("u1")
    spec = environment.shard("u1").spec
    write(landing, sorted_part(updates((1, "a", 0, 1), (2, None, 0, 2)), spec), spec.in_parts.empty_table())
    writer = environment.append(writer, landing.staged(2), Antichain(1))
    assert landing.keys() == []
    empty = environment.landing("u1")
    write(empty, spec.in_parts.empty_table())
    writer = environment.append(writer, empty.staged(0), Antichain(2))
    environment.append(writer, environment.landing("u1").staged(), Antichain(3))
    assert contents(environment, "u1", 2) == {(1, "a"): 1, (2, None): 2}
    (batch,) = environment.shard("u1").batches.values()
    assert batch.inline


def test_times_outside_of_the_commit_are_refused(environment: Environment) -> None:
    _, writer = environment.create("u1", SCHEMA)
    landing = adopted(environment, "u1", large(7))
    staged = landing._staged
    assert staged is not None
    with pytest.raises(TimesOutOfRange):
        environment.commit(UpdateAndDowngrade(writer, staged, Antichain(7)))
    landing.discard()
    environment.maintenance.run()
    assert landing.keys() == []


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))


def wrong_hashes(table: pa.Table) -> pa.Table:
    return table.set_column(0, table.schema.field(0), pa.array(int_column(table, HASH) + 1))


REFUSED: dict[str, tuple[Callable[[pa.Table], pa.Table], type[Exception], str]] = {
    "unsorted": (shuffled, InvalidUsage, "not sorted by _hash"),
    "other hashes": (wrong_hashes, InvalidUsage, r"xxhash64\(n, word\)"),
    "a column too few": (lambda t: t.drop_columns(["word"]), SchemaMismatch, "given _hash, _time, _diff, n; wanted"),
    "another order": (lambda t: t.select([TIME, HASH, DIFF, "n", "word"]), SchemaMismatch, "given _time, _hash"),
    "another type": (
        lambda t: t.set_column(3, "n", t.column("n").cast(pa.int32())),
        SchemaMismatch,
        "column n is int32, and should be int64",
    ),
    "nulls": (
        lambda t: t.set_column(2, DIFF, pa.array([None] * t.num_rows, pa.int64())),
        SchemaMismatch,
        "column _diff has NULLs and must not",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_part_is_refused_with_its_reason(environment: Environment, name: str) -> None:
    environment.create("u1", SCHEMA)
    change, kind, said = REFUSED[name]
    landing = environment.landing("u1")
    write(landing, change(sorted_part(large(), environment.shard("u1").spec)))
    with pytest.raises(kind, match=said):
        landing.staged()
    landing.discard()
    assert landing.keys() == []


def test_large_row_groups_no_parquet_and_missing_updates_are_refused(environment: Environment) -> None:
    environment.create("u1", SCHEMA)
    part = sorted_part(large(), environment.shard("u1").spec)
    landing = environment.landing("u1")
    write(landing, part, row_group_size=1 << 20)
    with pytest.raises(InvalidUsage, match=f"row groups of {ROWS} rows"):
        landing.staged()
    landing = environment.landing("u1")
    write(landing, part)
    with pytest.raises(Determinate, match=f"{ROWS + 1} updates were written, {ROWS} are in the 1 files"):
        landing.staged(ROWS + 1)
    landing = environment.landing("u1")
    landing.put("part-0.parquet", pa.py_buffer(b"PAR1 not really PAR1"))
    with pytest.raises(Determinate, match="no Parquet file"):
        landing.staged()


@pytest.mark.parametrize("by", ["row hash", "time"])
def test_a_key_that_goes_on_in_the_next_row_group_must_be_sorted_there_too(environment: Environment, by: str) -> None:
    """Else a merge would give out updates that more of the same follow, and believe what is not so."""
    _, writer = environment.create("u1", SCHEMA, key=["word"] if by == "row hash" else None)
    count = ROW_GROUP_ROWS + 1000
    numbers = np.arange(count) if by == "row hash" else np.zeros(count, dtype=np.int64)
    times = np.zeros(count, dtype=np.int64) if by == "row hash" else np.arange(count)
    table = pa.table({TIME: times, DIFF: np.ones(count, dtype=np.int64), "n": numbers, "word": ["w"] * count})
    part = sorted_part(table, environment.shard("u1").spec)
    landing = environment.landing("u1")
    write(landing, part.take(pa.array(np.arange(count)[::-1])))
    with pytest.raises(InvalidUsage, match="go on in row group 1"):
        landing.staged()
    landing = environment.landing("u1")
    write(landing, part)
    environment.append(writer, landing.staged(count), Antichain(count))
    with environment.changes("u1", 0, count) as selection:
        assert sum(chunk.num_rows for chunk in selection.chunks()) == count


def test_what_a_crash_leaves_is_invisible_and_collected_by_the_next_process(tmp_path: Path) -> None:
    first = Environment.open(tmp_path / "data", background=False)
    _, writer = first.create("u1", SCHEMA)
    kept = _staged(first, "u1", large())
    writer = first.append(writer, kept, Antichain(10))
    # One landing was staged and not committed; one was still being written; one holds what Spark has not moved yet.
    _staged(first, "u1", large(11))
    write(first.landing("u1"), sorted_part(large(11), first.shard("u1").spec))
    drafts = first.landing("u1")
    drafts.put("_temporary/0/_temporary/attempt_1-2_m_000000_3/part-00000-x.parquet", pa.py_buffer(b"draft"))
    shutil.copytree(tmp_path / "data", tmp_path / "copy")  # as it is when the process dies here
    with Environment.open(tmp_path / "copy", background=False) as second:
        assert contents(second, "u1", 9)[(5, "w5")] == 1
        assert second.frontiers("u1").upper == Antichain(10)
        assert len(second.shard("u1").batches) == 1
        second.maintenance.run()
        stored = [info.key for info in LocalBlob(tmp_path / "copy" / "blob").list("parts/")]
        assert stored == [part.key for part in kept.batch.parts]
        assert len(contents(second, "u1", 9)) == ROWS
    first.close()


def test_leftovers_of_this_process_are_not_taken_for_garbage(environment: Environment) -> None:
    environment.create("u1", SCHEMA)
    landing = environment.landing("u1")
    write(landing, sorted_part(large(), environment.shard("u1").spec))
    environment.maintenance.run()
    assert len(landing.files()) == 1


def test_files_in_an_object_store(tmp_path: Path, s3_url: Callable[[str], str]) -> None:
    url = s3_url("adopted")
    with Environment.open(tmp_path / "data", blob=url, background=False) as environment:
        _, writer = environment.create("u1", SCHEMA)
        landing = environment.landing("u1")
        assert landing.uri.startswith("s3a://blobs/adopted/parts/u1/")
        sink = pa.BufferOutputStream()
        pq.write_table(
            sorted_part(large(), environment.shard("u1").spec), sink, row_group_size=ROW_GROUP_ROWS, store_schema=False
        )
        landing.put("part-0.parquet", sink.getvalue())
        landing.put("_SUCCESS", pa.py_buffer(b""))
        environment.append(writer, landing.staged(ROWS), Antichain(10))
        assert len(landing.keys()) == 1
        assert len(contents(environment, "u1", 9)) == ROWS
        hashes = hash_rows([pa.array([7]), pa.array(["w0"])], 1)
        with environment.contents("u1", 9, hashes) as selection:
            assert selection.contents().to_pylist() == [{"n": 7, "word": "w0", DIFF: 1}]


class TestSealing:
    @pytest.fixture(params=["local", "memory", "object", "faulty"])
    def blob(self, request: pytest.FixtureRequest, tmp_path: Path) -> Blob:
        match request.param:
            case "memory":
                return MemoryBlob()
            case "object":
                return open_blob(request.getfixturevalue("s3_url")("sealed"))
            case "faulty":
                faults = iter([Fault.FINE, Fault.BEFORE, Fault.AFTER])
                return RetryingBlob(FaultyBlob(MemoryBlob(), lambda _call: next(faults, Fault.FINE)))
            case _:
                return LocalBlob(tmp_path / "blobs")

    def test_what_is_there_can_be_sealed_again_and_again(self, blob: Blob) -> None:
        blob.put("a/b", b"x")
        blob.seal("a/b")
        blob.seal("a/b")
        with pytest.raises(BlobMissing):
            blob.seal("a/c")


def test_adopted_parts_survive_a_fresh_process(tmp_path: Path) -> None:
    with Environment.open(tmp_path / "data", background=False) as first:
        _, writer = first.create("u1", SCHEMA)
        first.append(writer, _staged(first, "u1", large()), Antichain(10))
        expected = every_reading(first, "u1")
    with Environment.open(tmp_path / "data", background=False) as second:
        assert every_reading(second, "u1") == expected
