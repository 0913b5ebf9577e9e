"""Transactions as drivers and mappers have them, on a real environment: blocks, pipelines, sessions that flush."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from everview.adapter.coordinator import Coordinator
from everview.server.run import start
from tests.server.conftest import LOCAL
from tests.waiting import eventually

DEFINITIONS = """
CREATE TABLE users (id int NOT NULL, name text NOT NULL, visits int DEFAULT 0);
CREATE TABLE log (what text, at bigint DEFAULT mz_now());
CREATE INDEX ON users (id);
"""


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def url(coordinator: Coordinator) -> Iterator[str]:
    with start(coordinator, LOCAL) as running:
        url = f"postgresql://everview@{running.pg.host}:{running.pg.port}/everview"
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in DEFINITIONS.split(";")[:-1]:
                connection.execute(statement)
        yield url


class Base(DeclarativeBase):
    """What is mapped."""


class User(Base):
    """A row of `users`."""

    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    visits: Mapped[int] = mapped_column(default=0)


def test_a_mapper_reads_what_it_has_flushed(url: str) -> None:
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session:
        session.add_all([User(id=1, name="ada"), User(id=2, name="bob")])
        session.flush()
        ada = session.scalars(sa.select(User).where(User.name == "ada")).one()  # flushed before it is asked for
        ada.visits += 1
        session.add(User(id=3, name="cy"))
        assert session.scalar(sa.select(sa.func.sum(User.visits))) == 1
        assert session.scalar(sa.select(sa.func.count()).select_from(User)) == 3
        session.expire_all()
        assert session.get(User, 1).visits == 1  # type: ignore[union-attr]
        nested = session.begin_nested()
        session.delete(ada)
        assert session.scalars(sa.select(User.name).order_by(User.id)).all() == ["bob", "cy"]
        nested.rollback()
        session.refresh(ada)
        assert ada.name == "ada"
        session.commit()
    with Session(engine) as session:
        names = session.scalars(sa.select(User.name).order_by(User.id)).all()
        assert names == ["ada", "bob", "cy"]
    engine.dispose()


def test_get_or_create(url: str) -> None:
    """By two at once, one of whom has to try again."""

    def get_or_create(connection: psycopg.Connection) -> int:
        found = connection.execute("SELECT id FROM users WHERE name = %s", ("dora",)).fetchone()
        if found is None:
            connection.execute("INSERT INTO users SELECT 1 + coalesce(max(id), 0), %s FROM users", ("dora",))
            found = connection.execute("SELECT id FROM users WHERE name = %s", ("dora",)).fetchone()
        assert found is not None
        return int(found[0])

    with psycopg.connect(url) as one, psycopg.connect(url) as two:
        assert get_or_create(one) == get_or_create(two) == 1
        one.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            two.commit()
        two.rollback()
        assert get_or_create(two) == 1
        two.commit()
        assert one.execute("SELECT count(*) FROM users").fetchone() == (1,)


def test_defaults_that_speak_of_time_in_blocks_and_in_many(url: str) -> None:
    with psycopg.connect(url) as connection:
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO log (what) VALUES (%s)", [(str(each),) for each in range(5)])
        with cursor.copy("COPY log (what) FROM STDIN") as copy:
            copy.write_row(("copied",))
        now = cursor.execute("SELECT mz_now()").fetchone()
        found = cursor.execute("SELECT DISTINCT at FROM log").fetchall()
        assert now is not None and [int(row[0]) for row in found] == [int(now[0])]
        connection.commit()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.cursor().executemany("INSERT INTO log (what) VALUES (%s)", [("many",), ("many",)])
        with connection.pipeline():
            connection.execute("INSERT INTO log (what) VALUES ('piped')")
            connection.execute("INSERT INTO log (what) VALUES ('piped')")
        with connection.cursor().copy("COPY log (what) FROM STDIN") as copy:
            copy.write_row(("again",))
        assert connection.execute("DELETE FROM log WHERE at <= mz_now()").rowcount == 11


def test_a_pipeline_is_one_transaction(url: str) -> None:
    """Also if its first statement reads and writes."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO users VALUES (1, 'ada')")
        with pytest.raises(psycopg.errors.DivisionByZero), connection.pipeline():
            connection.execute("UPDATE users SET visits = visits + 1")
            connection.execute("SELECT 1 / visits FROM users WHERE visits = 0")
            connection.execute("SELECT 1 / (visits - 1) FROM users")
        assert connection.execute("SELECT visits FROM users").fetchall() == [(0,)]
        with connection.pipeline():
            connection.execute("UPDATE users SET visits = visits + 1")
            connection.execute("UPDATE users SET visits = visits + 1")
        assert connection.execute("SELECT visits FROM users").fetchall() == [(2,)]


@pytest.mark.parametrize("failed", [False, True])
def test_who_stays_silent_in_a_transaction_is_sent_away(url: str, coordinator: Coordinator, failed: bool) -> None:
    with psycopg.connect(url) as idle, psycopg.connect(url, autocommit=True) as other:
        idle.execute("SET idle_in_transaction_session_timeout = '200ms'")
        idle.commit()
        assert idle.execute("SELECT count(*) FROM users").fetchone() == (0,)
        idle.execute("INSERT INTO users VALUES (1, 'ada')")
        if failed:
            with pytest.raises(psycopg.errors.DivisionByZero):
                idle.execute("SELECT 1 / 0")
        select.select([idle.fileno()], [], [], 60)  # until the server says something by itself
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout) as caught:
            idle.execute("SELECT 1")
        assert caught.value.diag.severity == "FATAL"
        assert caught.value.diag.message_primary == "terminating connection due to idle-in-transaction timeout"
        eventually(lambda: len(coordinator.sessions()) == 1)
        assert not coordinator.timeline.holds._on_clock
        assert other.execute("SELECT count(*) FROM users").fetchone() == (0,)
        assert other.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("0",)


def test_who_speaks_stays(url: str) -> None:
    """However long it has been silent outside of a transaction, and however long its statement takes."""
    options = "-c idle_in_transaction_session_timeout=300"
    with psycopg.connect(url, options=options) as connection:
        assert connection.execute("SELECT pg_sleep(0.6)").fetchone() is not None
        connection.commit()
        select.select([connection.fileno()], [], [], 0.6)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_who_stays_silent_outside_of_transactions(url: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-c idle_session_timeout=200") as connection:
        connection.execute("SELECT name FROM users WHERE id = 1")
        with connection.transaction():  # there, it is another limit
            select.select([connection.fileno()], [], [], 0.5)
            connection.execute("SELECT 1")
        assert select.select([connection.fileno()], [], [], 60)[0]
        with pytest.raises(psycopg.errors.IdleSessionTimeout):
            connection.execute("SELECT 1")
