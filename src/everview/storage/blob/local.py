"""Blobs as files of one folder, a key being a path below it.

A blob is written under a temporary name, synced, then linked to its final name: a link never replaces
anything, so a blob appears whole, once, or not at all. The folder may be shared by several processes;
what crashed ones left under temporary names is removed on opening.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from everview.reach.files import check_inside, check_opened
from everview.storage.blob.contract import BlobInfo, checked_key
from everview.storage.blob.temporary import remove_leftovers, temporary_name
from everview.storage.disk import (
    close_contents,
    close_to_others,
    make_folder,
    make_private,
    read_failure,
    sync_folder,
    write_failure,
)
from everview.storage.errors import BlobExists, BlobMissing, Determinate, Indeterminate, InvalidUsage
from everview.storage.faults import failpoint

TEMP_FOLDER = ".tmp~"  # no key can name it: "~" is not among a key's characters
_LINK_TRIES_MAX = 100
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}  # file systems without hard links
_NOT_A_KEY = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR}


class LocalBlob:
    """A folder; opening makes it if it is missing and reads it even where writes are refused.

    With `read_only`, opening changes nothing at all. With `confined`, folder and files must be inside of folders that
    are allowed (`reach.files`), wherever links lead. With `private`, folder and files are for their owner alone, also
    those that were there or that someone else of this account writes; a folder of another account is shared on purpose.
    """

    def __init__(self, root: Path, read_only: bool = False, *, confined: bool = False, private: bool = False) -> None:
        self.root = Path(os.path.abspath(root))
        self._confined, self._private = confined, private
        self._temp = self.root / TEMP_FOLDER
        self._closed = False
        self._check_inside(self.root)
        if read_only:
            return
        try:
            self._make_root()
        except (FileExistsError, NotADirectoryError) as failure:
            raise InvalidUsage(f"not a folder: {self.root}", hint="name a folder for the blobs") from failure
        except OSError as failure:
            raise write_failure(failure, "making the folder for blobs", self.root) from failure
        self._check_inside(self._temp)
        remove_leftovers(self._temp)

    def _make_root(self) -> None:
        if not self._private:
            make_folder(self.root)
            return
        make_private(self.root)
        self._private = self.root.stat().st_uid == os.geteuid()
        if self._private:
            close_contents(self.root)

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        final = self._path(key)
        self._put_through_temp(key, final, lambda file: file.write(memoryview(data)))

    def put_file(self, key: str, path: Path) -> None:
        final = self._path(key)
        try:
            with path.open("rb") as source:
                self._close_to_others(path)
                os.fsync(source.fileno())
                try:
                    self._link(key, path, final)
                except OSError as failure:
                    if failure.errno != errno.EXDEV:
                        raise
                    self._put_through_temp(key, final, lambda file: shutil.copyfileobj(source, file, 1 << 20))
                else:
                    self._sync_upwards(key, final.parent)
        except FileNotFoundError as failure:
            raise InvalidUsage(f"no file to store at {path}") from failure
        except OSError as failure:
            raise _put_failure(failure, key, final) from failure
        with suppress(OSError):  # the blob is stored, which is what matters
            path.unlink()

    def seal(self, key: str) -> None:
        path = self._path(key)
        try:
            # Syncing works through any descriptor: what the writer left in this machine's cache goes to the disk.
            with path.open("rb") as file:
                self._close_to_others(path)
                os.fsync(file.fileno())
        except FileNotFoundError as failure:
            raise BlobMissing(f"no blob is stored as {key}", detail=f"no such file: {path}") from failure
        except OSError as failure:
            raise write_failure(failure, f"sealing blob {key}", path) from failure
        self._sync_upwards(key, path.parent)

    def open(self, key: str) -> pa.NativeFile:
        path = self._path(key)
        try:
            if not path.is_file():
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            # Mapped, so that readers share the page cache's bytes. A blob is never changed in place, and one that
            # is deleted stays readable until the map is closed.
            return _map_inside(path) if self._confined else pa.memory_map(str(path), "r")
        except FileNotFoundError as failure:
            raise BlobMissing(f"no blob is stored as {key}", detail=f"no such file: {path}") from failure
        except OSError as failure:
            raise read_failure(failure, f"opening blob {key}", path) from failure

    def delete(self, key: str) -> bool:
        path = self._path(key)
        try:
            # Held open, so that it can be synced even if another thread prunes it meanwhile.
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as failure:
            raise write_failure(failure, f"deleting blob {key}", path) from failure
        try:
            if self._confined:
                check_opened(folder, path.parent)
            try:
                os.unlink(path.name, dir_fd=folder)
                existed = True
            except (FileNotFoundError, IsADirectoryError):
                existed = False
            except OSError as failure:
                raise write_failure(failure, f"deleting blob {key}", path) from failure
            failpoint("blob.delete.unlinked")
            try:
                os.fsync(folder)
            except OSError as failure:
                raise _in_doubt(failure, f"deleting blob {key}", path) from failure
        finally:
            os.close(folder)
        # Only an empty folder can be removed, whoever races with us. It may reappear empty after a power cut: harmless.
        with suppress(OSError):
            while existed and (path := path.parent) != self.root:
                path.rmdir()
        return existed

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        self._check_open()
        base = prefix.rpartition("/")[0]
        if base and not _is_key(base):
            return iter(())  # nor can any key start with it
        return self._walk(self.root / base, f"{base}/" if base else "", prefix)

    def uri(self, key: str) -> str:
        """`file://` and the absolute path, not escaped: Hadoop, hence Spark, takes a percent sign for itself."""
        return f"file://{self._path(key)}"

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidUsage(f"the blob store is closed: {self.root}")

    def _check_inside(self, path: Path) -> None:
        if self._confined:
            check_inside(path)

    def _close_to_others(self, path: Path) -> None:
        if self._private:
            close_to_others(path)

    @property
    def _folder_mode(self) -> int:
        return 0o700 if self._private else 0o777

    def _make_folder(self, folder: Path) -> None:
        """Make a folder and what is missing above it: `Path.mkdir` would give its mode to the last one alone."""
        try:
            folder.mkdir(self._folder_mode, exist_ok=True)
        except FileNotFoundError:
            if folder.parent == folder:
                raise
            self._make_folder(folder.parent)
            folder.mkdir(self._folder_mode, exist_ok=True)

    def _path(self, key: str) -> Path:
        self._check_open()
        return self.root / checked_key(key)

    def _put_through_temp(self, key: str, final: Path, fill: Callable[[BinaryIO], object]) -> None:
        temp = self._temp / temporary_name()
        try:
            self._temp.mkdir(self._folder_mode, exist_ok=True)
            try:
                mode = 0o600 if self._private else 0o666
                with open(temp, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                    if self._confined:
                        check_opened(file.fileno(), temp)
                    fill(file)
                    file.flush()
                    os.fsync(file.fileno())
                failpoint("blob.put.written")
                self._link(key, temp, final)
            finally:
                with suppress(OSError):  # else it is removed on opening
                    temp.unlink()
        except OSError as failure:
            raise _put_failure(failure, key, final) from failure
        self._sync_upwards(key, final.parent)

    def _link(self, key: str, source: Path, final: Path) -> None:
        """Give the synced file `source` its final name too, unless a file of the same bytes has it already."""
        for _ in range(_LINK_TRIES_MAX):
            try:
                self._check_inside(final.parent)
                self._make_folder(final.parent)
                try:
                    _link_or_rename(source, final)
                except FileExistsError:
                    _check_same(key, source, final)
                break
            except FileExistsError as failure:
                if final.parent.is_file():
                    raise NotADirectoryError(errno.ENOTDIR, "a blob is in the way", str(final.parent)) from failure
            except FileNotFoundError:
                if not source.exists():
                    raise
            # Else a delete pruned the folder, or removed the blob, between two of our calls.
        else:
            raise Determinate(f"the folder of blob {key} keeps disappearing", detail=str(final.parent))
        failpoint("blob.put.linked")

    def _sync_upwards(self, key: str, folder: Path) -> None:
        # All the way, for a folder that another put made just now may not be durable yet.
        try:
            while True:
                with suppress(FileNotFoundError):  # the blob was deleted already, and its folder pruned
                    self._close_to_others(folder)  # an engine's executors may have made it
                    sync_folder(folder)
                if folder == self.root:
                    break
                folder = folder.parent
        except OSError as failure:
            raise _in_doubt(failure, f"storing blob {key}", folder) from failure

    def _walk(self, folder: Path, base: str, prefix: str) -> Iterator[BlobInfo]:
        try:
            with os.scandir(folder) as found:
                # A folder sorts as its name with "/", because that is how the keys below it go on.
                entries = sorted((f"{base}{e.name}{'/' * e.is_dir(follow_symlinks=False)}", e) for e in found)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as failure:
            raise read_failure(failure, "listing blobs", folder) from failure
        for key, entry in entries:
            if key.endswith("/"):
                if entry.path != str(self._temp) and (key.startswith(prefix) or prefix.startswith(key)):
                    yield from self._walk(Path(entry.path), key, prefix)
            elif key.startswith(prefix) and _is_key(key):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    yield BlobInfo(key, entry.stat().st_size)


def _map_inside(path: Path) -> pa.NativeFile:
    """Map a file after a look at where the open file really is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # what is not a file must not keep us waiting
    try:
        check_opened(descriptor, path)
        opened = f"/proc/self/fd/{descriptor}"
        return pa.memory_map(opened if os.path.exists(opened) else str(path), "r")
    finally:
        os.close(descriptor)


