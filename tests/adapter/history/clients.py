"""Clients that write and read at once, over the wire, and write down what they did and saw.

The tables are read in parts, *rounds*: each life of the server begins one, and clients read the round of their time and
the one before, so that what a crash could have taken is looked at, and reads do not grow with the run.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg

from tests.adapter.history.checker import Meaning
from tests.adapter.history.model import Facts, Group, Operation, Outcome, numbers

KEPT = "WITH (RETAIN HISTORY FOR '1h')"
SETS = ("entries", "left_side", "right_side", "marks")  # tables of facts
SCHEMA = (
    *(f"CREATE TABLE {name} (round int, number int) {KEPT}" for name in SETS),
    f"CREATE TABLE counters (round int, name text, n int) {KEPT}",
    f"""CREATE MATERIALIZED VIEW pairs {KEPT} AS SELECT l.round, l.number FROM left_side l
        JOIN right_side r ON l.round = r.round AND l.number = r.number""",
    f"""CREATE MATERIALIZED VIEW totals {KEPT} AS
        SELECT round, count(*) AS n, sum(number) AS s FROM entries GROUP BY round""",
    "CREATE INDEX counters_by_name ON counters (round, name)",
    "CREATE INDEX pairs_by_round ON pairs (round)",
    "CREATE INDEX totals_by_round ON totals (round)",
    "CREATE VIEW kept AS SELECT DISTINCT round, number FROM entries",
    "CREATE INDEX kept_by_round ON kept (round)",
)
VIEWS = ("pairs", "totals")
CONNECT_S_MAX = 120
PAUSE_S = 0.01
SERIALIZATION_FAILURE, FENCED = "40001", "57P01"

Connection = psycopg.Connection[tuple[Any, ...]]


class Stage:
    """What all clients of a run share."""

    def __init__(self) -> None:
        self.port: int | None = None
        self.round = -1
        self.stopped = threading.Event()
        self.history: list[Operation] = []
        self.problems: list[str] = []
        self.times: deque[int] = deque(maxlen=300)  # that were read at, and can be read as of
        self._numbers: dict[Group, itertools.count[int]] = defaultdict(itertools.count)
        self._lock = threading.Lock()

    def number(self, group: Group) -> int:
        """A fact that nobody has written yet."""
        with self._lock:
            return next(self._numbers[group])

    def done(self, operation: Operation) -> None:
        """Write an operation down."""
        with self._lock:
            self.history.append(operation)
            if operation.time is not None and operation.outcome == "ok":
                self.times.append(operation.time)

    def connect(self) -> Connection:
        """A connection to the server of now; raises if there is none."""
        if self.port is None:
            raise psycopg.OperationalError("there is no server now")
        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="everview",
            dbname="everview",
            autocommit=True,
            connect_timeout=CONNECT_S_MAX,
        )


class Client:
    """One worker: does one thing after another, and reconnects when its server is gone.

    One that reads no views never waits for one, so it goes on while Spark is still starting.
    """

    def __init__(self, stage: Stage, name: str, rng: random.Random, *, views: bool = True) -> None:
        self._stage, self.name, self._rng = stage, name, rng
        self._connection: Connection | None = None
        self._own: list[tuple[Group, int]] = []  # acknowledged entries that it may remove
        actions: tuple[tuple[int, Callable[[], None]], ...] = (
            (5, self.insert),
            (2, self.remove),
            (3, self.transfer),
            (2, self.increment),
            (2, self.increment_in_a_block),
            (4, self.read_a_table),
            (2, self.read_counters),
            (3, self.look_a_counter_up),
            (4 * views, self.read_an_index),
            (3 * views, self.read_everything),
            (2 * views, self.read_the_past),
        )
        self._weights, self._actions = zip(*actions, strict=True)

    def run(self) -> None:
        """Until told to stop."""
        while not self._stage.stopped.is_set():
            try:
                (action,) = self._rng.choices(self._actions, self._weights)
                action()
            except Exception as error:  # reported by the test: a thread has no one to raise to
                if not is_lost(error):  # else there may be a server again later
                    self._stage.problems.append(f"{self.name}: {type(error).__name__}: {error}")
                self.close()
            time.sleep(self._rng.random() * PAUSE_S)
        self.close()

    # Writes

    def insert(self) -> None:
        """One row of its own."""
        group = ("entries", self._stage.round)
        number = self._stage.number(group)
        if self._rng.random() < 0.5:
            steps: list[tuple[str, tuple[int, ...]]] = [("INSERT INTO entries VALUES (%s, %s)", (group[1], number))]
        else:
            steps = [(f"INSERT INTO entries VALUES ({group[1]}, {number})", ())]
        if self._write(steps, adds={group: 1 << number}) == "ok":
            self._own.append((group, number))

    def remove(self) -> None:
        """Some row that it has inserted, whether lately or long ago."""
        if not self._own:
            return
        group, number = self._own.pop(self._rng.randrange(len(self._own)))
        delete = f"DELETE FROM entries WHERE round = {group[1]} AND number = {number}"
        self._write([(delete, ())], removes={group: 1 << number})

    def transfer(self) -> None:
        """Rows of two tables, in one transaction."""
        left, right = ("left_side", self._stage.round), ("right_side", self._stage.round)
        number = self._stage.number(left)
        inserts = [(f"INSERT INTO {name} VALUES ({round}, {number})", ()) for name, round in (left, right)]
        self._rng.shuffle(inserts)
        self._write(inserts, block=True, adds={left: 1 << number, right: 1 << number})

    def increment(self) -> None:
        """Read and write in one statement, alone."""
        round = self._stage.round
        step = f"UPDATE counters SET n = n + 1 WHERE round = {round} AND name = 'alone'"
        self._write([(step, ())], increments={f"alone {round}": None})

    def increment_in_a_block(self) -> None:
        """Read, then write what follows from it, and leave a mark."""
        group = ("marks", self._stage.round)
        where = f"WHERE round = {group[1]} AND name = 'block'"
        connection = self._connected()
        began = time.monotonic()
        try:
            connection.execute("BEGIN")
            ((found,),) = connection.execute(f"SELECT n FROM counters {where}").fetchall()
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            self.close()
            return
        number = self._stage.number(group)
        writes = [
            (f"UPDATE counters SET n = {found + 1} {where}", ()),
            (f"INSERT INTO marks VALUES ({group[1]}, {number})", ()),
        ]
        name = f"block {group[1]}"
        self._write(writes, began, block=True, open=True, adds={group: 1 << number}, increments={name: found})

    def _write(
        self,
        steps: Sequence[tuple[str, tuple[Any, ...]]],
        began: float | None = None,
        *,
        block: bool = False,
        open: bool = False,
        **what: Any,
    ) -> Outcome:
        """Carry statements out and write down how it ended; those of a `block` begin to count with its COMMIT."""
        connection = self._connected()
        began = time.monotonic() if began is None else began
        outcome: Outcome = "failed" if block else "unknown"
        try:
            if block and not open:
                connection.execute("BEGIN")
            for text, values in steps:
                connection.execute(text, values or None)
            if block:
                outcome = "unknown"
                connection.execute("COMMIT")
            outcome = "ok"
        except psycopg.Error as error:
            if not is_lost(error):
                outcome = "failed"
                with suppress(psycopg.OperationalError):
                    connection.execute("ROLLBACK")
                if error.sqlstate != SERIALIZATION_FAILURE:
                    self._stage.problems.append(f"{self.name}: {error.sqlstate} {error}")
            else:
                self.close()
        self._stage.done(Operation(worker=self.name, began=began, ended=time.monotonic(), outcome=outcome, **what))
        return outcome

    # Reads

    def read_a_table(self) -> None:
        """Some table, in a statement of its own."""
        name, rounds = self._rng.choice(SETS), self._rounds()
        began = time.monotonic()
        rows = self._connected().execute(_select(name, rounds)).fetchall()
        self._saw(began, [name], {name: rows}, rounds)

    def read_an_index(self) -> None:
        """A view that is maintained, by the key of its index."""
        name, tables = self._rng.choice((("pairs", ("left_side", "right_side")), ("kept", ("entries",))))
        round = max(0, self._stage.round - self._rng.randrange(2))
        began = time.monotonic()
        rows = self._connected().execute(f"SELECT round, number FROM {name} WHERE round = {round}").fetchall()
        self._saw(began, tables, dict.fromkeys(tables, rows), [round])

    def read_counters(self) -> None:
        """The counters of a round or two."""
        began = time.monotonic()
        rows = self._connected().execute(_select("counters", self._rounds(), "round, name, n")).fetchall()
        counts = {f"{name} {round}": n for round, name, n in rows}
        self._stage.done(Operation(worker=self.name, began=began, ended=time.monotonic(), counts=counts))

    def look_a_counter_up(self) -> None:
        """One counter by the whole key of its index, a few times: what was read once may be answered from memory."""
        round, name = self._stage.round, self._rng.choice(("alone", "block"))
        connection = self._connected()
        for _ in range(self._rng.randrange(1, 6)):
            began = time.monotonic()
            text = "SELECT n FROM counters WHERE round = %s AND name = %s"
            ((n,),) = connection.execute(text, (round, name), prepare=True).fetchall()
            counts = {f"{name} {round}": n}
            self._stage.done(Operation(worker=self.name, began=began, ended=time.monotonic(), counts=counts))

    def read_everything(self, rounds: Sequence[int] | None = None) -> None:
        """All tables and all views, in one transaction, which has one time."""
        rounds = rounds or self._rounds()
        views = ["pairs", "totals", "kept"]
        self._rng.shuffle(views)
        connection = self._connected()
        began = time.monotonic()
        connection.execute("BEGIN")
        ((now,),) = connection.execute("SELECT mz_now()").fetchall()
        tables = {name: connection.execute(_select(name, rounds)).fetchall() for name in SETS}
        shown = {name: connection.execute(_select(name, rounds, "*")).fetchall() for name in views}
        counters = connection.execute(_select("counters", rounds, "round, name, n")).fetchall()
        connection.execute("COMMIT")
        shows: dict[str, Any] = {name: _sets(shown[name], rounds) for name in ("pairs", "kept")}
        shows["totals"] = tuple(sorted((round, n, int(s)) for round, n, s in shown["totals"]))
        shows["counters"] = tuple(sorted((round, n) for round, name, n in counters if name == "block"))
        counts = {f"{name} {round}": n for round, name, n in counters}
        self._saw(began, SETS, tables, rounds, time=int(now), shows=shows, counts=counts, through=frozenset(VIEWS))

    def read_the_past(self) -> None:
        """A table, and a view, at a time at which someone has read before."""
        if not self._stage.times:
            return
        time_ms, rounds = self._rng.choice(self._stage.times), self._rounds()
        name, tables = self._rng.choice((("pairs", ("left_side", "right_side")), *((name, (name,)) for name in SETS)))
        began = time.monotonic()
        rows = self._connected().execute(f"{_select(name, rounds)} AS OF {time_ms}").fetchall()
        self._saw(began, tables, dict.fromkeys(tables, rows), rounds, time=time_ms, as_of=True)

    def read_frontiers(self) -> None:
        """How far the views are."""
        began = time.monotonic()
        rows = self._connected().execute(
            "SELECT o.name, f.write_frontier FROM mz_internal.mz_frontiers f JOIN mz_objects o ON o.id = f.object_id"
        )
        frontiers = {name: int(frontier) for name, frontier in rows if name in VIEWS}
        assert len(frontiers) == len(VIEWS), frontiers
        self._stage.done(Operation(worker=self.name, began=began, ended=time.monotonic(), frontiers=frontiers))

    def _saw(
        self,
        began: float,
        names: Iterable[str],
        rows: Mapping[str, Sequence[tuple[Any, ...]]],
        rounds: Sequence[int],
        **what: Any,
    ) -> None:
        ended = time.monotonic()
        sees: dict[Group, Facts] = {(name, round): 0 for name in names for round in rounds}
        twice = dict.fromkeys(sees, 0)
        for name in names:
            for round, number in rows[name]:
                group, fact = (name, round), 1 << number
                twice[group] |= sees[group] & fact
                sees[group] |= fact
        self._stage.done(Operation(worker=self.name, began=began, ended=ended, sees=sees, twice=twice, **what))

    # Inside

    def _rounds(self) -> list[int]:
        now = self._stage.round
        return [max(0, now - 1), now] if now and self._rng.random() < 0.7 else [now]

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._stage.connect()
        return self._connection

    def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def is_lost(error: Exception) -> bool:
    """Whether there is no server at the other end, or one that is no longer the leader; others say a SQLSTATE."""
    return isinstance(error, psycopg.OperationalError) and error.sqlstate in (None, FENCED)


def prepare(stage: Stage) -> None:
    """Make the tables and views."""
    with stage.connect() as connection:
        for statement in SCHEMA:
            connection.execute(statement)


def begin_round(stage: Stage) -> None:
    """Make the counters of the next round, and let clients go on to it."""
    round = stage.round + 1
    with stage.connect() as connection:
        connection.execute(f"INSERT INTO counters VALUES ({round}, 'alone', 0), ({round}, 'block', 0)")
    stage.round = round


def _select(name: str, rounds: Sequence[int], columns: str = "round, number") -> str:
    return f"SELECT {columns} FROM {name} WHERE round IN ({', '.join(map(str, rounds))})"


Sets = tuple[tuple[int, Facts, int], ...]  # of each round the facts, and of how many rows they are


def _sets(rows: Iterable[tuple[Any, ...]], rounds: Iterable[int]) -> Sets:
    found, counts = dict.fromkeys(rounds, 0), dict.fromkeys(rounds, 0)
    for round, number in rows:
        found[round] |= 1 << number
        counts[round] += 1
    return tuple((round, found[round], counts[round]) for round in sorted(found))


def _each_once(sets: Mapping[int, Facts]) -> Sets:
    return tuple((round, found, found.bit_count()) for round, found in sets.items())


def _of(sees: Mapping[Group, Facts], table: str) -> dict[int, Facts]:
    return {round: found for (name, round), found in sorted(sees.items()) if name == table}


def _pairs(sees: Mapping[Group, Facts]) -> Sets:
    right = _of(sees, "right_side")
    return _each_once({round: found & right[round] for round, found in _of(sees, "left_side").items()})


MEANINGS: dict[str, Meaning] = {
    "pairs": _pairs,
    "kept": lambda sees: _each_once(_of(sees, "entries")),
    "totals": lambda sees: tuple(
        (round, found.bit_count(), sum(numbers(found))) for round, found in _of(sees, "entries").items() if found
    ),
    "counters": lambda sees: tuple((round, found.bit_count()) for round, found in _of(sees, "marks").items()),
}
