"""Nexmark's queries as maintained views: after every tick, at each of its times, equal to recomputation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_to_arrow
from everview.compute.rows.collection import Rows, add_all, rows_of
from everview.compute.sql.query import plan
from everview.storage.environment import Environment
from tests.compute.sql.against import compare, create_and_load
from tests.nexmark.events import Changes, story
from tests.nexmark.queries import QUERIES
from tests.nexmark.schema import TABLES, Nexmark
from tests.tpch.stored import Stored, advance, contents_of, install, spark_engine, timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMAS = {name: tuple(columns.values()) for name, columns in TABLES.items()}
STEPS = (90, 40, 40, 25, 25)
TICKS = ((0, 1), (1, 2), (2, 3), (3, 5))  # the last tick holds two times
ON_SPARK = (4, 5, 9, 16)


def contents(changes: list[Changes]) -> dict[str, Rows]:
    """The collections after these changes."""
    rows: dict[str, Rows] = {name: {} for name in TABLES}
    for change in changes:
        for name, updates in change.items():
            add_all(rows[name], rows_of(updates, SCHEMAS[name]))
    return rows


def write(stored: Stored, changes: list[Changes], lower: int, upper: int) -> None:
    for time in range(lower, upper):
        tables = {
            name: timed(rows_to_arrow(rows_of(updates, SCHEMAS[name]), SCHEMAS[name]), SCHEMAS[name], time)
            for name, updates in changes[time].items()
        }
        stored.write(tables, time + 1)


def maintain_and_check(number: int, changes: list[Changes], engine: Engine, folder: Path) -> None:
    bound = plan(QUERIES[number], Nexmark()).relation
    answers = []
    with Environment.open(folder, background=False) as environment:
        stored = Stored(environment, SCHEMAS)
        write(stored, changes, *TICKS[0])
        flow = install(stored, "view", optimize(bound), engine)
        advance(flow, TICKS[0][1])
        for lower, upper in TICKS:
            if lower:
                write(stored, changes, lower, upper)
                advance(flow, upper)
                environment.maintenance.run()
            for time in range(lower, upper):
                expected = evaluate(bound, contents(changes[: time + 1]))
                assert not expected.errors, expected.errors
                answers.append(expected.rows)
                assert contents_of(environment, flow, time) == expected.rows, f"q{number} at {time}"
    assert answers[-1], "the answer is not empty"
    assert any(answer != answers[0] for answer in answers), "the answer changes"


@pytest.mark.parametrize("number", QUERIES, ids=lambda number: f"q{number}")
def test_equal_to_recomputation(number: int, tmp_path: Path, rng: random.Random) -> None:
    maintain_and_check(number, story(rng, STEPS), LocalEngine(), tmp_path)


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "number",
    [pytest.param(each, marks=[] if each in ON_SPARK else pytest.mark.long, id=f"q{each}") for each in QUERIES],
)
def test_equal_to_recomputation_on_spark(number: int, tmp_path: Path, rng: random.Random, spark: SparkSession) -> None:
    maintain_and_check(number, story(rng, STEPS), spark_engine(spark), tmp_path)


@pytest.fixture(scope="module")
def in_postgres(postgres_url: str) -> Iterator[tuple[psycopg.Connection, Mapping[str, Rows]]]:
    final = contents(story(random.Random(5), STEPS))
    data = {name: [row for row, count in rows.items() for _ in range(count)] for name, rows in final.items()}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        create_and_load(connection, "nexmark", TABLES, data)
        yield connection, final
        connection.execute("DROP SCHEMA nexmark CASCADE")


@pytest.mark.parametrize("number", QUERIES, ids=lambda number: f"q{number}")
def test_means_what_it_means_in_postgres(
    number: int, in_postgres: tuple[psycopg.Connection, Mapping[str, Rows]]
) -> None:
    connection, final = in_postgres
    compare(connection, QUERIES[number], Nexmark(), final)
