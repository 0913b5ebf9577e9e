"""Rows of every type that a collection can have, with the values that are easily lost on the way."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from everview.compute.ir.infinite import INFINITY, MINUS_INFINITY

SCHEMA = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        ("bool", pa.bool_()),
        ("int8", pa.int8()),
        ("int16", pa.int16()),
        ("int32", pa.int32()),
        ("int64", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("decimal", pa.decimal128(38, 18)),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("date", pa.date32()),
        ("local", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("list", pa.list_(pa.int32())),
        ("struct", pa.struct([("months", pa.int32()), ("micros", pa.int64())])),
        ("nested", pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))]))),
        ("odd name, `quoted` 'twice' \\", pa.string()),
    ]
)

_EMPTY: list[Any] = [None] * (len(SCHEMA) - 1)


def rows() -> list[tuple[Any, ...]]:
    """A few rows, as `rows_of` gives them."""
    most = Decimal("99999999999999999999.999999999999999999")
    last = datetime(9999, 12, 31, 23, 59, 59, 999999)
    low = [False, -(2**7), -(2**15), -(2**31), -(2**63), -1.5, -math.inf, most.copy_negate(), "", b"", date(1, 1, 1)]
    low += [datetime(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC), (), (None, -(2**63)), (), ""]
    high = [True, 2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, math.inf, 1e308, most, 'ÿ\u2028\n\t"\\/ 𝄞']
    high += [bytes(range(256)), date(9999, 12, 31), last, last.replace(tzinfo=UTC), (1, None, 3), (2**31 - 1, 0)]
    high += [(("x", (0.1, None)), None, (None, None)), "z"]
    plain = [True, 1, 2, 3, 4, 0.10000000149011612, 0.1, Decimal("0.000000000000000001"), "null", b"\x00"]
    plain += [date(1970, 1, 1), datetime(2024, 2, 29, 12, 0, 0, 1), datetime(2024, 2, 29, 12, 0, 0, 100000, tzinfo=UTC)]
    plain += [(0,), (0, 0), (("", ()),), "NaN"]
    nan = list(_EMPTY)
    nan[SCHEMA.get_field_index("double") - 1] = math.nan
    nan[SCHEMA.get_field_index("float") - 1] = math.nan
    first, last_of_all = list(_EMPTY), list(_EMPTY)
    for name in ("date", "local", "zoned"):
        first[SCHEMA.get_field_index(name) - 1] = MINUS_INFINITY
        last_of_all[SCHEMA.get_field_index(name) - 1] = INFINITY
    return [(number, *row) for number, row in enumerate((low, high, plain, nan, _EMPTY, first, last_of_all))]
