"""The hash agrees with Spark's to the bit, however a column is laid out and whichever way it is computed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.timely import hashing
from everview.timely.hashing import hash_rows, hashable, list_bounds
from tests.timely.golden_hashes import GOLDEN, PAIR
from tests.timely.tables import TYPES, column, cut, odd_nans, value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The limits that choose between hashing one by one and together, so that both ways are taken by any input.
WAYS = {
    "one by one": {"_FEW": 1 << 30},
    "together": {"_FEW": 0, "_LONG_BYTES": 1 << 30},
    "mixed, in slices": {"_FEW": 2, "_LONG_BYTES": 40, "_SLICE_ROWS": 5},
}
ways = pytest.mark.parametrize("way", WAYS)

# For a property that is checked for each of many types.
FEW_EXAMPLES = settings(max_examples=max(5, settings().max_examples // 10))


@contextmanager
def by(way: str) -> Iterator[None]:
    with mock.patch.multiple(hashing, **WAYS[way]):  # type: ignore[call-overload]
        yield


def hashes_of(*columns: pa.Array | pa.ChunkedArray) -> list[int]:
    return hash_rows(columns, len(columns[0])).tolist()


@ways
@pytest.mark.parametrize(("dtype", "answers"), GOLDEN, ids=[str(dtype) for dtype, _ in GOLDEN])
def test_values_hash_as_spark_hashes_them(dtype: pa.DataType, answers: list[tuple[Any, int]], way: str) -> None:
    values, expected = map(list, zip(*answers, strict=True))
    with by(way):
        assert hashes_of(pa.array(values, dtype)) == expected
        assert hashes_of(pa.array(values * 40, dtype)) == expected * 40


@ways
def test_rows_hash_as_spark_hashes_them(way: str) -> None:
    columns = [
        pa.array([1, None, None, 1], pa.int32()),
        pa.array(["a", None, "a", None]),
        pa.array([0.0, None, None, float("nan")]),
        pa.array([{"x": 1, "y": "b"}, None, {"x": None, "y": "b"}, None], PAIR),
    ]
    with by(way):
        expected = [-3211052984934295991, 42, -7357372313250070212, 3228764760660482792]
        assert hashes_of(*columns) == expected


def test_no_rows_and_no_columns() -> None:
    assert hash_rows([], 0).tolist() == []
    assert hash_rows([], 3).tolist() == [42, 42, 42]
    for dtype in TYPES:
        for empty in (pa.array([], dtype), pa.chunked_array([], dtype), pa.chunked_array([[], []], dtype)):
            assert hash_rows([empty], 0).tolist() == []
        assert hashes_of(pa.nulls(3, dtype)) == [42] * 3


@ways
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(rng=st.randoms(use_true_random=True), rows=st.integers(0, 20))
@FEW_EXAMPLES
def test_layout_does_not_matter(dtype: pa.DataType, way: str, rng: random.Random, rows: int) -> None:
    values = [value(rng, dtype) for _ in range(rows)]
    whole = column(rng, dtype, values)
    one_by_one = [hash_rows([pa.array([item], dtype)], 1).item() for item in values]
    start = rng.randint(0, rows)
    with by(way):
        assert hashes_of(whole) == one_by_one
        assert hashes_of(whole.slice(start)) == one_by_one[start:]
        assert hashes_of(cut(rng, whole)) == one_by_one


@ways
@given(rng=st.randoms(use_true_random=True), count=st.integers(1, 4), rows=st.integers(1, 20))
def test_columns_lists_and_structs_fold_alike(way: str, rng: random.Random, count: int, rows: int) -> None:
    dtype = rng.choice(TYPES)
    items = [[value(rng, dtype) for _ in range(count)] for _ in range(rows)]
    columns = [column(rng, dtype, [row[i] for row in items]) for i in range(count)]
    struct = pa.struct([(str(i), dtype) for i in range(count)])
    with by(way):
        expected = hashes_of(*columns)
        assert hashes_of(column(rng, pa.list_(dtype), items)) == expected
        assert hashes_of(column(rng, struct, [{str(i): row[i] for i in range(count)} for row in items])) == expected


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
@ways
def test_every_nan_is_one(dtype: pa.DataType, way: str) -> None:
    with by(way), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(hashes_of(odd_nans(dtype))) == set(hashes_of(pa.array([float("nan")], dtype)))


def test_a_field_of_a_struct_counts_only_where_the_struct_is() -> None:
    children = [pa.array([1, 2, 3, 4], pa.int32()), pa.array(["a", "b", None, "d"])]
    structs = pa.StructArray.from_arrays(children, fields=list(PAIR), mask=pa.array([False, True, False, True]))
    values = [{"x": 1, "y": "a"}, None, {"x": 3, "y": None}, None]
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3, 4], pa.int32()), structs)
    for way in WAYS:
        with by(way):
            assert hashes_of(structs) == hashes_of(pa.array(values, PAIR))
            assert hashes_of(structs.slice(1, 2)) == hashes_of(pa.array(values[1:3], PAIR))
            nested = pa.array([values[1:3], [], values[3:]], pa.list_(PAIR))
            assert hashes_of(lists.slice(1)) == hashes_of(nested)


@pytest.mark.timeout(10)
def test_the_very_long_among_many() -> None:
    """They are hashed in a moment; with all the others at once they would take several times the limit."""
    text, short = "0123456789" * 4_000_000, [""] * 1_000
    expected = hashes_of(pa.array([text]))[0]
    assert hashes_of(pa.array([*short, text]))[-1] == expected
    items = list(range(500_000))
    few: list[list[Any]] = [[]] * 100
    expected = hashes_of(pa.array([items]))[0]
    assert hashes_of(pa.array([*few, items, *few], pa.list_(pa.int64())))[100] == expected
    prefix = hash_rows([pa.array([item]) for item in items[:50]], 1)
    assert hashes_of(pa.array([items[:50]])) == prefix.tolist()


def test_the_bounds_of_lists_and_strings() -> None:
    values = pa.array([1, 2, 3, 4, 5, 6])
    mask = pa.array([False, True, False, False])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3, 6], pa.int32()), values, mask=mask)
    assert [bounds.tolist() for bounds in list_bounds(lists)] == [[0, 1, 3, 3], [1, 0, 0, 3]]
    assert [bounds.tolist() for bounds in list_bounds(lists.slice(1))] == [[1, 3, 3], [0, 0, 3]]
    for dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        assert [bounds.tolist() for bounds in list_bounds(pa.array(["ab", None, "c"], dtype))] == [[0, 2, 2], [2, 0, 1]]
        assert [bounds.tolist() for bounds in list_bounds(pa.array([], dtype))] == [[], []]


def test_many_rows_in_slices(rng: random.Random) -> None:
    rows = 2 * hashing._SLICE_ROWS + 7
    numbers = pa.array([rng.randrange(2**63) for _ in range(rows)])
    texts = numbers.cast(pa.string())
    hashes = hash_rows([numbers, cut(rng, texts)], rows)
    places = [0, 1, hashing._SLICE_ROWS - 1, hashing._SLICE_ROWS, rows - 1]
    assert hashes[places].tolist() == hashes_of(numbers.take(pa.array(places)), texts.take(pa.array(places)))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_supported_types_are_hashable(dtype: pa.DataType) -> None:
    assert hashable(dtype)
    assert hashable(pa.list_(dtype))
    assert hashable(pa.struct([("f", dtype)]))


UNSUPPORTED = [
    pa.null(),
    pa.uint8(),
    pa.uint64(),
    pa.float16(),
    pa.date64(),
    pa.time32("ms"),
    pa.time64("us"),
    pa.duration("us"),
    pa.decimal256(40, 2),
    pa.large_list(pa.int64()),
    pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int32(), pa.string()),
]


@pytest.mark.parametrize("dtype", UNSUPPORTED, ids=str)
def test_other_types_are_not(dtype: pa.DataType) -> None:
    assert not hashable(dtype)
    assert not hashable(pa.list_(dtype))
    assert not hashable(pa.struct([("i", pa.int64()), ("f", dtype)]))
    for way in WAYS:
        with by(way), pytest.raises(TypeError):
            hash_rows([pa.nulls(3, dtype)], 3)


def test_timestamps_are_in_microseconds_and_utc() -> None:
    assert not any(map(hashable, [pa.timestamp("ns"), pa.timestamp("ms"), pa.timestamp("us", "Europe/Berlin")]))


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_agrees_on_random_tables(
    spark: SparkSession, rng: random.Random, tmp_path: Path, long_forms: bool
) -> None:
    rows = 50_000 if long_forms else 2_000
    columns = [column(rng, dtype, [value(rng, dtype) for _ in range(rows)]) for dtype in TYPES]
    for place, dtype in enumerate(TYPES):
        if pa.types.is_floating(dtype):
            columns[place] = pa.concat_arrays([odd_nans(dtype), columns[place]]).slice(0, rows)
    names = [f"c{number}" for number in range(len(TYPES))]
    data = pa.table(columns, names=names)
    pq.write_table(data.append_column("row", pa.array(range(rows))), tmp_path / "data.parquet", row_group_size=999)

    several = [rng.sample(names, rng.randint(2, 6)) for _ in range(10)]
    keys = [[name] for name in names] + several + [names]
    answers = (
        spark.read.parquet(str(tmp_path / "data.parquet"))
        .selectExpr("row", *(f"xxhash64({', '.join(key)})" for key in keys))
        .orderBy("row")
        .toArrow()
    )
    for number, key in enumerate(keys):
        ours = hash_rows([data.column(name) for name in key], rows)
        theirs = answers.column(number + 1).to_numpy()
        differ = np.flatnonzero(ours != theirs)
        assert not len(differ), f"{[str(data.schema.field(name).type) for name in key]} in row {differ[0]}"
