"""The ways in which a peek is computed: by the interpreter, by columns, or on Spark, over the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from everview.compute.columnar.batch import Batch, concatenated
from everview.compute.columnar.evaluate import evaluate as evaluate_columns
from everview.compute.engine.contract import Batch as EngineBatch
from everview.compute.engine.contract import Engine, Parts
from everview.compute.interpreter import limits
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.types import SqlType
from everview.compute.optimize.prune_columns import columns_read
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows, add
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF, RESERVED, data_names

_NUMBER_BYTES = 8  # of a value, at least


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a plan reads: stored collections, with the changes of the transaction, and rows that are in memory."""

    selections: Mapping[GlobalId, Selection]
    added: Mapping[GlobalId, Rows]
    small: Mapping[str, Rows]

    @property
    def updates_max(self) -> int:
        """How many updates are read, at most."""
        return sum(each.rows_max for each in self.selections.values()) + sum(map(len, self.added.values()))


def interpreted(plan: Relation, inputs: Inputs) -> Rows:
    """The plan in Python, row by row."""
    schemas = _schemas(plan)
    stored = {}
    limits.look(sum(each.rows_max for each in inputs.selections.values()))
    for id, each in inputs.selections.items():
        contents = each.contents(each.first_columns(len(schemas[id])))
        stored[id] = rows_from_arrow(contents, schemas[id])
        for row, multiplicity in inputs.added.get(id, {}).items():
            add(stored[id], row, multiplicity)
    result = evaluate(plan, {**stored, **inputs.small})
    if result.errors:
        raise SqlError(*min(result.errors))
    return result.rows


def by_columns(plan: Relation, inputs: Inputs, by_row_max: int | None) -> Batch:
    """The plan with the kernels of Arrow; only the columns that it speaks of are read."""
    schemas = _schemas(plan)
    batches = {name: Batch.of_rows(rows, schemas[name]) for name, rows in inputs.small.items()}
    for id, each in inputs.selections.items():
        wanted = sorted(columns_read(plan, id))
        limits.look_ahead(0, each.rows_max * _NUMBER_BYTES * (len(wanted) + len(RESERVED)))
        names = {index: each.spec.schema.names[index] for index in wanted}
        batch = Batch.of_some(each.updates(list(names.values())), names, schemas[id])
        if id in inputs.added:
            batch = concatenated([batch, Batch.of_rows(inputs.added[id], schemas[id])])
        batches[id] = batch
    return evaluate_columns(plan, batches, by_row_max)


def on_spark(engine: Engine, plan: Relation, inputs: Inputs) -> Batch:
    """The plan as one statement of Spark. Parts that hold nothing later than the time are read by Spark itself."""
    schemas = _schemas(plan)
    batches: dict[str, EngineBatch] = {name: rows_to_arrow(rows, schemas[name]) for name, rows in inputs.small.items()}
    whole: dict[GlobalId, str] = {}
    for id, selection in inputs.selections.items():
        ready = [index for index, part in enumerate(selection.parts) if part.time_max < selection.time_range[1]]
        uris = selection.uris
        if ready and len(ready) == len(selection.parts):
            batches[f"{id} parts"] = Parts(tuple(uris[index] for index in ready), selection.spec.schema)
            whole[id] = f"{id} parts"
        updates = selection.inline_updates() if id in whole else selection.contents()
        table = updates.select([*data_names(updates), DIFF])  # the data columns as engines name them
        if id in inputs.added:
            rows = rows_to_arrow(inputs.added[id], schemas[id]).select(table.column_names)
            table = pa.concat_tables([table, rows.cast(table.schema)])
        batches[id] = table

    def look(part: Relation) -> Relation:
        if isinstance(part, ir.Get) and part.id in whole:
            return ir.Union((part, ir.Get(whole[part.id], part.schema)))
        return part

    return Batch.of(engine.run(ir.transform(plan, look), batches), ir.types(plan))


def _schemas(plan: Relation) -> dict[str, tuple[SqlType, ...]]:
    return {each.id: each.schema for each in ir.walk(plan) if isinstance(each, ir.Get)}
