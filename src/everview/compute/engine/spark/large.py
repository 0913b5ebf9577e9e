"""Steps over stored collections, of any size: executors read the parts and write the parts, the driver sees neither.

Each output is a job of its own. A step that several outputs need, and that is more than a pass over the rows, is kept
by Spark in between, in memory or on the executors' disks, so that it is computed once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.compute.engine.contract import Early, EvaluationFailed, RunFailed, Stored
from everview.compute.engine.progress import progress
from everview.compute.engine.spark.bulk import read_contents, read_updates, write_updates
from everview.compute.engine.spark.canceled_tasks import can_ask
from everview.compute.engine.spark.engine import rendering
from everview.compute.engine.spark.jobs import jobs_of_piece, jobs_of_run
from everview.compute.engine.spark.outputs import with_types
from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.engine.spark.render import render_relation
from everview.compute.engine.spark.scalar import FAILED, columns
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Steps, arity, types, walk
from everview.compute.ir.types import SqlType, arrow_type
from everview.storage.batch import as_declared
from everview.storage.landing import Landing
from everview.storage.staging import Staged
from everview.timely.consolidate import DIFF, TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HEAVY = (ir.Join, ir.Reduce, ir.TopK, ir.Window, ir.Threshold, ir.Accumulate)
_numbers = itertools.count()
SMALL_ROWS_MAX = 50_000
WRITES_AT_ONCE = 2


def run_large(
    session: SparkSession,
    steps: Steps,
    inputs: Mapping[str, Stored],
    outputs: Mapping[str, Landing],
    collected: Sequence[str],
    *,
    separated: bool,
    early: Early | None = None,
) -> tuple[dict[str, Staged | pa.Table], dict[str, pa.Table]]:
    """Write the timed steps that are outputs to their landings, and give the collected steps as tables."""
    run = _Run(session, steps, guarded=not separated)
    with _failures(), jobs_of_run(session), run:
        run.read(inputs)
        run.expect(outputs)
        try:
            if early is not None:
                early.hand_over(run.write_all({name: outputs[name] for name in early.names}))
            rest = {name: each for name, each in outputs.items() if early is None or name not in early.names}
            staged = run.write_all(rest)
        except BaseException:
            for landing in outputs.values():
                with suppress(Exception):
                    landing.discard()
            raise
        relations = dict(steps)
        tables = {name: with_types(run.frame(name).toArrow(), types(relations[name])) for name in collected}
    return staged, tables


class _Run:
    """Temporary views of inputs and of steps that are kept, while inside."""

    def __init__(self, session: SparkSession, steps: Steps, *, guarded: bool) -> None:
        self._session, self._steps, self._guarded = session, steps, guarded
        self._relations = dict(steps)
        self._views: dict[str, str] = {}
        self._planning = Lock()
        self._rows: dict[str, int] = {}
        self._in_files: dict[str, int] = {}
        self._kept: list[DataFrame] = []
        self._heavy = _heavy(steps)
        self._shared = _shared(steps, self._heavy)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        # Of a Spark that died there is nothing to tidy up, and the first error tells more.
        with suppress(Exception):
            for frame in self._kept:
                frame.unpersist()
            for view in self._views.values():
                self._session.catalog.dropTempView(view)

    def read(self, inputs: Mapping[str, Stored]) -> None:
        """The inputs as views."""
        declared = {each.id: each.schema for _, step in self._steps for each in walk(step) if isinstance(each, ir.Get)}
        for name, stored in inputs.items():
            self._rows[name] = stored.selection.rows_max
            self._in_files[name] = sum(part.rows for part in stored.selection.parts)
            read = read_updates if stored.timed else read_contents
            frame = read(self._session, stored.selection)
            width = len(stored.selection.spec.schema.names) if stored.width is None else stored.width
            items = [*([f"{TIME} AS c0"] if stored.timed else [])]
            schema = declared.get(name, ())[stored.timed :]
            items += [
                f"{_as_declared(index, stored.selection.spec.schema, schema)} AS c{index + stored.timed}"
                for index in range(width)
            ]
            self._add(name, frame.selectExpr(*items, DIFF))

    def expect(self, outputs: Iterable[str]) -> None:
        """Tell whoever wants to know how many rows will be read for each output."""
        report = progress()
        if report is not None:
            report.expect({name: sum(self._in_files[each] for each in self._read_for(name)) for name in outputs})

    def _read_for(self, name: str) -> set[str]:
        """The inputs that a step is made from."""
        if name not in self._relations:
            return {name} if name in self._in_files else set()
        below = (get.id for get in walk(self._relations[name]) if isinstance(get, ir.Get))
        return set().union(*map(self._read_for, below))

    def frame(self, name: str) -> DataFrame:
        """A step, behind the kept steps."""
        with self._planning, rendering():  # what two threads need is made once
            return run_sql(self._session, self._statement(name))

    def write_all(self, outputs: Mapping[str, Landing]) -> dict[str, Staged | pa.Table]:
        """Write all outputs. Single passes over rows run beside the others, for a job seldom has work for all cores."""
        with ThreadPoolExecutor(WRITES_AT_ONCE, thread_name_prefix="write") as pool:
            light = {
                name: pool.submit(self._beside(name, outputs[name])) for name in outputs if name not in self._heavy
            }
            written = {name: self.write(name, outputs[name]) for name in outputs if name in self._heavy}
            written |= {name: job.result() for name, job in light.items()}
        return written

    def _beside(self, name: str, landing: Landing) -> Callable[[], Staged | pa.Table]:
        """What writes an output in another thread, whose jobs end with the run as well."""
        context = copy_context()

        def write() -> Staged | pa.Table:
            with jobs_of_run(self._session):
                return self.write(name, landing)

        return lambda: context.run(write)

    def write(self, name: str, landing: Landing) -> Staged | pa.Table:
        """A timed step to where it is to land; or as a table, if that is small.

        What is more than a pass over rows is computed once and kept, for it takes two passes to divide it for writing;
        and then its size is known, and a few rows are not worth a job.
        """
        with jobs_of_piece(self._session, name):
            return self._write(name, landing)

    def _write(self, name: str, landing: Landing) -> Staged | pa.Table:
        if name not in self._heavy:
            updates, rows = self.updates(name), self._rows_about(name)
            return write_updates(self._session, updates, landing, rows)
        kept = self.updates(name).persist()
        try:
            first = kept.limit(SMALL_ROWS_MAX + 1).toArrow()
            if first.num_rows > SMALL_ROWS_MAX:
                return write_updates(self._session, kept, landing, kept.count())
            return as_declared(first, landing.spec.at_rest)
        finally:
            with suppress(Exception):
                kept.unpersist()

    def _rows_about(self, name: str) -> int:
        """How many rows a step has that is a pass over rows, if it keeps them all."""
        if name not in self._relations:
            return self._rows.get(name, 0)
        return sum(self._rows_about(get.id) for get in walk(self._relations[name]) if isinstance(get, ir.Get))

    def updates(self, name: str) -> DataFrame:
        """A timed step in the columns of updates."""
        data = [f"c{index + 1} AS c{index}" for index in range(arity(self._relations[name]) - 1)]
        return self.frame(name).selectExpr(f"c0 AS {TIME}", *(data or ["cast(NULL as boolean) AS nothing"]), DIFF)

    def _statement(self, name: str) -> str:
        """The statement for a step, over views of the steps that it reads.

        These are views rather than parts of the statement: Spark finds what it keeps only where the plan is the very
        same, and common table expressions are numbered anew in each statement.
        """
        relation = self._relations[name]
        for get in walk(relation):
            if isinstance(get, ir.Get) and get.id in self._relations and get.id not in self._views:
                frame = run_sql(self._session, self._statement(get.id))
                self._add(get.id, frame.persist() if get.id in self._shared else frame)
        if name in self._views:
            return f"SELECT {', '.join([*columns(arity(relation)), DIFF])} FROM {self._views[name]}"
        return render_relation(relation, self._views, guarded=self._guarded, asking=can_ask(self._session))

    def _add(self, name: str, frame: DataFrame) -> None:
        view = f"everview_large_{next(_numbers)}"
        frame.createOrReplaceTempView(view)
        self._views[name] = view
        if name in self._relations:
            self._kept.append(frame)


def _as_declared(index: int, stored: pa.Schema, types: Sequence[SqlType]) -> str:
    """A column in the representation of its type: a collection that is older than this program may have another."""
    if index >= len(types) or stored.field(index).type == arrow_type(types[index]):
        return f"c{index}"
    return f"cast(c{index} as {spark_type(types[index])})"


def _heavy(steps: Steps) -> set[str]:
    """Steps that are more than a pass over rows."""
    heavy: set[str] = set()
    for name, step in steps:
        below = {get.id for get in walk(step) if isinstance(get, ir.Get)}
        if any(isinstance(each, _HEAVY) for each in walk(step)) or below & heavy:
            heavy.add(name)
    return heavy


def _shared(steps: Steps, heavy: set[str]) -> set[str]:
    """The steps that are read more than once."""
    uses = Counter(get.id for _, step in steps for get in walk(step) if isinstance(get, ir.Get))
    return {name for name in heavy if uses[name] > 1}


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except RunFailed as error:
        if _mentions(error):
            raise EvaluationFailed from error
        raise
    except Exception as error:
        if _mentions(error):
            raise EvaluationFailed from error
        raise


def _mentions(error: BaseException | None) -> bool:
    while error is not None:
        if FAILED in str(error):
            return True
        error = error.__cause__
    return False
