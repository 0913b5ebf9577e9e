"""Statements that are planned once and run many times.

Most of the time of a statement over few rows goes into analyzing, optimizing and planning it, and a tick runs the same
one again and again over other rows. A DataFrame keeps its physical plan, and such a plan may begin with an RDD: so each
input is an RDD of one partition that holds one array of bytes, rows in Arrow's format, and to run the statement over
other rows is to put other bytes there. Partitions travel with the tasks, so this holds on a cluster as well.

That is right for plans that keep nothing between runs. An exchange does (its shuffled or broadcast rows are used
again): such a statement is not prepared.

A statement over a few thousand rows is run as it is, in one job with others that are to run then (`rounds.py`); over
more, it pays to have Spark compile it.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.compute.cancel import is_in_background
from everview.compute.engine.run_phases import add, timed
from everview.compute.engine.spark.jobs import jobs_of_run
from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.engine.spark.rounds import Rounds
from everview.compute.engine.spark.session import COMPILED, SMALL
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.types import SqlType
from everview.timely.consolidate import DIFF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATEMENTS_MAX = 1_000
INTERPRETED_ROWS_MAX = 20_000  # of the inputs of a statement that is not worth compiling
BYTES_MAX = 32 << 20  # of the inputs of one run: they are part of a task, which has to fit into a message
BYTES_KEPT_MAX = 64 << 10  # of an input, between runs
BYTES_SENT_MAX = 256 << 10  # of an input, as an argument of a call; more goes by way of a file
# A statement whose round failed, and that then failed by itself or took so long, is in no rounds for a while.
SLOW_S, ALONE_S = 1.0, 60.0
_KEEPS = ("Exchange", "Subquery", "InMemoryTableScan", "InMemoryRelation")
_PYTHON = ("Python", "Pandas")
_AS_RDD: Mapping[str, str] = {
    "spark.sql.execution.arrow.localRelationThreshold": "0",  # else the first rows become part of the plan
    # What Spark takes an RDD for: something that one task can do, also after the sizes of many inputs are multiplied.
    "spark.sql.defaultSizeInBytes": "1",
}
# Before each run Spark describes the plan to whoever may listen, at length if it is allowed to.
_IN_SHORT: Mapping[str, str] = {"spark.sql.maxPlanStringLength": "64", "spark.sql.debug.maxToStringFields": "0"}

_numbers = itertools.count()

# A table, which of its columns are spoken of, and the types of all.
Input = tuple[pa.Table, Sequence[int], tuple[SqlType, ...]]


def input_name(place: int) -> str:
    """What each statement calls its input at a place, so that its text is run as it is.

    The view of that name is there while a statement is prepared, and one is prepared at a time. To put a name into the
    text later would put it into literals of the user too.
    """
    return f"everview_input_{place}"


def can_prepare(session: SparkSession) -> bool:
    """Whether this process has the Spark of the session at hand: over Connect it has not."""
    return hasattr(session, "_jsparkSession")


class PreparedStatements:
    """The prepared statements of one Spark; the least recently used are forgotten first."""

    def __init__(self, session: SparkSession) -> None:
        self._sessions = {
            compiled: _session(session, {**(COMPILED if compiled else SMALL), **_AS_RDD, **_IN_SHORT})
            for compiled in (False, True)
        }
        self.rounds = Rounds(self._sessions[False])
        self._known: OrderedDict[tuple[object, ...], _Prepared | None] = OrderedDict()
        self._lock, self._preparing = threading.Lock(), threading.Lock()

    def run(self, statement: str, inputs: Sequence[Input]) -> pa.Table | None:
        """The result of a statement over inputs, `input_name(0)` and so on; None if it can't be prepared."""
        shapes = tuple(tuple((index, schema[index]) for index in wanted) for _, wanted, schema in inputs)
        compiled = sum(table.num_rows for table, _, _ in inputs) > INTERPRETED_ROWS_MAX
        key = (statement, shapes, compiled)
        with self._lock:
            known = key in self._known
            prepared = self._known.get(key)
            if known:
                self._known.move_to_end(key)
        if not known:
            with timed("prepare"), jobs_of_run(self._sessions[compiled]):
                prepared = self._prepare(statement, inputs, compiled)
            self._remember(key, prepared)
        return None if prepared is None else self._run(prepared, inputs)

    def _run(self, prepared: _Prepared, inputs: Sequence[Input]) -> pa.Table | None:
        with timed("hand_over"):
            batches = prepared.encoded(inputs)
        if sum(batch.size for batch in batches) > BYTES_MAX:
            return None
        if prepared.may_join() and not is_in_background():
            result = self.rounds.run(prepared, batches)
            if result is not None:
                with timed("decode"):
                    return prepared.decoded(result)
            with prepared.suspected(), jobs_of_run(prepared.session):
                return prepared.run(batches)
        with jobs_of_run(prepared.session):
            return prepared.run(batches)

    def __len__(self) -> int:
        """How many are kept."""
        with self._lock:
            return sum(prepared is not None for prepared in self._known.values())

    def _remember(self, key: tuple[object, ...], prepared: _Prepared | None) -> None:
        with self._lock:
            self._known[key] = prepared
            while len(self._known) > STATEMENTS_MAX:
                _, oldest = self._known.popitem(last=False)
                if oldest is not None:
                    self.rounds.forget(oldest)
                    oldest.close()

    def _prepare(self, statement: str, inputs: Sequence[Input], compiled: bool) -> _Prepared | None:
        with self._at_length():
            prepared = _Prepared(self._sessions[compiled], statement, inputs)
            keeps_something = prepared.has_operator(_keeps)
            # What runs in Python's workers has pipes of its own, one statement a task.
            prepared.in_rounds = not compiled and not prepared.has_operator(_is_python)
        if keeps_something:
            prepared.close()
            return None
        return prepared

    @contextmanager
    def _at_length(self) -> Iterator[None]:
        """While inside, plans are described in full; whose setting it is that counts depends on the thread."""
        with self._preparing:
            for session, name in itertools.product(self._sessions.values(), _IN_SHORT):
                session.conf.unset(name)
            try:
                yield
            finally:
                for session, (name, value) in itertools.product(self._sessions.values(), _IN_SHORT.items()):
                    session.conf.set(name, value)


