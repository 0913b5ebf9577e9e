"""The Spark engine: hands inputs over as temporary views, runs one statement, takes the result back as Arrow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.compute.cancel import is_in_background
from everview.compute.engine import contract
from everview.compute.engine.run_phases import timed
from everview.compute.engine.spark.bulk import plain_paths, said, spark_type_of
from everview.compute.engine.spark.canceled_tasks import can_ask
from everview.compute.engine.spark.jobs import jobs_of_run
from everview.compute.engine.spark.outputs import Layout, with_types
from everview.compute.engine.spark.prepared import STATEMENTS_MAX, PreparedStatements, can_prepare, input_name
from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.engine.spark.render import render_plan, render_steps
from everview.compute.engine.spark.scalar import FAILED, columns
from everview.compute.functions.spark_sql import NotOnSpark, TooLong, spark_type
from everview.compute.ir.relation import FlatMap, Get, Relation, Steps, types, walk
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.optimize.computed_columns import computed_columns
from everview.compute.optimize.row_by_row import columns_read
from everview.storage.landing import Landing
from everview.storage.staging import Staged
from everview.timely.consolidate import DIFF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.compute.engine.spark.session import Spark

_numbers = itertools.count()


SMALL_ROWS_MAX = 20_000  # of inputs: up to so many, one task without code generation is the quickest
ONE_TASK_ROWS_MAX = 400_000  # of inputs of a prepared statement: more are divided
PAIRS_MAX = 10**10  # that one task goes through in some minutes
FUNCTION_ROWS = 10_000  # that a table function may make of a row, as far as one can guess


@dataclass(frozen=True, slots=True)
class _SmallStatement:
    """Some steps as a statement, and which columns of its inputs it speaks of."""

    steps: Steps
    text: str
    layout: Layout
    columns: Mapping[str, Sequence[int]]


class SparkEngine:
    """Runs plans in the sessions of a Spark: in that for few rows, or in the other one if there are many.

    Statements over few rows are prepared, wherever they can be.
    """

    def __init__(self, small: SparkSession, bulk: SparkSession | None = None) -> None:
        self._small, self._bulk = small, bulk or small
        self._prepared = PreparedStatements(small) if can_prepare(small) else None
        self._can_ask = can_ask(small)
        self._statements: dict[tuple[object, ...], _SmallStatement] = {}

    @staticmethod
    def of(spark: Spark) -> SparkEngine:
        """The engine with both sessions."""
        return SparkEngine(spark.small, spark.bulk)

    def _is_small(self, batches: Iterable[contract.Batch]) -> bool:
        return _rows(batches) <= SMALL_ROWS_MAX

    def run(self, plan: Relation, inputs: Mapping[str, contract.Batch]) -> pa.Table:
        """The collection that the plan means over the inputs, consolidated."""
        plan = computed_columns(plan)  # so that every failure is guarded against, whatever operator it is under
        read = _read([plan], inputs)
        views = {name: f"everview_{next(_numbers)}" for name in read}
        statement = statement_of(plan, views, guarded=True, asking=self._can_ask)
        batches = {views[name]: (inputs[name], schema) for name, schema in read.items()}
        with _errors(statement), self._views(batches) as session, jobs_of_run(session):
            return with_types(run_sql(session, statement).toArrow(), types(plan))

    def run_steps(
        self, steps: Steps, outputs: Sequence[str], inputs: Mapping[str, contract.Batch], *, separated: bool = False
    ) -> dict[str, pa.Table]:
        """The collections of some of the steps, from one statement."""
        relations = dict(steps)
        read = _read(list(relations.values()), inputs)
        given = {name: (inputs[name], schema) for name, schema in read.items()}
        if _rows(batch for batch, _ in given.values()) <= ONE_TASK_ROWS_MAX:
            found = self._run_in_one_task(steps, outputs, given, separated)
            if found is not None:
                return found
        views = {name: f"everview_{next(_numbers)}" for name in read}
        with rendering():
            statement, layout = render_steps(steps, outputs, views, guarded=not separated, asking=self._can_ask)
        batches = {views[name]: each for name, each in given.items()}
        with timed("job"), _errors(statement), self._views(batches) as session, jobs_of_run(session):
            return layout.split(run_sql(session, statement).toArrow())

    def check(self, steps: Steps, outputs: Sequence[str], *, separated: bool = False) -> None:
        """Raise NotSupported if there is no statement for these steps."""
        check(steps, outputs, separated=separated)

    def _run_in_one_task(
        self,
        steps: Steps,
        outputs: Sequence[str],
        inputs: Mapping[str, tuple[pa.Table, tuple[SqlType, ...]]],
        separated: bool,
    ) -> dict[str, pa.Table] | None:
        """One statement: prepared, if it can be; else, over few rows, over one table, in which all the inputs are."""
        asking = self._asks([step for _, step in steps], [batch for batch, _ in inputs.values()])
        known = self._small_statement(steps, outputs, inputs, separated=separated, asking=asking)
        given = {name: (batch, known.columns[name], schema) for name, (batch, schema) in inputs.items()}
        if self._prepared is not None and given:
            with _errors(known.text):
                result = self._prepared.run(known.text, list(given.values()))
            if result is not None:
                with timed("decode"):
                    return known.layout.split(result)
        if not self._is_small(batch for batch, _ in inputs.values()):
            return None
        view = f"everview_{next(_numbers)}"
        with timed("prepare"), rendering():
            table, tables = packed(given, view)
            statement, layout = render_steps(steps, outputs, tables, guarded=not separated, single=True, asking=asking)
        with timed("job"), _errors(statement), jobs_of_run(self._small):
            self._small.createDataFrame(table).coalesce(1).createOrReplaceTempView(view)
            try:
                return layout.split(run_sql(self._small, statement).toArrow())
            finally:
                with suppress(Exception):
                    self._small.catalog.dropTempView(view)

    def _asks(self, relations: Iterable[Relation], batches: Iterable[pa.Table]) -> bool:
        """Whether rows ask if their task is canceled: not in ticks that are over soon, which it would slow down."""
        if not self._can_ask or is_in_background():
            return self._can_ask
        functions = [each for relation in relations for each in walk(relation) if isinstance(each, FlatMap)]
        rows: list[int] = [*(max(1, batch.num_rows) for batch in batches), *[FUNCTION_ROWS] * len(functions)]
        return prod(rows) > PAIRS_MAX

    def _small_statement(
        self, steps: Steps, outputs: Sequence[str], inputs: Iterable[str], *, separated: bool, asking: bool
    ) -> _SmallStatement:
        """The statement as it is prepared; the same for the very same steps, which ticks repeat."""
        key = (id(steps), tuple(outputs), tuple(inputs), separated, asking)
        known = self._statements.get(key)
        if known is None or known.steps is not steps:
            spoken_of = columns_read(step for _, step in steps)
            views = {name: input_name(place) for place, name in enumerate(inputs)}
            with timed("prepare"), rendering():
                text, layout = render_steps(steps, outputs, views, guarded=not separated, single=True, asking=asking)
            known = _SmallStatement(steps, text, layout, {name: sorted(spoken_of[name]) for name in views})
            if len(self._statements) >= STATEMENTS_MAX:
                self._statements.clear()
            self._statements[key] = known
        return known

    def run_large(
        self,
        steps: Steps,
        inputs: Mapping[str, contract.Stored],
        outputs: Mapping[str, Landing],
        collected: Sequence[str],
        *,
        separated: bool = False,
        early: contract.Early | None = None,
    ) -> tuple[dict[str, Staged | pa.Table], dict[str, pa.Table]]:
        """Steps over stored collections, by the executors."""
        from everview.compute.engine.spark.large import run_large

        return run_large(self._bulk, steps, inputs, outputs, collected, separated=separated, early=early)

    @contextmanager
    def _views(self, batches: Mapping[str, tuple[contract.Batch, tuple[SqlType, ...]]]) -> Iterator[SparkSession]:
        """While inside, the batches are temporary views of these names, in the session that fits them."""
        small = self._is_small(batch for batch, _ in batches.values())
        session = self._small if small else self._bulk
        try:
            for view, (batch, schema) in batches.items():
                frame = _frame(session, batch, schema)
                (frame.coalesce(1) if small else frame).createOrReplaceTempView(view)
            yield session
        finally:
            # Of a Spark that died there is nothing to tidy up, and the first error tells more.
            with suppress(Exception):
                for view in batches:
                    session.catalog.dropTempView(view)


def _rows(batches: Iterable[contract.Batch]) -> int:
    """How many; files have more than fits into one task."""
    return sum(ONE_TASK_ROWS_MAX + 1 if isinstance(batch, contract.Parts) else batch.num_rows for batch in batches)


def _frame(session: SparkSession, batch: contract.Batch, schema: tuple[SqlType, ...]) -> DataFrame:
    declared = ", ".join(f"c{place} {spark_type(each)}" for place, each in enumerate(schema))
    declared = f"{declared}, {DIFF} bigint" if declared else f"{DIFF} bigint"
    if not isinstance(batch, contract.Parts):
        from pyspark.sql.types import StructType

        table = with_types(batch.select([*columns(len(schema)), DIFF]), schema)
        return session.createDataFrame(table, StructType.fromDDL(declared))  # type: ignore[no-any-return,call-overload]
    if batch.schema is None:
        return session.read.schema(declared).parquet(*plain_paths(batch.uris))
    stored = [(name, spark_type_of(batch.schema.field(name).type)) for name in columns(len(schema))]
    found = session.read.schema(", ".join([*(f"{name} {each}" for name, each in stored), f"{DIFF} bigint"]))
    casts = [f"cast({name} as {spark_type(each)}) AS {name}" for (name, _), each in zip(stored, schema, strict=True)]
    return found.parquet(*plain_paths(batch.uris)).selectExpr(*casts, DIFF)


def packed(
    inputs: Mapping[str, tuple[pa.Table, Sequence[int], tuple[SqlType, ...]]], view: str
) -> tuple[pa.Table, dict[str, str]]:
    """Some columns of several tables in one table, handed over once as a view, and what to say in SQL to read each.

    A column numbers the tables, and for each table there is a struct with its rows.
    """
    total = sum(table.num_rows for table, _, _ in inputs.values())
    numbers, diffs, tables = [], [], {}
    structs: list[pa.Array] = []
    before = 0
    for number, (name, (table, wanted, schema)) in enumerate(inputs.items()):
        numbers.append(np.full(table.num_rows, number, dtype=np.int32))
        diffs.append(table.column(DIFF).to_numpy())
        items = [DIFF]
        if wanted:
            fields = [pa.field(f"c{place}", arrow_type(schema[place])) for place in wanted]
            arrays = [_as(table.column(field.name), field.type) for field in fields]
            own = pa.StructArray.from_arrays(arrays, fields=fields)
            after = total - before - table.num_rows
            items = [*(f"i{len(structs)}.{field.name} AS {field.name}" for field in fields), DIFF]
            structs.append(pa.concat_arrays([pa.nulls(before, own.type), own, pa.nulls(after, own.type)]))
        tables[name] = f"(SELECT {', '.join(items)} FROM {view} WHERE input = {number})"
        before += table.num_rows
    names = ["input", DIFF, *(f"i{place}" for place in range(len(structs)))]
    return pa.table([np.concatenate(numbers), np.concatenate(diffs), *structs], names=names), tables


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return whole.cast(kind)


def _read(relations: Sequence[Relation], inputs: Mapping[str, contract.Batch]) -> dict[str, tuple[SqlType, ...]]:
    """The inputs that the relations read, and their schemas."""
    gets = (each for relation in relations for each in walk(relation) if isinstance(each, Get))
    return {each.id: each.schema for each in gets if each.id in inputs}


@contextmanager
def _errors(statement: str) -> Iterator[None]:
    """What Spark says against the statement, or dies of, as our errors."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except (AnalysisException, pa.ArrowInvalid) as error:
        detail = f"{said(error)}\n{statement}"
        raise contract.PlanRefused("internal error: spark refuses the statement", detail=detail) from error
    except (PySparkException, Py4JError, OSError) as error:
        if FAILED in str(error):
            raise contract.EvaluationFailed from error
        failed = contract.ValueRefused if is_of_a_value(error) else contract.RunFailed
        raise failed("spark failed to run the statement", detail=said(error)) from error


