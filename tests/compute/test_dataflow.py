"""Views maintained over stored collections: exact at every readable time, across crashes and restarts."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute import tick
from everview.compute.dataflow import LARGE_ROWS_MIN, Dataflow, maintain_view, resume
from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark import bulk
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import types
from everview.compute.ir.types import SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows
from everview.compute.sql.query import plan
from everview.compute.stored_state import schema_of
from everview.storage.contract import Create, Downgrade, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.storage.faults import Crash, armed
from everview.timely.antichain import Antichain
from everview.timely.consolidate import TIME
from tests.compute.delta.history import Updates, contents, timed
from tests.compute.sql.tables import TABLES, Tables
from tests.compute.sql.test_against_postgres import contents as random_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "joined": "SELECT t.id, t.name, u.label, t.qty * u.amount AS volume FROM t JOIN u ON t.k = u.k",
    "grouped": "SELECT k, count(*), sum(qty), max(price), string_agg(name, ',' ORDER BY name) FROM t GROUP BY k",
    "outer": "SELECT t.id, u.label FROM t LEFT JOIN u ON t.k = u.k AND u.amount > 20",
    "correlated": "SELECT id FROM t a WHERE qty >= (SELECT avg(qty) FROM t b WHERE b.k = a.k)",
    "top": "SELECT id, qty FROM t ORDER BY qty DESC, id LIMIT 3",
    "window": "SELECT id, rank() OVER (PARTITION BY k ORDER BY qty) FROM t",
    "global": "SELECT count(*), sum(amount), (SELECT count(DISTINCT k) FROM t) FROM u",
    "three": "SELECT a.id, b.id, c.label FROM t a, t b, u c WHERE a.k = b.k AND b.k = c.k AND a.id < b.id",
    "except": "SELECT k FROM t EXCEPT SELECT k FROM u",
    # Numbers in two representations, of two scales, and of two types that no third one holds.
    "numbers": "SELECT x.id, y.id, z.id, x.a * y.b FROM m x JOIN m y ON x.a = y.b"
    " LEFT JOIN m z ON y.c = z.d AND y.d = z.e",
    "united": "SELECT v, count(*), sum(v), max(v) FROM"
    " (SELECT a v FROM m UNION SELECT b FROM m UNION ALL SELECT c FROM m) AS q GROUP BY v",
}
LAST = 9


def histories(rng: random.Random) -> dict[str, Updates]:
    """Rows of the tables that come, go and come back."""
    result: dict[str, Updates] = {}
    for name, rows in random_rows(rng).items():
        updates: list[tuple[Any, int, int]] = []
        for row in rows:
            time, alive = rng.choice([0, 0, 1, 4]), False
            for _ in range(rng.randint(1, 3)):
                updates.append((row, time, -1 if alive else 1))
                alive, time = not alive, min(LAST, time + rng.randint(0, 4))
        result[name] = updates
    return result


class Tables3:
    """The tables as collections that are written time by time."""

    def __init__(self, environment: Environment, history: Mapping[str, Updates]) -> None:
        self.environment, self.history = environment, history
        created = environment.commit(*(Create(name, schema_of(list(TABLES[name].values()))) for name in TABLES))
        self.readers = {read.id: read for read, _ in created}
        self.writers: dict[str, WriteCapability] = {write.id: write for _, write in created}

    def write(self, lower: int, upper: int) -> None:
        commands = []
        for name, writer in self.writers.items():
            schema = tuple(TABLES[name].values())
            rows = timed(self.history.get(name, []), lower, upper)
            table = rows_to_arrow({(*row[1:], row[0]): count for row, count in rows.items()}, (*schema, _INT8))
            names = [*(f"c{index}" for index in range(len(schema))), TIME, "_diff"]
            commands.append(UpdateAndDowngrade(writer, table.rename_columns(names), Antichain(upper)))
        self.writers = {writer.id: writer for writer in self.environment.commit(*commands)}


_INT8: SqlType = types(plan("SELECT count(*) FROM t", Tables()).relation)[0]


def read(environment: Environment, flow: Dataflow, time: int) -> Rows:
    with environment.contents(flow.id, time) as selection:
        return rows_from_arrow(selection.contents(), types(flow.plan))


def check(environment: Environment, flow: Dataflow, history: Mapping[str, Updates], times: range) -> None:
    for time in times:
        expected = evaluate(flow.plan, {name: contents(updates, time) for name, updates in history.items()})
        assert read(environment, flow, time) == expected.rows, f"{flow.id} at {time}"


@pytest.mark.parametrize("name", VIEWS)
def test_exact_at_every_time(tmp_path: Path, name: str, rng: random.Random) -> None:
    maintain_and_check(tmp_path, name, rng, LocalEngine())


@pytest.mark.spark
@pytest.mark.parametrize("name", ["joined", "grouped", "numbers", "united"])
def test_exact_at_every_time_on_spark(
    tmp_path: Path, name: str, rng: random.Random, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    maintain_and_check(tmp_path, name, rng, SparkEngine(spark))


@pytest.mark.spark
@pytest.mark.parametrize("name", ["joined", "grouped", "three", "numbers", "united"])
def test_exact_where_the_data_are(
    tmp_path: Path, name: str, rng: random.Random, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tick as a large one, or every other: what one leaves behind the other goes on from."""
    sizes = itertools.cycle([-1, 1 << 60] if name in ("joined", "numbers") else [-1])
    monkeypatch.setattr(Dataflow, "_rows_max", lambda *_: LARGE_ROWS_MIN - next(sizes))
    maintain_and_check(tmp_path, name, rng, SparkEngine(spark))


