"""What tests of sinks and change streams share: waiting for a delivery, and looking at both of its ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from everview.adapter.coordinator import Coordinator
from everview.adapter.sinks.contract import DeliveryStatus
from everview.flow.checkpoint import Checkpoint
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

WAIT_S = 90.0  # a stream that has nothing to say writes its progress every 30 s


def ok(sql: SessionClient, *statements: str) -> list[str]:
    """Run statements that must succeed; the answer of the last."""
    answer: list[str] = []
    for statement in statements:
        answer = sql(statement)
        assert not any(line.startswith("!") for line in answer), f"{statement}: {answer}"
    return answer


def rows(answer: list[str]) -> list[str]:
    """The rows of an answer, in some order."""
    assert not answer[0].startswith("!"), answer
    return sorted(answer[1:])


def id_of(coordinator: Coordinator, name: str) -> str:
    return next(item.id for item in coordinator.catalog.state.items.values() if item.name == name)


def delivered(coordinator: Coordinator, name: str, wait_s: float = WAIT_S) -> int:
    """Wait until a sink has delivered all that there is; the time before which it is exact."""
    id = id_of(coordinator, name)
    upper = coordinator.timeline.upper

    def frontier() -> int | None:
        status = coordinator.sinks.status(id)
        assert status is not None
        there = status.frontier is not None and status.frontier >= upper and status.lag_ms == 0
        return status.frontier if there else None

    shown = lambda: f"for {name} to be at {upper}: {coordinator.sinks.status(id)}"  # noqa: E731
    found = eventually(frontier, wait_s, shown=shown)
    assert found is not None
    return found


def until_state(coordinator: Coordinator, name: str, state: str) -> str | None:
    """Wait until a sink is in a state; gives its error."""

    def status() -> DeliveryStatus | None:
        return coordinator.sinks.status(id_of(coordinator, name))

    def reached() -> DeliveryStatus | None:
        now = status()
        return now if now is not None and now.state == state else None

    now = eventually(reached, WAIT_S, shown=lambda: f"for {name} to be {state}: {status()}")
    return None if now is None else now.error


def in_sqlite(path: Path, table: str) -> tuple[int, list[str]]:
    """The checkpoint of the only sink of a file, and the rows of its table, at one moment."""
    with sqlite3.connect(path) as db:
        db.execute("BEGIN")
        checkpoints = db.execute("SELECT checkpoint FROM everview_checkpoints").fetchall()
        found = db.execute(f"SELECT * FROM {table}").fetchall()
    db.close()
    return _frontier([each for (each,) in checkpoints]), sorted(map(_text, found))


def in_postgres(url: str, table: str) -> tuple[int, list[str]]:
    """The same of a PostgreSQL database, of the sink whose name starts with the table's."""
    import psycopg

    with psycopg.connect(url) as db:
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        like = f"{table}-%"
        query = "SELECT checkpoint FROM everview_checkpoints WHERE materialization LIKE %s"
        checkpoints = db.execute(query, [like]).fetchall()
        found = db.execute(f"SELECT * FROM {table}").fetchall()
    return _frontier([each for (each,) in checkpoints]), sorted(map(_text, found))


def _frontier(checkpoints: list[str]) -> int:
    return min((Checkpoint.decode(each).lowest for each in checkpoints), default=0)


def _text(row: tuple[object, ...]) -> str:
    return "|".join("NULL" if value is None else str(value) for value in row)
