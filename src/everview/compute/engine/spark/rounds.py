"""Rounds: prepared statements that are to run at about the same time, as one job of Spark.

A job costs tens of milliseconds beside what a small statement does, and every view whose input changed has such a
statement. A prepared statement is an RDD of one partition. So the union of many of them, coalesced to as many tasks as
there are cores, is one job with one result; only coalesced, for each task carries the lineage of the whole union. In
front of each statement's batches stands a marker with its number.

One thread runs the rounds. Whatever comes while a round runs is in the next one: nobody waits for a timer, and a
statement that comes alone runs alone. A round that fails, or takes too long, gives its statements back: each is then
run as a job of its own, which tells whose fault it was, and one that is slow takes part in no more rounds.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import structlog

from everview.compute.cancel import cancellation, check_wanted
from everview.compute.engine.run_phases import add
from everview.compute.engine.spark.jobs import URGENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATEMENTS_MAX = 256  # in a round
BYTES_MAX = 8 << 20  # of the inputs of a round: they are part of its tasks
SECONDS_MAX = 5.0  # for a round; then each of its statements is run by itself
IDLE_S = 60.0  # after so long without a round its thread ends
UNIONS_MAX = 32  # rounds that are remembered, for the same views are often due together
_MARKER = b"everview round "

_log = structlog.get_logger()


class Member(Protocol):
    """A prepared statement, as a round needs it."""

    number: int  # of its own
    lock: threading.Lock  # held while it runs

    def result_rdd(self) -> Any:
        """The Java RDD of the result: batches in Arrow's format."""
        ...

    def put(self, batches: Sequence[pa.Buffer]) -> None:
        """Let these be the rows of the inputs from now on."""
        ...

    def clear(self, batches: Sequence[pa.Buffer]) -> None:
        """Keep no large inputs between runs."""
        ...


class _Run:
    """One run of a statement that waits for its round."""

    def __init__(self, statement: Member, batches: Sequence[pa.Buffer]) -> None:
        self.statement, self.batches = statement, batches
        self.size = sum(batch.size for batch in batches)
        self.over = threading.Event()
        self.result: list[bytes] | None = None
        self.given_up = False  # by the thread that waits for it
        # When it came, its round began, and the round's job did.
        self.came = self.begun = self.handed_over = time.perf_counter()

    def finish(self, result: list[bytes] | None) -> None:
        """Hand the result over; None means that the statement is to be run by itself."""
        self.result = result
        self.batches = ()
        self.over.set()


