"""Spark as a service to the process: started in the background, watched, started again if it dies.

It is an engine like the one that it starts. A run that fails is tried again a few times, for an executor may be lost
or memory short, and a run leaves nothing behind that a second one would find. If Spark itself is gone it is started
again first.

Some runs need no Spark: steps over few rows are interpreted here, with the same result, as long as Spark is not warm,
has not run these steps before (`first_runs.py`), or is busy with views that are computed for the first time. If they
turn out to be more than that, or if a last digit could be another here, they wait for Spark. And what fails over a
value, for which Spark ends a job though it should not, is computed here as well, if it is not too much.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import structlog

from everview.compute.cancel import Ended, cancellation, check_wanted, is_in_background
from everview.compute.engine.contract import Batch, Early, Engine, RunFailed, Stored, ValueRefused
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.bulk import said
from everview.compute.engine.spark.engine import SparkEngine, check
from everview.compute.engine.spark.first_runs import FirstRuns
from everview.compute.engine.spark.session import CONNECT, LOCAL, Spark, start
from everview.compute.functions import lookup
from everview.compute.functions.mathematics import ROUGH
from everview.compute.interpreter.limits import TooManyRows, at_most
from everview.compute.ir.parts import all_scalars
from everview.compute.ir.relation import Relation, Steps
from everview.compute.ir.scalar import Call, walk
from everview.errors import EverviewError
from everview.storage.landing import Landing
from everview.storage.staging import Staged
from everview.storage.urls import without_secrets

ATTEMPTS_MAX = 3
PAUSE_S = 0.5
START_S_MAX = 300.0
ROWS_HERE_MAX = 500_000  # that Python works on, if Spark cannot: some seconds
# What is interpreted here, by the rows of inputs and by those of all operators: until Spark is warm, and while it has
# more to do than ticks, or a statement to learn.
COLD_ROWS_MAX, COLD_WORK_MAX = 50_000, 1_000_000
BUSY_ROWS_MAX, BUSY_WORK_MAX = 2_000, 50_000
# What is always: a statement of Spark takes some ten milliseconds of a processor over one row, and this many rows less.
FEW_ROWS_MAX, FEW_WORK_MAX = 100, 2_000

_JAVA_HINT = "see whether Java 17 or later can be found, and whether the address is right"
_CONNECT_HINT = "see whether a Spark Connect server listens at this address, and is of the same version of Spark"

_log = structlog.get_logger()
Given = TypeVar("Given")


class SparkService:
    """An engine on a Spark that is kept running."""

    def __init__(
        self, address: str = LOCAL, *, scratch: Path | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self.address = address
        self._scratch, self._options = scratch, dict(options or {})
        self._lock = threading.Lock()
        self._warm = threading.Event()
        self._closed = False
        self._engine: tuple[Spark, SparkEngine] | None = None
        self._first_runs = FirstRuns()
        self._in_background = 0  # runs of Spark that are
        self.starts = 0
        self._started: Future[Spark] = self._begin()

    @property
    def ready(self) -> bool:
        """Whether Spark is there and warm."""
        return self._warm.is_set()

    @property
    def error(self) -> BaseException | None:
        """Why Spark could not be started, if it could not."""
        return self._started.exception() if self._started.done() else None

    def spark(self) -> Spark:
        """The sessions, as soon as they are there."""
        started, shown = self._started, without_secrets(self.address)
        try:
            _wait_for(started)
            return started.result(0)
        except TimeoutError:
            raise RunFailed(f"spark at {shown} has not started within {START_S_MAX:.0f} s") from None
        except RunFailed:
            raise
        except Ended:
            raise
        except Exception as error:
            self._restart(started)
            detail, hint = said(error), _CONNECT_HINT if self.address.startswith(CONNECT) else _JAVA_HINT
            if isinstance(error, EverviewError):
                detail, hint = _told(error), error.hint or hint
            raise RunFailed(f"spark at {shown} could not be started", detail=detail, hint=hint) from error

    def run(self, plan: Relation, inputs: Mapping[str, Batch]) -> pa.Table:
        """The collection that the plan means over the inputs, consolidated."""
        return self._or_here(lambda engine: engine.run(plan, inputs), [plan], inputs)

    def run_steps(
        self, steps: Steps, outputs: Sequence[str], inputs: Mapping[str, Batch], *, separated: bool = False
    ) -> dict[str, pa.Table]:
        """The collections of some of the steps."""
        relations = [step for _, step in steps]
        work_max = self._work_here_max(relations, inputs) or self._work_before_first_run(
            steps, outputs, inputs, separated=separated
        )
        if work_max:
            try:
                with at_most(work_max):
                    return LocalEngine().run_steps(steps, outputs, inputs, separated=separated)
            except TooManyRows:
                pass  # then Spark does, once it is there
        return self._or_here(
            lambda engine: engine.run_steps(steps, outputs, inputs, separated=separated), relations, inputs
        )

    def check(self, steps: Steps, outputs: Sequence[str], *, separated: bool = False) -> None:
        """Raise NotSupported if there is no statement for these steps; it need not have started to tell."""
        check(steps, outputs, separated=separated)

    def run_large(
        self,
        steps: Steps,
        inputs: Mapping[str, Stored],
        outputs: Mapping[str, Landing],
        collected: Sequence[str],
        *,
        separated: bool = False,
        early: Early | None = None,
    ) -> tuple[dict[str, Staged | pa.Table], dict[str, pa.Table]]:
        """Steps over stored collections, by the executors."""
        return self._attempt(
            lambda engine: engine.run_large(steps, inputs, outputs, collected, separated=separated, early=early),
            again=lambda: early is None or not early.done,
        )

    def close(self) -> None:
        """Stop Spark."""
        with self._lock:
            self._closed = True
            started = self._started
            self._first_runs.close()
        if started.done() and started.exception() is None:
            started.result().stop()

    def _work_here_max(self, plans: Sequence[Relation], inputs: Mapping[str, Batch]) -> int:
        """How many rows may come up if this is computed here; 0 if it is Spark's."""
        rows_max, work_max = FEW_ROWS_MAX, FEW_WORK_MAX
        if not self.ready:
            rows_max, work_max = COLD_ROWS_MAX, COLD_WORK_MAX
        elif self._in_background:
            rows_max, work_max = BUSY_ROWS_MAX, BUSY_WORK_MAX
        tables = [each for each in inputs.values() if isinstance(each, pa.Table)]
        if len(tables) < len(inputs) or sum(each.num_rows for each in tables) > rows_max:
            return 0
        return 0 if any(map(is_rough, plans)) else work_max

    def _work_before_first_run(
        self, steps: Steps, outputs: Sequence[str], inputs: Mapping[str, Batch], *, separated: bool
    ) -> int:
        """How many rows may come up here because Spark has yet to run these steps for the first time, apart from us."""
        tables = [each for each in inputs.values() if isinstance(each, pa.Table)]
        few = len(tables) == len(inputs) and sum(each.num_rows for each in tables) <= BUSY_ROWS_MAX
        if not few or is_in_background() or any(is_rough(step) for _, step in steps):
            return 0
        started, first_runs = self._started, self._first_runs
        if not started.done() or started.exception() is not None:
            return 0
        engine = self._engine_of(started.result())

        def run() -> None:
            with self._counted():
                engine.run_steps(steps, outputs, inputs, separated=separated)

        key = (id(steps), tuple(outputs), tuple(inputs), separated)
        return 0 if first_runs.over(key, steps, run) else BUSY_WORK_MAX

    def _or_here(self, run: Callable[[Engine], Given], plans: Sequence[Relation], inputs: Mapping[str, Batch]) -> Given:
        """A run of Spark's; if a value ends it that a function should have had an answer for, it is done in Python.

        Otherwise no tick over that value would ever succeed, and what the view says would stay as it is. But not where
        Python's last digit may be another: what Spark computed before must be found again.
        """
        try:
            return self._attempt(run)
        except ValueRefused as error:
            if not all(isinstance(each, pa.Table) for each in inputs.values()) or any(map(is_rough, plans)):
                raise
            rows = sum(each.num_rows for each in inputs.values() if isinstance(each, pa.Table))
            if rows > ROWS_HERE_MAX:
                raise
            _log.warning("spark failed over a value, so python computes", rows=rows, detail=error.detail)
            return run(LocalEngine())

    def _attempt(self, run: Callable[[SparkEngine], Given], again: Callable[[], bool] = lambda: True) -> Given:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            started = self._started
            engine = self._engine_of(self.spark())
            try:
                with self._counted():
                    return run(engine)
            except ValueRefused:
                check_wanted()
                raise
            except RunFailed as error:
                check_wanted()  # it failed because it was ended
                if attempt == ATTEMPTS_MAX or self._closed or not again():
                    raise
                dead = not is_alive(self.spark())
                _log.warning("spark failed", attempt=attempt, dead=dead, detail=(error.detail or "").partition("\n")[0])
                if dead:
                    self._restart(started)
                else:
                    time.sleep(PAUSE_S * attempt)
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """While inside, a run of Spark is counted if it is in the background."""
        number = 1 if is_in_background() else 0
        with self._lock:
            self._in_background += number
        try:
            yield
        finally:
            with self._lock:
                self._in_background -= number

    def _engine_of(self, spark: Spark) -> SparkEngine:
        """The engine on these sessions: one, for it remembers its prepared statements."""
        with self._lock:
            if self._engine is None or self._engine[0] is not spark:
                self._engine = (spark, SparkEngine.of(spark))
            return self._engine[1]

    def _restart(self, dead: Future[Spark]) -> None:
        """Start anew, unless someone else has done so meanwhile."""
        with self._lock:
            if self._started is dead and not self._closed:
                self._started = self._begin()

    def _begin(self) -> Future[Spark]:
        started: Future[Spark] = Future()
        self._warm.clear()
        self._first_runs.close()
        self._first_runs = FirstRuns()
        self.starts += 1
        again = self.starts > 1

        def run() -> None:
            try:
                if again and not self.address.startswith(CONNECT):
                    forget_dead()
                spark = start(self.address, scratch=self._scratch, options=self._options)
            except BaseException as error:
                started.set_exception(error)
                return
            started.set_result(spark)
            try:
                spark.warm_up()
                self._warm.set()
            except Exception as error:  # whoever runs something next finds out, and starts it again
                if not self._closed:
                    _log.warning("spark failed to warm up", detail=said(error))

        threading.Thread(target=run, name="everview-spark-start", daemon=True).start()
        return started


