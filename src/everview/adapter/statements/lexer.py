"""Words of SQL text, by PostgreSQL's lexical rules: what splitting and parsing statements needs, and no more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from everview.compute.sql.errors import SYNTAX_ERROR, SqlError

Kind = Literal["word", "quoted", "string", "number", "parameter", "symbol", "end"]

TEXT_CHARACTERS_MAX = 16 << 20  # of one text with statements

_SPACE = re.compile(r"(?:\s+|--[^\n]*)+")
_WORD = re.compile(r"[A-Za-z_\u0080-\uffff][A-Za-z0-9_$\u0080-\uffff]*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PARAMETER = re.compile(r"\$[0-9]+")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_SYMBOLS = ("::", "=>", "<=", ">=", "<>", "!=", ":=", "||", "->")


@dataclass(frozen=True, slots=True)
class Token:
    """One word. `value` is what it means: a bare word in lower case, a string without its quotes."""

    kind: Kind
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these bare words."""
        return self.kind == "word" and self.value in words

    def is_symbol(self, symbol: str) -> bool:
        """Whether it is this symbol."""
        return self.kind == "symbol" and self.value == symbol


def tokens(text: str) -> list[Token]:
    """The words of a text; the last is the end."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SqlError(
            "54000", f"the text has more than {TEXT_CHARACTERS_MAX} characters", hint="split it, or use COPY"
        )
    found: list[Token] = []
    place = _skip(text, 0)
    while place < len(text):
        token = _token(text, place)
        found.append(token)
        place = _skip(text, token.end)
    found.append(Token("end", "", len(text), len(text)))
    return found


def split(text: str) -> list[str]:
    """The statements of a text, each with blanks in front in place of what comes before it."""
    pieces: list[str] = []
    first: int | None = None
    for token in tokens(text):
        if token.kind == "end" or token.is_symbol(";"):
            if first is not None:
                pieces.append(blanked(text, first, token.start))
            first = None
        elif first is None:
            first = token.start
    return pieces


def blanked(text: str, start: int, end: int) -> str:
    """A part of a text in its place: blanks stand for what comes before, so that positions stay what they are."""
    return " " * start + text[start:end].rstrip()


def _skip(text: str, place: int) -> int:
    """Past spaces and comments; those in `/* */` nest."""
    while True:
        space = _SPACE.match(text, place)
        if space:
            place = space.end()
        if not text.startswith("/*", place):
            return place
        depth, start = 0, place
        while True:
            opened, closed = text.find("/*", place), text.find("*/", place)
            if closed < 0:
                raise SqlError(SYNTAX_ERROR, "unterminated /* comment", position=start + 1)
            if 0 <= opened < closed:
                depth, place = depth + 1, opened + 2
            else:
                depth, place = depth - 1, closed + 2
            if depth == 0:
                break


def _token(text: str, start: int) -> Token:
    first = text[start]
    if first == "'":
        return _string(text, start, start + 1, escapes=False)
    if first in "eE" and text.startswith("'", start + 1):
        return _string(text, start, start + 2, escapes=True)
    if first == '"':
        return _quoted(text, start)
    if first == "$":
        if parameter := _PARAMETER.match(text, start):
            return Token("parameter", parameter[0][1:], start, parameter.end())
        if dollar := _DOLLAR.match(text, start):
            end = text.find(dollar[0], dollar.end())
            if end < 0:
                raise SqlError(SYNTAX_ERROR, "unterminated dollar-quoted string", position=start + 1)
            return Token("string", text[dollar.end() : end], start, end + len(dollar[0]))
    if word := _WORD.match(text, start):
        return Token("word", word[0].lower(), start, word.end())
    if number := _NUMBER.match(text, start):
        return Token("number", number[0], start, number.end())
    for symbol in _SYMBOLS:
        if text.startswith(symbol, start):
            return Token("symbol", symbol, start, start + len(symbol))
    return Token("symbol", first, start, start + 1)


def _string(text: str, start: int, place: int, *, escapes: bool) -> Token:
    parts: list[str] = []
    while place < len(text):
        character = text[place]
        if character == "'":
            if not text.startswith("'", place + 1):
                return Token("string", "".join(parts), start, place + 1)
            parts.append("'")
            place += 2
        elif character == "\\" and escapes and place + 1 < len(text):
            parts.append(_ESCAPES.get(text[place + 1], text[place + 1]))
            place += 2
        else:
            parts.append(character)
            place += 1
    raise SqlError(SYNTAX_ERROR, "unterminated quoted string", position=start + 1)


def _quoted(text: str, start: int) -> Token:
    place = start + 1
    while True:
        end = text.find('"', place)
        if end < 0:
            raise SqlError(SYNTAX_ERROR, "unterminated quoted identifier", position=start + 1)
        if not text.startswith('"', end + 1):
            break
        place = end + 2
    if end == start + 1:
        raise SqlError(SYNTAX_ERROR, "zero-length delimited identifier", position=start + 1)
    return Token("quoted", text[start + 1 : end].replace('""', '"'), start, end + 1)
