"""Sameness of rows against plain Python, and that rows which are the same hash alike."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.timely.equality import arrays_equal, rows_equal
from everview.timely.hashing import hash_rows
from tests.timely.tables import TYPES, odd_nans, plain_rows, updates

PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])


def pairwise_equal(data: pa.Table) -> Any:
    """Of every row and every row, whether they are the same."""
    left, right = (places.ravel() for places in np.indices((data.num_rows, data.num_rows)))
    return rows_equal(data.columns, left, right).reshape(data.num_rows, data.num_rows)


def check(data: pa.Table) -> None:
    rows = plain_rows(data)
    equal = pairwise_equal(data)
    assert equal.tolist() == [[a == b for b in rows] for a in rows]
    hashes = hash_rows(data.columns, data.num_rows)
    assert (hashes[:, None] == hashes[None, :])[equal].all()


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(rng=st.randoms(use_true_random=True), rows=st.integers(0, 10))
@settings(max_examples=max(5, settings().max_examples // 10))
def test_values_of_every_type(dtype: pa.DataType, rng: random.Random, rows: int) -> None:
    check(updates(rng, [dtype], rows).select([0]))


@given(rng=st.randoms(use_true_random=True), columns=st.integers(0, 4), rows=st.integers(0, 10))
def test_rows_of_several_columns(rng: random.Random, columns: int, rows: int) -> None:
    dtypes = rng.choices(TYPES, k=columns)
    check(updates(rng, dtypes, rows).select(list(range(columns))) if columns else pa.table({"a": [1] * rows}))


def test_rows_without_columns_are_the_same() -> None:
    assert rows_equal([], np.array([0, 1]), np.array([1, 2])).tolist() == [True, True]
    assert rows_equal([], np.array([], dtype=int), np.array([], dtype=int)).tolist() == []


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float64()], ids=str)
def test_nans_and_zeros(dtype: pa.DataType) -> None:
    assert pairwise_equal(pa.table({"a": odd_nans(dtype)})).all()
    assert arrays_equal(pa.array([0.0, 0.0, None], dtype), pa.array([-0.0, None, None], dtype)).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pa.list_(pa.int64()), [None, [], [None], [None, None], [0], [0, None], [None, 0]]),
        (pa.list_(pa.list_(pa.int64())), [None, [], [None], [[]], [[None]], [[], []], [[1, 2]], [[1], [2]]]),
        (PAIR, [None, {"x": None, "y": None}, {"x": 1, "y": None}, {"x": None, "y": ""}, {"x": 1, "y": ""}]),
        (pa.list_(PAIR), [None, [], [None], [{"x": None, "y": None}], [{"x": 1, "y": None}]]),
        (pa.string(), [None, "", "\0", "a", "a "]),
        (pa.timestamp("us"), [None, 0, 2**63 - 1, -(2**63)]),
        (pa.date32(), [None, 0, 2**31 - 1, -(2**31)]),
    ],
    ids=str,
)
def test_what_differs_only_a_little_differs(dtype: pa.DataType, values: list[Any]) -> None:
    assert pairwise_equal(pa.table({"a": pa.array(values, dtype)})).tolist() == np.eye(len(values)).tolist()


def test_content_under_a_null_does_not_count() -> None:
    mask = pa.array([True, False])
    left = pa.StructArray.from_arrays([pa.array([1, 5])], names=["x"], mask=mask)
    right = pa.StructArray.from_arrays([pa.array([2, 5])], names=["x"], mask=mask)
    assert arrays_equal(left, right).all()
    offsets = pa.array([0, 2, 3], pa.int32())
    left = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 3]), mask=mask)
    right = pa.ListArray.from_arrays(offsets, pa.array([8, 9, 3]), mask=mask)
    assert arrays_equal(left, right).all()
    assert arrays_equal(left.slice(1), right.slice(1)).all()
    assert not arrays_equal(left.slice(1), right.slice(0, 1)).any()
