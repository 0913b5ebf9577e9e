"""Folders for files of roles that are not superusers: nothing outside of them is read or written, by no way there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.errors import EverviewError
from everview.flow.drivers.contract import CONFINED
from everview.flow.drivers.parquet import ParquetDriver
from everview.flow.drivers.sqlite import _connection
from everview.reach.files import ALLOWED, PlaceRefused, check_opened, checked_folders
from everview.storage.blob.local import LocalBlob
from everview.storage.stores import open_blob
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

NAMES_BELOW = ("spark.log", "lock", "consensus.db-wal", "consensus.dbx", "new.db", "blob/new.db", "a/b/c.db")
SECRET = '{"a": 42}\n'


@dataclass
class Folders:
    """A folder that is allowed and one that is not."""

    allowed: Path
    outside: Path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    found = Folders(tmp_path / "allowed", tmp_path / "outside")
    found.allowed.mkdir()
    found.outside.mkdir()
    (found.outside / "secret.jsonl").write_text(SECRET)
    monkeypatch.setenv(ALLOWED, str(found.allowed))
    return found


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def ann(coordinator: Coordinator) -> SessionClient:
    sql = SessionClient(coordinator)
    for statement in ("CREATE ROLE ann", "CREATE TABLE t (a int)", "INSERT INTO t VALUES (1), (2)"):
        assert not sql(statement)[0].startswith("!")
    return SessionClient(coordinator, "ann")


def test_other_roles_have_files_in_folders_that_are_allowed(ann: SessionClient, folders: Folders) -> None:
    at = folders.allowed
    assert ann(f"CREATE SINK one FROM t INTO SQLITE (PATH '{at}/x.db', TABLE 't') KEY (a)") == ["CREATE SINK"]
    assert ann(f"CREATE SINK two FROM t INTO PARQUET (PATH '{at}/p') KEY (a)") == ["CREATE SINK"]
    assert ann(f"CREATE SINK three FROM t INTO CDC FILES '{at}/c'") == ["CREATE SINK"]
    assert ann(f"CREATE SINK four FROM t INTO CDC FILES '{at}/sub/../d'") == ["CREATE SINK"]
    assert ann("ALTER SINK one SET (INTERVAL_MS 10)") == ["ALTER SINK"]
    assert ann("ALTER SINK three SET (INTERVAL_MS 10)") == ["ALTER SINK"]

    def rows() -> list[tuple[int]]:
        if not (at / "x.db").exists():
            return []
        with sqlite3.connect(at / "x.db") as db:
            try:
                return db.execute("SELECT a FROM t ORDER BY a").fetchall()
            except sqlite3.Error:
                return []

    assert eventually(lambda: rows() == [(1,), (2,)])
    assert eventually(lambda: bool(list((at / "p").glob("*.parquet"))) and bool(list((at / "c").glob("*.jsonl"))))
    assert ann(f"CREATE SOURCE back (a int) FROM CDC FILES '{at}/c'") == ["CREATE SOURCE"]
    assert eventually(lambda: ann("SELECT a FROM back ORDER BY a") == ["a", "1", "2"])
    (at / "again").mkdir()
    for kind, name in (("SINK", "one"), ("SINK", "three"), ("SOURCE", "back")):
        created = ann(f"SHOW CREATE {kind} {name}")[1].partition("|")[2]
        again = created.replace(f"public.{name} ", f"public.{name}_again ").replace(str(at), f"{at}/again")
        assert "CONFINED" in again and ann(again) == [f"CREATE {kind}"], again
    for name in ("one", "two", "three", "four"):
        assert ann(f"DROP SINK {name}") == ["DROP SINK"]


def test_nothing_else_is_reached(ann: SessionClient, folders: Folders, coordinator: Coordinator) -> None:
    at, outside = folders.allowed, folders.outside
    (at / "link").symlink_to(outside)
    (at / "file.db").symlink_to(outside / "x.db")
    for statement in (
        f"CREATE SINK s FROM t INTO SQLITE (PATH '{outside}/x.db', TABLE 't') KEY (a)",
        f"CREATE SINK s FROM t INTO SQLITE (PATH '{at}/../outside/x.db', TABLE 't') KEY (a)",
        f"CREATE SINK s FROM t INTO SQLITE (PATH '{at}/link/x.db', TABLE 't') KEY (a)",
        f"CREATE SINK s FROM t INTO SQLITE (PATH '{at}/file.db', TABLE 't') KEY (a)",
        f"CREATE SINK s FROM t INTO SQLITE (TABLE 't') KEY (a) WITH (PATH '{outside}/x.db')",
        f"CREATE SINK s FROM t INTO SQLITE (PATH '{at}/x.db', TABLE 't', CONFINED false) KEY (a)",
        f"CREATE SINK s FROM t INTO SQLITE (PATH '{at}/x.db', TABLE 't') KEY (a) WITH (CONFINED false)",
        f"CREATE SINK s FROM t INTO PARQUET (PATH '{at}', FOLDER '../outside') KEY (a)",
        f"CREATE SINK s FROM t (FOLDER '../outside') KEY (a) INTO PARQUET (PATH '{at}')",
        f"CREATE SINK s FROM t INTO PARQUET (PATH '{at}/link') KEY (a)",
        f"CREATE SINK s FROM t INTO CDC FILES '{outside}'",
        f"CREATE SINK s FROM t INTO CDC FILES 'file://{at}'",
        "CREATE SINK s FROM t INTO CDC FILES 's3://bucket/x'",
        f"CREATE SINK s FROM t INTO DELTA (PATH '{at}/delta') KEY (a)",
        f"CREATE SINK s FROM t INTO COMMAND '{at}/program' KEY (a)",
        f"CREATE SOURCE s (a int) FROM CDC FILES '{outside}'",
        f"CREATE SOURCE s (a int) FROM CDC FILES '{at}/link'",
        f"CREATE SOURCE s (a int) FROM CDC FILES '{at}/../outside'",
        f"CREATE SOURCE s (a int) FROM CDC FILES '{coordinator.environment.folder}'",
    ):
        assert ann(statement)[0].startswith("! 42501 permission denied to create a"), statement
    assert sorted(path.name for path in outside.iterdir()) == ["secret.jsonl"]


def test_without_the_option_there_is_no_folder(ann: SessionClient, tmp_path: Path) -> None:
    (said, *_) = ann(f"CREATE SOURCE s (a int) FROM CDC FILES '{tmp_path}'")
    assert said.startswith("! 42501 permission denied to create a source from a change stream")


def test_a_superuser_is_not_confined_but_kept_off_the_environment(
    ann: SessionClient, coordinator: Coordinator, folders: Folders
) -> None:
    sql, own = SessionClient(coordinator), coordinator.environment.folder
    (folders.allowed / "back").symlink_to(own)
    for statement in (
        f"CREATE SINK s FROM t INTO PARQUET (PATH '{folders.allowed}', FOLDER '../data/blob') KEY (a)",
        f"CREATE SINK s FROM t INTO SQLITE (TABLE 't') KEY (a) WITH (PATH '{own}/consensus.db')",
        f"CREATE SINK s FROM t INTO CDC FILES 'file://{str(own).replace('data', '%64ata')}/blob'",
        *(f"CREATE SINK s FROM t INTO SQLITE (PATH '{own}/{name}', TABLE 't') KEY (a)" for name in NAMES_BELOW),
        f"CREATE SINK s FROM t INTO PARQUET (PATH '{own}') KEY (a)",
        f"CREATE SINK s FROM t INTO CDC FILES '{own}/new/folder'",
        f"CREATE SINK s FROM t INTO CDC FILES '{folders.allowed}/back/folder'",
        f"CREATE SOURCE s (a int) FROM CDC FILES '{own}/new'",
    ):
        assert ann(statement)[0].startswith("! 42501"), statement
        assert "is a part of the server's own data" in sql(statement)[0], statement
    assert sql(f"CREATE SINK s FROM t INTO CDC FILES '{folders.outside}/c'") == ["CREATE SINK"]
    assert ann(f"CREATE SINK u FROM t INTO CDC FILES '{folders.outside}/c'")[0].startswith("! 42501")
    assert sql("ALTER SINK s OWNER TO ann") == ["ALTER SINK"]
    assert ann("ALTER SINK s SET (INTERVAL_MS 10)")[0].startswith("! 42501")
    assert sql("DROP SINK s") == ["DROP SINK"]


def test_a_source_does_not_follow_links_that_come_later(ann: SessionClient, folders: Folders) -> None:
    """What was checked at CREATE is not what is there when it is read."""
    at = folders.allowed / "c"
    at.mkdir()
    assert ann(f"CREATE SOURCE s (a int) FROM CDC FILES '{at}'") == ["CREATE SOURCE"]
    (at / "1.jsonl").symlink_to(folders.outside / "secret.jsonl")

    def error() -> str:
        return "\n".join(ann("SELECT error FROM mz_internal.mz_source_statuses WHERE name = 's'"))

    assert eventually(lambda: "is not inside an allowed folder" in error()), error()
    bad = ann("SELECT * FROM mz_internal.mz_source_bad_records")
    assert not any("42" in line for line in bad), bad


def test_a_folder_that_is_swapped_for_a_link(folders: Folders) -> None:
    at = folders.allowed / "c"
    blob = open_blob(str(at), confined=True)
    blob.put("x.jsonl", b"1")
    (folders.outside / "x.jsonl").write_text(SECRET)
    at.rename(folders.allowed / "before")
    at.symlink_to(folders.outside)
    for attempt in (
        lambda: blob.open("x.jsonl"),
        lambda: blob.open("secret.jsonl"),
        lambda: blob.put("y.jsonl", b"2"),
        lambda: blob.delete("secret.jsonl"),
        lambda: open_blob(str(at), confined=True),
        lambda: open_blob(str(at), True, confined=True),
    ):
        with pytest.raises(PlaceRefused):
            attempt()
    assert sorted(path.name for path in folders.outside.glob("*.jsonl")) == ["secret.jsonl", "x.jsonl"]
    with pytest.raises(PlaceRefused):
        open_blob("memory:", confined=True)


def test_a_temporary_folder_that_is_a_link(folders: Folders) -> None:
    at = folders.allowed / "c"
    blob = LocalBlob(at, confined=True)
    (at / ".tmp~").symlink_to(folders.outside)
    with pytest.raises(PlaceRefused):
        blob.put("x.jsonl", b"1")
    with pytest.raises(PlaceRefused):
        LocalBlob(at, confined=True)
    assert [path.name for path in folders.outside.iterdir()] == ["secret.jsonl"]


def test_what_is_not_a_file_keeps_nobody_waiting(folders: Folders) -> None:
    blob = LocalBlob(folders.allowed / "c", confined=True)
    os.mkfifo(folders.allowed / "c" / "pipe.jsonl")
    with pytest.raises(EverviewError):
        blob.open("pipe.jsonl")
    (folders.allowed / "c" / "real.jsonl").write_text("x")
    (folders.allowed / "c" / "near.jsonl").symlink_to(folders.allowed / "c" / "real.jsonl")
    assert blob.open("near.jsonl").read() == b"x"  # a link that stays inside is fine


def test_an_open_file_is_looked_at(folders: Folders) -> None:
    with (folders.outside / "secret.jsonl").open() as file, pytest.raises(PlaceRefused):
        check_opened(file.fileno(), folders.allowed / "x")


def test_databases_and_folders_that_are_swapped(folders: Folders) -> None:
    (folders.allowed / "x.db").symlink_to(folders.outside / "x.db")
    with pytest.raises(PlaceRefused):
        _connection({"path": str(folders.allowed / "x.db"), CONFINED.name: True})
    assert not (folders.outside / "x.db").exists()
    driver = ParquetDriver({"path": str(folders.allowed / "p"), CONFINED.name: "true"})
    (folders.allowed / "p").mkdir()
    (folders.allowed / "p" / "_staged").symlink_to(folders.outside)
    with pytest.raises(PlaceRefused):
        driver._check(folders.allowed / "p" / "_staged")


def test_folders_that_cannot_be_allowed(tmp_path: Path, folders: Folders) -> None:
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(data)
    for folder in (data, data / "sub", tmp_path, tmp_path / "link"):
        with pytest.raises(EverviewError, match="overlaps with the server's own data"):
            checked_folders([folder], data)
    with pytest.raises(EverviewError, match="is not a folder"):
        checked_folders([tmp_path / "none"], data)
    assert checked_folders([folders.allowed, folders.outside], data) == f"{folders.allowed}:{folders.outside}"
