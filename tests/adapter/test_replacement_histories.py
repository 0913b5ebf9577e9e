"""Replacements over histories: exact at every time, whatever happens in between, and whenever the process dies."""

from __future__ import annotations

import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.catalog.items import MaterializedView
from everview.adapter.coordinator import Coordinator
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, in_postgres, in_sqlite
from tests.adapter.scripts import SessionClient
from tests.adapter.test_restart import POINTS, abandon, open_at
from tests.adapter.test_subscribe import Subscriber

DEFINITIONS = (
    "SELECT k, count(*) AS n FROM a GROUP BY k",
    "SELECT k, sum(v) AS n FROM a GROUP BY k",
    "SELECT k, max(v)::bigint AS n FROM a GROUP BY k",
    "SELECT a.k, (a.v + b.w)::bigint AS n FROM a JOIN b ON a.k = b.k",
    "SELECT DISTINCT k, 1::bigint AS n FROM a WHERE v > 2",
    "SELECT k, v::bigint AS n FROM a EXCEPT SELECT k, w::bigint AS n FROM b",
    "SELECT k, v::bigint AS n FROM a ORDER BY v DESC, k LIMIT 3",
    "SELECT k, w::bigint AS n FROM b WHERE w > 1",
    "SELECT k, v::bigint AS n FROM a UNION ALL SELECT k, w::bigint AS n FROM b",
    "SELECT a.k, count(b.w) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k",
    "SELECT k, (12 / v)::bigint AS n FROM a WHERE v <> 0",
)
# Columns that a definition may have more, in this order, and their names.
MORE = ("nullif(k + n, 3) AS x", "CASE WHEN n > 2 THEN 'much' END AS y")
NAMES = ("k", "n", "x", "y")


def with_more(definition: str, width: int) -> str:
    """The definition with so many columns in all."""
    if width == 2:
        return definition
    return f"SELECT k, n, {', '.join(MORE[: width - 2])} FROM ({definition}) AS q"


def seen_as(definition: str, has: int, width: int) -> str:
    """The rows of a definition that has so many columns, for who sees so many: NULL where there is nothing."""
    columns = [*NAMES[: min(has, width)], *("NULL" for _ in range(has, width))]
    return f"SELECT {', '.join(columns)} FROM ({definition}) AS q"


def rows(client: SessionClient, query: str) -> list[str]:
    """The rows of a query, or its error."""
    found = client(query)
    return found if found[0].startswith("!") else sorted(found[1:])


def change(sql: SessionClient, rng: random.Random) -> None:
    k, v = rng.randrange(4), rng.randrange(1, 6)
    table, column = rng.choice((("a", "v"), ("b", "w")))
    action = rng.random()
    if action < 0.6:
        sql(f"INSERT INTO {table} VALUES ({k}, {v}), ({rng.randrange(4)}, {v})")
    elif action < 0.8:
        sql(f"UPDATE {table} SET {column} = {v} WHERE k = {k}")
    else:
        sql(f"DELETE FROM {table} WHERE {column} = {v}")


def made(sql: SessionClient, definition: str) -> None:
    for table, column in (("a", "v"), ("b", "w")):
        sql(f"CREATE TABLE {table} (k int, {column} int) WITH (RETAIN HISTORY FOR '1h')")
        sql(f"INSERT INTO {table} VALUES (0, 1), (1, 2), (2, 3)")
    keep = "WITH (RETAIN HISTORY FOR '1h')"
    sql(f"CREATE MATERIALIZED VIEW mv {keep} AS {definition}")
    sql(f"CREATE MATERIALIZED VIEW above {keep} AS SELECT count(*) AS c, sum(n) AS s FROM mv")
    sql(f"CREATE MATERIALIZED VIEW everything {keep} AS SELECT * FROM mv")
    sql("SELECT * FROM above")


