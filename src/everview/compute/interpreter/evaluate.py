"""The meaning of plans: every operator as a function of collections, one function each.

Errors are data. A row for which an expression fails is left out, and its multiplicity counts towards the error; the
errors of the inputs are errors of the output; an error that comes to multiplicity zero is gone. Negate leaves errors
as they are, so that those of the two sides of an EXCEPT never cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.compute.allowance import allowance
from everview.compute.functions import lookup
from everview.compute.functions.contract import Failure
from everview.compute.interpreter import limits
from everview.compute.interpreter.join import evaluate_join
from everview.compute.interpreter.reduce import evaluate_accumulate, evaluate_reduce
from everview.compute.interpreter.scalars import compile_columns, compile_scalar, compile_value
from everview.compute.interpreter.topk import evaluate_topk
from everview.compute.interpreter.window import evaluate_window
from everview.compute.ir import relation as ir
from everview.compute.rows.collection import (
    Errors,
    Result,
    Row,
    Rows,
    add,
    add_all,
    add_failure,
    canonical_row,
    rows_of,
)
from everview.errors import EverviewError

ROUNDS_MAX = 100_000
ROWS_MAX = 1_000_000
NOTHING_MORE: Mapping[str, Result] = {}


class UnknownCollection(EverviewError):
    """A plan reads a collection that it was not given."""

    def __init__(self, name: str) -> None:
        super().__init__(f"internal error: no collection {name}")


def evaluate(plan: ir.Relation, inputs: Mapping[str, Rows | Result]) -> Result:
    """The rows and errors that the plan means over the inputs, whose rows are canonical."""
    scope = {name: each if isinstance(each, Result) else Result(each) for name, each in inputs.items()}
    made = limits.Made()
    try:
        return _evaluate(plan, scope, made)
    except EverviewError:
        made.end()
        raise


def _evaluate(plan: ir.Relation, scope: Mapping[str, Result], made: limits.Made) -> Result:
    allowed = allowance()
    before = allowed.live_bytes if allowed is not None else 0
    result = _operator(plan, scope, made)
    made.tidy()
    if not isinstance(plan, ir.Get | ir.Let):  # what these give is an input, or made by another operator
        made.add(result.rows)
    if allowed is not None:
        allowed.live_bytes = before  # what it was computed from is let go of
    limits.count(len(result.rows))
    return result


def _operator(plan: ir.Relation, scope: Mapping[str, Result], made: limits.Made) -> Result:
    def below(part: ir.Relation, more: Mapping[str, Result] = NOTHING_MORE) -> Result:
        return _evaluate(part, {**scope, **more} if more else scope, made)

    match plan:
        case ir.Constant(rows, schema):
            return Result(rows_of(rows, schema))
        case ir.Get(id):
            if id not in scope:
                raise UnknownCollection(id)
            return scope[id]
        case ir.Let(id, value, body):
            return below(body, {id: below(value)})
        case ir.Recursive():
            return _recursive(plan, below)
        case ir.Join(inputs):
            return evaluate_join(plan, list(map(below, inputs)))
        case ir.Union(inputs):
            return _union(list(map(below, inputs)))
        case ir.Project(input):
            return _project(plan, below(input))
        case ir.Map(input):
            return _map(plan, below(input))
        case ir.Filter(input):
            return _filter(plan, below(input))
        case ir.FlatMap(input):
            return _flat_map(plan, below(input))
        case ir.Reduce(input):
            return evaluate_reduce(plan, below(input))
        case ir.TopK(input):
            return evaluate_topk(plan, below(input))
        case ir.Window(input):
            return evaluate_window(plan, below(input))
        case ir.Threshold(input):
            found = below(input)
            return Result({row: count for row, count in found.rows.items() if count > 0}, found.errors)
        case ir.Negate(input):
            found = below(input)
            return Result({row: -count for row, count in found.rows.items()}, found.errors)
        case ir.Temporal():
            raise AssertionError("only a tick program knows times: see delta.temporal")
        case ir.Occurring(input):
            found = below(input)
            return Result(dict.fromkeys(found.rows, 1), found.errors)
        case ir.Accumulate(input):
            return evaluate_accumulate(plan, below(input))


def _recursive(recursive: ir.Recursive, evaluate: Callable[..., Result]) -> Result:
    """The rows of all rounds, until one brings nothing. Reaching a limit is an error of the query."""
    first = evaluate(recursive.base)
    rows: Rows = {}
    errors: Errors = dict(first.errors)
    latest = _new(first.rows, rows, distinct=recursive.distinct)
    rounds = count = 0
    while latest:
        add_all(rows, latest)
        rounds += 1
        count += sum(map(abs, latest.values()))
        if rounds > ROUNDS_MAX or count > ROWS_MAX:
            limits = f"more than {ROWS_MAX} rows, or took more than {ROUNDS_MAX} rounds"
            add_failure(errors, Failure("54000", f"WITH RECURSIVE gave {limits}"), 1)
            break
        found = evaluate(recursive.step, {recursive.id: Result(latest)})
        add_all(errors, found.errors)
        latest = _new(found.rows, rows, distinct=recursive.distinct)
    return Result(rows, errors)


def _new(found: Rows, known: Rows, *, distinct: bool) -> Rows:
    return {row: 1 for row in found if row not in known} if distinct else dict(found)


def _union(inputs: list[Result]) -> Result:
    rows, errors = dict(inputs[0].rows), dict(inputs[0].errors)
    for each in inputs[1:]:
        add_all(rows, each.rows)
        add_all(errors, each.errors)
    return Result(rows, errors)


def _project(project: ir.Project, below: Result) -> Result:
    read = compile_columns(project.columns)
    rows: Rows = {}
    for row, multiplicity in limits.paced(below.rows.items()):
        add(rows, read(row), multiplicity)
    return Result(rows, below.errors)


def _map(mapping: ir.Map, below: Result) -> Result:
    values = [compile_value(scalar) for scalar in mapping.scalars]

    def extend(row: Row) -> Row:
        for value in values:
            row = (*row, value(row))
        return row

    return _each_row(below, lambda row, multiplicity, rows: add(rows, extend(row), multiplicity), len(values))


def _filter(filtering: ir.Filter, below: Result) -> Result:
    predicates = [compile_scalar(predicate) for predicate in filtering.predicates]

    def keep(row: Row, multiplicity: int, rows: Rows) -> None:
        for predicate in predicates:
            if not predicate(row):
                return
        rows[row] = multiplicity

    return _each_row(below, keep, len(predicates))


def _flat_map(flat: ir.FlatMap, below: Result) -> Result:
    table = lookup.table_function(flat.function)
    args = [compile_scalar(arg) for arg in flat.args]
    settle = canonical_row(flat.added)

    def extend(row: Row, multiplicity: int, rows: Rows) -> None:
        values = [arg(row) for arg in args]
        if table.strict and any(value is None for value in values):
            return
        found: list[Row] = []  # all of them first, for a later one may fail
        with limits.emptied_if_ended(found):
            found.extend(limits.paced(table.evaluate(flat.added, *values)))
        for more in found:
            add(rows, row + settle(more), multiplicity)
        limits.look(len(rows))

    return _each_row(below, extend)


def _each_row(below: Result, step: Callable[[Row, int, Rows], None], parts: int = 1) -> Result:
    """An operator that works row by row, and evaluates so many expressions for each.

    Where the step fails it must not have added anything yet.
    """
    rows: Rows = {}
    errors: Errors = dict(below.errors)
    many = len(below.rows) > limits.between_looks(parts)
    with limits.emptied_if_ended(rows):
        for row, multiplicity in limits.paced(below.rows.items(), parts) if many else below.rows.items():
            try:
                step(row, multiplicity, rows)
            except Failure as failure:
                add_failure(errors, failure, multiplicity)
    return Result(rows, errors)
