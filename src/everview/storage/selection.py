"""Reading a shard: the updates in a range of times, of all rows or of a few hashes, from inline batches and parts.

A `Selection` keeps the parts that it names until it is closed. A small one is read here as Arrow; a large one gives its
list of parts to an engine that reads in parallel. Either way the reader applies `time_range` and adds up diffs: an
update outside the range does not count.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.closing import Closing
from everview.storage.batch import SUM_MAX, UNKNOWN, Batch, Part, decode_inline
from everview.storage.contract import GlobalId
from everview.storage.errors import NotReadable
from everview.storage.hotcopy import HotCopies, HotCopy
from everview.storage.merge import merge
from everview.storage.parts import PartReader
from everview.storage.shard import FOREVER, Clocks, Shard, Spec
from everview.timely.consolidate import DIFF, HASH, TIME, consolidate, data_names, int_column, with_column, with_hash
from everview.timely.hashing import I64
from everview.timely.ordering import Sort

# A look-up of up to so many hashes goes through hot copies; for more hashes, reading row groups is cheaper. It also is
# for more than a few hashes, if there is more than one of them for so many rows.
LOOKUP_HASHES_MAX, _FEW_HASHES, _ROWS_FOR_ONE = 100_000, 20_000, 8
_MANY_HASHES = 2_000  # from so many on, parts are searched in parallel
_THREADS = 2
PASS_BYTES = 64 << 20  # stored bytes that are sorted anew at once, at most


class InlineUpdates:
    """A cache of the inline batches of each shard, decoded and hashed; the least recently read go first."""

    def __init__(self, bytes_max: int = 256 << 20) -> None:
        self._bytes_max = bytes_max
        self._tables: OrderedDict[GlobalId, tuple[frozenset[int], pa.Table]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, id: GlobalId, spec: Spec, batches: Sequence[Batch]) -> pa.Table:
        """The updates of the inline `batches` of a shard, with their hashes, in the columns of a part."""
        numbers = frozenset(batch.number for batch in batches)
        with self._lock:
            known, table = self._tables.get(id, (frozenset(), None))
        schema = spec.at_rest
        if table is not None and table.num_columns != len(schema) + 1:
            table = None  # of before the shard had all these columns, or of after
        if known == numbers and table is not None:
            return table
        grown = table is not None and known < numbers
        fresh = [b for b in batches if not grown or b.number not in known]
        tables = [decode_inline(b, schema, spec.created, f"collection {id}") for b in fresh]
        added = with_hash(pa.concat_tables(tables or [schema.empty_table()]), spec.key)
        table = pa.concat_tables([table, added] if grown else [added]).combine_chunks()
        with self._lock:
            self._tables[id] = (numbers, table)
            self._tables.move_to_end(id)
            while sum(t.nbytes for _, t in self._tables.values()) > self._bytes_max and len(self._tables) > 1:
                self._tables.popitem(last=False)
        return table


class Selection(Closing):
    """The updates of one shard at times in `time_range`, restricted to `hashes` if given. Close it when done."""

    def __init__(
        self,
        shard: Shard,
        time_range: tuple[int, int],
        hashes: I64 | None,
        *,
        reader: PartReader,
        hot: HotCopies | None,
        inline_cache: InlineUpdates,
        release: Callable[[], None],
    ) -> None:
        self.id = shard.id
        self.spec = shard.spec
        self.time_range = time_range
        self.hashes = None if hashes is None else np.unique(hashes)
        self._reader = reader
        self._hot = hot
        self._inline_cache = inline_cache
        self._release: Callable[[], None] | None = release
        batches = [b for b in shard.batches.values() if self._in_time(b)]
        self.inline: list[Batch] = [b for b in batches if b.inline]
        self.parts: list[Part] = [p for b in batches for p in b.parts if self._in_time(p) and self._in_hash(p)]

    @property
    def uris(self) -> list[str]:
        return [self._reader.uri(part) for part in self.parts]

    @property
    def rows_max(self) -> int:
        """An upper bound on the number of selected updates."""
        return sum(b.rows for b in self.inline) + sum(p.rows for p in self.parts)

    @property
    def bytes_max(self) -> int:
        """An upper bound on the stored bytes to read."""
        return sum(b.size_bytes for b in self.inline) + sum(p.size_bytes for p in self.parts)

    def first_columns(self, width: int) -> list[str] | None:
        """The names of the first columns, for readers that know no others; None if these are all columns."""
        names = self.spec.schema.names
        return list(names[:width]) if 0 < width < len(names) else None

    def inline_updates(self) -> pa.Table:
        """The selected updates of inline batches, with their hashes."""
        return self._restricted(self._inline_cache.get(self.id, self.spec, self.inline))

    def updates(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All selected updates as Arrow, not consolidated, with the data columns asked for."""
        names = [HASH, TIME, DIFF, *(self.spec.schema.names if columns is None else columns)]
        whole = self.spec.in_parts
        schema = whole if names == whole.names else pa.schema([whole.field(name) for name in names])
        tables = [self.inline_updates().select(names)] if self.inline else []
        if len(self.parts) > 1 and (self.hashes is None or len(self.hashes) >= _MANY_HASHES):
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="read") as pool:
                tables += pool.map(lambda part: self.part_updates(part, schema), self.parts)
        else:
            tables += [self.part_updates(part, schema) for part in self.parts]
        if not tables:
            return schema.empty_table()
        return pa.concat_tables(tables)

    def changes(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The selected updates, consolidated: at most one for each row and time."""
        return self._consolidated(self.updates(columns), columns)

    def contents(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows with their multiplicities `_diff` as of the end of the time range."""
        updates = self.updates(columns)
        times = np.zeros(updates.num_rows, dtype=np.int64)
        return self._consolidated(with_column(updates, TIME, times), columns).drop_columns([HASH, TIME])

    def some(self, columns: Sequence[str]) -> pa.Table:
        """Some of the selected updates, to learn what they are like: of the inline batches, or else of one part."""
        largest = max(self.parts, key=lambda part: part.rows, default=None)
        if largest is None:
            return self.inline_updates().select(list(columns))
        schema = pa.schema([self.spec.in_parts.field(name) for name in columns])
        return next(self._reader.row_groups(largest, self._where, schema))

    def chunks(self, since: int = 0, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The selected updates, consolidated, in hash order and in pieces: memory stays bounded however many there are.

        Times are advanced to `since`: with the last time of the range, the pieces are of the contents at that time.
        With some of the `columns` only, rows that differ in others are one row, and the hash is of these columns.
        """
        if columns is not None and list(columns) != self.spec.schema.names:
            yield from self._narrowed(since, list(columns))
            return
        runs: list[Iterator[pa.Table]] = [iter([self.inline_updates()])] if self.inline else []
        starts = [-(2**63)] if self.inline else []
        schema = self.spec.in_parts
        for part in self.parts:
            runs.append(self._restricted(group) for group in self._reader.row_groups(part, self._where, schema))
            starts.append(part.hash_min)
        yield from merge(runs, starts, self.spec, since)

    def _narrowed(self, since: int, columns: list[str]) -> Iterator[pa.Table]:
        """Pieces in the order of another hash than the stored one: each takes a pass over everything."""
        passes = max(1, -(-self.bytes_max // PASS_BYTES))
        span = 2**64 // passes
        for number in range(passes):
            low, high = -(2**63) + number * span, -(2**63) + (number + 1) * span - 1
            high = 2**63 - 1 if number + 1 == passes else high
            pieces = []
            for chunk in self.chunks(since):
                table = with_hash(chunk.select([TIME, DIFF, *columns]), columns)
                hashes = int_column(table, HASH)
                inside = (hashes >= low) & (hashes <= high)
                pieces.append(table if inside.all() else table.filter(pa.array(inside)))
            if pieces and (found := consolidate(pa.concat_tables(pieces).combine_chunks())).num_rows:
                yield found

    def _consolidated(self, updates: pa.Table, columns: Sequence[str] | None) -> pa.Table:
        if columns is None or list(columns) == self.spec.schema.names:
            return consolidate(updates, self.spec.key)
        # Rows that differ only in columns left out are one row now, and their hash says nothing about it.
        return consolidate(updates.drop_columns([HASH]))

    def net_rows(self) -> int:
        """The sum of all selected diffs. A part that is selected as a whole is not read: its sums are known."""
        total = int(int_column(self.inline_updates(), DIFF).sum()) if self.inline else 0
        narrow = pa.schema([self.spec.in_parts.field(name) for name in (TIME, DIFF)])
        for part in self.parts:
            known = part.added != UNKNOWN and max(part.added, part.removed) < SUM_MAX
            if known and self._all_in_time(part) and self.hashes is None:
                total += part.added - part.removed
            else:
                total += int(int_column(self.part_updates(part, narrow), DIFF).sum())
        return total

    def count_max(self) -> int:
        """A closer bound than `rows_max`, found by looking up the hashes."""
        if self.hashes is None:
            return self.rows_max
        schema = pa.schema([self.spec.in_parts.field(HASH)])
        count = self.inline_updates().num_rows if self.inline else 0
        for part in self.parts:
            wanted = self._wanted(part)
            copy = self._hot_copy(part, schema, len(wanted))
            count += part.rows if copy is None else int(copy.places(wanted)[1].sum())
        return count

    def hot_copy(self, part: Part, schema: pa.Schema, sorts: Sequence[Sort]) -> HotCopy | None:
        """The hot copy of a part with an order. None without a copy, or if only some times of the part are selected."""
        if not self._all_in_time(part):
            return None
        return self._hot_copy(part, schema, 1 if self.hashes is None else len(self._wanted(part)), sorts)

    def part_updates(self, part: Part, schema: pa.Schema) -> pa.Table:
        """The selected updates of one part."""
        if self.hashes is None:
            return self._restricted(self._reader.read(part, self._where, schema, threads=len(self.parts) == 1))
        wanted = self._wanted(part)
        copy = self._hot_copy(part, schema, len(wanted))
        if copy is not None:
            found = copy.find(wanted, schema)
            return found if self._all_in_time(part) else self._in_times(found)
        return self._restricted(self._reader.read(part, self._where, schema, (int(wanted[0]), int(wanted[-1]))))

    def _hot_copy(self, part: Part, schema: pa.Schema, hashes: int, sorts: Sequence[Sort] = ()) -> HotCopy | None:
        few = hashes <= max(_FEW_HASHES, part.rows // _ROWS_FOR_ONE)
        if self._hot is None or not few or hashes > LOOKUP_HASHES_MAX:
            return None
        return self._hot.get(part, self._where, schema, sorts, together=self.hashes is None)

    def _wanted(self, part: Part) -> I64:
        assert self.hashes is not None
        first = np.searchsorted(self.hashes, part.hash_min, side="left")
        last = np.searchsorted(self.hashes, part.hash_max, side="right")
        return self.hashes[first:last]

    def _all_in_time(self, part: Part) -> bool:
        return self.time_range[0] <= part.time_min and part.time_max < self.time_range[1]

    def _restricted(self, table: pa.Table) -> pa.Table:
        if self.hashes is not None:
            given = int_column(table, HASH)
            places = np.minimum(np.searchsorted(self.hashes, given), max(0, len(self.hashes) - 1))
            found = self.hashes[places] == given if len(self.hashes) else np.zeros(len(given), dtype=bool)
            if not found.all():
                table = table.filter(pa.array(found))
        return self._in_times(table)

    def _in_times(self, table: pa.Table) -> pa.Table:
        low, high = self.time_range
        times = int_column(table, TIME)
        inside = (times >= low) & (times < high)
        return table if inside.all() else table.filter(pa.array(inside))

    def _in_time(self, stored: Batch | Part) -> bool:
        return stored.time_max >= self.time_range[0] and stored.time_min < self.time_range[1]

    def _in_hash(self, part: Part) -> bool:
        if self.hashes is None:
            return True
        index = int(np.searchsorted(self.hashes, part.hash_min))
        return index < len(self.hashes) and int(self.hashes[index]) <= part.hash_max

    @property
    def _where(self) -> str:
        return f"collection {self.id}"

    def close(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release()


def filtered(updates: pa.Table, where: pc.Expression | None, columns: Sequence[str] | None) -> pa.Table:
    """The updates that satisfy `where`, with the data columns asked for."""
    if where is not None:
        updates = updates.filter(where)
    names = data_names(updates) if columns is None else list(columns)
    return updates.select([TIME, DIFF, *names])


def check_not_gone(shard: Shard, clocks: Clocks) -> None:
    """Raise `NotReadable` if nobody can read the collection any more."""
    if shard.since(clocks) == FOREVER:
        raise NotReadable(f"collection {shard.id} can no longer be read", detail="its last read capability was dropped")


def check_contents_readable(shard: Shard, as_of: int, clocks: Clocks) -> None:
    """Raise `NotReadable` unless contents at `as_of` are exact and complete."""
    check_not_gone(shard, clocks)
    since, upper = shard.since(clocks), shard.upper(clocks)
    if as_of < since:
        raise NotReadable(f"collection {shard.id} can no longer be read at {as_of}", detail=f"since is {since}")
    if as_of >= upper:
        raise NotReadable(f"collection {shard.id} cannot be read at {as_of} yet", detail=f"upper is {upper}")


def check_changes_readable(shard: Shard, lower: int, upper: int, clocks: Clocks) -> None:
    """Raise `NotReadable` unless changes in `[lower, upper)` are exact and complete.

    Times at `since` may stand for earlier ones, so changes are exact only beyond it, unless nothing was earlier.
    """
    check_not_gone(shard, clocks)
    since, complete = shard.since(clocks), shard.upper(clocks)
    from_the_start = lower <= shard.spec.initial == since
    if since >= lower and not from_the_start:
        detail = f"since is {since}, and must be before {lower}"
        raise NotReadable(f"changes of collection {shard.id} from {lower} on are no longer known", detail=detail)
    if upper > complete:
        detail = f"upper is {complete}"
        raise NotReadable(f"changes of collection {shard.id} up to {upper} are not complete yet", detail=detail)