def test_every_time_is_of_one_definition(tmp_path: Path, long_forms: bool, rng: random.Random) -> None:
    """Before an apply the view is what the old definition says, from it on what the new one says, and above it too."""
    for number in range(40 if long_forms else 4):
        one_history(tmp_path / str(number), rng)


def one_history(path: Path, rng: random.Random) -> None:
    """Definitions come and go, with the same columns, with more, or with those of before again."""
    clock = Clock()
    definition = rng.choice(DEFINITIONS)
    coordinator = open_at(path, clock)
    sql = SessionClient(coordinator)
    made(sql, definition)
    first = coordinator.timeline.upper - 1
    eras: list[tuple[int, str, int]] = [(first, definition, 2)]
    times: list[int] = []
    subscriber, seen = Subscriber(coordinator, "SUBSCRIBE TO mv"), 2
    staged: tuple[str, int] | None = None
    for _ in range(rng.randrange(12, 25)):
        action = rng.random()
        if action < 0.55:
            change(sql, rng)
        elif action < 0.75 and staged is None:
            had = {width for _, _, width in eras}
            width = rng.choice([each for each in (2, 2, 3, 4) if each >= eras[-1][2] or each in had])
            staged = with_more(rng.choice(DEFINITIONS), width), width
            answer = sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {staged[0]}")
            assert answer == ["CREATE MATERIALIZED VIEW"], answer
        elif action < 0.9 and staged is not None:
            answer = sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r")
            assert answer == ["ALTER MATERIALIZED VIEW"], answer
            eras.append((int(coordinator.catalog.events()[-1].details["applied_at"]), *staged))
            assert rows(sql, "SELECT * FROM mv") == rows(sql, staged[0])  # at once
            staged = None
        elif action < 0.95 and staged is not None:
            assert sql("DROP MATERIALIZED VIEW r") == ["DROP MATERIALIZED VIEW"]
            staged = None
        elif action > 0.97:
            coordinator.close()
            coordinator = open_at(path, clock)
            sql = SessionClient(coordinator)
            subscriber, seen = Subscriber(coordinator, "SUBSCRIBE TO mv"), eras[-1][2]
        times.append(coordinator.timeline.upper - 1)
    sql("SELECT * FROM mv")
    now, width = eras[-1][1:]
    assert summed(subscriber) == rows(sql, seen_as(now, width, seen)), eras
    around = [at + step for at, _, _ in eras[1:] for step in (-1, 0, 1)]
    for time in sorted({*times, *around}):
        if not first <= time < coordinator.timeline.upper:
            continue
        then, has = [era[1:] for era in eras if era[0] <= time][-1]
        wanted = rows(sql, f"{seen_as(then, has, width)} AS OF {time}")
        assert rows(sql, f"SELECT * FROM mv AS OF {time}") == wanted, (time, eras)
        wanted = rows(sql, f"SELECT k, n FROM ({then}) AS q AS OF {time}")
        assert rows(sql, f"SELECT * FROM everything AS OF {time}") == wanted, (time, eras)
        wanted = rows(sql, f"SELECT count(*), sum(n) FROM ({then}) AS q AS OF {time}")
        assert rows(sql, f"SELECT * FROM above AS OF {time}") == wanted, (time, eras)
    coordinator.close()


def summed(subscriber: Subscriber) -> list[str]:
    """What all that a subscription has said comes to, as rows."""
    total = Counter[tuple[Any, ...]]()
    for row in subscriber.take():
        total[tuple("NULL" if each is None else str(each) for each in row[2:])] += row[1]
    assert min(total.values(), default=0) >= 0
    return sorted("|".join(row) for row, count in total.items() for _ in range(count))


# Crashes

