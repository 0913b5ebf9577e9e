"""Two processes write one stream and are killed again and again; the environment that reads it notices nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from everview.cdc.files import Folder, FolderInlet
from everview.cdc.schema import StreamSchema
from everview.cdc.source import Source
from everview.storage.environment import Environment
from tests.cdc.shards import COLUMNS, contents, expected

ROUNDS_SHORT, ROUNDS_LONG = 4, 60
SCHEMA = StreamSchema(COLUMNS)


def start(folder: Path, stream: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.cdc.kill_child", str(folder), str(stream)]
    return subprocess.Popen(arguments, env=dict(os.environ), stdout=subprocess.PIPE, text=True)


def kill(child: subprocess.Popen[str], after_s: float) -> int:
    """Kill the process so long after it has written something; gives the last time that it said it had written."""
    assert child.stdout is not None
    last, deadline = 0, None
    while line := child.stdout.readline():
        last = int(line.split()[1])
        deadline = deadline or time.monotonic() + after_s
        if time.monotonic() > deadline:
            child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    return last


def test_writers_that_are_killed(tmp_path: Path, rng: random.Random, long_forms: bool) -> None:
    stream = tmp_path / "stream"
    written = 0
    with Environment.open(tmp_path / "reading", background=False) as reading:
        source, _ = Source.create(reading, "in", "copy", FolderInlet(Folder(str(stream)), SCHEMA), SCHEMA)
        for _ in range(ROUNDS_LONG if long_forms else ROUNDS_SHORT):
            children = [start(tmp_path / name, stream) for name in ("left", "right")]
            rng.shuffle(children)
            for child in children:
                written = max(written, kill(child, rng.uniform(0, 0.3)))
                source.poll()
            if rng.random() < 0.5:
                source = Source(reading, "in", FolderInlet(Folder(str(stream)), SCHEMA), SCHEMA)
                source.poll()
            assert source.status.stalls == () and source.status.bad == ()
            reached = source.status.frontier.only
            assert isinstance(reached, int) and reached >= written > 0, "all that was acknowledged is there"
            upper = reached
        for as_of in sorted({*range(5), *range(upper - 5, upper), *rng.choices(range(upper), k=20)}):
            assert contents(reading, "copy", as_of) == expected(as_of), as_of
