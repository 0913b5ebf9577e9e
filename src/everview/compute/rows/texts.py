"""Columns of values from columns of their texts, and blocks of lines as columns of texts, by Arrow's own readers.

Most values are written in a form that Arrow reads as PostgreSQL does. Whatever else a column or a block holds, sound or
not, nothing is given for it: who asks reads it value by value, and knows all forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from everview.compute.ir.types import Kind, SqlType, arrow_type
from everview.timely.hashing import I64

Texts: TypeAlias = Any  # a pa.ChunkedArray of strings; pyarrow has no types
Values: TypeAlias = Any  # one of values as storage has them
Convert: TypeAlias = Callable[[Texts, SqlType], Values | None]

NULL_MARK = "\\N"
# What a letter behind a backslash stands for in the text format.
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_BACKSLASH = b"\x01"  # stands for an escaped backslash while the other escapes are replaced
# A backslash that begins neither a usual escape nor the mark for NULL at the end of a field.
_RARE = re.compile(rb"\\(?![bfnrtv]|N(?:[\t\n]|\Z))")
_INTEGER = r"^-?[0-9]{1,18}$"
_DECIMAL = r"^-?[0-9]{1,38}(\.[0-9]{1,38})?$"
_FLOAT = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?$"
_DATE = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = _DATE + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ZONE = r"(Z|[-+][0-9]{2}(:[0-9]{2})?)"


def text_fields(block: bytes, width: int) -> pa.Table | None:
    """Columns of texts from whole lines in PostgreSQL's text format. None if a line has another number of fields.

    Nor is anything given for rare forms: escapes by number, escaped tabs and ends of lines, carriage returns.
    """
    if b"\r" in block or b"\0" in block:
        return None
    if b"\\" not in block:
        return plain_fields(block, width)
    if _BACKSLASH in block:
        return None
    marked = block.replace(b"\\\\", _BACKSLASH)  # from left to right, so each one that is left begins an escape
    whole_fields = marked.count(b"\t\\N") + marked.count(b"\n\\N") + marked.startswith(b"\\N")
    if _RARE.search(marked) or marked.count(b"\\N") != whole_fields:
        return None
    texts = plain_fields(marked, width)
    escapes = [(f"\\{letter}", code) for letter, code in ESCAPES.items() if f"\\{letter}".encode() in marked]
    if _BACKSLASH in marked:
        escapes.append((_BACKSLASH.decode(), "\\"))
    if texts is None or not escapes:
        return texts
    return pa.table([_replaced(each, escapes) for each in texts.columns], names=texts.column_names)


def _replaced(texts: Texts, escapes: Sequence[tuple[str, str]]) -> Texts:
    for escape, text in escapes:
        texts = pc.replace_substring(texts, escape, text)
    return texts


def csv_fields(
    block: bytes, width: int, delimiter: str, null: str, quote: str, *, multiline: bool = True
) -> pa.Table | None:
    """Columns of texts from whole lines of csv. None if a line has another number of fields.

    Nor is anything given where a quote opens or closes within a field, and where ends of lines are in fields, unless
    `multiline` says that they may.
    """
    if quote.encode() not in block:
        return plain_fields(block, width, delimiter, null)
    codes = np.frombuffer(block, np.uint8)
    opening, closing, ends = _quotes_and_ends(block, quote)
    beside = np.array([ord(delimiter), ord("\n"), ord(quote)], np.uint8)
    if len(opening) != len(closing) or not (multiline or len(ends) == block.count(b"\n")):
        return None
    before, behind = codes[opening[opening > 0] - 1], codes[closing[closing < len(block) - 1] + 1]
    if not (np.isin(before, beside).all() and np.isin(behind, beside).all()):
        return None
    if width > 1 and len(ends) and (ends[0] == 0 or (np.diff(ends) == 1).any()):
        return None
    lines = len(ends) + (not block.endswith(b"\n"))
    return _fields(block, width, lines, _csv_of(delimiter, quote), null)


def end_of_last_line(block: bytes, quote: str | None = None) -> int:
    """Where the last whole line ends; 0 if there is none. An end of line within quotes is data."""
    if quote is None or quote.encode() not in block:
        return block.rfind(b"\n") + 1
    _, _, ends = _quotes_and_ends(block, quote)
    return int(ends[-1]) + 1 if len(ends) else 0


def _quotes_and_ends(block: bytes, quote: str) -> tuple[I64, I64, I64]:
    """Where quotes open and close, and where lines end. A quote that is doubled closes and opens."""
    codes = np.frombuffer(block, np.uint8)
    quotes = np.flatnonzero(codes == ord(quote))
    newlines = np.flatnonzero(codes == ord("\n"))
    return quotes[0::2], quotes[1::2], newlines[np.searchsorted(quotes, newlines) % 2 == 0]


def plain_fields(block: bytes, width: int, delimiter: str = "\t", null: str = NULL_MARK) -> pa.Table | None:
    """Columns of texts from whole lines without quotes and escapes. None if they have another number of fields."""
    if width > 1 and (block.startswith(b"\n") or b"\n\n" in block):  # Arrow takes an empty line for NULLs
        return None
    return _fields(block, width, lines_in(block), _csv_of(delimiter), null)


def _csv_of(delimiter: str, quote: str | Literal[False] = False) -> csv.ParseOptions:
    """How Arrow takes lines apart; where there are quotes, ends of lines may stand in them."""
    return csv.ParseOptions(
        delimiter=delimiter,
        quote_char=quote,
        escape_char=False,
        newlines_in_values=bool(quote),
        ignore_empty_lines=False,
    )


def _fields(block: bytes, width: int, lines: int, parse: csv.ParseOptions, null: str) -> pa.Table | None:
    names = [f"c{index}" for index in range(width)]
    as_text = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[null],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    whole = csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1)
    try:
        texts = csv.read_csv(pa.BufferReader(block), whole, parse, as_text)
    except pa.ArrowException:
        return None
    return texts if texts.num_rows == lines else None


def lines_in(block: bytes) -> int:
    """The number of lines, of which the last may lack its end."""
    return block.count(b"\n") + (not block.endswith(b"\n"))


def quick_values(texts: Texts, to: SqlType) -> Values | None:
    """Read the values of a column. None if Arrow has no reader for the type, or for the form of a value."""
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts), arrow_type(to))])
    convert = _CONVERT.get(to.kind)
    try:
        return None if convert is None else convert(texts, to)
    except pa.ArrowException:
        return None


def _all(texts: Texts, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _integers(texts: Texts, to: SqlType) -> Values | None:
    return texts.cast(pa.int64()).cast(arrow_type(to)) if _all(texts, _INTEGER) else None


def _numerics(texts: Texts, to: SqlType) -> Values | None:
    """Numbers that need no rounding: a cast of others fails."""
    if not _all(texts, _DECIMAL):
        return None
    stored = arrow_type(to)
    digits = to.precision if to.constrained else stored.precision
    return texts.cast(pa.decimal128(digits, to.scale)).cast(stored)


def _floats(texts: Texts, to: SqlType) -> Values | None:
    if not _all(texts, _FLOAT):
        return None
    found = pc.add(texts.cast(pa.float64()), 0.0)  # there is no negative zero
    small = pc.and_(pc.equal(found, 0.0), pc.match_substring_regex(texts, "^[^eE]*[1-9]"))  # it was not zero
    return None if pc.any(pc.or_(pc.is_inf(found), small)).as_py() else found


def _booleans(texts: Texts, to: SqlType) -> Values | None:
    true = pc.is_in(texts, pa.array(["t", "true"]))
    known = pc.or_(pc.or_(true, pc.is_in(texts, pa.array(["f", "false"]))), pc.is_null(texts))
    return pc.if_else(pc.is_null(texts), None, true) if pc.all(known).as_py() else None


def _timestamps(texts: Texts, to: SqlType) -> Values | None:
    """Timestamps, if all have a zone or all have none. Without zones they are in UTC, the zone of sessions."""
    if to.kind is Kind.TIMESTAMPTZ and _all(texts, f"^{_TIMESTAMP}{_ZONE}$"):
        return texts.cast(pa.timestamp("us", "UTC")).cast(arrow_type(to))
    if not _all(texts, f"^{_TIMESTAMP}$"):
        return None
    found = texts.cast(pa.timestamp("us"))
    return pc.assume_timezone(found, "UTC").cast(arrow_type(to)) if to.kind is Kind.TIMESTAMPTZ else found


_CONVERT: Mapping[Kind, Convert] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), _integers),
    Kind.NUMERIC: _numerics,
    Kind.FLOAT8: _floats,
    Kind.BOOLEAN: _booleans,
    Kind.DATE: lambda texts, to: texts.cast(arrow_type(to)) if _all(texts, f"^{_DATE}$") else None,
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), _timestamps),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR), lambda texts, to: texts.cast(arrow_type(to))),
}
