"""Errors are data: a row that fails makes the view unreadable for as long as it is there, and no longer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.compute.capabilities import errors_id, is_awake
from everview.compute.dataflow import Dataflow, maintain_view, resume
from everview.compute.engine.contract import Engine, ValueRefused
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.service import SparkService
from everview.compute.engine.spark.session import Spark, profiles
from everview.compute.functions import registry
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.types import INT4, TEXT
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.stored_state import schema_of
from everview.storage.contract import Create, ReadCapability, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = {"a": INT4, "b": INT4, "s": TEXT}


class Names:
    """A table, and views by name."""

    def __init__(self, **views: tuple[str, ...]) -> None:
        self._known = {"t": Collection("t", tuple(SCHEMA), tuple(SCHEMA.values()))}
        for name, columns in views.items():
            self._known[name] = Collection(name, columns, (INT4,) * len(columns))

    def find(self, path: Sequence[str]) -> Collection | None:
        return self._known.get(path[-1])

    def names(self) -> list[str]:
        return list(self._known)


class Table:
    """A table of rows (a, b, s)."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        created = environment.commit(Create("t", schema_of(list(SCHEMA.values()))))
        self.reader: ReadCapability = created[0][0]
        self._writer: WriteCapability = created[0][1]
        self._time = 0

    def change(self, *rows: tuple[int | None, int | None, str | None, int]) -> None:
        columns: list[Any] = list(zip(*rows, strict=True)) if rows else [[], [], [], []]
        table = pa.table(
            {
                "c0": pa.array(columns[0], pa.int32()),
                "c1": pa.array(columns[1], pa.int32()),
                "c2": pa.array(columns[2], pa.string()),
                "_time": pa.array([self._time] * len(rows), pa.int64()),
                "_diff": pa.array(columns[3], pa.int64()),
            }
        )
        self._time += 1
        self._writer = self.environment.append(self._writer, table, Antichain(self._time))


def errors(environment: Environment, flow: Dataflow, time: int) -> list[tuple[str, str]]:
    with environment.contents(errors_id(flow.id), time) as selection:
        found = selection.contents()
    return list(zip(found.column("c0").to_pylist(), found.column("c1").to_pylist(), strict=True))


def rows(environment: Environment, flow: Dataflow, time: int) -> list[tuple[object, ...]]:
    with environment.contents(flow.id, time) as selection:
        found = selection.contents()
    data = [found.column(name).to_pylist() for name in found.column_names if name.startswith("c")]
    return sorted(zip(*data, strict=True), key=repr)


def heal(folder: Path, engine: Engine) -> None:
    with Environment.open(folder, background=False) as environment:
        table = Table(environment)
        table.change((10, 2, "1", 1))
        relation = optimize(plan("SELECT a / b AS q, s::int FROM t", Names()).relation)
        flow, reader = maintain_view(environment, "v", relation, [table.reader], engine)
        over = optimize(plan("SELECT sum(q) FROM v", Names(v=("q", "s"))).relation)
        above, _ = maintain_view(environment, "w", over, [reader], engine)
        table.change((7, 0, "2", 1))
        table.change((9, 3, "x", 1), (9, 3, "4", 1))
        table.change((7, 0, "2", -1))
        table.change((9, 3, "x", -1))
        for each in (flow, above):
            while each.tick(each.upper + 2):
                pass
        zero, text = ("22012", "division by zero"), ("22P02", 'invalid input syntax for type integer: "x"')
        for each in (flow, above):
            assert [sorted(errors(environment, each, time)) for time in range(5)] == [
                [],
                [zero],
                [zero, text],
                [text],
                [],
            ]
        assert rows(environment, flow, 4) == [(3, 4), (5, 1)]
        assert rows(environment, above, 4) == [(8,)]


def test_a_view_heals_when_the_row_goes(tmp_path: Path) -> None:
    heal(tmp_path, LocalEngine())


@pytest.mark.spark
def test_a_view_heals_when_the_row_goes_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    heal(tmp_path, SparkEngine(spark))


