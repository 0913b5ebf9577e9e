"""The local engine behind the contract of engines: Arrow in, Arrow out, errors of evaluation raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from everview.compute.engine.contract import Batch, EvaluationFailed, NotSupported, Parts
from everview.compute.functions.contract import Failure
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, Relation, Steps, types, walk
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Rows, ends_at_failure


class LocalEngine:
    """Interprets plans over small inputs in this process."""

    def run(self, plan: Relation, inputs: Mapping[str, Batch]) -> pa.Table:
        """The collection that the plan means over the inputs."""
        (result,) = self.run_steps([("result", plan)], ["result"], inputs).values()
        return result

    def run_steps(
        self, steps: Steps, outputs: Sequence[str], inputs: Mapping[str, Batch], *, separated: bool = False
    ) -> dict[str, pa.Table]:
        """The collections of some of the steps."""
        schemas = {each.id: each.schema for _, step in steps for each in walk(step) if isinstance(each, Get)}
        scope: dict[str, Rows] = {}
        for name, batch in inputs.items():
            if isinstance(batch, Parts):
                raise NotSupported("the local engine reads no Parquet parts", hint="use Spark for large inputs")
            if name in schemas:
                scope[name] = rows_from_arrow(batch, schemas[name])
        previous = ends_at_failure.set(True)
        try:
            for name, step in steps:
                scope[name] = evaluate(step, scope).rows
        except Failure as failure:
            raise EvaluationFailed(failure.message, sqlstate=failure.sqlstate) from failure
        finally:
            ends_at_failure.reset(previous)
        relations = dict(steps)
        return {name: rows_to_arrow(scope[name], types(relations[name])) for name in outputs}

    def check(self, steps: Steps, outputs: Sequence[str], *, separated: bool = False) -> None:
        """Whatever a plan says, it can be interpreted."""
