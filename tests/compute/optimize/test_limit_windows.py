"""Windows of which only the first rows are wanted: with a limit below them they give the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Filter, Order, Project, Relation, TopK, Window, walk
from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import INT4, INT8
from everview.compute.optimize.limit_windows import limit_windows
from everview.compute.optimize.pipeline import optimize
from tests.compute.optimize.pairs import SAFE_SUM, T
from tests.compute.terms import call, col, compare, lit, window

NUMBER = window("row_number()", INT8)
RANK = window("rank()", INT8)
LAG = window("lag(anycompatible)", INT4, col(0))


def a_window(rng: random.Random) -> Window:
    choice: list[Scalar] = [col(0), col(1), SAFE_SUM]
    partition = tuple(rng.sample(choice, rng.randrange(3)))
    order = tuple(Order(col(at), descending=rng.random() < 0.5) for at in rng.sample(range(2), rng.randrange(3)))
    return Window(T, partition, order, tuple(rng.choice([(NUMBER,), (RANK, NUMBER), (NUMBER, NUMBER)])))


def a_limit(rng: random.Random, column: int) -> Scalar:
    number, limit = col(column, INT8), lit(rng.randrange(-1, 5), INT8)
    operator, turned = rng.choice([("le", "ge"), ("lt", "gt"), ("eq", "eq")])
    if rng.random() < 0.5:
        return call(f"{turned}(int8,int8)", limit, number)
    return call(f"{operator}(int8,int8)", number, limit)


@pytest.mark.parametrize("number", range(100))
def test_the_first_rows_are_the_same(number: int, rng: random.Random) -> None:
    found = a_window(rng)
    plan: Relation = Filter(found, (compare("gt", col(0), lit(0)), a_limit(rng, 1 + len(found.functions))))
    plan = Project(plan, tuple(rng.sample(range(2 + len(found.functions)), 2)))
    rows = Counter((rng.choice([None, *range(4)]), rng.choice([None, *range(4)])) for _ in range(rng.randrange(40)))
    limited = limit_windows(plan)
    assert any(isinstance(each, TopK) for each in walk(limited))
    assert limit_windows(limited) == limited
    for rewritten in (limited, optimize(plan)):
        assert evaluate(rewritten, {"t": dict(rows)}).rows == evaluate(plan, {"t": dict(rows)}).rows


@pytest.mark.parametrize(
    ("functions", "predicate"),
    [
        ((NUMBER,), call("gt(int8,int8)", col(2, INT8), lit(2, INT8))),
        ((NUMBER,), compare("lt", col(0), lit(2))),
        ((RANK,), call("lt(int8,int8)", col(2, INT8), lit(2, INT8))),
        ((NUMBER, LAG), call("lt(int8,int8)", col(2, INT8), lit(2, INT8))),
    ],
)
def test_others_are_left_alone(functions: tuple[object, ...], predicate: Scalar) -> None:
    plan = Filter(Window(T, (col(0),), (Order(col(1)),), functions), (predicate,))  # type: ignore[arg-type]
    assert limit_windows(plan) == plan
