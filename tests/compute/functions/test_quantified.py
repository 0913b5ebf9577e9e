"""`= ANY` and `<> ALL` of long arrays: NULLs as in SQL, and one array for many rows is made ready once."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from everview.compute.functions.arrays import FUNCTIONS
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import FLOAT8, INT4, JSONB, TEXT, SqlType, array_of, numeric

COUNT = 200_000


@pytest.mark.parametrize(
    ("sql_type", "value", "others", "equal"),
    [
        (INT4, 7, [8] * COUNT, 7),
        (TEXT, "a", ["A"] * COUNT, "a"),
        (numeric().base, Decimal("1.50"), [Decimal(2)] * COUNT, Decimal("1.5")),
        (FLOAT8, math.nan, [0.0] * COUNT, math.nan),
        (JSONB, "1", ["true"] * COUNT, "1"),
    ],
    ids=lambda value: str(value)[:10],
)
def test_any_and_all(sql_type: SqlType, value: Any, others: list[Any], equal: Any) -> None:
    is_any, is_none = (
        next(each for each in FUNCTIONS if each.name == name and each.args[0] == sql_type).evaluate
        for name in ("any_eq", "all_ne")
    )
    cases: list[tuple[Any, Any, Any]] = [
        *((value, others, False), (value, [*others, equal], True), (value, [equal, None, *others], True)),
        *((value, [*others, None], None), (None, others, None), (None, [], False), (value, [], False)),
        *((value, None, None), (None, [None], None), (value, [None] * COUNT, None)),
    ]
    for given, values, expected in cases:
        assert is_any(given, values) is expected
        assert is_none(given, values) is (None if expected is None else not expected)


def test_an_array_that_rows_share_is_thawed_once() -> None:
    read = compile_scalar(Column(0, array_of(INT4)))
    shared = tuple(range(1_000))
    assert read((shared, 1)) == [*shared] and read((shared, 2)) is read((shared, 3))
    assert read((None,)) is None and read(((1,),)) == [1] and read(((2,),)) == [2] and read((shared,)) == [*shared]