def _link_or_rename(source: Path, final: Path) -> None:
    try:
        os.link(source, final)
    except OSError as failure:
        if failure.errno not in _NO_LINKS:
            raise
        if final.exists():
            raise FileExistsError(errno.EEXIST, "exists", str(final)) from failure
        source.rename(final)


def _check_same(key: str, source: Path, final: Path) -> None:
    if final.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder of blobs is in the way", str(final))
    with pa.memory_map(str(source), "r") as ours, pa.memory_map(str(final), "r") as theirs:
        if ours.size() != theirs.size() or not ours.read_buffer().equals(theirs.read_buffer()):
            hint = "use a new key for other bytes"
            raise BlobExists(f"another blob is stored as {key}", detail=str(final), hint=hint)


def _is_key(text: str) -> bool:
    try:
        checked_key(text)
    except InvalidUsage:
        return False
    return True


def _put_failure(failure: OSError, key: str, final: Path) -> Determinate | InvalidUsage:
    if failure.errno in _NOT_A_KEY:
        return InvalidUsage(
            f"a folder cannot hold blob key {key}",
            detail=f"{failure.strerror} ({final})",
            hint="use words of up to 255 characters, and no key that goes on below another one",
        )
    return write_failure(failure, f"storing blob {key}", final)


def _in_doubt(failure: OSError, doing: str, path: Path) -> Indeterminate:
    return Indeterminate(
        f"the disk failed while {doing}",
        detail=f"{failure.strerror or failure} ({path})",
        hint="the change is visible but may not survive a power cut; do it again",
    )