STATEMENTS = (
    "INSERT INTO a VALUES (3, 4)",
    f"CREATE MATERIALIZED VIEW r REPLACING mv AS {DEFINITIONS[3]}",
    "SELECT * FROM r",
    "INSERT INTO b VALUES (3, 7)",
    "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r",
    "INSERT INTO a VALUES (1, 1)",
    f"CREATE MATERIALIZED VIEW r REPLACING mv AS {DEFINITIONS[10]}",
    "DROP MATERIALIZED VIEW r",
    "ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT",
    "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback",
    "INSERT INTO a VALUES (2, 2)",
    f"CREATE MATERIALIZED VIEW r REPLACING mv AS {with_more(DEFINITIONS[1], 4)}",
    "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r",
    "INSERT INTO a VALUES (2, 3)",
    "CREATE MATERIALIZED VIEW wide AS SELECT * FROM mv WHERE y IS NOT NULL",
    "DROP MATERIALIZED VIEW wide",
    "ALTER MATERIALIZED VIEW mv ROLLBACK REPLACEMENT",
    "ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT mv_rollback",
    "INSERT INTO a VALUES (0, 1)",
)


def state(coordinator: Coordinator) -> list[str]:
    sql = SessionClient(coordinator)
    found = sorted(sql("SELECT name, create_sql FROM mz_materialized_views"))
    versions = "SELECT name, version, current, columns FROM mz_internal.mz_materialized_view_versions"
    found += sorted(sql(f"{versions} AS v JOIN mz_materialized_views AS m ON m.id = v.id"))
    for name in ("a", "b", "mv", "above", "everything", "r", "wide", "mv_rollback"):
        found += [f"{name}: {line}" for line in sorted(sql(f"SELECT * FROM {name}"))]
    return found


@pytest.fixture(scope="module")
def seen_states(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    with open_at(tmp_path_factory.mktemp("whole"), Clock()) as coordinator:
        sql = SessionClient(coordinator)
        made(sql, DEFINITIONS[1])
        seen = [state(coordinator)]
        for statement in STATEMENTS:
            answer = sql(statement)
            assert not answer[0].startswith("!"), answer
            seen.append(state(coordinator))
        return seen


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # threads die as well
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_commit(
    tmp_path: Path, point: str, long_forms: bool, seen_states: list[list[str]], rng: random.Random
) -> None:
    """The process dies at some commit, of a statement or of a tick: all is as before the statement, or as after."""
    for hit in range(1, 100) if long_forms else sorted(rng.sample(range(1, 85), 6)):
        path = tmp_path / f"crash {hit}"
        coordinator = open_at(path, Clock())
        sql = SessionClient(coordinator)
        made(sql, DEFINITIONS[1])
        done, crashed = 0, False
        with armed(point, hit, for_good=True):
            for statement in STATEMENTS:
                try:
                    crashed = sql(statement)[0].startswith("!")
                except Crash:
                    crashed = True
                if crashed:
                    break
                done += 1
            abandon(coordinator)
        with open_at(path, Clock(1_700_000_100_000)) as reopened:
            found = state(reopened)
            assert found in (seen_states[done : done + 2] if crashed else [seen_states[done]]), f"{point} {hit} {done}"
            known = {item.id for item in reopened.catalog.state.items.values()} | set(reopened.maintenance.keepers())
            known |= {each.id for each in reopened.maintenance.shared() if each.users}
            stray = [id for id in reopened.environment.ids() if id.partition(".")[0] not in known]
            assert not stray, f"{point} {hit}: left over {stray}"
            again = SessionClient(reopened)
            again("INSERT INTO a VALUES (0, 5)")
            (name, query), *_ = [
                (item.name, item.query) for item in reopened.catalog.state.of(MaterializedView) if item.name == "mv"
            ]
            assert rows(again, f"SELECT * FROM {name}") == rows(again, query or "")


def test_under_load_nobody_notices_anything_but_new_rows(
    coordinator: Coordinator, sql: SessionClient, tmp_path: Path
) -> None:
    """Ten views above, three subscriptions, an index, a sink, writers and readers: the view is replaced over and over.

    In between it gets a column more, and has it no longer in the end.
    """
    sql("CREATE TABLE t (k int, v int)")
    sql("INSERT INTO t VALUES (0, 1), (1, 1)")
    sql("CREATE MATERIALIZED VIEW mv AS SELECT k, sum(v) AS n FROM t GROUP BY k")
    sql("CREATE INDEX i ON mv (k)")
    for number in range(10):
        sql(f"CREATE MATERIALIZED VIEW d{number} AS SELECT k, n + {number} AS n FROM mv WHERE k % 2 = {number % 2}")
    file = tmp_path / "out.db"
    assert sql(f"CREATE SINK delivering FROM mv INTO SQLITE (PATH '{file}', TABLE 'out') KEY (k)") == ["CREATE SINK"]
    subscribers = [Subscriber(coordinator, "SUBSCRIBE TO mv") for _ in range(3)]
    stop, problems = threading.Event(), []

    def write() -> None:
        client, rng = SessionClient(coordinator), random.Random(1)
        while not stop.is_set():
            answer = client(f"INSERT INTO t VALUES ({rng.randrange(8)}, 1)")
            if answer != ["INSERT 0 1"]:
                problems.append(str(answer))

    def read(name: str) -> None:
        client = SessionClient(coordinator)
        while not stop.is_set():
            for query in (f"SELECT * FROM {name}", "SELECT n FROM mv WHERE k = 1"):
                answer = client(query)
                if answer[0].startswith("!"):
                    problems.append(str(answer))

    threads = [threading.Thread(target=write), *(threading.Thread(target=read, args=(f"d{n}",)) for n in (0, 5))]
    for thread in threads:
        thread.start()
    try:
        for factor in range(2, 8):
            definition = f"SELECT k, sum(v * {factor}) AS n{', count(*) AS c' * (3 < factor < 7)} FROM t GROUP BY k"
            sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {definition}")
            assert sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r WITH (TIMEOUT '30s')") == [
                "ALTER MATERIALIZED VIEW"
            ]
            sql("BEGIN")
            assert rows(sql, "SELECT * FROM mv") == rows(sql, definition)
            sql("COMMIT")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems, problems[:3]
    final = rows(sql, "SELECT * FROM mv")
    assert all(summed(subscriber) == final for subscriber in subscribers)
    delivered(coordinator, "delivering")
    assert in_sqlite(file, "out")[1] == final
    for number in range(10):
        wanted = rows(sql, f"SELECT k, n + {number} AS n FROM mv WHERE k % 2 = {number % 2}")
        assert rows(sql, f"SELECT * FROM d{number}") == wanted


