"""What waits for its time: the next due time is exact, whoever asks while ticks run, and constants need no ticks."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from everview.compute.dataflow import Dataflow, maintain_view, resume
from everview.compute.engine.local import LocalEngine
from everview.compute.ir.types import INT8
from everview.compute.optimize.pipeline import optimize
from everview.compute.pending_updates import Buckets
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.stored_state import schema_of
from everview.storage.contract import Create, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import TIME
from everview.timely.lattice import TIME_MAX

VALID = "SELECT k FROM e WHERE mz_now() >= since AND mz_now() < until"

numbers = st.lists(st.integers(0, 60), max_size=12)


@given(steps=st.lists(st.tuples(st.sampled_from(["add", "drop"]), numbers), max_size=12), start=numbers)
def test_buckets_are_a_sorted_set(steps: list[tuple[str, list[int]]], start: list[int]) -> None:
    expected = set(start)
    buckets = Buckets(np.array(sorted(expected), dtype=np.int64))
    for what, values in steps:
        if what == "add":
            expected |= set(values)
            buckets.add(np.unique(np.array(values, dtype=np.int64)))
        elif values:
            expected = {each for each in expected if each >= values[0]}
            buckets.drop_before(values[0])
        assert len(buckets) == len(expected) and buckets.first == min(expected, default=None)
        for last in (0, 30, 60):
            assert buckets.up_to(last).tolist() == sorted(each for each in expected if each <= last)


class Names:
    """One relation."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("e", ("k", "since", "until"), (INT8, INT8, INT8)) if path[-1] == "e" else None

    def names(self) -> list[str]:
        return ["e"]


def install(environment: Environment) -> tuple[Dataflow, WriteCapability]:
    ((reader, writer),) = environment.commit(Create("e", schema_of((INT8, INT8, INT8))))
    relation = optimize(plan(VALID, Names()).relation)
    return maintain_view(environment, "v", relation, [reader], LocalEngine())[0], writer


def updates(time: int, *rows: tuple[int, int, int], diff: int = 1) -> pa.Table:
    table = rows_to_arrow({(*row, time): diff for row in rows}, (INT8,) * 4)
    return table.rename_columns(["c0", "c1", "c2", TIME, "_diff"])


def test_the_next_due_time_is_exact(tmp_path: Path) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        flow, writer = install(environment)
        assert flow.next_due is None
        writer = environment.append(writer, updates(0, (1, 0, 1_007), (2, 990, 1_007), (3, 5_000, 6_000)), Antichain(1))
        assert not flow.settled(500), "the tick is yet to come"
        flow.tick()
        assert flow.next_due == 990 and flow.settled(989) and not flow.settled(990)
        for upper, due in ((900, 990), (991, 1_007), (1_007, 1_007), (1_008, 5_000), (5_500, 6_000), (7_000, None)):
            writer = environment.append(writer, None, Antichain(upper))
            ticked = flow.tick()
            assert ticked is not None
            assert flow.next_due == due, f"at {upper}"
            assert resume(environment, "v", flow.plan, LocalEngine()).next_due == due, f"read again at {upper}"
        writer = environment.append(writer, updates(7_000, (4, 0, 9_000), (5, 0, 8_000)), Antichain(7_001))
        flow.tick()
        assert flow.next_due == 8_000
        writer = environment.append(writer, updates(7_001, (5, 0, 8_000), diff=-1), Antichain(7_002))
        flow.tick()
        assert flow.next_due in (8_000, 9_000), "what was taken back may cost a tick that does nothing"
        environment.append(writer, None, Antichain(8_001))
        flow.tick()
        assert flow.next_due == 9_000


def test_a_tick_in_which_nothing_is_due_computes_nothing(tmp_path: Path) -> None:
    with Environment.open(tmp_path, background=False) as environment:
        flow, writer = install(environment)
        writer = environment.append(writer, updates(0, (1, 0, 1_020)), Antichain(1))
        flow.tick()
        statements = []
        for upper in (1_000, 1_010, 1_020, 1_021, 1_022):  # all of these are in one bucket
            writer = environment.append(writer, None, Antichain(upper))
            ticked = flow.tick()
            assert ticked is not None
            statements.append(ticked.statements > 0)
        assert statements == [False, False, False, True, False]


def test_whoever_waits_may_ask_while_ticks_run(tmp_path: Path, rng: random.Random) -> None:
    with Environment.open(tmp_path) as environment:
        flow, writer = install(environment)
        stop, failed = threading.Event(), []

        def ask() -> None:
            try:
                while not stop.is_set():
                    due = flow.next_due
                    assert due is None or 0 <= due < 4_000
            except BaseException as error:
                failed.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for time in range(0, 3_000, 50):
                rows = [(n, time, time + rng.randint(1, 700)) for n in range(20)]
                writer = environment.append(writer, updates(time, *rows), Antichain(time + 50))
                flow.tick()
            environment.append(writer, None, Antichain(10_000))
            flow.tick()
        finally:
            stop.set()
            asking.join()
        assert not failed and flow.next_due is None
        with environment.contents("v", 9_999) as selection:
            assert selection.contents().num_rows == 0


def test_constants_are_known_for_all_times_at_once(tmp_path: Path) -> None:
    query = "SELECT k FROM (VALUES (1, 100), (2, 200)) AS x (k, until) WHERE mz_now() < until"
    relation = optimize(plan(query, Names()).relation)
    with Environment.open(tmp_path, background=False) as environment:
        flow, _ = maintain_view(environment, "v", relation, [], LocalEngine())
        assert flow.tick() is not None and flow.upper == TIME_MAX and flow.tick() is None
        for time, left in ((0, 2), (99, 2), (100, 1), (199, 1), (200, 0), (TIME_MAX - 1, 0)):
            with environment.contents("v", time) as selection:
                assert len(rows_from_arrow(selection.contents(), (INT8,))) == left
