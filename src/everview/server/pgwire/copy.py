"""Rows to COPY data and back: lines, fields, and values of the columns' types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from everview.adapter.contract import Column, CopyFormat, Row
from everview.compute.functions.contract import Failure
from everview.compute.functions.output import to_text
from everview.compute.ir.types import VECTORS, Kind, SqlType
from everview.compute.sql.errors import SqlError
from everview.server.pgwire import copy_binary, copy_binary_columns, copy_columns, copy_fields
from everview.server.pgwire.backend import copy_data
from everview.server.pgwire.columns.messages import Forms, copy_rows
from everview.server.pgwire.copy_lines import BAD_COPY, LINE_BYTES_MAX, Lines
from everview.server.pgwire.values import read_column

BLOCK_BYTES = 1 << 20  # that are read by columns at once
QUICK_BYTES_MIN = 2_000  # fewer are read faster by rows
_SHOWN_MAX = 100


class CopyError(SqlError):
    """Something is wrong with the data; `where` says in which line and column."""

    def __init__(self, error: SqlError | Failure, where: str) -> None:
        detail, hint = (error.detail, error.hint) if isinstance(error, SqlError) else (None, None)
        super().__init__(error.sqlstate, error.message, detail=detail, hint=hint)
        self.where = where


class RowReader:
    """Takes the bytes of COPY data as they come, gives rows."""

    def __init__(self, columns: Sequence[Column], form: CopyFormat) -> None:
        self._columns = columns
        self._lines = Lines(form)
        self._split = copy_fields.splitter(form)
        self._header = form.header
        self._line = 0
        self._ended = False

    def feed(self, data: bytes) -> Iterator[Row]:
        """The rows that are complete now."""
        return self._rows(self._lines.feed(data))

    def finish(self) -> Iterator[Row]:
        """The rows that are left."""
        return self._rows(self._lines.finish())

    @property
    def header_awaited(self) -> bool:
        """Whether the next line is a header."""
        return self._header

    @property
    def between_lines(self) -> bool:
        """Whether the next byte begins a line with a row, so that others may read on from here."""
        return not self._ended and not self._header and self._lines.between

    @property
    def line_end(self) -> bytes | None:
        """How lines end; None as long as there was none."""
        return self._lines.end

    def passed(self, lines: int, line_end: bytes) -> None:
        """So many lines, which end like this, were read by someone else."""
        self._line += lines
        self._lines.end = line_end

    def _rows(self, lines: Iterator[bytes]) -> Iterator[Row]:
        while not self._ended:
            try:
                line = next(lines)
            except StopIteration:
                return
            except SqlError as error:
                raise CopyError(error, f"COPY, line {self._line + 1}") from None
            self._line += 1
            if self._header:
                self._header = False
            elif line == copy_fields.END_MARKER:
                self._ended = True
            else:
                yield self._row(line)

    def _row(self, line: bytes) -> Row:
        try:
            fields = self._split(line)
            if len(fields) > len(self._columns):
                raise SqlError(BAD_COPY, "extra data after last expected column")
            if len(fields) < len(self._columns):
                raise SqlError(BAD_COPY, f'missing data for column "{self._columns[len(fields)].name}"')
        except SqlError as error:
            shown = line[:_SHOWN_MAX].decode(errors="replace")
            raise CopyError(error, f'COPY, line {self._line}: "{shown}"') from None
        return tuple(map(self._value, fields, self._columns))

    def _value(self, field: str | None, column: Column) -> Any:
        if field is None:
            return None
        try:
            return read_column(field, column.type)
        except Failure as error:
            where = f'COPY, line {self._line}, column {column.name}: "{field[:_SHOWN_MAX]}"'
            raise CopyError(error, where) from None


class BinaryReader:
    """Takes the bytes of binary COPY data as they come, gives whole blocks of rows where it can, else rows."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._rows = copy_binary.BinaryRows(columns, self._explained)
        self._line = 0
        self._held: list[bytes] = []
        self._held_bytes = 0

    def feed(self, data: bytes) -> Iterator[Row | pa.Table]:
        """What is complete now."""
        if self._rows.begun and not self._rows.between:
            yield from self._by_row(data)
            return
        self._held.append(data)
        self._held_bytes += len(data)
        if not self._rows.begun and self._held_bytes >= copy_binary.HEADER_BYTES:
            block = b"".join(self._held)
            yield from self._by_row(block[: copy_binary.HEADER_BYTES])
            self._hold(block[copy_binary.HEADER_BYTES :])
        elif self._held_bytes >= BLOCK_BYTES:
            yield from self._block()

    def _hold(self, data: bytes) -> None:
        self._held, self._held_bytes = [data], len(data)

    def finish(self) -> Iterator[Row | pa.Table]:
        """What is left; or something is missing."""
        if self._rows.between:
            yield from self._block()
        yield from self._by_row(b"".join(self._held))
        self._rows.finish()

    def _block(self) -> Iterator[Row | pa.Table]:
        """The rows of what is held. What is odd about it, the reader of rows tells, or reads."""
        block = b"".join(self._held)
        table, end = None, 0
        if self._columns and len(block) >= QUICK_BYTES_MIN:
            table, end = copy_binary_columns.read_block(block, self._columns)
        end = end or len(block)
        self._hold(block[end:])
        if table is None or not table.num_rows:
            yield from self._by_row(block[:end])
        else:
            self._line += table.num_rows
            yield table

    def _by_row(self, data: bytes) -> Iterator[Row]:
        for row in self._rows.feed(data):
            self._line += 1
            yield row

    def _explained(self, error: SqlError | Failure, column: int | None) -> SqlError:
        where = f"COPY, line {self._line + 1}"
        return CopyError(error, where if column is None else f"{where}, column {self._columns[column].name}")


