"""Reductions: what values become, in both modes, and what cannot be."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.compute.ir.types import BOOLEAN, FLOAT8, INT2, INT8, JSONB, TEXT, SqlType, array_of, numeric
from everview.flow.errors import InvalidMaterialization, ReductionFailed, Retracted
from everview.flow.json_reductions import set_operation
from everview.flow.reduction import MISSING, Reducer, Reduction


def reduced(sql_type: SqlType, reduction: Any, *values: Any, full: bool = True) -> Any:
    """Values, or pairs of a value and its diff, reduced in order."""
    reducer = Reducer("f", sql_type, Reduction.parse(reduction))
    state = MISSING
    for each in values:
        value, diff = each if isinstance(each, tuple) else (each, 1)
        state = reducer.apply(state, reducer.load(value), diff, full)
    return reducer.dump(state)


@pytest.mark.parametrize(
    ("sql_type", "reduction", "values", "result"),
    [
        (INT8, "lastWriteWins", [1, 2, None], None),
        (INT8, "last", [1, (2, 1), (2, -1)], 2),
        (INT8, "firstWriteWins", [1, 2, 3], 1),
        (INT8, "sum", [-1, 3, 2], 4),
        (INT8, "sum", [4, 6, -7, -1], 2),
        (INT8, "sum", [5, (5, -1), (3, 2)], 6),
        (INT8, "sum", [None, 3], 3),
        (INT8, "sum", [None], None),
        (FLOAT8, "sum", [0.5, 0.25], 0.75),
        (
            numeric(38, 2),
            "sum",
            [Decimal("12345678901234567890123456789012345.67")] * 2,
            Decimal("24691357802469135780246913578024691.34"),
        ),
        (INT8, "minimize", [3, 1, 2, None], 1),
        (INT8, "max", [3, None, 7, 2], 7),
        (TEXT, "minimize", ["b", "a"], "a"),
        (FLOAT8, "maximize", [1.0, math.inf], math.inf),
        (
            JSONB,
            {"strategy": "maximize", "key": ["/n"]},
            ['{"n": 1}', '{"n": 3, "x": 1}', '{"n": 2}'],
            '{"n": 3, "x": 1}',
        ),
        (
            JSONB,
            "merge",
            ['{"a": {"b": 1}, "c": [1, 2]}', '{"a": {"d": 2}, "c": [9]}'],
            '{"a": {"b": 1, "d": 2}, "c": [9, 2]}',
        ),
        (
            JSONB,
            {"strategy": "merge", "key": "/k"},
            ['[{"k": 1, "v": 1}, {"k": 3}]', '[{"k": 1, "w": 2}, {"k": 2}]'],
            '[{"k": 1, "v": 1, "w": 2}, {"k": 2}, {"k": 3}]',
        ),
        (array_of(INT8), "append", [[1], [2, 3], None], [1, 2, 3]),
        (JSONB, "append", ["[1]", '["a", null]'], '[1, "a", null]'),
        (JSONB, "set", ['{"add": ["a", "b"]}', '{"remove": ["a"], "add": ["c"]}'], '{"add": ["b", "c"]}'),
        (JSONB, "set", ['{"add": ["a", "b"]}', '{"intersect": ["b"]}'], '{"add": ["b"]}'),
        (JSONB, "set", ['{"add": {"x": 1}}', '{"add": {"y": 2}}'], '{"add": {"x": 1, "y": 2}}'),
        (
            JSONB,
            "jsonSchemaMerge",
            ['{"type": "integer", "minimum": 2}', '{"type": "string", "minimum": 1}'],
            '{"type": ["integer", "string"], "minimum": 1}',
        ),
        (
            JSONB,
            "jsonSchemaMerge",
            [
                '{"properties": {"a": {"type": "null"}}, "required": ["a", "b"]}',
                '{"properties": {"b": {}}, "required": ["b"]}',
            ],
            '{"required": ["b"], "properties": {"a": {"type": "null"}, "b": {}}}',
        ),
    ],
)
def test_reduced(sql_type: SqlType, reduction: Any, values: list[Any], result: Any) -> None:
    assert reduced(sql_type, reduction, *values) == result


def test_nan_is_the_greatest() -> None:
    assert math.isnan(reduced(FLOAT8, "maximize", 1.0, math.nan, 2.0))
    assert reduced(FLOAT8, "minimize", math.nan, 2.0) == 2.0


@pytest.mark.parametrize(
    ("sql_type", "values"),
    [(INT2, [32767, 1]), (INT8, [-(2**63), -1]), (numeric(38, 0), [Decimal(9 * 10**37), Decimal(9 * 10**37)])],
)
def test_a_sum_that_does_not_fit_is_an_error(sql_type: SqlType, values: list[Any]) -> None:
    with pytest.raises(ReductionFailed):
        reduced(sql_type, "sum", *values)


@pytest.mark.parametrize("strategy", ["first", "minimize", "maximize"])
def test_what_cannot_be_undone_refuses_retractions(strategy: str) -> None:
    with pytest.raises(Retracted, match=r'field "f"'):
        reduced(INT8, strategy, 1, (1, -1))


def test_a_set_is_either_narrowed_or_cut() -> None:
    with pytest.raises(ReductionFailed, match="cannot be reduced by set"):
        reduced(JSONB, "set", '{"add": []}', '{"intersect": [], "remove": []}')
    with pytest.raises(ReductionFailed):
        reduced(JSONB, "set", '{"add": []}', '{"nope": []}')


@pytest.mark.parametrize(
    ("sql_type", "reduction"),
    [
        (TEXT, "sum"),
        (INT8, "merge"),
        (TEXT, "append"),
        (INT8, {"strategy": "minimize", "key": "/x"}),
        (JSONB, {"strategy": "append", "key": "/x"}),
        (INT8, {"strategy": "lastWriteWins", "delete": True}),
    ],
)
def test_types_must_fit(sql_type: SqlType, reduction: Any) -> None:
    with pytest.raises(InvalidMaterialization):
        Reducer("f", sql_type, Reduction.parse(reduction))


def test_reductions_as_json() -> None:
    for given_ in (
        {"strategy": "sum"},
        {"strategy": "merge", "key": ["/a"]},
        {"strategy": "lastWriteWins", "delete": True},
    ):
        assert Reduction.parse(given_).to_json() == given_
    Reducer("f", BOOLEAN, Reduction("lastWriteWins", delete=True))


MEMBERS = st.lists(st.sampled_from("abcd"), unique=True)


@st.composite
def operations(draw: st.DrawFn) -> dict[str, list[str]]:
    operation = {"add": draw(MEMBERS)}
    kind = draw(st.sampled_from(["", "intersect", "remove"]))
    return {**operation, kind: draw(MEMBERS)} if kind else operation


@given(MEMBERS, st.lists(operations(), min_size=1, max_size=5), st.integers(0, 5))
def test_sets_are_associative(base: list[str], steps: list[dict[str, list[str]]], cut: int) -> None:
    """Reduced one by one into the base, or first among themselves and then into it: the same."""
    one_by_one: Any = {"add": base}
    for step in steps:
        one_by_one = set_operation(one_by_one, step, (), full=True)
    combined: Any = {}
    for step in steps:
        combined = set_operation(combined, step, (), full=False)
    assert set_operation({"add": base}, combined, (), full=True) == one_by_one
    model = set(base)
    for step in steps:
        model = {each for each in model if each in step.get("intersect", model) and each not in step.get("remove", ())}
        model |= set(step["add"])
    assert set(one_by_one["add"]) == model
