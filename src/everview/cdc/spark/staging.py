"""From Spark into a shard: closed updates become staged parts, a bounded number of rows in the driver at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from everview.cdc.schema import StreamSchema
from everview.cdc.scratch import stage_all
from everview.cdc.spark.reader import Pile
from everview.quoting import spark_identifier
from everview.storage.batch import update_schema
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.staging import Staged
from everview.timely.consolidate import TIME, with_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STAGE_ROWS = 1_000_000


def stage(
    environment: Environment,
    id: GlobalId,
    pile: Pile,
    schema: StreamSchema,
    *,
    at: int | None = None,
    refuses: Callable[[pa.Table], bool] = lambda updates: False,
) -> Staged | None:
    """All closed updates of a pile, ready for one commit; their times are replaced by `at` if it is given.

    `refuses` is shown them first, all updates of a row at once; None if it refuses any.
    """
    updates = pile.updates()
    stored = update_schema(environment.shard(id).spec.schema).names
    refused = False

    def tables() -> Iterator[pa.Table]:
        nonlocal refused
        for told in (each.rename_columns(stored) for each in _slices(updates, pile.closed_updates, schema)):
            if refuses(told):
                refused = True
                return
            yield told if at is None else with_column(told, TIME, np.full(told.num_rows, at))

    staged = stage_all(environment, id, tables())
    if refused:
        environment.unstage(staged)
        return None
    return staged


def _slices(updates: DataFrame, rows: int, schema: StreamSchema) -> Iterator[pa.Table]:
    """The updates in tables of about so many rows each, by hash."""
    wanted = update_schema(schema.data)
    number = -(-rows // STAGE_ROWS)
    if number <= 1:
        yield _as(updates.toArrow(), wanted)
        return
    hashed = f"xxhash64({', '.join(map(spark_identifier, schema.data.names))})"
    for place in range(number):
        yield _as(updates.where(f"pmod({hashed}, {number}L) = {place}L").toArrow(), wanted)


def _as(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    return table.select(wanted.names).cast(wanted)
