"""Rows that last five seconds, inserted with psql and watched until all are gone: the moments are exact."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.server.run import Running, start
from tests.server.conftest import LOCAL
from tests.waiting import eventually

START = 1_613_084_609_000
SHOW = "SELECT *, mz_logical_timestamp() FROM valid ORDER BY insert_ts;"
DEFINITIONS = """
CREATE TABLE events (content text, insert_ts numeric, delete_ts numeric);
CREATE MATERIALIZED VIEW valid AS
SELECT content, insert_ts, delete_ts
FROM events
WHERE mz_logical_timestamp() >= insert_ts
  AND mz_logical_timestamp()  < delete_ts;
CREATE MATERIALIZED VIEW valid_events AS
SELECT content, count(*)
FROM events
WHERE mz_logical_timestamp() >= insert_ts
  AND mz_logical_timestamp()  < delete_ts
GROUP BY content;
"""
INSERT = "insert into events VALUES ('hello', mz_logical_timestamp(), mz_logical_timestamp() + 5000);"


class Clock:
    """A wall clock that the test moves."""

    def __init__(self) -> None:
        self.now_ms = START

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def coordinator(tmp_path: Path, clock: Clock) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data", clock=clock) as opened:
        yield opened


@pytest.fixture
def real(coordinator: Coordinator) -> Iterator[Running]:
    with start(coordinator, LOCAL) as running:
        yield running


@pytest.fixture
def command(real: Running, programs: Path) -> tuple[list[str], dict[str, str]]:
    """psql with tuples only, and its environment."""
    connection = ["-h", real.pg.host, "-p", str(real.pg.port), "-U", "everview", "-d", "everview"]
    return [str(programs / "psql"), "-XqAt", *connection], {"PATH": os.environ["PATH"], "PGCLIENTENCODING": "UTF8"}


@pytest.fixture
def psql(command: tuple[list[str], dict[str, str]]) -> Callable[[str], list[str]]:
    def run(script: str) -> list[str]:
        line, environment = command
        done = subprocess.run(
            line, input=script, capture_output=True, text=True, timeout=60, env=environment, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


def test_three_rows_of_five_seconds(
    coordinator: Coordinator,
    clock: Clock,
    psql: Callable[[str], list[str]],
    command: tuple[list[str], dict[str, str]],
) -> None:
    assert psql(DEFINITIONS + SHOW) == []
    line, environment = command
    watching = [
        subprocess.Popen(
            [*line, "-c", f"COPY (SUBSCRIBE TO {view} UP TO {START + 20_000}) TO STDOUT"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for view in ("valid", "valid_events")
    ]
    eventually(lambda: len(coordinator.subscriptions()) == 2)

    def at(ms: int) -> None:
        clock.now_ms = START + ms
        coordinator.pacemaker.look()

    inserted = []
    for ms in (890, 1799, 2459):
        at(ms)
        psql(INSERT)
        inserted.append(ms)
    rows = [f"hello|{START + ms}|{START + ms + 5000}" for ms in inserted]
    for ms, left in ((4168, 3), (4988, 3), (5889, 3), (5890, 2), (6798, 2), (6799, 1), (7392, 1), (7459, 0)):
        at(ms)
        assert psql(SHOW) == [f"{row}|{START + ms}" for row in rows[3 - left :]]
        counted = [f"hello|{left}"] if left else []
        assert psql("SELECT * FROM valid_events") == counted
    at(21_000)
    valid, counts = (each.communicate(timeout=60)[0].splitlines() for each in watching)
    assert [each.split("\t") for each in valid] == [
        [str(START + at_ms), diff, "hello", str(START + ms), str(START + ms + 5000)]
        for at_ms, diff, ms in sorted([(ms, "1", ms) for ms in inserted] + [(ms + 5000, "-1", ms) for ms in inserted])
    ]
    changes = [tuple(map(int, (when, diff, n))) for when, diff, _, n in (each.split("\t") for each in counts)]
    assert [(when - START, diff, n) for when, diff, n in sorted(changes)] == [
        (890, 1, 1),
        (1799, -1, 1),
        (1799, 1, 2),
        (2459, -1, 2),
        (2459, 1, 3),
        (5890, -1, 3),
        (5890, 1, 2),
        (6799, -1, 2),
        (6799, 1, 1),
        (7459, -1, 1),
    ]


def test_a_refusal_points_at_the_place(
    psql: Callable[[str], list[str]], command: tuple[list[str], dict[str, str]]
) -> None:
    psql("CREATE TABLE events (content text, insert_ts numeric);")
    line, environment = command
    statement = "CREATE MATERIALIZED VIEW v AS SELECT content FROM events WHERE mz_now()::text = content"
    done = subprocess.run(
        [*line, "-c", statement], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    first, shown, caret, hint = done.stderr.splitlines()
    assert first == "ERROR:  mz_now() is inside an expression that cannot be turned around"
    assert caret.index("^") == shown.index("mz_now()")
    assert hint.startswith("HINT:  compare mz_now() itself")
