"""Sinks in SQL: what is delivered is the view at the committed time; what cannot be is refused before it begins."""

from __future__ import annotations

import random
import re
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from everview.adapter.catalog.items import Sink
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.coordinator import Coordinator
from everview.adapter.secrets import masked, shown_arguments, shown_statement
from everview.compute.sql.errors import SqlError
from everview.flow.check.endpoints import Receiver
from everview.flow.errors import MissingLibrary
from everview.flow.materialization import Materialization, held_tokens
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.metrics import Metrics
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, id_of, in_postgres, in_sqlite, ok, rows, until_state
from tests.adapter.scripts import SessionClient
from tests.adapter.test_restart import POINTS, abandon, open_at

VIEW = "SELECT account, count(*) AS n, sum(amount) AS total FROM payments GROUP BY account"


def prepare(sql: SessionClient) -> None:
    ok(
        sql,
        "CREATE TABLE payments (id int, account int, amount numeric(10,2))",
        "INSERT INTO payments VALUES (1, 1, 10.50), (2, 1, 2), (3, 2, 0.25)",
        f"CREATE MATERIALIZED VIEW totals WITH (RETAIN HISTORY FOR '1h') AS {VIEW}",
    )


def change(sql: SessionClient, rng: random.Random) -> None:
    """Something happens to the payments."""
    id, account = rng.randrange(1, 40), rng.randrange(1, 9)
    match rng.randrange(4):
        case 0 | 1:
            ok(sql, f"INSERT INTO payments VALUES ({id}, {account}, {rng.randrange(1000)}.5)")
        case 2:
            ok(sql, f"UPDATE payments SET account = {account}, amount = amount + 1 WHERE id = {id}")
        case _:
            ok(sql, f"DELETE FROM payments WHERE account = {account}")


@pytest.mark.parametrize("destination", ["sqlite", "postgres"])
def test_a_view_is_delivered_exactly(
    tmp_path: Path, clock: Clock, rng: random.Random, destination: str, request: pytest.FixtureRequest
) -> None:
    """At any moment the table is the view at its checkpoint; also after restarts, and after processes that just end."""
    file, table = tmp_path / "out.db", f"totals_{rng.randrange(10**9)}"
    url = request.getfixturevalue("postgres_url") if destination == "postgres" else ""
    into = f"SQLITE (PATH '{file}', TABLE 'totals')" if not url else f"POSTGRES (CONNECTION '{url}', TABLE '{table}')"
    name = table if url else "totals_out"

    def look() -> tuple[int, list[str]]:
        return in_postgres(url, table) if url else in_sqlite(file, "totals")

    coordinator = open_at(tmp_path / "data", clock)
    sql = SessionClient(coordinator)
    prepare(sql)
    ok(sql, f"CREATE SINK {name} FROM totals INTO {into} KEY (account)")
    seen = []
    for round in range(4):
        for _ in range(12):
            change(sql, rng)
            if rng.random() < 0.3:
                seen.append(look())
        frontier = delivered(coordinator, name)
        checkpoint, found = look()
        assert checkpoint <= frontier
        assert found == rows(ok(sql, "SELECT * FROM totals")), f"round {round}"
        seen.append((checkpoint, found))
        change(sql, rng)
        if round % 2:
            abandon(coordinator)
        else:
            coordinator.close()
        coordinator = open_at(tmp_path / "data", clock)
        sql = SessionClient(coordinator)
    for checkpoint, found in seen:
        if checkpoint:
            assert found == rows(ok(sql, f"SELECT * FROM totals AS OF {checkpoint - 1}")), checkpoint
    coordinator.close()


