"""Comparing what a query means here with what it means in a real PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from everview.compute.functions.output import to_text
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Catalog

Connection = psycopg.Connection[Any]


def create_and_load(
    connection: Connection,
    schema: str,
    tables: Mapping[str, Mapping[str, SqlType]],
    data: Mapping[str, Sequence[tuple[Any, ...]]],
) -> None:
    """Tables of these columns and rows in a schema of their own, which is searched from now on."""
    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
    connection.execute(f"CREATE SCHEMA {schema}".encode())
    connection.execute(f"SET search_path = {schema}".encode())
    for name, columns in tables.items():
        fields = ", ".join(f'"{column}" {each}' for column, each in columns.items())
        connection.execute(f"CREATE TABLE {name} ({fields})".encode())
        marks = ", ".join(["%s"] * len(columns))
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {name} VALUES ({marks})".encode(), [[_given(each) for each in row] for row in data[name]]
            )


def _given(value: Any) -> Any:
    """A value as the driver takes it."""
    if isinstance(value, Interval):
        return f"{value.months} months {value.days} days {value.micros} microseconds"
    return value.value if isinstance(value, Infinite) else value


def compare(
    connection: Connection, query: str, catalog: Catalog, inputs: Mapping[str, Any], *, plain: bool = True
) -> None:
    """The same rows and names from PostgreSQL and from the local engine; `plain`: also from the plan as bound."""
    bound = plan(query, catalog)
    names, _, expected = from_postgres(connection, query, [each.kind for each in bound.types])
    for relation in [bound.relation, optimize(bound.relation)][0 if plain else 1 :]:
        found = evaluate(relation, inputs)
        assert not found.errors, found.errors
        rows: Counter[Any] = Counter()
        for row, count in found.rows.items():
            rows[tuple(shown(value, each) for value, each in zip(row, bound.types, strict=False))] += count
        ours, theirs = sorted(rows.items(), key=str), sorted(expected.items(), key=str)
        assert ours == theirs, f"ours {ours}\n    theirs {theirs}"
    assert list(bound.names) == names


def from_postgres(
    connection: Connection, query: str, kinds: Sequence[Kind] | None
) -> tuple[list[str], list[int], Counter[Any]]:
    """Names of the columns, the oids of their types, and the rows as text; no rows if the types are not known."""
    cursor = psycopg.ClientCursor(connection)
    cursor.execute(query.encode())
    result = cursor.pgresult
    assert result is not None and cursor.description is not None
    rows: Counter[Any] = Counter()
    for row in range(result.ntuples if kinds is not None else 0):
        values = [result.get_value(row, column) for column in range(result.nfields)]
        texts = [None if value is None else value.decode() for value in values]
        rows[tuple(_comparable(text, kind) for text, kind in zip(texts, kinds or (), strict=True))] += 1
    columns = cursor.description
    return [column.name for column in columns], [column.type_code for column in columns], rows


def _comparable(text: str | None, kind: Kind) -> Any:
    """Numerics by value: their scales are static here, and PostgreSQL's follow the values."""
    return round(float(text), 6) if text is not None and kind is Kind.NUMERIC else text


def shown(value: Any, sql_type: SqlType) -> Any:
    """A value as it is compared."""
    return None if value is None else _comparable(to_text(value, sql_type), sql_type.kind)