def sum_beyond(folder: Path, engine: Engine) -> None:
    """A total of more digits than there are, while it is; and the total again, to the last digit, when it fits."""
    much = f"{'9' * 37}7"
    with Environment.open(folder, background=False) as environment:
        table = Table(environment)
        query = "SELECT a, sum(s::numeric(38,0)), count(*) FROM t GROUP BY a"
        flow, _ = maintain_view(environment, "v", optimize(plan(query, Names()).relation), [table.reader], engine)
        table.change((1, 1, much, 1), (2, 1, "7", 1))
        table.change((1, 2, much, 1))
        table.change((2, 2, "8", 1), (1, 3, f"-{much}", 1))
        table.change((1, 1, much, -1), (1, 2, much, -1))
        while flow.tick(flow.upper + 1):
            pass
        beyond = ("22003", "value overflows numeric format")
        assert [set(errors(environment, flow, time)) for time in range(4)] == [set(), {beyond}, set(), set()]
        found = [[(key, str(total)) for key, total, _ in rows(environment, flow, time)] for time in (0, 2, 3)]
        assert found == [[(1, much), (2, "7")], [(1, much), (2, "15")], [(1, f"-{much}"), (2, "15")]]


def sum_of_fractions(folder: Path, engine: Engine) -> None:
    """Totals of numbers with more digits behind the point than the lower part of a total has otherwise."""
    most = f"{'9' * 17}.{'9' * 19}8"
    with Environment.open(folder, background=False) as environment:
        table = Table(environment)
        query = "SELECT a, sum(s::numeric(38,20)), count(*) FROM t GROUP BY a"
        flow, _ = maintain_view(environment, "v", optimize(plan(query, Names()).relation), [table.reader], engine)
        table.change((1, 1, most, 1), (2, 1, "-0.00000000000000000001", 1))
        table.change((1, 2, "0.00000000000000000001", 1), (2, 2, "-2.5", 1))
        while flow.tick(flow.upper + 1):
            pass
        assert not errors(environment, flow, 1)
        found = [[(key, f"{total:f}") for key, total, _ in rows(environment, flow, time)] for time in (0, 1)]
        less, one = "-0.00000000000000000001", f"{'9' * 17}.{'9' * 20}"
        assert found == [[(1, most), (2, less)], [(1, one), (2, "-2.50000000000000000001")]]


def test_a_sum_of_long_fractions_is_exact(tmp_path: Path) -> None:
    sum_of_fractions(tmp_path, LocalEngine())


@pytest.mark.spark
def test_a_sum_of_long_fractions_is_exact_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    sum_of_fractions(tmp_path, SparkEngine(spark))


def test_a_sum_beyond_all_digits_heals(tmp_path: Path) -> None:
    sum_beyond(tmp_path, LocalEngine())


