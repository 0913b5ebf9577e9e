"""An auction house, made up from a seed: what happens at each step, and so what every collection holds after it.

Auctions open, bids come in, and when an auction closes, it and its bids go and a winner is entered, all in one step.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa

Row: TypeAlias = tuple[Any, ...]
Changes: TypeAlias = dict[str, list[tuple[Row, int]]]  # of each collection, its rows and by how much each changes

AUCTIONS, BIDS, WINNERS = "auctions", "bids", "winners"
SCHEMAS = {
    AUCTIONS: pa.schema({"auction": pa.int64(), "item": pa.string(), "seller": pa.string()}),
    BIDS: pa.schema({"auction": pa.int64(), "bidder": pa.string(), "cents": pa.int64()}),
    WINNERS: pa.schema({"auction": pa.int64(), "item": pa.string(), "bidder": pa.string(), "cents": pa.int64()}),
}

OPEN_AT_FIRST = 600
BIDS_AT_FIRST = 25  # on each of them, so that the first commit is a large one
BIDS_PER_STEP = 20
STEPS_OPEN_MAX = 1500

_WHAT = ("clock", "violin", "globe", "teapot", "atlas", "lamp", "camera", "chess set", "kite", "telescope")
_KIND = ("brass", "walnut", "painted", "silver", "antique", "folding", "signed", "miniature")
_NAMES = ("ada", "blaise", "carl", "emmy", "grace", "henri", "joan", "kurt", "leonhard", "mary", "sofia", "tim")


class Market:
    """The auction house after some number of steps. The same seed makes the same steps."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._open: dict[int, Row] = {}
        self._bids: dict[int, list[Row]] = defaultdict(list)
        self._closing: dict[int, list[int]] = defaultdict(list)
        self._next_auction = 1
        self._steps = 0

    def steps(self) -> Iterator[Changes]:
        """What changes, step by step, without end."""
        while True:
            self._steps += 1
            changes: Changes = {name: [] for name in SCHEMAS}
            first = self._steps == 1
            for _ in range(OPEN_AT_FIRST if first else self._random.choice((0, 0, 1, 1, 1))):
                self._open_one(changes)
            for _ in range(OPEN_AT_FIRST * BIDS_AT_FIRST if first else self._random.randint(1, 2 * BIDS_PER_STEP)):
                self._bid(changes)
            for auction in self._closing.pop(self._steps, ()):
                self._close(changes, auction)
            yield {name: rows for name, rows in changes.items() if rows}

    def _open_one(self, changes: Changes) -> None:
        pick = self._random.choice
        auction, self._next_auction = self._next_auction, self._next_auction + 1
        self._open[auction] = (auction, f"{pick(_KIND)} {pick(_WHAT)}", pick(_NAMES))
        self._closing[self._steps + self._random.randint(5, STEPS_OPEN_MAX)].append(auction)
        changes[AUCTIONS].append((self._open[auction], 1))

    def _bid(self, changes: Changes) -> None:
        # Mostly on recent ones; an auction that is closed by now gets no bid.
        auction = self._next_auction - 1 - int(self._random.expovariate(1 / 300))
        if auction in self._open:
            bids = self._bids[auction]
            cents = (bids[-1][2] if bids else 0) + 50 * self._random.randint(1, 40)
            bids.append((auction, self._random.choice(_NAMES), cents))
            changes[BIDS].append((bids[-1], 1))

    def _close(self, changes: Changes, auction: int) -> None:
        row, bids = self._open.pop(auction), self._bids.pop(auction, [])
        changes[AUCTIONS].append((row, -1))
        changes[BIDS] += [(bid, -1) for bid in bids]
        if bids:
            changes[WINNERS].append(((auction, row[1], *bids[-1][1:]), 1))


def replay(seed: int) -> Iterator[dict[str, Counter[Row]]]:
    """What the collections hold before the first step, after it, after the second and so on, all from the seed.

    What is given is changed by going on: copy what is to be kept.
    """
    contents: dict[str, Counter[Row]] = {name: Counter() for name in SCHEMAS}
    yield contents
    for changes in Market(seed).steps():
        for name, rows in changes.items():
            add(contents[name], rows)
        yield contents


def add(contents: Counter[Row], changes: list[tuple[Row, int]]) -> None:
    """Change the multiplicities of rows; one that becomes 0 is a row that is not there."""
    for row, diff in changes:
        contents[row] += diff
        if contents[row] == 0:
            del contents[row]
