"""A seeded auction site: people register, offer things and bid, second by second; some of it is taken back.

Nexmark itself only ever adds. Here a person moves house now and then and a bid is withdrawn, so that maxima, ranks and
counts of the views must go down as well as up. One step is a stretch of the site's own time, which is a column of its
events and has nothing to do with the times at which the collections change.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

Row = tuple[Any, ...]
Changes = dict[str, list[tuple[Row, int]]]  # rows and diffs

START = datetime(2024, 2, 28, 23, 59, 30)  # so that the stream passes a midnight
STATES = ["OR", "ID", "CA", "WA", "AZ"]
CITIES = {"OR": "Portland", "ID": "Boise", "CA": "Palo Alto", "WA": "Seattle", "AZ": "Phoenix"}
NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie"]
FAMILY = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith"]
CHANNELS = ["apple", "google", "facebook", "baidu"]
ITEMS = ["wkx mgee", "abc", "kkfqlw", "pmc ccca"]


class Site:
    """Everything that happened so far."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._now = rng, START
        self._people: dict[int, Row] = {}
        self._auctions: dict[int, Row] = {}
        self._bids: list[Row] = []

    def open(self) -> Changes:
        """What is there before anything happens: the side input."""
        return {"side_input": [((key, f"value {key}"), 1) for key in range(1000, 1200, 2)]}

    def step(self, events: int) -> Changes:
        """So many events, in the proportions of Nexmark: for one person three auctions and 46 bids."""
        changes: Changes = {"person": [], "auction": [], "bid": []}
        self._newcomer(changes)
        for number in range(events):
            self._now += timedelta(milliseconds=self._rng.randint(50, 900))
            kind = (number + self._rng.randint(0, 2)) % 25
            if kind < 2:
                self._register(changes["person"])
            elif kind < 6:
                self._offer(changes["auction"])
            else:
                self._bid(changes["bid"])
        self._take_back(changes)
        return changes

    def _newcomer(self, changes: Changes) -> None:
        """Somebody registers, offers at once and finds a bidder: every step changes the answers that are about that."""
        self._register(changes["person"], "OR")
        self._offer(changes["auction"], list(self._people)[-1], 10)
        self._bid(changes["bid"], list(self._auctions)[-1])

    def _register(self, changes: list[tuple[Row, int]], state: str | None = None) -> None:
        rng, key = self._rng, 1000 + len(self._people)
        state = state or rng.choice(STATES)
        name = f"{(given := rng.choice(NAMES))} {rng.choice(FAMILY)}"
        card = " ".join(f"{rng.randrange(10_000):04d}" for _ in range(4))
        email = f"{given.lower()}@{rng.choice(ITEMS).split()[0]}.com"
        self._people[key] = (key, name, email, card, CITIES[state], state, self._now, self._padding())
        changes.append((self._people[key], 1))

    def _offer(self, changes: list[tuple[Row, int]], seller: int | None = None, category: int | None = None) -> None:
        rng, key = self._rng, 1000 + len(self._auctions)
        first, life = rng.randint(1, 500), timedelta(seconds=rng.randint(2, 40))
        seller, category = seller or rng.choice(list(self._people)[-8:]), category or rng.randint(10, 14)
        name, text = rng.choice(ITEMS), f"a fine {rng.choice(ITEMS)}"
        dates = (self._now, self._now + life)
        row = (key, name, text, first, first + rng.randint(0, 300), *dates, seller, category, self._padding())
        self._auctions[key] = row
        changes.append((row, 1))

    def _bid(self, changes: list[tuple[Row, int]], auction: int | None = None) -> None:
        rng = self._rng
        popular = list(self._auctions)[-12:]
        auction = auction or (popular[0] if rng.random() < 0.3 else rng.choice(popular))
        bidder = rng.choice(list(self._people)[-12:])
        # Prices repeat, so that ranks have ties and bids occur twice.
        price = rng.choice([100, 250, 999, 10_000, 12_000, 1_000_000, 2_000_000, rng.randint(1, 3_000_000)])
        channel = rng.choice(CHANNELS) if rng.random() < 0.7 else f"channel-{rng.randint(1, 20)}"
        url = f"https://www.nexmark.com/{rng.choice('abc')}/{rng.choice('de')}/{rng.choice('fg')}/item.htm?query=1"
        if channel.startswith("channel-"):
            url += f"&channel_id={rng.randint(1, 10_000)}"
        self._bids.append((auction, bidder, price, channel, url, self._now, self._padding()))
        changes.append((self._bids[-1], 1))

    def _take_back(self, changes: Changes) -> None:
        """A few bids are withdrawn, most of them high ones; somebody moves."""
        for _ in range(len(changes["bid"]) // 12):
            highest = sorted(self._bids, key=lambda bid: bid[2], reverse=True)[:5]
            bid = self._rng.choice(highest if self._rng.random() < 0.6 else self._bids)
            self._bids.remove(bid)
            changes["bid"].append((bid, -1))
        key = self._rng.choice(list(self._people))
        old, state = self._people[key], self._rng.choice(STATES)
        self._people[key] = (*old[:4], CITIES[state], state, *old[6:])
        changes["person"] += [(old, -1), (self._people[key], 1)]

    def _padding(self) -> str:
        return "".join(self._rng.choices("abcxyz", k=self._rng.randint(0, 6)))


def story(rng: random.Random, steps: Sequence[int]) -> list[Changes]:
    """The changes at each time; the first are those of an empty site with its side input."""
    site = Site(rng)
    first, *rest = (site.step(events) for events in steps)
    return [{**site.open(), **first}, *rest]
