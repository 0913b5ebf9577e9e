"""Scalars over batches: an expression as a column, by the kernels that the registry has for its functions.

What an expression evaluates of which row is what the interpreter evaluates: operands of AND, OR, CASE and COALESCE that
can fail are evaluated for the rows only that get to them. A function without a kernel, or whose kernel has no answer,
is called in Python, once for each combination of arguments that occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.columnar.batch import Batch, NotByColumns, Positions
from everview.compute.columnar.groups import grouped
from everview.compute.functions import lookup
from everview.compute.functions.columns import Values, scalar
from everview.compute.interpreter import limits
from everview.compute.interpreter.scalars import compile_value
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar
from everview.compute.ir.types import Kind, SqlType, arrow_type
from everview.compute.rows.arrow import values_from_arrow, values_to_arrow
from everview.compute.rows.collection import canonical

MANY_CONSTANTS = 8  # from here on a value is looked up among them
_WITHOUT_SETS = (Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.INTERVAL, Kind.JSONB, Kind.ARRAY)


class TooManyByRow(Exception):
    """More values have to be computed in Python than were allowed."""


class Expressions:
    """Evaluates expressions. Up to `by_row_max` rows may go through Python at a time; None is any number."""

    def __init__(self, by_row_max: int | None = None) -> None:
        self._by_row_max = by_row_max

    def look(self, rows: int) -> None:
        """Raise `TooManyByRow` if so many rows must not go through Python."""
        if self._by_row_max is not None and rows > self._by_row_max:
            raise TooManyByRow

    def array(self, expression: Scalar, batch: Batch) -> pa.Array:
        """The value for each row."""
        value = self.values(expression, batch)
        return _repeated(value, batch.rows) if isinstance(value, pa.Scalar) else value

    def true_at(self, condition: Scalar, batch: Batch) -> Positions | None:
        """The places of the rows for which a condition is true; None if it is for all."""
        mask = self.array(condition, batch)
        mask = mask.fill_null(False) if mask.null_count else mask
        found = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        return None if len(found) == batch.rows else found

    def values(self, expression: Scalar, batch: Batch) -> Values:
        """The value for each row, or the one for all."""
        match expression:
            case Column(index):
                return batch.column(index)
            case Literal(value, sql_type):
                settle = canonical(sql_type)
                return values_to_arrow([settle(value) if settle else value], sql_type)[0]
            case Call():
                return self._call(expression, batch)
            case And(args):
                return self._condition(args, batch, pc.and_kleene, "ne", until=False)
            case Or(args):
                return self._condition(args, batch, pc.or_kleene, "eq", until=True)
            case Case():
                return self._case(expression, batch)
            case Coalesce():
                return self._coalesce(expression, batch)
        raise NotByColumns

    def _call(self, call: Call, batch: Batch) -> Values:
        entry = lookup.function(call.function)
        if entry.volatile:
            raise NotByColumns
        args = [self.values(arg, batch) for arg in call.args]
        if entry.strict and any(isinstance(each, pa.Scalar) and not each.is_valid for each in args):
            return scalar(None, call.type)
        if not any(isinstance(each, pa.Array) for each in args):
            if not batch.rows:  # then it does not fail either
                return scalar(None, call.type)
            return self._by_row(call, args, 1)[0]
        if entry.arrow is not None and batch.rows:
            found = entry.arrow(args, [arg.type for arg in call.args], call.type)
            if found is not None:
                wanted = arrow_type(call.type)
                return found if found.type == wanted else found.cast(wanted)
        return self._by_row(call, args, batch.rows)

    def _by_row(self, call: Call, args: Sequence[Values], rows: int) -> pa.Array:
        """The function called in Python, once for each combination of arguments that occurs."""
        arrays = [each for each in args if isinstance(each, pa.Array)]
        types = [arg.type for arg in call.args]
        ids = None
        if arrays and rows > 1 and not any(pa.types.is_nested(each.type) for each in arrays):
            groups = grouped(arrays, rows)
            ids, firsts = groups.ids, pa.array(groups.firsts)
            args = [each.take(firsts) if isinstance(each, pa.Array) else each for each in args]
            rows = groups.count
        self.look(rows)
        evaluate = compile_value(Call(call.function, tuple(map(Column, range(len(types)), types)), call.type))
        columns = [_python(each, sql_type) for each, sql_type in zip(args, types, strict=True)]
        given = zip(*columns, strict=False) if arrays else [tuple(next(iter(each)) for each in columns)] * rows
        values = [evaluate(row) for row in limits.paced(given)]
        found = values_to_arrow(values, call.type)
        return found if ids is None else found.take(pa.array(ids))

    def _condition(
        self, args: Sequence[Scalar], batch: Batch, join: Callable[..., Any], comparison: str, *, until: bool
    ) -> Values:
        """AND, which is decided where it is false, or OR, where it is true."""
        result: Values = pa.scalar(not until)
        for several in _alike(args, comparison):
            if len(several) >= MANY_CONSTANTS and not lookup.any_can_fail(several):
                result = join(result, self._among(several, batch, equal=until))
                continue
            for each in several:
                result = join(result, self._undecided(each, result, batch, until=until))
        return result

    def _undecided(self, operand: Scalar, so_far: Values, batch: Batch, *, until: bool) -> Values:
        """An operand; if it can fail, only for rows that those before it have not decided. The others are arbitrary."""
        if not lookup.can_fail(operand):
            return self.values(operand, batch)
        if isinstance(so_far, pa.Scalar):
            return so_far if so_far.as_py() is until else self.values(operand, batch)
        left = np.flatnonzero(~pc.equal(so_far, until).fill_null(False).to_numpy(zero_copy_only=False))
        if len(left) == batch.rows:
            return self.values(operand, batch)
        return _scattered([(left, self.array(operand, batch.at(left)))], batch.rows, pa.bool_())

    def _among(self, comparisons: Sequence[Scalar], batch: Batch, *, equal: bool) -> Values:
        """`value IN (constants)`, or NOT IN."""
        first = comparisons[0]
        assert isinstance(first, Call)
        value = self.array(first.args[0], batch)
        constants = [each.args[1].value for each in comparisons]  # type: ignore[union-attr]
        known = values_to_arrow([each for each in constants if each is not None], first.args[1].type)
        found = pc.is_in(value, value_set=known)
        otherwise = pa.scalar(None if None in constants else False, pa.bool_())
        found = pc.if_else(found, True, otherwise)
        found = pc.if_else(pc.is_null(value), pa.scalar(None, pa.bool_()), found)
        return found if equal else pc.invert(found)

    def _case(self, case: Case, batch: Batch) -> Values:
        parts: list[tuple[Positions, Values]] = []
        left, here = np.arange(batch.rows, dtype=np.int64), batch
        for condition, value in case.branches:
            if not len(left):
                break
            chosen = self.true_at(condition, here)
            if chosen is None:
                parts.append((left, self.values(value, here)))
                left = left[:0]
                break
            if len(chosen):
                parts.append((left[chosen], self.values(value, here.at(chosen))))
                rest = np.delete(np.arange(here.rows, dtype=np.int64), chosen)
                left, here = left[rest], here.at(rest)
        if len(left):
            parts.append((left, self.values(case.otherwise, here)))
        return _scattered(parts, batch.rows, arrow_type(case.type))

    def _coalesce(self, coalesce: Coalesce, batch: Batch) -> Values:
        parts: list[tuple[Positions, Values]] = []
        left, here = np.arange(batch.rows, dtype=np.int64), batch
        for arg in coalesce.args:
            if not len(left):
                break
            values = self.array(arg, here)
            if not values.null_count:
                parts.append((left, values))
                break
            there = values.is_valid().to_numpy(zero_copy_only=False)
            parts.append((left[there], values.filter(pa.array(there))))
            rest = np.flatnonzero(~there)
            left, here = left[rest], here.at(rest)
        return _scattered(parts, batch.rows, arrow_type(coalesce.type))


def _repeated(value: pa.Scalar, rows: int) -> pa.Array:
    return pa.repeat(value, rows) if rows else pa.nulls(0, value.type)  # of no rows, Arrow repeats no list


def _scattered(parts: Sequence[tuple[Positions, Values]], rows: int, dtype: pa.DataType) -> pa.Array:
    """Values at the places that they are for; NULL elsewhere."""
    if len(parts) == 1 and len(parts[0][0]) == rows:
        positions, values = parts[0]
        if isinstance(values, pa.Array):
            return values if values.type == dtype else values.cast(dtype)
    whole = [
        _repeated(values, len(positions)) if isinstance(values, pa.Scalar) else values for positions, values in parts
    ]
    found = [each if each.type == dtype else each.cast(dtype) for each in whole]
    places = np.full(rows, -1, dtype=np.int64)
    start = 0
    for positions, _ in parts:
        places[positions] = np.arange(start, start + len(positions), dtype=np.int64)
        start += len(positions)
    there = places >= 0
    index = pa.array(places) if there.all() else pa.array(places, mask=~there)
    return pa.concat_arrays([*found, pa.nulls(0, dtype)]).take(index)


def _alike(conditions: Sequence[Scalar], comparison: str) -> list[list[Scalar]]:
    """The conditions in their order, in runs that compare the same value with constants."""
    return [list(run) for _, run in groupby(conditions, lambda each: _compared(each, comparison) or (id(each),))]


def _compared(condition: Scalar, comparison: str) -> Scalar | None:
    """What a condition compares with a constant, if such comparisons can be looked up in a set."""
    if not isinstance(condition, Call) or not condition.function.startswith(f"{comparison}("):
        return None
    compared, constant = condition.args
    same = arrow_type(compared.type) == arrow_type(constant.type) and compared.type.kind not in _WITHOUT_SETS
    return compared if same and isinstance(constant, Literal) else None


def _python(values: Values, sql_type: SqlType) -> Any:
    """Canonical values in Python; of one for all, without end."""
    column = pa.chunked_array([values if isinstance(values, pa.Array) else pa.repeat(values, 1)])
    settle = canonical(sql_type)
    found = values_from_arrow(column, sql_type)
    if settle is not None:
        found = [settle(each) for each in found]
    return found if isinstance(values, pa.Array) else repeat(found[0])