def test_the_other_forms(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    ok(sql, "CREATE TABLE events (kind text, n int)", "INSERT INTO events VALUES ('a', 1), ('a', 2), ('b', 5)")
    ok(
        sql,
        f"CREATE SINK sums FROM events INTO SQLITE (PATH '{tmp_path}/sums.db', TABLE 'sums')"
        " KEY (kind) REDUCE (n BY sum)",
        f"CREATE SINK log FROM events INTO SQLITE (PATH '{tmp_path}/log.db', TABLE 'log') DELTA UPDATES",
        f"CREATE SINK files FROM events INTO PARQUET (PATH '{tmp_path}/files') DELTA UPDATES WITH (INTERVAL_MS 0)",
        "INSERT INTO events VALUES ('b', 1), ('c', 7)",
    )
    for name in ("sums", "log", "files"):
        delivered(coordinator, name)
    assert in_sqlite(tmp_path / "sums.db", "sums")[1] == ["a|3", "b|6", "c|7"]
    assert in_sqlite(tmp_path / "log.db", "log")[1] == ["a|1", "a|2", "b|1", "b|5", "c|7"]
    import pyarrow.dataset as ds

    found = ds.dataset(sorted(str(each) for each in (tmp_path / "files").rglob("[!._]*.parquet"))).to_table()
    assert sorted(found.column("n").to_pylist()) == [1, 1, 2, 5, 7]
    ok(sql, "DELETE FROM events WHERE kind = 'c'")
    assert "can only add" in (until_state(coordinator, "log", "stalled") or "")
    assert in_sqlite(tmp_path / "log.db", "log")[1] == ["a|1", "a|2", "b|1", "b|5", "c|7"]


REFUSED = [
    ("FROM nothing INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id)", "42P01", 'relation "nothing" does not exist', ""),
    (
        "FROM plain INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id)",
        "42809",
        'cannot create a sink from view "plain"',
        "",
    ),
    ("FROM i INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id)", "42809", 'cannot create a sink from "i"', ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o')", "22023", "a sink needs a KEY", ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (x)", "22023", 'column "x" of the key does not exist', ""),
    (
        "FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (f)",
        "22023",
        'sqlite cannot take "t"',
        '"f": a key cannot be',
    ),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (a)", "23505", 'more than one row of "t"', ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (z)", "23502", 'field "z" of the key is NULL', ""),
    (
        "FROM t INTO SQLITE (PATH '{other}', TABLE 'o') KEY (id)",
        "22023",
        "table o exists and cannot hold",
        '"a" is TEXT',
    ),
    ("FROM t INTO SQLITE (PATH '{file}') KEY (id)", "22023", "sqlite needs the option table", ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o', SIZE 1) KEY (id)", "22023", 'sqlite has no option "size"', ""),
    ("FROM t INTO SQLIGHT (PATH '{file}') KEY (id)", "22023", "no driver is called sqlight", ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id) REDUCE (a BY added)", "22023", "unknown reduction", ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id) REDUCE (s BY sum)", "22023", 'field "s" of type text', ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id) WITH (SPLITS 0)", "22023", "invalid value for SPLITS", ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id) WITH (SPARK 2)", "22023", "option SPARK requires a", ""),
    ("FROM t INTO SQLITE (PATH '{file}', TABLE 'o') KEYS (id)", "42601", 'syntax error at or near "KEYS"', ""),
    ("FROM t INTO POSTGRES (CONNECTION 'postgresql://u:hunter2@127.0.0.1:1/d', TABLE 'o') KEY (id)", "08006", "", ""),
]


