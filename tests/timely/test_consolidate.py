"""Consolidation against a dictionary in plain Python, with hashes that are good, and with ones that collide."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.timely import consolidate as module
from everview.timely.consolidate import (
    DIFF,
    HASH,
    TIME,
    MultiplicityOverflow,
    advance,
    consolidate,
    data_names,
    int_column,
    order_by_hash,
    with_column,
    with_hash,
)
from everview.timely.hashing import hash_rows
from tests.timely.tables import TYPES, contents, meaning, plain_rows, table, updates, with_updates

Hash = Callable[..., npt.NDArray[np.int64]]
LEAST, GREATEST = -(2**63), 2**63 - 1

HASHES: dict[str, Hash] = {
    "good hashes": hash_rows,
    "two hashes": lambda columns, rows: hash_rows(columns, rows) % 2,
    "one hash": lambda columns, rows: np.full(rows, -7),
}


any_hash = pytest.mark.parametrize("hash_name", HASHES)


@contextmanager
def hashing_by(hash_name: str) -> Iterator[Hash]:
    """While consolidation uses this hash: whichever it is, the result is exact."""
    with mock.patch.object(module, "hash_rows", HASHES[hash_name]) as chosen:
        yield chosen


def numbers(updates: pa.Table, name: str) -> list[int]:
    return updates.column(name).to_pylist()


def check(updates: pa.Table, key: Sequence[str] | None, rows: Any, hash_of: Hash) -> pa.Table:
    """Consolidate, and see that the result is consolidated and means the same."""
    picked = rows.copy() if rows is not None else None
    result = consolidate(updates, key, rows)
    taking_part = updates if rows is None else updates.take(pa.array(picked))
    assert rows is None or (rows == picked).all(), "what it is given it leaves as it is"

    assert meaning(result) == meaning(taking_part)
    assert result.num_rows == len(meaning(result)), "one update for each row and time"
    assert 0 not in numbers(result, DIFF)

    names = data_names(updates)
    hashes = hash_of([result.column(name) for name in (names if key is None else key)], result.num_rows)
    assert numbers(result, HASH) == hashes.tolist()
    row_hashes = hash_of([result.column(name) for name in names], result.num_rows)
    order = list(zip(hashes.tolist(), row_hashes.tolist(), numbers(result, TIME), strict=True))
    assert order == sorted(order)

    assert result.schema == with_hash(updates, names).schema, "whatever is in the table"
    again = consolidate(result, key)
    assert plain_rows(again, again.column_names) == plain_rows(result, result.column_names), "once is enough"
    return result


@any_hash
@given(
    rng=st.randoms(use_true_random=True),
    columns=st.integers(0, 4),
    rows=st.integers(0, 40),
    key=st.sampled_from(["row", "some", "reversed", "none"]),
    hashed=st.booleans(),
    subset=st.booleans(),
)
def test_it_means_the_same(
    *, hash_name: str, rng: random.Random, columns: int, rows: int, key: str, hashed: bool, subset: bool
) -> None:
    given_updates = updates(rng, rng.choices(TYPES, k=columns), rows)
    names = data_names(given_updates)
    keys: dict[str, list[str] | None] = {
        "row": None,
        "some": names[: columns // 2],
        "reversed": names[::-1],
        "none": [],
    }
    some = np.array([place for place in range(rows) if rng.random() < 0.7], dtype=np.intp) if subset else None
    with hashing_by(hash_name) as hash_of:
        if hashed:
            of = keys[key]
            given_updates = with_hash(given_updates, names if of is None else of)
        check(given_updates, keys[key], some, hash_of)


@any_hash
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type(hash_name: str, dtype: pa.DataType, rng: random.Random) -> None:
    with hashing_by(hash_name) as hash_of:
        result = check(updates(rng, [dtype], 200, distinct=15), None, None, hash_of)
        twice = result.take(pa.array(np.repeat(np.arange(result.num_rows), 2)))  # in order as it stands
        doubled = check(twice, None, None, hash_of)
    assert numbers(doubled, DIFF) == [2 * diff for diff in numbers(result, DIFF)]
    negated = with_column(result, DIFF, -int_column(result, DIFF))
    assert consolidate(pa.concat_tables([result, negated])).num_rows == 0


def test_many_updates(rng: random.Random) -> None:
    given_updates = updates(rng, [pa.int64(), pa.string()], 3_000, distinct=700, times=range(3))
    result = check(given_updates, ["a"], None, hash_rows)
    assert 0 < result.num_rows < 3_000


@any_hash
def test_tables_of_no_and_of_one_row(hash_name: str, rng: random.Random) -> None:
    for columns in (0, 1, 3):
        dtypes = TYPES[-columns:] if columns else []
        for rows, diff in ((0, 1), (1, 1), (1, 0), (1, LEAST)):
            one = updates(rng, dtypes, rows, diffs=[diff])
            with hashing_by(hash_name) as hash_of:
                result = check(one, None, None, hash_of)
                check(one, None, np.array([], dtype=np.intp), hash_of)
            assert result.num_rows == (rows if diff else 0)
    empty = pa.schema([("a", pa.string()), (TIME, pa.int64()), (DIFF, pa.int64())]).empty_table()
    assert consolidate(empty).num_rows == 0


def test_the_times_and_diffs_of_rows_without_columns(rng: random.Random) -> None:
    counts = with_updates(rng, pa.table({}), [3, 1, 3, 1, 2], [1, 1, 4, -1, -2])
    result = consolidate(counts)
    assert result.select([HASH, TIME, DIFF]).to_pylist() == [
        {HASH: 42, TIME: 2, DIFF: -2},
        {HASH: 42, TIME: 3, DIFF: 5},
    ]


@pytest.mark.parametrize(
    "dtype", [pa.int64(), pa.string(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()], ids=str
)
def test_rows_that_differ_in_where_their_nulls_are(dtype: pa.DataType, rng: random.Random) -> None:
    """They share a hash, and so stand in each other's way, also where values are none that Python has."""
    values = pa.array([5, 2**31 - 1, -(2**31)], pa.int32()).cast(pa.int64())
    values = [str(v) for v in values.to_pylist()] if dtype == pa.string() else values.to_pylist()
    if pa.types.is_timestamp(dtype):
        values = [value << 31 for value in values]
    rows = [row for value in values for row in ((value, None), (None, value), (value, None), (None, value))]
    data = table(rng, [dtype, dtype], rows)
    assert len(set(hash_rows(data.columns, len(rows)).tolist())) == len(values)
    result = check(with_updates(rng, data, [1] * len(rows), [1, 1, 1, -1] * len(values)), None, None, hash_rows)
    assert numbers(result, DIFF) == [2] * len(values)


