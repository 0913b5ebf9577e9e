"""How two collections differ: at the time that is asked for, whichever was asked for before."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa

from everview.compute.difference import Difference, counts
from everview.storage.contract import ReadCapability, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

SCHEMA = pa.schema([("c0", pa.int64()), ("c1", pa.string())])
Row = tuple[int | None, str | None]
TIMES = 30


def write(environment: Environment, writer: WriteCapability, history: list[tuple[Row, int, int]]) -> None:
    for time in range(TIMES):
        now = [(row, diff) for row, at, diff in history if at == time]
        table = pa.table(
            {
                "_time": pa.array([time] * len(now), pa.int64()),
                "_diff": pa.array([diff for _, diff in now], pa.int64()),
                "c0": pa.array([row[0] for row, _ in now], pa.int64()),
                "c1": pa.array([row[1] for row, _ in now], pa.string()),
            }
        )
        writer = environment.append(writer, table if now else None, Antichain(time + 1))


def test_every_time_in_any_order(tmp_path: Path, rng: random.Random) -> None:
    rows: list[Row] = [(n, word) for n in (None, 1, 2, 3) for word in (None, "a", "b")]
    with Environment.open(tmp_path / "data", background=False) as environment:
        histories = [
            [(rng.choice(rows), rng.randrange(TIMES), rng.choice((-2, -1, 1, 2))) for _ in range(40)] for _ in range(2)
        ]
        readers: list[ReadCapability] = []
        for id, history in zip(("u1", "u2"), histories, strict=True):
            read, writer = environment.create(id, SCHEMA)
            readers.append(read)
            write(environment, writer, history)
        difference = Difference(environment, "u1", "u2")
        assert not difference.known
        for time in [rng.randrange(TIMES) for _ in range(20)]:
            wanted: Counter[Row] = Counter()
            for sign, history in zip((1, -1), histories, strict=True):
                for row, at, diff in history:
                    if at <= time:
                        wanted[row] += sign * diff
            table = difference.at(time)
            columns = [table.column(each).to_pylist() for each in ("c0", "c1", "_diff")]
            found = {(c0, c1): diff for c0, c1, diff in zip(*columns, strict=True)}
            assert found == {row: diff for row, diff in wanted.items() if diff}
            added, removed = counts(table)
            assert added - removed == sum(found.values())
        # What came since the last time is forgotten: everything is read once more.
        difference.at(5)
        for read in readers:
            environment.downgrade(read, Antichain(20))
        assert difference.at(25).equals(Difference(environment, "u1", "u2").at(25))