class BlockReader:
    """Takes the bytes of COPY data as they come, gives whole blocks of rows where it can, else rows."""

    def __init__(self, columns: Sequence[Column], form: CopyFormat, parser: copy_columns.BlockParser) -> None:
        self._rows = RowReader(columns, form)
        self._parser = parser
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._next_bytes = BLOCK_BYTES  # that are to be held before it is looked at them

    def feed(self, data: bytes) -> Iterator[Row | pa.Table]:
        """What is complete now."""
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes < self._next_bytes:
            return
        block = b"".join(self._held)
        end = self._parser.end(block)
        self._held, self._held_bytes = [block[end:]], len(block) - end
        # Of a long line, what is held is not looked at again with every piece that comes.
        self._next_bytes = max(BLOCK_BYTES, 2 * self._held_bytes)
        if end:
            yield from self._block(block[:end])
        elif self._held_bytes > LINE_BYTES_MAX:  # the reader of rows says what is wrong with it
            yield from self._rows.feed(self._held.pop())
            self._held_bytes, self._next_bytes = 0, BLOCK_BYTES

    def finish(self) -> Iterator[Row | pa.Table]:
        """What is left."""
        yield from self._block(b"".join(self._held))
        yield from self._rows.finish()

    def _block(self, block: bytes) -> Iterator[Row | pa.Table]:
        if self._rows.header_awaited:
            first = block.find(b"\n") + 1
            yield from self._rows.feed(block[:first])
            block = block[first:]
        found = None
        if len(block) >= QUICK_BYTES_MIN and self._rows.between_lines:
            found = self._parser.read(block, self._rows.line_end)
        if found is None:
            yield from self._rows.feed(block)
        else:
            table, line_end = found
            self._rows.passed(table.num_rows, line_end)
            yield table


def read_rows(chunks: Iterable[bytes], columns: Sequence[Column], form: CopyFormat) -> Iterator[Row | pa.Table]:
    """The rows of COPY data that come in chunks, one by one or in blocks; no more than a block is held."""
    parser = copy_columns.block_parser(columns, form)
    reader: BinaryReader | BlockReader | RowReader
    if form.kind == "binary":
        reader = BinaryReader(columns)
    else:
        reader = RowReader(columns, form) if parser is None else BlockReader(columns, form, parser)
    for chunk in chunks:
        yield from reader.feed(chunk)
    yield from reader.finish()


def forms(columns: Sequence[Column], form: CopyFormat) -> Forms:
    """What makes CopyData messages of rows: one for each, as clients that want rows expect.

    The header of the binary format is part of the first message, as it is PostgreSQL's and clients expect.
    """
    before = [copy_binary.HEADER] if form.kind == "binary" else []
    return Forms(row_encoder(columns, form, before), copy_rows(columns, form, before))


def row_encoder(columns: Sequence[Column], form: CopyFormat, before: list[bytes]) -> Callable[[Row], bytes]:
    """What makes a CopyData message of a row; the first one begins with what is `before` it."""
    if form.kind == "binary":
        join_binary = copy_binary.joiner(columns)
        return lambda row: copy_data((before.pop() if before else b"") + join_binary(row))
    join = copy_fields.joiner(form)
    writers = [_writer(column.type) for column in columns]

    def encode(row: Row) -> bytes:
        fields = [None if each is None else write(each) for each, write in zip(row, writers, strict=True)]
        return copy_data(join(fields))

    return encode


def trailer(form: CopyFormat, rows: int) -> bytes:
    """The CopyData message behind so many rows, or nothing if the format has no trailer."""
    if form.kind != "binary":
        return b""
    return copy_data(copy_binary.TRAILER if rows else copy_binary.HEADER + copy_binary.TRAILER)


def header(columns: Sequence[Column], form: CopyFormat) -> bytes:
    """The CopyData message with the names of the columns, or nothing if the format has no header."""
    return copy_data(copy_fields.joiner(form)([column.name for column in columns])) if form.header else b""


def _writer(sql_type: SqlType) -> Callable[[Any], str]:
    if sql_type.kind in (Kind.TEXT, Kind.VARCHAR, Kind.INT2, Kind.INT4, Kind.INT8):
        return str
    if sql_type.alias in VECTORS:
        return lambda value: " ".join(map(str, value))
    return lambda value: to_text(value, sql_type)
