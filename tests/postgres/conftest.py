"""What tests of the source from PostgreSQL share: a server, a database of a test's own, and an environment."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everview.adapter.coordinator import Coordinator
from everview.errors import EverviewError
from tests.adapter.scripts import SessionClient
from tests.postgres.server import Upstream
from tests.waiting import eventually

_NUMBERS = itertools.count(1)


class Database:
    """A database upstream."""

    def __init__(self, server: Upstream, name: str) -> None:
        self.server, self.name = server, name
        self.db: psycopg.Connection[Any] = server.connect(name)

    def __call__(self, statements: str) -> None:
        self.db.execute(statements)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.db.execute(query).fetchall()

    def again(self) -> None:
        """Connect anew."""
        self.db.close()
        self.db = self.server.connect(self.name)

    def slots(self) -> list[str]:
        found = self.rows("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
        return [name for (name,) in found]

    def drop(self) -> None:
        self.again()
        for slot in self.slots():
            self.db.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s", [slot]
            )
            eventually(lambda slot=slot: self._free(slot))  # type: ignore[misc]
            self.db.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        self.db.close()
        with self.server.connect() as db:
            db.execute(f"DROP DATABASE {self.name} WITH (FORCE)")

    def _free(self, slot: str) -> bool:
        return not self.rows(
            f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}' AND active_pid IS NOT NULL"
        )


@pytest.fixture
def database(upstream: Upstream) -> Iterator[Database]:
    name = f"test{next(_NUMBERS)}"
    with upstream.connect() as db:
        db.execute(f"CREATE DATABASE {name}")
    found = Database(upstream, name)
    yield found
    found.drop()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def sql(coordinator: Coordinator) -> SessionClient:
    return SessionClient(coordinator)


def connection(database: Database) -> str:
    """The statement that makes a connection to a database."""
    where = f"HOST '{database.server.folder}', DATABASE '{database.name}', USER 'postgres'"
    return f"CREATE CONNECTION c TO POSTGRES ({where})"


def ok(sql: SessionClient, *statements: str) -> list[str]:
    """The answer to the last of these statements, none of which fails."""
    answer: list[str] = []
    for each in statements:
        answer = sql(each)
        assert not (answer and answer[0].startswith("!")), (each, answer)
    return answer


def refusal(sql: SessionClient, statement: str) -> str:
    """The message, the detail and the hint with which a statement fails."""
    with pytest.raises(EverviewError) as failed:
        sql.session.run(sql.session.prepare(statement))
    sql.session.fail()
    sql.session.sync()
    return f"{failed.value.message}; {failed.value.detail}; {failed.value.hint}"


def rows(answer: list[str]) -> list[str]:
    """The rows of an answer, in order."""
    return sorted(answer[1:])


def status(sql: SessionClient, name: str) -> list[str]:
    """The state of a source or of one of its tables, and the error that it has."""
    found = ok(sql, f"SELECT status, error FROM mz_internal.mz_source_statuses WHERE name = '{name}'")
    return "\n".join(found[1:]).split("|", 1)


@pytest.fixture
def follow(database: Database, sql: SessionClient) -> Callable[..., SessionClient]:
    """Makes a source `p` of the database."""

    def made(tables: str = "FOR ALL TABLES", options: str = "") -> SessionClient:
        database("CREATE PUBLICATION pub FOR ALL TABLES")
        ok(
            sql,
            connection(database),
            f"CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub'{options}) {tables}",
        )
        return sql

    return made


def caught_up(database: Database, sql: SessionClient) -> None:
    """Wait until all that is committed upstream is here: what is written behind the last commit may stay unflushed."""
    ((at,),) = database.rows("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")

    def there() -> bool:
        answer = sql("SELECT position FROM p_progress")
        assert not answer[0].startswith("!"), answer
        return len(answer) > 1 and int(answer[1]) >= int(at)

    eventually(there, shown=lambda: sql("SELECT * FROM mz_internal.mz_source_statuses"))
