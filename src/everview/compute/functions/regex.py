"""PostgreSQL's regular expressions: compiled for RE2, translated to Java's; SIMILAR TO patterns.

The dot matches a newline, and $ only the very end; alternatives are tried from the left, not for the longest. RE2
takes time in proportion to the text, and lets other threads run meanwhile. What it does not know (looks, references
back, the beginnings and ends of words) is matched step by step, which may fail for want of steps.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import re2

from everview.compute.allowance import ROW_BYTES, take
from everview.compute.cancel import cancellation, check_wanted
from everview.compute.functions import regex_render
from everview.compute.functions.contract import Failure
from everview.compute.functions.regex_steps import Program
from everview.compute.functions.regex_syntax import Syntax, parse, refused

FLAGS = {"i", "g", "c", "n", "s", "m", "x"}
SIZE_MAX = 12_000  # instructions of RE2: to compile more takes more than some milliseconds
_POLL_S = 0.05
_LONG = 50_000_000  # instructions times bytes: beyond, a search may take long enough to be canceled


Spans: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Match:
    """Where an expression matched, and its groups; a group that takes no part is at (-1, -1)."""

    text: str
    spans: Spans

    def __getitem__(self, group: int) -> str | None:
        start, end = self.spans[group]
        return None if start < 0 else self.text[start:end]

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[0][1]

    @property
    def captured(self) -> list[str | None]:
        """The texts of the groups, or of the whole if there are no groups."""
        return [self[group] for group in range(1, len(self.spans))] or [self[0]]


class Expression:
    def __init__(self, syntax: Syntax) -> None:
        self.groups = syntax.groups
        text = regex_render.re2(syntax)
        self._fast: Any = None
        self._fast_ascii: Any = None  # for texts of ASCII, in which there are few letters
        if text is not None:
            if regex_render.size(syntax, letters=1) > SIZE_MAX:
                refused("it is too complex")
            self._fast_ascii = _re2(text.replace(regex_render.LETTERS, "A-Za-z0-9_"))
            if not regex_render.asks_for_words(syntax) and regex_render.size(syntax) <= SIZE_MAX:
                self._fast = _re2(text) if regex_render.LETTERS in text else self._fast_ascii
        self._slow = Program(syntax) if self._fast is None else None

    @property
    def may_give_up(self) -> bool:
        """Whether a search can fail, for taking too many steps."""
        return self._slow is not None

    def search(self, text: str, start: int = 0) -> Match | None:
        """The first match from there on."""
        return next(self.matches(text, start), None)

    def matches(self, text: str, start: int = 0) -> Iterator[Match]:
        """All matches from `start` on that do not overlap; behind an empty match the search skips a character."""
        fast = self._fast_ascii if text.isascii() else self._fast
        if fast is not None:
            found = _Searched(fast, text).matches(start)
        else:
            assert self._slow is not None
            found = _step_by_step(self._slow, text, start)
        for count, spans in enumerate(found, 1):
            if count % 1_024 == 0:
                check_wanted()
                take(1_024 * ROW_BYTES)
            yield Match(text, spans)

    def replaced(self, text: str, new: str, *, start: int = 0, number: int = 0) -> str:
        """The text with the match of that number replaced, or with 0 every one."""
        template = _template(new, self.groups)
        pieces: list[str] = []
        place = 0
        for count, match in enumerate(self.matches(text, start), 1):
            if number in (0, count):
                pieces.append(text[place : match.start])
                pieces += [each if isinstance(each, str) else match[each] or "" for each in template]
                place = match.end
                if number:
                    break
        return "".join([*pieces, text[place:]])


def _step_by_step(program: Program, text: str, place: int) -> Iterator[Spans]:
    while place <= len(text) and (spans := program.search(text, place)) is not None:
        yield spans
        start, end = spans[0]
        place = end + (start == end)


def _re2(pattern: str) -> Any:
    """The expression for texts as UTF-8."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error:
        refused("it is too complex")


