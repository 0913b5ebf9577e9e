"""A bank: money moves between accounts, each move leaves a row, and auditors look at both at one time."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from tests.adapter.history.clients import SERIALIZATION_FAILURE, Stage, is_lost

ACCOUNTS, BALANCE = 10, 100
SCHEMA = (
    "CREATE TABLE accounts (id int, balance int)",
    "CREATE TABLE moves (id int, source int, target int, amount int)",
    "CREATE MATERIALIZED VIEW bank AS SELECT count(*) AS n, sum(balance) AS total FROM accounts",
    f"INSERT INTO accounts SELECT g, {BALANCE} FROM generate_series(1, {ACCOUNTS}) AS g",
)
PAUSE_S = 0.05


class Bank:
    """Movers, an auditor, and what they know."""

    def __init__(self, stage: Stage, rng: random.Random) -> None:
        self._stage, self._rng = stage, rng
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.acknowledged: set[int] = set()
        self.unknown: set[int] = set()
        self.refused = self.audits = 0
        self.anomalies: list[str] = []

    def workers(self) -> list[Callable[[], None]]:
        """What runs beside one another until the stage is stopped."""
        movers = [random.Random(self._rng.random()) for _ in range(2)]
        return [*((lambda rng=rng: self._live(lambda one: self._move(one, rng))) for rng in movers), self._audits]

    def _live(self, act: Callable[[psycopg.Connection[tuple[Any, ...]]], None]) -> None:
        connection: psycopg.Connection[tuple[Any, ...]] | None = None
        while not self._stage.stopped.is_set():
            try:
                connection = connection or self._stage.connect()
                act(connection)
            except psycopg.Error as error:
                if not is_lost(error):
                    self.anomalies.append(f"bank: {error.sqlstate} {error}")
                if connection is not None:
                    connection.close()
                connection = None
            time.sleep(PAUSE_S)
        if connection is not None:
            connection.close()

    def _move(self, connection: psycopg.Connection[tuple[Any, ...]], rng: random.Random) -> None:
        source, target = rng.sample(range(1, ACCOUNTS + 1), 2)
        amount = rng.randrange(1, 20)
        with self._lock:
            number = next(self._numbers)
        sent = False
        try:
            connection.execute("BEGIN")
            connection.execute("UPDATE accounts SET balance = balance - %s WHERE id = %s", (amount, source))
            connection.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (amount, target))
            connection.execute("INSERT INTO moves VALUES (%s, %s, %s, %s)", (number, source, target, amount))
            sent = True
            with self._lock:
                self.unknown.add(number)
            connection.execute("COMMIT")
            with self._lock:
                self.unknown.discard(number)
                self.acknowledged.add(number)
        except psycopg.Error as error:
            if is_lost(error) and sent:
                raise
            with self._lock:
                self.unknown.discard(number)
            if is_lost(error):
                raise
            connection.execute("ROLLBACK")
            if error.sqlstate != SERIALIZATION_FAILURE:
                raise
            self.refused += 1

    def _audits(self) -> None:
        self._live(self.audit)

    def audit(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Accounts, moves and the view of both at one time: the sums agree, and nothing acknowledged is missing."""
        with self._lock:
            known = set(self.acknowledged)
        connection.execute("BEGIN")
        accounts = dict(connection.execute("SELECT id, balance FROM accounts").fetchall())
        moves = connection.execute("SELECT id, source, target, amount FROM moves").fetchall()
        view = connection.execute("SELECT n, total FROM bank").fetchall()
        connection.execute("COMMIT")
        with self._lock:
            begun = self.acknowledged | self.unknown
        meant = dict.fromkeys(range(1, ACCOUNTS + 1), BALANCE)
        for _, source, target, amount in moves:
            meant[source] -= amount
            meant[target] += amount
        counts = Counter(move[0] for move in moves)
        self.audits += 1
        if accounts != meant:
            self.anomalies.append(f"accounts {accounts} do not follow from {len(moves)} moves: {meant}")
        if view != [(ACCOUNTS, ACCOUNTS * BALANCE)]:
            self.anomalies.append(f"the view says {view}")
        if lost := known - counts.keys():
            self.anomalies.append(f"acknowledged moves are gone: {sorted(lost)[:5]}")
        if twice := [number for number, count in counts.items() if count > 1]:
            self.anomalies.append(f"moves happened twice: {twice[:5]}")
        if never := counts.keys() - begun:
            self.anomalies.append(f"moves that were refused or never asked for: {sorted(never)[:5]}")
