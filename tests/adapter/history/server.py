"""A server in a process of its own that can be killed at any moment, on a folder that outlives it.

python -m tests.adapter.history.server [DEFECT] FOLDER

serves without Spark: views are computed in the process, so it is complete at once and can be killed often. With a
defect it does wrong what it should not, for whoever looks for that to find out.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.adapter.timeline import Timeline
from everview.instance import Folder, Instance
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, start

ROOT = Path(__file__).parents[3]
LISTENS = re.compile(r"psql -h 127\.0\.0\.1 -p ([0-9]+)")
START_S_MAX, STOP_S_MAX = 100, 60

WITHOUT_SPARK = (sys.executable, "-m", "tests.adapter.history.server")
ON_SPARK = (
    *(sys.executable, "-c", "from everview.cli import main; main()"),
    *("serve", "--pg-port", "0", "--http-port", "0", "--data"),
)


class Server:
    """One life of a server. What it says goes to a file: nobody reads along, and a pipe would be full one day."""

    def __init__(self, command: tuple[str, ...], folder: Path) -> None:
        self._said = Path(tempfile.mkstemp(dir=folder.parent, prefix="server-", suffix=".log")[1])
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [*command, str(folder)],
                stdout=said,
                stderr=said,
                cwd=ROOT,
                # The second as `everview serve` has it.
                env={**os.environ, "PYTHONUNBUFFERED": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
                start_new_session=True,  # so that its Java can be ended with it
            )

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def port(self) -> int:
        """Where it listens, once it does."""
        late = time.monotonic() + START_S_MAX
        while self._process.poll() is None and time.monotonic() < late:
            found = LISTENS.search(self.said())
            if found:
                return int(found[1])
            time.sleep(0.02)
        raise AssertionError(f"the server does not start: {self.said()[-4000:]}")

    def said(self) -> str:
        """All that it has said."""
        return self._said.read_text()

    def kill(self) -> None:
        """End it and its Java at once, and wait until it is gone."""
        if self._process.returncode is None:  # else its number may be another's by now
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(STOP_S_MAX)

    def stop(self) -> None:
        """Ask it to end, which it has to do well."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S_MAX)
        finally:
            self.kill()
        assert self._process.returncode == 0, self.said()[-4000:]


Rows = Mapping[str, pa.Table]
DEFECTS: dict[str, Callable[[Rows, int], Rows]] = {
    "loses writes": lambda rows, number: {} if number % 10 == 9 else rows,
    "tears transactions": lambda rows, _: dict(list(rows.items())[:1]),
    "writes twice": lambda rows, _: {id: pa.concat_tables([table, table]) for id, table in rows.items()},
}


def err(defect: Callable[[Rows, int], Rows]) -> None:
    """Write something else than what was asked for, and acknowledge that."""
    write, count = Timeline.write, itertools.count()

    def wrong(self: Timeline, rows: Any, *rest: Any) -> int:
        return write(self, defect(rows, next(count)), *rest)

    Timeline.write = wrong  # type: ignore[assignment, method-assign]


def main(folder: Path) -> None:
    """Serve until killed, or until the end is asked for."""
    options = Options(pg=Address("127.0.0.1", 0), http=None)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    with (
        Folder(folder) as opened,
        Instance(opened, spark=None) as instance,
        start(instance.coordinator, options, Metrics()) as running,
    ):
        print(f"psql -h {running.pg.host} -p {running.pg.port}")
        while not stopped and not running.wait(0):
            time.sleep(0.05)


if __name__ == "__main__":
    for name in sys.argv[1:-1]:
        err(DEFECTS[name])
    main(Path(sys.argv[-1]))