def test_many_collisions() -> None:
    """Each pair of (n, NULL) and (NULL, n) collides, twice; as many as these are separated together."""
    half = pa.array(range(20_000))
    none = pa.nulls(len(half), pa.int64())
    a, b = pa.concat_arrays([half, none, half, none]), pa.concat_arrays([none, half, none, half])
    ones = np.ones(len(a), dtype=np.int64)
    result = consolidate(pa.table({"a": a, "b": b, TIME: ones, DIFF: ones}))
    assert result.num_rows == 2 * len(half)
    assert set(numbers(result, DIFF)) == {2}
    assert sorted(result.column("a").drop_null().to_pylist()) == half.to_pylist()


def test_what_it_is_given_it_leaves_as_it_is() -> None:
    """Also where the order is right already, and only a collision has to be put in order."""
    given_updates = pa.table({"a": [1, None, 1], "b": [None, 1, None], TIME: [0, 0, 0], DIFF: [1, 1, 1]})
    rows = np.arange(3)
    assert numbers(consolidate(given_updates, None, rows), DIFF) == [2, 1]
    assert rows.tolist() == [0, 1, 2]
    assert numbers(given_updates, DIFF) == [1, 1, 1]


def test_a_hash_that_is_there_is_kept() -> None:
    given_updates = pa.table({"a": ["x", "y", "x"], HASH: [3, 1, 3], TIME: [0, 0, 0], DIFF: [1, 1, 1]})
    assert consolidate(given_updates).to_pydict() == {"a": ["y", "x"], HASH: [1, 3], TIME: [0, 0], DIFF: [1, 2]}


