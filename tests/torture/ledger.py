"""Numbered rows, and which of them have to be there: written while something else fails."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import psycopg

from tests.adapter.history.clients import is_lost

UNKNOWN = ("08007",)  # the outcome is not known


class Ledger:
    """Inserts rows, one number or many at a time, and remembers how each insert ended."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.acknowledged: set[int] = set()
        self.unknown: set[int] = set()
        self.refused: Counter[str] = Counter()
        self._next = 0

    def create(self, connection: psycopg.Connection[tuple[Any, ...]], options: str = "") -> None:
        """Make its table."""
        connection.execute(f"CREATE TABLE {self.table} (number int, part int, text text) {options}")

    @property
    def attempts(self) -> int:
        """How many inserts were tried."""
        return self._next

    def write(self, connection: psycopg.Connection[tuple[Any, ...]], rows: int = 1, width: int = 10) -> str | None:
        """One insert; gives the SQLSTATE if it failed, raises if there is no server any more."""
        number = self._next
        self._next += 1
        self.unknown.add(number)
        text = f"INSERT INTO {self.table} SELECT %s, g, %s FROM generate_series(1, {rows}) AS g"
        try:
            connection.execute(text, (number, os.urandom(width // 2).hex()))  # which no disk makes smaller
        except psycopg.Error as error:
            if is_lost(error):
                raise
            if error.sqlstate not in UNKNOWN:
                self.unknown.discard(number)
            self.refused[error.sqlstate or ""] += 1
            return error.sqlstate
        self.unknown.discard(number)
        self.acknowledged.add(number)
        return None

    def check(self, connection: psycopg.Connection[tuple[Any, ...]], rows: int | None = 1) -> list[str]:
        """What is there that should not be, and the other way around; `rows` of each, None if that varies."""
        counts = dict(connection.execute(f"SELECT number, count(*) FROM {self.table} GROUP BY number").fetchall())
        found = []
        if lost := self.acknowledged - counts.keys():
            found.append(f"{len(lost)} acknowledged inserts are gone: {sorted(lost)[:5]}")
        if never := counts.keys() - self.acknowledged - self.unknown:
            found.append(f"{len(never)} refused inserts are there: {sorted(never)[:5]}")
        if rows is not None and (odd := [number for number, count in counts.items() if count != rows]):
            found.append(f"{len(odd)} inserts are there in part or twice: {odd[:5]}")
        return found

    @property
    def figures(self) -> str:
        """How inserts ended."""
        refused = ", ".join(f"{count:,} of {state}" for state, count in sorted(self.refused.items()))
        return f"{len(self.acknowledged):,} acknowledged{f'; refused: {refused}' if refused else ''}"
