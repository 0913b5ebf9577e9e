"""What the options of `everview serve` do, asked of real servers; and what one that was killed leaves to the next."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import psycopg
import pytest

from everview.compute.engine.spark.scratch import PREFIX
from tests.adapter.history.server import Server
from tests.storage.test_environment import open_to_others
from tests.waiting import eventually

# Nobody is at this address, and to find that out takes no Java.
NO_SPARK = "sc://127.0.0.1:1"
NOBODY = 65_534
WARM_S_MAX = 240.0
ANN, SECRET = "ann", "correct horse"
MINUTE_MS, DAY_MS = 60_000, 86_400_000

# `everview`, with a wall clock that is off by so many milliseconds as a file says.
CLOCKED = """
import sys
from pathlib import Path
from everview.adapter import wall_clock
from everview.cli import main
from everview.storage.environment import wall_clock_ms

offset, source = Path(sys.argv.pop(1)), wall_clock.TimeSource
wall_clock.TimeSource = lambda: source(wall_ms=lambda: wall_clock_ms() + int(offset.read_text()))
main()
"""
# `everview`, which also writes down the settings that its Spark has.
TELLING = """
import json, os, sys
from everview.cli import main
from everview.compute.engine.spark import service

place, start = sys.argv.pop(1), service.start

def started(*args, **options):
    spark = start(*args, **options)
    with open(f"{place}.draft", "w") as file:
        json.dump(dict(spark.bulk.sparkContext.getConf().getAll()), file)
    os.replace(f"{place}.draft", place)
    return spark

service.start = started
main()
"""


class Serve(Server):
    """A life of `everview serve`, with a temporary folder of its own and a umask that lets everyone read."""

    def __init__(self, place: Path, *options: str, script: str, argument: Path, spark: str = NO_SPARK) -> None:
        self.data, self.temporary, self.sockets = place / "data", place / "t", place / "s"
        for folder in (self.temporary, self.sockets):
            folder.mkdir(exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", str(self.temporary))
            before = os.umask(0o022)
            try:
                command = (sys.executable, "-c", script, str(argument), "serve", "--spark", spark)
                free = ("--pg-port", "0", "--http-port", "0", "--socket-dir", str(self.sockets))
                super().__init__((*command, *free, *options, "--data"), self.data)
            finally:
                os.umask(before)

    def page(self, name: str) -> str:
        """A page of its HTTP server, whatever its status is."""
        self.port()
        url = next(word for word in self.said().split() if word.endswith("/readyz")).removesuffix("/readyz")
        try:
            return str(urlopen(f"{url}{name}").read().decode())
        except HTTPError as error:
            return str(error.read().decode())

    def figure(self, name: str) -> float:
        """A metric without labels."""
        lines = [line.split() for line in self.page("/metrics").splitlines() if line.startswith(f"{name} ")]
        assert len(lines) == 1, f"{name} is not among the metrics, or more than once"
        return float(lines[0][1])

    def connect(self, user: str = "everview", **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port(), user=user, dbname="everview", autocommit=True, **options
        )

    def leftovers(self) -> set[str]:
        """What is in its temporary folder, and the files of its sockets."""
        return {path.name for folder in (self.temporary, self.sockets) for path in folder.iterdir()}


@contextmanager
def place_for_servers() -> Iterator[Path]:
    """A folder whose path is short enough for Unix sockets, and which other accounts may pass through."""
    place = Path(tempfile.mkdtemp(prefix="ev-"))
    place.chmod(0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def turn(clock: Path, offset_ms: int) -> None:
    """Change by how much a server's clock is off, in one step."""
    draft = clock.with_suffix(".draft")
    draft.write_text(str(offset_ms))
    draft.replace(clock)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with place_for_servers() as found:
        turn(found / "clock", 0)
        (found / "files").mkdir()
        yield found


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Serve]:
    """One server with options of all kinds, for all tests that leave it as it is."""
    options = ("--max-clock-jump", "10 min", "--files", str(place / "files"), "--allow-address", "169.254.7.0/24")
    served = Serve(place, *options, script=CLOCKED, argument=place / "clock")
    try:
        with served.connect() as connection:
            connection.execute(f"CREATE ROLE {ANN} LOGIN PASSWORD '{SECRET}'")
            connection.execute("CREATE TABLE t (a int)")
            connection.execute("INSERT INTO t VALUES (1), (2)")
        yield served
    finally:
        served.kill()


