"""Errors of every layer, through a real session and a real driver: a client learns the SQLSTATE that the map says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.errors import sqlstate_of
from everview.compute.cancel import Ended
from everview.compute.engine.contract import EvaluationFailed, NotSupported, PlanRefused, RunFailed
from everview.compute.functions.contract import Failure
from everview.server.run import start
from everview.storage import errors as storage
from everview.timely.antichain import Antichain
from tests.server.conftest import LOCAL

ERRORS = [
    (storage.Indeterminate("the connection to the metadata was lost"), "08007"),
    (storage.StorageReadOnly("refused", detail="its file system is read-only"), "58030"),
    (storage.StorageFull("full"), "53100"),
    (storage.Canceled("closed"), "57P01"),
    (storage.UpperMismatch("another came first", Antichain(3)), "40001"),
    (storage.Corruption("not the bytes that were written"), "XX001"),
    (RunFailed("an executor was lost"), "58000"),
    (PlanRefused("no such function"), "XX000"),
    (NotSupported("no way"), "0A000"),
    (EvaluationFailed("division by zero", sqlstate="22012"), "22012"),
    (Failure("22012", "division by zero"), "22012"),
    (Ended(), "57014"),
    (MemoryError(), "53200"),
    (RecursionError(), "54001"),
    (KeyError("a defect"), "XX000"),
]


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def client(coordinator: Coordinator) -> Iterator[psycopg.Connection]:
    with start(coordinator, LOCAL) as running:
        url = f"postgresql://everview@{running.pg.host}:{running.pg.port}/everview"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (x int)")
            yield connection


def test_a_commit_and_a_read_that_fail_give_the_sqlstate_of_their_error(
    client: psycopg.Connection, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing: list[BaseException] = []

    def fail(*_: object, **__: object) -> object:
        raise failing[0]

    for error, sqlstate in ERRORS:
        assert sqlstate_of(error) == sqlstate
        failing[:] = [error]
        for statement, (owner, method) in {
            "INSERT INTO t VALUES (1)": (coordinator.timeline, "write"),
            "SELECT count(*) FROM t": (coordinator.peeks, "answer"),
        }.items():
            with monkeypatch.context() as patch:
                patch.setattr(owner, method, fail)
                with pytest.raises(psycopg.Error) as raised:
                    client.execute(statement)
            assert raised.value.sqlstate == sqlstate, (error, statement)
            if isinstance(error, storage.StorageReadOnly):
                assert raised.value.diag.message_detail == "its file system is read-only"
    assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_an_indeterminate_commit_is_not_of_a_class_that_drivers_repeat(
    client: psycopg.Connection, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise storage.Indeterminate("nobody knows")

    with monkeypatch.context() as patch, pytest.raises(psycopg.OperationalError) as raised:
        patch.setattr(coordinator.environment, "commit", lose)
        with client.transaction():
            client.execute("INSERT INTO t VALUES (1)")
    assert isinstance(raised.value, psycopg.errors.TransactionResolutionUnknown)
    assert not isinstance(raised.value, psycopg.errors.TransactionRollback)


def test_the_log_has_the_traceback_of_an_error_that_nobody_foresaw(
    client: psycopg.Connection,
    coordinator: Coordinator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> object:
        raise KeyError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(coordinator.timeline, "write", fail)
        with pytest.raises(psycopg.errors.InternalError_) as raised:
            client.execute("INSERT INTO t VALUES (1)")
    assert raised.value.diag.message_primary == "internal error"
    assert raised.value.diag.message_detail == "KeyError: 'a defect'"
    logged = capsys.readouterr().err
    assert "nobody foresaw" in logged and "Traceback" in logged and "KeyError: 'a defect'" in logged


def test_a_statement_that_takes_too_long_is_ended(client: psycopg.Connection) -> None:
    client.execute("SET statement_timeout = '100ms'")
    for _ in range(2):
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            client.execute("SELECT pg_sleep(30)")
    for _ in range(30):  # each has its own time
        client.execute("SELECT pg_sleep(0.01)")
    client.execute("SET statement_timeout = 0")
    client.execute("SELECT pg_sleep(0.2)")
