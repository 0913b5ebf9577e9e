"""Child processes that storage is tested with, as other users and on small disks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import everview

SOURCE = Path(everview.__file__).parent.parent
Child = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, which pytest's are not."""
    with tempfile.TemporaryDirectory(prefix="everview-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def child() -> Child:
    """Runs Python code in a process of its own, with `arguments` in sys.argv, and returns what became of it."""

    def run(
        code: str,
        *arguments: object,
        environment: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*before, sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def unprivileged(child: Child) -> Child:
    """Like `child`, as a user that file permissions bind: nobody, where the tests run as root."""
    if os.getuid() != 0:
        return child
    # After the imports, for that user may not reach the libraries.
    become_nobody = """
        import os, tempfile
        import everview.storage.stores, everview.storage.stores, everview.storage.retrying
        import everview.storage.environment, everview.storage.observer
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    """
    return lambda code, *arguments: child(textwrap.dedent(become_nobody) + textwrap.dedent(code), *arguments)


@pytest.fixture
def on_small_disk(child: Child, open_folder: Path) -> Child:
    """Like `child`, with a file system of 1 MiB mounted at sys.argv[1], that only the child sees."""
    before = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    mount = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'

    def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        wrapped = (*before, "sh", "-c", mount, "sh", str(open_folder))
        return child(code, open_folder, *arguments, before=wrapped)

    try:
        probe = run("")
    except FileNotFoundError:
        pytest.skip("there is no unshare to mount a small file system with")
    if probe.returncode != 0:
        pytest.skip(f"mounting a small file system is not permitted: {probe.stderr.strip()}")
    return run
