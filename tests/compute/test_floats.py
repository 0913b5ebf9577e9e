"""Sums of floats are rounded, so that their order shows: what is computed again is the same to the last digit.

Otherwise a view would take away a value that it never had, and keep the one that it had.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.compute.dataflow import maintain_view
from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import types
from everview.compute.ir.types import FLOAT4, FLOAT8, INT4
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows, add_all, rows_of
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.stored_state import schema_of
from everview.storage.contract import Create
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.compute.delta.test_oracle_spark import InTurns
from tests.tpch.stored import timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = {"g": INT4, "n": INT4, "x": FLOAT8, "r": FLOAT4}
TYPES = tuple(SCHEMA.values())
QUERIES = [
    "SELECT g, sum(x), avg(x), sum(r), avg(r), count(*) FROM t GROUP BY g",
    "SELECT sum(x), sum(DISTINCT x), avg(x) FILTER (WHERE n > 2), max(x) FROM t",
    "SELECT g, stddev(x), var_pop(x), variance(r), stddev_pop(DISTINCT x) FROM t GROUP BY g",
    "SELECT g, corr(x, r), regr_slope(x, n), covar_samp(r, x) FROM t GROUP BY g",
    "SELECT g, n, sum(x) OVER (PARTITION BY g ORDER BY n), avg(r) OVER (PARTITION BY g) FROM t",
    "SELECT g, n, sum(x) OVER (ORDER BY n ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING), sum(x) OVER () FROM t",
    "SELECT n, avg(x) OVER (ORDER BY n RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), stddev(x) OVER (ORDER BY n) FROM t",
    "SELECT n, sum(x) OVER (ORDER BY n GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM t",
    "SELECT n, sum(x) FILTER (WHERE g = 1) OVER (ORDER BY n), corr(x, r) OVER (PARTITION BY g) FROM t",
]


class Names:
    """The table."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("t", tuple(SCHEMA), TYPES) if path[-1] == "t" else None

    def names(self) -> list[str]:
        return ["t"]


def row(rng: random.Random) -> tuple[int, int, float | None, float | None]:
    """Numbers of very different sizes, so that hardly any sum is exact."""
    x, r = (rng.choice((-1, 1)) * rng.random() * 10 ** rng.randint(-6, 6) for _ in range(2))
    small = rows_of([((0, 0, x, r), 1)], TYPES)
    ((_, _, x, r),) = rows_from_arrow(rows_to_arrow(small, TYPES), TYPES)
    return rng.randint(0, 2), rng.randint(0, 9), None if rng.random() < 0.05 else x, r


def maintained(query: str, engine: Engine, folder: Path, rng: random.Random) -> None:
    """At every time the view is what is computed from scratch, in Python, and nothing else."""
    relation = plan(query, Names()).relation
    with Environment.open(folder, background=False) as environment:
        ((reader, writer),) = environment.commit(Create("t", schema_of(TYPES)))
        flow, _ = maintain_view(environment, "v", optimize(relation), [reader], engine)
        live: list[tuple[int, int, float | None, float | None]] = []
        rows: Rows = {}
        for time in range(6):
            rng.shuffle(live)
            gone, live = live[:20], live[20:]
            new = [row(rng) for _ in range(120 if time == 0 else 25)]
            live += new
            change = rows_of([*((each, -1) for each in gone), *((each, 1) for each in new)], TYPES)
            add_all(rows, change)
            writer = environment.append(writer, timed(rows_to_arrow(change, TYPES), TYPES, time), Antichain(time + 1))
            while flow.tick():
                pass
            environment.maintenance.run()
            with environment.contents("v", time) as selection:
                found = rows_from_arrow(selection.contents(), types(relation))
            expected = evaluate(relation, {"t": rows})
            assert not expected.errors
            assert found == expected.rows, f"at {time}"


@pytest.mark.parametrize("query", QUERIES)
def test_in_python(query: str, tmp_path: Path, rng: random.Random) -> None:
    maintained(query, LocalEngine(), tmp_path, rng)


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_on_spark(query: str, tmp_path: Path, rng: random.Random, spark: SparkSession) -> None:
    maintained(query, SparkEngine(spark), tmp_path, rng)


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES[2:5])
def test_on_both_in_turns(query: str, tmp_path: Path, rng: random.Random, spark: SparkSession) -> None:
    maintained(query, InTurns(SparkEngine(spark), spark_first=rng.random() < 0.5), tmp_path, rng)