@pytest.mark.spark
def test_exact_where_spark_writes(
    tmp_path: Path, rng: random.Random, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with an object store."""
    monkeypatch.setattr(Dataflow, "_rows_max", lambda *_: LARGE_ROWS_MIN + 1)
    monkeypatch.setattr(bulk, "can_write_runs", lambda *_: False)
    monkeypatch.setattr(bulk, "SAMPLED_ROWS_MIN", 0)
    # Whatever the rows are like: to leave equal ones as they are is no mistake.
    mostly_distinct = bulk.mostly_distinct
    monkeypatch.setattr(bulk, "mostly_distinct", lambda updates: mostly_distinct(updates) is not None)
    maintain_and_check(tmp_path, "grouped", rng, SparkEngine(spark))


@pytest.mark.spark
@pytest.mark.parametrize("crash", [("commit.before", 2, "spark"), ("commit.after", 1, "local")])
def test_a_hydration_that_ended_with_its_result_goes_on(
    tmp_path: Path,
    crash: tuple[str, int, str],
    rng: random.Random,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The result is there to be read; what follows changes is written when somebody comes back."""
    history = histories(rng)
    relation = optimize(plan(VIEWS["three"], Tables()).relation)
    monkeypatch.setattr(Dataflow, "_rows_max", lambda *_: LARGE_ROWS_MIN + 1)
    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 4)
        flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), SparkEngine(spark))
        point, hit, engine = crash
        with armed(point, hit=hit), pytest.raises(Crash):
            flow.tick()
    monkeypatch.undo()
    with Environment.open(tmp_path, background=False) as environment:
        flow = resume(environment, "view", relation, SparkEngine(spark) if engine == "spark" else LocalEngine())
        assert flow.hydrated and flow.upper == 1
        check(environment, flow, history, range(1))
        assert flow.owes and flow.idle_step() is None
        environment.maintenance.run()
        flow.tick()
        assert not flow.owes
        check(environment, flow, history, range(4))
        tables.environment = environment
        tables.write(4, LAST + 1)
        flow.tick()
        check(environment, flow, history, range(LAST + 1))


