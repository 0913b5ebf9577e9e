"""A process that writes the suite's workload, delivers it and changes its splits at random, until it is killed.

python -m tests.flow.matrix_child FOLDER SETTINGS: a file of JSON with name, driver, config, resources and deltas.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog

from everview.flow.check.workload import ACCOUNTS, EVENTS, Workload, bindings
from everview.flow.materialization import Materialization, Options
from everview.storage.contract import WriteCapability
from everview.storage.environment import Environment
from tests.flow.created import created

OPTIONS = Options(backoff_s=0.02, backoff_s_max=0.2, heartbeat_s=0.2, interval_ms=0, check_s=0.5)
SPLITS_MAX = 4


class ResumedWorkload(Workload):
    """The workload in an environment that may have some of it already."""

    def __init__(self, environment: Environment, seed: int | str) -> None:
        if EVENTS not in environment.ids():
            super().__init__(environment, seed)
            return
        self._environment, self._rng = environment, random.Random(f"resumed {seed}")
        self._events, self._accounts = (self._writer(id) for id in (EVENTS, ACCOUNTS))
        self.time = self._events.frontier.only
        with environment.contents(ACCOUNTS, max(0, self.time - 1)) as selection:
            rows = selection.contents().to_pylist()
        self._now = {row["c0"]: (row["c0"], row["c1"], row["c2"]) for row in rows}
        with environment.contents(EVENTS, max(0, self.time - 1)) as selection:
            self._next_id = max((row["c0"] for row in selection.contents().to_pylist()), default=1)

    def _writer(self, id: str) -> WriteCapability:
        """A capability of our own, in place of those that earlier processes left behind."""
        environment = self._environment
        left = [environment.present(id, token) for token in environment.shard(id).held if token.startswith("w")]
        _, writer = environment.acquire(id)
        environment.drop(*left)
        return writer


def opened(environment: Environment, settings: dict[str, Any]) -> Materialization:
    """The materialization, made if it is not there."""
    made = bindings(SimpleNamespace(delta_only=settings["deltas"]), settings["resources"])  # type: ignore[arg-type]
    place = settings["name"], settings["driver"], settings["config"], made
    if environment.get(f"flow/{settings['name']}/materialization") is None:
        return created(environment, *place, options=OPTIONS)
    return Materialization.resume(environment, *place, options=OPTIONS)


def main(folder: Path, settings: dict[str, Any]) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # the test reads the numbers below
    rng = random.Random(time.time_ns())
    with Environment.open(folder) as environment:
        workload = ResumedWorkload(environment, rng.getrandbits(32))
        sink = opened(environment, settings)
        sink.start()
        while True:
            workload.write(rng.randint(1, 3))
            done = sink.status().transactions
            if rng.random() < (0.03 if done else 0.001):  # programs take seconds to open, and are to deliver as well
                sink.split(rng.randint(1, SPLITS_MAX))
            print(done, flush=True)
            time.sleep(0.01)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
