"""The fields of one line of COPY data, in text and in csv format, both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from everview.adapter.contract import CopyFormat
from everview.compute.rows.texts import ESCAPES
from everview.compute.sql.errors import SqlError
from everview.compute.sql.strings import utf8
from everview.server.pgwire.copy_lines import BAD_COPY

Splitter = Callable[[bytes], list[str | None]]
Joiner = Callable[[Sequence[str | None]], bytes]

_ESCAPED = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.|\Z)", re.DOTALL)
_LETTERS = {letter.encode(): code.encode() for letter, code in ESCAPES.items()}
_ESCAPES = {ord(code): f"\\{letter}" for letter, code in ESCAPES.items()} | {ord("\\"): "\\\\"}
END_MARKER = b"\\."


def splitter(form: CopyFormat) -> Splitter:
    """Make a function that cuts a line into fields, where None is NULL."""
    return _csv_splitter(form) if form.kind == "csv" else _text_splitter(form)


def joiner(form: CopyFormat) -> Joiner:
    """What makes a line, with its end, of fields."""
    return _csv_joiner(form) if form.kind == "csv" else _text_joiner(form)


def _text_splitter(form: CopyFormat) -> Splitter:
    delimiter, null = form.delimiter.encode(), form.null.encode()
    cut = re.escape(delimiter)
    field = re.compile(rb"((?:[^\\" + cut + rb"]|\\.|\\$)*)(?:" + cut + rb"|$)", re.DOTALL)

    def split(line: bytes) -> list[str | None]:
        if b"\\" not in line:
            return [None if raw == null else utf8(raw) for raw in line.split(delimiter)]
        raws, at = [], 0
        while True:
            match = field.match(line, at)
            assert match is not None
            raws.append(match[1])
            if match.end() == match.end(1):
                break
            at = match.end()
        return [None if raw == null else utf8(_ESCAPED.sub(_unescape, raw)) for raw in raws]

    return split


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code in _LETTERS:
        return _LETTERS[code]
    if code == b".":
        raise SqlError(BAD_COPY, "end-of-copy marker is not alone on its line")
    if not code:  # a backslash before nothing is nothing
        return b""
    if len(code) > 1 and code.startswith(b"x"):
        return bytes([int(code[1:], 16)])
    if code[0:1] in b"01234567":
        return bytes([int(code, 8) & 0xFF])
    return code


def escapes(delimiter: str) -> dict[int, str]:
    """What stands for characters that mean something in the text format."""
    return _ESCAPES | {ord(delimiter): _ESCAPES.get(ord(delimiter), f"\\{delimiter}")}


def _text_joiner(form: CopyFormat) -> Joiner:
    table = escapes(form.delimiter)

    def join(fields: Sequence[str | None]) -> bytes:
        texts = [form.null if field is None else field.translate(table) for field in fields]
        return (form.delimiter.join(texts) + "\n").encode()

    return join


def _csv_splitter(form: CopyFormat) -> Splitter:
    delimiter, quote, escape, null = (each.encode() for each in (form.delimiter, form.quote, form.escape, form.null))
    outside = re.compile(rb"[^" + re.escape(delimiter) + re.escape(quote) + rb"]*")
    inside = re.compile(rb"[^" + re.escape(quote) + re.escape(escape) + rb"]*")
    literals = (escape + escape, escape + quote)

    def quoted(line: bytes, at: int, parts: list[bytes]) -> int:
        """Read on from behind an opening quote, to behind the closing one."""
        while True:
            match = inside.match(line, at)
            assert match is not None
            parts.append(match[0])
            at = match.end()
            if at == len(line):
                raise SqlError(BAD_COPY, "unterminated CSV quoted field")
            pair = line[at : at + 2]
            if pair in literals:
                parts.append(pair[1:])
                at += 2
            elif line[at : at + 1] == quote:
                return at + 1
            else:
                parts.append(line[at : at + 1])
                at += 1

    def split(line: bytes) -> list[str | None]:
        if quote not in line:
            return [None if raw == null else utf8(raw) for raw in line.split(delimiter)]
        fields: list[str | None] = []
        at = 0
        while True:
            parts: list[bytes] = []
            saw_quote = False
            while True:
                match = outside.match(line, at)
                assert match is not None
                parts.append(match[0])
                at = match.end()
                if line[at : at + 1] != quote:
                    break
                saw_quote = True
                at = quoted(line, at + 1, parts)
            raw = b"".join(parts)
            fields.append(None if raw == null and not saw_quote else utf8(raw))
            if at == len(line):
                return fields
            at += 1

    return split


def _csv_joiner(form: CopyFormat) -> Joiner:
    special = re.compile("[" + re.escape(form.delimiter) + re.escape(form.quote) + "\r\n]")
    to_escape = re.compile("[" + re.escape(form.quote) + re.escape(form.escape) + "]")
    forced = set(form.force_quote)

    def write(at: int, field: str | None, single: bool) -> str:
        if field is None:
            return form.null
        # A lone end marker would end the data for those who read it.
        plain = field != form.null and not special.search(field) and not (single and field == "\\.")
        if plain and at not in forced:
            return field
        return form.quote + to_escape.sub(lambda match: form.escape + match[0], field) + form.quote

    def join(fields: Sequence[str | None]) -> bytes:
        single = len(fields) == 1
        return (form.delimiter.join(write(at, field, single) for at, field in enumerate(fields)) + "\n").encode()

    return join
