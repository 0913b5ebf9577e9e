"""INSERT … VALUES without a plan for each execution: the rows and errors of the plan."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from everview.adapter.contract import Done
from everview.adapter.coordinator import Coordinator
from everview.adapter.execute import writes
from everview.compute.sql.errors import SqlError
from tests.adapter.scripts import SessionClient

DEFINITION = (
    "CREATE TABLE t (a int NOT NULL, b numeric(6,2), c varchar(3), d int[], e text DEFAULT current_user,"
    " f date DEFAULT '2024-01-01', g float8)"
)
# Statements with the values of their parameters: of several types, NULL, out of range, too long, and failing.
CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("INSERT INTO t VALUES ($1, $2, $3, $4)", (1, Decimal("1.005"), "abc", [1, None])),
    ("INSERT INTO t VALUES ($1, $2, $3, $4)", (None, None, None, None)),
    ("INSERT INTO t VALUES ($1, $2, $3, $4)", (1, Decimal("99999.99"), "abcd", [])),
    ("INSERT INTO t (g, a) VALUES ($1, $2)", (-0.0, 2)),
    ("INSERT INTO t (g, a) VALUES ($1, $2)", (float("nan"), 2)),
    ("INSERT INTO t (a, c) VALUES ($1, 'x'), ($2, upper($3)), ($1, 'x')", (1, 2, "y")),
    ("INSERT INTO t (a, g) VALUES (10 / $1, 1), (2, 1 / $2)", (0, 0)),
    ("INSERT INTO t (a, f) VALUES ($1, $2)", (5, date(1969, 12, 31))),
    ("INSERT INTO t (a, c) VALUES (1, $1 || 'bc')", ("abc",)),
    ("INSERT INTO t (a, b) SELECT $1, 2", (7,)),
    ("INSERT INTO t (a) VALUES ($1) RETURNING a", (8,)),
    ("INSERT INTO t (a) VALUES (1), (2)", ()),
]


def outcome(coordinator: Coordinator, statement: str, values: tuple[Any, ...]) -> tuple[Any, list[str]]:
    """The tag or the error of a statement, and what is then in the table."""
    client = SessionClient(coordinator)
    client("DROP TABLE IF EXISTS t")
    client(DEFINITION)
    session = client.session
    try:
        result = session.run(session.prepare(statement), values)
        told: Any = result.tag if isinstance(result, Done) else [row for batch in result.batches() for row in batch]  # type: ignore[union-attr]
        session.sync()
    except SqlError as error:
        session.sync()
        told = (error.sqlstate, error.message, error.detail)
    found = client("SELECT * FROM t")
    session.close()
    return told, [found[0], *sorted(found[1:])]


@pytest.mark.parametrize(("statement", "values"), CASES)
def test_rows_and_errors_are_those_of_the_plan(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, statement: str, values: tuple[Any, ...]
) -> None:
    found = outcome(coordinator, statement, values)
    monkeypatch.setattr(writes, "made_of", lambda _: None)
    assert found == outcome(coordinator, statement, values)


def test_a_statement_that_is_prepared_once_has_no_plan_for_each_row(
    sql: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql("CREATE TABLE t (a int, b text DEFAULT now()::text)")
    session = sql.session
    prepared = session.prepare("INSERT INTO t (a) VALUES ($1)")
    monkeypatch.setattr("everview.adapter.peek.Peeks.collection", None)
    for number in range(5):
        session.run(prepared, (number,))
        session.sync()
    monkeypatch.undo()
    assert sql("SELECT count(*), count(b) FROM t") == ["count|count", "5|5"]


def test_statements_sent_together_are_one_commit(coordinator: Coordinator, sql: SessionClient) -> None:
    sql("CREATE TABLE t (a int NOT NULL)")
    session = sql.session
    session.together = True
    prepared = session.prepare("INSERT INTO t VALUES ($1)")
    before = coordinator.environment.commits
    for number in range(50):
        session.run(prepared, (number,))
    session.sync()
    assert coordinator.environment.commits == before + 1
    with pytest.raises(SqlError, match="null value"):
        for value in (1, 2, None):
            session.run(prepared, (value,))
    session.sync()
    session.together = False
    assert sql("SELECT count(*) FROM t") == ["count", "50"]
