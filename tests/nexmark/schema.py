"""The collections of Nexmark, and the small table that q13 enriches bids from."""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.ir.types import INT8, TEXT, TIMESTAMP, SqlType
from everview.compute.sql.scope import Collection

TABLES: dict[str, dict[str, SqlType]] = {
    "person": {
        "id": INT8,
        "name": TEXT,
        "email_address": TEXT,
        "credit_card": TEXT,
        "city": TEXT,
        "state": TEXT,
        "date_time": TIMESTAMP,
        "extra": TEXT,
    },
    "auction": {
        "id": INT8,
        "item_name": TEXT,
        "description": TEXT,
        "initial_bid": INT8,
        "reserve": INT8,
        "date_time": TIMESTAMP,
        "expires": TIMESTAMP,
        "seller": INT8,
        "category": INT8,
        "extra": TEXT,
    },
    "bid": {
        "auction": INT8,
        "bidder": INT8,
        "price": INT8,
        "channel": TEXT,
        "url": TEXT,
        "date_time": TIMESTAMP,
        "extra": TEXT,
    },
    "side_input": {"key": INT8, "value": TEXT},
}


class Nexmark:
    """The catalog."""

    def find(self, path: Sequence[str]) -> Collection | None:
        """By the last part of the name."""
        columns = TABLES.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        """All names."""
        return list(TABLES)
