"""Collections that get more columns: what was written before has NULL there, and who knew fewer goes on with those."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.storage import compaction, staging
from everview.storage.batch import INLINE_BYTES_MAX, Batch, decode_batch, encode_batch, inline_batch
from everview.storage.codec import decode_spec, encode_spec
from everview.storage.contract import Extend, Progress, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.errors import SchemaMismatch, UpperMismatch
from everview.storage.observer import Observer
from everview.storage.shard import Spec
from everview.storage.transitions import Substitute
from everview.timely.antichain import Antichain
from tests.storage.rows import SCHEMA, updates
from tests.storage.test_landing import sorted_part, write

WIDER = pa.schema([*SCHEMA, ("more", pa.list_(pa.int32())), ("last", pa.string())])


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "data", background=False) as opened:
        yield opened


def wide(*rows: tuple[Any, ...]) -> pa.Table:
    """Updates from `(n, word, more, last, time, diff)`."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(columns[place], field.type) for place, field in enumerate(WIDER)]
    numbers = [pa.array(columns[place], pa.int64()) for place in (4, 5)]
    return pa.table([*numbers, *arrays], names=["_time", "_diff", *WIDER.names])


def rows(environment: Environment, id: str, as_of: int, columns: list[str] | None = None) -> list[tuple[Any, ...]]:
    with environment.contents(id, as_of) as selection:
        names = [*(columns or selection.spec.schema.names), "_diff"]
        return sorted((tuple(row.values()) for row in selection.contents(columns).select(names).to_pylist()), key=repr)


def filled(environment: Environment, count: int = 3) -> WriteCapability:
    """Numbers at time 0, in a collection of two columns that is complete before time 1."""
    _, writer = environment.create("u1", SCHEMA)
    return environment.append(writer, updates(*((n, "w", 0, 1) for n in range(count))), Antichain(1))


def extended(environment: Environment, writer: WriteCapability, table: pa.Table | None, to: int) -> WriteCapability:
    _, writer = environment.commit(Extend(writer, WIDER), UpdateAndDowngrade(writer, table, Antichain(to)))
    return writer


