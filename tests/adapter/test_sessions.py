"""Sessions: parameters and their types, COPY, cancel, timeouts, notices, what the carrier is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
import scramp

from everview.adapter.contract import CopyOut, Done
from everview.adapter.coordinator import Coordinator
from everview.adapter.passwords import parse_verifier
from everview.adapter.session import CoordinatorSession
from everview.adapter.settings import PEEK_ENGINE, SETTINGS
from everview.compute.functions.registry import FUNCTIONS
from everview.compute.ir.types import INT4, INT8, TEXT, TIMESTAMPTZ, SqlType, array_of
from everview.compute.sql.errors import SqlError
from everview.server.pgwire.scram import ScramServer
from tests.adapter.scripts import SessionClient


@pytest.fixture
def session(coordinator: Coordinator) -> CoordinatorSession:
    session = coordinator.connect("everview", "everview", {"application_name": "tests"})
    run(session, "CREATE TABLE t (a int, b text, c numeric(10,2), d timestamptz, e varchar(5))")
    return session


def run(session: CoordinatorSession, text: str, *values: Any) -> Any:
    result: Any = session.run(session.prepare(text), values)
    if not isinstance(result, Done) and hasattr(result, "batches"):
        result = [row for batch in result.batches() for row in batch]
    session.sync()
    return result


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT $1", [TEXT]),
        ("SELECT $1::int", [INT4]),
        ("SELECT a FROM t WHERE a = $1 AND b LIKE $2", [INT4, TEXT]),
        ("SELECT $1 + a FROM t", [INT4]),
        ("SELECT a FROM t WHERE a = ANY($1)", [array_of(INT4)]),
        ("SELECT a FROM t WHERE d > $1 LIMIT $2", [TIMESTAMPTZ, INT8]),
        ("SELECT coalesce(b, $1) FROM t WHERE a IN ($2, $3)", [TEXT, INT4, INT4]),
        ("INSERT INTO t VALUES ($1, $2)", [INT4, TEXT]),
        ("UPDATE t SET b = $2 WHERE a = $1", [INT4, TEXT]),
        ("DELETE FROM t WHERE a = $1 RETURNING b", [INT4]),
        ("SELECT CASE WHEN $1 THEN 1 END", None),
    ],
)
def test_types_of_parameters(session: CoordinatorSession, text: str, types: list[SqlType] | None) -> None:
    prepared = session.prepare(text)
    if types is not None:
        assert list(prepared.parameters) == types


def test_given_types_win(session: CoordinatorSession) -> None:
    assert session.prepare("SELECT $1", [INT8]).parameters == (INT8,)
    with pytest.raises(SqlError) as caught:
        session.prepare("SELECT upper($1)", [INT4])
    assert caught.value.sqlstate == "42883"


def test_columns_are_described(session: CoordinatorSession) -> None:
    described = session.prepare("SELECT a, b AS label FROM t").columns
    assert described is not None
    assert [(column.name, column.type) for column in described] == [("a", INT4), ("label", TEXT)]
    assert session.prepare("INSERT INTO t VALUES (1)").columns is None
    assert session.prepare("INSERT INTO t VALUES (1) RETURNING a").columns is not None


def test_values_of_parameters(session: CoordinatorSession) -> None:
    insert = session.prepare("INSERT INTO t (a, b, c) VALUES ($1, $2, $3)")
    for number in range(5):
        session.run(insert, [number, f"row {number}", Decimal(number)])
        session.sync()
    found = run(session, "SELECT b FROM t WHERE a = ANY($1) ORDER BY a LIMIT $2", [1, 3, 4], 2)
    assert found == [("row 1",), ("row 3",)]
    assert run(session, "SELECT count(*) FROM t WHERE b = $1", None) == [(0,)]
    with pytest.raises(SqlError, match="2 parameters are needed"):
        run(session, "SELECT $1::int + $2::int", 1)


def test_binding_statements_leaves_the_registry_alone(session: CoordinatorSession) -> None:
    before = dict(FUNCTIONS)
    assert run(session, "SELECT b FROM t WHERE a = $1 AND b = $2", 7, "x") == []
    assert run(session, "SELECT b FROM t WHERE b = $1 AND a + $2 > 0 AND $17::int = 3", "x", 7, *[None] * 15) == []
    assert before == FUNCTIONS
    with pytest.raises(SqlError, match="does not exist"):
        run(session, "SELECT parameter(1)")


def test_a_prepared_statement_sees_later_definitions(session: CoordinatorSession) -> None:
    prepared = session.prepare("SELECT count(*) FROM t")
    run(session, "DROP TABLE t")
    with pytest.raises(SqlError) as caught:
        session.run(prepared)
    assert caught.value.sqlstate == "42P01"
    session.sync()
    run(session, "CREATE TABLE t (x int)")
    assert session.run(prepared).rows == [(0,)]  # type: ignore[union-attr]


def test_copy_in(session: CoordinatorSession) -> None:
    target: Any = session.run(session.prepare("COPY t (a, b, e) FROM STDIN WITH (FORMAT csv, HEADER)"))
    assert target.format.kind == "csv" and target.format.header and target.format.delimiter == ","
    assert target.finish(iter([(1, "x", "abc"), (2, None, None)])) == "COPY 2"
    session.sync()
    assert run(session, "SELECT a, b, c, e FROM t ORDER BY a") == [(1, "x", None, "abc"), (2, None, None, None)]


def test_copy_in_that_fails_leaves_nothing(session: CoordinatorSession) -> None:
    def rows() -> Iterator[tuple[Any, ...]]:
        yield (1, "x", "abc")
        raise SqlError("22P04", "missing data for column")

    target: Any = session.run(session.prepare("COPY t (a, b, e) FROM STDIN"))
    with pytest.raises(SqlError):
        target.finish(rows())
    session.sync()
    target = session.run(session.prepare("COPY t (a, b, e) FROM STDIN"))
    with pytest.raises(SqlError, match="too long"):
        target.finish(iter([(1, "x", "abcdef")]))
    session.sync()
    assert run(session, "SELECT count(*) FROM t") == [(0,)]


def test_copy_out(session: CoordinatorSession) -> None:
    run(session, "INSERT INTO t (a, b) VALUES (1, 'x')")
    out = session.run(session.prepare("COPY (SELECT a, b FROM t) TO STDOUT"))
    assert isinstance(out, CopyOut)
    assert [row for batch in out.rows.batches() for row in batch] == [(1, "x")]
    assert out.rows.tag(1) == "COPY 1" and out.format.null == "\\N"
    session.sync()
    with pytest.raises(SqlError, match="not recognized"):
        session.run(session.prepare("COPY t TO STDOUT (SPEED fast)"))


def test_status(session: CoordinatorSession) -> None:
    found = [session.status]
    for statement in ("BEGIN", "SELECT 1 / 0", "ROLLBACK"):
        with suppress(SqlError):
            run(session, statement)
        found.append(session.status)
    assert found == ["I", "T", "E", "I"]


def test_a_carrier_that_fails_fails_the_transaction(session: CoordinatorSession) -> None:
    session.run(session.prepare("INSERT INTO t (a) VALUES (1)"))
    session.fail()
    session.sync()
    assert run(session, "SELECT count(*) FROM t") == [(0,)]


def test_a_closed_session_rolls_back(session: CoordinatorSession, coordinator: Coordinator) -> None:
    run(session, "BEGIN")
    run(session, "INSERT INTO t (a) VALUES (1)")
    session.close()
    assert SessionClient(coordinator)("SELECT count(*) FROM t") == ["count", "0"]


def test_settings_are_told(session: CoordinatorSession) -> None:
    assert session.parameters["application_name"] == "tests"
    run(session, "SET application_name = 'other'")
    assert session.parameters["application_name"] == "other"
    assert {"server_version", "client_encoding", "DateStyle", "TimeZone", "IntervalStyle"} <= set(session.parameters)


def test_notices(session: CoordinatorSession) -> None:
    run(session, "DROP TABLE IF EXISTS nope")
    assert [notice.message for notice in session.notices()] == ['table "nope" does not exist, skipping']
    assert session.notices() == []


def test_statement_timeout_and_cancel(session: CoordinatorSession, coordinator: Coordinator) -> None:
    future = coordinator.timeline.now_ms + 3_600_000
    run(session, "SET statement_timeout = '100ms'")
    began = time.monotonic()
    with pytest.raises(SqlError, match="statement timeout") as caught:
        run(session, f"SELECT * FROM t AS OF {future}")
    assert caught.value.sqlstate == "57014" and time.monotonic() - began < 5
    session.sync()
    run(session, "SET statement_timeout = 0")
    threading.Timer(0.1, session.cancel).start()
    with pytest.raises(SqlError, match="user request"):
        run(session, f"SELECT * FROM t AS OF {future}")
    session.sync()
    session.cancel()  # nothing runs
    assert run(session, "SELECT 1") == [(1,)]


def test_sleeping_ends_when_asked(session: CoordinatorSession) -> None:
    began = time.monotonic()
    assert run(session, "SELECT pg_sleep(0.05)") == [("",)]
    assert time.monotonic() - began >= 0.05
    threading.Timer(0.1, session.cancel).start()
    with pytest.raises(SqlError) as caught:
        run(session, "SELECT pg_sleep(60)")
    assert caught.value.sqlstate == "57014" and time.monotonic() - began < 10


def test_a_changed_result_type_is_told(session: CoordinatorSession) -> None:
    prepared = session.prepare("SELECT * FROM t")
    run(session, "DROP TABLE t")
    run(session, "CREATE TABLE t (x bigint)")
    with pytest.raises(SqlError, match="cached plan must not change result type"):
        session.run(prepared)


def test_connecting(coordinator: Coordinator) -> None:
    for user, database, state in (("nobody", "everview", "28000"), ("everview", "nowhere", "3D000")):
        with pytest.raises(SqlError) as caught:
            coordinator.connect(user, database, {})
        assert caught.value.sqlstate == state
    with pytest.raises(SqlError) as caught:
        coordinator.connect("everview", "everview", {"statement_timeout": "soon"})
    assert caught.value.sqlstate == "22023"


def test_passwords(coordinator: Coordinator, sql: SessionClient) -> None:
    assert coordinator.secret("everview") is None
    sql("CREATE ROLE ann PASSWORD 'secret'")
    verifier = coordinator.secret("ann")
    assert verifier is not None and verifier.startswith("SCRAM-SHA-256$4096:") and "secret" not in verifier
    sql(f"ALTER ROLE ann PASSWORD '{verifier}'")  # as a dump of another server would have it
    assert coordinator.secret("ann") == verifier


def test_passwords_are_prepared_as_clients_prepare_them(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE ROLE ann PASSWORD 'pass\u00a0w\u00adord\u2168'")  # a blank of its own, a soft hyphen, a Roman nine
    verifier = parse_verifier(coordinator.secret("ann") or "")
    assert verifier is not None
    client = scramp.ScramClient(["SCRAM-SHA-256"], "ann", "pass wordIX")
    server = ScramServer(verifier)
    client.set_server_first(server.first(client.get_client_first().encode()).decode())
    client.set_server_final(server.final(client.get_client_final().encode()).decode())


def test_positions(session: CoordinatorSession) -> None:
    with pytest.raises(SqlError) as caught:
        session.prepare("SELECT 1, nope FROM t")
    assert caught.value.position == 11
    first, second = session.split("SELECT 1; SELECT nope FROM t")
    session.prepare(first)
    with pytest.raises(SqlError) as caught:
        session.prepare(second)
    assert caught.value.position == 18
    with pytest.raises(SqlError) as caught:
        session.run(session.prepare("CREATE TABLE x (a int, b nope)"))
    assert caught.value.position == 26


def test_drivers_may_name_the_zone_of_their_machine(coordinator: Coordinator) -> None:
    session = coordinator.connect("everview", "everview", {"TimeZone": "Europe/Berlin"})
    assert session.parameters["TimeZone"] == "UTC"  # which is what they go by
    with pytest.raises(SqlError) as caught:
        run(session, "SET timezone = 'Europe/Berlin'")
    assert caught.value.sqlstate == "22023" and "AT TIME ZONE 'Europe/Berlin'" in (caught.value.detail or "")


def test_every_setting_has_a_meaning_one_value_or_a_reason_to_be_harmless() -> None:
    meaningful = {
        *("application_name", "search_path", "transaction_isolation", "default_transaction_isolation"),
        *("transaction_read_only", "default_transaction_read_only", "statement_timeout", "client_min_messages"),
        *("idle_in_transaction_session_timeout", "lock_timeout", "idle_session_timeout", PEEK_ENGINE),
    }
    fixed = {each.name for each in SETTINGS.values() if each.fixed}
    harmless = {each.name for each in SETTINGS.values() if each.harmless}
    assert harmless == {"row_security"}
    for each in SETTINGS.values():
        if each.name not in meaningful | fixed | harmless:
            with pytest.raises((ValueError, SqlError)):
                each.read("another value")
            assert each.read(each.default) == each.default


def test_clients_are_told_only_of_what_they_want_to_know(coordinator: Coordinator) -> None:
    session = coordinator.connect("everview", "everview", {})
    run(session, "DROP TABLE IF EXISTS nope")
    assert len(session.notices()) == 1
    run(session, "SET client_min_messages = WARNING")
    run(session, "DROP TABLE IF EXISTS nope")
    assert session.notices() == []
    run(session, "COMMIT")
    assert [notice.severity for notice in session.notices()] == ["WARNING"]


def test_explain_timestamp_as_json_is_one_document(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int)")
    _, *lines = sql("EXPLAIN TIMESTAMP AS JSON FOR SELECT * FROM t")
    told = json.loads("\n".join(lines))
    assert told["query_timestamp"] < told["timeline_frontier"][0] + 1
    assert told["can_respond_immediately"] is True and told["as_of"] is None
    (source,) = told["sources"]
    assert source["name"] == "everview.public.t" and source["write_frontier"] == told["timeline_frontier"]
