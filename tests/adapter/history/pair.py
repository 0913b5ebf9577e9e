"""A leader and a standby on shared stores, of which the leader is killed or paused under load, again and again.

python -m tests.adapter.history.pair PORT CONSENSUS BLOB FOLDER

serves without Spark once it leads, as `everview serve --standby` does, and exits with 1 when it is fenced off. Clients
have both hosts in their address, and find the leader by themselves.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import sqlite3
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg

from everview.errors import EverviewError
from everview.instance import Folder, Instance, StandingBy, StoppedStandingBy
from everview.serve.cli import keep_serving, stop_signals
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, start
from everview.storage.stores import StoreAddresses
from tests.adapter.history.clients import Client, Connection, Stage, begin_round, is_lost
from tests.adapter.history.run import JITTER_S, WAIT_S_MAX, Run
from tests.adapter.history.server import STOP_S_MAX, Server
from tests.waiting import eventually

SILENCE_MS = 2_000  # until the standby takes over
CONNECT_S_MAX = 5  # a server that is paused never answers
READS_OF_STALE = 40  # tried of a leader that wakes up
TOTALS = "SELECT round, n, s FROM totals ORDER BY round"


class TwoHosts(Stage):
    """Clients that know both servers, and give a connection up when they are told to."""

    def __init__(self, ports: tuple[int, int]) -> None:
        super().__init__()
        self._ports, self._open = ports, list[Connection]()

    def connect(self) -> Connection:
        made = connected(",".join(map(str, self._ports)), host="127.0.0.1,127.0.0.1", target="read-write")
        self._open = [*(each for each in self._open if not each.closed), made]
        return made

    def cut(self) -> None:
        """End all connections, as clients that lose patience do: a server that is paused keeps them open."""
        for each in self._open:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(each.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)


class Stale(Client):
    """A client that stays with one server whatever happens, and reads."""

    def __init__(self, stage: Stage, port: int, rng: random.Random) -> None:
        super().__init__(stage, "stale", rng)
        self._port = port

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connected(str(self._port))
        return self._connection

    def begin(self) -> None:
        """Connect while the server leads."""
        self._connected().execute("SELECT 1")

    def run(self) -> None:
        """Read until the server is gone."""
        for _ in range(READS_OF_STALE):
            try:
                self.read_a_table()
                self.read_counters()
            except Exception as error:
                if not is_lost(error):
                    self._stage.problems.append(f"{self.name}: {type(error).__name__}: {error}")
                break
        self.close()


class Pair(Run):
    """A run over two servers, of which one leads."""

    def __init__(self, stores: StoreAddresses, folder: Path, rng: random.Random) -> None:
        self._ports = (free_port(), free_port())
        self._hosts = TwoHosts(self._ports)
        super().__init__((), folder, rng, self._hosts)
        self._stores, self._lives, self._leader = stores, dict[int, Server](), 0
        self._sunk = folder / "totals.db"

    @property
    def leader(self) -> Server:
        """The server that leads, or is to lead next."""
        return self._lives[self._leader]

    def prepare(self) -> None:
        super().prepare()
        with self.stage.connect() as connection:
            place = f"PATH '{self._sunk}', TABLE 'totals'"
            connection.execute(f"CREATE SINK sunk FROM totals INTO SQLITE ({place}) KEY (round)")

    def fail(self, operations: int, number: signal.Signals) -> None:
        """Let clients do so many things, kill or pause the leader, and go on with the other one."""
        before = len(self.stage.history)
        eventually(lambda: len(self.stage.history) >= before + operations, WAIT_S_MAX, shown=self._shown)
        time.sleep(self._rng.random() * JITTER_S)
        former, port = self.leader, self._ports[self._leader]
        stale = Stale(self.stage, port, self._rng)
        if number == signal.SIGSTOP:
            stale.begin()
            os.killpg(former.pid, number)
        else:
            former.kill()
        self._leader = 1 - self._leader
        self._hosts.cut()
        self._observer.close()
        self.leader.port()
        self.kills += 1
        eventually(self._begin_round, WAIT_S_MAX, shown=self._shown)
        if number == signal.SIGSTOP:
            self._wake(former, stale)
        self._begin(1 - self._leader)

    def check_sink(self) -> None:
        """The sink is what its view is; call it once clients have ended."""
        with self.stage.connect() as connection:
            wanted = [(round, n, int(s)) for round, n, s in connection.execute(TOTALS)]

        def delivered() -> bool:
            with closing(sqlite3.connect(self._sunk)) as database:
                found = database.execute(TOTALS).fetchall()
            return [(round, n, int(s)) for round, n, s in found] == wanted

        eventually(delivered, WAIT_S_MAX, shown=self._shown)

    def stop(self) -> None:
        """Let both end well; the one that stands by first, or it would lead."""
        for number in (1 - self._leader, self._leader):
            self._lives.pop(number).stop()

    def __exit__(self, *rest: object) -> None:
        super().__exit__(*rest)
        for each in self._lives.values():
            each.kill()

    def _wake(self, former: Server, stale: Stale) -> None:
        """Wake a leader up that has been replaced, with a question already there."""
        before = len(self.stage.history)
        eventually(lambda: len(self.stage.history) >= before + 20, WAIT_S_MAX, shown=self._shown)
        asking = threading.Thread(target=stale.run)
        asking.start()
        os.killpg(former.pid, signal.SIGCONT)
        asking.join(WAIT_S_MAX)
        eventually(lambda: not former.alive, STOP_S_MAX, shown=former.said)
        assert "error: this server stops: another process has opened this environment" in former.said()

    def _begin_round(self) -> bool:
        try:
            self._observer.read_frontiers()
            begin_round(self.stage)
        except psycopg.OperationalError as error:
            if not is_lost(error):
                raise
            self._observer.close()
            return False
        return True

    def _start(self) -> None:
        self._begin(0).port()
        self._begin(1)

    def _begin(self, number: int) -> Server:
        words = (str(self._ports[number]), str(self._stores.consensus), str(self._stores.blob))
        life = Server((sys.executable, "-m", "tests.adapter.history.pair", *words), self._folder / f"server{number}")
        self._lives[number] = life
        self._servers.append(life)
        eventually(lambda: life.said() or not life.alive, WAIT_S_MAX)
        return life

    def _shown(self) -> str:
        return "\n".join(each.said()[-1000:] for each in self._lives.values())


def connected(port: str, host: str = "127.0.0.1", target: str = "any") -> Connection:
    """A connection to one server, or to whichever of several takes writes."""
    options: dict[str, Any] = {"user": "everview", "dbname": "everview", "connect_timeout": CONNECT_S_MAX}
    return psycopg.connect(host=host, port=port, target_session_attrs=target, autocommit=True, **options)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(port: int, stores: StoreAddresses, folder: Path) -> None:
    """Stand by, serve, and raise when another server has taken over."""
    options = Options(pg=Address("127.0.0.1", port), http=None)
    with stop_signals() as stop, Folder(folder) as opened:
        waiting = StandingBy(stop, SILENCE_MS, print)
        try:
            instance = Instance(opened, stores=stores, spark=None, standby=waiting)
        except StoppedStandingBy:
            return
        with instance, start(instance.coordinator, options, Metrics()) as running:
            print(f"psql -h {running.pg.host} -p {running.pg.port}")
            keep_serving(stop, running, instance, time.monotonic())


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), StoreAddresses(*sys.argv[2:4]), Path(sys.argv[4]))
    except EverviewError as error:
        print(f"error: {error}")
        sys.exit(1)
