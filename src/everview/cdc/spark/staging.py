"""From Spark into a shard: closed updates become staged parts, a bounded number of rows in the driver at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from everview.cdc.schema import StreamSchema
from everview.cdc.spark.reader import Pile
from everview.cdc.spark.types import name_of
from everview.storage.batch import INLINE_BYTES_MAX, Part, part_batch, update_schema
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.stage import Staged
from everview.timely.consolidate import DIFF, TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STAGE_ROWS = 1_000_000


def stage(environment: Environment, id: GlobalId, pile: Pile, schema: StreamSchema, at: int | None = None) -> Staged:
    """All closed updates of a pile, ready for one commit; their times are replaced by `at` if it is given."""
    updates = pile.updates()
    if at is not None:
        names = [name_of(name) for name in schema.data.names]
        updates = updates.selectExpr(f"{at}L AS {TIME}", DIFF, *names)
    stored = update_schema(environment.shard(id).spec.schema).names
    staged: list[Staged] = []
    held: pa.Table | None = None  # a table is held back until the next is known: a small last one goes with it
    for table in (each.rename_columns(stored) for each in _slices(updates, pile.closed_updates, schema)):
        if held is not None and table.nbytes > 2 * INLINE_BYTES_MAX:
            staged.append(environment.stage(id, held))
            held = table
        else:
            held = table if held is None else pa.concat_tables([held, table])
    staged.append(environment.stage(id, held))
    if len(staged) == 1:
        return staged[0]
    parts: list[Part] = []
    for each in staged:
        assert each.batch is not None and not each.batch.inline
        parts += each.batch.parts
    return Staged(id, part_batch(tuple(parts), 0, 0, 0))


def _slices(updates: DataFrame, rows: int, schema: StreamSchema) -> Iterator[pa.Table]:
    """The updates in tables of about so many rows each, by hash."""
    wanted = update_schema(schema.data)
    number = -(-rows // STAGE_ROWS)
    if number <= 1:
        yield _as(updates.toArrow(), wanted)
        return
    hashed = f"xxhash64({', '.join([TIME, *map(name_of, schema.data.names)])})"
    for place in range(number):
        yield _as(updates.where(f"pmod({hashed}, {number}L) = {place}L").toArrow(), wanted)


def _as(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    return table.select(wanted.names).cast(wanted)
