"""All 22 queries mean here what they mean in PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from everview.compute.rows.collection import rows_of
from everview.compute.sql.scope import Collection
from tests.compute.sql.against import compare, create_and_load
from tests.tpch.miniature import generate
from tests.tpch.queries import QUERIES
from tests.tpch.schema import TABLES


class Tpch:
    """The catalog of TPC-H."""

    def find(self, path: Sequence[str]) -> Collection | None:
        columns = TABLES.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        return list(TABLES)


@pytest.fixture(scope="module")
def loaded(postgres_url: str) -> Iterator[tuple[psycopg.Connection[Any], dict[str, Any]]]:
    data = generate(random.Random(7))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        create_and_load(connection, "tpch", TABLES, data)
        inputs = {
            name: rows_of([(row, 1) for row in rows], tuple(TABLES[name].values())) for name, rows in data.items()
        }
        yield connection, inputs
        connection.execute("DROP SCHEMA tpch CASCADE")


@pytest.mark.parametrize("number", QUERIES)
def test_the_same_rows_as_postgres(loaded: tuple[psycopg.Connection[Any], dict[str, Any]], number: int) -> None:
    connection, inputs = loaded
    compare(connection, QUERIES[number], Tpch(), inputs, plain=False)
