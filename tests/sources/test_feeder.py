"""The feeder of sources: rows of several collections, position and frontiers are one commit, whatever crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from everview.adapter.tables import shard_schema
from everview.compute.ir.types import INT8
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.sources.contract import RUNNING, STALLED, Feeding, Output, Spec, Table
from everview.sources.feeder import POSITION, Feeder, News, Position
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.contract import Create
from everview.storage.environment import Environment
from everview.storage.faults import Crash, armed
from everview.timely.consolidate import TIME, with_column

TABLES = (Table.of("even", ("n", INT8)), Table.of("odd", ("n", INT8)))
AT_ONCE_MAX = 3


class Log:
    """A log outside, of numbers. It is read a few at a time; positions are texts that only it understands."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.fails = False

    def news(self, position: Position, lower: int, end: int) -> News:
        if self.fails:
            raise OSError("the log cannot be reached")
        first = int(position.removeprefix("#")) if position is not None else 0
        found = self.numbers[first : first + AT_ONCE_MAX]
        changes: dict[str, Any] = {}
        for name, rest in (("even", 0), ("odd", 1)):
            rows = rows_to_arrow({(n,): 1 for n in found if n % 2 == rest}, (INT8,))
            if rows.num_rows:
                changes[name] = with_column(rows, TIME, np.full(rows.num_rows, end - 1, dtype=np.int64))
        last = first + len(found)
        return News(changes, end, f"#{last}", more=last < len(self.numbers))

    def close(self) -> None:
        return None


class World:
    """Two collections that are fed from a log."""

    def __init__(self, folder: Path) -> None:
        self._stores, self._folder = (MemoryConsensus(), MemoryBlob()), folder
        self.log, self.now = Log(), 100
        self.environment = Environment(*self._stores, folder, background=False)
        creates = [Create(f"u{number}", shard_schema(each.types), at=100) for number, each in enumerate(TABLES)]
        made = self.environment.commit(*creates)
        pairs = zip(TABLES, made, strict=True)
        self.outputs = {each.name: Output(f"u{n}", write.token) for n, (each, (_, write)) in enumerate(pairs)}
        self.feeder = self.opened()

    def opened(self) -> Feeder:
        feeding = Feeding(self.environment, "u9", "it", Spec("log"), self.outputs, lambda: self.now)
        return Feeder(feeding, self.log)

    def restart(self) -> None:
        self.environment = Environment(*self._stores, self._folder, background=False)
        self.feeder = self.opened()

    def rows(self, name: str) -> dict[Any, int]:
        with self.environment.contents(self.outputs[name].id, self.feeder.upper - 1) as selection:
            return dict(rows_from_arrow(selection.contents(), (INT8,)))

    def check(self) -> None:
        for name, rest in (("even", 0), ("odd", 1)):
            assert self.rows(name) == {(n,): 1 for n in self.log.numbers if n % 2 == rest}


def test_all_is_read_a_part_at_a_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.log.numbers = list(range(10))
    parts = 0
    while (news := world.feeder.step()) is not None:
        parts, world.now = parts + 1, world.now + 1
        assert news.more == (parts < 4)
        if not news.more:
            break
    assert parts == 4
    world.check()
    assert world.feeder.upper == world.now
    assert world.feeder.step() is not None and world.feeder.step() is None, "nothing new, and it is complete up to now"


@pytest.mark.parametrize("point", ["commit.before", "commit.after"])
def test_a_crash_loses_and_repeats_nothing(tmp_path: Path, point: str) -> None:
    world = World(tmp_path)
    for number in range(8):
        world.log.numbers.append(number)
        world.now += 10
        with armed(point):
            try:
                world.feeder.step()
            except Crash:
                world.restart()
        for each in world.outputs.values():
            assert world.environment.frontiers(each.id).upper.only == world.feeder.upper, "they move together"
    while (news := world.feeder.step()) is not None and news.more:
        world.now += 1
    world.now += 1
    world.feeder.step()
    world.check()
    assert world.environment.get(POSITION + "u9") == b'"#8"'


def test_what_fails_is_told_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.log.numbers, world.log.fails, world.now = [1], True, 200
    with pytest.raises(OSError, match="cannot be reached"):
        world.feeder.step()
    assert world.feeder.upper == 100 and world.feeder.status().state == RUNNING
    world.feeder._loop.attempt()
    assert world.feeder.status().state == STALLED and "cannot be reached" in (world.feeder.status().error or "")
    world.log.fails = False
    world.feeder._loop.attempt()
    assert world.feeder.status().state == RUNNING
    world.check()
