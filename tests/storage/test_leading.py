"""The first rows in an order: random collections in several parts and inline batches, beside all of their rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from everview.storage import batch
from everview.storage.environment import Environment
from everview.storage.leading import leading
from everview.storage.selection import Selection
from everview.timely.antichain import Antichain
from everview.timely.hashing import hash_rows
from everview.timely.ordering import Sort, in_order

VALUES = {
    "number": (pa.int64(), lambda rng: rng.choice([None, rng.randint(-50, 50)])),
    "word": (pa.string(), lambda rng: rng.choice([None, "", "a", "ä", "b", str(rng.randint(0, 99))])),
    "price": (pa.decimal128(18, 2), lambda rng: Decimal(rng.randint(-999, 999)).scaleb(-2)),
    "long": (pa.decimal128(38, 2), lambda rng: rng.choice([None, Decimal(rng.randint(-(10**30), 10**30)).scaleb(-2)])),
    "real": (pa.float64(), lambda rng: rng.choice([None, 0.0, -0.0, float("nan"), float("-inf"), rng.gauss(0, 9)])),
    "day": (pa.date32(), lambda rng: date(2000, 1, 1) + timedelta(rng.randint(-99, 99))),
}
SCHEMA = pa.schema([("k", pa.int64()), *((name, dtype) for name, (dtype, _) in VALUES.items())])


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    with Environment.open(tmp_path / "data", background=False) as opened:
        yield opened


def row(rng: random.Random, groups: int) -> dict[str, Any]:
    return {"k": rng.randrange(groups)} | {name: make(rng) for name, (_, make) in VALUES.items()}


def written(environment: Environment, rng: random.Random, key: list[str] | None, groups: int) -> list[dict[str, Any]]:
    """A collection of some thousand rows; gives those that are left."""
    _, write = environment.create("u1", SCHEMA, key=key)
    rows: list[dict[str, Any]] = []
    for time in range(6):
        added = [row(rng, groups) for _ in range(rng.choice([5, 300, 8_000]))]
        # What comes first in an order is what is retracted most often.
        gone = sorted(rows, key=lambda each: each["price"])[: rng.choice([0, 3, 60])]
        gone += rng.sample(rows, min(len(rows), rng.choice([0, 30]))) if not gone else []
        names = [*SCHEMA.names, "_time", "_diff"]
        updates = [{**each, "_time": time, "_diff": 1} for each in added]
        updates += [{**each, "_time": time, "_diff": -1} for each in gone]
        schema = pa.schema([*SCHEMA, ("_time", pa.int64()), ("_diff", pa.int64())])
        table = pa.Table.from_pylist(updates, schema=schema).select(names)
        write = environment.append(write, table, Antichain(time + 1))
        for each in gone:
            rows.remove(each)
        rows += added
    return rows


def sort_key(value: Any, sort: Sort) -> tuple[bool, Any]:
    if value is None:
        return (not sort.nulls_first, 0)
    if isinstance(value, float):
        value = (isnan(value), 0.0 if isnan(value) else value)
    elif isinstance(value, date):
        value = value.toordinal()
    elif isinstance(value, str):
        value = value.encode()
    return (sort.nulls_first, _Reversed(value) if sort.descending else value)


class _Reversed:
    def __init__(self, value: Any) -> None:
        self.value = value

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(other.value == self.value)


def some_sorts(rng: random.Random) -> list[Sort]:
    names = rng.sample(sorted(VALUES), rng.choice([1, 1, 2]))
    return [Sort(name, rng.random() < 0.5, rng.random() < 0.5) for name in names]


def check(selection: Selection, rows: list[dict[str, Any]], sorts: list[Sort], counts: dict[int, int] | int) -> int:
    """Compare with all rows; gives how many were read."""

    def ordered(group: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return sorted(tuple(sort_key(each[sort.column], sort) for sort in sorts) for each in group)

    if isinstance(counts, int):
        found = leading(selection, sorts, np.array([counts]))
        wanted: dict[int | None, Any] = {None: (counts, rows)}
    else:
        assert selection.hashes is not None
        of_hash = dict(zip(counts, selection_hashes(counts), strict=True))
        in_order_of_hash = sorted(counts, key=of_hash.__getitem__)
        found = leading(selection, sorts, np.array([counts[each] for each in in_order_of_hash]))
        wanted = {each: (counts[each], [r for r in rows if r["k"] == each]) for each in counts}
    copies = [
        {name: each[name] for name in SCHEMA.names} for each in found.to_pylist() for _ in range(max(0, each["_diff"]))
    ]
    assert all(count > 0 for count in found.column("_diff").to_pylist())
    for group, (count, expected) in wanted.items():
        ours = ordered([each for each in copies if group is None or each["k"] == group])
        theirs = ordered(expected)
        assert len(ours) >= min(count, len(theirs))
        assert ours == theirs[: len(ours)]
        assert len(ours) == len(theirs) or ours[-1] != theirs[len(ours)], "equals are there all or none"
    return found.num_rows


def selection_hashes(keys: dict[int, int]) -> list[int]:
    return [int(each) for each in hash_rows([pa.array(list(keys), pa.int64())], len(keys))]


@pytest.mark.parametrize("number", range(6))
def test_the_first_of_each_key(number: int, rng: random.Random, environment: Environment) -> None:
    rows = written(environment, rng, ["k"], groups=rng.choice([2, 40]))
    for _ in range(6):
        keys = {key: rng.choice([1, 3, 100]) for key in rng.sample(range(40), 5)}
        with environment.contents("u1", 5, np.array(selection_hashes(keys))) as selection:
            check(selection, rows, some_sorts(rng), keys)


@pytest.mark.parametrize("number", range(4))
def test_the_first_of_all(number: int, rng: random.Random, environment: Environment) -> None:
    rows = written(environment, rng, None, groups=40)
    for _ in range(6):
        with environment.contents("u1", 5) as selection:
            check(selection, rows, some_sorts(rng), rng.choice([1, 10, 2_000]))


def test_the_rows_behind_are_not_read(environment: Environment) -> None:
    rng = random.Random(1)
    _, write = environment.create("u1", SCHEMA, key=["k"])
    rows = [row(rng, 1) for _ in range(20_000)]
    table = pa.Table.from_pylist([{**each, "_time": 1, "_diff": 1} for each in rows])
    schema = pa.schema([*SCHEMA, ("_time", pa.int64()), ("_diff", pa.int64())])
    environment.append(write, table.cast(schema), Antichain(5))
    (stored,) = environment.shard("u1").batches.values()
    assert stored.size_bytes > batch.INLINE_BYTES_MAX
    with environment.contents("u1", 4, np.array(selection_hashes({0: 1}))) as selection:
        assert 19_000 < selection.count_max() <= 20_000
        assert check(selection, rows, [Sort("price")], {0: 1}) < 200


def test_equal_rows_do_not_differ() -> None:
    table = pa.table({"x": pa.array([0.0, -0.0, None, float("nan"), float("nan"), None])})
    places, differs = in_order(table, [Sort("x")])
    assert places.tolist() == [0, 1, 3, 4, 2, 5]
    assert differs.tolist() == [False, True, False, True, False, True]
