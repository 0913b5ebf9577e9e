"""Unix sockets where psql looks for them: `.s.PGSQL.PORT` in a folder.

Every account may connect, as with PostgreSQL: the account at the other end decides whether a password is needed. A
file that a killed server left is removed; a file of a live server, or of another account, is left alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from everview.server.addresses import CannotListen

# libpq looks in one of these, as it was built.
DEFAULT_DIRS = (Path("/tmp"), Path("/run/postgresql"))
_MODE = 0o777
_CONNECT_S_MAX = 1.0
_PATH_BYTES_MAX = 103  # some systems allow more, none less


@dataclass(frozen=True, slots=True)
class UnixSocket:
    path: Path
    sock: socket.socket
    made: tuple[int, int]  # identifies the file: inode numbers are reused, so with its time

    def remove(self) -> None:
        """Remove the file, unless another server has replaced it."""
        with contextlib.suppress(OSError):
            if _identity(self.path) == self.made:
                self.path.unlink()


def usable_dirs() -> list[Path]:
    """The folders in which psql looks and this account may create files."""
    return [folder for folder in DEFAULT_DIRS if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)]


def bind_unix(folder: Path, port: int) -> UnixSocket:
    path = folder / f".s.PGSQL.{port}"
    if len(os.fsencode(path)) > _PATH_BYTES_MAX:
        raise CannotListen(f"{path} is too long for a Unix socket", hint="give a shorter folder with --socket-dir")
    _remove_stale(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(os.fspath(path))
        path.chmod(_MODE)
        sock.listen()
        sock.setblocking(False)
        return UnixSocket(path, sock, _identity(path))
    except OSError as error:
        sock.close()
        raise CannotListen(
            f"cannot make the Unix socket {path}: {(error.strerror or str(error)).lower()}",
            hint="give another folder with --socket-dir, or none with --socket-dir ''",
        ) from None


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_ino, found.st_ctime_ns


def _remove_stale(path: Path) -> None:
    """Remove the file of a socket on which no server listens any more."""
    try:
        found = path.lstat()
    except OSError:
        return  # there is none, or binding will say why it cannot be
    hint = "stop what listens there, or give another folder with --socket-dir"
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise CannotListen(f"{path} is not a socket of this account", hint=hint)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(_CONNECT_S_MAX)
        try:
            sock.connect(os.fspath(path))
        except ConnectionRefusedError:
            pass
        except OSError as error:
            raise CannotListen(f"{path} is taken: {(error.strerror or str(error)).lower()}", hint=hint) from None
        else:
            raise CannotListen(f"{path} is taken: another server listens there", hint=hint)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
