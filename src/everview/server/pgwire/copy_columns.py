"""Blocks of COPY data as Arrow columns, where nothing in them is out of the ordinary.

Most lines are fields without quotes and escapes, of a form that Arrow reads as PostgreSQL does. A block of such lines
is read column by column. Whatever else a block holds, sound or not, it is left to the reader of rows, which knows all
forms and says in which line and column something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from everview.adapter.contract import Column, CopyFormat
from everview.compute.functions.contract import Failure
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.arrow import values_to_arrow
from everview.compute.rows.collection import canonical
from everview.compute.rows.texts import NULL_MARK, Texts, Values, is_plain, lines_in, plain_fields, quick_values
from everview.server.pgwire.values import read_column

Parse: TypeAlias = Callable[[bytes], Any]  # from a block to a pa.Table, or None
# Of these, a value that Arrow does not read may be one that nobody reads: which one, the reader of rows says.
_BY_ROW = frozenset(
    (
        *(Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT8, Kind.BOOLEAN),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
    )
)

__all__ = ["Parse", "block_parser", "lines_in"]


def block_parser(columns: Sequence[Column], form: CopyFormat) -> Parse | None:
    """Make a reader of blocks of whole lines. None if this format cannot be read by columns."""
    if form.kind == "binary" or not columns or not form.delimiter.isascii() or not form.null.isascii():
        return None
    if form.kind == "text" and (form.null != NULL_MARK or form.delimiter != "\t") and "\\" in form.null:
        return None
    names = [f"c{index}" for index in range(len(columns))]

    def read(block: bytes) -> pa.Table | None:
        texts = plain_fields(block, len(columns), form.delimiter, form.null) if _is_plain(block, form) else None
        if texts is None:
            return None
        try:
            found = [_converted(texts.column(index), column.type) for index, column in enumerate(columns)]
        except (pa.ArrowException, Failure):
            return None
        return None if any(each is None for each in found) else pa.table(found, names=names)

    return read


def _is_plain(block: bytes, form: CopyFormat) -> bool:
    """Whether fields are just what stands between delimiters and ends of lines."""
    if form.kind == "csv":
        return not any(each in block for each in (b"\r", b"\0", form.quote.encode(), b"\\."))
    if form.null != NULL_MARK or form.delimiter != "\t":
        return not any(each in block for each in (b"\r", b"\0", b"\\"))
    return is_plain(block)


def _converted(texts: Texts, to: SqlType) -> Values | None:
    """Read the values of a column. None if a value is written in a form that is not read here."""
    found = quick_values(texts, to)
    return _one_by_one(texts, to) if found is None and to.kind not in _BY_ROW else found


def _one_by_one(texts: Texts, to: SqlType) -> Values:
    """Values of types that Arrow does not read, each by itself."""
    fix = canonical(to)
    values = [None if text is None else read_column(text, to) for text in texts.to_pylist()]
    return pa.chunked_array([values_to_arrow(values if fix is None else [fix(each) for each in values], to)])