# What Java says of values that a function has no answer for; such an error does not come from a machine.
_OF_VALUES = re.compile(
    r"java\.lang\.(Arithmetic|(Array|String)?IndexOutOfBounds|NegativeArraySize|NumberFormat|IllegalArgument)Exception"
    r"|java\.time\.[.\w]*Exception"
)


def is_of_a_value(error: Exception) -> bool:
    """Whether a job ended because of a value that it met: for the same data it will end again."""
    from pyspark.errors import PySparkException, PythonException

    if isinstance(error, PySparkException):
        return isinstance(error, PythonException) or (error.getSqlState() or "").startswith("22")
    return bool(_OF_VALUES.search(str(error)))


@contextmanager
def rendering() -> Iterator[None]:
    """What has no equivalent on Spark, as NotSupported; what is too long for it as TooComplex."""
    try:
        yield
    except TooLong as error:
        hint = "split it into several views, each of which names a part"
        raise contract.TooComplex("statement too complex", detail=f"Spark would be told {error}", hint=hint) from error
    except NotOnSpark as error:
        raise contract.NotSupported(
            f"{error} has no equivalent on spark", hint="use another function, or compute this part without a view"
        ) from error


def check(steps: Steps, outputs: Sequence[str], *, separated: bool) -> None:
    """Raise NotSupported if there is no statement for these steps."""
    read = {each.id for _, step in steps for each in walk(step) if isinstance(each, Get)} - dict(steps).keys()
    with rendering():
        render_steps(steps, outputs, {name: f"`{name}`" for name in read}, guarded=not separated)


def statement_of(plan: Relation, views: Mapping[str, str], *, guarded: bool = False, asking: bool = False) -> str:
    """The statement for a plan, whose collections are in these views; raises NotSupported."""
    with rendering():
        return render_plan(plan, views, guarded=guarded, asking=asking)
