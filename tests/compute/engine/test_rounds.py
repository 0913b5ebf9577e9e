"""Statements that are to run at the same time run as one job, and none is held up or failed by another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.engine import run_phases
from everview.compute.engine.spark import prepared, rounds
from everview.compute.engine.spark.prepared import PreparedStatements, input_name
from everview.compute.engine.spark.rounds import Rounds
from everview.compute.engine.spark.session import profiles
from everview.compute.ir.types import INT8
from everview.timely.consolidate import DIFF
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = (INT8,)


class Fake:
    """A statement whose result is its input."""

    def __init__(self, number: int) -> None:
        self.number, self.lock = number, threading.Lock()
        self.rows: Sequence[pa.Buffer] = ()
        self.cleared = 0

    def result_rdd(self) -> Any:
        raise AssertionError("there is no Spark here")

    def put(self, batches: Sequence[pa.Buffer]) -> None:
        self.rows = batches

    def clear(self, batches: Sequence[pa.Buffer]) -> None:
        self.cleared += 1


class FakeRounds(Rounds):
    """Rounds without Spark: `begins` is called with the numbers of the statements of each round."""

    def __init__(self, begins: Callable[[list[int]], None]) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._begins = begins
        self.ended = 0

    def _use_settings(self, tag: str) -> None:
        pass

    def _end(self, tag: str) -> None:
        self.ended += 1

    def _collected(self, statements: Sequence[Any]) -> list[bytes]:
        self._begins([each.number for each in statements])
        found: list[bytes] = []
        for each in statements:
            if len(statements) > 1:
                found.append(b"everview round " + str(each.number).encode())
            found += [bytes(batch) for batch in each.rows]
        return found


class Gate:
    """Holds the first round up until it is opened, so that whatever comes meanwhile is in the second."""

    def __init__(self) -> None:
        self.rounds: list[list[int]] = []
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, numbers: list[int]) -> None:
        self.rounds.append(numbers)
        if len(self.rounds) == 1:
            self.entered.set()
            assert self.opened.wait(30)


def bytes_of(text: str) -> list[pa.Buffer]:
    return [pa.py_buffer(text.encode())]


def test_a_run_tells_where_its_time_went() -> None:
    """What it waited for others, and what the job of its own round took."""
    gate = Gate()
    rounds = FakeRounds(gate)
    first = threading.Thread(target=rounds.run, args=(Fake(1), bytes_of("a")))
    first.start()
    assert gate.entered.wait(30)
    with ThreadPoolExecutor(1) as pool, run_phases.recording() as of_others:

        def second() -> dict[str, float]:
            with run_phases.recording() as spent:
                assert rounds.run(Fake(2), bytes_of("b")) == [b"b"]
            return spent

        found = pool.submit(second)
        eventually(lambda: waiting(rounds) == 1)
        began = time.perf_counter()
        time.sleep(0.05)
        waited = time.perf_counter() - began
        gate.opened.set()
        spent = found.result(30)
    first.join(30)
    assert list(spent) == ["wait", "hand_over", "job"] and not of_others
    assert spent["wait"] >= waited and min(spent.values()) >= 0


def waiting(run: Rounds) -> int:
    return len(run._waiting)


def test_what_comes_while_a_round_runs_is_in_the_next_one() -> None:
    gate = Gate()
    ours = FakeRounds(gate)
    statements = [Fake(number) for number in range(10)]
    with ThreadPoolExecutor(11) as pool:
        first = pool.submit(ours.run, statements[0], bytes_of("first"))
        assert gate.entered.wait(30)
        others = [pool.submit(ours.run, each, bytes_of(f"of {each.number}")) for each in reversed(statements)]
        eventually(lambda: waiting(ours) == 10)
        gate.opened.set()
        assert first.result(30) == [b"first"]
        assert [each.result(30) for each in reversed(others)] == [[f"of {n}".encode()] for n in range(10)]
    assert gate.rounds == [[0], list(range(10))]
    assert (ours.jobs, ours.statements) == (2, 11)
    assert [each.cleared for each in statements] == [2] + 9 * [1]


def test_two_runs_of_one_statement_are_in_two_rounds() -> None:
    gate = Gate()
    ours = FakeRounds(gate)
    statement = Fake(3)
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(ours.run, Fake(1), bytes_of("other"))]
        assert gate.entered.wait(30)
        for text in ("one", "two"):
            runs.append(pool.submit(ours.run, statement, bytes_of(text)))
            eventually(lambda: waiting(ours) == len(runs) - 1)
        gate.opened.set()
        assert [each.result(30) for each in runs] == [[b"other"], [b"one"], [b"two"]]
    assert gate.rounds == [[1], [3], [3]]


def test_rounds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "STATEMENTS_MAX", 3)
    monkeypatch.setattr(rounds, "BYTES_MAX", 10)
    gate = Gate()
    ours = FakeRounds(gate)
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(ours.run, Fake(0), bytes_of("a"))]
        assert gate.entered.wait(30)
        for number, size in enumerate((1, 1, 1, 1, 8, 100), 1):
            runs.append(pool.submit(ours.run, Fake(number), bytes_of("b" * size)))
            eventually(lambda: waiting(ours) == len(runs) - 1)
        gate.opened.set()
        for each in runs:
            assert each.result(30)
    assert gate.rounds == [[0], [1, 2, 3], [4, 5], [6]]


def test_a_round_that_fails_gives_its_statements_back() -> None:
    def fail(numbers: list[int]) -> None:
        raise OSError("no more tasks")

    ours, statement = FakeRounds(fail), Fake(1)
    assert ours.run(statement, bytes_of("x")) is None
    assert not statement.lock.locked()
    assert ours.run(statement, bytes_of("x")) is None, "the thread goes on"


def test_a_statement_that_runs_by_itself_is_not_waited_for() -> None:
    ours, statement = FakeRounds(lambda numbers: None), Fake(1)
    with statement.lock:
        assert ours.run(statement, bytes_of("x")) is None
    assert ours.run(statement, bytes_of("x")) == [b"x"]


def test_a_round_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "SECONDS_MAX", 0.01)

    def endless(numbers: list[int]) -> None:
        eventually(lambda: ours.ended > 0)
        raise OSError("cancelled")

    ours = FakeRounds(endless)
    assert ours.run(Fake(1), bytes_of("x")) is None


def test_who_is_not_wanted_any_more_leaves() -> None:
    gate, wish = Gate(), Cancellation()
    ours = FakeRounds(gate)

    def run() -> list[bytes] | None:
        with cancelable(wish):
            return ours.run(Fake(2), bytes_of("unwanted"))

    with ThreadPoolExecutor(2) as pool:
        first: Future[list[bytes] | None] = pool.submit(ours.run, Fake(1), bytes_of("x"))
        assert gate.entered.wait(30)
        unwanted = pool.submit(run)
        eventually(lambda: waiting(ours) == 1)
        wish.ask()
        with pytest.raises(Ended):
            unwanted.result(30)
        gate.opened.set()
        assert first.result(30) == [b"x"]
        assert ours.run(Fake(3), bytes_of("y")) == [b"y"]
    assert gate.rounds == [[1], [3]]


def test_its_thread_ends_when_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "IDLE_S", 0.01)
    ours = FakeRounds(lambda numbers: None)
    for text in ("x", "y"):
        assert ours.run(Fake(1), bytes_of(text)) == [text.encode()]
        eventually(lambda: ours._thread is None)


def _table(numbers: Sequence[int]) -> pa.Table:
    return pa.table({"c0": pa.array(numbers, pa.int64()), DIFF: pa.array([1] * len(numbers), pa.int64())})


@pytest.mark.spark
def test_rounds_on_spark(spark: SparkSession) -> None:
    statements = PreparedStatements(profiles(spark).small)
    one = input_name(0)
    texts = [f"SELECT sum(c0) + {n} AS c0, count(*) AS {DIFF} FROM {one} HAVING count(*) > {n % 3}" for n in range(12)]

    def run(text: str, numbers: Sequence[int]) -> list[tuple[int, int]]:
        found = statements.run(text, [(_table(numbers), (0,), TYPES)])
        assert found is not None
        return [(each["c0"], each[DIFF]) for each in found.to_pylist()]

    for text in texts:
        run(text, [1])  # which prepares it
    before = statements.rounds.jobs
    with ThreadPoolExecutor(len(texts)) as pool:
        for number in range(6):  # the same union again, over other rows, also over none
            rows = [list(range(n, n + (number + n) % 4)) for n in range(12)]
            found = list(pool.map(run, texts, rows))
            wanted = [[(sum(own) + n, len(own))] if len(own) > n % 3 else [] for n, own in enumerate(rows)]
            assert found == wanted
    assert statements.rounds.jobs - before < 6 * len(texts)


@pytest.mark.spark
def test_one_that_fails_or_is_slow_leaves_the_others_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "SECONDS_MAX", 2.0)
    monkeypatch.setattr(prepared, "SLOW_S", 2.0)
    statements = PreparedStatements(profiles(spark).small)
    one = input_name(0)
    texts = {
        "fails": f"SELECT 1 div (c0 - 7) AS c0, {DIFF} FROM {one}",
        "sleeps": f"SELECT if(c0 = 7, length(java_method('java.lang.Thread', 'sleep', 4000L)), c0) AS c0, {DIFF}"
        f" FROM {one}",
        "doubles": f"SELECT c0 * 2 AS c0, {DIFF} FROM {one}",
    }

    def run(name: str, number: int) -> list[int]:
        found = statements.run(texts[name], [(_table([number]), (0,), TYPES)])
        assert found is not None
        return [each["c0"] for each in found.to_pylist()]

    for name in texts:
        run(name, 1)
    joins = {key[0]: known.may_join for key, known in statements._known.items() if known is not None}
    for bad in ("fails", "sleeps"):
        with ThreadPoolExecutor(2) as pool:
            ours, theirs = pool.submit(run, "doubles", 7), pool.submit(run, bad, 7)
            assert ours.result(60) == [14]
            if bad == "fails":
                assert theirs.exception(60) is not None
            else:
                theirs.exception(60)  # what `sleep` gives has no length
        assert not joins[texts[bad]](), f"one that {bad} is run by itself"
