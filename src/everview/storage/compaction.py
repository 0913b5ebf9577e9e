"""Compaction: fewer batches, and no distinctions between times that nobody can read any more.

`plan` decides and changes nothing: it returns the work as a value. Small batches are merged early and large ones
rarely: batches are sorted into levels by size, and a level that is full is merged into the next, so every update is
rewritten a number of times logarithmic in the size of the shard. When much of a shard could cancel, all is merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from everview.storage.batch import (
    INLINE_BYTES_MAX,
    UNCOMPACTED,
    Batch,
    decode_inline,
    inline_batch,
    one_record_batch,
    part_batch,
)
from everview.storage.faults import failpoint
from everview.storage.merge import merge
from everview.storage.parts import PartReader, PartWriter
from everview.storage.shard import FOREVER, Clocks, Shard
from everview.storage.staging import Stager
from everview.timely.consolidate import HASH, with_hash

SMALLEST_BYTES = 8 << 10
LEVEL_FACTOR = 8
SMALLEST_FAN_IN = 64
FAN_IN = 6
INPUTS_MAX = 256


@dataclass(frozen=True, slots=True)
class Compaction:
    """Work to do: merge these batches of a shard, with times advanced to `since`."""

    shard: Shard
    inputs: tuple[int, ...]
    since: int


def level(batch: Batch) -> int:
    """The size class of a batch: 0 for the smallest, one more for every `LEVEL_FACTOR` in size."""
    size, result = SMALLEST_BYTES, 0
    while batch.size_bytes > size:
        size, result = size * LEVEL_FACTOR, result + 1
    return result


def plan(shard: Shard, clocks: Clocks) -> Compaction | None:
    """The most useful compaction of this shard, if any is worth it now."""
    since = shard.since(clocks)
    batches = list(shard.batches.values())
    if since == FOREVER or len(batches) == 0:
        return None
    levels: dict[int, list[Batch]] = {}
    for batch in batches:
        levels.setdefault(level(batch), []).append(batch)
    for height in sorted(levels):
        if len(levels[height]) >= (SMALLEST_FAN_IN if height == 0 else FAN_IN):
            below = [batch for h in levels if h <= height for batch in levels[h]]
            return _compaction(shard, below, since)
    if _could_halve(batches, since):
        return _compaction(shard, batches, since)
    return None


def full(shard: Shard, clocks: Clocks) -> Compaction | None:
    """The compaction of everything into one batch, if it would change anything."""
    since = shard.since(clocks)
    batches = list(shard.batches.values())
    if since == FOREVER or not batches:
        return None
    return None if len(batches) == 1 and _settled(batches[0], since) else _compaction(shard, batches, since)


def _settled(batch: Batch, since: int) -> bool:
    """Whether compacting the batch again would change nothing."""
    return batch.since >= since or (batch.since != UNCOMPACTED and batch.time_min >= since)


def _compaction(shard: Shard, batches: list[Batch], since: int) -> Compaction:
    return Compaction(shard, tuple(batch.number for batch in batches[:INPUTS_MAX]), since)


def _could_halve(batches: list[Batch], since: int) -> bool:
    """Whether a merge might cancel half of all updates: retractions at settled times, with what they retract."""
    rows = sum(b.rows for b in batches)
    loose = sum(b.retractions for b in batches if b.time_max <= since and not _settled(b, since))
    # Collections of changes yet to come may hold little but negative diffs, which have nothing to cancel with.
    loose = min(loose, rows - sum(b.retractions for b in batches))
    return loose > 0 and loose * 4 >= rows


def compact(work: Compaction, stager: Stager, reader: PartReader) -> Batch | None:
    """Merge the batches. The parts of the result are durable and not committed yet. None if all canceled out."""
    shard, spec = work.shard, work.shard.spec
    inputs = [shard.batches[number] for number in work.inputs]
    where = f"collection {shard.id}"
    schema = spec.at_rest
    inline = [decode_inline(batch, schema, spec.created, where) for batch in inputs if batch.inline]
    runs: list[Iterator[pa.Table]] = []
    starts: list[int] = []
    if inline:
        runs.append(iter([with_hash(pa.concat_tables(inline).combine_chunks(), spec.key)]))
        starts.append(-(2**63))
    for part in (part for batch in inputs for part in batch.parts):
        runs.append(reader.row_groups(part, where, spec.in_parts))
        starts.append(part.hash_min)
    bounds = (min(b.lower for b in inputs), max(b.upper for b in inputs), work.since)
    writer: PartWriter | None = None
    small: list[pa.Table] = []
    try:
        for chunk in merge(runs, starts, spec, work.since):
            small.append(chunk)
            if writer is None and sum(table.nbytes for table in small) <= INLINE_BYTES_MAX:
                continue
            writer = writer or stager.writer(shard.id, spec)
            for table in small:
                writer.write(table)
            small = []
        if writer is not None:
            parts = writer.finish()
            failpoint("compaction.written")
            return part_batch(parts, *bounds) if parts else None
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    merged = pa.concat_tables(small).drop_columns([HASH]).select(schema.names) if small else schema.empty_table()
    return inline_batch(one_record_batch(merged), *bounds) if merged.num_rows else None
