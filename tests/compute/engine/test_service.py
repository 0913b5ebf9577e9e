"""Spark that dies is started again. In a process of its own: a process has one Java, and this one kills it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from everview.compute.cancel import Cancellation, Ended, cancelable, in_background, is_in_background
from everview.compute.engine.contract import Early, EvaluationFailed, RunFailed
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark import service
from everview.compute.ir.relation import Steps
from everview.compute.ir.types import INT4, TEXT
from everview.compute.rows.arrow import rows_to_arrow
from everview.compute.sql.query import plan
from tests.compute.test_errors import Names
from tests.waiting import eventually

PROGRAM = """
    import os, shutil, signal, tempfile
    from pathlib import Path
    from everview.compute.engine.spark.service import SparkService
    from everview.compute.engine.spark.session import GIVES_MEMORY_BACK, HEAP_MIB_MAX
    from everview.compute.ir.relation import Constant
    from everview.compute.ir.types import INT8
    from pyspark import SparkContext

    plan = Constant((((1,), 1), ((2,), 3)), (INT8,))
    first = Path(tempfile.mkdtemp())
    earlier = SparkService(scratch=first)  # the Java process goes on when this is closed
    earlier.run(plan, {})
    earlier.close()
    shutil.rmtree(first)
    service = SparkService()
    # This unpacks a library into the temporary folder.
    service.spark().bulk.range(9).write.option("compression", "zstd").parquet(f"{tempfile.mkdtemp()}/rows")
    before = service.run(plan, {})
    management = SparkContext._jvm.java.lang.management.ManagementFactory
    assert set(GIVES_MEMORY_BACK) <= set(management.getRuntimeMXBean().getInputArguments())
    assert management.getMemoryMXBean().getHeapMemoryUsage().getMax() <= HEAP_MIB_MAX << 20
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    after = service.run(plan, {})
    assert before.sort_by("c0").equals(after.sort_by("c0")), (before, after)
    print("starts", service.starts)
    service.close()
"""


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_that_is_killed_is_started_again() -> None:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=280, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert "starts 2" in result.stdout


@pytest.mark.parametrize("handed_over", [False, True])
def test_what_was_handed_over_is_not_written_again(handed_over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that failed left nothing behind, and is tried again; but not if its first part was committed."""
    tries = []

    class Failing:
        def run_large(self, *_: object, early: Early, **__: object) -> None:
            tries.append(1)
            if handed_over:
                early.hand_over({})
            raise RunFailed("an executor is lost")

    monkeypatch.setattr(service, "PAUSE_S", 0.0)
    monkeypatch.setattr(service, "is_alive", lambda _: True)
    for name in ("spark", "_engine_of"):
        monkeypatch.setattr(service.SparkService, name, lambda *_: Failing())
    tried = object.__new__(service.SparkService)
    tried._closed, tried._started, tried._in_background, tried._lock = False, Future(), 0, threading.Lock()
    with pytest.raises(RunFailed):
        tried.run_large([], {}, {}, [], early=Early((), lambda _: None))
    assert len(tries) == (1 if handed_over else service.ATTEMPTS_MAX)


