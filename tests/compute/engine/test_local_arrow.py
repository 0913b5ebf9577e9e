"""Collections to Arrow and back, in every type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from everview.compute.interpreter.ordering import order_key
from everview.compute.ir.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    MZ_TIMESTAMP,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Interval,
    SqlType,
    array_of,
    arrow_type,
    numeric,
)
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import rows_of
from everview.timely.consolidate import MultiplicityOverflow

# Two values of each type, the smaller first.
PAIRS: list[tuple[SqlType, Any, Any]] = [
    (BOOLEAN, False, True),
    (INT2, -1, 2),
    (INT4, -1, 2**31 - 1),
    (INT8, -(2**63), 2),
    (FLOAT4, 0.5, math.nan),
    (FLOAT8, math.inf, math.nan),
    (FLOAT8, -0.0, 1e-300),
    (numeric(10, 2), Decimal("-1.5"), Decimal("0")),
    (numeric(), Decimal("1"), Decimal("1.000000000000000001")),
    (TEXT, "Z", "a"),
    (TEXT, "\uffff", "\U0001f600"),
    (BYTEA, b"", b"\x00"),
    (DATE, date(1, 1, 1), date(2024, 2, 29)),
    (TIME, 0, 86_399_999_999),
    (TIMESTAMP, datetime(1969, 12, 31, 23, 59), datetime(2024, 1, 1, 0, 0, 0, 1)),
    (TIMESTAMPTZ, datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)),
    (INTERVAL, Interval(0, 29, 0), Interval(1, 0, 0)),
    (INTERVAL, Interval(0, 30, 0), Interval(1, 0, 0)),
    (UUID, "00000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000000"),
    (JSONB, '"b"', "1"),
    (JSONB, "[2]", "[1, 1]"),
    (JSONB, "9", "10"),
    (MZ_TIMESTAMP, 1, 2),
    (array_of(INT4), [1, 2], [1, None]),
    (array_of(TEXT), [], ["a"]),
    (array_of(INTERVAL), [Interval(0, 0, 1)], [Interval(0, 1, 0)]),
    (array_of(FLOAT8), [1.0], [math.nan]),
]


@pytest.mark.parametrize(("sql_type", "small", "large"), PAIRS, ids=lambda each: str(each)[:20])
def test_there_and_back(sql_type: SqlType, small: Any, large: Any) -> None:
    rows = rows_of([((small, 1), 1), ((large, 2), -2), ((None, 3), 3)], (sql_type, INT4))
    table = rows_to_arrow(rows, (sql_type, INT4))
    assert table.schema.names == ["c0", "c1", "_diff"]
    assert table.schema.field("c0").type == arrow_type(sql_type)
    assert rows_from_arrow(table, (sql_type, INT4)) == rows


@pytest.mark.parametrize(("sql_type", "small", "large"), PAIRS, ids=lambda each: str(each)[:20])
def test_the_order_is_total(sql_type: SqlType, small: Any, large: Any) -> None:
    low, high, null = (order_key(sql_type)(value) for value in (small, large, None))
    assert low < high < null
    assert order_key(sql_type)(small) == low


def test_without_diffs_rows_count_once() -> None:
    table = pa.table({"a": [1, 1, None]})
    assert rows_from_arrow(table, (INT8,)) == {(1,): 2, (None,): 1}


def test_rows_without_columns() -> None:
    table = rows_to_arrow({(): 3}, ())
    assert rows_from_arrow(table, ()) == {(): 3}
    assert rows_to_arrow({}, (INT4,)).num_rows == 0


def test_numerics_take_the_scale_of_their_type() -> None:
    ((value,),) = rows_of([((Decimal("-0"),), 1)], (numeric(10, 2),))
    assert str(value) == "0.00"
    ((value,),) = rows_of([((Decimal("1.5"),), 1)], (numeric(10, 2),))
    assert str(value) == "1.50"


def test_a_row_that_occurs_too_often_is_an_error_of_its_own() -> None:
    with pytest.raises(MultiplicityOverflow, match="64 bits"):
        rows_to_arrow({(1,): 2**63}, (INT4,))
