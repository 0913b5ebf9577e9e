"""Wall clocks that jump: the timeline never goes back nor far ahead, rows expire when they should, the past stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from tests.torture.ledger import Ledger
from tests.torture.report import Line, Size
from tests.torture.sentinel import connect
from tests.torture.server import Knobs, TortureServer

HOUR_MS = 3_600_000
JUMPS_MS = (
    HOUR_MS,
    -HOUR_MS,
    24 * HOUR_MS,
    -24 * HOUR_MS,
    40 * 365 * 24 * HOUR_MS,
    -1_700_000_000_000,
    20_000,
    -20_000,
)
AHEAD_MS_MAX = 120_000  # a jump below a minute is believed, and machines are slow
SCHEMA = (
    "CREATE TABLE kept (k int, until timestamptz) WITH (TTL '1 hour' ON until)",
    "CREATE MATERIALIZED VIEW seen AS SELECT k FROM kept WHERE mz_now() < until + INTERVAL '2 hours'",
    "INSERT INTO kept VALUES (1, now())",
)


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """Jumps under load, some of them across a kill."""
    folder.mkdir(parents=True, exist_ok=True)
    knobs = Knobs(folder / "knobs")
    anomalies: list[str] = []
    kills, book = 0, Ledger("book")
    server = TortureServer(folder / "data", knobs)
    try:
        connection = connect(server.port())
        book.create(connection, "WITH (RETAIN HISTORY FOR '30 min')")
        for statement in SCHEMA:
            connection.execute(statement)
        begun, latest = _now(connection), 0
        for _ in range(size.jumps):
            jump = rng.choice(JUMPS_MS)
            if rng.random() < 0.2:
                kills += 1
                server.kill()
                knobs.turn(offset_ms=jump)
                server = TortureServer(folder / "data", knobs)
                connection = connect(server.port())
            knobs.turn(offset_ms=jump)
            for _ in range(3):
                if (state := book.write(connection)) is not None:
                    anomalies.append(f"a write failed with {state} after a jump of {jump} ms")
            latest = _look(connection, jump, begun, latest, anomalies)
            knobs.turn(offset_ms=0)
            latest = _look(connection, 0, begun, latest, anomalies)
        anomalies += book.check(connection)
    except (psycopg.Error, AssertionError) as error:
        anomalies.append(f"{type(error).__name__}: {error}")
    finally:
        server.kill()
    yield Line("jumps of the wall clock", size.jumps, anomalies, f"{kills} with a kill; {book.figures}")


def _now(connection: psycopg.Connection[tuple[Any, ...]]) -> int:
    ((now,),) = connection.execute("SELECT mz_now()").fetchall()
    return int(now)


def _look(
    connection: psycopg.Connection[tuple[Any, ...]], jump: int, begun: int, latest: int, anomalies: list[str]
) -> int:
    """What a client sees after a jump; gives the latest time that was seen."""
    now = _now(connection)
    if now < latest:
        anomalies.append(f"time went from {latest} back to {now} after a jump of {jump} ms")
    ahead = now - int(time.time() * 1000)
    if ahead > AHEAD_MS_MAX:
        anomalies.append(f"the timeline is {ahead} ms ahead after a jump of {jump} ms")
    for name in ("kept", "seen"):
        if connection.execute(f"SELECT k FROM {name}").fetchall() != [(1,)]:
            anomalies.append(f"{name} lost its row after a jump of {jump} ms")
    if int(time.time() * 1000) - begun < HOUR_MS / 4:
        try:
            connection.execute(f"SELECT count(*) FROM book AS OF {begun}").fetchall()
        except psycopg.Error as error:
            anomalies.append(f"the past is gone after a jump of {jump} ms: {error}")
    return max(now, latest)
