"""Statements that are planned once and run many times, for a Spark that shares this machine's disk.

Most of the time of a small statement goes into analyzing, optimizing and planning it, and a tick runs the same one
again and again over other rows. A DataFrame keeps its physical plan, and a plan over files reads them anew each time it
runs: so the rows of the inputs go into files of fixed names, and the plan that read the last ones reads these.

That holds for plans that keep nothing between runs. An exchange does (its shuffled or broadcast rows are used again):
such a statement is not prepared. Of a file Spark reads as much as it had when the plan was made, so the
first ones are larger than any that follow.
"""

from __future__ import annotations

import itertools
import shutil
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from everview.compute.engine.spark.python_calls import run_sql
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.types import SqlType, arrow_type
from everview.timely.consolidate import DIFF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATEMENTS_MAX = 256
PREPARED_AT = 3  # the time that a statement is run
PAD_BYTES = 3 << 20  # of a first file; Spark divides files of 4 MiB and more
FILE_BYTES_MAX = PAD_BYTES  # of those that follow: the middle of their one row group lies well before the pad's end
_PAD = "pad"
_KEEPS = ("Exchange", "Subquery", "InMemoryTableScan", "InMemoryRelation")

# A table, which of its columns are spoken of, and the types of all.
Input = tuple[pa.Table, Sequence[int], tuple[SqlType, ...]]


def placeholder(place: int) -> str:
    """What a statement calls its input before it has a name."""
    return f"@input{place}@"


class PreparedStatements:
    """The prepared statements of one session; the least recently used are forgotten first."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session, self._folder = session, folder
        self._known: OrderedDict[tuple[object, ...], _Prepared | None] = OrderedDict()
        self._asked: OrderedDict[tuple[object, ...], int] = OrderedDict()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def run(self, statement: str, inputs: Sequence[Input]) -> pa.Table | None:
        """The result of a statement over inputs, `placeholder(0)` and so on; None if it can't be prepared."""
        shapes = tuple(tuple((index, schema[index]) for index in wanted) for _, wanted, schema in inputs)
        key = (statement, shapes)
        with self._lock:
            known = key in self._known
            prepared = self._known.get(key)
            if known:
                self._known.move_to_end(key)
            elif not self._is_worth_it(key):
                return None
        if not known:
            prepared = self._prepare(statement, inputs)
            self._remember(key, prepared)
        return None if prepared is None else prepared.run(inputs)

    def _is_worth_it(self, key: tuple[object, ...]) -> bool:
        """Whether a statement has been asked for often enough: to prepare one costs more than to run it."""
        self._asked[key] = self._asked.pop(key, 0) + 1
        while len(self._asked) > STATEMENTS_MAX:
            self._asked.popitem(last=False)
        return self._asked[key] >= PREPARED_AT

    def _remember(self, key: tuple[object, ...], prepared: _Prepared | None) -> None:
        with self._lock:
            self._known[key] = prepared
            while len(self._known) > STATEMENTS_MAX:
                _, oldest = self._known.popitem(last=False)
                if oldest is not None:
                    oldest.close()

    def _prepare(self, statement: str, inputs: Sequence[Input]) -> _Prepared | None:
        number = next(self._numbers)
        prepared = _Prepared(self._session, self._folder / f"statement-{number}", number)
        prepared.plan(statement, inputs)
        if prepared.keeps_something():
            prepared.close()
            return None
        return prepared


class _Prepared:
    """One statement, its files, and the DataFrame that has its plan."""

    def __init__(self, session: SparkSession, folder: Path, number: int) -> None:
        self._session, self._folder, self._number = session, folder, number
        self._lock = threading.Lock()
        self._views: list[str] = []
        self._statement = ""
        self._frame: DataFrame | None = None

    def plan(self, statement: str, inputs: Sequence[Input]) -> None:
        """Make the files, larger than they will ever be again, and the plan that reads them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for place, (table, wanted, schema) in enumerate(inputs):
            fields = [f"c{index} {spark_type(schema[index])}" for index in wanted]
            empty = _columns(table.slice(0, 0), wanted, schema)
            pad = pa.array([bytes(PAD_BYTES)], pa.binary())
            nulls = [pa.nulls(1, field.type) for field in empty.schema]
            padded = pa.table([*nulls, pad], names=[*empty.column_names, _PAD])
            pq.write_table(padded, self._file(place), compression="none", use_dictionary=False, write_statistics=False)
            view = f"everview_prepared_{self._number}_{place}"
            declared = ", ".join([*fields, f"{DIFF} bigint"])
            frame = self._session.read.schema(declared).parquet(self._file(place).as_uri())
            frame.coalesce(1).createOrReplaceTempView(view)
            self._views.append(view)
            statement = statement.replace(placeholder(place), view)
        self._statement = statement
        self._frame = run_sql(self._session, statement)

    def keeps_something(self) -> bool:
        """Whether the plan has a part that would answer from what an earlier run left."""
        plan = self._session.sql(f"EXPLAIN {self._statement}").collect()[0][0]
        return any(word in plan for word in _KEEPS)

    def run(self, inputs: Sequence[Input]) -> pa.Table | None:
        """The result over these inputs; None if they are too large."""
        with self._lock:
            assert self._frame is not None
            for place, (table, wanted, schema) in enumerate(inputs):
                file = self._file(place)
                pq.write_table(
                    _columns(table, wanted, schema),
                    file,
                    compression="none",
                    use_dictionary=False,
                    write_statistics=False,
                    row_group_size=max(1, table.num_rows),
                )
                if file.stat().st_size > FILE_BYTES_MAX:
                    return None
            return self._frame.toArrow()

    def close(self) -> None:
        """Let go of views and files."""
        with suppress(Exception):
            for view in self._views:
                self._session.catalog.dropTempView(view)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _file(self, place: int) -> Path:
        return self._folder / f"{place}.parquet"


def _columns(table: pa.Table, wanted: Sequence[int], schema: tuple[SqlType, ...]) -> pa.Table:
    fields = [pa.field(f"c{index}", arrow_type(schema[index])) for index in wanted]
    return table.select([*(field.name for field in fields), DIFF]).cast(pa.schema([*fields, (DIFF, pa.int64())]))
