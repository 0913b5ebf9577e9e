"""Hot copies: columns of parts as uncompressed Arrow files in a local folder, mapped into memory to find a few rows.

Parquet must decode tens of thousands of rows to give one; a mapped Arrow file gives any row at once, so the cost of a
look-up follows the keys asked for and not the size of the part. A column is copied when it is first asked for, and the
least recently used parts go when their copies exceed the limit. The checksum of a copy is in its name, so that one left
by an earlier process is used again only if it is whole.

Rows of one hash have no meaningful order. To find the first ones in a sort order, an *order* is kept beside the
columns: the positions of the rows, by hash, and sorted within each hash.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from everview.storage.batch import Part
from everview.storage.disk import make_private, make_private_file
from everview.storage.parts import PartReader, checksum_of
from everview.timely.consolidate import HASH
from everview.timely.hashing import I64
from everview.timely.ordering import Sort, in_order

_HASH_FIELD = pa.field(HASH, pa.int64(), nullable=False)


class HotCopy:
    """The columns of one part that have been copied so far. `lock` guards them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        self.columns: dict[str, pa.Array] = {}
        self.hashes: I64 = np.zeros(0, dtype=np.int64)
        self.size_bytes = 0

    def find(self, wanted: I64, schema: pa.Schema) -> pa.Table:
        """The updates whose hash is among the ascending `wanted`, in the columns of `schema`."""
        starts, sizes = self.places(wanted)
        positions = pa.array(_ranges(starts, sizes))
        columns = [
            pa.array(np.repeat(wanted, sizes)) if name == HASH else self.columns[name].take(positions)
            for name in schema.names
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def places(self, wanted: I64) -> tuple[I64, I64]:
        """Where the updates of each hash start, and how many there are; the hashes ascend."""
        starts: I64 = np.searchsorted(self.hashes, wanted)
        last = len(self.hashes) - 1
        sizes = (self.hashes[np.minimum(starts, last)] == wanted).astype(np.int64)
        more = np.flatnonzero(self.hashes[np.minimum(starts + 1, last)] == wanted)
        if len(more):
            sizes[more] = np.searchsorted(self.hashes, wanted[more], side="right") - starts[more]
        return starts, sizes

    def first(self, starts: I64, sizes: I64, order: str, schema: pa.Schema) -> pa.Table:
        """The first updates of each range of an order: `sizes` says how many."""
        ranks = pa.array(_ranges(starts, sizes))
        positions = self.columns[order].take(ranks)
        return pa.Table.from_arrays([self.columns[name].take(positions) for name in schema.names], schema=schema)

    def add(self, name: str, path: Path) -> None:
        """Map the copy of one column."""
        mapped = pa.memory_map(str(path))
        array = pa.ipc.open_file(mapped).read_all().column(0).chunk(0)
        if name == HASH:
            self.hashes = array.to_numpy()
        self.columns[name] = array
        self.size_bytes += mapped.size()


class HotCopies:
    """The folder of hot copies, shared by all threads."""

    def __init__(self, folder: Path, reader: PartReader, bytes_max: int) -> None:
        make_private(folder)
        self._folder = folder
        self._reader = reader
        self._bytes_max = bytes_max
        self._copies: OrderedDict[str, HotCopy] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, part: Part, where: str, schema: pa.Schema, sorts: Sequence[Sort] = (), *, together: bool = False
    ) -> HotCopy | None:
        """The hot copy of a part with these columns, made now if needed; None if there is no room for it.

        With `sorts` it has an order: of the rows of each hash, or of all rows if they are ordered `together`.
        """
        with self._lock:
            copy = self._copies.setdefault(part.key, HotCopy(self._folder / _name(part.key)))
            self._copies.move_to_end(part.key)
        order = {order_name(sorts, together=together)} if sorts else set()
        if {HASH, *schema.names, *order} - copy.columns.keys():
            with copy.lock:
                for name in [*sorted({HASH, *schema.names} - copy.columns.keys()), *(order - copy.columns.keys())]:
                    if name in order:
                        make = partial(_order, copy, sorts, together=together)
                    else:
                        field = schema.field(name) if name != HASH else _HASH_FIELD
                        make = partial(self._column, part, where, field)
                    path = self._copied(copy.folder, name, make)
                    if path is None:
                        return None
                    copy.add(name, path)
            with self._lock:
                self._evict()
        return copy

    def _column(self, part: Part, where: str, field: pa.Field) -> pa.Table:
        return self._reader.read(part, where, pa.schema([field])).combine_chunks()

    def keep_only(self, keys: Collection[str]) -> None:
        """Remove copies that earlier processes left, except those of these parts."""
        names = {_name(key) for key in keys}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in names:
                shutil.rmtree(path, ignore_errors=True)

    def forget(self, key: str) -> None:
        """The part is being removed."""
        with self._lock:
            self._copies.pop(key, None)
        shutil.rmtree(self._folder / _name(key), ignore_errors=True)

    def _copied(self, folder: Path, name: str, make: Callable[[], pa.Table]) -> Path | None:
        """The file with the copy of one column; made if missing or damaged."""
        prefix = xxhash.xxh64_hexdigest(name.encode())
        for path in folder.glob(f"{prefix}.*.arrow"):
            with pa.memory_map(str(path)) as file:
                if checksum_of(file) == path.name.split(".")[1]:
                    return path
            path.unlink(missing_ok=True)  # only a copy: make it again
        table = make()
        if table.column(0).num_chunks != 1:
            return None  # more text than one array holds: it cannot be searched as one
        draft = folder / f"{prefix}.{os.getpid()}.draft"
        try:
            make_private(self._folder)  # someone may have removed it since the environment was opened
            folder.mkdir(0o700, exist_ok=True)
            make_private_file(draft)
            with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            with pa.memory_map(str(draft)) as file:
                path = folder / f"{prefix}.{checksum_of(file)}.arrow"
            return draft.rename(path)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            return None

    def _evict(self) -> None:
        """Forget the least recently used parts. Readers still have their files mapped."""
        total = sum(copy.size_bytes for copy in self._copies.values())
        while total > self._bytes_max and len(self._copies) > 1:
            _, copy = self._copies.popitem(last=False)
            total -= copy.size_bytes
            shutil.rmtree(copy.folder, ignore_errors=True)


def order_name(sorts: Sequence[Sort], *, together: bool) -> str:
    """The name under which an order is kept; no column can have it."""
    return f"order {together} {[(each.column, each.descending, each.nulls_first) for each in sorts]}"


def _order(copy: HotCopy, sorts: Sequence[Sort], *, together: bool) -> pa.Table:
    table = pa.table({each.column: copy.columns[each.column] for each in sorts})
    places, _ = in_order(table, sorts, None if together else copy.hashes)
    return pa.table({"order": pa.array(places.astype(np.int32 if len(places) < 2**31 else np.int64))})


def _ranges(starts: I64, sizes: I64) -> I64:
    """For each start, that number and the ones after it, as many as its size."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) - np.repeat(ends - sizes - starts, sizes)


def _name(key: str) -> str:
    return key.removesuffix(".parquet").replace("/", "_")
