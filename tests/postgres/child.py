"""A process that follows a PostgreSQL database until it is killed: `python -m tests.postgres.child FOLDER`."""

from __future__ import annotations

import sys
import time

from everview.adapter.coordinator import Coordinator


def main(folder: str) -> None:
    with Coordinator.open(folder):
        print("open", flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