def maintain_and_check(folder: Path, name: str, rng: random.Random, engine: Engine) -> None:
    history = histories(rng)
    relation = optimize(plan(VIEWS[name], Tables()).relation)
    with Environment.open(folder, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 2)
        flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), engine)
        assert flow.tick()
        while flow.tick():
            pass
        for lower, upper in ((2, 3), (3, 7), (7, LAST + 1)):
            tables.write(lower, upper)
            assert flow.tick()
            environment.maintenance.run()
        assert flow.upper == LAST + 1
        check(environment, flow, history, range(LAST + 1))


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
def test_a_crash_in_a_tick_loses_and_repeats_nothing(tmp_path: Path, point: str, rng: random.Random) -> None:
    history = histories(rng)
    relation = optimize(plan(VIEWS["correlated"], Tables()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 4)
        flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), LocalEngine())
        flow.tick()
        tables.write(4, LAST + 1)
        with armed(point), pytest.raises(Crash):
            flow.tick()
    with Environment.open(tmp_path, background=False) as environment:
        flow = resume(environment, "view", relation, LocalEngine())
        assert flow.upper == (4 if point == "commit.before" else LAST + 1)
        flow.tick()
        assert flow.upper == LAST + 1
        check(environment, flow, history, range(LAST + 1))


def test_a_tick_reads_only_the_keys_that_changed(tmp_path: Path) -> None:
    history: dict[str, Updates] = {
        "t": [((n, n % 50, "x", None, 1, None, True), 0, 1) for n in range(500)]
        + [((1, 7, "y", None, 1, None, True), 5, 1)],
        "u": [((n, n, "label", n), 0, 1) for n in range(50)],
        "empty": [],
    }
    relation = optimize(
        plan("SELECT t.k, count(*), max(u.label) FROM t JOIN u ON t.k = u.k GROUP BY t.k", Tables()).relation
    )
    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 5)
        flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), LocalEngine())
        flow.tick()
        tables.write(5, 6)
        ticked = flow.tick()
        assert ticked is not None and 0 < ticked.rows_looked_up < 60
        check(environment, flow, history, range(6))


def test_what_meets_all_changes_follows_few_times_at_once(tmp_path: Path) -> None:
    """Three totals in one row: over n times their changes make n^3 rows, so a tick takes some of the times."""
    last = 70
    history: dict[str, Updates] = {
        "t": [((n, 1, "x", None, n, None, True), n, 1) for n in range(last)],
        "u": [((n, 1, "label", n), n, 1) for n in range(last)],
        "empty": [],
    }
    query = "SELECT (SELECT sum(qty) FROM t), (SELECT sum(amount) FROM u), (SELECT max(amount) FROM u WHERE k = 1)"
    relation = optimize(plan(query, Tables()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 1)
        flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), LocalEngine())
        flow.tick()
        for time in range(1, last):
            tables.write(time, time + 1)
        ends = []
        while flow.tick() is not None:
            ends.append(flow.upper)
        most = flow.view.times_max
        assert most is not None and ends == [*range(1 + most, last, most), last] and len(ends) > 1
        check(environment, flow, history, range(0, last, 7))


