"""Fleets of views over the same tables, made and dropped at random, with shared arrangements, kills and restarts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from everview.compute.arranged import Arranged
from everview.compute.capabilities import held_of, note_of
from everview.compute.dataflow import Dataflow, maintain_view, resume
from everview.compute.engine.contract import Engine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Relation
from everview.compute.ir.types import INT4, INT8
from everview.compute.optimize.pipeline import optimize
from everview.compute.shared_arrangements import SharedArrangements
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.view import View, inputs_of
from everview.storage.contract import AdvanceClock, Drop, Follow, GlobalId, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import UnknownId
from everview.storage.faults import Crash, armed
from everview.timely.antichain import Antichain
from tests.compute.delta.history import Updates, contents
from tests.compute.sql.tables import TABLES, Tables
from tests.compute.sql.test_against_postgres import contents as random_rows
from tests.compute.test_dataflow import Tables3, read

LAST = 40
CLOCK = "history"
BASE = "base"
BASE_QUERY = "SELECT t.id, t.k, u.amount FROM t JOIN u ON t.k = u.k"
QUERIES = (
    "SELECT t.id, u.label FROM t JOIN u ON t.k = u.k WHERE t.qty > {n}",
    "SELECT t.id, t.name, u.amount FROM t JOIN u ON t.k = u.k WHERE t.qty <> {n} AND u.label <> 'p'",
    "SELECT t.id, 7 AS seven, u.id FROM t JOIN u ON t.k = u.k WHERE t.qty = {n}",
    "SELECT u.label, count(*), sum(t.qty) FROM t JOIN u ON t.k = u.k GROUP BY u.label",
    "SELECT t.id, u.label FROM t LEFT JOIN u ON t.k = u.k AND u.amount > {n}",
    "SELECT k, max(qty) AS a, min(id) AS b FROM t GROUP BY k",
    "SELECT k, max(price) FROM t WHERE name LIKE 'a%' GROUP BY k",
    "SELECT k, string_agg(name, ',' ORDER BY name, id) FROM t WHERE qty <> {n} GROUP BY k",
    "SELECT id, qty FROM t ORDER BY qty DESC, id LIMIT {n} + 1",
    "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE amount > {n})",
    "SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k AND a.id < b.id",
    "SELECT a.id, b.name, u.label FROM t a JOIN t b ON a.id = b.qty JOIN u ON b.k = u.k",
    "SELECT t.name, base.amount FROM base JOIN t ON base.id = t.id WHERE base.amount > {n}",
    "SELECT base.id, t.qty, base.amount FROM base JOIN t ON base.id = t.id",
    "SELECT t.id, u.id FROM t JOIN u ON t.id = u.id AND t.k = u.k",
    "SELECT t.id, u.id FROM t JOIN u ON t.id = u.id WHERE 10 / (t.qty + 1) > 1",
)


class WithBase(Tables):
    """The tables, and a view over them that other views read."""

    def find(self, path: Any) -> Collection | None:
        if path[-1] == BASE:
            return Collection(BASE, ("id", "k", "amount"), (INT4, INT4, INT8))
        return super().find(path)


def planned(query: str) -> Relation:
    return optimize(plan(query, WithBase()).relation)


def histories(rng: random.Random) -> dict[str, Updates]:
    """Rows of the tables that come, go and come back; so many that filters are tried on them."""
    result: dict[str, Updates] = {}
    for name in TABLES:
        updates: list[tuple[Any, int, int]] = []
        for row in [row for _ in range(8) for row in random_rows(rng)[name]]:
            time, alive = rng.choice([0, 0, 0, rng.randint(0, LAST)]), False
            for _ in range(rng.randint(1, 4)):
                updates.append((row, time, -1 if alive else 1))
                alive, time = not alive, min(LAST, time + rng.randint(0, LAST // 3))
        result[name] = updates
    return result


class Fleet:
    """Views over the tables of one environment. What `views` says outlives a crash, as a catalog would."""

    def __init__(self, folder: Path, rng: random.Random, engine: Engine, *, clocked: bool) -> None:
        self.folder, self.rng, self.engine, self.clocked = folder, rng, engine, clocked
        self.history = histories(rng)
        self.views: dict[GlobalId, tuple[Relation, str]] = {}  # with the token of the reader
        self.written = 0
        self.numbers = iter(range(1_000))
        self.environment = Environment.open(folder, background=False)
        tables = Tables3(self.environment, self.history)
        self.tables = {id: each.token for id, each in tables.readers.items()}
        self.writers = {id: each.token for id, each in tables.writers.items()}
        if clocked:
            follows = [Follow(each, CLOCK, 4) for each in tables.readers.values()]
            self.environment.commit(AdvanceClock(CLOCK, None, 0), *follows)
        self._begin()
        self.write(2)
        self.make(BASE, planned(BASE_QUERY))

    def _begin(self) -> None:
        self.flows: dict[GlobalId, Dataflow] = {}
        self.arranging: dict[GlobalId, Dataflow] = {}
        self.shared = SharedArrangements(
            self.environment,
            self.engine,
            lambda flow: self.arranging.update({flow.id: flow}),
            self._end,
            self._end,
        )

    def _end(self, id: GlobalId) -> Dataflow | None:
        return self.arranging.pop(id, None)

    # What may happen

    def write(self, upper: int) -> None:
        """Let time go on, with what the history says of it."""
        tables = Tables3.__new__(Tables3)
        tables.environment, tables.history = self.environment, self.history
        tables.writers = {id: self._present(id, token) for id, token in self.writers.items()}
        tables.write(self.written, upper)
        self.written = upper
        if self.clocked:
            self.environment.commit(AdvanceClock(CLOCK, self.environment.clock(CLOCK), upper - 1))

    def make(self, id: GlobalId, relation: Relation) -> None:
        inputs = [self._reader(each) for each in sorted(self._read_by(relation))]
        with self.shared.serving(id, View.of(relation), inputs) as (readings, made):
            flow, reader = maintain_view(self.environment, id, relation, inputs, self.engine, readings=readings)
            made(flow)
        self.flows[id] = flow
        if self.clocked:
            (reader,) = self.environment.commit(Follow(reader, CLOCK, 4))
        self.views[id] = relation, reader.token

    def make_any(self) -> None:
        query = self.rng.choice(QUERIES).format(n=self.rng.randint(0, 6))
        self.make(f"v{next(self.numbers)}", planned(query))

    def drop_any(self) -> None:
        found = [id for id in self.views if id != BASE]
        if found:
            self.drop(self.rng.choice(found))

    def drop(self, id: GlobalId) -> None:
        _, token = self.views.pop(id)
        self.environment.commit(Drop(self._present(id, token)))
        self.shared.drop(self.flows.pop(id))

    def tick_some(self) -> None:
        """Let any of the dataflows tick, in any order."""
        flows = [*self.flows.values(), *self.arranging.values()]
        for flow in self.rng.sample(flows, self.rng.randint(1, len(flows))):
            idle = flow.idle_step() if self.rng.random() < 0.3 else None
            if idle is not None:
                self.environment.commit(*idle[1])
            else:
                flow.tick(self.rng.choice([None, None, flow.upper + 1, flow.upper + 3]))

    def let_go(self) -> None:
        """Let the past of a table, or of a view, no longer be read."""
        if not self.clocked:
            id = self.rng.choice([*self.tables, *self.views])
            reader = self._reader(id)
            upper = self.environment.frontiers(id).upper.only
            to = self.rng.randint(reader.frontier.only, max(reader.frontier.only, upper - 1))
            self.environment.downgrade(reader, Antichain(to))

    def restart(self) -> None:
        """Come back after a crash or an end: views go on, and what is left over goes."""
        with suppress(Crash):
            self.environment.close()
        self.environment = Environment.open(self.folder, background=False)
        # A write of which nobody was told.
        self.written = self.environment.frontiers("t").upper.only
        self._begin()
        for id, (relation, _) in self.views.items():
            flow = resume(
                self.environment,
                id,
                relation,
                self.engine,
                lambda view, held, id=id: self.shared.readings(id, view, held),  # type: ignore[misc]
            )
            assert not flow.foreign
            self.shared.used_by(flow)
            self.flows[id] = flow
            for each in [*self.arranging.values()]:  # which go on as soon as one who reads them does
                each.tick()
        known = {*self.tables.values(), *self.writers.values(), *(token for _, token in self.views.values())}
        known = known.union(*(each.tokens for each in [*self.flows.values(), *self.shared.flows()]))
        lost = [(id, token) for id in self.environment.ids() for token in held_of(self.environment, id)]
        drops = [Drop(self.environment.present(id, token)) for id, token in lost if token not in known]
        self.environment.commit(*drops, *self.shared.leftovers())

    def crash(self) -> None:
        """Die at any commit of something, before it is durable or after."""
        step = self.rng.choice([self.make_any, self.drop_any, self.tick_some, self.tick_some])
        point, hit = self.rng.choice(["commit.before", "commit.after"]), self.rng.randint(1, 4)
        with suppress(Crash), armed(point, hit=hit, for_good=True):  # what is undone on the way out is not
            step()
        self.restart()

    # What has to hold

    def check_counts(self) -> None:
        """Each arrangement that there is has exactly the users that read it, and nothing else is there."""
        noted: dict[GlobalId, set[GlobalId]] = {}
        for id, flow in self.flows.items():
            for each in flow.held.shared.values():
                noted.setdefault(each, set()).add(id)
        assert {each.id: set(each.users) for each in self.shared.statuses()} == noted
        assert {id for id in self.environment.ids() if id.startswith("a")} == noted.keys()
        assert {key.partition("/")[2] for key in self.environment.keys("arrangement/")} == noted.keys()
        assert all(self.environment.get(note_of(each)) is not None for each in noted)

    def catch_up(self) -> None:
        """Let everything come as far as the tables are."""
        for _ in range(20):
            for flow in [*self.arranging.values(), *self.flows.values()]:
                flow.tick()
            if all(flow.upper == self.written for flow in [*self.flows.values(), *self.arranging.values()]):
                return
        raise AssertionError("a view does not catch up")

    def check(self) -> None:
        """Every view, and every arrangement, is exact at every time at which it can be read."""
        for flow in [*self.flows.values(), *self.arranging.values()]:
            frontiers = self.environment.frontiers(flow.id)
            for time in range(min(frontiers.since.only, flow.upper), flow.upper):
                found, expected = read(self.environment, flow, time), self._expected(flow.plan, time)
                assert found == expected, f"{flow.id} at {time}"

    def _expected(self, relation: Relation, time: int) -> Mapping[Any, int]:
        inputs: dict[str, Any] = {name: contents(updates, time) for name, updates in self.history.items()}
        inputs[BASE] = evaluate(planned(BASE_QUERY), inputs).rows
        return evaluate(relation, inputs).rows

    def arranged(self) -> list[Arranged]:
        return [each.arranged for each in self.shared.statuses()]

    def _read_by(self, relation: Relation) -> set[GlobalId]:
        return set(inputs_of(relation))

    def _reader(self, id: GlobalId) -> ReadCapability:
        token = self.tables[id] if id in self.tables else self.views[id][1]
        return self._present(id, token)

    def _present(self, id: GlobalId, token: str) -> Any:
        return self.environment.present(id, token)

    def close(self) -> None:
        with suppress(UnknownId):
            self.environment.close()


def run(fleet: Fleet, steps: int) -> None:
    """So many steps of all kinds, then everything caught up and checked."""
    rng = fleet.rng
    for _ in range(steps):
        kind = rng.random()
        if kind < 0.25 and len(fleet.views) < 12:
            fleet.make_any()
        elif kind < 0.35:
            fleet.drop_any()
        elif kind < 0.5 and fleet.written < LAST:
            fleet.write(min(LAST, fleet.written + rng.randint(1, 4)))
        elif kind < 0.55:
            fleet.let_go()
        elif kind < 0.6:
            fleet.environment.maintenance.run()
        elif kind < 0.68:
            fleet.crash()
        else:
            fleet.tick_some()
        fleet.check_counts()
    fleet.catch_up()
    fleet.check()
