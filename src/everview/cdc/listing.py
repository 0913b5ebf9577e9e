"""What changed in a folder since the last look, at a cost that follows what changed and not how much is there.

A folder of the local disk is listed again only when its time of change says that names came or went, and of the files
that were there before only some are looked at each time: those that the caller watches, those that have changed before,
and a share of all others in turn. An object store is listed from a name on, behind which all that is new is expected,
and from its beginning once in a while.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from everview.cdc.errors import InvalidUse
from everview.storage.disk import read_failure

FILES_MAX = 1_000_000
SWEEP_FILES = 2_000  # of those that nobody watches, at each look
WATCHED_MAX = 2_000
RESTLESS_MAX = 1_000
FULL_LIST_S = 30.0
FULL_LIST_SHARE = 20  # a full listing is not made more often than each so many times as long as it takes
_GRAIN_NS = 2_000_000_000  # a folder's time of change may be so coarse


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file in a listing. `version` changes with the contents; it is empty where the store does not tell."""

    key: str
    size_bytes: int
    version: str = ""


@dataclass(slots=True)
class Look:
    """What changed since the last look: files that came or changed, and names that are gone."""

    fresh: list[FileInfo] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class Listing(Protocol):
    """The files of one folder."""

    files: dict[str, FileInfo]

    def look(self, watched: Collection[str] = (), settled: str = "") -> Look:
        """Look for changes: of `watched` files and of names after `settled` at once, of all others before long."""


class LocalListing:
    """A folder of this machine, with those below it."""

    def __init__(self, root: Path, is_ours: Callable[[str], bool]) -> None:
        self.files: dict[str, FileInfo] = {}
        self._root, self._is_ours = root, is_ours
        self._folders: dict[str, _Folder] = {}
        self._turn: list[str] = []
        self._restless: OrderedDict[str, None] = OrderedDict()  # files that have changed before

    def look(self, watched: Collection[str] = (), settled: str = "") -> Look:
        found = Look()
        self._look_into("", found)
        if len(self.files) > FILES_MAX:
            raise too_many(str(self._root))
        new = {info.key for info in found.fresh}
        some = list(watched)[-WATCHED_MAX:]
        for key in {*some, *self._restless, *self._next_turn()} - new:
            self._look_at(key, found)
        found.fresh.sort(key=lambda info: info.key)
        return found

    def _next_turn(self) -> list[str]:
        if not self._turn:
            self._turn = list(self.files)
        taken, self._turn = self._turn[-SWEEP_FILES:], self._turn[:-SWEEP_FILES]
        return taken

    def _look_at(self, key: str, found: Look) -> None:
        known = self.files.get(key)
        if known is None:
            return
        try:
            info = _info(key, os.stat(self._root / key))
        except FileNotFoundError:
            return  # the folder's next listing shows it
        except OSError as failure:
            raise read_failure(failure, "listing blobs", self._root / key) from failure
        if info != known:
            self.files[key] = info
            found.fresh.append(info)
            self._restless[key] = None
            self._restless.move_to_end(key)
            if len(self._restless) > RESTLESS_MAX:
                self._restless.popitem(last=False)

    def _look_into(self, base: str, found: Look) -> None:
        path = self._root / base
        known = self._folders.get(base)
        try:
            changed_ns = os.stat(path).st_mtime_ns
            if known is None or known.changed_ns != changed_ns or known.looked_ns - changed_ns < _GRAIN_NS:
                known = self._list(base, path, changed_ns, known, found)
        except (FileNotFoundError, NotADirectoryError):
            self._forget(base, found)
            return
        except OSError as failure:
            raise read_failure(failure, "listing blobs", path) from failure
        for folder in sorted(known.folders):
            self._look_into(folder, found)

    def _list(self, base: str, path: Path, changed_ns: int, known: _Folder | None, found: Look) -> _Folder:
        looked_ns = time.time_ns()
        before = _Folder() if known is None else known
        files: set[str] = set()
        folders: set[str] = set()
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith(("_", ".")):
                    continue
                key = base + entry.name
                if key in before.files:
                    files.add(key)
                elif entry.is_dir(follow_symlinks=False):
                    folders.add(f"{key}/")
                elif self._is_ours(key):
                    try:
                        self.files[key] = _info(key, entry.stat())
                    except FileNotFoundError:
                        continue  # removed meanwhile
                    files.add(key)
                    found.fresh.append(self.files[key])
        self._lose(before.files - files, found)
        for folder in before.folders - folders:
            self._forget(folder, found)
        self._folders[base] = _Folder(changed_ns, looked_ns, files, folders)
        return self._folders[base]

    def _forget(self, base: str, found: Look) -> None:
        known = self._folders.pop(base, None)
        if known is not None:
            self._lose(known.files, found)
            for folder in known.folders:
                self._forget(folder, found)

    def _lose(self, keys: Iterable[str], found: Look) -> None:
        for key in keys:
            del self.files[key]
            self._restless.pop(key, None)
            found.gone.append(key)


@dataclass(slots=True)
class _Folder:
    changed_ns: int = 0
    looked_ns: int = 0
    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)


class RemoteListing:
    """A prefix of an object store."""

    def __init__(
        self,
        list_after: Callable[[str], Iterable[FileInfo]],
        is_ours: Callable[[str], bool],
        place: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.files: dict[str, FileInfo] = {}
        self._list_after, self._is_ours, self._place, self._clock = list_after, is_ours, place, clock
        self._due_s = 0.0

    def look(self, watched: Collection[str] = (), settled: str = "") -> Look:
        start_s = self._clock()
        full = start_s >= self._due_s or not settled
        found, seen = Look(), set[str]()
        for each in self._list_after("" if full else settled):
            if not self._is_ours(each.key):
                continue
            seen.add(each.key)
            if self.files.get(each.key) != each:
                self.files[each.key] = each
                found.fresh.append(each)
            if len(self.files) > FILES_MAX:
                raise too_many(self._place)
        found.gone = [key for key in self.files if key not in seen and (full or key > settled)]
        for key in found.gone:
            del self.files[key]
        if full:
            self._due_s = start_s + max(FULL_LIST_S, FULL_LIST_SHARE * (self._clock() - start_s))
        return found


def too_many(place: str) -> InvalidUse:
    """The error for a folder with more files than can be listed in time."""
    hint = "write fewer, larger ones: everview cdc compact"
    return InvalidUse(f"more than {FILES_MAX} files in {place}", hint=hint)


def _info(key: str, stat: os.stat_result) -> FileInfo:
    return FileInfo(key, stat.st_size, f"{stat.st_mtime_ns:x}-{stat.st_ino:x}")
