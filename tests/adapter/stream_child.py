"""An environment whose sinks write a change stream, in a process of its own that a test can kill.

python -m tests.adapter.stream_child FOLDER
"""

from __future__ import annotations

import sys
import time

import structlog

from everview.adapter.catalog.items import Sink
from everview.adapter.coordinator import Coordinator

if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # the test reads what is told below
    with Coordinator.open(sys.argv[1]) as opened:
        while True:
            for id, item in opened.catalog.state.items.items():
                if isinstance(item, Sink):
                    status = opened.sinks.status(id)
                    assert status is not None
                    print(status.frontier or 0, status.state, repr(status.error), flush=True)
            time.sleep(0.05)
