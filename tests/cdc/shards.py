"""Environments with a collection whose contents follow from the time alone, and what is in a collection."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.cdc.rows import rows_of, table_of
from everview.storage.contract import ReadCapability, WriteCapability
from everview.storage.environment import Environment
from everview.storage.shard import READ, WRITE
from everview.timely.antichain import Antichain

COLUMNS = pa.schema([("n", pa.int64()), ("text", pa.string())])


def inserted(time: int) -> list[Any]:
    """The rows that come at a time."""
    if time < 0 or time % 4 == 3:
        return []
    return [((n, f"row {n}"), time, 1 + n % 2) for n in range(time * 10, time * 10 + time % 7 + 1)]


def changes(time: int) -> list[Any]:
    """The changes at a time: some rows come, those of three times before go, one row changes its multiplicity."""
    gone = [(row, time, -diff) for row, _, diff in inserted(time - 3)]
    return [*inserted(time), *gone, *([] if time % 4 == 3 else [((-1, None), time, 1)])]


class Writing:
    """An environment that writes the collection `view` from time to time."""

    def __init__(self, folder: Path) -> None:
        self.environment = Environment.open(folder, background=False)
        self.reader: ReadCapability
        self.writer: WriteCapability
        if "view" in self.environment.ids():
            held = self.environment.shard("view").held
            first = {each.kind: token for token, each in reversed(list(held.items()))}
            reader, writer = (self.environment.present("view", first[kind]) for kind in (READ, WRITE))
            assert isinstance(reader, ReadCapability) and isinstance(writer, WriteCapability)
            self.reader, self.writer = reader, writer
        else:
            self.reader, self.writer = self.environment.create("view", COLUMNS)

    def advance(self, to: int) -> None:
        """Write the changes up to a time."""
        updates = [u for time in range(self.writer.frontier.only, to) for u in changes(time)]
        self.writer = self.environment.append(self.writer, table_of(updates, COLUMNS), Antichain(to))


def contents(environment: Environment, id: str, as_of: int) -> Counter[Any]:
    """The contents of a collection at a time."""
    with environment.contents(id, as_of) as selection:
        table = selection.contents()
    diffs = table.column("_diff").to_pylist()
    return Counter(dict(zip(rows_of(table.drop_columns(["_diff"])), diffs, strict=True)))


def expected(as_of: int) -> Counter[Any]:
    """What `view` holds at a time."""
    total: Counter[Any] = Counter()
    for time in range(as_of + 1):
        for row, _, diff in changes(time):
            total[row] += diff
    return Counter({row: count for row, count in total.items() if count})
