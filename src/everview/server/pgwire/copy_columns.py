"""Blocks of COPY data as Arrow columns, where nothing in them is out of the ordinary.

Most fields are of a form that Arrow reads as PostgreSQL does, also those in quotes and with usual escapes. A block of
such lines is read column by column. Whatever else a block holds, sound or not, it is left to the reader of rows, which
knows all forms and says in which line and column something is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from everview.adapter.contract import Column, CopyFormat
from everview.compute.functions.contract import Failure
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.arrow import values_to_arrow
from everview.compute.rows.collection import canonical
from everview.compute.rows.texts import (
    NULL_MARK,
    Texts,
    Values,
    csv_fields,
    end_of_last_line,
    plain_fields,
    quick_values,
    text_fields,
)
from everview.server.pgwire.values import read_column

# Of these, a value that Arrow does not read may be one that nobody reads: which one, the reader of rows says.
_BY_ROW = frozenset(
    (
        *(Kind.INT2, Kind.INT4, Kind.INT8, Kind.NUMERIC, Kind.FLOAT8, Kind.BOOLEAN),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ),
    )
)


class BlockParser:
    """Reads blocks of whole lines of one format."""

    def __init__(self, columns: Sequence[Column], form: CopyFormat) -> None:
        self._columns, self._form = columns, form
        self._names = [f"c{index}" for index in range(len(columns))]
        self._doubles = form.kind == "csv" and form.escape == form.quote and form.quote.isascii()

    def end(self, block: bytes) -> int:
        """Where the last whole line of data ends that begin with a line; 0 if there is none."""
        return end_of_last_line(block, self._form.quote if self._doubles else None)

    def read(self, block: bytes, line_end: bytes | None) -> tuple[pa.Table, bytes] | None:
        """The rows of whole lines, and how lines end; None if it is left to the reader of rows.

        `line_end` says how the lines before ended, if there were any.
        """
        by_both = b"\r" in block
        if by_both:
            if not block.count(b"\r") == block.count(b"\n") == block.count(b"\r\n"):
                return None
            block = block.replace(b"\r\n", b"\n")
        ends = b"\r\n" if by_both else b"\n"
        if line_end not in (None, ends):
            return None
        texts = self._fields(block, multiline=not by_both)
        if texts is None:
            return None
        try:
            found = [_converted(texts.column(index), each.type) for index, each in enumerate(self._columns)]
        except (pa.ArrowException, Failure):
            return None
        return None if any(each is None for each in found) else (pa.table(found, names=self._names), ends)

    def _fields(self, block: bytes, *, multiline: bool) -> pa.Table | None:
        form, width = self._form, len(self._columns)
        if b"\0" in block:
            return None
        if form.kind == "csv":
            if b"\\." in block:
                return None
            if self._doubles:
                return csv_fields(block, width, form.delimiter, form.null, form.quote, multiline=multiline)
            if form.quote.encode() in block:
                return None
        elif form.null == NULL_MARK and form.delimiter == "\t":
            return text_fields(block, width)
        elif b"\\" in block:
            return None
        return plain_fields(block, width, form.delimiter, form.null)


def block_parser(columns: Sequence[Column], form: CopyFormat) -> BlockParser | None:
    """Make a reader of blocks. None if this format cannot be read by columns."""
    if form.kind == "binary" or not columns or not form.delimiter.isascii() or not form.null.isascii():
        return None
    if form.kind == "text" and (form.null != NULL_MARK or form.delimiter != "\t") and "\\" in form.null:
        return None
    return BlockParser(columns, form)


def _converted(texts: Texts, to: SqlType) -> Values | None:
    """Read the values of a column. None if a value is written in a form that is not read here."""
    found = quick_values(texts, to)
    return _one_by_one(texts, to) if found is None and to.kind not in _BY_ROW else found


def _one_by_one(texts: Texts, to: SqlType) -> Values:
    """Values of types that Arrow does not read, each by itself."""
    fix = canonical(to)
    values = [None if text is None else read_column(text, to) for text in texts.to_pylist()]
    return pa.chunked_array([values_to_arrow(values if fix is None else [fix(each) for each in values], to)])
