"""Mangling: the same statements, repeated, reordered, cut and glued differently, overlapping, dropped and sent again.

Whatever comes out says the same about the history as what went in, so a reader must give the same answer. It is what
the tests of readers, and `everview cdc mangle`, are made of.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from everview.cdc.contract import Message, Progress, Updates
from everview.timely.antichain import Antichain

D = TypeVar("D")


def mangle(messages: Sequence[Message[D]], rng: random.Random, *, complete: bool = True) -> list[Message[D]]:
    """A mangled copy. If it need not be complete, some statements may be missing for good."""
    updates = [update for message in messages if isinstance(message, Updates) for update in message.updates]
    progress = [message for message in messages if isinstance(message, Progress)]
    progress = recut(progress, rng)
    updates += rng.choices(updates, k=rng.randrange(len(updates) + 1)) if updates else []
    rng.shuffle(updates)
    result: list[Message[D]] = []
    at = 0
    while at < len(updates):
        size = rng.choice((1, 2, 5, 20, 1000))
        result.append(Updates(updates[at : at + size]))
        at += size
    result += progress
    result += rng.choices(result, k=rng.randrange(len(result) + 1)) if result else []
    _disorder(result, rng)
    if not complete and result:
        return result[: rng.randrange(len(result) + 1)]
    # Dropped, then sent again: what is left out here comes late, behind everything else, and in an order of its own.
    late = [message for message in result if rng.random() < 0.2]
    dropped = set(map(id, late))
    kept = [message for message in result if id(message) not in dropped]
    rng.shuffle(late)
    return kept + late


def _disorder(messages: list[Message[D]], rng: random.Random) -> None:
    """Shuffle all messages, or only neighbours, as networks mostly do."""
    if rng.random() < 0.5:
        rng.shuffle(messages)
        return
    reach = rng.choice((2, 10, 50))
    places = sorted(range(len(messages)), key=lambda place: place + rng.uniform(0, reach))
    messages[:] = [messages[place] for place in places]


def recut(progress: Sequence[Progress], rng: random.Random) -> list[Progress]:
    """The same statements: some split in two, some joined with the next one, some both."""
    result: list[Progress] = []
    following = {each.lower: each for each in progress}
    for each in progress:
        choice = rng.random()
        if choice < 0.3:
            result += split(each, rng)
        elif choice < 0.6:
            glued = each
            for _ in range(rng.choice((1, 1, 2, 5))):
                after = following.get(glued.upper)
                if after is None or after is each or after.upper <= after.lower:
                    break
                glued = Progress(glued.lower, after.upper, (*glued.counts, *after.counts))
            result.append(glued)
            if rng.random() < 0.5:
                result += split(glued, rng)
        if choice >= 0.3:
            result.append(each)
    return result


def split(progress: Progress, rng: random.Random) -> list[Progress]:
    """A statement in two parts that meet somewhere inside."""
    times = [time for time, _ in progress.counts] or list(progress.upper)
    if not times:
        return [progress]
    # Between the bounds, whatever the order of times: beyond the lower one, and not beyond what the upper one is not.
    middle = Antichain(*progress.lower.join(Antichain(rng.choice(times))), *progress.upper)
    before = tuple(pair for pair in progress.counts if not middle.less_equal(pair[0]))
    after = tuple(pair for pair in progress.counts if middle.less_equal(pair[0]))
    parts = [Progress(progress.lower, middle, before), Progress(middle, progress.upper, after)]
    return [part for part in parts if not part.upper <= part.lower] or [progress]
