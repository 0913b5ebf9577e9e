"""Statements that would take all memory or all time: they end, with which SQLSTATE, and large ones go to Spark."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from everview.adapter.contract import Done
from everview.adapter.coordinator import Coordinator
from everview.adapter.interrupts import Interrupts
from everview.adapter.session import CoordinatorSession
from everview.adapter.settings import LOCAL_MEMORY, local_memory_max
from everview.compute.engine.contract import Batch, RunFailed
from everview.compute.engine.local import LocalEngine
from everview.compute.ir.relation import Relation
from everview.compute.sql.errors import SqlError

CROSS = "SELECT count(*) FROM k a, k b, k c WHERE a.id + b.id + c.id = -1"
SERIES = "generate_series(1, 1000000) AS s(i)"


@pytest.fixture
def session(coordinator: Coordinator) -> Iterator[CoordinatorSession]:
    session = coordinator.connect("everview", "everview", {})
    run(session, "CREATE TABLE k (id int)")
    run(session, "INSERT INTO k SELECT generate_series(1, 1000)")
    run(session, "SET everview_local_memory = '16MB'")
    yield session
    session.close()


def run(session: CoordinatorSession, text: str) -> Any:
    result: Any = session.run(session.prepare(text))
    if not isinstance(result, Done) and hasattr(result, "batches"):
        result = [row for batch in result.batches() for row in batch]
    session.sync()
    return result


@pytest.mark.parametrize(
    "text",
    [
        CROSS,
        f"SELECT sum(i) FROM {SERIES}",
        "SELECT array_agg(a.id) FROM k a, k b, k c",
        "SELECT length(string_agg('x', '')) FROM k a, k b, k c",
        "SELECT length(string_agg(repeat('x', 100000), ',')) FROM k",
        "SELECT length(jsonb_agg(repeat('x', 100000))::text) FROM k",
        "SELECT max(length(repeat('x', 100000) || id)) FROM k",
        "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 1000)))",
        "SELECT length(x || x) FROM (SELECT x || x FROM (SELECT repeat('x', 4000000)) AS a(x)) AS b(x)",
        f"SELECT i FROM {SERIES} ORDER BY i % 1000, i DESC",
        "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY a.id) AS r FROM k a, k b) AS w",
        "SELECT count(*) FROM regexp_split_to_table(repeat('x', 1000000), '') AS s",
        "WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r",
        "INSERT INTO k SELECT a.id + b.id FROM k a, k b",
        "SELECT array_length(string_to_array(repeat('x,', 1000000), ','), 1)",
    ],
)
def test_memory_is_limited(session: CoordinatorSession, text: str) -> None:
    with pytest.raises(SqlError) as raised:
        run(session, text)
    assert (raised.value.sqlstate, raised.value.message) == ("53200", "out of memory")
    assert "16 MB" in (raised.value.detail or "") and "everview_local_memory" in (raised.value.hint or "")
    run(session, "ROLLBACK")
    assert run(session, "SELECT count(*) FROM k") == [(1000,)]


@pytest.mark.parametrize("text", [CROSS, r"SELECT repeat('a', 60) ~ '^(a+)+\1b$' FROM k"])
@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_what_is_computed_here_ends_when_it_is_to(
    session: CoordinatorSession, text: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everview.compute.functions.regex_steps.STEPS_MAX", 10**12)
    monkeypatch.setattr("everview.adapter.peek.INTERPRETED_UPDATES_MAX", 10**9)
    run(session, f"SET everview_local_memory = '{local_memory_max()}'")
    timer = None
    if how == "timeout":
        run(session, "SET statement_timeout = '300ms'")
    else:
        timer = threading.Timer(0.3, session.cancel)
        timer.start()
    with pytest.raises(SqlError) as raised:
        run(session, text)
    reason = {"cancel": "user request", "timeout": "statement timeout"}[how]
    assert (raised.value.sqlstate, raised.value.message) == ("57014", f"canceling statement due to {reason}")
    run(session, "SET statement_timeout = 0")
    assert run(session, "SELECT count(*) FROM k") == [(1000,)]


def test_preparing_ends_when_it_is_to(session: CoordinatorSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.compute.functions.regex_steps.STEPS_MAX", 10**12)
    run(session, "SET statement_timeout = '300ms'")
    with pytest.raises(SqlError) as raised:
        session.prepare(r"SELECT * FROM k WHERE repeat('a', 60) ~ '^(a+)+\1b$'")
        run(session, r"SELECT * FROM k WHERE repeat('a', 60) ~ '^(a+)+\1b$'")  # where it is not folded before
    assert raised.value.sqlstate == "57014"


def test_what_preparing_takes_counts_as_time_of_the_statement(
    session: CoordinatorSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lexing, preparing and running had the whole time each."""
    run(session, "SET statement_timeout = '1min'")
    begin, given, now = Interrupts.begin, list[int](), itertools.count()

    def noted(self: Interrupts, timeout_ms: int, turn_ms: int = 0) -> int:
        given.append(timeout_ms)
        return begin(self, timeout_ms, turn_ms)

    monkeypatch.setattr(Interrupts, "begin", noted)
    monkeypatch.setattr("everview.adapter.session.monotonic", lambda: float(next(now)))
    first, second = session.split("SELECT count(*) FROM k; SELECT 1 + count(*) FROM k")
    kept = session.prepare(first)
    session.run(kept)
    assert given == [60_000, 59_000, 58_000]
    again = session.prepare(second)
    session.run(kept)  # that was prepared long ago
    session.run(again)
    session.sync()
    assert given[3:] == [60_000, 60_000, 60_000]


