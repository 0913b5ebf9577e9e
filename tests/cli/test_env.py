"""`everview env`, and servers that stand by for one another, as processes that are killed and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import psycopg
import pytest
from typer.testing import CliRunner

import everview
from everview.cli import app
from everview.closing import Closing
from everview.errors import EverviewError
from tests.cli.test_serve import EVERVIEW, free_port
from tests.waiting import eventually

NO_SPARK = "sc://127.0.0.1:1"  # nobody is at this address, and to find that out takes no Java


def run(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if isinstance(result.exception, EverviewError):
        return f"{result.exception}"
    assert result.exit_code == code, result.output
    return result.output


def apart(*words: object) -> str:
    """What a command says that does not open the environment. In a process of its own, for it begins to start Spark."""
    done = subprocess.run([*EVERVIEW, *map(str, words)], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def rows(folder: Path, text: str) -> list[tuple[object, ...]]:
    with everview.open(folder, spark=None) as db:
        return [tuple(row) for row in db.sql(text)]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    with everview.open(tmp_path / "data", spark=None) as db:
        db.sql("CREATE TABLE t (a int, b text)")
        db.sql("INSERT INTO t SELECT n, repeat('x', 20) FROM generate_series(1, 30000) AS n")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT a % 10 AS k, count(*) AS n FROM t GROUP BY 1")
        db.sql("SELECT * FROM v")
    return tmp_path / "data"


SUMS = "SELECT count(*), sum(n) FROM v"


def test_backup_of_a_running_environment_and_restore(made: Path, tmp_path: Path) -> None:
    with everview.open(made, spark=None) as db:
        said = run("env", "backup", tmp_path / "backup", "--data", made)
        assert said.startswith("Backed up") and str(tmp_path / "backup") in said
        db.sql("INSERT INTO t VALUES (30001, 'after')")
    assert "an environment at the target already" in run("env", "backup", tmp_path / "backup", "--data", made)
    assert run("env", "restore", tmp_path / "backup", "--data", tmp_path / "restored").startswith("Restored")
    assert rows(tmp_path / "restored", SUMS) == [(10, 30000)]
    with everview.open(tmp_path / "restored", spark=None) as db:
        db.sql("INSERT INTO t VALUES (5, 'more')")
        assert [tuple(row) for row in db.sql(SUMS)] == [(10, 30001)]
    assert rows(made, SUMS) == [(10, 30001)]


def test_check(made: Path) -> None:
    assert "problems\t0" in run("env", "check", "--data", made)
    assert "problems\t0" in run("env", "check", "--full", "--data", made)
    part = next(path for path in sorted((made / "blob").rglob("*")) if path.is_file())
    sound = part.read_bytes()
    part.chmod(0o600)
    part.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert "problems\t0" in run("env", "check", "--data", made)  # it looks at sizes alone
    assert "its checksum" in run("env", "check", "--full", "--data", made, code=1) or "is damaged" in run(
        "env", "check", "--full", "--data", made, code=1
    )
    part.unlink()
    assert "is missing" in run("env", "check", "--data", made, code=1)
    assert "there is no environment in" in run("env", "check", "--data", made / "nothing")


def test_copy_to_postgresql_and_back(made: Path, tmp_path: Path, postgres_url: str) -> None:
    consensus = f"{postgres_url}&everview_schema=copied_{os.getpid()}"
    blob = f"file://{tmp_path}/blob"
    to = ["--to-consensus", consensus, "--to-blob", blob]
    with everview.open(made, spark=None):
        assert "has the environment open" in run("env", "copy", "--data", made, *to)
        assert "no target is named" in run("env", "copy", "--data", made, "--to-consensus", consensus)
    assert run("env", "copy", "--data", made, *to).startswith("Copied")
    with everview.open(tmp_path / "local", spark=None, consensus=consensus, blob=blob) as db:
        assert [tuple(row) for row in db.sql(SUMS)] == [(10, 30000)]
    stores = ["--consensus", consensus, "--blob", blob]
    assert "already" in run("env", "init", "--data", tmp_path / "local", *stores)
    assert run("env", "copy", "--data", tmp_path / "local", *stores, "--to-data", tmp_path / "back").startswith(
        "Copied"
    )
    assert rows(tmp_path / "back", SUMS) == [(10, 30000)]


def test_a_folder_with_an_environment_is_not_used_for_another(made: Path, postgres_url: str) -> None:
    consensus = f"{postgres_url}&everview_schema=other_{os.getpid()}"
    with pytest.raises(EverviewError, match="holds an environment of its own"):
        everview.open(made, spark=None, consensus=consensus)
    assert rows(made, SUMS) == [(10, 30000)]


def test_passwords_are_not_shown(tmp_path: Path, postgres_url: str) -> None:
    from everview.storage.urls import without_secrets

    assert without_secrets("postgresql://u:secret@h:5432/db?password=secret") == "postgresql://h:5432/db"
    assert without_secrets("s3://bucket/prefix?secret_access_key=secret") == "s3://bucket/prefix"
    said = run("env", "init", "--data", tmp_path, "--consensus", f"{postgres_url}&everview_schema=shown_{os.getpid()}")
    assert said.startswith("Made an environment") and "host=" not in said


def test_who_has_the_environment_open_is_not_fenced_off_unasked(tmp_path: Path, postgres_url: str) -> None:
    consensus = f"{postgres_url}&everview_schema=plain_{os.getpid()}"
    stores = ["--consensus", consensus, "--blob", f"file://{tmp_path}/blob"]
    with Server(tmp_path / "leader", stores, free_port(), standby=False) as leader:
        leader.await_line("Ready after")
        with leader.connect() as connection:
            connection.execute("CREATE TABLE t (n int)")
            connection.execute("INSERT INTO t VALUES (1)")
        for words in (["serve", "--spark", NO_SPARK, "--pg-port", "0", "--http-port", "0"], ["sql", "-c", "SELECT 1"]):
            said = apart(*words, "--data", tmp_path / "other", *stores)
            assert f"process {leader.process.pid} on " in said and "has the environment open" in said, said
            assert "--take-over" in said
        with pytest.raises(EverviewError, match="has the environment open"):
            everview.open(tmp_path / "other", spark=None, consensus=consensus, blob=stores[3])
        with leader.connect() as connection:
            connection.execute("INSERT INTO t VALUES (2)")
        # Who is known to have ended is replaced at once.
        leader.process.kill()
        leader.process.wait()
        with everview.open(tmp_path / "other", spark=None, consensus=consensus, blob=stores[3]) as db:
            assert [tuple(row) for row in db.sql("SELECT count(*) FROM t")] == [(2,)]
            more = {"consensus": consensus, "blob": stores[3], "take_over": True}
            with everview.open(tmp_path / "third", spark=None, **more) as third:
                assert [tuple(row) for row in third.sql("SELECT count(*) FROM t")] == [(2,)]
            with pytest.raises(EverviewError, match="another process has opened this environment"):
                db.sql("INSERT INTO t VALUES (3)")
    refused = run("serve", "--standby", "--take-over", "--data", tmp_path / "other", *stores)
    assert "--standby waits for the other server" in refused
    assert "give --data as well" in run("sql", "--take-over", "-c", "SELECT 1")


def test_stores_from_the_environment(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_CONSENSUS", f"{postgres_url}&everview_schema=variables_{os.getpid()}")
    monkeypatch.setenv("EVERVIEW_BLOB", f"file://{tmp_path}/blob")
    with everview.open(tmp_path / "one", spark=None) as db:
        db.sql("CREATE TABLE t (n int)")
        db.sql("INSERT INTO t VALUES (7)")
    assert not (tmp_path / "one" / "consensus.db").exists()
    assert rows(tmp_path / "two", "SELECT n FROM t") == [(7,)]
    # Their options take the variables as well: the environment that this process has open is refused.
    with everview.open(tmp_path / "one", spark=None):
        for words in (["sql", "-c", "SELECT 1"], ["demo"]):
            assert "has the environment open" in apart(*words, "--data", tmp_path / f"of-{words[0]}")
    with everview.open(tmp_path / "three", spark=None, consensus="", blob="") as db:
        db.sql("CREATE TABLE t (n int)")
    # A shell on a server has no use for them.
    assert "refused" in run("sql", "--port", "1", "-c", "SELECT 1", code=2)
    assert "give --data as well" in run("sql", "--blob", f"file://{tmp_path}/blob", "-c", "SELECT 1")


def test_what_a_standby_needs(tmp_path: Path) -> None:
    assert "a standby needs metadata that both servers reach" in run("serve", "--standby", "--data", tmp_path)
    assert "is too short" in run("serve", "--standby", "--data", tmp_path, "--take-over-after", "1 ms")
    assert "give --data as well" in run("sql", "--consensus", "postgresql://h/d", "-c", "SELECT 1")


class Server(Closing):
    """`everview serve`, by default with `--standby`, in a process of its own."""

    def __init__(self, folder: Path, stores: list[str], port: int, standby: bool = True) -> None:
        self.port, self.http_port, self.log = port, free_port(), folder.with_suffix(".log")
        ports = ["--pg-port", str(port), "--http-port", str(self.http_port), "--socket-dir", "", "--auth", "trust"]
        waiting = ["--standby", "--take-over-after", "3 s"] if standby else []
        words = [*EVERVIEW, "serve", *waiting, "--spark", NO_SPARK, "--data", str(folder), *stores, *ports]
        self.process = subprocess.Popen(words, stdout=self.log.open("wb"), stderr=subprocess.STDOUT)

    def await_line(self, text: str) -> None:
        eventually(lambda: text in self.log.read_text(), 120, shown=self.log.read_text)

    def status(self, path: str) -> int:
        try:
            with urlopen(f"http://127.0.0.1:{self.http_port}/{path}") as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        alone = f"host=127.0.0.1 port={self.port} user=everview dbname=everview connect_timeout=3"
        return psycopg.connect(alone, autocommit=True)

    def close(self) -> None:
        for each in (signal.SIGCONT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                self.process.send_signal(each)
        self.process.wait()


class Pair:
    """Two servers of one environment, of which one stands by; and what is known to be written."""

    def __init__(self, folder: Path, postgres_url: str) -> None:
        schema = f"everview_schema=standby_{os.getpid()}"
        self.stores = ["--consensus", f"{postgres_url}&{schema}", "--blob", f"file://{folder}/blob"]
        self._folder, self._ports = folder, (free_port(), free_port())
        self.servers = {0: self._start(0)}
        self.leader, self.written = 0, 0
        self.servers[0].await_line("Ready after")
        self.servers[1] = self._start(1)
        self.standby.await_line("standing by for process")

    @property
    def standby(self) -> Server:
        return self.servers[1 - self.leader]

    def _start(self, number: int) -> Server:
        return Server(self._folder / f"server{number}", self.stores, self._ports[number])

    def restart(self) -> None:
        """Let the one that was stopped stand by."""
        self.standby.close()
        self.servers[1 - self.leader] = self._start(1 - self.leader)
        self.standby.await_line("standing by for process")

    def await_turn(self) -> Server:
        """Wait until the other one leads; gives the former leader."""
        former, self.leader = self.servers[self.leader], 1 - self.leader
        self.servers[self.leader].await_line("Ready after")
        return former

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect to whichever leads, as clients with two hosts in their address do."""
        ports = ",".join(map(str, self._ports))
        hosts = f"host=127.0.0.1,127.0.0.1 port={ports} user=everview dbname=everview"
        return psycopg.connect(f"{hosts} target_session_attrs=read-write connect_timeout=3", autocommit=True)

    def write(self) -> None:
        with self.connect() as connection:
            connection.execute("INSERT INTO t VALUES (%s)", [self.written])
        self.written += 1

    def check(self) -> None:
        """All that was acknowledged is there once, in the table and in the view."""
        with self.connect() as connection:
            found = connection.execute("SELECT count(*), count(DISTINCT n), (SELECT n FROM v) FROM t").fetchall()
            assert found == [(self.written, self.written, self.written)]

    def close(self) -> None:
        for each in self.servers.values():
            each.close()


