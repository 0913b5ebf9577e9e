"""What the demo shows, in SQL: an auction house that never stops, and three views over it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from everview.quoting import literal

HISTORY = "10m"  # so that the proof can look at past times


@dataclass(frozen=True, slots=True)
class View:
    """A materialized view of the demo: the kind of query it stands for, its key column, and the query."""

    name: str
    shows: str
    key: str
    query: str

    @property
    def statement(self) -> str:
        return f"CREATE MATERIALIZED VIEW {self.name} WITH (RETAIN HISTORY FOR '{HISTORY}') AS {self.query}"

    @property
    def sink(self) -> str:
        return f"{self.name}_delivered"

    def sink_statement(self, file: Path) -> str:
        """The statement that delivers the view into a SQLite file."""
        return (
            f"CREATE SINK {self.sink} FROM {self.name} "
            f"INTO SQLITE (PATH {literal(str(file))}, TABLE '{self.name}') KEY ({self.key})"
        )


SCHEMA = "auction_house"
TABLES = ("auctions", "bids")

VIEWS = (
    View(
        "named_bids",
        "join",
        "id",
        """
        SELECT bids.id, auctions.item, seller.name AS seller, buyer.name AS buyer, bids.amount
        FROM bids
        JOIN auctions ON auctions.id = bids.auction_id
        JOIN users AS seller ON seller.id = auctions.seller
        JOIN users AS buyer ON buyer.id = bids.buyer
        """,
    ),
    View(
        "items",
        "aggregate",
        "item",
        """
        SELECT auctions.item, count(*) AS bids, sum(bids.amount) AS bid, round(avg(bids.amount), 2) AS mean
        FROM auctions JOIN bids ON bids.auction_id = auctions.id
        GROUP BY auctions.item
        """,
    ),
    View(
        "top_buyers",
        "top 5",
        "id",
        """
        SELECT users.name, users.id, sum(bids.amount) AS bid
        FROM bids JOIN users ON users.id = bids.buyer
        GROUP BY users.name, users.id
        ORDER BY bid DESC, users.id LIMIT 5
        """,
    ),
)


def source(seed: int) -> str:
    """The statement that creates the source: ten times a second an auction and 20 bids."""
    return (
        "CREATE SOURCE auction FROM LOAD GENERATOR AUCTION "
        f"(TICK INTERVAL '100ms', BIDS PER TICK 20, SEED {seed}) WITH (RETAIN HISTORY FOR '{HISTORY}')"
    )
