"""What a sink does for the folder that it writes: it merges small files, and forgets what it need not keep."""

from __future__ import annotations

from everview.cdc.compaction import Compacted, forget, is_ours, merge
from everview.cdc.errors import CdcError
from everview.cdc.files import FILE_BYTES, MERGED, Folder, base_time
from everview.cdc.schema import StreamSchema

EVERY_FILES = 128  # written since the last time, in this life or an earlier one
FORGET_BYTES = 1 << 20


class Upkeep:
    """Looks after the folder of one stream."""

    def __init__(self, folder: Folder, schema: StreamSchema, retain_ms: int | None = None) -> None:
        self._folder, self._schema, self._retain_ms = folder, schema, retain_ms
        self._written: int | None = None  # when it did what was due; None: perhaps in an earlier life

    def after(self, files_written: int, frontier: int) -> Compacted | None:
        """So many files were written, all up to `frontier`; does what is due now, if anything is."""
        if self._written is None:
            self._written = files_written - self._files_left()
        if files_written - self._written < EVERY_FILES:
            return None
        self._written = files_written
        done = Compacted()
        failure: CdcError | None = None
        if self._retain_ms is not None and self._worth_it(frontier - self._retain_ms):
            try:
                done = forget(self._folder, self._schema, frontier - self._retain_ms)
            except CdcError as error:  # it stays longer then, and files are merged nonetheless
                failure = error
        merged = merge(self._folder, self._schema)
        if failure is not None:
            raise failure
        return Compacted(done.written + merged.written, done.removed + merged.removed, done.base)

    def _files_left(self) -> int:
        """How many files sinks have written that nobody has merged, though they are small enough."""
        files = (info for info in self._folder.files() if is_ours(info.key) and base_time(info.key) is None)
        return sum(f"-{MERGED}-" not in info.key and info.size_bytes < FILE_BYTES for info in files)

    def _worth_it(self, before: int) -> bool:
        """Whether there is as much to forget as contents have to be written for it."""
        past = base = 0
        for info in self._folder.files():
            if base_time(info.key) is not None:
                base = max(base, info.size_bytes)
            elif is_ours(info.key) and int(info.key[:19]) < before:
                past += info.size_bytes
        return past >= max(base, FORGET_BYTES)
