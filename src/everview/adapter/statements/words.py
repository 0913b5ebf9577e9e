"""A place in the words of one statement: what the parsers of statements look at, take and expect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot.tokenizer_core import TokenType

from everview.compute.functions.numbers import integer_of
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError
from everview.compute.sql.lexer import NESTING, SqlText, Token, let_go

T = TypeVar("T")
Path = tuple[str, ...]

# Words that end a name's right to stand without quotes; the rest of PostgreSQL's list does no harm here.
RESERVED = frozenset(
    (
        *("all", "and", "any", "as", "asc", "case", "cast", "check", "collate", "column", "create"),
        *("default", "desc", "distinct", "do", "else", "end", "except", "false", "fetch", "for", "from"),
        *("grant", "group", "having", "in", "intersect", "into", "limit", "not", "null", "offset", "on"),
        *("or", "order", "primary", "references", "returning", "select", "table", "then", "to", "true"),
        *("union", "unique", "using", "values", "when", "where", "with"),
    )
)
_COPIED = 1 << 14  # words at a time


class Words:
    """The words of a statement, read from left to right."""

    def __init__(self, text: str) -> None:
        given = text if isinstance(text, SqlText) else SqlText(text)
        behind = given.offset + len(given)
        self._text, self._offset = given, given.offset
        self._tokens = given.take_tokens()
        self._tokens.append(Token("end", "", TokenType.SENTINEL, "", behind, behind - 1))
        self._at = 0

    def close(self) -> None:
        """Let go of the words, of which there may be many."""
        let_go(self._tokens)

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    @property
    def first(self) -> Token:
        return self._tokens[0]

    @property
    def last(self) -> Token:
        """The word that was taken last, once there is one."""
        return self._tokens[max(0, self._at - 1)]

    def ahead(self, count: int) -> Token:
        """The word `count` places further."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    @property
    def done(self) -> bool:
        return self.next.kind == "end"

    def take(self) -> Token:
        token = self.next
        if token.kind != "end":
            self._at += 1
        return token

    def sees(self, *words: str) -> bool:
        """Whether these words come next, one after the other."""
        return all(self.ahead(index).is_word(word) for index, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        if not self.sees(*words):
            return False
        for _ in words:
            self.take()
        return True

    def accept_symbol(self, symbol: str) -> bool:
        """Take this symbol if it comes next."""
        if not self.next.is_symbol(symbol):
            return False
        self.take()
        return True

    def one_of(self, *words: str) -> str:
        """One of these words, which must come next."""
        if not self.next.is_word(*words):
            raise self.error(f"expected {' or '.join(word.upper() for word in words)}")
        return self.take().value

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                raise self.error(f"expected {word.upper()}")

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.error(f'expected "{symbol}"')

    def expect_end(self) -> None:
        """Nothing may come next."""
        if not self.done:
            raise self.error(None)

    def name(self) -> str:
        """A name, which must come next."""
        token = self.next
        if token.kind == "quoted" or (token.kind == "word" and token.value not in RESERVED):
            return self.take().value
        raise self.error("expected a name")

    def path(self) -> Path:
        """A name with its schema and database, if it has them."""
        parts = [self.name()]
        while self.accept_symbol("."):
            token = self.next
            if token.kind not in ("quoted", "word"):
                raise self.error("expected a name")
            parts.append(self.take().value)
        if len(parts) > 3:
            raise SqlError(SYNTAX_ERROR, f"improper qualified name (too many dotted names): {'.'.join(parts)}")
        return tuple(parts)

    def string(self) -> str:
        """A quoted string, which must come next."""
        if self.next.kind != "string":
            raise self.error("expected a string")
        return self.take().value

    def integer(self) -> int:
        """A whole number, which must come next."""
        negative = self.accept_symbol("-")
        if self.next.kind != "number" or not self.next.value.isdigit():
            raise self.error("expected a whole number")
        value = integer_of(self.take().value)
        return -value if negative else value

    def series(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Items with commas between them."""
        found = [item()]
        while self.accept_symbol(","):
            found.append(item())
        return tuple(found)

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Items in parentheses, with commas between them."""
        self.expect_symbol("(")
        found = self.series(item)
        self.expect_symbol(")")
        return found

    def names(self) -> tuple[str, ...]:
        return self.listed(self.name)

    def expressions(self) -> tuple[SqlText, ...]:
        """SQL in parentheses, up to each comma."""
        return self.listed(lambda: self.until(lambda: self.next.is_symbol(",")))

    def until(self, stop: Callable[[], bool]) -> SqlText:
        """The SQL up to where `stop` holds outside of parentheses, or to the end of what they enclose."""
        first, depth = self._at, 0
        while not self.done and (depth or not stop()):
            token = self.next
            if token.kind == "symbol":
                depth += NESTING.get(token.value, 0)
                if depth < 0:
                    break
            self._at += 1
        return self._between(first, self._at)

    def rest(self) -> SqlText:
        """The SQL from here to the end."""
        first, self._at = self._at, len(self._tokens) - 1
        return self._between(first, self._at)

    def sees_first(self, *words: str) -> str:
        """Find the first of these words outside of parentheses. Empty if the statement has no such word."""
        depth = 0
        for token in self._tokens[self._at :]:
            if token.kind == "symbol":
                depth += NESTING.get(token.value, 0)
            elif depth == 0 and token.is_word(*words):
                return token.value
        return ""

    def _between(self, first: int, behind: int) -> SqlText:
        words: list[Token] = []
        for place in range(first, behind, _COPIED):  # all at once would hold up everyone
            words += self._tokens[place : min(behind, place + _COPIED)]
        start = self._tokens[first].start
        end = words[-1].end + 1 if words else start
        return SqlText(self._text[start - self._offset : end - self._offset], start, words)

    def error(self, detail: str | None, at: Token | None = None) -> SqlError:
        """The next word, or another, is not what may stand here."""
        token = at or self.next
        near = self._text[token.start - self._offset : token.end + 1 - self._offset]
        where = "at end of input" if token.kind == "end" else f'at or near "{near}"'
        return SqlError(SYNTAX_ERROR, f"syntax error {where}", detail=detail, position=token.start + 1)


def if_exists(words: Words) -> bool:
    return words.accept("if", "exists")


def if_not_exists(words: Words) -> bool:
    return words.accept("if", "not", "exists")
