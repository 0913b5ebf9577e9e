"""Fields of COPY data column by column: what would be mistaken for something else is escaped or quoted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.adapter.contract import CopyFormat
from everview.server.pgwire.columns.cells import Cells, as_cells, bytes_of
from everview.server.pgwire.copy_fields import END_MARKER, escapes

Fields: TypeAlias = Callable[[int, Cells], Cells]  # from the place of a column and its values to its fields


def fields(form: CopyFormat, width: int) -> Fields | None:
    """What makes fields of the text of values; NULLs stay. None if a format is made row by row only."""
    if form.kind == "csv":
        return _csv_fields(form, width)
    if form.delimiter.isalnum() or form.delimiter == "\\":
        return None  # an escape may have it in it: one pass over each text is not the same as one for each character
    return _text_fields(form)


def _text_fields(form: CopyFormat) -> Fields:
    table = {chr(code): text for code, text in escapes(form.delimiter).items()}
    backslash = table.pop("\\")
    special = np.zeros(256, dtype=bool)
    for each in ("\\", *table):
        special[each.encode()[0]] = True

    def escaped(at: int, cells: Cells) -> Cells:
        if not special[np.frombuffer(bytes_of(cells), np.uint8)].any():
            return cells
        cells = pc.replace_substring(cells, b"\\", backslash.encode())
        for each, text in table.items():
            cells = pc.replace_substring(cells, each.encode(), text.encode())
        return cells

    return escaped


def _csv_fields(form: CopyFormat, width: int) -> Fields:
    special = "[" + re.escape(form.delimiter) + re.escape(form.quote) + "\\r\\n]"
    to_escape = list(dict.fromkeys((form.escape, form.quote)))  # the escape first, for it is put before the quote
    forced = set(form.force_quote)
    ends = [END_MARKER.decode()] if width == 1 else []

    def quoted(at: int, cells: Cells) -> Cells:
        texts = cells.cast(pa.string())
        if at in forced:
            odd = pc.is_valid(texts)
        else:
            odd = pc.or_(pc.match_substring_regex(texts, special), pc.is_in(texts, pa.array([form.null, *ends])))
        if not pc.any(odd).as_py():
            return cells
        whole = texts
        for each in to_escape:
            whole = pc.replace_substring(whole, each, form.escape + each)
        return as_cells(pc.if_else(odd, pc.binary_join_element_wise(form.quote, whole, form.quote, ""), texts))

    return quoted