@pytest.mark.spark
def test_a_sum_beyond_all_digits_heals_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    sum_beyond(tmp_path, SparkEngine(spark))


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT CASE WHEN b <> 0 THEN a / b END FROM t",
        "SELECT coalesce(nullif(b, 0), a / b) FROM t",
        "SELECT a FROM t WHERE b > 0 AND a / b > 1",
        "SELECT a FROM t WHERE b = 0 OR a / b > 1",
        "SELECT count(*) FILTER (WHERE b <> 0 AND a / b > 1) FROM t",
        "SELECT (SELECT u.a FROM t u WHERE u.b = t.b) FROM t",
        "SELECT a, g FROM t, generate_series(1, 3, b) AS g",
        "SELECT 'x' ~ repeat('(', b), regexp_replace(s, repeat('(', b), 'y') FROM t",
        "SELECT regexp_match('x', repeat('(', b)) FROM t",
        "SELECT regexp_like('x', 'y', s) FROM t",
        "SELECT part FROM t, regexp_split_to_table(s, repeat('(', b)) AS part",
        "SELECT timestamp '2024-01-01' AT TIME ZONE coalesce(s, 'UTC') FROM t",
        "SELECT b, sum(a * 2e307::float8), avg(a * 2e307::float8) FROM t GROUP BY b",
        "SELECT b, sum(a * 4e37::float4) FROM t GROUP BY b",
        "SELECT b, variance(a * 1e154::float8), stddev_pop(a * 1e154::float8) FROM t GROUP BY b",
        "SELECT b, corr(a, a * 1e154::float8), regr_slope(a, a * 1e154::float8) FROM t GROUP BY b",
        "SELECT b, sum(a * interval '10000000 years') FROM t GROUP BY b",
        "SELECT b, sum(DISTINCT a * 1e37::numeric(38,0)), avg(DISTINCT a * 1e19::numeric(38,0)) FROM t GROUP BY b",
        "SELECT a, sum(a * 1e37::numeric(38,0)) OVER (PARTITION BY b) FROM t",
        "SELECT a, sum(a * 2e307::float8) OVER (PARTITION BY b), avg(a) OVER () FROM t",
        "SELECT a, avg(a * 1e19::numeric(38,0)) OVER (PARTITION BY b ORDER BY a) FROM t",
        "SELECT b, sum(a * '1.00000000000000000000000000000000001'::numeric(38,35)) FROM t GROUP BY b",
        "SELECT b, max(a ORDER BY 6 / b), min(a ORDER BY 6 / b) FILTER (WHERE b <> 0) FROM t GROUP BY b",
        "SELECT b, jsonb_object_agg(s, a) FROM t GROUP BY b",
        "SELECT b, jsonb_object_agg(s, a) FILTER (WHERE s IS NOT NULL) FROM t GROUP BY b",
        "SELECT b, var_samp(a * 1e18::numeric(38,0)) FROM t GROUP BY b",
    ],
)
def test_spark_and_local_fail_alike(tmp_path: Path, query: str, spark: SparkSession) -> None:
    bound = plan(query, Names()).relation
    relation, seen = optimize(bound), []
    for name, engine in (("local", LocalEngine()), ("spark", SparkEngine(spark))):
        with Environment.open(tmp_path / name, background=False) as environment:
            table = Table(environment)
            flow, _ = maintain_view(environment, "v", relation, [table.reader], engine)
            table.change((10, 2, "1", 1), (4, 0, None, 1), (None, 0, "a", 1))
            table.change((6, 2, "1", 1), (3, None, "1", 1))
            table.change((10, 2, "1", -1), (4, 0, None, -1))
            table.change((3, 2, "i", 1), (-6, 2, "i", 1), (9, 0, None, 1), (8, 0, None, 1))
            table.change((9, 0, None, -1))
            while flow.tick():
                pass
            awake = is_awake(environment, errors_id("v"))
            found = [sorted(errors(environment, flow, time)) if awake else [] for time in range(5)]
            seen.append((found, [rows(environment, flow, time) for time in range(5)]))
            for time, known in enumerate(found):  # they may fail elsewhere, but not at other times
                with environment.contents("t", time) as selection:
                    given = rows_from_arrow(selection.contents(), tuple(SCHEMA.values()))
                assert bool(evaluate(bound, {"t": given}).errors) == bool(known), time
    assert seen[0] == seen[1]


class Watched(SparkService):
    """The service, over a Spark that is there already."""

    def __init__(self, session: SparkSession) -> None:
        self._closed, self._started, self._given = False, Future[Spark](), SparkEngine(session)
        self._lock, self._warm, self._in_background = threading.Lock(), threading.Event(), 0
        self._warm.set()

    def spark(self) -> Spark:
        return self._started  # type: ignore[return-value]

    def _engine_of(self, _: Spark) -> SparkEngine:
        return self._given


