"""What an evaluation has made is let go of piece by piece, and what it was given stays."""

from __future__ import annotations

import tracemalloc

import pytest

from everview.compute.allowance import ROW_BYTES, Allowance, OutOfMemory, allowing
from everview.compute.interpreter import limits
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Filter, Get, Join, Negate, Project, Relation, Union
from everview.compute.ir.scalar import Literal
from everview.compute.ir.types import BOOLEAN, INT4

MANY = 3 * limits.MANY_ROWS
ROWS = {(number,): 1 for number in range(MANY)}
TRUE = Literal(True, BOOLEAN)


def test_results_between_operators_are_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied: list[int] = []
    empty = limits.empty

    def look(rows: object) -> None:
        emptied.append(len(rows))  # type: ignore[arg-type]
        empty(rows)  # type: ignore[arg-type]

    monkeypatch.setattr(limits, "empty", look)
    plan: Relation = Get("t", (INT4,))
    for _ in range(3):
        plan = Negate(Filter(plan, (TRUE,)))
    given = dict(ROWS)
    result = evaluate(plan, {"t": given})
    assert given == ROWS and result.rows == dict.fromkeys(ROWS, -1)
    assert emptied.count(MANY) == 5, "all that was made but the result"


def test_what_two_read_stays_until_both_have() -> None:
    shared = Filter(Get("t", (INT4,)), (TRUE,))
    result = evaluate(Union((shared, Project(shared, (0,)), Get("t", (INT4,)))), {"t": ROWS})
    assert result.rows == dict.fromkeys(ROWS, 3) and len(ROWS) == MANY


def test_an_evaluation_that_ends_leaves_its_inputs() -> None:
    product = Join((Filter(Get("t", (INT4,)), (TRUE,)), Get("t", (INT4,))), ())
    given = dict(ROWS)
    with allowing(Allowance(memory_bytes=64 << 20)), pytest.raises(OutOfMemory):
        evaluate(product, {"t": given})
    assert given == ROWS


@pytest.mark.parametrize("kind", [list, dict])
def test_emptying_does_not_hold_others_up(kind: type) -> None:
    rows = kind.fromkeys(ROWS) if kind is dict else list(ROWS)
    with limits.emptied(rows):
        assert len(rows) == MANY
    assert not rows


def test_memory_of_a_row_is_not_estimated_too_low() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        rows = {(number, number + 1, f"row {number}"): 1 for number in range(1_000, 101_000)}
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / len(rows) < ROW_BYTES
