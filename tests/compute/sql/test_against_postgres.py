"""Queries bound by us and run on the local engine, and the same queries on a real PostgreSQL: the same rows."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from everview.compute.rows.collection import rows_of
from tests.compute.sql.against import compare, create_and_load
from tests.compute.sql.tables import TABLES, Tables

BLOCKS = Path(__file__).with_name("queries.sql").read_text().split("\n\n")
# Apart from the others because only the local engine computes them.
RECURSIVE = [block.strip() for block in Path(__file__).with_name("recursive.sql").read_text().split("\n\n")]
QUERIES = [block.strip() for block in BLOCKS if not block.startswith("--")]


def contents(rng: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    """Rows with NULLs, duplicates, and keys that meet and that don't."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    def row_of_t(number: int) -> tuple[Any, ...]:
        price = Decimal(rng.randint(0, 5000)).scaleb(-2)
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=rng.randint(0, 150))
        name = rng.choice(["ab", "abc", "b", "aa", ""])
        flag = maybe(rng.random() < 0.5)
        return (number, maybe(rng.randint(1, 4)), maybe(name), maybe(price), rng.randint(0, 6), maybe(day), flag)

    t = [row_of_t(number) for number in range(1, 13)]
    u = [
        (rng.randint(1, 12), maybe(rng.randint(1, 5)), rng.choice("pqrs"), rng.randint(0, 70))
        for _ in range(rng.choice([8, 12]))
    ]
    numbers = [Decimal(each) for each in ("0", "1", "-3", "2.25", "100.1", "9999.99", "-9999.99", "50")]
    whole = [each for each in numbers if each == int(each)]
    m = [
        (number, *(maybe(rng.choice(numbers)) for _ in range(4)), maybe(rng.choice(whole)))
        for number in range(1, rng.choice([9, 14]))
    ]
    return {"t": [*t, t[0]], "u": u, "empty": [], "m": m}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_rows_as_postgres(postgres_url: str, seed: int) -> None:
    data = contents(random.Random(seed))
    inputs = {name: rows_of([(row, 1) for row in rows], tuple(TABLES[name].values())) for name, rows in data.items()}
    wrong = []
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        create_and_load(connection, "queries", TABLES, data)
        for query in [*QUERIES, *RECURSIVE]:
            try:
                compare(connection, query, Tables(), inputs)
            except Exception as error:
                wrong.append(f"{query}\n    {type(error).__name__}: {str(error)[:600]}")
        connection.execute("DROP SCHEMA queries CASCADE")
    assert not wrong, f"{len(wrong)} of {len(QUERIES)} queries:\n" + "\n".join(wrong)