@pytest.mark.spark
def test_a_value_that_ends_a_job_of_spark_is_for_python(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value should, but if one does, the view goes on, with the row that is right and the one that fails."""
    ends = "substring(upper({0}), 1, 9 + 0 * (1 div (length({0}) - 1)))"  # for a text of one character
    upper = registry.FUNCTIONS["upper(text)"]
    monkeypatch.setitem(registry.FUNCTIONS, upper.key, replace(upper, spark=ends))
    relation = optimize(plan("SELECT a, upper(s), 6 / b FROM t", Names()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        table = Table(environment)
        table.change((1, 2, "xx", 1))
        flow, _ = maintain_view(environment, "v", relation, [table.reader], Watched(spark))
        table.change((2, 3, "y", 1))
        table.change((3, 0, "z", 1))
        table.change((3, 0, "z", -1))
        for _ in range(4):
            assert flow.tick(flow.upper + 1)
        assert [rows(environment, flow, time) for time in (0, 1, 3)] == [
            [(1, "XX", 3)],
            both := [(1, "XX", 3), (2, "Y", 2)],
            both,
        ]
        assert [errors(environment, flow, time) for time in (1, 2, 3)] == [[], [("22012", "division by zero")], []]


def test_what_python_would_round_differently_is_not_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = object.__new__(Watched)
    monkeypatch.setattr(Watched, "_attempt", _refuse)
    for query, done in (("SELECT 6 / a FROM t", True), ("SELECT exp(a) FROM t", False)):
        rows = {(3, 0, ""): 1}
        inputs = {"t": rows_to_arrow(rows, tuple(SCHEMA.values()))}
        relation = plan(query, Names()).relation
        with nullcontext() if done else pytest.raises(ValueRefused):
            assert tried.run(relation, inputs).num_rows == 1


def _refuse(*_: object) -> None:
    raise ValueRefused("a value")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(a / b) FILTER (WHERE b <> 0) FROM t",
        "SELECT sum(a / b) FILTER (WHERE sound) FROM (SELECT a, b, b <> 0 AS sound FROM t) AS u",
        "SELECT sum(a / b) FILTER (WHERE b <> 0) OVER () FROM t",
        "SELECT sum(a / b) FILTER (WHERE sound) OVER () FROM (SELECT a, b, b <> 0 AS sound FROM t) AS u",
    ],
)
def test_what_a_filter_leaves_out_is_not_evaluated(tmp_path: Path, query: str) -> None:
    relation = optimize(plan(query, Names()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        table = Table(environment)
        flow, _ = maintain_view(environment, "v", relation, [table.reader], LocalEngine())
        table.change((10, 2, "1", 1), (4, 0, None, 1))
        while flow.tick():
            pass
        assert not is_awake(environment, errors_id("v")) or not errors(environment, flow, 0)
        assert set(rows(environment, flow, 0)) == {(5,)}


def test_errors_survive_a_restart(tmp_path: Path) -> None:
    relation = optimize(plan("SELECT a / b FROM t", Names()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        table = Table(environment)
        table.change((1, 0, "", 1))
        flow, _ = maintain_view(environment, "v", relation, [table.reader], LocalEngine())
        flow.tick()
    with Environment.open(tmp_path, background=False) as environment:
        flow = resume(environment, "v", relation, LocalEngine())
        assert errors(environment, flow, 0) == [("22012", "division by zero")]


@pytest.mark.spark
def test_a_guard_holds_whatever_spark_infers(spark: SparkSession) -> None:
    """That b is 2 where the whole is true is no reason to divide by b where it is 0."""
    query = "SELECT a FROM t WHERE a / CASE WHEN b = 0 THEN 1 ELSE b END > 1 AND b = 2"
    relation = plan(query, Names()).relation
    rows = {(4, 0, "x"): 1, (6, 2, "y"): 1}
    found = SparkEngine.of(profiles(spark)).run(relation, {"t": rows_to_arrow(rows, tuple(SCHEMA.values()))})
    assert rows_from_arrow(found, (INT4,)) == {(6,): 1}


@pytest.mark.spark
def test_an_average_of_a_total_with_more_digits_than_it_has(spark: SparkSession) -> None:
    """A total of over 20 digits before the point is no obstacle to an average that has fewer."""
    relation = optimize(plan("SELECT avg(a::bigint * 4000000000) FROM t", Names()).relation)
    rows = {(2**31 - 1, number, "x"): 1 for number in range(40)}
    found = SparkEngine.of(profiles(spark)).run(relation, {"t": rows_to_arrow(rows, tuple(SCHEMA.values()))})
    assert str(found.column("c0")[0].as_py()) == f"{(2**31 - 1) * 4000000000}.{'0' * 18}"
