"""A process that commits and says so, until it is killed; `test_kill` starts it again and again on one folder.

What is written at a time follows from the time alone, so whoever looks later knows what must be there: at time t one
transaction inserts row t into `orders` and t % 7 copies of it into `lines`, and takes away what time t - 5 inserted.
Every 20th transaction is large enough for Parquet parts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

from everview.storage import compaction, maintenance, staging
from everview.storage.contract import Acquire, Create, Downgrade, Drop, UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
IDS = ("orders", "lines")
LARGE_EVERY, LARGE_ROWS = 20, 300


def inserted(id: str, time: int) -> list[tuple[int, str]]:
    """The rows that the transaction at `time` inserts."""
    rows = [(time, f"{id} {time}")]
    if time % LARGE_EVERY == 0:
        rows += [(time * 1000 + n, f"{id} {n} of many") for n in range(LARGE_ROWS)]
    return rows * (time % 7 if id == "lines" else 1)


def table(id: str, time: int) -> pa.Table:
    """The updates of the transaction at `time`."""
    gained = inserted(id, time)
    lost = inserted(id, time - 5) if time >= 5 else []
    rows = gained + lost
    return pa.table(
        {
            "_time": pa.array([time] * len(rows), pa.int64()),
            "_diff": pa.array([1] * len(gained) + [-1] * len(lost), pa.int64()),
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "text": pa.array([row[1] for row in rows], pa.string()),
        }
    )


def main(folder: Path) -> None:
    staging.INLINE_BYTES_MAX = compaction.INLINE_BYTES_MAX = 4000  # type: ignore[attr-defined]
    compaction.SMALLEST_FAN_IN, compaction.FAN_IN, compaction.SMALLEST_BYTES = 8, 3, 2000
    maintenance.PAUSE_S = 0.01
    with Environment.open(folder) as environment:
        if not environment.ids():
            environment.commit(*(Create(id, SCHEMA) for id in IDS))
        # Earlier processes left capabilities behind; they are replaced by ones of our own in a single step.
        held = {id: list(environment.shard(id).held) for id in IDS}
        capabilities = environment.commit(*(Acquire(id) for id in IDS))
        old = [environment.present(id, token) for id in IDS for token in held[id]]
        environment.commit(*(Drop(capability) for capability in old))
        print(f"open {environment.epoch}", flush=True)
        readers = [read for read, _ in capabilities]
        writers = [write for _, write in capabilities]
        while True:
            time = writers[0].frontier.only
            to = Antichain(time + 1)
            appends = [UpdateAndDowngrade(writer, table(writer.id, time), to) for writer in writers]
            back = Antichain(max(readers[0].frontier.only, time - 3))
            results = environment.commit(*appends, *(Downgrade(reader, back) for reader in readers))
            writers, readers = results[:2], results[2:]
            print(f"ack {time}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
