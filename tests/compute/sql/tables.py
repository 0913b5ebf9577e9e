"""The tables that the tests of the front end speak of."""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.ir.types import BOOLEAN, DATE, INT4, INT8, TEXT, numeric
from everview.compute.sql.scope import Collection

TABLES = {
    "t": {
        "id": INT4,
        "k": INT4,
        "name": TEXT,
        "price": numeric(10, 2),
        "qty": INT4,
        "day": DATE,
        "flag": BOOLEAN,
    },
    "u": {"id": INT4, "k": INT4, "label": TEXT, "amount": INT8},
    "empty": {"x": INT4, "y": TEXT},
    # Numbers in both representations and of several scales.
    "m": {
        "id": INT4,
        "a": numeric(6, 2),
        "b": numeric(24, 2),
        "c": numeric(10, 4),
        "d": numeric(),
        "e": numeric(38, 0),
    },
}


class Tables:
    """A catalog of these tables."""

    def find(self, path: Sequence[str]) -> Collection | None:
        """By the last part of the name."""
        columns = TABLES.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        """All names."""
        return list(TABLES)