class Fake:
    """Spark as the service sees it: counts what it runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.first_runs = 0  # those in the background
        self.learns = threading.Event()  # first runs go on when it is set
        self.learns.set()

    def run_steps(self, steps: Steps, outputs: Sequence[str], inputs: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        if threading.current_thread().name == "everview-first-runs":
            assert is_in_background()
            self.learns.wait(60)
            self.first_runs += 1
        else:
            self.runs += 1
        return LocalEngine().run_steps(steps, outputs, inputs)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    engine = Fake()
    monkeypatch.setattr(service.SparkService, "_engine_of", lambda *_: engine)
    return engine


@pytest.fixture
def starting(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[service.SparkService, threading.Event]]:
    """A service whose Spark starts when the event is set."""
    go_on = threading.Event()

    def start(*_: object, **__: object) -> Any:
        go_on.wait(60)
        return SimpleNamespace(warm_up=lambda: None, stop=lambda: None)

    monkeypatch.setattr(service, "start", start)
    yield service.SparkService(), go_on
    go_on.set()


def steps_of(query: str) -> Steps:
    return [("result", plan(query, Names()).relation)]


def rows(count: int) -> dict[str, Any]:
    return {"t": rows_to_arrow({(number, number % 7, "x"): 1 for number in range(count)}, (INT4, INT4, TEXT))}


MANY = "SELECT b, count(*) FROM t, generate_series(1, 100000) g GROUP BY b"


def test_small_steps_do_not_wait_for_spark(starting: tuple[service.SparkService, threading.Event], fake: Fake) -> None:
    spark, _ = starting
    found = spark.run_steps(steps_of("SELECT b, sum(a) FROM t GROUP BY b"), ["result"], rows(14))
    assert found["result"].num_rows == 7 and not fake.runs


@pytest.mark.parametrize(
    ("query", "count"),
    [("SELECT sin(a::float8) FROM t", 3), (MANY, 100), ("SELECT a FROM t", service.COLD_ROWS_MAX + 1)],
    ids=["rough", "many rows come up", "many rows are given"],
)
def test_others_wait_for_spark_and_can_be_ended(
    starting: tuple[service.SparkService, threading.Event], fake: Fake, query: str, count: int
) -> None:
    spark, go_on = starting
    wish, ended = Cancellation(), []

    def run() -> None:
        with cancelable(wish):
            try:
                spark.run_steps(steps_of(query), ["result"], rows(count))
            except Ended as error:
                ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    wish.ask()
    thread.join(30)
    assert ended and not fake.runs
    go_on.set()
    if query != MANY:
        assert spark.run_steps(steps_of(query), ["result"], rows(count))["result"].num_rows == count
        assert [fake.runs] == [1]


def test_small_steps_do_not_wait_behind_hydrations(
    starting: tuple[service.SparkService, threading.Event], fake: Fake
) -> None:
    spark, go_on = starting
    go_on.set()
    eventually(lambda: spark.ready)
    steps, some = steps_of("SELECT b, sum(a) FROM t GROUP BY b"), rows(service.FEW_ROWS_MAX + 1)
    learn(spark, fake, steps, some)
    spark.run_steps(steps, ["result"], some)
    assert fake.runs == 1
    with in_background(), spark._counted():
        assert spark.run_steps(steps, ["result"], some)["result"].num_rows == 7
        assert fake.runs == 1
        spark.run_steps(steps, ["result"], rows(service.BUSY_ROWS_MAX + 1))
        assert fake.runs == 2
    spark.run_steps(steps, ["result"], some)
    assert fake.runs == 3


def test_steps_do_not_wait_until_spark_has_learned_them(
    starting: tuple[service.SparkService, threading.Event], fake: Fake
) -> None:
    """Spark's first run of a statement takes seconds: meanwhile ticks over some thousand rows are interpreted."""
    spark, go_on = starting
    go_on.set()
    eventually(lambda: spark.ready)
    fake.learns.clear()
    steps, some = steps_of("SELECT b, sum(a) FROM t GROUP BY b"), rows(service.FEW_ROWS_MAX + 1)
    for _ in range(3):
        assert spark.run_steps(steps, ["result"], some)["result"].num_rows == 7
    assert (fake.runs, fake.first_runs) == (0, 0)
    more = steps_of(f"SELECT a FROM t, generate_series(1, {service.BUSY_WORK_MAX // 100})")
    spark.run_steps(more, ["result"], some)
    assert fake.runs == 1, "it turned out to be more than is interpreted"
    fake.learns.set()
    learn(spark, fake, steps, some)
    before = fake.runs
    spark.run_steps(steps, ["result"], some)
    assert fake.runs == before + 1
    assert fake.first_runs <= 2, "one of each, however often they were asked for; while one runs, none is asked for"


def test_a_first_run_that_fails_is_not_repeated(
    starting: tuple[service.SparkService, threading.Event], fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, go_on = starting
    go_on.set()
    eventually(lambda: spark.ready)
    tried: list[bool] = []

    def fails(*_: Any, **__: Any) -> Any:
        tried.append(is_in_background())
        raise EvaluationFailed

    monkeypatch.setattr(fake, "run_steps", fails)
    steps, some = steps_of("SELECT 1 / a FROM t WHERE a > 0"), rows(service.FEW_ROWS_MAX + 1)
    assert spark.run_steps(steps, ["result"], some)["result"].num_rows
    eventually(lambda: tried == [True])
    eventually(lambda: not spark._in_background)

    def ticks() -> bool:
        with suppress(EvaluationFailed):
            spark.run_steps(steps, ["result"], some)
        return tried == [True, False]

    eventually(ticks)


def learn(spark: service.SparkService, fake: Fake, steps: Steps, some: dict[str, Any]) -> None:
    """Have Spark run the steps for the first time."""
    spark.run_steps(steps, ["result"], some)
    key = (id(steps), ("result",), tuple(some), False)
    eventually(lambda: key in spark._first_runs._run and not spark._in_background)


def test_steps_over_a_few_rows_are_interpreted_unless_they_turn_out_to_be_more(
    starting: tuple[service.SparkService, threading.Event], fake: Fake
) -> None:
    spark, go_on = starting
    go_on.set()
    eventually(lambda: spark.ready)
    few = rows(service.FEW_ROWS_MAX)
    assert spark.run_steps(steps_of("SELECT b, sum(a) FROM t GROUP BY b"), ["result"], few)["result"].num_rows == 7
    assert fake.runs == 0
    more = f"SELECT a FROM t, generate_series(1, {service.FEW_WORK_MAX})"
    spark.run_steps(steps_of(f"SELECT b, count(*) FROM ({more}) x, t GROUP BY b"), ["result"], rows(2))
    spark.run_steps(steps_of("SELECT sin(a::float8) FROM t"), ["result"], few)
    assert fake.runs == 2
