"""Two servers on one environment: the one that lost it answers nothing stale, and stops with one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

SERVER = """
import sys, threading, time
from everview.errors import EverviewError
from everview.instance import Folder, Instance
from everview.serve.cli import keep_serving
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, start

options = Options(pg=Address("127.0.0.1", 0), http=None)
try:
    with (
        Folder(sys.argv[1]) as folder,
        Instance(folder, spark=None) as instance,
        start(instance.coordinator, options, Metrics()) as running,
    ):
        print("port", running.pg.port, flush=True)
        keep_serving(threading.Event(), running, instance, time.monotonic())
except EverviewError as error:
    print("error:", error, flush=True)
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "lock").unlink(missing_ok=True)  # as on a file system without locks
        command = [sys.executable, "-c", textwrap.dedent(SERVER), str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = ""
        while not line.startswith("port "):
            line = self.process.stdout.readline()
            assert line, "the server has ended"
        self.url = f"postgresql://everview@127.0.0.1:{line.split()[1]}/everview"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url, autocommit=True)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[], Server]]:
    servers: list[Server] = []

    def begin() -> Server:
        servers.append(Server(tmp_path / "data"))
        return servers[-1]

    yield begin
    for each in servers:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("asleep", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_one_that_lost_it_answers_nothing_stale(serve: Callable[[], Server], asleep: bool) -> None:
    old = serve()
    with old.connect() as left:
        left.execute("CREATE TABLE t (a int)")
        left.execute("CREATE INDEX ON t (a)")
        for _ in range(8):  # so that it is answered from memory
            assert left.execute("SELECT a FROM t WHERE a = 1").fetchall() == []
        if asleep:
            old.process.send_signal(signal.SIGSTOP)
        new = serve()
        with new.connect() as right:
            right.execute("INSERT INTO t VALUES (1)")
            if asleep:
                old.process.send_signal(signal.SIGCONT)
            for statement in ("SELECT a FROM t WHERE a = 1", "SELECT count(*) FROM t", "INSERT INTO t VALUES (2)"):
                with pytest.raises(psycopg.Error) as refused:
                    left.execute(statement)
                assert refused.value.sqlstate in ("57P01", None)  # it says so, or is gone already
            said, _ = old.process.communicate(timeout=60)
            last = said.splitlines()[-1]
            assert last.startswith("error: this server stops: another process has opened this environment (epoch 2")
            assert "Traceback" not in said
            assert right.execute("SELECT a FROM t").fetchall() == [(1,)]
