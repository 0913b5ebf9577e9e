"""Hot copies: parts as uncompressed Arrow files in a local folder, memory-mapped for finding the rows of a few keys.

Parquet must decode tens of thousands of rows to give one; a mapped Arrow file gives any row at once, so the cost of a
look-up follows the keys asked for and not the size of the part. A copy is made when a part is first looked into, holds
nothing that the part doesn't, and the least recently used ones are removed when their sizes exceed the limit. Its
checksum is in its name, so that one left by an earlier process is used again only if it is whole.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa

from everview.storage.batch import Part
from everview.storage.parts import PartReader, checksum_of
from everview.timely.consolidate import HASH
from everview.timely.hashing import I64


class HotCopy:
    """One mapped part."""

    def __init__(self, path: Path) -> None:
        self._map = pa.memory_map(str(path))
        table = pa.ipc.open_file(self._map).read_all()
        self._columns = {name: table.column(name).chunk(0) for name in table.column_names}
        self._schema = table.schema
        self._hashes: I64 = self._columns[HASH].to_numpy()
        self.size_bytes = self._map.size()

    def find(self, hashes: I64, names: list[str]) -> pa.Table:
        """The updates whose hash is among the ascending `hashes`."""
        starts = np.searchsorted(self._hashes, hashes, side="left")
        stops = np.searchsorted(self._hashes, hashes, side="right")
        sizes = stops - starts
        ends = np.cumsum(sizes)
        if len(ends) == 0 or ends[-1] == 0:
            return pa.schema([self._schema.field(name) for name in names]).empty_table()
        positions = pa.array(np.arange(int(ends[-1])) - np.repeat(ends - sizes - starts, sizes))
        columns = [self._columns[name].take(positions) for name in names]
        return pa.table(columns, schema=pa.schema([self._schema.field(name) for name in names]))


class HotCopies:
    """The folder of hot copies, shared by all threads."""

    def __init__(self, folder: Path, reader: PartReader, bytes_max: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._reader = reader
        self._bytes_max = bytes_max
        self._open: OrderedDict[str, HotCopy] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}

    def get(self, part: Part, where: str) -> HotCopy | None:
        """The hot copy of a part, made now if there is none; None where there is no room for it."""
        with self._lock:
            if (copy := self._open.get(part.key)) is not None:
                self._open.move_to_end(part.key)
                return copy
            making = self._making.setdefault(part.key, threading.Lock())
        with making:
            with self._lock:
                if (copy := self._open.get(part.key)) is not None:
                    return copy
            copy = self._map_or_make(part, where)
            with self._lock:
                self._making.pop(part.key, None)
                if copy is not None:
                    self._open[part.key] = copy
                    self._evict(keep=part.key)
            return copy

    def keep_only(self, keys: Collection[str]) -> None:
        """Remove copies left behind by earlier processes, except of these parts."""
        names = {_name(key) for key in keys}
        for path in self._folder.iterdir():
            if path.suffix != ".arrow" or path.name.partition(".parquet")[0] not in names:
                path.unlink(missing_ok=True)

    def forget(self, key: str) -> None:
        """The part is being removed."""
        with self._lock:
            self._open.pop(key, None)
        self._remove(key)

    def _map_or_make(self, part: Part, where: str) -> HotCopy | None:
        for path in self._folder.glob(f"{_name(part.key)}.parquet.*.arrow"):
            with pa.memory_map(str(path)) as file:
                whole = checksum_of(file) == path.name.split(".")[-2]
            if whole:
                return HotCopy(path)
            path.unlink(missing_ok=True)  # only a copy: make it again
        draft = self._folder / f"{_name(part.key)}.{os.getpid()}.draft"
        table = self._reader.read(part, where)
        try:
            with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table.combine_chunks())
            with pa.memory_map(str(draft)) as file:
                path = self._folder / f"{_name(part.key)}.parquet.{checksum_of(file)}.arrow"
            draft.rename(path)
        except OSError:
            draft.unlink(missing_ok=True)
            return None
        return HotCopy(path)

    def _remove(self, key: str) -> None:
        for path in self._folder.glob(f"{_name(key)}.parquet.*.arrow"):
            path.unlink(missing_ok=True)

    def _evict(self, keep: str) -> None:
        total = sum(copy.size_bytes for copy in self._open.values())
        while total > self._bytes_max and len(self._open) > 1:
            key, copy = self._open.popitem(last=False)
            if key == keep:
                self._open[key] = copy
                continue
            total -= copy.size_bytes
            self._remove(key)


def _name(key: str) -> str:
    """A part's key as the beginning of a file name."""
    return key.removesuffix(".parquet").replace("/", "_")
