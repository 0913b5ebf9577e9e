"""`everview doctor` finds what is missing, and one broken part hides no other."""

from __future__ import annotations

import os
import socket
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner

import everview
from everview.cli import app
from everview.compute.engine.java import JavaUnavailable
from everview.serve import doctor

HERE = ("--spark", "")


def said(*words: object, code: int) -> str:
    result = CliRunner().invoke(app, ["doctor", *map(str, words)])
    assert result.exit_code == code, result.output
    return result.output


def test_all_is_well(tmp_path: Path) -> None:
    output = said("--data", tmp_path / "new", *HERE, code=0)
    assert output.endswith("Everything that is needed is here.\n")
    assert "does not exist yet" in output and "there is no environment yet" in output
    assert not (tmp_path / "new").exists()
    with everview.open(tmp_path / "data", spark=None) as db:
        output = said("--data", tmp_path / "data", *HERE, code=0)
        assert "consensus.db answers in" in output and "can be written and read" in output
        db.sql("CREATE TABLE t (a int)")  # nobody was fenced off
    assert not list((tmp_path / "data" / "blob" / "doctor").glob("*"))


def test_shared_stores(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    consensus = f"{postgres_url}&everview_schema=doctor_{os.getpid()}"
    stores = ["--consensus", consensus, "--blob", f"file://{tmp_path}/blob"]
    with everview.open(tmp_path / "data", spark=None, consensus=consensus, blob=stores[3]):
        output = said("--data", tmp_path / "data", *stores, *HERE, code=0)
    assert "its clock" in output and "host=" not in output
    monkeypatch.setattr(doctor, "_database_clock", lambda url: (1_000.0, 1_090.0))
    assert "this machine's clock is 90.0 s ahead of its clock" in said(*stores, "--data", tmp_path, *HERE, code=0)


def test_everything_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part is told of, with what to do, in one run."""

    def no_java() -> None:
        raise JavaUnavailable("no Java 17 or newer was found", detail="JAVA_HOME is missing", hint="install Java")

    def missing(name: str) -> str:
        raise PackageNotFoundError(name) if name == "pyspark" else AssertionError(name)

    monkeypatch.setattr("everview.compute.engine.java.find_java", no_java)
    monkeypatch.setattr(doctor, "requires", lambda _: ["pyspark==4.2.1", "redis==8.1.0; extra == 'redis'"])
    monkeypatch.setattr(doctor, "version", missing)
    monkeypatch.setattr(doctor, "PYTHONS", ((3, 5), (3, 6)))
    (tmp_path / "file").write_text("not a folder")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(doctor, "PG_PORT", port)
        stores = ["--consensus", "postgresql://127.0.0.1:1/nothing", "--blob", f"{tmp_path}/file/blob"]
        output = said("--data", tmp_path / "data", *stores, *HERE, code=1)
    for line in (
        "✗ Python",
        "✗ Java       no Java 17 or newer was found",
        "✗ packages   pyspark is missing",
        f"! ports      {port}, for SQL, is in use",
        "✗ metadata   the database cannot be used",
        "✗ data",
        "have to be mended.",
    ):
        assert line in output, (line, output)


def test_packages_that_are_not_those_that_were_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "requires", lambda _: ["psycopg[binary]==3.3.8", "numpy==1.0"])
    monkeypatch.setattr(doctor, "version", lambda name: {"psycopg": "3.3.8", "numpy": "2.0"}[name])
    (finding,) = doctor._check_packages()
    assert (finding.state, finding.text) == ("note", "numpy 2.0 instead of 1.0")
