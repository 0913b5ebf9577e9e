"""Collections of an environment that are written time by time, and views that are maintained over them.

Everything that these tests and the benchmarks know of how an engine is made and a view installed and advanced is in
`spark_engine`, `install` and `advance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.compute.dataflow import Dataflow, maintain_view
from everview.compute.engine.contract import Engine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import profiles
from everview.compute.ir.relation import Get, Relation, types, walk
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Rows
from everview.compute.tick_output import TickReport
from everview.storage.contract import Create, ReadCapability, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Stored:
    """Collections by name."""

    def __init__(self, environment: Environment, schemas: Mapping[str, Sequence[SqlType]]) -> None:
        self.environment, self.schemas = environment, schemas
        created = environment.commit(*(Create(name, shard_schema(schema)) for name, schema in schemas.items()))
        self.readers: dict[str, ReadCapability] = {read.id: read for read, _ in created}
        self._writers: dict[str, WriteCapability] = {write.id: write for _, write in created}

    def append(self, name: str, updates: pa.Table, upper: int) -> None:
        """Append timed changes to one collection, which is then complete up to `upper`."""
        self._writers[name] = self.environment.append(self._writers[name], updates, Antichain(upper))

    def write(self, changes: Mapping[str, pa.Table], upper: int) -> None:
        """Append timed changes; all collections, changed or not, are then complete up to `upper`."""
        commands = [
            UpdateAndDowngrade(writer, changes.get(name), Antichain(upper)) for name, writer in self._writers.items()
        ]
        self._writers = {writer.id: writer for writer in self.environment.commit(*commands)}


def spark_engine(session: SparkSession) -> Engine:
    """The engine with sessions of its own on a Spark."""
    return SparkEngine.of(profiles(session))


def install(stored: Stored, id: str, relation: Relation, engine: Engine) -> Dataflow:
    """A view over the collections that its plan reads."""
    read = dict.fromkeys(each.id for each in walk(relation) if isinstance(each, Get) and each.id in stored.readers)
    flow, _ = maintain_view(stored.environment, id, relation, [stored.readers[name] for name in read], engine)
    return flow


def advance(flow: Dataflow, upper: int) -> list[TickReport]:
    """One tick, as far as the inputs are complete; a view without inputs may need one for each time."""
    reports = []
    while flow.upper < upper:
        report = flow.tick()
        assert report, f"the inputs of {flow.id} have moved on, and so can the view"
        reports.append(report)
    return reports


def contents_of(environment: Environment, flow: Dataflow, time: int) -> Rows:
    """The rows of a view at a time."""
    with environment.contents(flow.id, time) as selection:
        return rows_from_arrow(selection.contents(), types(flow.plan))


def shard_schema(schema: Sequence[SqlType]) -> pa.Schema:
    """The columns of a shard that holds rows of these types."""
    return pa.schema([(f"c{index}", arrow_type(each)) for index, each in enumerate(schema)])


def timed(table: pa.Table, schema: Sequence[SqlType], time: int) -> pa.Table:
    """A table with `_diff`, or else one in which every row counts once, as updates of a shard at one time."""
    diffs = table.column(DIFF) if DIFF in table.column_names else pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
    data = table.select(range(len(schema))).rename_columns([f"c{index}" for index in range(len(schema))])
    times = pa.repeat(pa.scalar(time, pa.int64()), table.num_rows)
    return data.cast(shard_schema(schema)).append_column(TIME, times).append_column(DIFF, diffs)
