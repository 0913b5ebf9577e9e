"""The proof: what is stored, read back in several ways, is what the auction house made up."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from everview.demo.display import Check
from everview.demo.generator import AUCTIONS, BIDS, SCHEMAS, WINNERS, Row, add, replay
from everview.demo.spark import bids_per_auction
from everview.demo.workload import Follower, Writer, rows_of
from everview.storage.environment import Environment
from everview.storage.observer import Observer

TIMES = 6

Contents: TypeAlias = dict[str, Counter[Row]]


class Proof:
    """Compares what an environment holds with what it must hold, worked out from the seed alone."""

    SPARK_CLAIM = "Spark counts the same bids per auction"

    def __init__(self, environment: Environment, writer: Writer, seed: int) -> None:
        self._environment = environment
        frontiers = [environment.frontiers(id) for id in SCHEMAS]
        since, upper = max(f.since.only for f in frontiers), min(f.upper.only for f in frontiers)
        # The first and the last time that can be read, and some at which a transaction has just become visible.
        between = [time for time in writer.times if time >= since]
        self.times = sorted({since, upper - 1, *between[:: len(between) // (TIMES - 2) + 1]})
        steps = {time: bisect_right(writer.times, time) for time in self.times}
        after = {
            number: {id: Counter(rows) for id, rows in contents.items()}
            for number, contents in zip(range(max(steps.values()) + 1), replay(seed), strict=False)
            if number in steps.values()
        }
        self._expected: dict[int, Contents] = {time: after[number] for time, number in steps.items()}
        self._stored: dict[int, Contents] = {}

    def checks(self, follower: Follower, data: Path) -> Iterator[Check]:
        """Everything but what takes Spark."""
        yield self._past_times()
        yield self._transactions()
        yield self._subscription(follower)
        yield self._observer(data)

    def _past_times(self) -> Check:
        for time in self.times:
            self._stored[time] = {id: self._read(id, time) for id in SCHEMAS}
        wrong = [time for time in self.times if self._stored[time] != self._expected[time]]
        span_s = (self.times[-1] - self.times[0]) / 1000
        rows = sum(rows.total() for contents in self._stored.values() for rows in contents.values())
        detail = f"{rows:,} rows at {len(self.times)} times in {span_s:.1f} s"
        if wrong:
            detail = f"different at {', '.join(map(str, wrong))}"
        return Check("contents at past times are as generated", not wrong, detail)

    def _transactions(self) -> Check:
        torn = 0
        for contents in self._stored.values():
            opened = {row[0] for row in contents[AUCTIONS]}
            torn += sum(row[0] not in opened for row in contents[BIDS])
            torn += sum(row[0] in opened for row in contents[WINNERS])
        detail = f"{torn} bids or winners out of place"
        return Check("transactions are seen whole or not at all", torn == 0, detail)

    def _subscription(self, follower: Follower) -> Check:
        passed = follower.contents == self._stored[self.times[-1]][BIDS]
        detail = f"{follower.updates:,} updates make {follower.contents.total():,} bids"
        return Check("the subscription adds up to the contents", passed, detail)

    def _observer(self, data: Path) -> Check:
        """As `everview shard read` does it, beside the process that has the environment open."""
        seen: Contents = {}
        with Observer.open(data) as observer:
            for id in SCHEMAS:
                with observer.contents(id, self.times[-1]) as reading:
                    seen[id] = _counted(reading)
        rows = sum(rows.total() for rows in seen.values())
        passed = seen == self._expected[self.times[-1]]
        return Check("an observer from outside sees the same", passed, f"{rows:,} rows")

    def reopened(self, environment: Environment) -> Check:
        """After the environment was closed and opened again."""
        self._environment = environment
        last = self.times[-1]
        passed = {id: self._read(id, last) for id in SCHEMAS} == self._expected[last]
        return Check("closed and opened again, all is there", passed, f"epoch {environment.epoch}")

    def spark(self, spark: Any) -> Check:
        """Bids per auction at the last time: by Spark, from the stored files and what is inline, and added up here."""
        time = self.times[-1]
        with self._environment.contents(BIDS, time) as selection:
            found = bids_per_auction(spark, selection)
            parts, inline = sum(p.rows for p in selection.parts), sum(b.rows for b in selection.inline)
        bids: dict[int, list[int]] = defaultdict(list)
        for (auction, _, cents), copies in self._expected[time][BIDS].items():
            bids[auction] += [cents] * copies
        passed = found == {auction: (len(cents), max(cents)) for auction, cents in bids.items()} and parts > 0
        return Check(self.SPARK_CLAIM, passed, f"{parts:,} updates from Parquet, {inline:,} inline")

    def _read(self, id: str, time: int) -> Counter[Row]:
        with self._environment.contents(id, time) as selection:
            return _counted([selection.contents()])


def _counted(tables: Iterable[pa.Table]) -> Counter[Row]:
    result: Counter[Row] = Counter()
    for table in tables:
        add(result, rows_of(table))
    return result
