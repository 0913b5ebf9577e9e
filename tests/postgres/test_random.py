"""Random tables, types and transactions upstream: every table is as it is there, whenever it is looked at."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg
import pytest

from tests.adapter.scripts import SessionClient
from tests.postgres.conftest import Database, caught_up, ok, rows

TYPES = {
    "int": lambda rng: str(rng.randint(-9, 9)),
    "bigint": lambda rng: str(rng.randint(-(2**62), 2**62)),
    "text": lambda rng: rng.choice(["''", "'a'", r"E'\t\\'", "'ü'", "repeat('long ', 2000)", "repeat('other', 900)"]),
    "numeric(12, 3)": lambda rng: f"{rng.randint(-999999, 999999)}.{rng.randint(0, 999):03}",
    "timestamptz": lambda rng: f"'2026-01-01'::timestamptz + {rng.randint(0, 99999)} * interval '1 s'",
    "boolean": lambda rng: rng.choice(["true", "false"]),
    "uuid": lambda rng: f"md5('{rng.randint(0, 99)}')::uuid",
    "date": lambda rng: f"'2026-01-01'::date + {rng.randint(0, 999)}",
    "jsonb": lambda rng: f"""'{{"k": {rng.randint(0, 9)}}}'""",
    "int[]": lambda rng: rng.choice(["'{}'", "'{1,NULL}'", f"'{{{rng.randint(0, 9)}}}'"]),
}
Value = Callable[[random.Random], str]


class Table:
    """A random table: with a key of one column or two, or with whole rows."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng = name, rng
        self.types = ["int", *(rng.choice(list(TYPES)) for _ in range(rng.randint(1, 5)))]
        self.keys = rng.choice([0, 1, 2])
        if self.keys == 2:
            self.types[1] = "text"
        self.columns = [f"c{number}" for number in range(len(self.types))]

    def create(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(self.columns, self.types, strict=True))
        key = f", PRIMARY KEY ({', '.join(self.columns[: self.keys])})" if self.keys else ""
        statements = [f"CREATE TABLE {self.name} ({columns}{key})"]
        if not self.keys:
            statements.append(f"ALTER TABLE {self.name} REPLICA IDENTITY FULL")
        # Else long texts are compressed so well that none is left out of an update.
        long = [name for name, kind in zip(self.columns, self.types, strict=True) if kind == "text"]
        statements += [f"ALTER TABLE {self.name} ALTER {name} SET STORAGE EXTERNAL" for name in long]
        return "; ".join(statements)

    def value(self, place: int) -> str:
        if place < self.keys:
            return str(self.rng.randint(0, 30)) if place == 0 else self.rng.choice(["'a'", "'b'"])
        return "NULL" if self.rng.random() < 0.2 else TYPES[self.types[place]](self.rng)

    def change(self) -> str:
        kind = self.rng.random()
        where = f"WHERE c0 {self.rng.choice(['=', '<', '>'])} {self.rng.randint(0, 30)}"
        if kind < 0.4:
            values = ", ".join(self.value(place) for place in range(len(self.columns)))
            conflict = " ON CONFLICT DO NOTHING" if self.keys and self.rng.random() < 0.7 else ""
            return f"INSERT INTO {self.name} VALUES ({values}){conflict}"
        if kind < 0.75:
            place = self.rng.randrange(len(self.columns))
            if place < self.keys and place == 0:
                return f"UPDATE {self.name} SET c0 = c0 + 100 {where}"
            return f"UPDATE {self.name} SET {self.columns[place]} = {self.value(place)} {where}"
        if kind < 0.95:
            return f"DELETE FROM {self.name} {where}"
        return f"TRUNCATE {self.name}"

    def query(self) -> str:
        """Its rows as texts that both sides write alike."""
        shown = {"timestamptz": "extract(epoch FROM {})::bigint", "text": "md5({})"}
        pairs = zip(self.columns, self.types, strict=True)
        return f"SELECT {', '.join(shown.get(kind, '{}').format(name) for name, kind in pairs)} FROM {self.name}"


def transaction(database: Database, tables: list[Table], rng: random.Random) -> None:
    """One transaction, with savepoints, of which some are rolled back; it may be rolled back itself."""
    try:
        with database.db.transaction():
            for _ in range(rng.randint(1, 8)):
                try:
                    with database.db.transaction():
                        for _ in range(rng.randint(1, 3)):
                            database(rng.choice(tables).change())
                        if rng.random() < 0.2:
                            raise psycopg.Rollback
                except psycopg.Error:
                    pass  # two rows with one key
            if rng.random() < 0.1:
                raise psycopg.Rollback
    except psycopg.Error:
        pass


@pytest.mark.parametrize("number", range(2))
def test_random_transactions(
    database: Database, follow: Callable[..., SessionClient], rng: random.Random, long_forms: bool, number: int
) -> None:
    tables = [Table(f"t{place}", rng) for place in range(4)]
    for each in tables:
        database(each.create())
    for _ in range(20):
        transaction(database, tables, rng)
    sql = follow()
    for _ in range(60 if long_forms else 12):
        for _ in range(rng.randint(1, 25)):
            transaction(database, tables, rng)
        caught_up(database, sql)
        for each in tables:
            with database.db.cursor() as cursor, cursor.copy(f"COPY ({each.query()}) TO STDOUT (NULL 'NULL')") as copy:
                text = b"".join(bytes(block) for block in copy).decode().replace("\\\\", "\\")
            expected = sorted(text.replace("\t", "|").splitlines())
            assert rows(ok(sql, each.query())) == expected, each.create()
