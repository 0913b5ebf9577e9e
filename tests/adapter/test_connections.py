"""Secrets and connections: sealed where they are kept, opened for who connects, and shown to nobody."""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from everview.adapter.catalog.items import Secret
from everview.adapter.coordinator import Coordinator
from everview.adapter.sealing import KEY_VARIABLE, KeyTrouble, Sealer
from everview.adapter.secrets import shown_statement
from everview.adapter.statements.parse import parse
from everview.compute.sql.errors import SqlError
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

HUSH = "hush-hush-4711"


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def opened_text(coordinator: Coordinator, name: str = "s") -> str:
    (secret,) = [each for each in coordinator.catalog.state.of(Secret) if each.name == name]
    return coordinator.connections.text(secret)


def test_what_is_kept_is_sealed_and_opens_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as coordinator:
        assert not (tmp_path / "data.key").exists()
        assert SessionClient(coordinator)(f"CREATE SECRET s AS '{HUSH}'") == ["CREATE SECRET"]
        assert opened_text(coordinator) == HUSH
    assert HUSH.encode() not in all_bytes(tmp_path / "data")
    key = tmp_path / "data.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as coordinator:
        assert opened_text(coordinator) == HUSH
        SessionClient(coordinator)("ALTER SECRET s AS 'another-one'")
        assert opened_text(coordinator) == "another-one"
    key.rename(tmp_path / "elsewhere")
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as coordinator:
        with pytest.raises(KeyTrouble, match="no key to open secrets with"):
            opened_text(coordinator)
        assert not key.exists()
    with pytest.raises(KeyTrouble, match="others may read"):
        (tmp_path / "elsewhere").chmod(0o644)
        Sealer(key_file=tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o600)
    sealer = Sealer(key_file=tmp_path / "elsewhere")
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False, sealer=sealer) as coordinator:
        assert opened_text(coordinator) == "another-one"


def test_a_sealed_text_opens_with_its_key_in_its_place_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, base64.b64encode(b"k" * 32).decode())
    sealed = Sealer().seal(HUSH, "u7")
    assert Sealer().unseal(sealed, "u7") == HUSH
    assert Sealer().seal(HUSH, "u7") != sealed
    with pytest.raises(KeyTrouble, match="belongs to another object"):
        Sealer().unseal(sealed, "u8")
    body = bytearray(base64.b64decode(sealed[2:]))
    body[-1] ^= 1
    with pytest.raises(KeyTrouble, match="damaged"):
        Sealer().unseal("1:" + base64.b64encode(body).decode(), "u7")
    monkeypatch.setenv(KEY_VARIABLE, base64.b64encode(b"o" * 32).decode())
    with pytest.raises(KeyTrouble, match="sealed with another key"):
        Sealer().unseal(sealed, "u7")
    for wrong in ("short", base64.b64encode(b"k" * 31).decode()):
        monkeypatch.setenv(KEY_VARIABLE, wrong)
        with pytest.raises(KeyTrouble, match="does not hold a key"):
            Sealer().seal(HUSH, "u7")
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(KeyTrouble, match="no key to seal"):
        Sealer().seal(HUSH, "u7")


