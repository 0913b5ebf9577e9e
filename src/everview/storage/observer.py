"""Looking at an environment without opening it: no epoch is taken, nobody is fenced, nothing changes.

It works beside a process that has the environment open, and where nothing may be written. An observer holds nothing:
what it looks at may be compacted and removed under its eyes. Then it looks again. The contents at a time are the same
rows in the same order before and after a compaction, so a reading that was interrupted goes on where it was; only
once the time itself has been compacted away is it over, and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pyarrow as pa

from everview.closing import Closing
from everview.storage.blob.contract import Blob, ReadableBlob
from everview.storage.codec import clock_key, decode_shard, decode_state, decoding, shard_prefixes, state_key
from everview.storage.consensus.contract import Consensus, Entry
from everview.storage.contract import Frontiers, GlobalId
from everview.storage.disk import read_failure
from everview.storage.errors import BlobMissing, Corruption, Determinate, NotReadable, UnknownId
from everview.storage.opening import open_stores
from everview.storage.parts import PartReader
from everview.storage.sealed import SealedConsensus
from everview.storage.selection import InlineUpdates, Selection, check_changes_readable, check_contents_readable
from everview.storage.shard import FOREVER, Clocks, Shard, Spec, to_frontier
from everview.timely.consolidate import DIFF, TIME

OPEN_MAX = 200  # files; processes may have few
TRIES_MAX = 10  # without any progress; each takes another compaction to come between
_CLOCKS = clock_key("")
_STATES = state_key("").rstrip("/") + "/"
_NO_SPEC = Spec(pa.schema([]), (), 0)


@dataclass(frozen=True, slots=True)
class ShardSnapshot:
    """A shard and the clocks at one instant."""

    shard: Shard
    clocks: Clocks

    @property
    def since(self) -> int:
        return self.shard.since(self.clocks)

    @property
    def upper(self) -> int:
        return self.shard.upper(self.clocks)

    @property
    def frontiers(self) -> Frontiers:
        return Frontiers(to_frontier(self.since), to_frontier(self.upper))

    @property
    def part_keys(self) -> set[str]:
        return {part.key for batch in self.shard.batches.values() for part in batch.parts}

    def contents_until(self, as_of: int | None) -> int:
        """The end of the times to add up for the contents at `as_of`, by default at the last complete time."""
        if as_of is None and self.since < self.upper:
            as_of = self.upper - 1
            if self.upper == FOREVER:  # nothing happens after the last change
                as_of = max([self.since, *(batch.time_max for batch in self.shard.batches.values())])
        elif as_of is None and self.since != FOREVER:
            raise NotReadable(
                f"collection {self.shard.id} cannot be read at any time yet",
                detail=f"since is {self.since} and upper is {self.upper}: no time lies between",
                hint="it can be read once its writer moves upper on",
            )
        check_contents_readable(self.shard, as_of or 0, self.clocks)
        return (as_of or 0) + 1

    def changes_until(self, lower: int, upper: int | None) -> int:
        """The end of the times of the changes from `lower` on: `upper`, by default all complete ones."""
        upper = self.upper if upper is None else upper
        check_changes_readable(self.shard, lower, upper, self.clocks)
        if lower <= self.since > self.shard.spec.initial:
            # The sums are right, but times may have been advanced, which would surprise a person.
            raise NotReadable(
                f"changes of collection {self.shard.id} from {lower} on are no longer known",
                detail=f"since is {self.since}",
                hint=f"read the contents as of {self.since}, or the changes from {self.since + 1} on",
            )
        return upper


class Observer(Closing):
    """Looks at the environment in a Consensus and a Blob. Any number of observers may, at any time."""

    def __init__(self, consensus: Consensus, blob: Blob) -> None:
        self._consensus, self._blob = SealedConsensus(consensus), blob

    @classmethod
    def open(cls, data: str | os.PathLike[str], consensus: str | None = None, blob: str | None = None) -> Observer:
        """Look at the environment in folder `data`; the URLs say where its stores are, if not there."""
        try:
            return cls(*open_stores(Path(data), consensus, blob, read_only=True))
        except OSError as failure:
            raise read_failure(failure, "opening the environment", Path(data)) from failure

    def collections(self) -> dict[GlobalId, Frontiers]:
        """The collections that can be read or written, in order of name, and where all of them stood at one instant."""
        clocks, entries = _clocks_apart(self._consensus.scan(_CLOCKS, _STATES))
        found: dict[GlobalId, Frontiers] = {}
        for key, entry in entries:
            id = key.split("/")[1]
            with decoding(f"collection {id}"):
                shard = decode_state(id, _NO_SPEC, entry.value, ())
                if not shard.gone:
                    found[id] = ShardSnapshot(shard, clocks).frontiers
        return {id: found[id] for id in sorted(found, key=lambda id: (id.rstrip("0123456789"), len(id), id))}

    def look(self, id: GlobalId) -> ShardSnapshot:
        clocks, entries = _clocks_apart(self._consensus.scan(_CLOCKS, *shard_prefixes(id)))
        with decoding(f"collection {id}"):
            shard = decode_shard(id, entries)
        if shard is None:
            raise UnknownId(f"collection {id} does not exist", hint=self._hint(id))
        if shard.gone:
            raise UnknownId(f"collection {id} does not exist", detail="it was dropped")
        return ShardSnapshot(shard, clocks)

    def contents(self, id: GlobalId, as_of: int | None = None) -> Reading:
        """The contents at `as_of`, a time in `[since, upper)`, or else at the last time with known contents."""
        return Reading(self._blob, lambda: self.look(id), None, None if as_of is None else as_of + 1)

    def changes(self, id: GlobalId, lower: int, upper: int | None = None) -> Reading:
        """The changes at times in `[lower, upper)`, or else all from `lower` on that are complete."""
        return Reading(self._blob, lambda: self.look(id), lower, upper)

    def close(self) -> None:
        self._consensus.close()
        self._blob.close()

    def _hint(self, id: GlobalId) -> str:
        ids = list(self.collections())
        if close := get_close_matches(id, ids, n=3):
            return f"did you mean {' or '.join(close)}?"
        if not ids:
            return "the environment has no collections"
        return f"the environment has {', '.join(ids[:8])}{' and more' if len(ids) > 8 else ''}"


class Reading(Closing):
    """Contents or changes, read as they are iterated over, in pieces that fit in memory however many there are.

    A piece of contents has `_diff`, the multiplicity, and the data columns; one of changes has `_time` before them.
    """

    def __init__(self, blob: Blob, look: Callable[[], ShardSnapshot], lower: int | None, upper: int | None) -> None:
        """Changes in `[lower, upper)`; without `lower`, the contents that all changes before `upper` make up."""
        self._blob, self._look = blob, look
        self._lower = lower
        self._tries = 0
        self._open(upper)
        # What is looked at again may have got more columns; at the times that are read nothing is in them.
        self._columns = list(self.snapshot.shard.spec.schema.names)

    @property
    def time_range(self) -> tuple[int, int]:
        """The times of the changes that are read, or that make up the contents."""
        return self._selection.time_range

    @property
    def names(self) -> list[str]:
        return [*([] if self._lower is None else [TIME]), DIFF, *self._columns]

    @property
    def rows_max(self) -> int:
        return self._selection.rows_max

    def __iter__(self) -> Iterator[pa.Table]:
        given = 0
        while True:
            try:
                for chunk in self._after(given):
                    given, self._tries = given + chunk.num_rows, 0
                    yield chunk.select(self.names)
                return
            except (BlobMissing, Corruption) as error:
                self._check_that_it_moved_on(error)
            self.close()
            self._open(self.time_range[1])

    def _after(self, count: int) -> Iterator[pa.Table]:
        for chunk in self._selection.chunks(0 if self._lower is not None else self.time_range[1] - 1):
            if chunk.num_rows > count:
                yield chunk.slice(count)
            count = max(0, count - chunk.num_rows)

    def close(self) -> None:
        self._selection.close()

    def _open(self, upper: int | None) -> None:
        """Take a snapshot, and open its parts before they can be removed."""
        while True:
            self.snapshot = self._look()  # what was seen when it was looked at last
            if self._lower is None:
                times = 0, self.snapshot.contents_until(None if upper is None else upper - 1)
            else:
                times = self._lower, self.snapshot.changes_until(self._lower, upper)
            try:
                self._selection = self._select(times)
                return
            except BlobMissing as error:
                self._check_that_it_moved_on(error)

    def _select(self, times: tuple[int, int]) -> Selection:
        def select(blob: ReadableBlob, release: Callable[[], None]) -> Selection:
            reader, inline = PartReader(blob), InlineUpdates()
            return Selection(
                self.snapshot.shard, times, None, reader=reader, hot=None, inline_cache=inline, release=release
            )

        parts = select(self._blob, lambda: None).parts
        preopened = PreopenedBlob(self._blob, [part.key for part in parts])
        return select(preopened, preopened.close)

    def _check_that_it_moved_on(self, error: BlobMissing | Corruption) -> None:
        """Raise, unless a part is missing because a compaction replaced it, so that a new snapshot helps."""
        missing = error if isinstance(error, BlobMissing) else error.__cause__
        if not isinstance(missing, BlobMissing):
            raise error
        self._tries += 1
        id = self.snapshot.shard.id
        if not self.snapshot.part_keys - self._look().part_keys:
            message = f"collection {id} lacks a part: {missing.message}"
            raise Corruption(message, detail=missing.detail, hint="restore the blob store") from missing
        if self._tries >= TRIES_MAX:
            hint = "try again when less is going on"
            raise Determinate(f"collection {id} changes faster than it can be read", detail=str(error), hint=hint)


class PreopenedBlob:
    """An `inner` to read from, with the first of `keys` opened now; whoever opens a key first gets that file.

    An open file of a local folder can be read to its end even after it was removed. An object store promises no such
    thing: whoever reads from one must be prepared for a blob that disappears half-way.
    """

    def __init__(self, inner: Blob, keys: Iterable[str]) -> None:
        self._inner = inner
        self._files: dict[str, pa.NativeFile] = {}
        try:
            for key, _ in zip(keys, range(OPEN_MAX), strict=False):
                self._files[key] = inner.open(key)
        except BaseException:
            self.close()
            raise

    def open(self, key: str) -> pa.NativeFile:
        return self._files.pop(key) if key in self._files else self._inner.open(key)

    def uri(self, key: str) -> str:
        return self._inner.uri(key)

    def close(self) -> None:
        """Close the files that nobody took; `inner` stays open, because others may use it."""
        while self._files:
            self._files.popitem()[1].close()


def _clocks_apart(scanned: list[tuple[str, Entry]]) -> tuple[Clocks, list[tuple[str, Entry]]]:
    with decoding("the clocks"):
        clocks = {key.removeprefix(_CLOCKS): json.loads(e.value) for key, e in scanned if key.startswith(_CLOCKS)}
    return clocks, [(key, entry) for key, entry in scanned if not key.startswith(_CLOCKS)]
