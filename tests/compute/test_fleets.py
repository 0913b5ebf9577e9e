"""Fleets of views with shared arrangements: exact at every time, and every arrangement there as long as it is read."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.compute.dataflow import LARGE_ROWS_MIN, Dataflow
from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from tests.compute.fleet import QUERIES, Fleet, planned, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("clocked", [False, True])
@pytest.mark.parametrize("number", range(2))
def test_fleets_are_exact(tmp_path: Path, rng: random.Random, number: int, clocked: bool, long_forms: bool) -> None:
    for attempt in range(30 if long_forms else 1):
        go(tmp_path / str(attempt), rng, LocalEngine(), 200 if long_forms else 40, clocked=clocked)


@pytest.mark.parametrize("restarted", [False, True])
def test_what_a_late_view_reads_stays(tmp_path: Path, rng: random.Random, restarted: bool) -> None:
    """It begins where only the past of the collection was kept, and falls behind the other users."""
    fleet = Fleet(tmp_path, rng, LocalEngine(), clocked=True)
    try:
        for upper in (4, 6):
            fleet.write(upper)
            fleet.catch_up()
        fleet.make("late", planned("SELECT t.k, u.amount + 1 AS more FROM t JOIN u ON t.k = u.k"))
        late = fleet.flows["late"]
        assert late.upper == 1 and set(late.held.shared.values()) == set(fleet.flows["base"].held.shared.values())
        late.tick(2)
        fleet.write(16)
        if restarted:
            fleet.restart()
        for each in [*fleet.arranging.values()]:
            each.tick()
        fleet.catch_up()
        fleet.check()
    finally:
        fleet.close()


@pytest.mark.spark
def test_fleets_are_exact_on_spark(
    tmp_path: Path, rng: random.Random, spark: SparkSession, long_forms: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other tick is a large one, which reads all of what is shared where the data are."""
    sizes = itertools.cycle([-1, 1 << 60])
    monkeypatch.setattr(Dataflow, "_rows_max", lambda *_: LARGE_ROWS_MIN - next(sizes))
    fleet = Fleet(tmp_path, rng, SparkEngine(spark), clocked=True)
    try:
        for query in QUERIES if long_forms else QUERIES[:1]:
            fleet.make(f"w{QUERIES.index(query)}", planned(query.format(n=2)))
        for upper in (5, 9, 17) if long_forms else (5, 12):
            fleet.write(upper)
            fleet.catch_up()
        assert any(flow.readings for flow in fleet.flows.values())
        fleet.check_counts()
        fleet.check()
    finally:
        fleet.close()


def go(folder: Path, rng: random.Random, engine: Engine, steps: int, *, clocked: bool) -> None:
    fleet = Fleet(folder, rng, engine, clocked=clocked)
    try:
        run(fleet, steps)
    finally:
        fleet.close()
