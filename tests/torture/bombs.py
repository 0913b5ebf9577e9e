"""Statements that are written to take everything: how each ends, and what another client waits for meanwhile.

python -m tests.torture.bombs PORT [BOMB ...]

asks a server on this machine. Each bomb has a timeout and is canceled later, and one that ends at once is sent again
and again, so that there is enough to measure; a process of its own asks `SELECT 1` all the while, so that what it
measures is the server and not this script.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from tests.torture.report import Line, Size

TIMEOUT_S = 5.0
CANCEL_S = 8.0  # if the timeout has not ended it
GIVE_UP_S = 30.0
QUIET_S = 3.0
LONG_S, SHORT_S = 4.0, 0.3  # for so long a bomb that ends is sent again, in the long form and in the short one
PAUSE_S = 0.005
P99_MS_AIM = 20.0
LATE_FACTOR = 5.0  # machines differ: with a bomb, others may wait so many times what they wait without one
SHORT_BOMBS = 3

_TABLE = "CREATE TABLE IF NOT EXISTS k (id int); DELETE FROM k; INSERT INTO k SELECT generate_series(1, 1000)"
_SERIES = "generate_series(1, {}) AS s(i)"
BOMBS = {
    "nested repetition": "SELECT repeat('a', 40) || 'b' ~ '^(a+)+$'",
    "nested replacement": "SELECT regexp_replace(repeat('a', 40) || '!', '((a*)*)*$', 'x')",
    "references back": r"SELECT repeat('a', 40) ~ '^(a+)+\1b$'",
    "long text": "SELECT repeat('xyyxyxxyxy', 1600000) ~ '(x|y)*x(x|y){500}z'",
    "like": "SELECT repeat('a', 5000) LIKE '" + "%a" * 200 + "%b'",
    "like, a long segment": "SELECT repeat('a', 200000) LIKE '%' || repeat('a', 100000) || 'b%'",
    "ilike": "SELECT repeat('aB', 100000) ILIKE '%' || repeat('A_', 50000) || 'c%'",
    "like, many segments": "SELECT repeat('a', 200000) LIKE repeat('%a', 200001)",
    "blanks in an interval": "SELECT ('1 day' || repeat(' ', 1000000) || 'x')::interval",
    "trim": "SELECT length(btrim(repeat('a', 15000000), repeat('x', 15000000) || 'a'))",
    "element": "SELECT length((('{\"' || repeat('a', 15000000) || '\"}')::text[])[1])",
    "escapes in an element": r"SELECT length((('{' || repeat('\a', 7000000) || '}')::text[])[1])",
    "blanks around an element": "SELECT ('{1' || repeat(' ', 15000000) || ',2}')::int[]",
    "blanks before a time": "SELECT (repeat(' ', 15000000) || '1')::timestamp",
    "decode": "SELECT length(decode(repeat('61', 8000000), 'hex'))",
    "blanks in base64": "SELECT length(decode(repeat(' ', 16000000), 'base64'))",
    "containment": f"SELECT jsonb_agg(i) @> jsonb_agg(i) FROM {_SERIES.format(30_000)}",
    "containment of arrays": "SELECT a @> a FROM (SELECT jsonb_agg(jsonb_build_array(i)) AS a"
    f" FROM {_SERIES.format(30_000)}) AS t",
    "keys": f"SELECT jsonb_agg(i::text) ?& array_agg(i::text) FROM {_SERIES.format(20_000)}",
    "jsonb": "SELECT jsonb_array_length(('[' || repeat('[],', 4000000) || '1]')::jsonb)",
    "jsonb_pretty": "SELECT length(jsonb_pretty((repeat('[', 250) || repeat('1,', 1000000) || '1'"
    " || repeat(']', 250))::jsonb))",
    "normalize": "SELECT length(normalize('a' || repeat(chr(769), 500000) || repeat(chr(790), 500000)))",
    "values": "VALUES " + ", ".join(f"({n}, 'x{n}')" for n in range(100_000)),
    "brackets": "SELECT " + "(" * 1_000_000 + "1" + ")" * 1_000_000,
    "cross join": "SELECT count(*) FROM k a, k b, k c WHERE a.id + b.id + c.id = -1",
    "series": f"SELECT sum(i) FROM {_SERIES.format(5_000_000)}",
    "large series": f"SELECT sum(i) FROM {_SERIES.format('1000000000::bigint')}",
    "array_agg": "SELECT array_length(array_agg(a.id + b.id), 1) FROM k a, k b, k c",
    "string_agg": f"SELECT length(string_agg(repeat('x', 100000), ',')) FROM {_SERIES.format(10_000)}",
    "jsonb_agg": f"SELECT length(jsonb_agg(repeat('x', 100000))::text) FROM {_SERIES.format(10_000)}",
    "repeat": "SELECT length(repeat('x', 1000000000))",
    "repeat of rows": f"SELECT max(length(repeat('x', 1000000) || i)) FROM {_SERIES.format(100_000)}",
    "lpad": "SELECT length(lpad('x', 2000000000))",
    "replace": "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 100000)))",
    "doubling": "SELECT length(x || x) FROM (SELECT x || x FROM (SELECT x || x FROM (SELECT x || x FROM (SELECT x || x"
    " FROM (SELECT x || x FROM (SELECT repeat('x', 10000000)) AS a(x)) AS b(x)) AS c(x)) AS d(x)) AS e(x)) AS f(x)",
    "numeric": "SELECT power(99999999999999999999::numeric, 99999)",
    "factorial": "SELECT factorial(1000000)",
    "sort": f"SELECT i FROM {_SERIES.format(2_000_000)} ORDER BY i % 1000, i DESC",
    "window": f"SELECT max(r) FROM (SELECT sum(i) OVER (ORDER BY i) AS r FROM {_SERIES.format(100_000)}) AS w",
    "splitting": "SELECT count(*) FROM regexp_split_to_table(repeat('x', 16000000), '') AS s",
    "recursion": "WITH RECURSIVE r(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r",
    "rows": f"SELECT i, i + 1 AS j FROM {_SERIES.format(200_000)} ORDER BY j DESC",
    "statements": "SELECT 1;" * 20_000,
    "result": f"SELECT i, repeat('x', 1000) FROM {_SERIES.format(1_000_000)}",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a bomb ended, and the milliseconds that others waited while it ran."""

    name: str
    ended: str  # a row, an SQLSTATE with its message, or that it did not end
    times: int
    seconds: float
    waits_ms: list[float]

    @property
    def figures(self) -> str:
        """In words."""
        each_s = self.seconds / max(1, self.times)
        return f"{self.ended}, {self.times} x {each_s:.2f} s; SELECT 1 {shown(self.waits_ms)}"