@pytest.mark.parametrize(("text", "state", "message", "detail"), REFUSED)
def test_refused_before_anything_is_written(
    coordinator: Coordinator, tmp_path: Path, *, text: str, state: str, message: str, detail: str
) -> None:
    sql = SessionClient(coordinator)
    file, other = tmp_path / "out.db", tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE o (id INTEGER PRIMARY KEY, a TEXT)")
    db.close()
    ok(
        sql,
        "CREATE TABLE t (id int, a int, z int, f float8, s text)",
        "INSERT INTO t VALUES (1, 1, 1, 1, 'x'), (2, 1, NULL, 2, 'y')",
        "CREATE VIEW plain AS SELECT * FROM t",
        "CREATE INDEX i ON t (id)",
    )
    ids = coordinator.environment.ids()
    held = dict(coordinator.environment.shard(id_of(coordinator, "t")).held)
    session = sql.session
    statement = f"CREATE SINK s {text.format(file=file, other=other)}"
    with pytest.raises(SqlError) as raised:
        session.run(session.prepare(statement))
    session.fail()
    session.sync()
    error = raised.value
    assert error.sqlstate == state and message in error.message and detail in (error.detail or ""), error
    assert "hunter2" not in str(error)
    assert not file.exists()
    assert ok(sql, "SHOW SINKS") == ["name|comment"]
    assert coordinator.environment.ids() == ids
    assert coordinator.environment.shard(id_of(coordinator, "t")).held.keys() == held.keys()
    assert not coordinator.environment.scan("flow/")


def test_secrets_are_never_shown(sql: SessionClient, coordinator: Coordinator, postgres_url: str) -> None:
    # The server of the tests asks for no password, so any will do.
    address = postgres_url.replace("postgres:@", "postgres:hunter2@")
    assert "hunter2" in address
    prepare(sql)
    ok(sql, f"CREATE SINK hidden FROM totals INTO POSTGRES (CONNECTION '{address}', TABLE 'hidden_t') KEY (account)")
    delivered(coordinator, "hidden")
    for statement in (
        "SHOW CREATE SINK hidden",
        "SELECT * FROM mz_sinks",
        "SELECT * FROM mz_audit_events",
        "SELECT * FROM mz_internal.mz_sink_statuses",
        "SELECT * FROM mz_internal.mz_sink_statistics",
        "SELECT * FROM mz_internal.mz_sessions",
    ):
        answer = "\n".join(ok(sql, statement))
        assert "hunter2" not in answer, statement
    assert "postgres:***@" in "\n".join(ok(sql, "SHOW CREATE SINK hidden"))
    assert "hunter2" not in repr(coordinator.sinks.status(id_of(coordinator, "hidden")))
    ok(sql, "DROP SINK hidden")


def test_what_is_secret() -> None:
    assert masked("postgresql://u:p@ss@h/d?password=x") == "postgresql://u:***@h/d?password=***"
    assert masked("host=h password='a b' user=u") == "host=h password=*** user=u"
    assert masked("s3://b/p?region=x&secret_access_key=abc") == "s3://b/p?region=x&secret_access_key=***"
    assert masked("postgresql://u@h/d") == "postgresql://u@h/d"
    shown = shown_arguments("webhook", {"url": "https://u:p@h/in?t=1", "headers": '{"A": "b"}', "retries": "3"})
    assert shown == {"url": "https://h/***", "headers": '{"A": "***"}', "retries": "3"}
    given = {"brokers": "h:1", "properties": '{"sasl.password": "x", "security.protocol": "SSL"}'}
    assert shown_arguments("kafka", given)["properties"] == '{"sasl.password": "***", "security.protocol": "SSL"}'
    assert (
        shown_statement("CREATE SINK s FROM t INTO X (A 'b', C 'd''e')")
        == "CREATE SINK s FROM t INTO X (A '***', C '***')"
    )
    assert shown_statement("SELECT 'a'") == "SELECT 'a'"