class Counted(LocalEngine):
    """Stands for Spark."""

    runs = 0
    gone = False

    def run(self, plan: Relation, inputs: Mapping[str, Batch]) -> pa.Table:
        self.runs += 1
        if self.gone:
            raise RunFailed("there is no such thing")
        return super().run(plan, inputs)


def test_what_is_too_large_here_goes_to_spark(
    session: CoordinatorSession, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Counted()
    monkeypatch.setattr(coordinator.peeks, "_spark", lambda: engine)
    assert run(session, "SELECT count(*) FROM k") == [(1000,)]
    assert engine.runs == 0
    with pytest.raises(SqlError, match="out of memory"):  # this one has the same limit
        run(session, CROSS)
    assert engine.runs == 1
    run(session, "SET everview_peek_engine = local")
    with pytest.raises(SqlError, match="out of memory"):
        run(session, CROSS)
    assert engine.runs == 1
    run(session, "SET everview_peek_engine = auto")
    with pytest.raises(SqlError, match="out of memory"):  # one value is as long anywhere
        run(session, "SELECT length(string_agg(repeat('x', 100000), ',')) FROM k")
    assert engine.runs == 1
    engine.gone = True
    with pytest.raises(SqlError) as raised:
        run(session, CROSS)
    assert engine.runs == 2 and raised.value.sqlstate == "53200"


@pytest.mark.parametrize("value", ["64MB", "1 GB", "2097152", "4096kB"])
def test_the_limit_can_be_set(session: CoordinatorSession, value: str) -> None:
    run(session, f"SET everview_local_memory = '{value}'")


@pytest.mark.parametrize("value", ["1kB", "-1", "lots", "999999 GB"])
def test_the_limit_has_limits(session: CoordinatorSession, value: str) -> None:
    with pytest.raises(SqlError) as raised:
        run(session, f"SET everview_local_memory = '{value}'")
    assert raised.value.sqlstate == "22023"
    assert session.settings.get(LOCAL_MEMORY) == str(16 << 20)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        (f"SELECT {'9' * 5_000}", "22003"),
        (f"SELECT -{'9' * 5_000}", "22003"),
        (f"SELECT 0x{'f' * 5_000}", "22003"),
        ("SELECT repeat('9', 5000)::int", "22003"),
        ("SELECT repeat('9', 5000)::bigint", "22003"),
        ("SELECT repeat('9', 5000)::smallint", "22003"),
        ("SELECT repeat('9', 5000)::numeric", "22003"),
        ("SELECT repeat('9', 5000)::float8", "22003"),
        ("SELECT repeat('9', 5000)::mz_timestamp", "22003"),
        ("SELECT (repeat('9', 5000) || ' days')::interval", "22008"),
        ("SELECT ('1' || repeat('0', 1000000) || ' days')::interval", "22008"),
        ("SELECT repeat('9', 1000000)::interval", "22008"),
        ("SELECT ('PT' || repeat('9', 1000000) || 'S')::interval", "22008"),
        ("SELECT ('{' || repeat('9', 5000) || '}')::int[]", "22003"),
        ("SELECT repeat('9', 5000)::jsonb", "22003"),
        ("SELECT format('%' || repeat('9', 5000) || '$s', 1)", "22023"),
        (f"SELECT 1 ORDER BY {'9' * 5_000}", "42P10"),
        (f"SELECT 1 LIMIT {'9' * 5_000}", "22003"),
        (f"SELECT 1::numeric({'9' * 5_000})", "22023"),
        (f"SELECT ''::varchar({'9' * 5_000})", "22023"),
        (f"SELECT now()::timestamp({'9' * 5_000})", None),
        (f"SELECT ${'9' * 5_000}", "42601"),
        (f"INSERT INTO k VALUES ({'9' * 5_000})", "22003"),
        (f"INSERT INTO k VALUES ('{'9' * 5_000}')", "22003"),
        (f"SET statement_timeout = {'9' * 5_000}", "22023"),
        (f"SET application_name = '{'x' * 5_000}'", "22023"),
        (f"SET search_path = {', '.join(['public'] * 5_000)}", "22023"),
        ("SELECT set_config('application_name', repeat('x', 5000), false)", "22023"),
        (f"FETCH {'9' * 5_000} FROM c", "34000"),
        (f"SELECT id FROM k WHERE id = {'9' * 5_000}", "22003"),
        (f"SELECT id FROM k AS OF {'9' * 5_000}", "22003"),
        ("SELECT ('[1]'::jsonb) #> ARRAY['+-5']", None),
        ("SELECT jsonb_set('[1]', ARRAY['²'], '2')", "22P02"),
        ("SELECT '[1]'::jsonb #- ARRAY['²']", "22P02"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_numbers_of_any_length_are_errors_of_the_statement(
    session: CoordinatorSession, text: str, sqlstate: str | None
) -> None:
    """Python refuses to read an integer of more than 4,300 digits, which was an internal error."""
    found = None
    try:
        run(session, text)
    except SqlError as error:
        found = error.sqlstate
    assert found == sqlstate