@pytest.mark.parametrize("destination", ["sqlite", "postgres"])
def test_a_sink_ends_equal(
    tmp_path: Path, clock: Clock, rng: random.Random, destination: str, request: pytest.FixtureRequest
) -> None:
    """What is delivered of a view is the view, whichever definition it has by then."""
    file, table = tmp_path / "out.db", f"replaced_{rng.randrange(10**9)}"
    url = request.getfixturevalue("postgres_url") if destination == "postgres" else ""
    into = f"SQLITE (PATH '{file}', TABLE '{table}')" if not url else f"POSTGRES (CONNECTION '{url}', TABLE '{table}')"
    by_key = [each for each in DEFINITIONS if "GROUP BY k" in each]
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        made(sql, by_key[0])
        assert sql(f"CREATE SINK {table} FROM mv INTO {into} KEY (k)") == ["CREATE SINK"]
        more = [with_more(each, width) for each, width in zip(by_key, (3, 4, 4), strict=False)]
        for definition in (*by_key, *more, by_key[0]):
            sql(f"CREATE MATERIALIZED VIEW r REPLACING mv AS {definition}")
            for _ in range(3):
                change(sql, rng)
            assert sql("ALTER MATERIALIZED VIEW mv APPLY REPLACEMENT r") == ["ALTER MATERIALIZED VIEW"]
            change(sql, rng)
            delivered(coordinator, table)
            found = in_postgres(url, table)[1] if url else in_sqlite(file, table)[1]
            assert found == rows(sql, "SELECT k, n FROM mv"), definition
