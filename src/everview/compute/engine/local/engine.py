"""The local engine behind the contract of engines: Arrow in, Arrow out, errors of evaluation raised."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from everview.compute.engine.contract import Batch, NotSupported, Parts, RunFailed
from everview.compute.engine.local.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.engine.local.evaluate import evaluate
from everview.compute.ir.relation import Get, Relation, types, walk


class LocalEngine:
    """Interprets plans over small inputs in this process."""

    def run(self, plan: Relation, inputs: Mapping[str, Batch]) -> pa.Table:
        """The collection that the plan means over the inputs."""
        schemas = {each.id: each.schema for each in walk(plan) if isinstance(each, Get)}
        rows = {}
        for name, batch in inputs.items():
            if isinstance(batch, Parts):
                raise NotSupported("the local engine reads no Parquet parts", hint="use Spark for large inputs")
            if name in schemas:
                rows[name] = rows_from_arrow(batch, schemas[name])
        result = evaluate(plan, rows)
        if result.errors:
            _, message = min(result.errors)
            raise RunFailed(message)
        return rows_to_arrow(result.rows, types(plan))
