"""Who may commit which keys: a table of rows that always partition the ranges that were ever opened.

Opening a range carves it out: every row that overlaps is cut down to what lies outside, and one new row takes the
range with the checkpoints of all it was cut from. All rows that were touched get a new fence, so whoever opened them
before finds no row with its range and fence, and can commit nothing. Splits and joins are nothing else than opening
other ranges, in any order, and no row is ever stale. The store of the rows is the caller's: this is a pure function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.keyrange import KeyRange


@dataclass(frozen=True, slots=True)
class OwnedRange:
    """One range: who may commit it, how far it is, and, where the recovery log keeps it, the driver's state.

    `intent` is the end of the transaction that is being stored, for endpoints where a failed one leaves traces. The
    endpoint has certainly stored everything up to `acknowledged`, so an answer that says less is wrong. `settled`: the
    endpoint is exactly at the checkpoint, and nobody has written under this row since. `moved`: the endpoint has no
    checkpoint of this very range yet, so a foreign driver may answer with that of another. `lineages` are those who
    may have written last.
    """

    range: KeyRange
    fence: int
    checkpoint: Checkpoint
    state: Mapping[str, Any] = field(default_factory=dict)
    intent: Checkpoint | None = None
    acknowledged: Checkpoint | None = None
    settled: bool = False
    lineages: tuple[str, ...] = ()
    moved: bool = False
    generation: int = 0  # how often everything was delivered anew: what was written before counts for nothing
    authoritative: bool = False  # whether the endpoint has told of a checkpoint, so that its word counts


@dataclass(frozen=True, slots=True)
class Carved:
    """What opening a range changes: rows to remove, by range, and rows to write. `mine` is the opener's."""

    mine: OwnedRange
    removed: tuple[KeyRange, ...]
    written: tuple[OwnedRange, ...]


def carve(rows: Iterable[OwnedRange], range: KeyRange) -> Carved:
    """Take `range` out of the rows for a new owner."""
    rows = list(rows)
    fence = max((row.fence for row in rows), default=0) + 1
    touched = sorted((row for row in rows if row.range.overlaps(range)), key=lambda row: row.range)
    state: dict[str, Any] = {}
    known, acknowledged, intents, rest = [], [], [], []
    for row in touched:
        common = row.range.meet(range)
        assert common is not None
        known.append(row.checkpoint.within(common))
        acknowledged.append((row.acknowledged or Checkpoint.at(common, START)).within(common))
        intents.append((row.intent or row.checkpoint).within(common))  # what is not being stored ends where it is
        state = merge_patch(state, row.state)
        for piece in row.range.minus(range):
            left = row.checkpoint.within(piece)
            intent = _beyond(left, row.intent.within(piece)) if row.intent is not None else None
            certain = row.acknowledged.within(piece) if row.acknowledged is not None else None
            part = replace(row, range=piece, fence=fence, checkpoint=left, intent=intent, acknowledged=certain)
            rest.append(replace(part, moved=True))
    checkpoint = Checkpoint.merged(known).within(range) if known else Checkpoint.at(range, START)
    intent = _beyond(checkpoint, Checkpoint.merged(intents).within(range)) if intents else None
    certain = Checkpoint.merged(acknowledged).within(range) if any(row.acknowledged for row in touched) else None
    mine = OwnedRange(range, fence, checkpoint, state, intent, certain)
    mine = replace(
        mine,
        lineages=tuple(dict.fromkeys(each for row in touched for each in row.lineages)),
        moved=any(row.moved or row.range != range for row in touched),
        generation=max((row.generation for row in touched), default=0),
        authoritative=any(row.authoritative for row in touched),
    )
    return Carved(mine, tuple(row.range for row in touched), (mine, *rest))


def _beyond(checkpoint: Checkpoint, intent: Checkpoint) -> Checkpoint | None:
    """The intent; None if it ends at the checkpoint, for then nothing is being stored."""
    return intent if intent.pieces != checkpoint.pieces else None


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """JSON merge patch of objects: NULL removes, objects merge, anything else replaces."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            inner = result.get(name)
            result[name] = merge_patch(inner if isinstance(inner, Mapping) else {}, value)
        else:
            result[name] = value
    return result