def test_of_all_rows_that_must_be_seen_only_those_that_changed_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An average changes, and all rows are compared with it; but the groups of few rows are looked up."""
    history: dict[str, Updates] = {
        "t": [((n, n, "x", None, n, None, True), 0, 1) for n in range(600)]
        + [((1000, 7, "y", None, 310, None, True), 5, 1)],
        "u": [],
        "empty": [],
    }
    query = "SELECT k, count(*) FROM t WHERE qty > (SELECT avg(qty) FROM t) GROUP BY k"
    relation = optimize(plan(query, Tables()).relation)
    found = {}
    for limit in (10, 1000):
        monkeypatch.setattr(tick, "KEYS_FROM_ALL_MAX", limit)
        monkeypatch.setattr(tick, "NETTED_ROWS_MIN", limit)
        with Environment.open(tmp_path / str(limit), background=False) as environment:
            tables = Tables3(environment, history)
            tables.write(0, 5)
            flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), LocalEngine())
            flow.tick()
            tables.write(5, 6)
            ticked = flow.tick()
            assert ticked is not None
            found[limit] = ticked.rows_looked_up
            check(environment, flow, history, range(6))
    assert found[10] < 620
    assert found[1000] > 800


@pytest.mark.parametrize(
    ("query", "statements"),
    [
        ("SELECT max(qty) AS m, min(id) AS n FROM t", 2),
        ("SELECT k, max(qty) AS m FROM t GROUP BY k", 2),
        ("SELECT k, max(qty) AS m, min(id) AS n, count(*) AS c, sum(qty) AS s FROM t GROUP BY k", 2),
        ("SELECT DISTINCT ON (k) k, qty, id FROM t ORDER BY k, qty DESC, id", 2),
        ("SELECT k, id FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY qty DESC, id) AS n FROM t) x"
         " WHERE n <= 3", 3),
        ("SELECT id, qty FROM t ORDER BY qty DESC, id LIMIT 5", 2),
    ],
)  # fmt: skip
def test_of_a_large_group_only_what_matters_is_read(
    query: str, statements: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two keys of many rows each, of which some leave: those that are greatest, and others."""
    monkeypatch.setattr(tick, "WHOLE_ROWS_MAX", 500)
    rows = [(n, n % 2, "x", None, n * 7919 % 2011, None, True) for n in range(2000)]
    greatest = sorted(rows, key=lambda row: -row[4])
    gone = [*greatest[:3], *greatest[50:60], *rows[100:150]]
    come = [(40_000 + n, n % 2, "x", None, n, None, True) for n in (1, 2, 2020, 2021)]
    history: dict[str, Updates] = {
        "t": [
            *((row, 0, 1) for row in rows),
            *((row, 5 + n % 2, -1) for n, row in enumerate(gone)),
            *((row, 5, 1) for row in come),
            *((row, 6, -1) for row in come[2:]),
        ],
        "u": [],
        "empty": [],
    }
    relation = optimize(plan(query, Tables()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 5)
        flow, _ = maintain_view(environment, "view", relation, list(tables.readers.values()), LocalEngine())
        flow.tick()
        tables.write(5, 7)
        ticked = flow.tick()
        assert ticked is not None
        assert ticked.rows_looked_up < 300
        assert ticked.statements <= statements
        check(environment, flow, history, range(4, 7))


def test_quiet_inputs_move_only_the_frontier(tmp_path: Path) -> None:
    history: dict[str, Updates] = {"t": [((1, 1, "x", None, 1, None, True), 0, 1)], "u": [], "empty": []}
    relation = optimize(plan("SELECT k, count(*) FROM t GROUP BY k", Tables()).relation)

    class Counting(LocalEngine):
        runs = 0

        def run_steps(self, *args: Any, **options: Any) -> Any:
            type(self).runs += 1
            return super().run_steps(*args, **options)

    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 1)
        flow, reader = maintain_view(environment, "view", relation, list(tables.readers.values()), Counting())
        flow.tick()
        runs, commits = Counting.runs, environment.commits
        tables.write(1, 1000)
        flow.tick()
        assert (Counting.runs, environment.commits) == (runs, commits + 2)
        assert flow.upper == 1000
        # The inputs' past is held for as long as the output's is.
        held = {name: environment.frontiers(name).since for name in TABLES}
        assert set(held.values()) == {Antichain(0)}
        environment.commit(
            *(Downgrade(each, Antichain(900)) for each in tables.readers.values()), Downgrade(reader, Antichain(800))
        )
        tables.write(1000, 1001)
        flow.tick()
        assert environment.frontiers("t").since == Antichain(800), "as far as the output is still read"


def test_times_that_nobody_reads_are_caught_up_with_at_once(tmp_path: Path) -> None:
    """What changed at three hundred times is one change, where only the last of them can be read."""
    rows = [((n, 1, "x", None, n, None, True), n, 1) for n in range(300)]
    history: dict[str, Updates] = {"t": rows, "u": [], "empty": []}
    relation = optimize(plan(VIEWS["top"], Tables()).relation)
    seen: list[int] = []

    class Watching(LocalEngine):
        def run_steps(self, steps: Any, outputs: Any, inputs: Any, **options: Any) -> Any:
            seen.append(len({time for name, table in inputs.items() for time in table.column(0).to_pylist()}))
            return super().run_steps(steps, outputs, inputs, **options)

    with Environment.open(tmp_path, background=False) as environment:
        tables = Tables3(environment, history)
        tables.write(0, 1)
        flow, reader = maintain_view(environment, "view", relation, list(tables.readers.values()), Watching())
        flow.tick()
        tables.write(1, 300)
        environment.downgrade(reader, Antichain(298))
        seen.clear()
        flow.tick()
        assert seen[0] <= 3, "the time before, and the two that can be read"
        check(environment, flow, history, range(298, 300))
