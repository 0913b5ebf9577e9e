"""The algebra that the registry states for an aggregate is how it is maintained: an incremental one is one entry."""

from __future__ import annotations

import ast
from decimal import Decimal
from pathlib import Path

import pytest

import everview.compute
from everview.compute.delta.first_rows import can_order
from everview.compute.delta.per_key import extreme_order, is_extreme
from everview.compute.delta.totals import is_additive
from everview.compute.functions import registry
from everview.compute.functions.aggregates import AGGREGATES
from everview.compute.functions.contract import Additive, AggregateFunction, Extreme, Function, Total
from everview.compute.functions.naming import NUMERIC
from everview.compute.functions.resolve import resolve
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Aggregate, Get, Reduce, Relation, walk
from everview.compute.ir.scalar import Call, Column, Scalar
from everview.compute.ir.types import INT4, INT8, Kind, SqlType, numeric
from everview.compute.optimize.computed_columns import computed_columns

KEY = Column(0, INT4)
INCREMENTAL = [each for each in AGGREGATES if isinstance(each.algebra, Total | Additive | Extreme)]
COMPUTE = Path(everview.compute.__path__[0])


def reduces(plan: Relation) -> list[Reduce]:
    return [each for each in walk(plan) if isinstance(each, Reduce)]


def over(entry: AggregateFunction, of: SqlType) -> Reduce:
    args = (Column(1, of),) if entry.args else ()
    result = entry.result if isinstance(entry.result, SqlType) else entry.result([of])
    return Reduce(Get("t", (INT4, of)), (KEY,), (Aggregate(entry.key, args, result),))


@pytest.mark.parametrize(
    "entry",
    [each for each in AGGREGATES if isinstance(each.algebra, Total | Additive | Extreme)],
    ids=lambda each: each.key,
)
def test_the_rules_follow_what_the_registry_states(entry: AggregateFunction) -> None:
    of = entry.args[0] if entry.args else INT4
    of = numeric(12, 2) if of.kind is Kind.NUMERIC else INT4 if of.kind is Kind.UNKNOWN else of
    plan = computed_columns(over(entry, of))
    lowest = reduces(plan)[-1]
    if isinstance(entry.algebra, Extreme):
        (aggregate,) = lowest.aggregates
        assert is_extreme(aggregate) == can_order((extreme_order(aggregate),))
    else:
        assert is_additive(lowest), entry.key


def _square(argument: Scalar) -> Scalar:
    found = resolve("*", [argument.type, argument.type])
    return Call(found.function.key, (argument, argument), found.result)


def _itself(argument: Scalar) -> Scalar:
    return argument


def _spread(to: SqlType, total: Decimal, squares: Decimal, count: int) -> Decimal:
    return (squares * count - total * total).quantize(Decimal(1).scaleb(-to.scale))


def test_an_incremental_aggregate_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    final = Function(
        "spread(numeric,numeric,int8)", "spread", (NUMERIC, NUMERIC, INT8), NUMERIC, _spread, "", typed=True
    )

    def evaluated(to: SqlType, rows: list[tuple[int]]) -> Decimal:
        values = [Decimal(value) for (value,) in rows]
        return _spread(to, sum(values, Decimal(0)), sum((each * each for each in values), Decimal(0)), len(values))

    entry = AggregateFunction(
        "spread(int4)", "spread", (INT4,), NUMERIC, evaluated, "", algebra=Additive((_itself, _square), final.key)
    )
    monkeypatch.setitem(registry.FUNCTIONS, final.key, final)
    monkeypatch.setitem(registry.AGGREGATES, entry.key, entry)
    plan = over(entry, INT4)
    rewritten = computed_columns(plan)
    (below,) = reduces(rewritten)
    assert is_additive(below) and not is_additive(plan)
    rows = {(1, 3): 2, (1, 5): 1, (1, None): 4, (2, 7): 1, (3, None): 1}
    assert evaluate(rewritten, {"t": rows}).rows == evaluate(plan, {"t": rows}).rows
    assert len(evaluate(plan, {"t": rows}).rows) == 3


def test_counts_and_sums_are_the_only_totals() -> None:
    assert {each.name for each in AGGREGATES if isinstance(each.algebra, Total)} == {"count", "sum"}


@pytest.mark.parametrize("package", ["optimize", "delta", "interpreter", "engine"])
def test_no_aggregate_is_known_by_its_name(package: str) -> None:
    names = {each.name for each in AGGREGATES}
    tested = []
    for path in (COMPUTE / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                parts: list[ast.AST] = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
                parts = list(node.args)
            else:
                continue
            texts = [each.value for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant)]
            tested += [f"{path.name}: {each!r}" for each in texts if str(each).partition("(")[0] in names]
    assert not tested