def test_a_standby_takes_over(tmp_path: Path, postgres_url: str, long_forms: bool) -> None:
    """Whoever leads is paused or killed. What was acknowledged is there, and who wakes up says nothing old."""
    with closing(Pair(tmp_path, postgres_url)) as pair:
        assert (pair.standby.status("healthz"), pair.standby.status("readyz")) == (200, 503)
        with pair.connect() as connection:
            connection.execute("CREATE TABLE t (n int)")
            connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        for turn in range(20 if long_forms else 1):
            pair.write()
            pair.servers[pair.leader].process.send_signal(signal.SIGKILL if turn % 2 else signal.SIGSTOP)
            former = pair.await_turn()
            pair.check()
            pair.write()
            if turn % 2 == 0:
                former.process.send_signal(signal.SIGCONT)
                with suppress(psycopg.Error), former.connect() as connection:
                    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(pair.written,)]
                assert former.process.wait(60) == 1
                former.await_line("another process has opened this environment")
            pair.restart()
        assert run("env", "promote", "--data", tmp_path / "x", *pair.stores).endswith("has taken over.\n")
        assert pair.await_turn().process.wait(60) == 1
        pair.check()
        pair.restart()
        pair.standby.process.terminate()
        assert pair.standby.process.wait(60) == 0
        pair.standby.await_line("Stopping.")
