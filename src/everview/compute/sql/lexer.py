"""SQL text to words, by PostgreSQL's lexical rules, once: our parsers and sqlglot's parser read the same words.

One regular expression finds the next word and what kind it is, so a long text costs a match for each word and no loop
over its letters. A word also has the token type that sqlglot's tokenizer would give it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, overload

from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import Token as ParserToken
from sqlglot.tokenizer_core import TokenType

from everview.compute.cancel import check_wanted
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, too_complex
from everview.compute.sql.strings import unescaped

TokenKind = Literal["word", "quoted", "string", "number", "parameter", "symbol", "end"]

TEXT_CHARACTERS_MAX = 16 << 20  # of one text with statements
KEPT_CHARACTERS_MAX = 10_000  # of several statements whose words are kept until they are parsed
# Brackets around brackets that are read at all. Fewer are too many for the parser, which says so when it is there.
NESTED_MAX = 10_000
NESTING = {"(": 1, "[": 1, ")": -1, "]": -1}

# `oid` is a name: to sqlglot it would be a type of which there are no arrays. Words of templates mean nothing here.
KEYWORDS: dict[str, TokenType] = {
    word: kind
    for word, kind in Postgres.Tokenizer.KEYWORDS.items()
    if kind not in (TokenType.OBJECT_IDENTIFIER, TokenType.BLOCK_START, TokenType.BLOCK_END)
}
_SYMBOLS = {
    **{symbol: kind for symbol, kind in Postgres.Tokenizer.SINGLE_TOKENS.items() if kind is not TokenType.UNKNOWN},
    **{word: kind for word, kind in KEYWORDS.items() if not any(map(str.isalnum, word))},
    "$": TokenType.PARAMETER,
}
_OPERATORS = "|".join(re.escape(each) for each in sorted(_SYMBOLS, key=len, reverse=True) if len(each) > 1)
_PREFIXED = {"b": TokenType.BIT_STRING, "x": TokenType.HEX_STRING, "n": TokenType.NATIONAL_STRING}
# Keywords of two words, by the first one.
_PAIRS: dict[str, dict[str, TokenType]] = {}
for _word, _kind in KEYWORDS.items():
    if _word.count(" ") == 1:
        _PAIRS.setdefault(_word.lower().split()[0], {})[_word.lower().split()[1]] = _kind

# Space and comments, then a word: the alternatives are tried in this order. Possessive repetitions never try a shorter
# match, so the time is linear. `open` and `unclosed` are quotes that no other quote closes.
_NEXT = re.compile(
    rf"""(?:\s+|--[^\n]*+)*+
    (?: (?P<escaped>[eE]'[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+')
      | (?P<open>[eE]')
      | (?P<prefixed>(?:[bBxXnN]|[uU]&)'[^']*+(?:''[^']*+)*+')
      | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*+)
      | (?P<string>'[^']*+(?:''[^']*+)*+')
      | (?P<number>0[xX](?:_?[0-9a-fA-F])++ | 0[oO](?:_?[0-7])++ | 0[bB](?:_?[01])++
          | (?:[0-9](?:_?[0-9])*+(?:\.(?!\.)(?:[0-9](?:_?[0-9])*+)?)?|\.[0-9](?:_?[0-9])*+)(?:[eE][+-]?[0-9]++)?)
      | (?P<quoted>"[^"]*+(?:""[^"]*+)*+")
      | (?P<parameter>\$[0-9]++)
      | (?P<dollar>\$(?:[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*+)?\$)
      | (?P<comment>/\*)
      | (?P<unclosed>['"])
      | (?P<symbol>{_OPERATORS}|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CHECK_EVERY = 4_096  # words
_LET_GO = 512  # words at a time
_COMMENT_MARK = re.compile(r"/\*|\*/")
_LETTER = re.compile(r"[A-Za-z_\u0080-\U0010ffff]\w*")
_OTHER_BASES_MAX = 1_000  # digits
_NO_COMMENTS: list[str] = []


class Token(ParserToken):
    """One word. `value` is what it means: a bare word in lower case, a string without its quotes.

    `start` is the place of its first character and `end`, as in sqlglot, of its last one; `text` and `token_type` are
    what sqlglot's parser goes by.
    """

    __slots__ = ("kind", "value")

    def __init__(  # noqa: PLR0917 (one is made for each word, and keywords take time)
        self, kind: TokenKind, value: str, token_type: TokenType, text: str, start: int, end: int
    ) -> None:
        self.kind, self.value = kind, value
        self.token_type, self.text = token_type, text
        self.start, self.end = start, end
        self.line = self.col = 1
        self.comments = _NO_COMMENTS

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.value in words

    def is_symbol(self, symbol: str) -> bool:
        return self.kind == "symbol" and self.value == symbol


class SqlText(str):
    """SQL for the binder, a query or an expression: its text, where that begins, and its words until they are parsed.

    Positions in errors count from the beginning of the text that a client sent, of which this may be a part.
    """

    __slots__ = ("_tokens", "offset")
    offset: int
    _tokens: list[Token] | None

    def __new__(cls, text: str, offset: int = 0, tokens: list[Token] | None = None) -> SqlText:
        """The text that begins at `offset`, whose words are `tokens` if they are known."""
        made = super().__new__(cls, text)
        made.offset, made._tokens = offset, tokens
        return made

    def followed_by(self, tail: SqlText) -> SqlText:
        """Join two parts of a text, with blanks in place of what is between them."""
        words = [*self.take_tokens(), *tail.take_tokens()]
        return SqlText(self.ljust(tail.offset - self.offset) + tail, self.offset, words)

    def take_tokens(self) -> list[Token]:
        """The words, without the end. They are not kept here any longer: trees are made of them once."""
        found, self._tokens = self._tokens, None
        return list(scan(self, self.offset))[:-1] if found is None else found


def tokens(text: str) -> list[Token]:
    """The words of a text; the last is the end."""
    return list(scan(text))


def scan(text: str, offset: int = 0) -> Iterator[Token]:
    """The words of a text that begins at `offset` of another one."""
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
        found = each[kind]
        at, end = start + offset, place + offset - 1
        match kind:
            case "word":
                yield Token("word", found.lower(), KEYWORDS.get(found.upper(), TokenType.VAR), found, at, end)
            case "symbol":
                depth += NESTING.get(found, 0)
                if depth > NESTED_MAX:
                    raise too_complex()
                yield Token("symbol", found, _SYMBOLS.get(found, TokenType.UNKNOWN), found, at, end)
            case "number":
                yield Token("number", found, TokenType.NUMBER, _digits(found, text, place, at), at, end)
            case "string":
                value = found[1:-1].replace("''", "'")
                yield Token("string", value, TokenType.STRING, value, at, end)
            case "comment":
                place = _past_comment(text, start, offset)
            case "dollar":
                place = _past_dollar_quote(text, start, found, offset)
                value = text[start + len(found) : place - len(found)]
                yield Token("string", value, TokenType.STRING, value, at, place + offset - 1)
            case _:
                yield _unusual(kind, found, at, end)
    yield Token("end", "", TokenType.SENTINEL, "", offset + len(text), offset + len(text) - 1)


def _unusual(kind: str, found: str, at: int, end: int) -> Token:
    match kind:
        case "quoted" if len(found) > 2:
            value = found[1:-1].replace('""', '"')
            return Token("quoted", value, TokenType.IDENTIFIER, value, at, end)
        case "quoted":
            raise SqlError(SYNTAX_ERROR, "zero-length delimited identifier", position=at + 1)
        case "escaped":
            value = unescaped(found[2:-1].replace("''", "'"), at + 1)
            return Token("string", value, TokenType.STRING, value, at, end)
        case "prefixed":
            value = found[found.index("'") + 1 : -1].replace("''", "'")
            return Token("string", value, _PREFIXED.get(found[0].lower(), TokenType.UNICODE_STRING), value, at, end)
        case "parameter":
            return Token("parameter", found[1:], TokenType.PARAMETER, found, at, end)
        case _:
            what = "quoted identifier" if found == '"' else "quoted string"
            raise SqlError(SYNTAX_ERROR, f"unterminated {what}", position=at + 1)


def _digits(number: str, text: str, place: int, at: int) -> str:
    """A number in plain digits. PostgreSQL lets one write numbers with underscores, and in other bases."""
    junk = _LETTER.match(text, place)
    if junk is not None:
        message = f'trailing junk after numeric literal at or near "{number}{junk[0]}"'
        raise SqlError(SYNTAX_ERROR, message, position=at + 1)
    if number[0] == ".":
        number = "0" + number
    if number.isdigit():
        return number
    digits = number.replace("_", "")
    if digits[:2].lower() not in ("0x", "0o", "0b"):
        return digits
    # No type has room for so many digits, whatever they are.
    return "9" * len(number) if len(digits) > _OTHER_BASES_MAX else str(int(digits, 0))


def let_go(words: list[Token]) -> None:
    """Empty a list that nobody needs any more, piece by piece: to let go of all at once would hold up everyone."""
    while words:
        del words[-_LET_GO:]


def for_parser(words: Iterable[Token]) -> list[Token]:
    """The words as sqlglot's parser wants them: a parameter is two, and keywords of two words are one."""
    found: list[Token] = []
    before: dict[str, TokenType] | None = None  # the second words that would make one keyword with the last word
    for word in words:
        if before is not None and word.kind == "word" and (kind := before.get(word.value)) is not None:
            first = found.pop()
            text = f"{first.text.upper()} {word.text.upper()}"
            found.append(Token("word", first.value, kind, text, first.start, word.end))
            before = None
            continue
        before = _PAIRS.get(word.value) if word.kind == "word" else None
        if word.kind == "parameter":
            found.append(Token("symbol", "$", TokenType.PARAMETER, "$", word.start, word.start))
            found.append(Token("number", word.value, TokenType.NUMBER, word.value, word.start + 1, word.end))
        else:
            found.append(word)
    return found


class Pieces(Sequence[SqlText]):
    """The statements of a text.

    Of a long text with several statements only where they begin and end is kept, and their words are found again: all
    words together would take many times the memory of the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = array("q")  # where each begins and ends
        self._tokens: list[list[Token] | None] | None = []
        first: Token | None = None
        last: Token | None = None
        words: list[Token] = []
        for token in scan(text):
            if token.kind == "end" or token.is_symbol(";"):
                if first is not None and last is not None:
                    self._places.extend((first.start, last.end + 1))
                    if self._tokens is not None:
                        self._tokens.append(words)
                    words = []
                first = None
                continue
            if first is None:
                first = token
                if self._places and len(text) > KEPT_CHARACTERS_MAX:
                    self._tokens = None
            last = token
            if self._tokens is not None:
                words.append(token)

    def __len__(self) -> int:
        return len(self._places) // 2

    @overload
    def __getitem__(self, index: int) -> SqlText: ...

    @overload
    def __getitem__(self, index: slice) -> list[SqlText]: ...

    def __getitem__(self, index: int | slice) -> SqlText | list[SqlText]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        start, end = self._places[2 * index : 2 * index + 2]
        words = None
        if self._tokens is not None:  # whoever takes a statement has its words to himself
            words, self._tokens[index] = self._tokens[index], None
        return SqlText(self._text[start:end], start, words)


def split(text: str) -> Pieces:
    """The statements of a text, without empty ones."""
    return Pieces(text)


def _past_comment(text: str, start: int, offset: int) -> int:
    """The place behind a comment in `/* */`; these nest."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise SqlError(SYNTAX_ERROR, "unterminated /* comment", position=start + offset + 1)


def _past_dollar_quote(text: str, start: int, mark: str, offset: int) -> int:
    end = text.find(mark, start + len(mark))
    if end < 0:
        raise SqlError(SYNTAX_ERROR, "unterminated dollar-quoted string", position=start + offset + 1)
    return end + len(mark)