def test_files_and_variables_are_read_whenever_they_are_needed(
    coordinator: Coordinator, sql: SessionClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    sql(f"CREATE SECRET f FROM FILE '{file}'")
    sql("CREATE SECRET e FROM ENVIRONMENT 'EVERVIEW_TEST_SECRET'")
    with pytest.raises(Exception, match="cannot be read"):
        opened_text(coordinator, "f")
    file.write_text("one\n")
    assert opened_text(coordinator, "f") == "one"
    file.write_text("two")
    assert opened_text(coordinator, "f") == "two"
    monkeypatch.setenv("EVERVIEW_TEST_SECRET", "three")
    assert opened_text(coordinator, "e") == "three"
    monkeypatch.setenv("EVERVIEW_TEST_SECRET", "")
    with pytest.raises(Exception, match="cannot be empty"):
        opened_text(coordinator, "e")


def test_others_than_superusers_have_secrets_of_their_own_and_allowed_files(
    coordinator: Coordinator, sql: SessionClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    monkeypatch.setenv("EVERVIEW_FILES", str(allowed))
    (allowed / "s").write_text("mine")
    (tmp_path / "s").write_text("not mine")
    sql("CREATE SECRET theirs AS 'x'")
    sql("CREATE ROLE joe")
    sql("CREATE CONNECTION c TO POSTGRES (HOST 'h', DATABASE 'd', USER 'u') WITH (VALIDATE = false)")
    joe = SessionClient(coordinator, user="joe")
    assert joe("CREATE SECRET own AS 'y'") == ["CREATE SECRET"]
    assert joe(f"CREATE SECRET f FROM FILE '{allowed / 's'}'") == ["CREATE SECRET"]
    assert opened_text(coordinator, "f") == "mine"
    denied = (
        f"CREATE SECRET g FROM FILE '{tmp_path / 's'}'",
        "CREATE SECRET g FROM ENVIRONMENT 'HOME'",
        "CREATE CONNECTION d TO POSTGRES (HOST 'h', DATABASE 'd', USER 'u')",
        "ALTER SECRET theirs AS 'z'",
        "DROP SECRET theirs",
        "ALTER CONNECTION c SET (PORT 1)",
        "VALIDATE CONNECTION c",
    )
    for statement in denied:
        assert joe(statement)[0].startswith("! 42501"), statement
    (allowed / "s").unlink()
    (allowed / "s").symlink_to(tmp_path / "s")
    with pytest.raises(Exception, match="not inside an allowed folder"):
        opened_text(coordinator, "f")


def test_statements_with_secrets_are_shown_without_them() -> None:
    for statement in (
        f"CREATE SECRET s AS '{HUSH}'",
        f"ALTER SECRET s AS '{HUSH}'",
        f"CREATE CONNECTION c TO POSTGRES (HOST '{HUSH}', DATABASE 'd', USER 'u')",
        f"ALTER CONNECTION c SET (HOST '{HUSH}')",
    ):
        assert HUSH not in shown_statement(statement)
    assert HUSH not in repr(parse(f"CREATE SECRET s AS '{HUSH}'"))
    assert HUSH not in repr(parse(f"ALTER SECRET s AS '{HUSH}'"))


@pytest.fixture
def account(postgres_url: str) -> Iterator[dict[str, str]]:
    """A role of the database with a password, and how it is reached."""
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(f"CREATE ROLE shop LOGIN SUPERUSER PASSWORD '{HUSH}'")
        found = conninfo_to_dict(postgres_url)
        yield {"host": str(found["host"]), "port": str(found.get("port") or 5432), "dbname": str(found["dbname"])}
        db.execute("REASSIGN OWNED BY shop TO postgres")
        db.execute("DROP ROLE shop")


def test_a_sink_delivers_by_a_connection(
    coordinator: Coordinator, sql: SessionClient, account: dict[str, str], postgres_url: str, tmp_path: Path
) -> None:
    sql(f"CREATE SECRET pw AS '{HUSH}'")
    made = sql(
        f"CREATE CONNECTION shop TO POSTGRES (HOST '{account['host']}', PORT {account['port']},"
        f" DATABASE '{account['dbname']}', USER 'shop', PASSWORD SECRET pw)"
    )
    assert made == ["CREATE CONNECTION"]
    assert sql("VALIDATE CONNECTION shop") == ["VALIDATE CONNECTION"]
    sql("CREATE TABLE t (a int, b text)")
    sql("INSERT INTO t VALUES (1, 'x')")
    made = sql("CREATE SINK s FROM t INTO POSTGRES CONNECTION shop (TABLE 'by_connection') KEY (a)")
    assert made == ["CREATE SINK"]
    shown = "\n".join(sql("SHOW CREATE SINK s"))
    assert "INTO POSTGRES CONNECTION everview.public.shop (TABLE 'by_connection')" in shown
    with psycopg.connect(postgres_url, autocommit=True) as db:

        def delivered(count: int) -> bool:
            coordinator.timeline.advance(coordinator.timeline.now_ms)
            return db.execute("SELECT count(*) FROM by_connection").fetchone() == (count,)

        eventually(lambda: delivered(1))
        assert sql("ALTER SINK s SET (CONNECTION = 'x')")[0].startswith("! 22023")
        assert sql("DROP CONNECTION shop")[0].startswith("! 2BP01")
        assert sql("ALTER CONNECTION shop SET (USER 'postgres')") == ["ALTER CONNECTION"]
        sql("INSERT INTO t VALUES (2, 'y')")
        eventually(lambda: delivered(2))
        assert sql("DROP CONNECTION shop CASCADE") == ["DROP CONNECTION"]
        assert sql("SHOW SINKS") == ["name|comment"]
        db.execute("DROP TABLE by_connection")
    assert HUSH.encode() not in all_bytes(tmp_path / "data")


def test_a_connection_says_what_a_source_would_lack(
    coordinator: Coordinator, sql: SessionClient, account: dict[str, str]
) -> None:
    session = coordinator.connect("everview", "everview", {})
    where = f"HOST '{account['host']}', PORT {account['port']}, DATABASE '{account['dbname']}'"
    session.run(session.prepare(f"CREATE CONNECTION c TO POSTGRES ({where}, USER 'shop')"))
    heard = [each.message for each in session.notices()]
    assert any("wal_level" in each and "ALTER SYSTEM SET wal_level = logical" in each for each in heard), heard
    with pytest.raises(SqlError) as failed:
        session.run(session.prepare("ALTER CONNECTION c SET (DATABASE 'nowhere')"))
    assert failed.value.sqlstate == "08006" and "nowhere" in str(failed.value.detail)
