"""A process is killed in the middle of a hundred transactions a second: the table is the view at its committed time."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from everview.flow.checkpoint import Checkpoint
from everview.flow.keyrange import hashes_of, places_of
from everview.flow.materialization import Materialization
from everview.storage.environment import Environment
from tests.flow.kill_child import binding, contents

KILLS_SHORT, KILLS_LONG = 4, 100
TABLE = "killed"


@pytest.mark.timeout(3000)
def test_the_table_is_the_view_at_its_committed_time(
    tmp_path: Path, postgres_url: str, rng: random.Random, long_forms: bool
) -> None:
    rate = 0.0
    for _ in range(KILLS_LONG if long_forms else KILLS_SHORT):
        rate = max(rate, run_and_kill(tmp_path / "data", postgres_url, rng))
        check(postgres_url)
    assert rate > 0, "the processes were killed in the middle of their transactions"
    with Environment.open(tmp_path / "data", background=False) as environment:
        config = {"connection": postgres_url}
        sink = Materialization.resume(environment, "sink", "postgres", config, [binding(environment, TABLE)])
        sink.start()
        upper = environment.frontiers("u1").upper.only
        assert sink.wait(upper, 30)
        sink.close()
    # A range in which nothing has changed keeps its older checkpoint, and is exact all the same.
    check(postgres_url)
    check(postgres_url, at=upper)


def run_and_kill(folder: Path, url: str, rng: random.Random) -> float:
    """Start the child and kill it some time later; gives its transactions a second at the endpoint."""
    arguments = [sys.executable, "-m", "tests.flow.kill_child", str(folder), url, TABLE]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        transactions, started, deadline = 0, time.monotonic(), None
        while line := child.stdout.readline():
            if line.startswith("ack"):
                transactions = int(line.split()[2])
            if deadline is None:
                started = time.monotonic()
                deadline = started + rng.uniform(0.5, 1.5)
            if time.monotonic() > deadline:
                child.send_signal(signal.SIGKILL)
        errors = child.stderr.read()
        assert child.wait() == -signal.SIGKILL, errors
    return transactions / (time.monotonic() - started)


def check(url: str, at: int | None = None) -> None:
    """Row for row, each range at its own committed time, or at the time given: one snapshot of checkpoint and table."""
    import pyarrow as pa

    with psycopg.connect(url) as db:
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        texts = db.execute("SELECT checkpoint FROM everview_checkpoints WHERE materialization = 'sink'").fetchall()
        found = db.execute(f"SELECT key, value, note FROM {TABLE}").fetchall()
    places = places_of(hashes_of(pa.table({"key": pa.array(range(50), pa.int64())}), ["key"])).tolist()
    assert texts
    expected = []
    for (text,) in texts:
        for span, frontier in Checkpoint.decode(text).pieces:
            view = contents(frontier if at is None else at)
            expected += [(k, v, f"value {v}") for k, v in view.items() if span.begin <= places[k] <= span.end]
    assert sorted(found) == sorted(expected)