class Rounds:
    """Runs the rounds of one session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._changed = threading.Condition()
        self._waiting: list[_Run] = []
        self._thread: threading.Thread | None = None
        self._markers: dict[int, Any] = {}
        self._unions: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self.jobs = self.statements = 0  # so far

    def run(self, statement: Member, batches: Sequence[pa.Buffer]) -> list[bytes] | None:
        """The batches of the result over these inputs; None if the statement has to be run by itself."""
        run = _Run(statement, batches)
        wish = cancellation()
        with wish.running(run.over.set) if wish is not None else nullcontext():
            check_wanted()
            with self._changed:
                self._waiting.append(run)
                self._changed.notify()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="everview-rounds", daemon=True)
                    self._thread.start()
            run.over.wait()
        run.given_up = True
        over = time.perf_counter()
        check_wanted()
        add("wait", run.begun - run.came)
        add("hand_over", run.handed_over - run.begun)
        add("job", over - run.handed_over)
        return run.result

    def forget(self, statement: Member) -> None:
        """Let go of the rounds with a statement that is kept no longer."""
        with self._changed:
            for numbers in [each for each in self._unions if statement.number in each]:
                del self._unions[numbers]

    def _work(self) -> None:
        tag = f"everview-rounds-{id(self)}"
        known = False
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: bool(self._waiting), IDLE_S):
                    self._thread = None
                    return
                runs = self._take()
            try:
                if not known:
                    self._use_settings(tag)
                    known = True
                self._run(runs, tag)
            except Exception as error:  # each finds out by itself whether it was at fault
                _log.debug("a round failed", statements=len(runs), detail=str(error).partition("\n")[0])
            finally:
                for run in runs:
                    if not run.over.is_set():
                        run.finish(None)

    def _take(self) -> list[_Run]:
        """The runs of the next round: one of each statement, as many as fit into it."""
        taken: dict[int, _Run] = {}
        left: list[_Run] = []
        size = 0
        for run in self._waiting:
            fits = not taken or (len(taken) < STATEMENTS_MAX and size + run.size <= BYTES_MAX)
            if run.given_up or run.over.is_set():
                continue
            if not fits or run.statement.number in taken:
                left.append(run)
                continue
            taken[run.statement.number] = run
            size += run.size
        self._waiting = left
        return [taken[number] for number in sorted(taken)]

    def _use_settings(self, tag: str) -> None:
        """Have tasks see the settings of the session, as they do when a DataFrame is collected."""
        context, jsession = self._session.sparkContext, self._session._jsparkSession
        settings = jsession.sessionState().conf().getAllConfs().iterator()
        while settings.hasNext():
            entry = settings.next()
            context.setLocalProperty(entry._1(), entry._2())
        context.setLocalProperty("spark.scheduler.pool", URGENT)
        context.addJobTag(tag)

    def _run(self, runs: Sequence[_Run], tag: str) -> None:
        held = [(run, run.batches) for run in runs if run.statement.lock.acquire(blocking=False)]
        late = threading.Timer(SECONDS_MAX, self._end, (tag,))
        late.daemon = True
        late.start()
        try:
            began = time.perf_counter()
            for run, batches in held:
                run.statement.put(batches)
            handed_over = time.perf_counter()
            for run in runs:
                run.begun, run.handed_over = began, handed_over
            if held:
                collected = self._collected([run.statement for run, _ in held])
                self._hand_over([run for run, _ in held], collected)
        finally:
            late.cancel()
            for run, batches in held:
                with suppress(Exception):  # of a Spark that died
                    run.statement.clear(batches)
                run.statement.lock.release()

    def _end(self, tag: str) -> None:
        with suppress(Exception):  # of a Spark that died, whose jobs have ended anyway
            self._session.sparkContext.cancelJobsWithTag(tag)

    def _hand_over(self, runs: Sequence[_Run], collected: Iterable[bytes]) -> None:
        results: dict[int, list[bytes]] = {run.statement.number: [] for run in runs}
        current = results[runs[0].statement.number]
        for each in collected:
            if len(runs) > 1 and each.startswith(_MARKER):
                current = results[int(each.removeprefix(_MARKER))]
            else:
                current.append(each)
        self.jobs += 1
        self.statements += len(runs)
        for run in runs:
            run.finish(results[run.statement.number])

    def _collected(self, statements: Sequence[Member]) -> list[bytes]:
        """The results of all, in one job."""
        from pyspark.serializers import NoOpSerializer
        from pyspark.util import _load_from_socket

        jvm: Any = self._session._jvm
        served = jvm.PythonRDD.collectAndServe(self._union(statements).rdd())
        with _load_from_socket(served, NoOpSerializer()) as batches:
            return list(batches)

    def _union(self, statements: Sequence[Member]) -> Any:
        if len(statements) == 1:
            return statements[0].result_rdd()
        numbers = tuple(each.number for each in statements)
        with self._changed:
            known = self._unions.pop(numbers, None)
        if known is None:
            context: Any = self._session.sparkContext
            parts = [part for each in statements for part in (self._marker(each.number), each.result_rdd())]
            array = context._gateway.new_array(context._jvm.org.apache.spark.api.java.JavaRDD, len(parts))
            for place, part in enumerate(parts):
                array[place] = part
            known = context._jsc.union(array).coalesce(context.defaultParallelism)
        with self._changed:
            self._unions[numbers] = known
            while len(self._unions) > UNIONS_MAX:
                self._unions.popitem(last=False)
        return known

    def _marker(self, number: int) -> Any:
        """An RDD that says that the batches of a statement follow."""
        if number not in self._markers:
            context: Any = self._session.sparkContext
            elements = context._jvm.java.util.ArrayList()
            elements.add(_MARKER + str(number).encode())
            self._markers[number] = context._jsc.parallelize(elements, 1)
        return self._markers[number]
