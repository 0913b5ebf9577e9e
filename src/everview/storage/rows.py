"""Rows out of a reading: the first so many of them, and each as text, as JSON or as a line of CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.storage.observer import Reading
from everview.timely.consolidate import TIME

COUNT_ROWS_MAX = 10_000_000  # where there may be more, those that are left out are not counted


class FirstRows:
    """Tables of the first `limit` rows of a reading, or of all if it is 0; then `left_out` says how many are left.

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
    """The rows as Python values; dates and times as text, for Python does not reach all of theirs."""
    columns = [c.cast(pa.string()) if pa.types.is_temporal(c.type) else c for c in table.columns]
    return zip(*(column.to_pylist() for column in columns), strict=True)


def value_text(value: Any) -> str | None:
    """A value of a row in one line, with what a terminal might take for a command written out."""
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
    """The value as JSON has it; what JSON has no numbers for, and decimals, which must stay exact, become text."""
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


def csv_line(values: Iterable[Any]) -> str:
    """The values in a line of CSV; a NULL is empty, and an empty text is quoted."""
    return ",".join(_csv_field(value) for value in values)


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    value = json_value(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text and not any(character in text for character in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'