def ask(
    psql: Path, host: str, port: int, *, user: str = "everview", password: str = "", before: Sequence[str] = ()
) -> tuple[int, str]:
    """What psql gives for `SELECT current_user`, and with which status."""
    done = subprocess.run(
        [*before, psql, "-XqAtw", "-h", host, "-p", str(port), "-U", user, "everview", "-c", "SELECT current_user"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd="/",
        env={**os.environ, **({"PGPASSWORD": password} if password else {}), "PGPASSFILE": "/nowhere"},
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def test_psql_over_the_socket(server: Serve, psql: Path) -> None:
    assert ask(psql, str(server.sockets), server.port()) == (0, "everview")
    assert str(server.sockets / f".s.PGSQL.{server.port()}") in server.said()


def test_files_for_roles_that_are_not_superusers(server: Serve, place: Path) -> None:
    with server.connect(ANN) as connection:
        inside, outside = place / "files" / "x.db", place / "x.db"
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied to create a sink"):
            connection.execute(f"CREATE SINK o FROM t INTO SQLITE (PATH '{outside}', TABLE 't') KEY (a)")
        connection.execute(f"CREATE SINK i FROM t INTO SQLITE (PATH '{inside}', TABLE 't') KEY (a)")

        def rows() -> list[tuple[int]]:
            try:
                with sqlite3.connect(inside) as file:
                    return file.execute("SELECT a FROM t ORDER BY a").fetchall()
            except sqlite3.Error:
                return []

        assert eventually(lambda: rows() == [(1,), (2,)])
        connection.execute("DROP SINK i")
    assert not outside.exists()


def test_addresses_that_are_allowed(server: Serve) -> None:
    sink = "CREATE SINK w FROM t INTO POSTGRES (CONNECTION 'postgresql://{}:1/x?connect_timeout=1', TABLE 't') KEY (a)"
    with server.connect() as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(sink.format("169.254.169.254"))
        assert refused.value.sqlstate == "42501"
        with pytest.raises(psycopg.Error) as tried:
            connection.execute(sink.format("169.254.7.9"))
        assert tried.value.sqlstate == "08006", tried.value  # nobody is there


def test_the_clock_jumps_further_than_is_allowed(server: Serve, place: Path) -> None:
    """Less than the bound that was given, though more than the default, is followed; more is refused, and is told."""
    clock = place / "clock"

    def now_ms() -> int:
        with server.connect() as connection:
            ((now,),) = connection.execute("SELECT mz_now() FROM t LIMIT 1").fetchall()
            return int(now)

    names = ("everview_clock_jump_seconds", "everview_clock_jumps_total", "everview_timeline_ahead_seconds")
    began = now_ms()
    assert [server.figure(name) for name in names] == [0, 0, 0]
    turn(clock, 5 * MINUTE_MS)
    assert eventually(lambda: now_ms() >= began + 5 * MINUTE_MS)
    assert [server.figure(name) for name in names] == [0, 0, 0]
    turn(clock, DAY_MS)
    assert eventually(lambda: server.figure(names[1]) == 1)
    assert abs(server.figure(names[0]) - DAY_MS / 1000) < 600
    assert began < now_ms() < began + 60 * MINUTE_MS
    assert "clock" in server.page("/readyz")
    turn(clock, 5 * MINUTE_MS)
    assert eventually(lambda: server.figure(names[0]) == 0)
    assert server.figure(names[1]) == 1


def test_nothing_of_it_is_open_to_others(server: Serve) -> None:
    assert (server.data / "spark.log").exists() and (server.data / "lock").exists()
    assert open_to_others(server.data) == {}


def as_nobody() -> list[str]:
    """What runs a program as another account."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("another account can be tried by root alone, with setpriv")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def system_psql() -> Path:
    found = shutil.which("psql", path="/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip("no psql that other accounts may run")
    return Path(found)


def test_who_needs_a_password_and_what_a_killed_server_leaves(psql: Path) -> None:
    """Three servers on one folder, one after the other: the first two are killed."""
    with place_for_servers() as place:
        turn(place / "clock", 0)

        def serve(*options: str) -> Serve:
            return Serve(place, *options, script=CLOCKED, argument=place / "clock")

        owner = serve()
        try:
            with owner.connect() as connection:
                connection.execute(f"ALTER ROLE everview PASSWORD '{SECRET}'")
            assert eventually(lambda: any(name.startswith(PREFIX) for name in owner.leftovers()))
        finally:
            owner.kill()
        left = owner.leftovers()
        assert {name for name in left if name.startswith((PREFIX, ".s.PGSQL."))} == left and len(left) >= 2

        asking = serve("--auth", "password")
        try:
            for host in (str(asking.sockets), "127.0.0.1"):
                status, said = ask(psql, host, asking.port())
                assert status == 2 and "password" in said, said
                assert ask(psql, host, asking.port(), password=SECRET) == (0, "everview")
            assert not {name for name in left & asking.leftovers() if name.startswith(PREFIX)}
        finally:
            asking.kill()

        trusting = serve("--auth", "trust")
        try:
            assert ask(psql, "127.0.0.1", trusting.port()) == (0, "everview")
            stranger, program = as_nobody(), system_psql()
            assert ask(program, "127.0.0.1", trusting.port(), before=stranger) == (0, "everview")
        finally:
            trusting.stop()
        assert not {name for name in trusting.leftovers() if name.startswith(PREFIX)}


def test_another_account_needs_a_password_by_default(server: Serve) -> None:
    stranger, program = as_nobody(), system_psql()
    for host in (str(server.sockets), "127.0.0.1"):
        status, said = ask(program, host, server.port(), before=stranger)
        assert status == 2 and "password" in said, said
        assert ask(program, host, server.port(), user=ANN, password=SECRET, before=stranger) == (0, ANN)


def test_secrets_are_sealed_with_the_key_that_is_given() -> None:
    with place_for_servers() as place:
        turn(place / "clock", 0)
        keys = []
        for name, byte in (("one", b"1"), ("other", b"2")):
            keys.append(place / name)
            keys[-1].write_bytes(base64.b64encode(byte * 32))
            keys[-1].chmod(0o600)
        for number, key in enumerate(keys):
            served = Serve(place, "--key-file", str(key), script=CLOCKED, argument=place / "clock")
            try:
                with served.connect() as db:
                    if not number:
                        db.execute("CREATE SECRET s AS 'hush'")
                        db.execute(
                            "CREATE CONNECTION c TO POSTGRES (HOST '127.0.0.1', PORT 1, DATABASE 'd', USER 'u',"
                            " PASSWORD SECRET s) WITH (VALIDATE = false)"
                        )
                    with pytest.raises(psycopg.Error) as failed:
                        db.execute("VALIDATE CONNECTION c")
                    wrong = "sealed with another key" in str(failed.value)
                    assert wrong == (key is keys[1]), failed.value
            finally:
                served.kill()
            assert not (place / "data.key").exists()
        keys[0].chmod(0o644)
        served = Serve(place, "--key-file", str(keys[0]), script=CLOCKED, argument=place / "clock")
        try:
            eventually(lambda: "others may read the key file" in served.said())
        finally:
            served.kill()


def test_a_bound_that_is_no_duration(tmp_path: Path) -> None:
    for given, said in (("soon", "is not a duration"), ("10 ms", "is too short")):
        command = [
            sys.executable,
            "-c",
            "from everview.cli import main; main()",
            "serve",
            "--data",
            str(tmp_path / "d"),
        ]
        refused = subprocess.run([*command, "--max-clock-jump", given], capture_output=True, text=True, check=False)
        assert refused.returncode == 1 and said in refused.stderr


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_embedded_spark_is_for_this_account_alone_and_leaves_nothing() -> None:
    """Who has not its secret is not heard, nobody from elsewhere can connect, and what it leaves is removed."""
    with place_for_servers() as place:
        settings = place / "settings.json"
        secret = ("--conf", f"spark.hadoop.fs.s3a.secret.key={SECRET}")
        server = Serve(place, *secret, script=TELLING, argument=settings, spark="local[1]")
        try:
            server.port()
            assert eventually(lambda: "Spark is warm" in server.said() or not server.alive, WARM_S_MAX)
            told = json.loads(settings.read_text())
            assert told["spark.authenticate"] == "true"
            assert told["spark.driver.bindAddress"] == told["spark.driver.host"] == "127.0.0.1"
            assert told["spark.ui.enabled"] == "false"
            below = psutil.Process(server.pid).children(recursive=True)
            (java,) = (each for each in below if each.name() == "java")
            assert told["spark.hadoop.fs.s3a.secret.key"] == SECRET and SECRET not in " ".join(java.cmdline())
            listening = [each.laddr for each in java.net_connections("tcp") if each.status == psutil.CONN_LISTEN]
            assert len(listening) >= 2  # the gateway, the driver and its block manager
            assert {address.ip for address in listening} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
            os.kill(server.pid, signal.SIGKILL)  # and not its Java, which has to notice
            assert eventually(lambda: not java.is_running() or java.status() == psutil.STATUS_ZOMBIE)
            left = {path.name for path in server.temporary.iterdir()}
            assert left and all(name.startswith(PREFIX) for name in left), left
        finally:
            server.kill()
        turn(place / "clock", 0)
        after = Serve(place, script=CLOCKED, argument=place / "clock")
        try:
            after.port()
            assert not left & {path.name for path in after.temporary.iterdir()}
        finally:
            after.stop()