def _told(error: EverviewError) -> str:
    return error.message if error.detail is None else f"{error.message}: {error.detail}"


def _wait_for(started: Future[Spark]) -> None:
    """Until Spark is there, or the time is over; raises `Ended` if it is not waited for any more."""
    over, wish = threading.Event(), cancellation()
    started.add_done_callback(lambda _: over.set())
    if wish is None:
        over.wait(START_S_MAX)
        return
    with wish.running(over.set):
        check_wanted()
        over.wait(START_S_MAX)
    check_wanted()


def is_alive(spark: Spark) -> bool:
    """Whether Spark still answers."""
    try:
        spark.small.sql("SELECT 1").toArrow()
    except Exception:  # whatever it is that fails: no answer is the answer
        return False
    return True


def forget_dead() -> None:
    """Let go of what PySpark remembers of a Java process that is gone, or it would go on asking it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkContext._active_spark_context
    try:
        if active is not None:
            active.stop()
    except Exception as error:
        _log.debug("stopping a dead spark", detail=str(error))
    gateway = SparkContext._gateway
    if gateway is not None:
        try:
            gateway.shutdown()
        except Exception as error:
            _log.debug("closing the way to a dead spark", detail=str(error))
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def is_rough(plan: Relation) -> bool:
    """Whether some function in it may have another last digit in Python."""
    parts = (part for scalar in all_scalars(plan) for part in walk(scalar))
    return any(isinstance(part, Call) and lookup.function(part.function).name in ROUGH for part in parts)