def shown(waits_ms: list[float]) -> str:
    """Median, 99th percentile and maximum of what was waited."""
    if not waits_ms:
        return "never answered"
    ordered = sorted(waits_ms)
    middle, late = ordered[len(ordered) // 2], percentile(ordered)
    return f"p50 {middle:.1f}, p99 {late:.1f}, max {ordered[-1]:.0f} ms of {len(ordered):,}"


def percentile(waits_ms: list[float], share: float = 0.99) -> float:
    """The time that all but some waits are below."""
    ordered = sorted(waits_ms)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def connect(port: int, *options: str) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection with these settings."""
    connection = psycopg.connect(
        host="127.0.0.1", port=port, user="everview", dbname="everview", autocommit=True, connect_timeout=60
    )
    for option in options:
        connection.execute(option)
    return connection


def _ask(port: int, pipe: Connection) -> None:
    """Ask `SELECT 1` until told to stop; then send the waits. In a process of its own."""
    waits: list[float] = []
    with connect(port) as connection:
        connection.execute("SELECT 1")
        pipe.send(None)
        while not pipe.poll(PAUSE_S):
            began = time.perf_counter()
            connection.execute("SELECT 1").fetchall()
            waits.append((time.perf_counter() - began) * 1000)
    pipe.recv()
    pipe.send(waits)


class Asked:
    """While inside, another process asks; afterwards `waits_ms` says what it waited."""

    def __init__(self, port: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_ask, args=(port, theirs), daemon=True)
        self.waits_ms: list[float] = []

    def __enter__(self) -> Asked:
        self._process.start()
        self._pipe.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        if self._pipe.poll(GIVE_UP_S):
            self.waits_ms = self._pipe.recv()
        self._process.join(1)
        if self._process.is_alive():
            self._process.kill()


def explode(port: int, name: str, window_s: float) -> Outcome:
    """Run one bomb, with a timeout and a cancel, and again until the time is over."""
    ended: list[str] = []
    connection = connect(port, f"SET statement_timeout = '{TIMEOUT_S:.0f}s'")

    def run() -> None:
        try:
            cursor = connection.cursor()
            cursor.execute(f"SET search_path = public, bomb_{times}")  # so that it is not one that is known already
            cursor.execute(BOMBS[name])
            first = cursor.fetchone()
            ended.append(f"ok, {str(first)[:30]}")
        except psycopg.Error as error:
            ended.append(f"{error.sqlstate} {str(error).splitlines()[0][:60]}")

    times = 0
    with Asked(port) as asked:
        began = time.monotonic()
        over = began + window_s
        while times == len(ended) and (not times or time.monotonic() < over):
            times += 1
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            thread.join(CANCEL_S)
            if thread.is_alive():
                connection.cancel()
                thread.join(GIVE_UP_S - CANCEL_S)
        seconds = time.monotonic() - began
    if not thread.is_alive():
        connection.close()
    outcome = "DID NOT END" if len(ended) < times else ended[-1]
    return Outcome(name, outcome, times, seconds, asked.waits_ms)


def outcomes(port: int, names: list[str], window_s: float = LONG_S) -> Iterator[Outcome]:
    """What others wait without a bomb, then with each."""
    with connect(port) as connection:
        for statement in _TABLE.split("; "):
            connection.execute(statement)
    with Asked(port) as asked:
        time.sleep(QUIET_S)
    yield Outcome("nothing", "ok", 1, QUIET_S, asked.waits_ms)
    for name in names:
        yield explode(port, name, window_s)


def late_ms(quiet: Outcome) -> float:
    """The 99th percentile of waits above which others were not served well, by what they waited without a bomb."""
    return max(P99_MS_AIM, LATE_FACTOR * percentile(quiet.waits_ms)) if quiet.waits_ms else P99_MS_AIM


def anomalies(outcome: Outcome, p99_ms_max: float | None = None) -> list[str]:
    """What must not be: a bomb that neither timeout nor cancel ends, an internal error, others who are not served.

    Without a limit on the 99th percentile, it is enough that answers kept coming.
    """
    found = []
    if outcome.ended == "DID NOT END":
        found.append(f"{outcome.name}: neither the timeout nor a cancel ended it in {GIVE_UP_S:.0f} s")
    if outcome.ended.startswith("XX"):
        found.append(f"{outcome.name}: {outcome.ended}")
    if not outcome.waits_ms or max(outcome.waits_ms) > TIMEOUT_S * 1000:
        found.append(f"{outcome.name}: others waited: {shown(outcome.waits_ms)}")
    elif p99_ms_max is not None and percentile(outcome.waits_ms) > p99_ms_max:
        found.append(f"{outcome.name}: others waited: {shown(outcome.waits_ms)}; at most p99 {p99_ms_max:.1f} ms")
    return found


def run(size: Size, rng: Random, folder: Path) -> Iterator[Line]:
    """All bombs in an order drawn at random, and what others wait; in the short form some, and that answers come."""
    from tests.torture.report import Line
    from tests.torture.server import torture_server

    names = rng.sample(sorted(BOMBS), len(BOMBS) if size.long else SHORT_BOMBS)
    p99_ms_max: float | None = None
    with torture_server(folder) as server:
        for outcome in outcomes(server.port(), names, LONG_S if size.long else SHORT_S):
            found = anomalies(outcome, p99_ms_max)
            if p99_ms_max is None and size.long:  # this was what others wait without a bomb
                p99_ms_max = late_ms(outcome)
            limit = "" if p99_ms_max is None else f"; p99 at most {p99_ms_max:.1f} ms"
            yield Line(outcome.name, outcome.times, found, outcome.figures + limit)


def main(arguments: list[str]) -> int:
    """Print a line for each bomb; 1 if something was found."""
    port, names = int(arguments[0]), arguments[1:] or list(BOMBS)
    found: list[str] = []
    p99_ms_max: float | None = None
    for outcome in outcomes(port, names):
        wrong = anomalies(outcome, p99_ms_max)
        if p99_ms_max is None:
            p99_ms_max = late_ms(outcome)
        found += wrong
        over = " OVER THE AIM" if outcome.waits_ms and percentile(outcome.waits_ms) > P99_MS_AIM else ""
        print(f"{outcome.name:20} {outcome.figures}; p99 at most {p99_ms_max:.1f} ms{over}", flush=True)
    for each in found:
        print(f"ANOMALY {each}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
