"""`everview doctor` finds what is missing, and one broken part hides no other."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

import everview
from everview.cli import app
from everview.compute.engine.java import JavaUnavailable
from everview.serve import doctor
from everview.serve.database import DatabaseServer
from everview.storage.stores import open_consensus
from tests.cli.test_serve import EVERVIEW

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
    monkeypatch.setattr(doctor, "look_at", lambda url: DatabaseServer(1_000.0, 1_090.0))
    assert "this machine's clock is 90.0 s ahead of its clock" in said(*stores, "--data", tmp_path, *HERE, code=0)


def test_shared_stores_that_are_new(tmp_path: Path, postgres_url: str, s3_url: Callable[[str], str]) -> None:
    consensus, blob = f"{postgres_url}&everview_schema=new_{os.getpid()}", s3_url(f"doctor{os.getpid()}")
    stores = ["--consensus", consensus, "--blob", blob]
    output = said("--data", tmp_path / "data", *stores, *HERE, code=0)
    assert "answers; there is no environment yet" in output and "they can be written" in output
    assert output.count("its clock") == 2 and "they belong to" not in output
    with everview.open(tmp_path / "data", spark=None, consensus=consensus, blob=blob):
        assert "they belong to the metadata" in said("--data", tmp_path / "data", *stores, *HERE, code=0)
    other = ["--consensus", consensus, "--blob", s3_url(f"other{os.getpid()}")]
    output = said("--data", tmp_path / "data", *other, *HERE, code=1)
    assert "is not the one that belongs to these metadata (its mark is missing)" in output


def test_a_clock_of_the_object_store_that_is_off(
    tmp_path: Path, s3_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_object_clock", lambda blob, key: time.time() + 90)
    output = said("--data", tmp_path, "--blob", s3_url(f"clock{os.getpid()}"), *HERE, code=0)
    assert "! data       this machine's clock is 90.0 s behind its clock" in output


def test_a_role_that_may_not_write(tmp_path: Path, postgres_url: str) -> None:
    role, schema = f"doctor_reader_{os.getpid()}", f"doctor_role_{os.getpid()}"
    url = f"{postgres_url}&everview_schema={schema}"
    looking = [*HERE, "--data", tmp_path / "data", "--consensus", url.replace("postgres:@", f"{role}@")]
    with psycopg.connect(postgres_url, autocommit=True) as db:
        (database,) = db.execute("SELECT current_database()").fetchone() or ("",)
        db.execute(f"REVOKE CREATE ON DATABASE {database} FROM PUBLIC")
        db.execute(f"CREATE ROLE {role} LOGIN")
        output = said(*looking, code=1)
        assert f"✗ metadata   they cannot be written: the role {role} lacks CREATE in the database" in output
        assert f'GRANT CREATE ON DATABASE "{database}" TO {role}' in output
        db.execute(f"CREATE SCHEMA {schema}; GRANT USAGE ON SCHEMA {schema} TO {role}")
        assert f"lacks CREATE in the schema {schema}" in said(*looking, code=1)
        open_consensus(url).close()
        db.execute(f"GRANT SELECT, INSERT ON {schema}.entries TO {role}")
        output = said(*looking, code=1)
        assert "lacks UPDATE, DELETE on its table" in output
        assert f'GRANT UPDATE, DELETE ON "{schema}"."entries" TO {role}' in output
        db.execute(f"GRANT UPDATE, DELETE ON {schema}.entries TO {role}")
        assert "they can be written" in said(*looking, code=0)
        db.execute(f"ALTER ROLE {role} SET default_transaction_read_only = on")
        assert "they cannot be written: transactions are read-only" in said(*looking, code=1)
        db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}; DROP SCHEMA {schema} CASCADE")


@pytest.mark.spark
def test_spark_reaches_the_data(tmp_path: Path) -> None:
    """In a process of its own: it ends the Spark that it starts."""
    words = ["--data", str(tmp_path / "data"), "--blob", f"file://{tmp_path}/blob", "--spark", "local[1]"]
    done = subprocess.run([*EVERVIEW, "doctor", *words], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "at local[1], 1 cores, first job after" in done.stdout
    assert "its executors can read and write the data" in done.stdout


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
