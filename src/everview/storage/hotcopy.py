"""Hot copies: parts as uncompressed Arrow files in a local folder, memory-mapped for finding the rows of a few keys.

Parquet must decode tens of thousands of rows to give one; a mapped Arrow file gives any row at once, so the cost of a
look-up follows the keys asked for and not the size of the part. A copy is made when a part is first looked into, holds
nothing that the part doesn't, and the least recently used ones are removed when their sizes exceed the limit.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from everview.storage.batch import Part
from everview.storage.parts import PartReader
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

    def get(self, part: Part, where: str) -> HotCopy:
        """The hot copy of a part, made now if there is none."""
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
                self._open[part.key] = copy
                self._making.pop(part.key, None)
                self._evict(keep=part.key)
            return copy

    def keep_only(self, wanted: Callable[[str], bool]) -> None:
        """Remove copies left behind by earlier processes, except of parts that are still wanted."""
        for path in self._folder.iterdir():
            if path.suffix != ".arrow" or not wanted(path.stem):
                path.unlink(missing_ok=True)

    def forget(self, key: str) -> None:
        """The part is being removed."""
        with self._lock:
            self._open.pop(key, None)
        self._path(key).unlink(missing_ok=True)

    @staticmethod
    def name(key: str) -> str:
        """The name of a part's copy, without its suffix."""
        return key.replace("/", "_")

    def _path(self, key: str) -> Path:
        return self._folder / f"{self.name(key)}.arrow"

    def _map_or_make(self, part: Part, where: str) -> HotCopy:
        path = self._path(part.key)
        if path.exists():
            try:
                return HotCopy(path)
            except (pa.ArrowException, OSError):
                path.unlink(missing_ok=True)  # only a copy: make it again
        draft = path.with_suffix(f".{os.getpid()}.draft")
        table = self._reader.read(part, where)
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        draft.rename(path)
        return HotCopy(path)

    def _evict(self, keep: str) -> None:
        total = sum(copy.size_bytes for copy in self._open.values())
        while total > self._bytes_max and len(self._open) > 1:
            key, copy = self._open.popitem(last=False)
            if key == keep:
                self._open[key] = copy
                continue
            total -= copy.size_bytes
            self._path(key).unlink(missing_ok=True)
