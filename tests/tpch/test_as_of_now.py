"""TPC-H Q3 as of "now", through years of logical time: at every change, in SQL and in compute, it is recomputation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.bound_statement import at_time
from everview.adapter.coordinator import Coordinator
from everview.compute.functions.output import to_text
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Relation
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import Rows, add, rows_of
from everview.compute.sql.query import plan
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber
from tests.compute.delta.history import Maintained, Updates, contents
from tests.tpch.miniature import generate
from tests.tpch.schema import TABLES
from tests.tpch.test_binding import Tpch

Q3_NOW = """
SELECT o_orderkey, o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < mz_logical_timestamp() AND l_shipdate > mz_logical_timestamp()
GROUP BY o_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate
LIMIT 10
"""
USED = ("customer", "orders", "lineitem")


def ms(day: date) -> int:
    """The first time of a day."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)


BEGIN = ms(date(1992, 1, 1))


def moments(data: Mapping[str, Sequence[Any]]) -> list[int]:
    """All times at which the answer may change by itself, the time before each, and the end."""
    days = {ms(order[4]) + 1 for order in data["orders"]} | {ms(line[10]) for line in data["lineitem"]}
    return sorted({each - before for each in days for before in (0, 1)})


def recomputed(relation: Relation, data: Mapping[str, Rows], time: int) -> Rows:
    """The answer to the query that has the time written in it."""
    result = evaluate(at_time(relation, time), data)
    assert not result.errors
    return result.rows


def test_maintained_through_years(rng: random.Random) -> None:
    data = generate(rng, orders=80)
    relation = plan(Q3_NOW.replace("mz_logical_timestamp", "mz_now"), Tpch()).relation
    relation = optimize(relation)
    times = moments(data)
    # Some orders come with their lines while time goes on, late or early; some are canceled.
    history: dict[str, list[tuple[Any, int, int]]] = {name: [] for name in TABLES}
    history["customer"] = [(row, BEGIN, 1) for row in data["customer"]]
    came: dict[int, tuple[int, int | None]] = {}
    for order in data["orders"]:
        at = rng.choice([BEGIN, BEGIN, ms(order[4]) + rng.randint(-10, 90) * 86_400_000])
        came[order[0]] = max(at, BEGIN), rng.choice([None, None, max(at, BEGIN) + 40 * 86_400_000])
    for name in ("orders", "lineitem"):
        for row in data[name]:
            at, until = came[row[0]]
            history[name].append((row, at, 1))
            if until is not None:
                history[name].append((row, until, -1))
    changes = sorted({*times, *(when for updates in history.values() for _, when, _ in updates)})
    view = Maintained(relation)
    cuts = sorted(rng.sample(changes[1:], 60))
    for lower, upper in pairwise([BEGIN, *cuts, changes[-1] + 1]):
        view.tick(history, lower, upper)
    found = Running(view.output)
    inputs = {name: Running(history[name]) for name in USED}
    for time in changes:
        expected = recomputed(relation, {name: each.at(time) for name, each in inputs.items()}, time)
        assert found.at(time) == expected, datetime.fromtimestamp(time / 1000, UTC)
    assert contents(view.output, changes[-1]) == {}, "in the end everything has been shipped"
    assert len({when for _, when, _ in view.output}) > 10


class Running:
    """The contents of a collection at one time after another."""

    def __init__(self, updates: Updates) -> None:
        self._left = sorted(updates, key=lambda update: update[1], reverse=True)
        self._rows: Rows = {}

    def at(self, time: int) -> Rows:
        while self._left and self._left[-1][1] <= time:
            row, _, diff = self._left.pop()
            add(self._rows, row, diff)
        return self._rows


@pytest.fixture
def loaded(tmp_path: Path, rng: random.Random) -> Iterator[tuple[Coordinator, Clock, dict[str, Any]]]:
    """A coordinator whose clock begins in 1992, with orders of the years to come."""
    clock = Clock(BEGIN)
    data = generate(rng, orders=40)
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as opened:
        sql = SessionClient(opened)
        for name in USED:
            columns = ", ".join(f"{column} {kind}" for column, kind in TABLES[name].items())
            assert sql(f"CREATE TABLE {name} ({columns})") == ["CREATE TABLE"]
            kinds = list(TABLES[name].values())
            values = [
                "(" + ", ".join(f"'{to_text(value, kind)}'" for value, kind in zip(row, kinds, strict=True)) + ")"
                for row in data[name]
            ]
            assert sql(f"INSERT INTO {name} VALUES {', '.join(values)}") == [f"INSERT 0 {len(values)}"]
        yield opened, clock, data


def test_subscribed_through_years(loaded: tuple[Coordinator, Clock, dict[str, Any]], rng: random.Random) -> None:
    opened, clock, data = loaded
    sql = SessionClient(opened)
    assert sql(f"CREATE MATERIALIZED VIEW q3 AS {Q3_NOW}") == ["CREATE MATERIALIZED VIEW"]
    subscriber = Subscriber(opened, "SUBSCRIBE TO q3 WITH (PROGRESS)")
    began, times = clock.now_ms, moments(data)
    updates: list[tuple[Any, int, int]] = []
    for stop in [*sorted(rng.sample(times, 25)), times[-1] + int(timedelta(days=1).total_seconds() * 1000)]:
        clock.now_ms = max(clock.now_ms, stop)  # two moments may be a millisecond apart
        (answer,) = sql("SELECT n, mz_logical_timestamp() FROM (SELECT count(*) AS n FROM q3) AS counted")[1:]
        count, now = map(int, answer.split("|"))
        assert now >= stop
        reached = 0
        while reached <= now:
            for when, progressed, diff, *row in subscriber.take():
                reached = int(when)
                if not progressed:
                    updates.append((tuple(row), int(when), int(diff)))
        assert count == sum(contents(updates, now).values())
    relation = plan(Q3_NOW.replace("mz_logical_timestamp", "mz_now"), Tpch()).relation
    relation = optimize(relation)
    inputs = {name: rows_of([(row, 1) for row in data[name]], tuple(TABLES[name].values())) for name in USED}
    found = Running(updates)
    for time in (each for each in times if each > began):
        assert found.at(time) == recomputed(relation, inputs, time), datetime.fromtimestamp(time / 1000, UTC)
    subscriber.rows.close()
