"""Rows as wire messages, a piece of a table at once: one buffer of DataRows, or of CopyData with a row each.

The bytes are those of the encoders of rows (`values.row_encoder`, `copy.row_encoder`), which tests compare them with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.adapter.contract import Column, CopyFormat, Row
from everview.server.pgwire.backend import copy_data
from everview.server.pgwire.columns import copy_fields
from everview.server.pgwire.columns.binaries import binary
from everview.server.pgwire.columns.cells import Block, Cells, block_of, bytes_of, cells_of
from everview.server.pgwire.columns.texts import text
from everview.server.pgwire.values import TEXT

Encode: TypeAlias = Callable[[pa.Table], bytes]  # from a piece of a table to the messages of its rows
PIECE_ROWS_MAX, PIECE_BYTES_MAX = 8_192, 512 << 10
_HEAD_BYTES = 4  # the length of a message, which counts itself
_NULL_SIZE = -1


@dataclass(frozen=True, slots=True)
class Forms:
    """What makes messages of a row, and of a table. The latter is None if tables have to be written row by row."""

    row: Callable[[Row], bytes]
    table: Encode | None


def pieces(table: pa.Table) -> Iterator[pa.Table]:
    """A table in parts of few rows and few bytes, but never less than a row."""
    for start in range(0, table.num_rows, PIECE_ROWS_MAX):
        yield from _halved(table.slice(start, PIECE_ROWS_MAX))


def _halved(table: pa.Table) -> Iterator[pa.Table]:
    if table.num_rows <= 1 or table.nbytes <= PIECE_BYTES_MAX:
        yield table
        return
    half = table.num_rows // 2
    yield from _halved(table.slice(0, half))
    yield from _halved(table.slice(half))


def data_rows(columns: Sequence[Column], formats: Sequence[int]) -> Encode:
    """What makes DataRows, their values in these formats."""
    writers = [text if form == TEXT else binary for form in formats]
    count = np.frombuffer(len(columns).to_bytes(2, "big"), np.uint8)

    def encode(table: pa.Table) -> bytes:
        if not table.num_rows:
            return b""
        found = [write(each, column.type) for write, each, column in zip(writers, _arrays(table), columns, strict=True)]
        return _framed(b"D", table.num_rows, found, count)

    return encode


def copy_rows(columns: Sequence[Column], form: CopyFormat, before: list[bytes] | None = None) -> Encode | None:
    """What makes CopyData, each with one row; None for formats that are written row by row only.

    The header and the trailer of a format are not rows, but that of the binary format is part of the first message,
    as it is PostgreSQL's and clients expect: it is taken from `before`.
    """
    if form.kind == "binary":
        return _copy_binary(columns, [] if before is None else before)
    fields = copy_fields.fields(form, len(columns))
    if fields is None:
        return None
    delimiter, null = form.delimiter.encode(), form.null.encode()

    def encode_lines(table: pa.Table) -> bytes:
        if not table.num_rows:
            return b""
        found = [
            fields(at, text(each, column.type))
            for at, (each, column) in enumerate(zip(_arrays(table), columns, strict=True))
        ]
        lines = pc.binary_join_element_wise(*found, delimiter, null_handling="replace", null_replacement=null)
        head = _head(b"d", pc.binary_length(lines).to_numpy() + 1)
        return bytes(bytes_of(pc.binary_join_element_wise(cells_of(head), lines, b"\n", b"")))

    return encode_lines


def _copy_binary(columns: Sequence[Column], before: list[bytes]) -> Encode:
    count = np.frombuffer(len(columns).to_bytes(2, "big"), np.uint8)

    def encode(table: pa.Table) -> bytes:
        if not table.num_rows:
            return b""
        found = [binary(each, column.type) for each, column in zip(_arrays(table), columns, strict=True)]
        rows = _framed(b"d", table.num_rows, found, count)
        if not before:
            return rows
        first = 1 + int.from_bytes(rows[1 : 1 + _HEAD_BYTES], "big")
        return copy_data(before.pop() + rows[1 + _HEAD_BYTES : first]) + rows[first:]

    return encode


def _arrays(table: pa.Table) -> list[pa.Array]:
    return [each.chunk(0) if each.num_chunks == 1 else each.combine_chunks() for each in table.columns]


def _framed(kind: bytes, rows: int, found: Sequence[Cells | Block], count: np.ndarray) -> bytes:
    """Messages of a number of values, and of each its length and its bytes."""
    sizes = np.full(rows, _HEAD_BYTES + len(count), dtype=np.int64)
    lengths = []
    for each in found:
        if isinstance(each, np.ndarray):
            lengths.append(np.full(rows, each.shape[1], dtype=np.int32))
        else:
            lengths.append(pc.fill_null(pc.binary_length(each), _NULL_SIZE).to_numpy())
        sizes += 4 + np.maximum(lengths[-1], 0)
    # Neighbours of one width are one block: what is joined row by row is only what differs in length.
    parts: list[Cells] = []
    run: list[Block] = [_head(kind, sizes, counted=True), np.broadcast_to(count, (rows, len(count)))]
    for each, length in zip(found, lengths, strict=True):
        run.append(block_of(length.astype(">i4")))
        if isinstance(each, np.ndarray):
            run.append(each)
        else:
            parts += (cells_of(np.concatenate(run, axis=1)), each)
            run = []
    if not parts:
        return np.concatenate(run, axis=1).tobytes()
    if run:
        parts.append(cells_of(np.concatenate(run, axis=1)))
    joined = pc.binary_join_element_wise(*parts, b"", null_handling="replace", null_replacement=b"")
    return bytes(bytes_of(joined))


def _head(kind: bytes, sizes: np.ndarray, *, counted: bool = False) -> Block:
    """The kind and the length of each message; `counted` says that the length is counted already."""
    head = np.empty((len(sizes), 1 + _HEAD_BYTES), dtype=np.uint8)
    head[:, 0] = kind[0]
    head[:, 1:] = block_of((sizes if counted else sizes + _HEAD_BYTES).astype(">u4"))
    return head
