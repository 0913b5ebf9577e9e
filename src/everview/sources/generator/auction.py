"""AUCTION: organizations, users and accounts that are there from the start; auctions and bids that keep coming.

Each tick opens one auction and brings bids on those that are still open. An auction lasts a few ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from everview.compute.ir.types import INT4, INT8, TEXT, TIMESTAMPTZ
from everview.sources.contract import Table
from everview.sources.generator.contract import Changes, Row, rng

ORGANIZATIONS, USERS, ACCOUNTS = 10, 100, 50
OPEN_TICKS = 10
_FIRST = ("Ada", "Alan", "Barbara", "Dennis", "Edgar", "Frances", "Grace", "Jim", "Leslie", "Margaret", "Tony", "Tim")
_LAST = ("Allen", "Codd", "Gray", "Hamilton", "Hoare", "Hopper", "Lamport", "Liskov", "Lovelace", "Ritchie", "Turing")
_THINGS = ("Custom Art", "City Bar Crawl", "Best Pizza in Town", "Gift Basket", "Signed Memorabilia", "Hot Air Ride")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Auction:
    """Auctions with `bids` bids a tick; `start_ms` and `interval_ms` say when things happen in the data."""

    seed: int
    start_ms: int
    interval_ms: int
    bids: int = 10

    @property
    def tables(self) -> tuple[Table, ...]:
        """The five tables."""
        return (
            Table.of("organizations", ("id", INT8), ("name", TEXT)),
            Table.of("users", ("id", INT8), ("org_id", INT8), ("name", TEXT)),
            Table.of("accounts", ("id", INT8), ("org_id", INT8), ("balance", INT8)),
            Table.of("auctions", ("id", INT8), ("seller", INT8), ("item", TEXT), ("end_time", TIMESTAMPTZ)),
            Table.of(
                "bids", ("id", INT8), ("buyer", INT8), ("auction_id", INT8), ("amount", INT4), ("bid_time", TIMESTAMPTZ)
            ),
        )

    def changes(self, tick: int) -> Changes:
        """What happens at a tick."""
        if tick == 0:
            return self._beginning()
        open_auctions = range(max(1, tick - OPEN_TICKS + 1), tick + 1)
        bids = [self._bid(tick, number, open_auctions) for number in range(self.bids)]
        return {"auctions": [(self._auction(tick), 1)], "bids": [(bid, 1) for bid in bids]}

    def _beginning(self) -> Changes:
        organizations = [(number, f"Organization {number}") for number in range(1, ORGANIZATIONS + 1)]
        users: list[Row] = []
        for number in range(1, USERS + 1):
            chance = rng(self.seed, "user", number)
            name = f"{chance.choice(_FIRST)} {chance.choice(_LAST)}"
            users.append((number, chance.randint(1, ORGANIZATIONS), name))
        accounts: list[Row] = []
        for number in range(1, ACCOUNTS + 1):
            chance = rng(self.seed, "account", number)
            accounts.append((number, chance.randint(1, ORGANIZATIONS), chance.randint(100, 100_000)))
        return {
            "organizations": [(row, 1) for row in organizations],
            "users": [(row, 1) for row in users],
            "accounts": [(row, 1) for row in accounts],
        }

    def _auction(self, tick: int) -> Row:
        chance = rng(self.seed, "auction", tick)
        return (tick, chance.randint(1, USERS), chance.choice(_THINGS), self._moment(tick + OPEN_TICKS))

    def _bid(self, tick: int, number: int, open_auctions: range) -> Row:
        chance = rng(self.seed, "bid", tick, number)
        id = (tick - 1) * self.bids + number + 1
        return (id, chance.randint(1, USERS), chance.choice(open_auctions), chance.randint(1, 100), self._moment(tick))

    def _moment(self, tick: int) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.start_ms + tick * self.interval_ms)