class _Searched:
    """A text that RE2 searches as UTF-8; places are counted in characters."""

    def __init__(self, expression: Any, text: str) -> None:
        self._expression, self._text, self._data = expression, text, text.encode()
        self._plain = len(text) == len(self._data)
        self._known = (0, 0)  # a place in bytes, and the same in characters
        # A search that may take long has a thread of its own, and is left to itself if it is canceled.
        self._long = expression.programsize * len(self._data) > _LONG and cancellation() is not None

    def matches(self, start: int) -> Iterator[Spans]:
        place = start if self._plain else len(self._text[:start].encode())
        groups = range(self._expression.groups + 1)
        while place <= len(self._data):
            match = self._search_apart(place) if self._long else self._expression.search(self._data, place)
            if match is None:
                return
            yield self._in_characters([match.span(group) for group in groups])
            place = match.end()
            if match.start() == place:
                place += 1
                while place < len(self._data) and self._data[place] & 0xC0 == 0x80:
                    place += 1

    def _in_characters(self, spans: Spans) -> Spans:
        if self._plain:
            return spans
        counted = {-1: -1}
        byte, character = self._known
        for place in sorted({place for span in spans for place in span if place >= 0}):
            character += len(self._data[byte:place].decode())
            byte = place
            counted[place] = character
        self._known = byte, character
        return [(counted[start], counted[end]) for start, end in spans]

    def _search_apart(self, place: int) -> Any:
        over = threading.Event()
        result: list[Any] = []

        def run() -> None:
            try:
                result.append(self._expression.search(self._data, place))
            finally:
                over.set()

        threading.Thread(target=run, name="everview-regex", daemon=True).start()
        while not over.wait(_POLL_S):
            check_wanted()
        return result[0]


def compiled(pattern: str, flags: str = "") -> Expression:
    return (_remembered if len(pattern) <= _SHORT else _remembered_long)(pattern, flags)


def _compiled(pattern: str, flags: str) -> Expression:
    if unknown := set(flags) - FLAGS:
        raise Failure("22023", f'invalid regular expression option: "{min(unknown)}"')
    return Expression(parse(pattern, flags))


_SHORT = 1_000
# Each may come to hold megabytes, for it learns as it matches.
_remembered, _remembered_long = lru_cache(maxsize=128)(_compiled), lru_cache(maxsize=8)(_compiled)


def java(pattern: str, flags: str = "") -> str | None:
    """The pattern for Java; None if Java cannot match it, or could take too long."""
    compiled(pattern, flags)  # refuses what is none
    return regex_render.java(parse(pattern, flags))


def groups(pattern: str, flags: str = "") -> int:
    return compiled(pattern, flags).groups


_SIMILAR = re.compile(r"\[\^?\]?[^\]]*\]|.", re.DOTALL)
_SIMILAR_LAST = re.compile(".", re.DOTALL)
_SIMILAR_WORDS = {"%": ".*", "_": ".", "(": "(?:"}


def similar(pattern: str, escape: str = "\\") -> str:
    """A pattern of SIMILAR TO as a regular expression of PostgreSQL's, to be searched for."""
    if len(escape) > 1:
        raise Failure("22025", "invalid escape string")
    parts: list[str] = []
    place, last_end = 0, pattern.rfind("]")
    while place < len(pattern):
        if escape and pattern[place] == escape:
            parts += map(_plain, pattern[place + 1 : place + 2])  # at the end an escape means nothing
            place += 2
            continue
        # Without a `]` behind them, brackets would each be looked at up to the end.
        token = (_SIMILAR if place < last_end else _SIMILAR_LAST).match(pattern, place)
        assert token is not None
        place = token.end()
        known = _SIMILAR_WORDS.get(token[0], token[0])
        parts.append("\\" + known if known in ("^", "$", "\\", ".") and token[0] != "_" else known)
    return f"^(?:{''.join(parts)})$"


def _plain(character: str) -> str:
    return character if character.isalnum() or character in " _" or ord(character) > 127 else "\\" + character


def java_replacement(text: str, groups: int) -> str:
    """A replacement in Java's syntax; a group that is not there is empty."""
    pieces: list[str] = []
    for each in _template(text, groups):
        if isinstance(each, int):
            pieces.append(f"${each}")
        else:  # a digit behind a group would be one of its number
            pieces.append(re.sub(r"[\\$]|^[0-9]", r"\\\g<0>", each))
    return "".join(pieces)


def _template(text: str, groups: int) -> list[str | int]:
    """A replacement as literal texts and numbers of groups, 0 being the whole match: \\1, \\& and \\\\."""
    pieces: list[str | int] = []
    for token in re.findall(r"\\.|\\\Z|[^\\]+", text, re.DOTALL):
        if len(token) == 2 and token[0] == "\\" and token[1] in "0123456789&":
            number = 0 if token[1] == "&" else int(token[1])
            pieces += [number] if number <= groups else []
        else:
            pieces.append("\\" if token in ("\\\\", "\\") else token)
    return pieces
