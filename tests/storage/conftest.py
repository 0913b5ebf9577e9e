"""The real parts that storage is tested against: an S3 server and child processes to kill."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import everview

BUCKET = "blobs"
SOURCE = Path(everview.__file__).parent.parent
Child = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def s3_url() -> Iterator[Callable[[str], str]]:
    """From a prefix to the URL of a place in a bucket of a server that speaks S3."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication
    from moto.server import ThreadedMotoServer

    # It looks whether an object exists and then stores one, in two steps; a real server does both at once.
    lock, call = threading.Lock(), DomainDispatcherApplication.__call__

    def one_at_a_time(self: Any, environ: Any, start_response: Any) -> Any:
        with lock:
            return list(call(self, environ, start_response))

    DomainDispatcherApplication.__call__ = one_at_a_time  # type: ignore[method-assign]
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    names = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "tester"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"

    import boto3

    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=BUCKET)
    yield lambda prefix: f"s3://{BUCKET}/{prefix}?endpoint={endpoint}&region=us-east-1&allow_http=true"
    server.stop()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


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
