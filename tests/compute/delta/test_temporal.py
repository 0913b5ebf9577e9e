"""Temporal filters: at every millisecond the maintained view is the query with that time in place of `mz_now()`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everview.compute.dataflow import maintain_view, resume
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Relation, types
from everview.compute.ir.types import INT8, TEXT, TIMESTAMP, TIMESTAMPTZ, SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.stored_state import schema_of
from everview.compute.view import View
from everview.storage.contract import Create, UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import TIME
from tests.compute.delta.history import Maintained, Updates, contents, timed
from tests.compute.temporal import at_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMES = 16
SCHEMAS: dict[str, dict[str, SqlType]] = {
    "events": {"k": INT8, "since": INT8, "until": INT8},
    "names": {"k": INT8, "name": TEXT, "until": INT8},
}

VIEWS = {
    "valid": "SELECT * FROM events WHERE mz_now() >= since AND mz_now() < until",
    "from": "SELECT k FROM events WHERE since <= mz_now()",
    "until": "SELECT k FROM events WHERE mz_now() <= until",
    "after": "SELECT k FROM events WHERE mz_now() > since AND until > mz_now()",
    "at": "SELECT k FROM events WHERE mz_now() = since",
    "between": "SELECT k FROM events WHERE mz_now() BETWEEN since AND until",
    "sliding": "SELECT k, count(*), sum(since) FROM events WHERE mz_now() >= since AND mz_now() < since + 5 GROUP BY k",
    "tumbling": "SELECT count(*) FROM events WHERE mz_now() >= 4 * (since / 4) AND mz_now() < 4 * (since / 4) + 4",
    "moved": "SELECT k FROM events WHERE mz_now() - 3 < since AND mz_now() + 2 > since",
    "joined": "SELECT e.k, n.name FROM events e JOIN names n ON e.k = n.k"
    " WHERE mz_now() >= since AND mz_now() < n.until",
    "outer": "SELECT e.k, n.name FROM events e LEFT JOIN (SELECT * FROM names WHERE mz_now() < until) n ON e.k = n.k",
    "missing": "SELECT k FROM events e WHERE NOT EXISTS"
    " (SELECT FROM names n WHERE n.k = e.k AND mz_now() < n.until) AND mz_now() >= since",
    "two": "SELECT k FROM events WHERE mz_now() >= since UNION ALL SELECT k FROM names WHERE mz_now() < until",
    "top": "SELECT k, until FROM events WHERE mz_now() >= since AND mz_now() < until ORDER BY until, k LIMIT 2",
    "above": "SELECT k, m FROM (SELECT k, max(until) AS m FROM events GROUP BY k) x WHERE mz_now() < m",
    "either": "SELECT k FROM events WHERE mz_now() < since OR mz_now() >= until OR k = 1",
    "neither": "SELECT k FROM events WHERE NOT (mz_now() < since OR mz_now() > until AND k <> 2)",
    "not at": "SELECT k FROM events WHERE mz_now() <> since",
    "in": "SELECT k FROM events WHERE mz_now() IN (since, until, 5, since + 1)",
    "not in": "SELECT k FROM events WHERE mz_now() NOT IN (since, until)",
    "not true": "SELECT k FROM events WHERE (mz_now() >= since) IS NOT TRUE OR (mz_now() < until) IS UNKNOWN",
    "case": "SELECT k FROM events WHERE CASE WHEN k > 1 THEN mz_now() < until WHEN mz_now() > 4 THEN k = 0"
    " ELSE mz_now() >= since END",
    "coalesced": "SELECT k FROM events WHERE COALESCE(mz_now() < until, mz_now() > since, k = 3)",
    "symmetric": "SELECT k FROM events WHERE mz_now() BETWEEN SYMMETRIC since AND until",
    "distinct": "SELECT k FROM events WHERE mz_now() IS DISTINCT FROM since AND (mz_now() < until) = (k > 1)",
    "falling": "SELECT k FROM events WHERE since - mz_now()::bigint < 2 AND 12 - 2 * mz_now()::bigint >= until - 9",
    "by thousands": "SELECT k FROM events WHERE mz_now()::bigint / 3 = since / 3",
    "either joined": "SELECT e.k, n.name FROM events e JOIN names n ON e.k = n.k"
    " WHERE (mz_now() < e.until AND n.name = 'a') OR (mz_now() < e.since AND mz_now() < n.until)",
    "left": "SELECT e.k, n.name FROM events e LEFT JOIN names n ON e.k = n.k AND mz_now() < n.until"
    " WHERE mz_now() < e.until",
    "full": "SELECT e.k, n.name FROM events e FULL JOIN names n ON e.k = n.k AND mz_now() <> n.until",
    "within": "SELECT k FROM events WHERE mz_now() < until AND k IN (SELECT k FROM names WHERE mz_now() < until)",
    "nested": "SELECT k, count(*) FROM (SELECT * FROM events WHERE mz_now() >= since) x"
    " WHERE mz_now() < until GROUP BY k",
}


class Names:
    """The collections by name."""

    def find(self, path: Sequence[str]) -> Collection | None:
        columns = SCHEMAS.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        return list(SCHEMAS)


def histories(rng: random.Random) -> dict[str, Updates]:
    """Rows with bounds that are crossed, equal, missing, past and beyond the end, that come, go and come back."""
    result: dict[str, Updates] = {}
    for name in SCHEMAS:
        updates = []
        for _ in range(rng.randint(1, 14)):
            since, until = (rng.choice([None, *range(TIMES + 4)]) for _ in range(2))
            row = (rng.randint(0, 3), since if name == "events" else rng.choice("ab"), until)
            time, alive = rng.randint(0, TIMES - 1), False
            for _ in range(rng.randint(1, 3)):
                updates.append((row, time, -1 if alive else 1))
                alive, time = not alive, rng.randint(time, TIMES - 1)
        result[name] = updates
    return result


def expected(relation: Relation, history: dict[str, Updates], time: int) -> object:
    return evaluate(at_time(relation, time), {name: contents(updates, time) for name, updates in history.items()}).rows


@pytest.mark.parametrize("name", VIEWS)
def test_exact_at_every_time(name: str, rng: random.Random, long_forms: bool) -> None:
    written = plan(VIEWS[name], Names()).relation
    for _ in range(200 if long_forms else 12):
        history = histories(rng)
        view = Maintained(optimize(written) if rng.random() < 0.7 else written)
        cuts = sorted(rng.sample(range(1, TIMES), rng.randint(0, 9)))
        for lower, upper in pairwise([0, *cuts, TIMES]):
            view.tick(history, lower, upper)
        for time in range(TIMES):
            assert contents(view.output, time) == expected(written, history, time), f"{name} at {time}: {history}"


def maintain_stored(folder: Path, name: str, rng: random.Random, engine: LocalEngine | SparkEngine) -> None:
    written = plan(VIEWS[name], Names()).relation
    relation = optimize(written)
    history = histories(rng)
    with Environment.open(folder, background=False) as environment:
        created = environment.commit(*(Create(each, schema_of(list(SCHEMAS[each].values()))) for each in SCHEMAS))
        writers = {write.id: write for _, write in created}
        flow, _ = maintain_view(environment, "v", relation, [read for read, _ in created], engine)
        for number, (lower, upper) in enumerate(((0, 2), (2, 3), (3, 9), (9, 10), (10, TIMES))):
            commands = []
            for each, schema in SCHEMAS.items():
                rows = timed(history[each], lower, upper)
                table = rows_to_arrow({(*row[1:], row[0]): n for row, n in rows.items()}, (*schema.values(), INT8))
                names = [*(f"c{index}" for index in range(len(schema))), TIME, "_diff"]
                commands.append(UpdateAndDowngrade(writers[each], table.rename_columns(names), Antichain(upper)))
            writers = {write.id: write for write in environment.commit(*commands)}
            if number == 2:
                flow = resume(environment, "v", relation, engine)  # which forgets what only memory knows
            assert flow.tick() is not None
        for time in range(TIMES):
            with environment.contents("v", time) as selection:
                found = rows_from_arrow(selection.contents(), types(written))
            assert found == expected(written, history, time), f"{name} at {time}"


@pytest.mark.parametrize("name", ["valid", "sliding", "outer"])
def test_exact_over_storage(tmp_path: Path, name: str, rng: random.Random) -> None:
    for number in range(4):
        maintain_stored(tmp_path / str(number), name, rng, LocalEngine())


@pytest.mark.spark
@pytest.mark.parametrize("name", ["sliding", "joined", "either", "not in", "case", "either joined", "left"])
def test_exact_on_spark(tmp_path: Path, name: str, rng: random.Random, spark: SparkSession) -> None:
    maintain_stored(tmp_path / "data", name, rng, SparkEngine(spark))


def test_what_waits_is_not_looked_at_and_what_is_over_is_not_kept(tmp_path: Path) -> None:
    relation = optimize(plan(VIEWS["valid"], Names()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        created = environment.commit(*(Create(each, schema_of(list(SCHEMAS[each].values()))) for each in SCHEMAS))
        (reader, writer), *_ = created
        flow, _ = maintain_view(environment, "v", relation, [reader], LocalEngine())
        rows = {(n, 0, (n + 1) * 1000): 1 for n in range(500)} | {(n, 0, 0): 1 for n in range(50)}
        table = rows_to_arrow({(*row, 0): n for row, n in rows.items()}, (INT8,) * 4)
        writer = environment.append(writer, table.rename_columns(["c0", "c1", "c2", TIME, "_diff"]), Antichain(1))
        flow.tick()
        pending = next(each for each in flow.view.program.arrangements if each.pending)
        with environment.contents(f"v.{pending.name}", 0) as selection:
            assert selection.contents().num_rows == 500, "rows that are over before they begin are nowhere"
        environment.append(writer, None, Antichain(3001))
        ticked = flow.tick()
        assert ticked is not None and ticked.rows_looked_up <= 3 and ticked.rows_out == 3
        with environment.contents("v", 3000) as selection:
            assert selection.contents().num_rows == 497
        with environment.contents("v", 2999) as selection:
            assert selection.contents().num_rows == 498


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT mz_now() FROM events", "only in comparisons"),
        ("SELECT k FROM events WHERE mz_now()::bigint % 2 = since", "turned around"),
        ("SELECT k FROM events WHERE mz_now()::bigint * k > since", "only by a constant"),
        ("SELECT k FROM events WHERE mz_now()::text = 'x' OR k = 1", "turned around"),
        ("SELECT k FROM events WHERE extract(hour FROM mz_now()) < since", "turned around"),
        ("SELECT k FROM events WHERE age(mz_now()::timestamp, '2020-01-01') < INTERVAL '1 month'", "turned around"),
        ("SELECT k FROM events WHERE date_bin('1 day', '2020-01-01', mz_now()::timestamp) < '2020-01-01'", "turned"),
        ("SELECT k FROM events WHERE mz_now()::bigint = ANY (ARRAY[since] || until)", "elements of an array"),
        ("SELECT k FROM events WHERE round(mz_now()::numeric, k::int) < since", "turned around"),
        ("SELECT k FROM events WHERE GREATEST(mz_now(), mz_now() - since) = until", "itself"),
        (f"SELECT k FROM events WHERE mz_now() IN ({', '.join(map(str, range(1001)))})", "more than 1,000 times"),
        ("SELECT k FROM events WHERE mz_now() < mz_now() + since", "itself"),
        ("SELECT k FROM events GROUP BY k HAVING max(mz_now()) > 3", "only in comparisons"),
    ],
)
def test_other_uses_are_refused(query: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as raised:
        View.of(optimize(plan(query, Names()).relation))
    assert raised.value.sqlstate == "0A000" and raised.value.hint


@pytest.mark.parametrize(
    ("condition", "row"),
    [
        ("mz_now() <= until", (1, 0, 2**63 - 1)),
        ("mz_now() - 3 < until", (1, 0, 2**63 - 1)),
        ("2 + mz_now() < until AND mz_now() - 2 <= until", (1, 0, 2**63 - 1)),
        ("mz_now()::bigint >= since", (1, -5, 0)),
        ("mz_now()::bigint - 4 > since", (1, -(2**63), 0)),
        ("mz_now()::bigint + 4 > since", (1, -(2**63), 0)),
    ],
)
def test_bounds_beyond_all_times_bound_nothing(condition: str, row: tuple[int, ...]) -> None:
    relation = plan(f"SELECT k FROM events WHERE {condition}", Names()).relation
    view = Maintained(optimize(relation))
    history: dict[str, Updates] = {"events": [(row, 2, 1), (row, 5, -1)], "names": []}
    for lower, upper in pairwise((0, 4, 8)):
        view.tick(history, lower, upper)
    assert not view.errors
    for time in range(8):
        assert contents(view.output, time) == expected(relation, history, time) == ({(1,): 1} if 2 <= time < 5 else {})


@pytest.mark.parametrize("operator", ["<", "<=", "=", ">=", ">"])
@pytest.mark.parametrize("now", ["mz_now() - INTERVAL '1500 microseconds'", "mz_now()::timestamptz"])
def test_moments_within_a_millisecond(now: str, operator: str) -> None:
    class Events:
        def find(self, path: Sequence[str]) -> Collection:
            return Collection("e", ("ts",), (TIMESTAMPTZ,))

        def names(self) -> list[str]:
            return ["e"]

    moments = [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=500 * number) for number in range(-6, 20)]
    relation = plan(f"SELECT ts FROM e WHERE {now} {operator} ts", Events()).relation
    history: dict[str, Updates] = {"e": [((moment,), 0, 1) for moment in moments]}
    view = Maintained(optimize(relation))
    for lower, upper in pairwise((0, 4, 5, 12)):
        view.tick(history, lower, upper)
    for time in range(12):
        assert contents(view.output, time) == expected(relation, history, time), time


def test_intervals_on_either_side() -> None:
    schema = {"e": {"ts": TIMESTAMP}}

    class Events:
        def find(self, path: Sequence[str]) -> Collection:
            return Collection("e", ("ts",), (TIMESTAMP,))

        def names(self) -> list[str]:
            return list(schema)

    for query in (
        "SELECT ts FROM e WHERE mz_now() <= ts + INTERVAL '5 seconds'",
        "SELECT ts FROM e WHERE mz_now() - INTERVAL '5 seconds' <= ts",
    ):
        relation = plan(query, Events()).relation
        history: dict[str, Updates] = {
            "e": [((datetime(1970, 1, 1, 0, 0, 2),), 0, 1), ((datetime(1969, 12, 31),), 0, 1)]
        }
        view = Maintained(optimize(relation))
        view.tick(history, 0, 7000)
        view.tick(history, 7000, 8000)
        for time in (0, 6999, 7000, 7001, 7002):
            assert contents(view.output, time) == expected(relation, history, time), query
        assert len(contents(view.output, 7000)) == 1 and not contents(view.output, 7001)
