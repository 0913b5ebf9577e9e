"""Decimals at rest: those that fit a word are integers in Parquet; fewer digits become more, and never the reverse."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.storage.environment import Environment
from everview.storage.errors import SchemaMismatch
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME
from everview.timely.hashing import hash_rows

LIMITS = ["0.00", "0.01", "-0.01", "9999999999999999.99", "-9999999999999999.99", "1.50"]
WORD, WIDE = pa.decimal128(18, 2), pa.decimal128(38, 2)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path, background=False) as opened:
        yield opened


def updates(values: list[Any], dtype: pa.DataType) -> pa.Table:
    count = len(values)
    fields = [pa.field(TIME, pa.int64(), False), pa.field(DIFF, pa.int64(), False), pa.field("c0", dtype)]
    data = [pa.array([0] * count, pa.int64()), pa.array([1] * count, pa.int64()), pa.array(values, dtype)]
    return pa.table(data, schema=pa.schema(fields))


def contents(environment: Environment, id: str) -> list[Any]:
    with environment.contents(id, 0) as selection:
        table = selection.contents()
    assert table.column("c0").type == environment.shard(id).spec.schema.field("c0").type
    return in_order([row["c0"] for row in table.to_pylist() for _ in range(row[DIFF])])


def in_order(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda each: (each is None, each or 0))


@pytest.mark.parametrize("dtype", [WORD, WIDE], ids=str)
@pytest.mark.parametrize("count", [20, 20_000])
def test_values_come_back(environment: Environment, rng: random.Random, dtype: pa.DataType, count: int) -> None:
    drawn = [None, *map(Decimal, LIMITS), *(Decimal(rng.randint(-(10**17), 10**17)).scaleb(-2) for _ in range(count))]
    writer = environment.create("u1", pa.schema([("c0", dtype)]))[1]
    environment.append(writer, updates(drawn, dtype), Antichain(1))
    assert contents(environment, "u1") == in_order(drawn)
    (batch,) = environment.shard("u1").batches.values()
    for part in batch.parts:
        with environment.contents("u1", 0) as selection:
            uri = next(uri for uri in selection.uris if uri.endswith(part.key.rpartition("/")[2]))
        kinds = pq.ParquetFile(uri.removeprefix("file://")).schema
        physical = next(kinds.column(at) for at in range(len(kinds)) if kinds.column(at).name == "c0").physical_type
        assert physical == ("INT64" if dtype == WORD else "FIXED_LEN_BYTE_ARRAY")
    assert batch.inline == (count == 20)


@pytest.mark.parametrize("listed", [False, True])
def test_fewer_digits_become_more(environment: Environment, listed: bool) -> None:
    narrow, wide = (pa.list_(each) if listed else each for each in (pa.decimal128(10, 2), WIDE))
    drawn: list[Any] = [None, Decimal("1.50"), Decimal("-99999999.99")]
    drawn = [each if each is None or not listed else [each, None] for each in drawn]
    writer = environment.create("u1", pa.schema([("c0", wide)]))[1]
    environment.append(writer, updates(drawn, narrow), Antichain(1))
    with environment.contents("u1", 0) as selection:
        found = selection.contents().column("c0")
    assert found.type == wide
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, drawn))
    other = pa.decimal128(10, 3)
    with pytest.raises(SchemaMismatch, match="and should be"):
        environment.stage("u1", updates([None], pa.list_(other) if listed else other))


def test_more_digits_do_not_become_fewer(environment: Environment) -> None:
    environment.create("u1", pa.schema([("c0", WORD)]))
    with pytest.raises(SchemaMismatch, match=r"c0 is decimal128\(38, 2\), and should be decimal128\(18, 2\)"):
        environment.stage("u1", updates([Decimal("1.50")], WIDE))


def test_keys_are_looked_up_as_they_are_kept(environment: Environment) -> None:
    values = [Decimal("1.50"), Decimal("-7.25")]
    for id, dtype in (("word", WORD), ("wide", WIDE)):
        environment.create(id, pa.schema([("c0", dtype)]))
        expected = hash_rows([pa.array(values, dtype)], 2)
        for given in (pa.decimal128(10, 2), WORD, WIDE):
            assert np.array_equal(environment.key_hashes(id, pa.table({"c0": pa.array(values, given)})), expected)
