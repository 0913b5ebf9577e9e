"""Words of SQL text, by PostgreSQL's lexical rules: what splitting and parsing statements needs, and no more.

One regular expression finds the next word and what kind it is, so a long text costs a match for each word and no loop
over its letters.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, overload

from everview.compute.cancel import check_wanted
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, too_complex
from everview.compute.sql.parse import NESTED_MAX, NESTING
from everview.compute.sql.strings import unescaped

Kind = Literal["word", "quoted", "string", "number", "parameter", "symbol", "end"]

TEXT_CHARACTERS_MAX = 16 << 20  # of one text with statements

# Space and comments, then a word: the alternatives are tried in this order. Possessive repetitions never try a shorter
# match, so the time is linear. `open` and `unclosed` are quotes that no other quote closes.
_NEXT = re.compile(
    r"""(?:\s+|--[^\n]*+)*+
    (?: (?P<escaped>[eE]'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+')
      | (?P<open>[eE]')
      | (?P<word>[A-Za-z_\u0080-\uffff][A-Za-z0-9_$\u0080-\uffff]*+)
      | (?P<string>'[^']*+(?:''[^']*+)*+')
      | (?P<number>(?:[0-9]++(?:\.(?!\.)[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)
      | (?P<quoted>"[^"]*+(?:""[^"]*+)*+")
      | (?P<parameter>\$[0-9]++)
      | (?P<dollar>\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*+)?\$)
      | (?P<comment>/\*)
      | (?P<unclosed>['"])
      | (?P<symbol>::|=>|<=|>=|<>|!=|:=|\|\||->|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN: dict[str, Kind] = {"symbol": "symbol", "number": "number"}  # these mean what they are
_CHECK_EVERY = 4_096  # words
_COMMENT_MARK = re.compile(r"/\*|\*/")


class Token(NamedTuple):
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
    return list(scan(text))


def scan(text: str) -> Iterator[Token]:
    """The words of a text, one by one: of a long text nobody needs all of them at once."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SqlError(
            "54000", f"the text has more than {TEXT_CHARACTERS_MAX} characters", hint="split it, or use COPY"
        )
    place, depth, count, match = 0, 0, 0, _NEXT.match
    while (each := match(text, place)) is not None:
        count += 1
        if count % _CHECK_EVERY == 0:
            check_wanted()
        kind = each.lastgroup
        assert kind is not None
        start, place = each.span(kind)
        if kind == "comment":
            place = _past_comment(text, start)
            continue
        if kind == "dollar":
            place = _past_dollar_quote(text, start, each[kind])
            mark = len(each[kind])
            yield Token("string", text[start + mark : place - mark], start, place)
            continue
        if kind in _PLAIN:
            depth += NESTING.get(each[kind], 0)
            if depth > NESTED_MAX:
                raise too_complex()
            yield Token(_PLAIN[kind], each[kind], start, place)
        else:
            yield Token(*_meaning(kind, each[kind], start), start, place)
    yield Token("end", "", len(text), len(text))


def _meaning(kind: str, text: str, start: int) -> tuple[Kind, str]:
    """The kind of a word, and what it means."""
    match kind:
        case "word":
            return "word", text.lower()
        case "string":
            return "string", text[1:-1].replace("''", "'")
        case "escaped":
            return "string", unescaped(text[2:-1].replace("''", "'"), start + 1)
        case "quoted" if len(text) > 2:
            return "quoted", text[1:-1].replace('""', '"')
        case "quoted":
            raise SqlError(SYNTAX_ERROR, "zero-length delimited identifier", position=start + 1)
        case "parameter":
            return "parameter", text[1:]
        case _:
            what = "quoted identifier" if text == '"' else "quoted string"
            raise SqlError(SYNTAX_ERROR, f"unterminated {what}", position=start + 1)


class Pieces(Sequence[str]):
    """The statements of a text, each with blanks in front in place of what comes before it.

    Only where they begin and end is kept: with its blanks, each is as long as all before it together.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = array("q")  # where each begins and ends
        first: int | None = None
        for token in scan(text):
            if token.kind == "end" or token.is_symbol(";"):
                if first is not None:
                    self._places.extend((first, token.start))
                first = None
            elif first is None:
                first = token.start

    def __len__(self) -> int:
        return len(self._places) // 2

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        place = 2 * (index % len(self))
        return blanked(self._text, self._places[place], self._places[place + 1])


def split(text: str) -> Pieces:
    """The statements of a text, without those that are empty."""
    return Pieces(text)


def blanked(text: str, start: int, end: int) -> str:
    """A part of a text in its place: blanks stand for what comes before, so that positions stay what they are."""
    return " " * start + text[start:end].rstrip()


def _past_comment(text: str, start: int) -> int:
    """The place behind a comment in `/* */`; these nest."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise SqlError(SYNTAX_ERROR, "unterminated /* comment", position=start + 1)


def _past_dollar_quote(text: str, start: int, mark: str) -> int:
    """The place behind a dollar-quoted string."""
    end = text.find(mark, start + len(mark))
    if end < 0:
        raise SqlError(SYNTAX_ERROR, "unterminated dollar-quoted string", position=start + 1)
    return end + len(mark)
