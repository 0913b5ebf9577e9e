"""Checkpoints: how far a split has delivered its collections, place by place.

A checkpoint gives each place of a split's range a frontier: every update before it is in the view, none at or beyond
it is. One frontier would do but for joins, where the parts were at different times: so it is a list of ranges, and
the next commit makes it one again. It names the processes that wrote it (`lineages`), so that what another copy of the
environment delivered is not taken for our own. To the driver a checkpoint is opaque text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from everview.flow.errors import DriverFailed
from everview.flow.keyrange import WHOLE, KeyRange, Places
from everview.storage.shard import FOREVER
from everview.timely.hashing import I64

START = 0  # nothing was delivered yet: all that the collection holds is still to come


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Frontiers of disjoint ranges in ascending order."""

    pieces: tuple[tuple[KeyRange, int], ...]
    lineages: frozenset[str] = field(default=frozenset(), compare=False)

    @classmethod
    def at(cls, range: KeyRange, frontier: int) -> Checkpoint:
        """One frontier for all of a range."""
        return cls(((range, frontier),))

    @classmethod
    def merged(cls, checkpoints: Iterable[Checkpoint]) -> Checkpoint:
        """The checkpoint of several disjoint ranges together; neighbours with one frontier become one."""
        checkpoints = list(checkpoints)
        pieces: list[tuple[KeyRange, int]] = []
        for range, frontier in sorted(piece for each in checkpoints for piece in each.pieces):
            if pieces and pieces[-1][1] == frontier and pieces[-1][0].end + 1 == range.begin:
                pieces[-1] = (KeyRange(pieces[-1][0].begin, range.end), frontier)
            else:
                pieces.append((range, frontier))
        return cls(tuple(pieces), frozenset().union(*(each.lineages for each in checkpoints)))

    def by(self, lineage: str) -> Checkpoint:
        """This checkpoint as this process (`lineage`) writes it."""
        return replace(self, lineages=frozenset({lineage} if lineage else ()))

    def latest(self, other: Checkpoint) -> Checkpoint:
        """For each place of this checkpoint, the greater frontier of the two."""
        pieces = [
            (common, max(frontier, there))
            for range, frontier in self.pieces
            for each, there in other.pieces
            if (common := range.meet(each))
        ]
        missing = [(rest, frontier) for range, frontier in self.pieces for rest in _outside(range, other)]
        return Checkpoint.merged([Checkpoint((*pieces, *missing), self.lineages)])

    def behind(self, other: Checkpoint) -> bool:
        """Whether every place has an earlier frontier here than in the other checkpoint."""
        met = [(frontier, there) for range, frontier in self.pieces for each, there in other.pieces if range.meet(each)]
        return all(frontier < there for frontier, there in met) and not any(
            _outside(range, other) for range, _ in self.pieces
        )

    def within(self, range: KeyRange) -> Checkpoint:
        """The checkpoint of these places. For places that it does not mention, nothing was delivered."""
        pieces = [(common, frontier) for each, frontier in self.pieces if (common := each.meet(range))]
        missing = _outside(range, self)
        here = Checkpoint(tuple(pieces), self.lineages)
        return Checkpoint.merged([here, Checkpoint(tuple((gap, START) for gap in missing))])

    @property
    def simple(self) -> bool:
        """Whether one frontier holds for all places, so that no key's place has to be computed."""
        return len(self.pieces) == 1 and self.pieces[0][0] == WHOLE

    @property
    def lowest(self) -> int:
        """The least frontier: the history is still needed from here on."""
        return min(frontier for _, frontier in self.pieces)

    @property
    def highest(self) -> int:
        return max(frontier for _, frontier in self.pieces)

    def frontiers(self, places: Places) -> I64:
        """The frontier of each place. Places outside of the range get `FOREVER`: nothing is theirs."""
        result = np.full(len(places), FOREVER, dtype=np.int64)
        for range, frontier in self.pieces:
            result[range.holds(places)] = frontier
        return result

    def encode(self) -> str:
        said: list[Any] = [[str(range), frontier] for range, frontier in self.pieces]
        return json.dumps([*said, *sorted(self.lineages)], separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> Checkpoint:
        """Read a checkpoint. DriverFailed if this text was not written by `encode`."""
        try:
            said = json.loads(text)
            lineages = frozenset(each for each in said if isinstance(each, str))
            found = [each for each in said if not isinstance(each, str)]
            pieces = tuple((KeyRange.parse(range), int(frontier)) for range, frontier in found)
        except (ValueError, TypeError) as error:
            raise DriverFailed("the endpoint returned a checkpoint that is none", detail=str(error)) from error
        if not pieces:
            raise DriverFailed("the endpoint returned an empty checkpoint")
        return cls(pieces, lineages)


def _outside(range: KeyRange, other: Checkpoint) -> list[KeyRange]:
    """The parts of a range that a checkpoint does not mention."""
    missing = [range]
    for each, _ in other.pieces:
        missing = [rest for gap in missing for rest in gap.minus(each)]
    return missing
