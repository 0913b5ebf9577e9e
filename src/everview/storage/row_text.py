"""Rows out of a reading: the first so many of them, and each as text, as JSON or as a line of CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.storage.observer import Reading
from everview.timely.consolidate import TIME

COUNT_ROWS_MAX = 10_000_000  # where there may be more, those that are left out are not counted


class FirstRows:
    """The first `limit` rows of a reading as tables, all rows if it is 0; then `left_out` has the number of others.

    First in the order in which they are stored, or by time: then all are read and only the earliest kept. Memory is
    bounded either way, for all rows are only ever given in the order in which they are stored.
    """

    def __init__(self, reading: Reading, limit: int, *, by_time: bool) -> None:
        self._reading, self._limit, self._by_time = reading, limit, by_time
        self.left_out = 0
        self.counted = True

    def __iter__(self) -> Iterator[pa.Table]:
        return self._earliest() if self._by_time and self._limit else self._in_order()

    def _in_order(self) -> Iterator[pa.Table]:
        wanted = self._limit or math.inf
        for table in self._reading:
            some = table.slice(0, int(min(wanted, table.num_rows)))
            wanted -= some.num_rows
            self.left_out += table.num_rows - some.num_rows
            if some.num_rows:
                yield some
            if wanted == 0 and self._reading.rows_max > COUNT_ROWS_MAX:
                self.left_out, self.counted = self._reading.rows_max - self._limit, False
                return

    def _earliest(self) -> Iterator[pa.Table]:
        kept: pa.Table | None = None
        for table in self._reading:
            both = table if kept is None else pa.concat_tables([kept, table])
            kept = both.take(pc.sort_indices(both.column(TIME))[: self._limit]).combine_chunks()
            self.left_out += both.num_rows - kept.num_rows
        if kept is not None:
            yield kept


def row_values(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows as Python values; dates and times as text, because Python's have a smaller range."""
    return zip(*_column_values(table), strict=True)


def _column_values(table: pa.Table) -> list[list[Any]]:
    return [_readable(column).to_pylist() for column in table.columns]


def _readable(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The column with dates and timestamps as text, those in lists too."""
    if pa.types.is_temporal(column.type):
        return _moments(column)
    if not pa.types.is_list(column.type) or not pa.types.is_temporal(column.type.value_type):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    texts = pa.list_(pa.string())
    return pa.chunked_array(
        [
            pa.array([None if not each.is_valid else _moments(each.values).to_pylist() for each in chunk], texts)
            for chunk in chunks
        ],
        texts,
    )


def _moments(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Dates and timestamps as text; the greatest and the least number of the type are the infinities."""
    word = pa.int32() if column.type.bit_width == 32 else pa.int64()
    numbers, text = column.cast(word), column.cast(pa.string())
    most = 2 ** (word.bit_width - 1) - 1
    for number, name in ((most, "infinity"), (-most - 1, "-infinity")):
        text = pc.if_else(pc.equal(numbers, pa.scalar(number, word)), name, text)
    return text


def value_text(value: Any) -> str | None:
    """A value in one line; characters that would control a terminal are escaped."""
    if value is None:
        return None
    if isinstance(value, str):
        return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, list | dict):
        return value_text(json.dumps(json_value(value), ensure_ascii=False))
    return str(value)


def json_value(value: Any) -> Any:
    """The value for JSON. Decimals, NaN and infinities become text, to stay exact."""
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, dict):
        return {name: json_value(each) for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def json_lines(table: pa.Table) -> Iterator[str]:
    """The rows as JSON objects, a line each."""
    columns = [
        values if pa.types.is_integer(field.type) or pa.types.is_string(field.type) else map(json_value, values)
        for field, values in zip(table.schema, _column_values(table), strict=True)
    ]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return (encode(dict(zip(table.column_names, row, strict=True))) for row in zip(*columns, strict=True))


def csv_header(names: Sequence[str]) -> str:
    """The names of the columns as a line of CSV."""
    return ",".join(_csv_texts(pa.array(names)).to_pylist())


def csv_lines(table: pa.Table) -> list[str]:
    """The rows as lines of CSV; a NULL is empty, and an empty text is quoted."""
    columns = [_csv_texts(column) for column in table.combine_chunks().columns]
    return pc.binary_join_element_wise(*columns, ",").to_pylist()  # type: ignore[no-any-return]


def _csv_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_binary(column.type) or pa.types.is_nested(column.type):
        column = pa.array([_text(value) for value in _readable(column).to_pylist()], pa.string())
    elif pa.types.is_temporal(column.type):
        return pc.fill_null(_moments(column), "")
    elif not pa.types.is_string(column.type):
        return pc.fill_null(column.cast(pa.string()), "")
    special = pc.match_substring_regex(column, '[",\r\n]|^$')
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    return pc.fill_null(pc.if_else(special, quoted, column), "")


def _text(value: Any) -> str | None:
    if value is None:
        return None
    value = json_value(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
