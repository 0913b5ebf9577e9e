"""What random sentences are made of: tables of many types, rows for them, and literals.

Values are chosen so that an answer is determined: floats are quarters, whose sums are exact in any order; intervals are
such that equal ones look the same; texts are of letters that every collation orders alike.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import (
    BOOLEAN,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIMESTAMP,
    Interval,
    Kind,
    SqlType,
    array_of,
    numeric,
)
from everview.compute.sql.scope import Collection

# By the names that the grammar gives to types.
TYPES = {
    "int2": INT2,
    "int4": INT4,
    "int8": INT8,
    "numeric": numeric(10, 2),
    "float8": FLOAT8,
    "text": TEXT,
    "varchar": SqlType(Kind.VARCHAR, length=8),
    "bool": BOOLEAN,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "interval": INTERVAL,
    "jsonb": JSONB,
    "ints": array_of(INT4),
    "texts": array_of(TEXT),
}

# What is written in a cast.
WRITTEN = {name: name for name in TYPES} | {"ints": "int[]", "texts": "text[]", "numeric": "numeric(12, 2)"}

TABLES: dict[str, dict[str, str]] = {
    "a": {
        "id": "int4",
        "k": "int4",
        "name": "text",
        "price": "numeric",
        "n": "int8",
        "day": "date",
        "flag": "bool",
    },
    "b": {
        "id": "int4",
        "k": "int8",
        "label": "varchar",
        "at": "timestamp",
        "span": "interval",
        "small": "int2",
        "ratio": "float8",
    },
    "c": {"id": "int4", "doc": "jsonb", "tags": "texts", "nums": "ints", "Odd Name": "text", "flag": "bool"},
    "e": {"x": "int4", "y": "text"},
}

SCHEMAS = {name: {column: TYPES[kind] for column, kind in columns.items()} for name, columns in TABLES.items()}

DOCUMENTS = (
    *('{"a": 1, "b": [1, 2]}', '{"a": "x"}', "[1, 2, 3]", '["x", null]', "1", '"x"', "null", "{}", "[]"),
    *('{"a": {"b": 2}}', "true"),
)
SPANS = (Interval(0, 1, 0), Interval(0, -2, 0), Interval(0, 0, 3_600_000_000), Interval(0, 3, 0))
EPOCH = datetime.datetime(2024, 1, 30)
# Texts that would mean something to Spark, were they not quoted well.
HOSTILE = ("it's ${env:HOME}", '\\"{0}`')


def infinite(rng: random.Random) -> Infinite | None:
    """Now and then an infinity."""
    return rng.choice(list(Infinite)) if rng.random() < 0.08 else None


VALUES: dict[str, Callable[[random.Random], Any]] = {
    "int2": lambda rng: rng.randint(-2, 5),
    "int4": lambda rng: rng.randint(0, 5),
    "int8": lambda rng: rng.randint(-1, 6),
    "numeric": lambda rng: Decimal(rng.choice([0, 150, 225, -300, 9999, 100])).scaleb(-2),
    "float8": lambda rng: rng.randint(1, 12) / 4,
    "text": lambda rng: rng.choice(["ab", "abc", "b", "aa", "", "x%y", "c d", *HOSTILE]),
    "varchar": lambda rng: rng.choice(["ab", "b", "zz", "x"]),
    "bool": lambda rng: rng.random() < 0.5,
    "date": lambda rng: infinite(rng) or EPOCH.date() + datetime.timedelta(days=rng.randint(-3, 40)),
    "timestamp": lambda rng: infinite(rng) or EPOCH + datetime.timedelta(hours=rng.choice([0, 1, 5, 24, 36, 720])),
    "interval": lambda rng: rng.choice(SPANS),
    "jsonb": lambda rng: rng.choice(DOCUMENTS),
    "ints": lambda rng: [rng.choice([1, 2, 3, None]) for _ in range(rng.randint(0, 3))],
    "texts": lambda rng: [rng.choice(["a", "b", "ab", None]) for _ in range(rng.randint(0, 3))],
}


class Words:
    """A catalog of these tables."""

    def find(self, path: Sequence[str]) -> Collection | None:
        """By the last part of the name."""
        columns = SCHEMAS.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        """All names."""
        return list(SCHEMAS)


def rows_for(rng: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    """A few rows for each table, with NULLs and duplicates; of the last one none."""

    def value(kind: str) -> Any:
        return None if rng.random() < 0.15 else VALUES[kind](rng)

    data = {
        name: [tuple(value(kind) for kind in columns.values()) for _ in range(rng.randint(3, 7))]
        for name, columns in TABLES.items()
    }
    return {name: [*rows, rows[0]] for name, rows in data.items()} | {"e": []}


def literal(rng: random.Random, kind: str) -> str:
    """A value as text, with or without its type; some are of a type that its place decides."""
    value = VALUES[kind](rng)
    shown = quoted(kind, value)
    if kind in ("int4", "int8", "int2"):
        number = str(value) if value >= 0 else f"({value})"
        return number if kind == "int4" or rng.random() < 0.3 else f"{number}::{kind}"
    if kind == "numeric":
        return rng.choice(
            [f"{value:f}" if value >= 0 else f"({value:f})", f"{value:f}::numeric(8, 3)", f"{shown}::numeric"]
        )
    if kind == "bool":
        return str(value).lower()
    if kind in ("text", "varchar") and rng.random() < 0.6:
        return shown
    if kind in ("date", "timestamp", "interval") and rng.random() < 0.5:
        return f"{WRITTEN[kind]} {shown}"
    if kind == "ints" and value and rng.random() < 0.5:
        return f"ARRAY[{', '.join('NULL' if each is None else str(each) for each in value)}]::int[]"
    return f"{shown}::{WRITTEN[kind]}"


def quoted(kind: str, value: Any) -> str:
    """A value between quotes, of no type yet."""
    if kind == "interval":
        text = f"{value.days} days" if value.days else f"{value.micros // 3_600_000_000} hours"
    elif kind in ("ints", "texts"):
        text = "{" + ",".join("NULL" if each is None else str(each) for each in value) + "}"
    elif kind == "numeric":
        text = f"{value:f}"
    else:
        text = value.value if isinstance(value, Infinite) else str(value)
    return "'" + text.replace("'", "''") + "'"
