"""Columns of values from columns of their texts, and blocks of lines as columns of texts, by Arrow's own readers.

Most values are written in a form that Arrow reads as PostgreSQL does. Whatever else a column or a block holds, sound or
not, nothing is given for it: who asks reads it value by value, and knows all forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from everview.compute.ir.types import Kind, SqlType, arrow_type

Texts: TypeAlias = Any  # a pa.ChunkedArray of strings; pyarrow has no types
Values: TypeAlias = Any  # one of values as storage has them
Convert: TypeAlias = Callable[[Texts, SqlType], Values | None]

NULL_MARK = "\\N"
# A backslash that does not begin the mark for NULL at the end of a field.
_ESCAPE = re.compile(rb"\\(?!N[\t\n])")
_INTEGER = r"^-?[0-9]{1,18}$"
_DECIMAL = r"^-?[0-9]{1,38}(\.[0-9]{1,38})?$"
_FLOAT = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?$"
_DATE = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = _DATE + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ZONE = r"(Z|[-+][0-9]{2}(:[0-9]{2})?)"


def is_plain(block: bytes) -> bool:
    """Whether fields of lines in PostgreSQL's text format are just what stands between tabs and ends of lines."""
    if b"\r" in block or b"\0" in block:
        return False
    backslashes = block.count(b"\\")
    if not backslashes:
        return True
    if not block.endswith(b"\n") or _ESCAPE.search(block):
        return False
    return backslashes == block.count(b"\t\\N") + block.count(b"\n\\N") + block.startswith(b"\\N")


def plain_fields(block: bytes, width: int, delimiter: str = "\t", null: str = NULL_MARK) -> pa.Table | None:
    """Columns of texts from whole lines without quotes and escapes. None if they have another number of fields."""
    if width > 1 and (block.startswith(b"\n") or b"\n\n" in block):  # Arrow takes an empty line for NULLs
        return None
    names = [f"c{index}" for index in range(width)]
    parse = csv.ParseOptions(
        delimiter=delimiter, quote_char=False, escape_char=False, newlines_in_values=False, ignore_empty_lines=False
    )
    as_text = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), null_values=[null], strings_can_be_null=True
    )
    whole = csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1)
    try:
        texts = csv.read_csv(pa.BufferReader(block), whole, parse, as_text)
    except pa.ArrowException:
        return None
    return texts if texts.num_rows == lines_in(block) else None


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


def _dates(texts: Texts, to: SqlType) -> Values | None:
    return texts.cast(arrow_type(to)) if _all(texts, f"^{_DATE}$") else None


def _timestamps(texts: Texts, to: SqlType) -> Values | None:
    """With a zone, all of them or none; without, it is that of sessions, UTC."""
    if to.kind is Kind.TIMESTAMPTZ and _all(texts, f"^{_TIMESTAMP}{_ZONE}$"):
        return texts.cast(pa.timestamp("us", "UTC")).cast(arrow_type(to))
    if not _all(texts, f"^{_TIMESTAMP}$"):
        return None
    found = texts.cast(pa.timestamp("us"))
    return pc.assume_timezone(found, "UTC").cast(arrow_type(to)) if to.kind is Kind.TIMESTAMPTZ else found


def _texts(texts: Texts, to: SqlType) -> Values:
    return texts.cast(arrow_type(to))


_CONVERT: Mapping[Kind, Convert] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), _integers),
    Kind.NUMERIC: _numerics,
    Kind.FLOAT8: _floats,
    Kind.BOOLEAN: _booleans,
    Kind.DATE: _dates,
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPTZ), _timestamps),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR), _texts),
}
