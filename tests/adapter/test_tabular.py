"""Large results, which come as tables: the rows and the order of results that are evaluated row by row."""

from __future__ import annotations

import random
from typing import Any

import pytest

from everview.adapter import peek, peek_rows
from everview.adapter.coordinator import Coordinator
from everview.adapter.results import TableRows
from everview.compute.functions.output import to_text
from everview.compute.ir import types as t
from everview.compute.ir.types import SqlType
from everview.compute.rows import tables
from everview.compute.sql.errors import SqlError
from everview.storage.errors import Corruption
from tests.adapter.scripts import SessionClient
from tests.compute.functions.test_awkward import values

ORDERED = [
    *(t.BOOLEAN, t.INT2, t.INT4, t.INT8, t.FLOAT4, t.FLOAT8, t.numeric(), t.numeric(10, 2), t.TEXT, t.BYTEA),
    *(t.DATE, t.TIME, t.TIMESTAMP, t.TIMESTAMPTZ, t.UUID),
]
OTHERS = [t.INTERVAL, t.JSONB, t.array_of(t.INT4)]
ROWS = 300


@pytest.fixture
def session(coordinator: Coordinator, sql: SessionClient, monkeypatch: pytest.MonkeyPatch) -> SessionClient:
    """A session of which every result from storage is made of tables, in small pieces."""
    monkeypatch.setattr(peek, "TABLE_ROWS_MIN", 1)
    monkeypatch.setattr(peek, "INTERPRETED_UPDATES_MAX", 0)
    monkeypatch.setattr(tables, "PIECE_ROWS", 7)
    return sql


def found(client: SessionClient, statement: str) -> tuple[bool, list[tuple[str | None, ...]]]:
    """Whether the result comes as tables, and its rows, in text."""
    result: Any = client.session.run(client.session.prepare(statement))
    rows = [row for batch in result.batches() for row in batch]
    result.close()
    client.session.sync()
    types = [column.type for column in result.columns]
    shown = [tuple(None if v is None else to_text(v, k) for v, k in zip(row, types, strict=True)) for row in rows]
    return isinstance(result, TableRows), shown


def filled(client: SessionClient, types: list[SqlType], rng: random.Random) -> None:
    """A table `many` with few different values, and rows that occur several times."""
    columns = ", ".join(f"c{index} {each}" for index, each in enumerate(types))
    client(f"CREATE TABLE many ({columns})")
    few = [[*rng.sample(found, min(5, len(found))), None] for each in types if (found := list(values(each, rng)))]
    rows = [tuple(map(rng.choice, few)) for _ in range(ROWS)]
    for part in (rows, rows[: ROWS // 3]):
        copy: Any = client.session.run(client.session.prepare("COPY many FROM STDIN"))
        copy.finish(part)
        client.session.sync()
    client("DELETE FROM many WHERE c0 IS NULL AND c1 IS NULL")


@pytest.mark.parametrize("others", [False, True])
def test_rows_are_those_of_an_evaluation(
    session: SessionClient, rng: random.Random, monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    types = [*rng.sample(ORDERED, 5), *(OTHERS if others else [])]
    filled(session, types, rng)
    for _ in range(12):
        columns = [f"c{index}" for index in rng.sample(range(len(types)), rng.randint(1, len(types)))]
        ways = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
        order = [f"{each}{rng.choice(ways)}" for each in rng.sample(columns, rng.randint(0, min(3, len(columns))))]
        statement = f"SELECT {', '.join(columns)} FROM many" + (f" ORDER BY {', '.join(order)}" if order else "")
        tabled, shown = found(session, statement)
        assert tabled or (others and order), statement
        monkeypatch.setattr(peek, "TABLE_ROWS_MIN", 10**9)
        monkeypatch.setattr(peek, "INTERPRETED_UPDATES_MAX", 10**9)
        evaluated, expected = found(session, statement)
        monkeypatch.setattr(peek, "TABLE_ROWS_MIN", 1)
        monkeypatch.setattr(peek, "INTERPRETED_UPDATES_MAX", 0)
        assert not evaluated
        assert (shown if order else sorted(shown, key=repr)) == (expected if order else sorted(expected, key=repr))


def test_a_transaction_sees_what_it_wrote(session: SessionClient) -> None:
    session("CREATE TABLE many (a int)")
    session("INSERT INTO many SELECT generate_series(1, 20)")
    session("BEGIN")
    session("INSERT INTO many VALUES (21)")
    assert session("SELECT count(*) FROM many") == ["count", "21"]
    assert session("SELECT * FROM many ORDER BY a")[1:] == [str(each) for each in range(1, 22)]
    session("ROLLBACK")
    assert len(session("SELECT * FROM many")) == 21


def test_cursors_go_on_where_they_stopped(session: SessionClient) -> None:
    session("CREATE TABLE many (a int)")
    session("INSERT INTO many SELECT generate_series(1, 40)")
    session("BEGIN")
    session("DECLARE c CURSOR FOR SELECT a FROM many ORDER BY a")
    assert session("FETCH 10 FROM c")[1:] == [str(each) for each in range(1, 11)]
    assert session("MOVE 5 FROM c") == ["MOVE 5"]
    assert session("FETCH 1 FROM c")[1:] == ["16"]
    assert session("FETCH ALL FROM c")[1:] == [str(each) for each in range(17, 41)]
    assert session("FETCH ALL FROM c")[1:] == []


def test_what_is_read_stays_there_until_the_result_is_closed(session: SessionClient, coordinator: Coordinator) -> None:
    session("CREATE TABLE many (a int)")
    session("INSERT INTO many SELECT generate_series(1, 40)")
    result: Any = session.session.run(session.session.prepare("SELECT * FROM many"))
    batches = result.batches()
    first = next(batches)
    session.session.sync()
    other = SessionClient(coordinator)
    other("DELETE FROM many")
    assert other("SELECT * FROM many") == ["a"]
    assert len([*first, *(row for batch in batches for row in batch)]) == 40
    result.close()


def test_a_result_that_is_held_has_a_limit(session: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    session("CREATE TABLE many (a int)")
    session("INSERT INTO many SELECT generate_series(1, 40)")
    monkeypatch.setattr(peek_rows, "RESULT_ROWS_MAX", 30)
    assert session("SELECT * FROM many ORDER BY a") == ["! 54000 the result has more than 30 rows"]
    assert len(session("SELECT * FROM many")) == 41


def test_damage_is_told_in_the_midst_of_a_result(session: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    session("CREATE TABLE many (a int)")
    session("INSERT INTO many SELECT generate_series(1, 40)")

    def damaged(*_: Any) -> Any:
        raise Corruption("a part is damaged")

    monkeypatch.setattr("everview.storage.selection.Selection.chunks", lambda *_: map(damaged, [1]))
    with pytest.raises(SqlError, match="a part is damaged"):
        found(session, "SELECT * FROM many")