@pytest.mark.parametrize("inline_bytes", [0, INLINE_BYTES_MAX])
def test_old_rows_have_null_in_new_columns(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    """A row of before and one with NULLs are the same row: in what is read, in what is compacted, after a restart."""
    for module in (staging, compaction):
        monkeypatch.setattr(module, "INLINE_BYTES_MAX", inline_bytes)
    writer = filled(environment)
    change = wide((0, "w", None, None, 1, -1), (0, "w", [1], "x", 1, 1), (1, "w", None, None, 1, 2))
    writer = extended(environment, writer, change, 2)
    before = [(n, "w", None, None, 1) for n in range(3)]
    after = [(0, "w", [1], "x", 1), (1, "w", None, None, 3), (2, "w", None, None, 1)]

    def check(opened: Environment) -> None:
        assert rows(opened, "u1", 0) == before
        assert rows(opened, "u1", 1) == after
        assert rows(opened, "u1", 1, ["n", "word"]) == [(0, "w", 1), (1, "w", 3), (2, "w", 1)]
        key = pa.table({"n": [1], "word": ["w"], "more": pa.nulls(1, WIDER.types[2]), "last": pa.nulls(1, pa.string())})
        with opened.contents("u1", 1, opened.key_hashes("u1", key)) as found:
            assert [row["_diff"] for row in found.contents().to_pylist()] == [3]

    check(environment)
    with Observer.open(tmp_path / "data") as observer, observer.contents("u1", 1) as reading:
        assert reading.names == ["_diff", *WIDER.names]
        assert sorted(row["n"] for table in reading for row in table.to_pylist()) == [0, 1, 2]
    environment.maintenance.compact("u1")
    check(environment)
    environment.append(writer, updates((2, "w", 2, -1)), Antichain(3))  # by one who knows nothing of new columns
    assert rows(environment, "u1", 2) == after[:2]
    environment.close()
    with Environment.open(tmp_path / "data", background=False) as again:
        check(again)
        assert rows(again, "u1", 2) == after[:2]
        again.maintenance.compact("u1")
        assert rows(again, "u1", 2) == after[:2]


def test_columns_and_rows_are_one_commit(environment: Environment) -> None:
    writer = filled(environment)
    stale = WriteCapability(writer.token, writer.id, Antichain(0))
    with pytest.raises(UpperMismatch):
        environment.commit(Extend(writer, WIDER), UpdateAndDowngrade(stale, None, Antichain(2)))
    assert environment.shard("u1").spec.schema.names == SCHEMA.names
    with pytest.raises(SchemaMismatch):  # these columns are not there without the extension
        environment.append(writer, wide((9, "w", [1], "x", 1, 1)), Antichain(2))


@pytest.mark.parametrize(
    ("schema", "lines"),
    [
        (pa.schema([("n", pa.int64())]), ["column word is missing"]),
        (
            pa.schema([("n", pa.int32()), ("text", pa.string()), pa.field("x", pa.int64(), nullable=False)]),
            [
                "column 1 is n int64, and would be n int32",
                "column 2 is word string, and would be text string",
                "column x is new, and could not be NULL",
            ],
        ),
    ],
)
def test_other_columns_are_refused_line_by_line(environment: Environment, schema: pa.Schema, lines: list[str]) -> None:
    with pytest.raises(SchemaMismatch) as refused:
        environment.commit(Extend(filled(environment), schema))
    assert (refused.value.detail or "").splitlines() == lines


@pytest.mark.parametrize("more", [pa.field("n", pa.int64()), pa.field("_diff", pa.int64()), pa.field("x", pa.int8())])
def test_what_cannot_be_stored_cannot_be_added(environment: Environment, more: pa.Field) -> None:
    writer = filled(environment)
    if more.name == "x":
        environment.commit(Extend(writer, pa.schema([*SCHEMA, more])))
        assert environment.shard("u1").spec.created == len(SCHEMA)
        return
    with pytest.raises(SchemaMismatch):
        environment.commit(Extend(writer, pa.schema([*SCHEMA, more])))


def test_to_have_the_columns_already_is_no_change(environment: Environment) -> None:
    writer = filled(environment)
    environment.commit(Extend(writer, SCHEMA))
    assert environment.shard("u1").spec.schema == SCHEMA


def test_columns_of_the_beginning_cannot_be_left_out(environment: Environment) -> None:
    writer = extended(environment, filled(environment), None, 2)
    with pytest.raises(SchemaMismatch, match="do not have the collection's columns"):
        environment.append(writer, wide((1, "w", [1], "x", 2, 1)).drop_columns(["word"]), Antichain(3))


def test_a_subscription_keeps_its_columns(environment: Environment) -> None:
    """It was made before: a change in columns that it does not know is none."""
    writer = filled(environment, 1)
    reader, other = environment.acquire("u1")
    environment.drop(other)
    subscription = environment.subscribe(reader)
    change = wide((0, "w", None, None, 1, -1), (0, "w", [1], "x", 1, 1), (5, "w", [2], None, 1, 1))
    extended(environment, writer, change, 2)
    seen = []
    while (event := subscription.next(0)) is not None:
        if not isinstance(event, Progress):
            assert event.table.column_names == ["_time", "_diff", *SCHEMA.names]
            seen += [tuple(row.values()) for row in event.table.to_pylist()]
    assert sorted(seen) == [(0, 1, 0, "w"), (1, 1, 5, "w")]


def test_what_was_begun_before_ends_well(environment: Environment) -> None:
    """Updates staged, files landed and a compaction made for fewer columns, committed when there are more."""
    writer = filled(environment)
    writer = environment.append(writer, updates((7, "w", 1, 1)), Antichain(2))
    landing = environment.landing("u1")
    write(landing, sorted_part(updates(*((n, "landed", 3, 1) for n in range(100_000))), landing.spec))
    landed = landing.staged()
    staged = environment.stage("u1", updates((8, "w", 2, 1)))
    work = compaction.full(environment.shard("u1"), {})
    assert work is not None
    output = compaction.compact(work, environment._stager, environment._reader)
    writer = extended(environment, writer, None, 2)
    writer = environment.append(writer, staged, Antichain(3))
    environment.append(writer, landed, Antichain(4))
    assert environment._applier.commit((Substitute("u1", work.inputs, output),)) == [True]
    assert rows(environment, "u1", 2) == [(n, "w", None, None, 1) for n in (0, 1, 2, 7, 8)]
    assert len(rows(environment, "u1", 3)) == 100_005
    environment.maintenance.compact("u1")
    assert rows(environment, "u1", 2) == [(n, "w", None, None, 1) for n in (0, 1, 2, 7, 8)]
    assert len(rows(environment, "u1", 3)) == 100_005


def test_a_reading_that_looks_again_keeps_its_columns(environment: Environment, tmp_path: Path) -> None:
    """An observer looks again when what it reads was compacted, and finds more columns than there were."""
    writer = filled(environment)
    with Observer.open(tmp_path / "data") as observer, observer.contents("u1", 0) as reading:
        extended(environment, writer, wide((1, "w", [1], "x", 1, 1)), 2)
        reading.close()
        reading._open(1)  # as it does when a part is missing
        assert reading.snapshot.shard.spec.schema.names == WIDER.names
        found = pa.concat_tables(reading)
        assert found.column_names == ["_diff", *SCHEMA.names] == reading.names
        assert sorted(found.column("n").to_pylist()) == [0, 1, 2]


def test_the_memory_of_inline_batches_knows_the_columns(environment: Environment) -> None:
    """Selections of before and after are read in turns: each has its own columns."""
    writer = filled(environment)
    with environment.contents("u1", 0) as old:
        extended(environment, writer, wide((9, "w", [1], "x", 1, 1)), 2)
        with environment.contents("u1", 1) as new:
            for _ in range(2):
                assert new.contents().num_rows == 4 and old.contents().num_rows == 3
                assert set(new.contents().column_names) > set(old.contents().column_names)


def test_what_was_written_before_columns_could_be_added() -> None:
    """Entries without a count of columns have those of the beginning."""
    batch = inline_batch(updates((1, "w", 0, 1)).to_batches()[0], 0, 1, -1)
    assert decode_batch(3, encode_batch(batch), "here") == Batch(**{**_fields(batch), "number": 3})
    spec = Spec(WIDER, tuple(WIDER.names), 4, 2)
    assert decode_spec(encode_spec(spec)) == spec
    head = b'{"key": ["n", "word"], "initial": 0}'
    old = decode_spec(len(head).to_bytes(4, "little") + head + bytes(SCHEMA.serialize()))
    assert (old.created, old.schema) == (2, SCHEMA)


def _fields(batch: Batch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in Batch.__slots__}
