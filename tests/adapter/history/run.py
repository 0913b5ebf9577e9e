"""A run of the history: clients that go on while servers come, are killed and come again."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Self

from tests.adapter.history.clients import Client, Stage, begin_round, prepare
from tests.adapter.history.server import Server
from tests.waiting import eventually

CLIENTS, READERS_OF_VIEWS = 6, 4
WAIT_S_MAX = 240  # for something to happen at all
JITTER_S = 0.3


def views_read_in(stage: Stage, since: int) -> bool:
    """Whether views and tables were read together since the history had so many operations."""
    return any(each.shows for each in stage.history[since:])


class Run:
    """A run: clients that go on while servers come and go."""

    def __init__(self, command: tuple[str, ...], folder: Path, rng: random.Random, stage: Stage | None = None) -> None:
        self._command, self._folder, self._rng = command, folder, rng
        self.stage = stage or Stage()
        self.kills = 0
        self._clients = [
            Client(self.stage, f"client {number}", random.Random(rng.random()), views=number < READERS_OF_VIEWS)
            for number in range(CLIENTS)
        ]
        self._observer = Client(self.stage, "observer", random.Random(rng.random()))
        self._threads = [threading.Thread(target=each.run, name=each.name) for each in self._clients]
        self._server: Server | None = None
        self._servers: list[Server] = []

    @property
    def defects(self) -> list[str]:
        """What servers said of their own faults."""
        return [said for each in self._servers if "Traceback" in (said := each.said())]

    def prepare(self) -> None:
        """Make what clients use."""
        prepare(self.stage)

    def __enter__(self) -> Self:
        self._start()
        self.prepare()
        begin_round(self.stage)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stage.stopped.set()
        for thread in self._threads:
            thread.join(WAIT_S_MAX)
        if self._server is not None:
            self._server.kill()

    def live(self, operations: int, *, until_views: bool) -> None:
        """Let clients do so many things, and kill the server at whatever they are."""
        before = len(self.stage.history)
        eventually(
            lambda: len(self.stage.history) >= before + operations, WAIT_S_MAX, shown=lambda: "for operations to end"
        )
        if until_views:
            eventually(lambda: views_read_in(self.stage, before), WAIT_S_MAX)
        time.sleep(self._rng.random() * JITTER_S)
        self._kill()

    def again(self) -> None:
        """Start the next server; some are killed before they listen."""
        while self._rng.random() < 0.2:
            self._launch()
            time.sleep(self._rng.random())
            self._kill()
        self._start()
        self._observer.read_frontiers()
        begin_round(self.stage)

    def finish(self) -> None:
        """Let clients end, look at everything once more, and stop well."""
        self.settle()
        self.stop()

    def settle(self) -> None:
        """Let clients end, and look at everything once more."""
        before = len(self.stage.history)
        eventually(lambda: views_read_in(self.stage, before), WAIT_S_MAX)
        eventually(
            lambda: any(each.as_of for each in self.stage.history[before:]),
            WAIT_S_MAX,
            shown=lambda: "for the past to be read",
        )
        self.stage.stopped.set()
        for thread in self._threads:
            thread.join(WAIT_S_MAX)
        for round in range(0, self.stage.round + 1, 10):
            self._observer.read_everything(list(range(round, min(round + 10, self.stage.round + 1))))
        self._observer.close()

    def stop(self) -> None:
        """Let the server end well."""
        assert self._server is not None
        server, self._server = self._server, None
        server.stop()

    def _launch(self) -> Server:
        self._server = Server(self._command, self._folder)
        self._servers.append(self._server)
        return self._server

    def _start(self) -> None:
        self.stage.port = self._launch().port()

    def _kill(self) -> None:
        assert self._server is not None
        server, self._server = self._server, None
        server.kill()
        self.stage.port = None
        self._observer.close()
        self.kills += 1
