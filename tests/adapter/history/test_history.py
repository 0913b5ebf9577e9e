"""Concurrent clients over the wire, a server that is killed again and again, and a history that has to be in order."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adapter.history.checker import check
from tests.adapter.history.clients import MEANINGS, Client, Stage, begin_round, prepare
from tests.adapter.history.server import ON_SPARK, WITHOUT_SPARK, Server

CLIENTS, READERS_OF_VIEWS = 6, 4
WAIT_S_MAX = 240  # for something to happen at all
KILLS = 2  # of the short form; of the long one, as many as there is time for
LONG_S = float(os.environ.get("EVERVIEW_HISTORY_S", "600"))
JITTER_S = 0.3


def wait_until(ready: Callable[[], bool], what: str) -> None:
    """Wait for something that has to happen sooner or later."""
    late = time.monotonic() + WAIT_S_MAX
    while not ready():
        assert time.monotonic() < late, f"waited for {what} in vain"
        time.sleep(0.02)


def views_read_in(stage: Stage, since: int) -> bool:
    """Whether views and tables were read together since the history had so many operations."""
    return any(each.shows for each in stage.history[since:])


class Run:
    """A run: clients that go on while servers come and go."""

    def __init__(self, command: tuple[str, ...], folder: Path, rng: random.Random) -> None:
        self._command, self._folder, self._rng = command, folder, rng
        self.stage = Stage()
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

    def __enter__(self) -> Run:
        self._start()
        prepare(self.stage)
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
        wait_until(lambda: len(self.stage.history) >= before + operations, "operations to end")
        if until_views:
            wait_until(lambda: views_read_in(self.stage, before), "views to be read")
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
        before = len(self.stage.history)
        wait_until(lambda: views_read_in(self.stage, before), "views to be read")
        wait_until(lambda: any(each.as_of for each in self.stage.history[before:]), "the past to be read")
        self.stage.stopped.set()
        for thread in self._threads:
            thread.join(WAIT_S_MAX)
        for round in range(0, self.stage.round + 1, 10):
            self._observer.read_everything(list(range(round, min(round + 10, self.stage.round + 1))))
        self._observer.close()
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


def check_run(run: Run) -> None:
    """Nothing went wrong, nothing is out of order, and enough was done for that to mean something."""
    stage = run.stage
    assert not stage.problems, stage.problems[:3]
    assert not run.defects, run.defects[0][-4000:]
    found = check(stage.history, MEANINGS)
    assert not found, "\n".join(map(str, found[:10]))
    done = Counter(each.outcome for each in stage.history)
    seen = sum(bool(each.shows) for each in stage.history)
    print(
        f"{run.kills} kills, {dict(done)}, {seen} reads of everything, {sum(each.as_of for each in stage.history)} past"
    )


@pytest.mark.timeout(LONG_S + 900)
def test_no_anomaly_without_spark(tmp_path: Path, rng: random.Random, long_forms: bool) -> None:
    over = time.monotonic() + LONG_S
    with Run(WITHOUT_SPARK, tmp_path / "data", rng) as run:
        while run.kills < KILLS or (long_forms and time.monotonic() < over):
            operations = rng.randrange(10, 1_000 if long_forms else 100)
            run.live(operations, until_views=rng.random() < 0.7)
            run.again()
        run.finish()
    check_run(run)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(LONG_S + 900)
def test_no_anomaly_on_spark(tmp_path: Path, rng: random.Random) -> None:
    over = time.monotonic() + LONG_S
    with Run(ON_SPARK, tmp_path / "data", rng) as run:
        while run.kills < KILLS or time.monotonic() < over:
            run.live(rng.randrange(10, 2_000), until_views=rng.random() < 0.6)
            run.again()
        run.finish()
    check_run(run)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("defect", "kind"),
    [
        ("loses writes", "stale read"),
        ("tears transactions", "torn transaction"),
        ("writes twice", "doubled write"),
    ],
)
def test_a_server_that_errs_is_found_out(tmp_path: Path, rng: random.Random, defect: str, kind: str) -> None:
    """So what the others do not find would have been found."""

    def written(run: Run, tables: int) -> int:
        done = [each for each in list(run.stage.history) if each.outcome == "ok" and not each.increments]
        return sum(len(each.adds) == tables for each in done)

    with Run((*WITHOUT_SPARK, defect), tmp_path / "data", rng) as run:
        wait_until(lambda: written(run, 1) >= 40 and written(run, 2) >= 1, "writes of each kind")
        run.finish()
    assert kind in {each.kind for each in check(run.stage.history, MEANINGS)}
