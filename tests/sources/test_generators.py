"""Load generators: contents are a function of seed and time, and what the feeder stores is exactly that."""

from __future__ import annotations

from collections import Counter as Multiset
from pathlib import Path

import pytest

from everview.adapter.tables import shard_schema
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import rows_of
from everview.sources.contract import Feeding, Output
from everview.sources.feeder import Feeder
from everview.sources.generator.auction import Auction
from everview.sources.generator.contract import Generator, Row
from everview.sources.generator.counter import Counter
from everview.sources.generator.kind import LoadGenerator, Ticks
from everview.sources.generator.tpch import Tpch
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.contract import Create
from everview.storage.environment import Environment
from everview.storage.faults import Crash, armed

START, INTERVAL = 1_000, 100
GENERATORS = (Counter(), Counter(keep=3), Auction(7, START, INTERVAL), Tpch(5, 0.00002))


def contents(generator: Generator, ticks: int) -> dict[str, Multiset[Row]]:
    """The tables after so many ticks."""
    found: dict[str, Multiset[Row]] = {table.name: Multiset() for table in generator.tables}
    for tick in range(ticks + 1):
        for name, rows in generator.changes(tick).items():
            for row, diff in rows:
                found[name][row] += diff
    return found


@pytest.mark.parametrize("generator", GENERATORS, ids=str)
def test_contents_are_definite_and_proper(generator: Generator) -> None:
    once, again = contents(generator, 30), contents(generator, 30)
    assert once == again
    for table in generator.tables:
        rows = +once[table.name]
        assert all(count >= 0 for count in once[table.name].values()), "what goes was there"
        assert all(len(row) == len(table.columns) for row in rows)
        rows_of(((row, 1) for row in rows), table.types)


def test_seeds_differ() -> None:
    assert contents(Auction(1, 0, 1), 5) != contents(Auction(2, 0, 1), 5)


def test_counter_keeps_the_last() -> None:
    assert sorted(row[0] for row in +contents(Counter(keep=3), 10)[""]) == [8, 9, 10]


def test_references_of_tpch_hold() -> None:
    found = contents(Tpch(3, 0.0001), 20)
    orders = {row[0] for row in +found["orders"]}
    assert {row[0] for row in +found["lineitem"]} == orders
    pairs = {row[:2] for row in +found["partsupp"]}
    assert {(row[1], row[2]) for row in +found["lineitem"]} <= pairs


class Fed:
    """A generator whose collections are fed by hand."""

    def __init__(self, generator: Generator, folder: Path, begin: int = START) -> None:
        self.generator, self._folder, self.begin = generator, folder, begin
        self._stores = MemoryConsensus(), MemoryBlob()
        self.now = begin
        self.environment = Environment(*self._stores, folder, background=False)
        ids = {table.name: f"u{number}" for number, table in enumerate(generator.tables)}
        creates = [Create(ids[table.name], shard_schema(table.types), at=begin) for table in generator.tables]
        results = self.environment.commit(*creates)
        self.outputs = {name: Output(id, pair[1].token) for (name, id), pair in zip(ids.items(), results, strict=True)}
        self.feeder = self._feeder()

    def _feeder(self) -> Feeder:
        spec = LoadGenerator("load generator", "", {}, START, self.begin)
        feeding = Feeding(self.environment, "u0", "it", spec, self.outputs, lambda: self.now - 1)
        return Feeder(feeding, Ticks(self.generator, START, INTERVAL, self.begin))

    def restart(self) -> None:
        self.environment = Environment(*self._stores, self._folder, background=False)
        self.feeder = self._feeder()

    def check(self) -> None:
        """At every complete time, what is stored is what the generator says."""
        upper = self.feeder.upper
        for tick in range((upper - 1 - START) // INTERVAL + 1):
            expected = contents(self.generator, tick)
            at = START + tick * INTERVAL
            if at + INTERVAL <= self.begin:
                continue
            for table in self.generator.tables:
                with self.environment.contents(self.outputs[table.name].id, max(at, self.begin)) as selection:
                    found = rows_from_arrow(selection.contents(), table.types)
                wanted = rows_of(expected[table.name].items(), table.types)
                assert found == wanted, f"{table.name} at tick {tick}"


@pytest.mark.parametrize("generator", GENERATORS[:3], ids=str)
def test_what_is_fed_is_what_is_generated(generator: Generator, tmp_path: Path) -> None:
    fed = Fed(generator, tmp_path)
    for now in (START + 1, START + 1, START + 99, START + 101, START + 550, START + 1_000):
        fed.now = now
        fed.feeder.step()
        assert fed.feeder.upper == now
    fed.check()


def test_crashes_repeat_and_lose_nothing(tmp_path: Path) -> None:
    fed = Fed(Auction(3, START, INTERVAL), tmp_path)
    for round_number in range(12):
        fed.now += 130
        point = ("commit.before", "commit.after")[round_number % 2]
        with armed(point):
            try:
                fed.feeder.step()
            except Crash:
                fed.restart()
    fed.feeder.step()
    fed.check()


@pytest.mark.parametrize("generator", GENERATORS[:3], ids=str)
@pytest.mark.parametrize("begin", [START + 1, START + 730, START + 5_000, START - 400])
def test_one_that_started_before_has_the_same_at_the_same_times(
    generator: Generator, begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everview.sources.generator.kind.TICKS_AT_ONCE_MAX", 3)
    fed = Fed(generator, tmp_path, begin)
    fed.now = max(begin, START) + 1_250
    while fed.feeder.step():
        pass
    fed.restart()
    fed.now += 300
    while fed.feeder.step():
        pass
    fed.check()
