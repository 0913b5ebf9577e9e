"""The proof: the maintained views equal what their queries give from scratch, at the same timestamps.

So do the rows that were delivered into a SQLite file, which SQLite itself reads.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everview.api import Database
from everview.demo.scenario import View
from everview.demo.watch import Follower
from everview.errors import EverviewError

DELIVERY_S_MAX = 60.0
LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class Check:
    """A claim, and whether it is true."""

    claim: str
    passed: bool
    detail: str


def recomputed(database: Database, views: Sequence[View], times: Sequence[int]) -> Iterator[Check]:
    """Compare each view at each of the times with its query over the source."""
    for view in views:
        claim = f"{view.name} ({view.shows}) is what its query says"
        rows, wrong = 0, []
        try:
            for at in times:
                maintained = contents(database, f"SELECT * FROM {view.name}", at)
                rows += maintained.total()
                if maintained != contents(database, view.query, at):
                    wrong.append(at)
        except EverviewError as error:
            yield Check(claim, False, str(error))
            continue
        span_s = (times[-1] - times[0]) / 1000
        detail = f"{rows:,} rows at {len(times)} times over {span_s:.0f} s, recomputed from scratch"
        yield Check(claim, not wrong, f"different at {', '.join(map(str, wrong))}" if wrong else detail)


def heard(database: Database, follower: Follower) -> Check:
    """Compare the sum of the changes that a subscriber received with the contents."""
    claim = f"a subscription to {follower.view} adds up to its contents"
    if follower.error is not None:
        return Check(claim, False, str(follower.error))
    passed = follower.contents == contents(database, f"SELECT * FROM {follower.view}", follower.frontier - 1)
    return Check(claim, passed, f"{follower.updates:,} changes make {follower.contents.total():,} rows")


def delivered(database: Database, view: View, file: Path, past: int) -> Check:
    """Compare a view's table in a SQLite file with the view at the time up to which the sink has delivered.

    That is a time after `past`. The sink is paused meanwhile, because the view goes on.
    """
    claim = f"{view.name} in SQLite is what the view holds"
    try:
        end = time.monotonic() + DELIVERY_S_MAX
        while (standing := _sink(database, view))[0] <= past and time.monotonic() < end:
            time.sleep(LOOK_EVERY_S)
        frontier, state = standing
        if frontier <= past:
            return Check(claim, False, f"not delivered within {DELIVERY_S_MAX:.0f} s: {state}")
        database.sql(f"ALTER SINK {view.sink} PAUSE")
        try:
            frontier, _ = _sink(database, view)
            with closing(sqlite3.connect(file)) as connection:
                found = connection.execute(f'SELECT * FROM "{view.name}"').fetchall()
            columns = ", ".join(f'"{name}"::text' for name in database.sql(f"SELECT * FROM {view.name} LIMIT 0").names)
            expected = contents(database, f"SELECT {columns} FROM {view.name}", frontier - 1)
        finally:
            database.sql(f"ALTER SINK {view.sink} RESUME")
    except (EverviewError, sqlite3.Error) as error:
        return Check(claim, False, str(error))
    rows = Counter(tuple(None if value is None else str(value) for value in row) for row in found)
    if rows == expected:
        return Check(claim, True, f"{rows.total():,} rows at {frontier - 1}, compared one by one")
    missing, surplus = (expected - rows).total(), (rows - expected).total()
    return Check(claim, False, f"{missing:,} rows are missing and {surplus:,} are too many at {frontier - 1}")


def _sink(database: Database, view: View) -> tuple[int, str]:
    """The time before which the file is exact, and the state of the sink."""
    query = f"SELECT frontier, status, error FROM mz_internal.mz_sink_statuses WHERE name = '{view.sink}'"
    for frontier, status, error in database.sql(query):
        return int(frontier or 0), f"{status}: {error}" if error else str(status)
    return 0, "there is no such sink"


def contents(database: Database, query: str, at: int) -> Counter[tuple[Any, ...]]:
    """The rows of a query at a time, and how often each occurs."""
    return Counter(tuple(row) for row in database.sql(f"{query.strip()} AS OF {at}"))
