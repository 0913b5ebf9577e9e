"""Plans by columns: every operator as a function of batches, with the same result as in the interpreter.

Operators that are not computed by columns are interpreted, over the rows of what is below them. Where some row fails,
or a value is of a kind that no kernel has an answer for, `NotByColumns` is raised: then the interpreter has the plan,
for it alone says which errors there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from everview.compute.columnar.batch import Batch, NotByColumns, Positions, concatenated
from everview.compute.columnar.eligible import is_columnar
from everview.compute.columnar.groups import grouped
from everview.compute.columnar.join import joined
from everview.compute.columnar.order import Key, sorted_positions
from everview.compute.columnar.reduce import reduced
from everview.compute.columnar.scalars import Expressions
from everview.compute.functions import lookup
from everview.compute.functions.columns import SomeRowFails
from everview.compute.functions.contract import Failure
from everview.compute.interpreter import evaluate as interpreter
from everview.compute.interpreter import limits
from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Scalar
from everview.compute.rows.collection import NegativeMultiplicity, rows_of

_FAILS = (SomeRowFails, Failure, NegativeMultiplicity, pa.ArrowInvalid, OverflowError)


def evaluate(plan: ir.Relation, inputs: Mapping[str, Batch], by_row_max: int | None = None) -> Batch:
    """The rows that the plan means over the inputs, with all columns made.

    Raises `NotByColumns`, and `TooManyByRow` if more rows than this have to be computed in Python.
    """
    try:
        found = _Evaluation(Expressions(by_row_max)).run(plan, inputs)
        found.columns()
    except _FAILS as error:
        raise NotByColumns from error
    return found


def sorted_rows(batch: Batch, order: tuple[ir.Order, ...]) -> Batch:
    """The rows in an order of columns, ties by the whole row; raises `NotByColumns`."""
    try:
        found = batch.at(sorted_positions(_keys(order, batch, Expressions()), batch.rows))
        found.columns()
    except _FAILS as error:
        raise NotByColumns from error
    return found


class _Evaluation:
    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions

    def run(self, plan: ir.Relation, scope: Mapping[str, Batch]) -> Batch:
        """The batch that the plan means."""
        result = self._operator(plan, scope)
        limits.hold(result.rows, 0)
        return result

    def _operator(self, plan: ir.Relation, scope: Mapping[str, Batch]) -> Batch:
        if not is_columnar(plan):
            return self._interpreted(plan, scope)
        match plan:
            case ir.Constant(rows, schema):
                return Batch.of_rows(rows_of(rows, schema), schema)
            case ir.Get(id):
                if id not in scope:
                    raise interpreter.UnknownCollection(id)
                return scope[id]
            case ir.Let(id, value, body):
                return self.run(body, {**scope, id: self.run(value, scope)})
            case ir.Project(input, columns):
                return self.run(input, scope).select(columns)
            case ir.Map(input, scalars):
                return self._map(self.run(input, scope), scalars)
            case ir.Filter(input, predicates):
                batch = self.run(input, scope)
                for predicate in predicates:
                    chosen = self._expressions.true_at(predicate, batch)
                    batch = batch if chosen is None else batch.at(chosen)
                return batch
            case ir.Join(inputs):
                return joined(plan, [self.run(each, scope) for each in inputs], self._expressions)
            case ir.Union(inputs):
                return concatenated([self.run(each, scope) for each in inputs])
            case ir.Negate(input):
                batch = self.run(input, scope)
                return batch.with_diffs(-batch.counts())
            case ir.Threshold(input):
                batch = self.run(input, scope).consolidated()
                return batch.at(np.flatnonzero(batch.counts() > 0))
            case ir.Reduce(input):
                return reduced(plan, _plain(self.run(input, scope)), self._expressions)
            case ir.TopK(input):
                return self._topk(plan, _plain(self.run(input, scope)))
        raise NotByColumns

    def _map(self, batch: Batch, scalars: tuple[Scalar, ...]) -> Batch:
        whole = batch
        for scalar in scalars:
            whole = whole.with_columns([partial(self._expressions.array, scalar, whole)])
            if lookup.can_fail(scalar):
                whole.column(whole.width - 1)
        return whole

    def _topk(self, topk: ir.TopK, batch: Batch) -> Batch:
        groups = grouped([batch.column(index) for index in topk.group], batch.rows) if topk.group else None
        for each in topk.order:
            if lookup.can_fail(each.scalar):  # also where it decides nothing
                self._expressions.array(each.scalar, batch)
        keys = _keys(topk.order, batch, self._expressions)
        last = None if topk.limit is None else topk.offset + topk.limit
        places = None
        if groups is None and last is not None and keys and batch.rows > 4 * last + 1024:
            places = _first_places(keys[0], last)
        batch_here = batch if places is None else batch.at(places)
        keys = keys if places is None else _keys(topk.order, batch_here, self._expressions)
        order = sorted_positions(keys, batch_here.rows, None if groups is None else groups.ids)
        counts = batch_here.counts()[order]
        ends = np.cumsum(counts)
        starts = ends - counts
        if groups is not None:
            ids = groups.ids[order]
            first = np.concatenate(([True], ids[1:] != ids[:-1]))[: len(ids)]
            base = np.maximum.accumulate(np.where(first, starts, 0))
            starts, ends = starts - base, ends - base
        top = ends if last is None else np.minimum(ends, last)
        kept = top - np.maximum(starts, topk.offset)
        chosen = np.flatnonzero(kept > 0)
        found = batch_here.at(order[chosen])
        return found if batch.diffs is None else found.with_diffs(kept[chosen])

    def _interpreted(self, plan: ir.Relation, scope: Mapping[str, Batch]) -> Batch:
        if isinstance(plan, ir.Recursive):
            gets = {each.id: each.schema for each in ir.walk(plan) if isinstance(each, ir.Get) and each.id in scope}
            below = {id: (scope[id], schema) for id, schema in gets.items() if id != plan.id}
            node: ir.Relation = plan
        else:
            inputs = ir.inputs_of(plan)
            below = {f"input {i}": (self.run(each, scope), ir.types(each)) for i, each in enumerate(inputs)}
            node = ir.with_inputs(plan, tuple(ir.Get(name, schema) for name, (_, schema) in below.items()))
        for batch, _ in below.values():
            self._expressions.look(batch.rows)
        result = interpreter.evaluate(node, {name: batch.to_rows(schema) for name, (batch, schema) in below.items()})
        if result.errors:
            raise NotByColumns
        return Batch.of_rows(result.rows, ir.types(plan))


def _keys(order: tuple[ir.Order, ...], batch: Batch, expressions: Expressions) -> list[Key]:
    """What a batch is sorted by: the order, and then all columns."""
    keys = [Key(partial(expressions.array, each.scalar, batch), each.descending, each.nulls_first) for each in order]
    return [*keys, *(Key(partial(batch.column, index)) for index in range(batch.width))]


def _first_places(key: Key, count: int) -> Positions | None:
    """The places of the rows that may be among the first so many; None if it is not known."""
    levels = key.levels(None)
    if len(levels) != 1:
        return None
    return (
        np.flatnonzero(levels[0] <= np.partition(levels[0], count - 1)[count - 1]) if count else np.zeros(0, np.int64)
    )


def _plain(batch: Batch) -> Batch:
    """A batch in which every row occurs: consolidated, if it has rows that take others away."""
    if batch.diffs is None or (batch.diffs > 0).all():
        return batch
    found = batch.consolidated()
    if found.diffs is not None and (found.diffs < 0).any():
        raise NotByColumns
    return found
