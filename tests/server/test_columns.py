"""Messages made by columns have the bytes of messages made row by row, over all types, NULLs and odd values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.adapter.contract import Column, CopyFormat, Row
from everview.compute.ir import types as t
from everview.compute.ir.types import SqlType
from everview.compute.rows.arrow import values_to_arrow
from everview.compute.rows.collection import canonical, plain
from everview.server.pgwire import copy
from everview.server.pgwire.columns import messages
from everview.server.pgwire.values import BINARY, TEXT, row_encoder
from tests.server.test_values import TYPES, values_of

EXTRA: dict[SqlType, st.SearchStrategy[Any]] = {
    t.MZ_TIMESTAMP: st.integers(0, 2**63 - 1),
    t.numeric(18, 18): st.integers(-(10**18) + 1, 10**18 - 1).map(lambda value: Decimal(f"{value}e-18")),
    t.numeric(18, 5): st.integers(-(10**18) + 1, 10**18 - 1).map(lambda value: Decimal(f"{value}e-5")),
    t.numeric(3): st.integers(-999, 999).map(Decimal),
    t.PG_CHAR: st.sampled_from(["r", "", "é"]),
}
ALIASES = [(t.PG_OID, st.integers(0, 2**32 - 1)), *((each, st.just([1, 2])) for each in (t.INT2_VECTOR, t.OID_VECTOR))]
STRATEGIES = [*((each, values_of(each)) for each in TYPES), *EXTRA.items(), *ALIASES]
TEXTS = st.text(st.sampled_from("ab\\\t\n\r\b\f\v,|\"'é€😀.N -^]:7\x01"), max_size=8)
MARKS = st.sampled_from(["\\.", "\\N", "", "NULL"])
DELIMITERS = st.sampled_from(list("\t,| :-.é\x01^]b7"))
NULLS = st.sampled_from(["\\N", "", "NULL", "a"])
FORMATS = st.one_of(
    st.builds(
        CopyFormat,
        st.just("text"),
        st.sampled_from(list("\t,| :-.é\x01^]b7")),
        st.sampled_from(["\\N", "", "NULL", "a"]),
    ),
    st.builds(
        CopyFormat,
        st.just("csv"),
        DELIMITERS,
        NULLS,
        quote=st.sampled_from("\"'"),
        escape=st.sampled_from("\"'\\"),
        force_quote=st.sampled_from([(), (0,), (0, 1)]),
    ),
    st.just(CopyFormat("binary")),
)


EVERY_TYPE = pytest.mark.parametrize(
    ("sql_type", "strategy"), STRATEGIES, ids=lambda each: str(each) if isinstance(each, SqlType) else ""
)


def table_of(columns: Sequence[tuple[SqlType, list[Any]]]) -> tuple[pa.Table, list[Row]]:
    """The values as storage has them, and as rows are given to clients."""
    arrays, shown = [], []
    for sql_type, values in columns:
        settle = canonical(sql_type)
        arrays.append(values_to_arrow(values if settle is None else [settle(each) for each in values], sql_type))
        thaw = plain(sql_type)
        given = values if settle is None else [settle(each) for each in values]
        shown.append(given if thaw is None else [thaw(each) for each in given])
    table = pa.table(arrays, names=[f"c{index}" for index in range(len(arrays))])
    return table, list(zip(*shown, strict=True))


def columns_of(types: Sequence[SqlType]) -> list[Column]:
    return [Column(f"c{index}", each) for index, each in enumerate(types)]


@pytest.mark.parametrize(
    ("sql_type", "strategy"), STRATEGIES, ids=lambda each: str(each) if isinstance(each, SqlType) else ""
)
@pytest.mark.parametrize("form", [TEXT, BINARY])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_data_rows_of_every_type(sql_type: SqlType, strategy: Any, form: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=12))
    start = data.draw(st.integers(0, len(values) - 1))
    table, rows = table_of([(sql_type, values), (t.INT4, list(range(len(values)))), (sql_type, values[::-1])])
    columns = columns_of([sql_type, t.INT4, sql_type])
    expected = b"".join(map(row_encoder(columns, [form, TEXT, form]), rows[start:]))
    assert messages.data_rows(columns, [form, TEXT, form])(table.slice(start)) == expected


@pytest.mark.parametrize(
    ("sql_type", "strategy"), STRATEGIES, ids=lambda each: str(each) if isinstance(each, SqlType) else ""
)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_copy_data_of_every_type(sql_type: SqlType, strategy: Any, data: st.DataObject) -> None:
    form = data.draw(FORMATS)
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=8))
    texts = data.draw(st.lists(st.none() | TEXTS | MARKS, min_size=len(values), max_size=len(values)))
    table, rows = table_of([(sql_type, values), (t.TEXT, texts)])
    check_copy(columns_of([sql_type, t.TEXT]), form, table, rows)
    check_copy(columns_of([t.TEXT]), form, *table_of([(t.TEXT, texts)]))


def check_copy(columns: list[Column], form: CopyFormat, table: pa.Table, rows: list[Row]) -> None:
    forms, by_row = copy.forms(columns, form), copy.forms(columns, form).row
    if forms.table is None:
        assert form.kind == "text" and form.delimiter.isalnum()
        return
    assert forms.table(table.slice(0, 1)) == by_row(rows[0])
    assert forms.table(table.slice(1)) == b"".join(map(by_row, rows[1:]))


def test_pieces_have_few_rows_and_few_bytes() -> None:
    table = pa.table({"c0": ["x" * 100_000] * 20 + ["y"] * 20_000})
    found = list(messages.pieces(table))
    assert pa.concat_tables(found) == table
    assert all(each.num_rows <= messages.PIECE_ROWS_MAX for each in found)
    assert all(each.num_rows == 1 or each.nbytes <= messages.PIECE_BYTES_MAX for each in found)
    huge = pa.table({"c0": ["x" * (2 * messages.PIECE_BYTES_MAX)] * 2})
    assert [each.num_rows for each in messages.pieces(huge)] == [1, 1]
