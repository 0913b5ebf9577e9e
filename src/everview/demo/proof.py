"""The proof: what was maintained, change by change, is what the queries say from scratch, at the same timestamps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from everview.api import Database
from everview.demo.scenario import View
from everview.demo.watching import Follower
from everview.errors import EverviewError


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was said to be true, and whether it is."""

    claim: str
    passed: bool
    detail: str


def recomputed(database: Database, views: Sequence[View], times: Sequence[int]) -> Iterator[Check]:
    """For each view: at each of the times, its contents beside those of its query over the source."""
    for view in views:
        claim = f"{view.name} ({view.shows}) is what its query says"
        rows, wrong = 0, []
        try:
            for time in times:
                maintained = contents(database, f"SELECT * FROM {view.name}", time)
                rows += maintained.total()
                if maintained != contents(database, view.query, time):
                    wrong.append(time)
        except EverviewError as error:
            yield Check(claim, False, str(error))
            continue
        span_s = (times[-1] - times[0]) / 1000
        detail = f"{rows:,} rows at {len(times)} times over {span_s:.0f} s, recomputed from scratch"
        yield Check(claim, not wrong, f"different at {', '.join(map(str, wrong))}" if wrong else detail)


def heard(database: Database, follower: Follower) -> Check:
    """The changes that a subscriber was told of, added up, beside the contents."""
    claim = f"a subscription to {follower.view} adds up to its contents"
    if follower.error is not None:
        return Check(claim, False, str(follower.error))
    passed = follower.contents == contents(database, f"SELECT * FROM {follower.view}", follower.frontier - 1)
    return Check(claim, passed, f"{follower.updates:,} changes make {follower.contents.total():,} rows")


def contents(database: Database, query: str, time: int) -> Counter[tuple[Any, ...]]:
    """What a query gives at a time: rows, and how often each occurs."""
    return Counter(tuple(row) for row in database.sql(f"{query.strip()} AS OF {time}"))
