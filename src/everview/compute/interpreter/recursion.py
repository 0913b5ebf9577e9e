"""WITH RECURSIVE: rounds until one brings nothing, with limits on their number and on their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.compute.functions.contract import Failure
from everview.compute.ir.relation import Recursive, Relation
from everview.compute.rows.collection import Errors, Result, Rows, add_all, add_failure

ROUNDS_MAX = 100_000
ROWS_MAX = 1_000_000

Evaluate = Callable[[Relation, Mapping[str, Result]], Result]


def evaluate_recursive(recursive: Recursive, evaluate: Evaluate) -> Result:
    """All rows of all rounds. Reaching a limit is an error of the query."""
    first = evaluate(recursive.base, {})
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
