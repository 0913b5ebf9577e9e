"""The Spark engine: hands inputs over as temporary views, runs one statement, takes the result back as Arrow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.compute.engine.contract import Batch, NotSupported, Parts, PlanRefused, RunFailed
from everview.compute.engine.spark.render import render_plan
from everview.compute.engine.spark.scalar import columns
from everview.compute.functions.spark_sql import NotOnSpark, spark_type
from everview.compute.ir.relation import Get, Relation, types, walk
from everview.compute.ir.types import SqlType, arrow_type
from everview.timely.consolidate import DIFF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_numbers = itertools.count()


class SparkEngine:
    """Runs plans in one session of a Spark; sessions of several profiles are several engines."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def run(self, plan: Relation, inputs: Mapping[str, Batch]) -> pa.Table:
        """The collection that the plan means over the inputs, consolidated."""
        read = {each.id: each.schema for each in walk(plan) if isinstance(each, Get) and each.id in inputs}
        views = {name: f"everview_{next(_numbers)}" for name in read}
        statement = statement_of(plan, views)
        with _errors(statement), self._views({views[name]: (inputs[name], schema) for name, schema in read.items()}):
            return with_types(self._session.sql(statement).toArrow(), types(plan))

    @contextmanager
    def _views(self, batches: Mapping[str, tuple[Batch, tuple[SqlType, ...]]]) -> Iterator[None]:
        """While inside, the batches are temporary views of these names."""
        try:
            for view, (batch, schema) in batches.items():
                self._frame(batch, schema).createOrReplaceTempView(view)
            yield
        finally:
            # Of a Spark that died there is nothing to tidy up, and the first error tells more.
            with suppress(Exception):
                for view in batches:
                    self._session.catalog.dropTempView(view)

    def _frame(self, batch: Batch, schema: tuple[SqlType, ...]) -> DataFrame:
        declared = ", ".join(f"c{place} {spark_type(each)}" for place, each in enumerate(schema))
        declared = f"{declared}, {DIFF} bigint" if declared else f"{DIFF} bigint"
        if isinstance(batch, Parts):
            return self._session.read.schema(declared).parquet(*batch.uris)
        table = batch.select([*columns(len(schema)), DIFF])
        return self._session.createDataFrame(table, schema=_schema(declared))  # type: ignore[call-overload, no-any-return]


@contextmanager
def _errors(statement: str) -> Iterator[None]:
    """What Spark says against the statement, or dies of, as our errors."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except (AnalysisException, pa.ArrowInvalid) as error:
        raise PlanRefused("internal error: spark refuses the statement", detail=_said(error, statement)) from error
    except (PySparkException, Py4JError, OSError) as error:
        raise RunFailed("spark failed to run the statement", detail=_said(error, statement)) from error


def statement_of(plan: Relation, views: Mapping[str, str]) -> str:
    """The statement for a plan, whose collections are in these views; raises NotSupported."""
    try:
        return render_plan(plan, views)
    except NotOnSpark as error:
        raise NotSupported(
            f"{error} has no equivalent on spark", hint="use another function, or compute this part without a view"
        ) from error


def with_types(table: pa.Table, schema: tuple[SqlType, ...]) -> pa.Table:
    """The table in the Arrow types that the columns have everywhere."""
    fields = [pa.field(f"c{place}", arrow_type(each)) for place, each in enumerate(schema)]
    return table.cast(pa.schema([*fields, pa.field(DIFF, pa.int64())]))


def _schema(declared: str) -> object:
    from pyspark.sql.types import StructType

    return StructType.fromDDL(declared)


def _said(error: Exception, statement: str) -> str:
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return f"{first}\n{statement}"
