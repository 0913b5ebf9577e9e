"""A definition is planned without a trace: nothing is written, and a rehearsal in a block says all there is to say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.execute.dispatch import PLANS
from everview.adapter.statements.parse import parse
from everview.compute.sql.lexer import split
from everview.storage.environment import Environment
from tests.adapter.scripts import SessionClient

MADE = (
    "CREATE TABLE t (x int, at timestamptz)",
    "CREATE VIEW v AS SELECT x FROM t",
    "CREATE SECRET s AS 'x'",
    "CREATE SUBSCRIPTION sub FOR t",
    "CREATE ROLE r",
)
PLANNED = (  # of each kind of statement that is a plan
    "CREATE TABLE new (x int) WITH (RETAIN HISTORY FOR '1h')",
    "CREATE VIEW new AS SELECT x FROM t",
    "CREATE OR REPLACE VIEW v AS SELECT x FROM t WHERE x > 1",
    "CREATE INDEX ON t (x)",
    "CREATE SCHEMA new",
    "CREATE DATABASE new",
    "CREATE ROLE new",
    "ALTER ROLE r PASSWORD 'x'",
    "CREATE SECRET new AS 'x'",
    "ALTER SECRET s AS 'y'",
    "DROP TABLE t CASCADE",
    "ALTER TABLE t RENAME TO u",
    "ALTER TABLE t OWNER TO r",
    "ALTER TABLE t SET (TTL '1h' ON at)",
    "ALTER TABLE t SET (RETAIN HISTORY FOR '1h')",
    "COMMENT ON TABLE t IS 'x'",
    "CREATE SUBSCRIPTION new FOR t",
    "ALTER SUBSCRIPTION sub RESTART",
    "ALTER SUBSCRIPTION sub SET (HOLD FOR '1h')",
    "ALTER SOURCE IF EXISTS nothing PAUSE",
)
NOTED = (  # what they tell when there is nothing to do, or more
    ("CREATE TABLE IF NOT EXISTS t (x int)", 'relation "t" already exists, skipping'),
    ("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS x", 'relation "v" already exists, skipping'),
    ("CREATE SECRET IF NOT EXISTS s AS 'z'", 'relation "s" already exists, skipping'),
    ("CREATE SUBSCRIPTION IF NOT EXISTS sub FOR t", 'relation "sub" already exists, skipping'),
    ("CREATE SCHEMA IF NOT EXISTS public", 'schema "public" already exists, skipping'),
    ("DROP TABLE IF EXISTS nothing", 'table "nothing" does not exist, skipping'),
    ("DROP SCHEMA IF EXISTS nothing", 'schema "nothing" does not exist, skipping'),
    ("DROP TABLE t CASCADE", "drop cascades to subscription everview.public.sub"),
    ("ALTER TABLE IF EXISTS nothing RENAME TO u", 'table "nothing" does not exist, skipping'),
    ("ALTER SECRET IF EXISTS nothing AS 'y'", 'secret "nothing" does not exist, skipping'),
    ("ALTER SUBSCRIPTION IF EXISTS nothing RESTART", 'subscription "nothing" does not exist, skipping'),
    ("ALTER SOURCE IF EXISTS nothing PAUSE", 'source "nothing" does not exist, skipping'),
)


@pytest.fixture
def made(sql: SessionClient) -> SessionClient:
    for each in MADE:
        assert not sql(each)[0].startswith("!"), each
    return sql


def told(sql: SessionClient) -> list[str]:
    return [each.message for each in sql.session.notices()]


@contextmanager
def commits_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The commands that this thread commits."""
    found: list[Any] = []
    commit, here = Environment.commit, threading.get_ident()

    def committing(self: Environment, *commands: Any) -> list[Any]:
        if threading.get_ident() == here:
            found.extend(commands)
        return commit(self, *commands)

    with monkeypatch.context() as patch:
        patch.setattr(Environment, "commit", committing)
        yield found


def files(folder: Path) -> set[Path]:
    return {each for each in folder.rglob("*") if "secret" in each.name or "key" in each.name}


@pytest.mark.parametrize("statement", PLANNED)
def test_a_rehearsal_writes_nothing(
    made: SessionClient, coordinator: Coordinator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    state, keys = coordinator.catalog.state, files(tmp_path)
    with commits_here(monkeypatch) as committed:
        made("BEGIN")
        answer = made(statement)
        assert not answer[0].startswith("!"), answer
        made("ROLLBACK")
    assert not committed
    assert coordinator.catalog.state is state
    assert files(tmp_path) == keys


def test_the_first_secret_makes_no_key_until_it_is_made(
    sql: SessionClient, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator.connections.sealer, "seal", lambda *_: pytest.fail("it is sealed while planned"))
    assert sql("BEGIN") and sql("CREATE SECRET s AS 'x'") == ["CREATE SECRET"]
    assert sql("ROLLBACK") == ["ROLLBACK"]


def test_each_kind_of_plan_is_rehearsed_here() -> None:
    assert {type(parse(split(each)[0])) for each in PLANNED} == set(PLANS)


@pytest.mark.parametrize("statement", PLANNED)
def test_what_was_rehearsed_is_made_at_the_end(made: SessionClient, statement: str) -> None:
    assert made("BEGIN") == ["BEGIN"]
    assert not made(statement)[0].startswith("!")
    assert made("COMMIT") == ["COMMIT"]


@pytest.mark.parametrize(("statement", "notice"), NOTED)
@pytest.mark.parametrize("before", [None, "COMMENT ON TABLE t IS 'y'"])
def test_a_notice_comes_once_and_when_the_statement_is_sent(
    made: SessionClient, statement: str, notice: str, before: str | None
) -> None:
    told(made)
    made("BEGIN")
    if before is not None:
        made(before)
    if made(statement)[0].startswith("! 0A000"):  # together with the comment
        assert before is not None
        return
    assert told(made).count(notice) == 1
    assert made("COMMIT") == ["COMMIT"]
    assert told(made) == []


@pytest.mark.parametrize(("statement", "notice"), NOTED)
def test_alone_it_comes_once_too(made: SessionClient, statement: str, notice: str) -> None:
    told(made)
    made(statement)
    assert told(made).count(notice) == 1


def test_a_definition_is_one_commit_with_its_id(made: SessionClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with commits_here(monkeypatch) as committed:
        made("CREATE SCHEMA new")
    assert [type(each).__name__ for each in committed] == ["TakeId", "Put", "Put"]


def test_secrets_that_a_block_makes_and_alters_are_what_they_are_last(
    sql: SessionClient, coordinator: Coordinator
) -> None:
    for each in (
        "BEGIN",
        "CREATE SECRET a AS 'first'",
        "ALTER SECRET a RENAME TO b",
        "ALTER SECRET b AS 'second'",
        "CREATE SECRET c AS 'third'",
        "ALTER SECRET c FROM FILE '/nowhere'",
        "COMMIT",
    ):
        assert not sql(each)[0].startswith("!"), each
    found = {item.name: item for item in coordinator.catalog.state.items.values()}
    assert coordinator.connections.text(found["b"]) == "second"  # type: ignore[arg-type]
    assert found["c"].value == "/nowhere"  # type: ignore[attr-defined]