def _session(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    another = session.newSession()
    for name, value in settings.items():
        another.conf.set(name, value)
    return another


class _Prepared:
    """One statement, its inputs, and the DataFrame that has its plan."""

    def __init__(self, session: SparkSession, statement: str, inputs: Sequence[Input]) -> None:
        self.session, self.number = session, next(_numbers)
        self.lock = threading.Lock()
        self.in_rounds = False
        self._alone_until = 0.0
        self._rdd: Any = None
        self._inputs = [_Input(session, wanted, schema) for _, wanted, schema in inputs]
        views = {input_name(place): each for place, each in enumerate(self._inputs)}
        try:
            for view, each in views.items():
                each.frame.createOrReplaceTempView(view)
            self._frame: DataFrame = run_sql(session, statement)
        finally:
            # What a plan reads is in it, and the next statement has other inputs of these names.
            with suppress(Exception):
                for view in views:
                    session.catalog.dropTempView(view)

    def has_operator(self, wanted: Callable[[Any], bool]) -> bool:
        """Whether the plan has such an operator."""
        frame: Any = self._frame
        return any(map(wanted, _operators(frame._jdf.queryExecution().executedPlan())))

    def result_rdd(self) -> Any:
        """The Java RDD of the result: batches in Arrow's format."""
        if self._rdd is None:
            frame: Any = self._frame
            plan = frame._jdf.queryExecution().executedPlan()
            self._rdd = frame._jdf.toArrowBatchRdd(plan).toJavaRDD()
        return self._rdd

    def encoded(self, inputs: Sequence[Input]) -> list[pa.Buffer]:
        """The rows of the inputs as Spark takes them."""
        return [own.encoded(table) for own, (table, _, _) in zip(self._inputs, inputs, strict=True)]

    def decoded(self, batches: Sequence[bytes]) -> pa.Table:
        """The result out of its batches."""
        read = [pa.ipc.read_record_batch(pa.py_buffer(each), self._schema) for each in batches]
        return pa.Table.from_batches(read, self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self._frame.schema, timezone="UTC")

    def put(self, batches: Sequence[pa.Buffer]) -> None:
        """Let these be the rows of the inputs from now on."""
        for own, batch in zip(self._inputs, batches, strict=True):
            own.put(batch)

    def may_join(self) -> bool:
        """Whether it can be run in one job with others."""
        return self.in_rounds and time.monotonic() >= self._alone_until

    def clear(self, batches: Sequence[pa.Buffer]) -> None:
        """Keep no large inputs between runs."""
        for own, batch in zip(self._inputs, batches, strict=True):
            if batch.size > BYTES_KEPT_MAX:
                own.clear()

    def run(self, batches: Sequence[pa.Buffer]) -> pa.Table:
        """The result over these inputs, by a job of its own."""
        began = time.perf_counter()
        with self.lock:
            add("wait", time.perf_counter() - began)
            with timed("hand_over"):
                self.put(batches)
            try:
                with timed("job"):
                    return self._frame.toArrow()
            finally:
                self.clear(batches)

    @contextmanager
    def suspected(self) -> Iterator[None]:
        """Inside, it is run by itself after a round failed: if it is slow or fails, the round failed because of it."""
        began, done = time.monotonic(), False
        try:
            yield
            done = True
        finally:
            over = time.monotonic()
            if not done or over - began > SLOW_S:
                self._alone_until = over + ALONE_S

    def close(self) -> None:
        """Let go of the inputs."""
        with suppress(Exception):
            for each in self._inputs:
                each.clear()


def _operators(plan: Any) -> Iterator[Any]:
    """All operators of a plan of Spark. Its text would tell less, for literals of the user are in it."""
    yield plan
    children = plan.children()
    for place in range(children.size()):
        yield from _operators(children.apply(place))


def _keeps(operator: Any) -> bool:
    """Whether the operator would answer from what an earlier run left."""
    kind = operator.getClass().getSimpleName()
    return operator.subqueries().nonEmpty() or any(word in kind for word in _KEEPS)


def _is_python(operator: Any) -> bool:
    kind = operator.getClass().getSimpleName()
    return any(word in kind for word in _PYTHON)


class _Input:
    """A DataFrame whose rows can be exchanged."""

    def __init__(self, session: SparkSession, wanted: Sequence[int], schema: tuple[SqlType, ...]) -> None:
        from pyspark.sql import DataFrame
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        fields = [*(f"c{index} {spark_type(schema[index])}" for index in wanted), f"{DIFF} bigint"]
        declared = StructType.fromDDL(", ".join(fields))
        assert isinstance(declared, StructType)
        self._schema = to_arrow_schema(declared, timezone="UTC")
        self._nothing = self.encoded(self._schema.empty_table())
        jvm: Any = session._jvm
        self._jvm = jvm
        batches = jvm.java.util.ArrayList()
        batches.add(self._nothing.to_pybytes())
        iterator = jvm.scala.jdk.javaapi.CollectionConverters.asScala(batches.iterator())
        frame = jvm.PythonSQLUtils.toDataFrame(iterator, declared.json(), session._jsparkSession)
        # One partition, said so: then no operator asks for an exchange.
        self.frame = DataFrame(frame, session).coalesce(1)
        # The rows are made of the bytes of another RDD, and those are the one element of its one partition.
        source = frame.queryExecution().logical().rdd().dependencies().apply(0).rdd()
        (partition,) = source.partitions()
        self._elements = partition.values().unsafeArray()

    def encoded(self, table: pa.Table) -> pa.Buffer:
        """The rows as Spark takes them."""
        batches = table.select(self._schema.names).cast(self._schema).combine_chunks().to_batches()
        return (batches[0] if batches else pa.RecordBatch.from_pylist([], self._schema)).serialize()

    def put(self, batch: pa.Buffer) -> None:
        """Let these be the rows, from now on."""
        if batch.size <= BYTES_SENT_MAX:
            self._elements[0] = batch.to_pybytes()
            return
        with tempfile.NamedTemporaryFile(prefix="everview-input-") as file:
            with pa.ipc.new_stream(file, self._schema) as stream:
                stream.write_batch(pa.ipc.read_record_batch(batch, self._schema))
            file.flush()
            self._jvm.PythonSQLUtils.readArrowStreamFromFile(file.name).copyToArray(self._elements)

    def clear(self) -> None:
        """Have no rows, so as to keep no memory."""
        self.put(self._nothing)
