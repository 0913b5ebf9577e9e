"""INTO CONNECTOR and INTO COMMAND in SQL, with a connector as strict as the public ones."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute.sql.errors import SqlError
from tests.adapter.delivery import delivered, ok, rows, until_state
from tests.adapter.scripts import SessionClient
from tests.flow.conftest import STRICT


@pytest.fixture
def connector(tmp_path: Path) -> Path:
    """The strict connector as a file to be run."""
    file = tmp_path / "materialize-strict"
    file.write_text(f"#!/bin/sh\nexec {sys.executable} -S {STRICT}\n")
    file.chmod(0o755)
    return file


def found(path: Path, table: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    answer = db.execute(f'SELECT id, name FROM "{table}" ORDER BY id').fetchall()
    db.close()
    return answer


def refusal(sql: SessionClient, statement: str) -> SqlError:
    """The error of a statement, with all that is told of it."""
    session = sql.session
    with pytest.raises(SqlError) as raised:
        session.run(session.prepare(statement))
    session.fail()
    session.sync()
    return raised.value


@pytest.mark.parametrize("codec", ["json", "proto"])
def test_a_public_connector(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, connector: Path, codec: str
) -> None:
    config = json.dumps({"path": str(tmp_path / "out.db"), "hardDelete": True})
    ok(
        sql,
        "CREATE TABLE t (id int NOT NULL, name text)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        f"CREATE SINK s FROM t INTO CONNECTOR '{connector}' (CONFIG '{config}', CODEC '{codec}') KEY (id)",
    )
    delivered(coordinator, "s")
    ok(sql, "UPDATE t SET name = 'A' WHERE id = 1", "DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, NULL)")
    delivered(coordinator, "s")
    assert found(tmp_path / "out.db", "main__t") == [(1, "A"), (3, None)]
    for count in (3, 2, 1):
        ok(sql, f"ALTER SINK s SET (SPLITS {count})", f"INSERT INTO t VALUES ({10 + count}, 'x')")
    delivered(coordinator, "s")
    assert [id for id, _ in found(tmp_path / "out.db", "main__t")] == [1, 3, 11, 12, 13]
    ok(sql, "DROP SINK s")


def test_slips_and_secrets(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, connector: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ok(sql, "CREATE TABLE t (id int NOT NULL, name text)")
    wrong = sql(f"CREATE SINK s FROM t INTO CONNECTOR '{connector}' (CONFIG '{{\"pth\": \"x\"}}') KEY (id)")
    assert wrong[0] == "! 22023 CONFIG is not what the connector takes"
    typed = json.dumps({"path": "x", "credentials": {"auth_type": "password", "pasword": "topsecret123"}})
    error = refusal(sql, f"CREATE SINK s FROM t INTO CONNECTOR '{connector}' (CONFIG '{typed}') KEY (id)")
    assert '"/credentials/password" is missing' in (error.detail or "") and "topsecret123" not in str(error)
    broken = tmp_path / "materialize-broken"  # it says something that looks like a secret, and is none
    broken.write_text("#!/bin/sh\necho password: login failed, token=expired, https://u:topsecret123@h/ >&2\nexit 3\n")
    broken.chmod(0o755)
    error = refusal(sql, f"CREATE SINK s FROM t INTO CONNECTOR '{broken}' KEY (id)")
    assert error.detail == "password: login failed, token=expired, https://u:***@h/"
    path = str(tmp_path / "out.db")
    config = json.dumps({"path": path, "credentials": {"auth_type": "password", "password": "topsecret123"}})
    ok(sql, f"CREATE SINK s FROM t INTO CONNECTOR '{connector}' (CONFIG '{config}') KEY (id)")
    delivered(coordinator, "s")
    shown = "\n".join(ok(sql, "SHOW CREATE SINK s"))
    assert "topsecret123" not in shown and path in shown
    connector.write_text("#!/bin/sh\necho login of postgres with topsecret123 failed >&2\nexit 3\n")
    ok(sql, "ALTER SINK s PAUSE", "ALTER SINK s RESUME", "INSERT INTO t VALUES (1, 'a')")
    stalled = until_state(coordinator, "s", "stalled") or ""
    assert "login of postgres with *** failed" in stalled
    assert "topsecret123" not in "\n".join(rows(ok(sql, "SELECT * FROM mz_internal.mz_sink_statuses")))
    assert "topsecret123" not in capsys.readouterr().out
    assert os.access(connector, os.X_OK)


@pytest.mark.parametrize("several", [False, True])
def test_secrets_of_a_place(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, connector: Path, several: bool
) -> None:
    ok(sql, "CREATE TABLE t (id int NOT NULL, name text)", "CREATE TABLE u (id int NOT NULL, name text)")
    config = json.dumps({"path": str(tmp_path / "out.db")})
    places = [json.dumps({"table": f"at_{each}", "access": f"let_{each}_in"}) for each in "tu"]
    each = [f"{name} (RESOURCE '{place}') KEY (id)" for name, place in zip("tu", places, strict=True)]
    given = ", ".join(each if several else each[:1])
    ok(sql, f"CREATE SINK s FROM {given} INTO CONNECTOR '{connector}' (CONFIG '{config}')")
    delivered(coordinator, "s")
    shown = "\n".join(ok(sql, "SHOW CREATE SINK s"))
    assert "let_" not in shown and "at_t" in shown and ("at_u" in shown) == several
    connector.write_text("#!/bin/sh\necho let_t_in was refused by at_t >&2\nexit 3\n")
    ok(sql, "ALTER SINK s PAUSE", "ALTER SINK s RESUME", "INSERT INTO t VALUES (1, 'a')")
    assert "*** was refused by at_t" in (until_state(coordinator, "s", "stalled") or "")


def test_new_settings_of_a_connector(
    sql: SessionClient, coordinator: Coordinator, tmp_path: Path, connector: Path
) -> None:
    """They are asked for before anything is changed, applied as a new version, and secrets stay secret."""
    journal = tmp_path / "journal"

    def config(word: str, **more: object) -> str:
        credentials = {"auth_type": "password", "password": word}
        return json.dumps(
            {"path": str(tmp_path / "out.db"), "journal": str(journal), "credentials": credentials} | more
        )

    ok(
        sql,
        "CREATE TABLE t (id int NOT NULL, name text)",
        "INSERT INTO t VALUES (1, 'a')",
        f"CREATE SINK s FROM t INTO CONNECTOR '{connector}' (CONFIG '{config('topsecret1')}') KEY (id)",
    )
    delivered(coordinator, "s")
    error = refusal(sql, f"ALTER SINK s SET (CONFIG '{config('topsecret2', hardDelet=True)}')")
    assert '"/hardDelet" is no setting of it' in (error.detail or "")
    error = refusal(sql, 'ALTER SINK s SET (RESOURCE \'{"table": "other"}\')')
    assert error.message == "RESOURCE of a sink cannot be changed"
    ok(sql, f"ALTER SINK s SET (CONFIG '{config('topsecret2', hardDelete=True)}')", "INSERT INTO t VALUES (2, 'b')")
    delivered(coordinator, "s")
    assert found(tmp_path / "out.db", "main__t") == [(1, "a"), (2, "b")]
    asked = [json.loads(line) for line in journal.read_text().splitlines()]
    first, second = (each["said"] for each in asked if each["asked"] == "apply")
    assert second["lastVersion"] == first["version"] != second["version"]
    assert second["lastMaterialization"]["config"]["credentials"]["password"] == "topsecret1"
    assert asked[-1]["said"]["materialization"]["config"]["credentials"]["password"] == "topsecret2"
    shown = "\n".join([*ok(sql, "SHOW CREATE SINK s"), *ok(sql, "SELECT * FROM mz_audit_events")])
    assert "topsecret" not in shown and "hardDelete" in shown
    ok(sql, "DELETE FROM t WHERE id = 1")  # which a hard delete removes
    delivered(coordinator, "s")
    assert found(tmp_path / "out.db", "main__t") == [(2, "b")]
    ok(sql, "DROP SINK s")
    last = json.loads(journal.read_text().splitlines()[-1])
    assert last["asked"] == "apply" and not last["said"]["materialization"].get("bindings")