def test_no_more_is_hashed_than_takes_part(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> None:
    hashed: list[int] = []
    monkeypatch.setattr(
        module, "hash_rows", lambda columns, rows: [*map(hashed.append, [rows]), hash_rows(columns, rows)][-1]
    )
    keyed = with_hash(updates(rng, [pa.int64(), pa.string()], 50), ["a"])
    hashed.clear()
    consolidate(keyed, ["a"], np.array([3, 5, 8]))
    consolidate(keyed, ["b"], np.array([], dtype=np.intp))
    assert max(hashed, default=0) <= 3


@given(
    rng=st.randoms(use_true_random=True),
    diffs=st.lists(st.sampled_from([LEAST, LEAST + 1, -(2**62), -1, 1, 2**32, 2**62, GREATEST]), max_size=6),
    distinct=st.integers(1, 3),
)
def test_a_sum_is_exact_or_an_error(rng: random.Random, diffs: list[int], distinct: int) -> None:
    rows = [(rng.randrange(distinct),) for _ in diffs]
    given_updates = with_updates(rng, table(rng, [pa.int64()], rows), [0] * len(rows), diffs)
    if all(LEAST <= total <= GREATEST for total in meaning(given_updates).values()):
        assert meaning(consolidate(given_updates)) == meaning(given_updates)
    else:
        with pytest.raises(MultiplicityOverflow, match="64 bits"):
            consolidate(given_updates)


@pytest.mark.parametrize("diffs", [(GREATEST, 1), (LEAST, -1), (2**62, 2**62), (LEAST, LEAST)])
def test_overflow(diffs: tuple[int, int]) -> None:
    same = pa.table({"a": [1, 1], TIME: [0, 0], DIFF: diffs})
    with pytest.raises(MultiplicityOverflow, match="64 bits"):
        consolidate(same)
    different = pa.table({"a": [1, 2, 1], TIME: [0, 0, 0], DIFF: [*diffs, 0]})
    assert sorted(numbers(consolidate(different), DIFF)) == sorted(diffs)


@given(rng=st.randoms(use_true_random=True), rows=st.integers(0, 20), since=st.integers(0, 9))
def test_advance_keeps_the_contents_from_since_on(rng: random.Random, rows: int, since: int) -> None:
    given_updates = updates(rng, [pa.int64(), pa.string()], rows, distinct=2, times=range(8))
    advanced = advance(given_updates, since)
    assert advanced.schema == given_updates.schema
    assert all(time >= since for time in numbers(advanced, TIME))
    for time in range(since, 12):
        assert contents(advanced, time) == contents(given_updates, time) == contents(consolidate(advanced), time)
    if all(time >= since for time in numbers(given_updates, TIME)):
        assert advanced is given_updates


@given(st.lists(st.one_of(st.integers(LEAST, GREATEST), st.sampled_from([LEAST, LEAST + 1, -1, 0, 1, 2, GREATEST]))))
def test_order_by_hash_is_a_stable_sort(values: list[int]) -> None:
    check_order(np.array(values, dtype=np.int64))


def check_order(hashes: npt.NDArray[np.int64]) -> None:
    expected = np.argsort(hashes, kind="stable")
    order = order_by_hash(hashes)
    assert order.dtype == np.intp
    assert order.tolist() == expected.tolist()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 127, 128, 129, 5_000])
def test_order_by_hash_of_every_kind(count: int, rng: random.Random) -> None:
    whole = np.array([rng.randint(LEAST, GREATEST) for _ in range(count)], dtype=np.int64)
    check_order(whole)
    check_order(whole[::-2])  # strided
    check_order(np.sort(whole)[::-1])
    check_order(np.zeros(count, dtype=np.int64))
    check_order(whole >> 60)  # many ties
    check_order(LEAST + np.arange(count, dtype=np.int64)[::-1])  # that differ only in the low bits
    check_order(GREATEST - (whole & 0xFF))
    whole.setflags(write=False)
    check_order(whole)


def test_columns_in_several_chunks_or_none() -> None:
    schema = pa.schema([(TIME, pa.int64())])
    assert int_column(schema.empty_table(), TIME).tolist() == []
    assert int_column(pa.table({TIME: pa.chunked_array([], pa.int64())}), TIME).tolist() == []
    assert int_column(pa.table({TIME: pa.chunked_array([[1], [], [2, 3]])}), TIME).tolist() == [1, 2, 3]


def test_setting_a_column_keeps_its_place_and_field() -> None:
    given_updates = pa.table({"a": ["x"], TIME: [1], "b": [2]})
    changed = with_column(given_updates, TIME, np.array([7]))
    assert changed.to_pydict() == {"a": ["x"], TIME: [7], "b": [2]}
    assert changed.schema == given_updates.schema
    added = with_column(given_updates, HASH, np.array([9]))
    assert added.to_pydict() == {HASH: [9], "a": ["x"], TIME: [1], "b": [2]}
    assert not added.schema.field(HASH).nullable
    assert added.drop_columns([HASH]).schema == given_updates.schema
    assert data_names(added) == ["a", "b"]
