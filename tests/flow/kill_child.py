"""A process that writes a hundred transactions a second and delivers them to PostgreSQL, until it is killed.

What is written at a time follows from the time alone. At time t, key t % 50 gets the value t, and key (t + 25) % 50
goes away if it is there: so every transaction inserts, updates or deletes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow as pa

from everview.compute.ir.types import INT8, TEXT
from everview.flow.contract import Binding
from everview.flow.materialization import Materialization, Options, make_binding
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.flow.created import created

KEYS = 50
PAUSE_S = 0.004
SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", pa.string())])


def contents(upper: int) -> dict[int, int]:
    """The view at the times before `upper`: key to value."""
    rows: dict[int, int] = {}
    for now in range(upper):
        rows[now % KEYS] = now
        rows.pop((now + KEYS // 2) % KEYS, None)
    return rows


def updates(now: int, before: dict[int, int]) -> pa.Table:
    """The changes of the transaction at `now`; keeps `before` up to date."""
    changed = {now % KEYS: now, (now + KEYS // 2) % KEYS: None}
    rows = [(-1, key, before.pop(key)) for key in changed if key in before]
    rows += [(1, key, value) for key, value in changed.items() if value is not None]
    before.update({key: value for key, value in changed.items() if value is not None})
    return pa.table(
        {
            "_time": pa.array([now] * len(rows), pa.int64()),
            "_diff": pa.array([row[0] for row in rows], pa.int64()),
            "c0": pa.array([row[1] for row in rows], pa.int64()),
            "c1": pa.array([row[2] for row in rows], pa.int64()),
            "c2": pa.array([f"value {row[2]}" for row in rows], pa.string()),
        }
    )


def binding(environment: Environment, table: str) -> Binding:
    columns = [("key", INT8), ("value", INT8), ("note", TEXT)]
    return make_binding(environment, "u1", columns, ["key"], resource={"table": table})


def main(folder: Path, url: str, table: str) -> None:
    with Environment.open(folder) as environment:
        if "u1" not in environment.ids():
            environment.create("u1", SCHEMA)
        config, bound = {"connection": url}, [binding(environment, table)]
        if environment.get("flow/sink/materialization") is None:
            sink = created(environment, "sink", "postgres", config, bound, options=Options(splits=2))
        else:
            sink = Materialization.resume(environment, "sink", "postgres", config, bound)
        # Earlier processes left capabilities to write behind; they are replaced by one of our own.
        left = [environment.present("u1", token) for token in environment.shard("u1").held if token.startswith("w")]
        _, write = environment.acquire("u1")
        environment.drop(*left)
        sink.start()
        before = contents(write.frontier.only)
        print("open", flush=True)
        while True:
            now = write.frontier.only
            write = environment.append(write, updates(now, before), Antichain(now + 1))
            print(f"ack {now} {sink.status().transactions}", flush=True)
            time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
