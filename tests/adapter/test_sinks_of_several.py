"""One sink of several collections: whoever reads the destination sees all of them at one time."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import threading
from pathlib import Path

import pytest

from everview.adapter.catalog import codec
from everview.adapter.catalog.items import Sink
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.coordinator import Coordinator
from everview.flow.materialization import held_tokens
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, id_of, in_sqlite, ok, rows, until_state
from tests.adapter.scripts import SessionClient
from tests.adapter.test_restart import POINTS, abandon, open_at
from tests.flow.conftest import STRICT

# Money moves between two tables, each of which is delivered as a view of its own: together they hold what they held.
MOVED = 1000


def prepare(sql: SessionClient) -> None:
    ok(
        sql,
        "CREATE TABLE cash (id int, amount int)",
        "CREATE TABLE debt (id int, amount int)",
        "CREATE MATERIALIZED VIEW have AS SELECT id, sum(amount) AS amount FROM cash GROUP BY id",
        f"INSERT INTO cash VALUES (1, {MOVED})",
        "INSERT INTO debt VALUES (1, 0)",
    )


def move(sql: SessionClient, rng: random.Random) -> None:
    """Some of it goes from one table to the other, in one transaction."""
    amount, id = rng.randrange(1, 50), rng.randrange(1, 6)
    ok(sql, "BEGIN", f"INSERT INTO cash VALUES ({id}, {-amount})", f"INSERT INTO debt VALUES ({rng.randrange(10**9)},"
       f" {amount})", "COMMIT")  # fmt: skip


def held_in_sqlite(file: Path) -> int | None:
    """What both tables hold together, in one transaction of a reader; None while there is nothing."""
    with sqlite3.connect(file) as db:
        db.execute("BEGIN")
        sums = [db.execute(f"SELECT sum(amount) FROM {table}").fetchone()[0] for table in ("have", "debt")]
    db.close()
    return None if sums == [None, None] else sum(each or 0 for each in sums)


def held_in_postgres(url: str, tables: tuple[str, str]) -> int | None:
    import psycopg

    with psycopg.connect(url) as db:
        query = f"SELECT (SELECT sum(amount) FROM {tables[0]}), (SELECT sum(amount) FROM {tables[1]})"
        found = db.execute(query).fetchone()
    assert found is not None
    return None if found == (None, None) else sum(each or 0 for each in found)


@pytest.mark.parametrize("destination", ["sqlite", "postgres"])
def test_all_of_them_are_seen_at_one_time(
    tmp_path: Path, clock: Clock, rng: random.Random, destination: str, request: pytest.FixtureRequest
) -> None:
    """Also while they change, and after restarts and processes that just end."""
    tables, file = ("have", "debt"), tmp_path / "out.db"
    url = request.getfixturevalue("postgres_url") if destination == "postgres" else ""
    if url:
        tables = (f"have_{rng.randrange(10**9)}", f"debt_{rng.randrange(10**9)}")
    into = f"POSTGRES (CONNECTION '{url}')" if url else f"SQLITE (PATH '{file}')"

    def held() -> int | None:
        return held_in_postgres(url, tables) if url else held_in_sqlite(file)

    coordinator = open_at(tmp_path / "data", clock)
    sql = SessionClient(coordinator)
    prepare(sql)
    ok(
        sql,
        f"CREATE SINK both FROM have (TABLE '{tables[0]}') KEY (id), debt (TABLE '{tables[1]}') KEY (id) INTO {into}",
    )
    for round in range(4):
        for _ in range(15):
            move(sql, rng)
            assert held() in (None, MOVED)
        delivered(coordinator, "both")
        assert held() == MOVED
        move(sql, rng)
        if round % 2:
            abandon(coordinator)
        else:
            coordinator.close()
        coordinator = open_at(tmp_path / "data", clock)
        sql = SessionClient(coordinator)
    delivered(coordinator, "both")
    if not url:
        assert in_sqlite(file, "have")[1] == rows(ok(sql, "SELECT * FROM have"))
        assert in_sqlite(file, "debt")[1] == rows(ok(sql, "SELECT * FROM debt"))
    assert held() == MOVED
    ok(sql, "DROP SINK both")
    coordinator.close()


SINK = "CREATE SINK s FROM have (TABLE 'h') KEY (id), debt (TABLE 'd') DELTA UPDATES INTO SQLITE (PATH '{file}')"


def create(sql: SessionClient, tmp_path: Path) -> Path:
    prepare(sql)
    file = tmp_path / "out.db"
    ok(sql, SINK.format(file=file) + " WITH (HEARTBEAT_S 20.0)")
    return file


def test_what_is_told_of_it(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    file = create(sql, tmp_path)
    delivered(coordinator, "s")
    (shown,) = rows(ok(sql, "SELECT create_sql FROM mz_sinks"))
    assert shown == (
        "CREATE SINK everview.public.s FROM everview.public.have (TABLE 'h') KEY (id),"
        f" everview.public.debt (TABLE 'd') DELTA UPDATES INTO SQLITE (PATH '{file}') WITH (HEARTBEAT_S 20.0)"
    )
    assert shown in "\n".join(ok(sql, "SHOW CREATE SINK s"))
    assert rows(ok(sql, "SELECT on_id IS NULL, key IS NULL, delta_updates IS NULL FROM mz_sinks")) == ["t|t|t"]
    columns = "position, collection, key, delta_updates, rows"
    told = rows(ok(sql, f"SELECT {columns} FROM mz_internal.mz_sink_collections ORDER BY position"))
    assert told == ["1|have|{id}|f|1", "2|debt|{}|t|1"]
    ok(sql, "INSERT INTO debt VALUES (7, 7), (8, 8)")
    delivered(coordinator, "s")
    assert rows(ok(sql, "SELECT collection, rows FROM mz_internal.mz_sink_collections")) == ["debt|3", "have|1"]
    assert rows(ok(sql, "SELECT rows FROM mz_internal.mz_sink_statistics")) == ["4"]
    ok(sql, "ALTER TABLE debt RENAME TO owed", "DROP SINK s")
    again = shown.replace("debt", "owed").replace("out.db", "other.db")
    ok(sql, again)  # what is shown makes the same sink
    delivered(coordinator, "s")
    assert in_sqlite(tmp_path / "other.db", "d")[1] == rows(ok(sql, "SELECT * FROM owed"))


def test_each_of_them_stays_while_the_sink_does(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    create(sql, tmp_path)
    environment = coordinator.environment
    item = coordinator.catalog.state.items[id_of(coordinator, "s")]
    assert isinstance(item, Sink) and isinstance(item.spec, DriverSink)
    name = item.spec.name
    tokens = held_tokens(environment, name)
    assert tokens.keys() == {id_of(coordinator, "have"), id_of(coordinator, "debt")}
    assert sql("DROP MATERIALIZED VIEW have")[0].startswith("! 2BP01")
    assert sql("DROP TABLE debt")[0].startswith("! 2BP01")
    ok(sql, "DROP TABLE debt CASCADE")
    assert ok(sql, "SHOW SINKS") == ["name|comment"]
    have = id_of(coordinator, "have")
    assert tokens[have] not in environment.shard(have).held
    assert not environment.scan("flow/")


def test_an_error_in_one_holds_all_of_them(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    file = tmp_path / "out.db"
    ok(
        sql,
        "CREATE TABLE t (id int, d int)",
        "INSERT INTO t VALUES (1, 1)",
        "CREATE MATERIALIZED VIEW q AS SELECT id, 10 / d AS r FROM t",
        f"CREATE SINK s FROM t (TABLE 't') KEY (id), q (TABLE 'q') KEY (id) INTO SQLITE (PATH '{file}')",
    )
    delivered(coordinator, "s")
    ok(sql, "INSERT INTO t VALUES (2, 0), (3, 5)")
    assert "division by zero" in (until_state(coordinator, "s", "stalled") or "")
    assert in_sqlite(file, "t")[1] == ["1|1"]
    ok(sql, "DELETE FROM t WHERE id = 2")
    delivered(coordinator, "s")
    assert (in_sqlite(file, "t")[1], in_sqlite(file, "q")[1]) == (["1|1", "3|5"], ["1|10", "3|2"])
    ok(sql, "INSERT INTO t VALUES (3, 1)")  # two rows under a key
    assert 'more than one row of "' in (until_state(coordinator, "s", "stalled") or "")


def test_a_view_among_them_is_replaced(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    file = create(sql, tmp_path)
    ok(sql, "CREATE MATERIALIZED VIEW other REPLACING have AS SELECT id, sum(amount) * 2 AS amount, 'x' AS more"
       " FROM cash GROUP BY id")  # fmt: skip
    ok(sql, "ALTER MATERIALIZED VIEW have APPLY REPLACEMENT other", "INSERT INTO debt VALUES (2, 5)")
    delivered(coordinator, "s")
    assert in_sqlite(file, "h")[1] == [f"1|{2 * MOVED}"]  # with the columns that it had
    assert in_sqlite(file, "d")[1] == ["1|0", "2|5"]


def test_it_is_altered_as_one(tmp_path: Path, clock: Clock, rng: random.Random) -> None:
    file = tmp_path / "out.db"
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        create(sql, tmp_path)
        for count in (3, 1, 2):
            ok(sql, f"ALTER SINK s SET (SPLITS {count}, INTERVAL_MS 1)")
            for _ in range(5):
                move(sql, rng)
        delivered(coordinator, "s")
        assert len(rows(ok(sql, "SELECT split FROM mz_internal.mz_sink_statistics"))) == 2
        assert sql("ALTER SINK s SET (TABLE 'other')") == ["! 22023 TABLE of a sink cannot be changed"]
        ok(sql, "ALTER SINK s PAUSE")
        move(sql, rng)
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, "ALTER SINK s RESUME")
        delivered(coordinator, "s")
        assert in_sqlite(file, "h")[1] == rows(ok(sql, "SELECT * FROM have"))
        assert in_sqlite(file, "d")[1] == rows(ok(sql, "SELECT * FROM debt"))
        ok(sql, "ALTER SINK s BACKFILL")
        move(sql, rng)
        delivered(coordinator, "s")
        assert in_sqlite(file, "h")[1] == rows(ok(sql, "SELECT * FROM have"))
        assert in_sqlite(file, "d")[1] == rows(ok(sql, "SELECT * FROM debt"))


@pytest.mark.parametrize("codec", ["json", "proto"])
def test_a_connector_gets_all_of_them(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, codec: str, rng: random.Random
) -> None:
    file = tmp_path / "materialize-strict"
    file.write_text(f"#!/bin/sh\nexec {sys.executable} -S {STRICT}\n")
    file.chmod(0o755)
    prepare(sql)
    config = json.dumps({"path": str(tmp_path / "out.db"), "hardDelete": True})
    resource = json.dumps({"table": "same"})
    into = f"INTO CONNECTOR '{file}' (CONFIG '{config}', CODEC '{codec}')"
    twice = f"CREATE SINK s FROM have (RESOURCE '{resource}') KEY (id), debt (RESOURCE '{resource}') KEY (id) {into}"
    assert sql(twice) == ['! 22023 "have" and "debt" of a sink go to the same place']
    ok(sql, f"CREATE SINK s FROM have KEY (id), debt (RESOURCE '{json.dumps({'table': 'owed'})}') KEY (id) {into}")

    def held() -> int | None:
        db = sqlite3.connect(tmp_path / "out.db")
        db.execute("BEGIN")
        sums = [db.execute(f"SELECT sum(amount) FROM {table}").fetchone()[0] for table in ("main__have", "main__owed")]
        db.close()
        return None if sums == [None, None] else sum(each or 0 for each in sums)

    for _ in range(12):
        move(sql, rng)
        assert held() in (None, MOVED)
    delivered(coordinator, "s")
    assert held() == MOVED
    ok(sql, "ALTER SINK s SET (SPLITS 2)")
    move(sql, rng)
    delivered(coordinator, "s")
    assert held() == MOVED


REFUSED = [
    ("FROM have (TABLE 'h') KEY (id), debt (TABLE 'h') KEY (id) INTO {to}", "22023", '"have" and "debt" of a sink go'),
    ("FROM have KEY (id), debt KEY (id) INTO SQLITE (PATH '{file}', TABLE 'h')", "22023", "TABLE says where one"),
    ("FROM have (TABLE 'h'), debt (TABLE 'd') INTO {to} KEY (id)", "42601", "the sink has several collections"),
    ("FROM have (TABLE 'h') KEY (id), debt (TABLE 'd') INTO {to}", "22023", "a sink needs a KEY"),
    ("FROM have (TABLE 'h') KEY (id), debt KEY (id) INTO {to}", "22023", "sqlite needs the option table"),
    ("FROM have (PATH 'h') KEY (id), debt (TABLE 'd') INTO {to}", "22023", 'PATH does not say where "have" goes'),
    ("FROM have (TABLE 'h') KEY (id), no (TABLE 'd') KEY (id) INTO {to}", "42P01", 'relation "no" does not exist'),
    ("FROM have (TABLE 'h') KEY (id) KEY (id) INTO {to}", "42601", "syntax error"),
    ("FROM have (TABLE 'h') KEY (id) INTO {to} KEY (id)", "42601", "syntax error"),
    ("FROM have (TABLE 'h') INTO SQLITE (PATH '{file}', TABLE 'g') KEY (id)", "42601", "option TABLE specified more"),
    ("FROM have, debt INTO CDC FILES '{file}'", "0A000", "CDC FILES of several collections"),
    ("FROM have (PATH 'x') INTO CDC FILES '{file}'", "22023", "PATH does not say where"),
    ("FROM have (TABLE 'h') KEY (id), INTO {to}", "42601", "syntax error"),
]


@pytest.mark.parametrize(("text", "state", "message"), REFUSED)
def test_refused(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, *, text: str, state: str, message: str
) -> None:
    prepare(sql)
    file = tmp_path / "refused"
    statement = text.format(file=file, to=f"SQLITE (PATH '{file}')")
    (answer,) = sql(f"CREATE SINK s {statement}")[:1]
    assert answer.startswith(f"! {state} ") and message in answer, answer
    assert not file.exists() and ok(sql, "SHOW SINKS") == ["name|comment"]
    assert not coordinator.environment.scan("flow/")


def test_one_collection_may_be_written_either_way(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    prepare(sql)
    ok(sql, f"CREATE SINK s FROM have (TABLE 'h') KEY (id) INTO SQLITE (PATH '{tmp_path}/o.db')")
    delivered(coordinator, "s")
    shown = "\n".join(ok(sql, "SHOW CREATE SINK s"))
    assert f"FROM everview.public.have INTO SQLITE (PATH '{tmp_path}/o.db', TABLE 'h') KEY (id)" in shown
    ok(
        sql,
        f"CREATE SINK u FROM have (TABLE 'x') KEY (id), have (TABLE 'y') KEY (id) INTO SQLITE (PATH '{tmp_path}/p')",
    )
    delivered(coordinator, "u")
    assert in_sqlite(tmp_path / "p", "x") == in_sqlite(tmp_path / "p", "y")
    taken = f"CREATE SINK v FROM debt (TABLE 'z') KEY (id), debt (TABLE 'y') KEY (id) INTO SQLITE (PATH '{tmp_path}/p')"
    assert sql(taken) == ['! 55006 sink "u" delivers to the same place already']


def test_older_versions_know_that_it_is_not_for_them(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path
) -> None:
    create(sql, tmp_path)
    ok(sql, f"CREATE SINK one FROM have INTO SQLITE (PATH '{tmp_path}/o.db', TABLE 'h') KEY (id)")
    items = coordinator.catalog.state.items
    several, one = (items[id_of(coordinator, name)] for name in ("s", "one"))
    assert json.loads(codec.encode(several))[0] == codec.SEVERAL_VERSION
    assert codec.decode_item(codec.encode(several)) == several
    assert json.loads(codec.encode(one))[0] == codec.VERSION
    fields = json.loads(codec.encode(one))[1]
    assert "collections" not in fields["source"] and fields["keys"] == ["id"]


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_while_it_is_made(tmp_path: Path, point: str, long_forms: bool) -> None:
    for hit in range(1, 12 if long_forms else 4):
        folder, file, clock = tmp_path / f"crash {hit}", tmp_path / f"{hit}.db", Clock()
        coordinator = open_at(folder, clock)
        sql = SessionClient(coordinator)
        prepare(sql)
        crashed = False
        with armed(point, hit, thread=threading.main_thread()):
            try:
                ok(sql, SINK.format(file=file))
            except Crash:
                crashed = True
        abandon(coordinator)
        with open_at(folder, clock) as reopened:
            sql = SessionClient(reopened)
            if rows(ok(sql, "SHOW SINKS")):
                delivered(reopened, "s")
                assert in_sqlite(file, "d")[1] == rows(ok(sql, "SELECT * FROM debt"))
                ok(sql, "DROP SINK s")
            assert not reopened.environment.scan("flow/")
            readers = [token for token in reopened.environment.shard(id_of(reopened, "debt")).held if token[0] == "r"]
            assert len(readers) == 1, "only the catalog's own"
        if not crashed:
            break