def test_pausing_splitting_and_renaming(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "out.db"
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        prepare(sql)
        ok(sql, f"CREATE SINK s FROM totals INTO SQLITE (PATH '{file}', TABLE 'o') KEY (account)")
        delivered(coordinator, "s")
        before = in_sqlite(file, "o")[1]
        ok(sql, "ALTER SINK s PAUSE", "INSERT INTO payments VALUES (9, 9, 9)", "ALTER SINK s RENAME TO renamed")
        assert rows(ok(sql, "SELECT status FROM mz_internal.mz_sink_statuses")) == ["paused"]
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        assert rows(ok(sql, "SELECT name, status FROM mz_internal.mz_sink_statuses")) == ["renamed|paused"]
        clock.now_ms += 10_000_000  # what is not delivered yet is held, whatever time has passed
        ok(sql, "INSERT INTO payments VALUES (10, 9, 9)")
        assert in_sqlite(file, "o")[1] == before
        ok(sql, "ALTER SINK renamed SET (SPLITS 3)", "ALTER SINK renamed RESUME")
        delivered(coordinator, "renamed")
        assert len(rows(ok(sql, "SELECT split FROM mz_internal.mz_sink_statistics"))) == 3
        assert "SPLITS 3" in "\n".join(ok(sql, "SHOW CREATE SINK renamed"))
        assert in_sqlite(file, "o")[1] == rows(ok(sql, "SELECT * FROM totals"))
        ok(sql, "ALTER SINK renamed SET (SPLITS 2)", "UPDATE payments SET amount = 1", "ALTER SINK IF EXISTS no PAUSE")
        delivered(coordinator, "renamed")
        assert in_sqlite(file, "o")[1] == rows(ok(sql, "SELECT * FROM totals"))
        assert sql("ALTER SINK no PAUSE") == ['! 42P01 relation "no" does not exist']
        assert sql("ALTER SINK totals PAUSE")[0].startswith("! 42809")
        assert sql("ALTER SINK renamed SET (SPLITS 0)")[0].startswith("! 22023")


def test_dropping_lets_go_of_everything(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    file = tmp_path / "out.db"
    prepare(sql)
    create = f"CREATE SINK s FROM totals INTO SQLITE (PATH '{file}', TABLE 'o') KEY (account)"
    ok(sql, create, create.replace("SINK s", "SINK IF NOT EXISTS s"))
    assert sql(create) == ['! 42P07 relation "s" already exists']
    assert sql("SELECT * FROM s")[0].startswith("! 42809")
    delivered(coordinator, "s")
    environment, view = coordinator.environment, id_of(coordinator, "totals")
    item = coordinator.catalog.state.items[id_of(coordinator, "s")]
    assert isinstance(item, Sink) and isinstance(item.spec, DriverSink)
    name = item.spec.name
    token = held_tokens(environment, name)[view]
    assert sql("DROP MATERIALIZED VIEW totals")[0].startswith("! 2BP01")
    assert rows(ok(sql, "SELECT count(*) FROM mz_internal.mz_object_dependencies WHERE object_id LIKE 'u%'")) != []
    ok(sql, "DROP SINK s", "DROP SINK IF EXISTS s")
    assert token not in environment.shard(view).held
    assert not environment.scan("flow/")
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT * FROM everview_checkpoints").fetchall() == []
        assert len(db.execute("SELECT * FROM o").fetchall()) == 2
    db.close()
    assert sql(create) == ["! 22023 table o exists and is not empty"]
    ok(sql, create.replace("'o'", "'p'"))
    assert sql(create.replace("'o'", "'p'").replace("SINK s", "SINK s2"))[0].startswith("! 55006")
    ok(sql, "DROP MATERIALIZED VIEW totals CASCADE")
    assert ok(sql, "SHOW SINKS") == ["name|comment"]
    assert not environment.scan("flow/")


def test_a_sink_that_cannot_be_opened_keeps_nothing_else_from_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        prepare(sql)
        ok(sql, f"CREATE SINK s FROM totals INTO SQLITE (PATH '{tmp_path}/o.db', TABLE 'o') KEY (account)")
        delivered(coordinator, "s")
    with monkeypatch.context() as patch:
        patch.setattr(Materialization, "resume", missing_library)
        with open_at(tmp_path / "data", clock) as coordinator:
            sql = SessionClient(coordinator)
            answer = ok(sql, "SELECT status, error FROM mz_internal.mz_sink_statuses")
            assert answer[1].startswith("stalled|the sqlite connector needs the package sqlite")
            ok(sql, "INSERT INTO payments VALUES (9, 9, 9)", "ALTER SINK s PAUSE", "ALTER SINK s RESUME")
            assert sql("ALTER SINK s SET (SPLITS 2)")[0].startswith("! 42809")
    with open_at(tmp_path / "data", clock) as coordinator:  # and it has lost nothing
        sql = SessionClient(coordinator)
        delivered(coordinator, "s")
        assert in_sqlite(tmp_path / "o.db", "o")[1] == rows(ok(sql, "SELECT * FROM totals"))


def missing_library(*_: object, **__: object) -> None:
    raise MissingLibrary("sqlite", "sqlite")


def test_a_view_that_fails_is_not_delivered(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    file = tmp_path / "out.db"
    ok(
        sql,
        "CREATE TABLE t (id int, d int)",
        "INSERT INTO t VALUES (1, 1), (2, 5)",
        "CREATE MATERIALIZED VIEW q AS SELECT id, 10 / d AS r FROM t",
        f"CREATE SINK s FROM q INTO SQLITE (PATH '{file}', TABLE 'o') KEY (id)",
    )
    delivered(coordinator, "s")
    ok(sql, "INSERT INTO t VALUES (3, 0), (4, 2)")
    assert "division by zero" in (until_state(coordinator, "s", "stalled") or "")
    assert in_sqlite(file, "o")[1] == ["1|10", "2|2"]
    ok(sql, "DELETE FROM t WHERE id = 3")
    delivered(coordinator, "s")
    assert in_sqlite(file, "o")[1] == ["1|10", "2|2", "4|5"]


def test_a_sink_follows_a_view_through_its_replacement(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path
) -> None:
    prepare(sql)
    into = f"INTO SQLITE (PATH '{tmp_path}/o.db', TABLE 'o') KEY (account)"
    ok(sql, f"CREATE SINK s FROM totals {into}")
    ok(sql, f"CREATE MATERIALIZED VIEW other REPLACING totals AS {VIEW.replace('amount', 'amount * 2')}")
    assert sql(f"CREATE SINK t FROM other {into}") == ['! 42809 cannot create a sink from "other"']
    ok(sql, "ALTER MATERIALIZED VIEW totals APPLY REPLACEMENT other", "INSERT INTO payments VALUES (9, 9, 1)")
    delivered(coordinator, "s")
    assert in_sqlite(tmp_path / "o.db", "o")[1] == ["1|2|25.00", "2|1|0.50", "9|1|2.00"]


def test_two_rows_under_a_key_are_told_and_waited_for(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path
) -> None:
    ok(sql, "CREATE TABLE t (id int, d int)", "INSERT INTO t VALUES (1, 1)")
    ok(sql, f"CREATE SINK s FROM t INTO SQLITE (PATH '{tmp_path}/o.db', TABLE 'o') KEY (id)")
    delivered(coordinator, "s")
    ok(sql, "INSERT INTO t VALUES (1, 2)")
    assert 'more than one row of "t"' in (until_state(coordinator, "s", "stalled") or "")
    ok(sql, "DELETE FROM t WHERE d = 1")
    delivered(coordinator, "s")
    assert in_sqlite(tmp_path / "o.db", "o")[1] == ["1|2"]


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_while_a_sink_is_made(tmp_path: Path, point: str, long_forms: bool) -> None:
    """The process dies at some commit of CREATE SINK: afterwards there is a sink that works, or nothing of it."""
    for hit in range(1, 12 if long_forms else 5):
        folder, file, clock = tmp_path / f"crash {hit}", tmp_path / f"{hit}.db", Clock()
        coordinator = open_at(folder, clock)
        sql = SessionClient(coordinator)
        prepare(sql)
        crashed = False
        with armed(point, hit, thread=threading.main_thread()):
            try:
                ok(sql, f"CREATE SINK s FROM totals INTO SQLITE (PATH '{file}', TABLE 'o') KEY (account)")
            except Crash:
                crashed = True
        abandon(coordinator)
        with open_at(folder, clock) as reopened:
            sql = SessionClient(reopened)
            view = id_of(reopened, "totals")
            if rows(ok(sql, "SHOW SINKS")):
                delivered(reopened, "s")
                assert in_sqlite(file, "o")[1] == rows(ok(sql, "SELECT * FROM totals"))
                ok(sql, "DROP SINK s")
            assert not reopened.environment.scan("flow/")
            readers = [token for token in reopened.environment.shard(view).held if token.startswith("r")]
            assert len(readers) == 1, "only the catalog's own"
        if not crashed:
            break


def test_a_sink_is_delivered_anew(sql: SessionClient, coordinator: Coordinator, tmp_path: Path) -> None:
    prepare(sql)
    ok(sql, f"CREATE SINK s FROM totals INTO SQLITE (PATH '{tmp_path}/o.db', TABLE 'o') KEY (account)")
    delivered(coordinator, "s")
    with sqlite3.connect(tmp_path / "o.db") as db:
        db.execute("DELETE FROM o")
    ok(sql, "UPDATE payments SET amount = amount + 1 WHERE id = 1")
    assert "BACKFILL" in (until_state(coordinator, "s", "drifted") or "")
    ok(sql, "ALTER SINK s BACKFILL")
    delivered(coordinator, "s")
    assert in_sqlite(tmp_path / "o.db", "o")[1] == rows(ok(sql, "SELECT * FROM totals"))
    ok(sql, f"CREATE SINK c FROM totals INTO CDC FILES '{tmp_path}/stream'")
    assert sql("ALTER SINK c BACKFILL") == ['! 42809 sink "c" cannot be delivered anew']


def test_when_a_failing_sink_is_tried_again_and_its_figures(
    sql: SessionClient, coordinator: Coordinator, clock: Clock
) -> None:
    metrics = Metrics()
    add_stream_metrics(metrics, coordinator)

    def figure(name: str) -> float:
        (found,) = re.findall(rf'everview_sink_{name}\{{sink="public.s"\}} (\S+)', metrics.render().decode())
        return float(found)

    status = 200
    receiver = Receiver(lambda number: status)
    before_ms = int(time.time() * 1000)
    ok(sql, "CREATE TABLE t (id int, d int)", "INSERT INTO t VALUES (1, 1)")
    ok(sql, f"CREATE SINK s FROM t INTO WEBHOOK (URL '{receiver.url}') KEY (id) DELTA UPDATES")
    delivered(coordinator, "s")
    assert rows(ok(sql, "SELECT status, retry_at IS NULL FROM mz_internal.mz_sink_statuses")) == ["running|t"]
    assert figure("failing") == 0 and figure("failures_total") == 0
    status = 400
    ok(sql, "INSERT INTO t VALUES (2, 2)")
    until_state(coordinator, "s", "stalled")
    for relation in ("mz_sink_statuses", "mz_sink_statistics"):
        query = f"SELECT retry_at > to_timestamp({before_ms / 1000}), error FROM mz_internal.{relation}"
        assert rows(ok(sql, query))[0].startswith("t|the webhook refused a post"), relation
    assert figure("failing") == 1 and figure("failures_total") >= 1
    assert rows(ok(sql, "SELECT failures > 0 FROM mz_internal.mz_sink_statistics")) == ["t"]
    status = 200
    delivered(coordinator, "s")
    until_state(coordinator, "s", "running")
    assert rows(ok(sql, "SELECT retry_at IS NULL FROM mz_internal.mz_sink_statistics")) == ["t"]
    assert figure("failing") == 0 and figure("rows_total") >= 2
    receiver.close()
