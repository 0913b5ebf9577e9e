"""Text to syntax trees: sqlglot's PostgreSQL dialect, told not to interpret what it parses.

sqlglot likes to translate between dialects, so it turns known functions into classes of its own and JSON arrows into
paths. Here functions stay names with arguments, and operators stay operators: what they mean is for the binder to say.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import TokenizerCore, TokenType  # type: ignore[attr-defined]

from everview.compute.cancel import check_wanted
from everview.compute.sql.clauses import check_read, watch
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, too_complex
from everview.compute.sql.strings import unescaped
from everview.quoting import literal

Tree: TypeAlias = Any  # a node of sqlglot's, whose classes are many and loosely typed

# These have a syntax of their own inside their parentheses.
_KEYWORD_SYNTAX = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY")


_INTERVAL_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_TYPE_WORDS = ("precision", "varying", "with", "without", "local", "time", "zone")
_IN_TYPES = (
    TokenType.L_PAREN,
    TokenType.R_PAREN,
    TokenType.L_BRACKET,
    TokenType.R_BRACKET,
    TokenType.COMMA,
    TokenType.NUMBER,
)
_BRACKETS = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.L_BRACKET, TokenType.R_BRACKET)
_LITERALS = frozenset([TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE])
_BEHIND_ITEMS = (TokenType.COMMA, TokenType.R_PAREN)
# How often the parser may read a statement's words again, on the average, before it is refused.
_READ_AGAIN_TIMES, _READ_AGAIN_MIN = 64, 10_000
# Brackets around brackets that are read at all. Fewer are too many for the parser, which says so when it is there.
NESTED_MAX = 10_000
NESTING = {"(": 1, "[": 1, ")": -1, "]": -1}
_CHECK_EVERY = 4_096  # words
_LET_GO = 512  # words or nodes
_LONG = 20_000  # characters of a statement
_POSITION = "everview position"  # where a node keeps what `position_of` found
_ARROWS = (TokenType.ARROW, TokenType.DARROW, TokenType.HASH_ARROW, TokenType.DHASH_ARROW)


def _operator(name: str) -> Any:
    return lambda parser, left, right: exp.Anonymous(this=name, expressions=[left, right])


def _node(kind: type[exp.Expression]) -> Any:
    return lambda parser, left, right: parser.expression(kind(this=left, expression=right))


# Strings with escapes and dollar-quoted strings; and what either may stand in without being one.
_STRINGS = re.compile(
    r"""(?<![\w$])[eE]'(?P<escaped>(?:[^'\\]|\\.|'')*)' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
    | (?<![\w$])(?P<tag>\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$)(?P<body>.*?)(?P=tag)""",
    re.VERBOSE | re.DOTALL,
)
_UNUSUAL_STRING = re.compile(r"\$|[eE]'")


def _plain_strings(text: str) -> str:
    """The text with its strings in plain quotes, as far as possible of the same length."""

    def replaced(match: re.Match[str]) -> str:
        if match["escaped"] is not None:
            body = unescaped(match["escaped"].replace("''", "'"), match.start() + 1)
        elif match["tag"] is not None:
            body = match["body"]
        else:
            return match[0]
        return literal(body).ljust(len(match[0]))

    return _STRINGS.sub(replaced, text) if _UNUSUAL_STRING.search(text) else text


_COMMENT_OR_QUOTED = re.compile(
    r"""(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*' | '[^']*' | "[^"]*" | --[^\n]* | (?P<comment>/\*)
    | (?<![\w$])(?P<tag>\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$).*?(?P=tag)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")


def _without_comments(text: str) -> str:
    """The text with blanks in place of comments in `/* */`, which nest."""
    if "/*" not in text:
        return text
    parts: list[str] = []
    done = place = 0
    while (found := _COMMENT_OR_QUOTED.search(text, place)) is not None:
        place = found.end()
        if found["comment"] is None:
            continue
        depth, place = 1, found.end()
        while depth and (mark := _COMMENT_MARK.search(text, place)) is not None:
            depth += 1 if mark[0] == "/*" else -1
            place = mark.end()
        if depth:
            raise SqlError(SYNTAX_ERROR, "unterminated /* comment", position=found.start() + 1)
        parts += [text[done : found.start()], re.sub(r"[^\n]", " ", text[found.start() : place])]
        done = place
    return "".join([*parts, text[done:]])


# Numbers as PostgreSQL lets one write them and sqlglot does not: with underscores, or in other bases.
_NUMBERS = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/
    | (?<![\w$.])(?P<number>0[xX](?:_?[0-9a-fA-F])+ | 0[oO](?:_?[0-7])+ | 0[bB](?:_?[01])+
        | \d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?(?:[eE][-+]?\d+)?)(?P<junk>[A-Za-z_]\w*)?""",
    re.VERBOSE | re.DOTALL,
)
_UNUSUAL = re.compile(r"\d[A-Za-z_]")
_OTHER_BASES_MAX = 1_000  # digits


def _plain_numbers(text: str) -> str:
    """The text with numbers in plain digits, as far as possible of the same length."""

    def replaced(match: re.Match[str]) -> str:
        number, junk = match["number"], match["junk"]
        if number is None:
            return match[0]
        if junk is not None:
            message = f'trailing junk after numeric literal at or near "{match[0]}"'
            raise SqlError(SYNTAX_ERROR, message, position=match.start() + 1)
        digits = number.replace("_", "")
        if digits[:2].lower() not in ("0x", "0o", "0b"):
            return digits.ljust(len(number))
        if len(digits) > _OTHER_BASES_MAX:  # no type has room for it, whatever its digits are
            return "9" * len(number)
        return str(int(digits, 0)).ljust(len(number))

    return _NUMBERS.sub(replaced, text) if _UNUSUAL.search(text) else text


class _CheckedCore(TokenizerCore):
    """Finds words as long as somebody wants the statement."""

    __slots__ = ()

    def _add(self, token_type: Any, text: str | None = None) -> None:
        super()._add(token_type, text)
        if len(self.tokens) % _CHECK_EVERY == 0:
            check_wanted()


class EverviewSql(Postgres):
    """PostgreSQL's syntax, uninterpreted."""

    INDEX_OFFSET = 0

    class Tokenizer(Postgres.Tokenizer):
        """The tokenizer of the dialect. Left to it, `$1,$2` would be the start of a dollar-quoted string."""

        HEREDOC_STRINGS: ClassVar[list[Any]] = []
        # Left to it, `oid` would be a type of which there are no arrays.
        KEYWORDS: ClassVar[dict[str, Any]] = {
            word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if kind is not TokenType.OBJECT_IDENTIFIER
        }
        SINGLE_TOKENS: ClassVar[dict[str, Any]] = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}

        def _init_core(self) -> Any:
            core = super()._init_core()
            core.__class__ = _CheckedCore
            return core

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]
        """The parser of the dialect."""

        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012 (sqlglot's classes are configured this way)
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser for name, parser in Postgres.Parser.FUNCTION_PARSERS.items() if name in _KEYWORD_SYNTAX
        }
        # All operators that have no precedence of their own have the same: they bind looser than `+`, from the left.
        COLUMN_OPERATORS = {  # noqa: RUF012
            token: parser for token, parser in Postgres.Parser.COLUMN_OPERATORS.items() if token not in _ARROWS
        }
        JSON_OPERATORS = {  # noqa: RUF012
            **Postgres.Parser.JSON_OPERATORS,
            TokenType.ARROW: _operator("->"),
            TokenType.DARROW: _operator("->>"),
            TokenType.HASH_ARROW: _operator("#>"),
            TokenType.DHASH_ARROW: _operator("#>>"),
            TokenType.AT_GT: _node(exp.ArrayContainsAll),
            TokenType.LT_AT: _node(exp.ArrayContainedBy),
            TokenType.DAMP: _node(exp.ArrayOverlaps),
            TokenType.QMARK_PIPE: _node(exp.JSONBContainsAnyTopKeys),
            TokenType.QMARK_AMP: _node(exp.JSONBContainsAllTopKeys),
            TokenType.HASH_DASH: _node(exp.JSONBDeleteAtPath),
            TokenType.CARET_AT: _node(exp.StartsWith),
            TokenType.RLIKE: _node(exp.RegexpLike),
            TokenType.IRLIKE: _node(exp.RegexpILike),
        }
        # `->` between arguments of a function is an operator as anywhere, and no lambda.
        LAMBDAS = {  # noqa: RUF012
            token: parser for token, parser in Postgres.Parser.LAMBDAS.items() if token is not TokenType.ARROW
        }

        def _parse_interval(self, *args: Any, **options: Any) -> Any:
            """An interval as it is written, and the fields that it is to keep.

            Left to it, the parser would keep one number with its unit, and take a string that is added for another.
            """
            behind = self._next.token_type if self._curr and self._next else None
            if behind is not TokenType.STRING or self._curr.token_type is not TokenType.INTERVAL:
                return super()._parse_interval(*args, **options)
            self._advance()
            text = self._parse_primary()
            unit: Any = None
            if self._curr is not None and self._curr.text.lower() in _INTERVAL_FIELDS:
                unit = exp.Var(this=self._curr.text)
                self._advance()
                if self._match_text_seq("TO"):
                    unit = exp.IntervalSpan(this=unit, expression=self._parse_var(any_token=True, upper=True))
            return self.expression(exp.Interval(this=text, unit=unit))

        def _parse_type(self, *args: Any, **options: Any) -> Any:
            """A literal with its type in front, `date '2024-01-01'`, the whole of which a cast that follows is of.

            Any other word that is also a type's is a name. Left to it, the parser would read what follows the word as
            a type's arguments first and then again, so that the time of `ARRAY[ARRAY[…]]` doubled with each level.
            """
            word = self._curr.token_type if self._curr else None
            if word not in self.TYPE_TOKENS or word is TokenType.INTERVAL or options.get("fallback_to_identifier"):
                return super()._parse_type(*args, **options)
            if not self._at_typed_literal():
                return self._parse_column()
            start = self._index
            of = self._parse_types(check_func=True, allow_identifiers=False)
            if isinstance(of, exp.DataType) and self._curr and self._curr.token_type is TokenType.STRING:
                return self._parse_column_ops(self.expression(exp.Cast(this=self._parse_primary(), to=of)))
            self._retreat(start)
            return self._parse_column()

        _steps = 0  # from word to word, forward or back

        def _advance(self, times: int = 1) -> None:
            self._steps += 1
            if self._steps % _CHECK_EVERY == 0:
                check_wanted()
            super()._advance(times)

        _read_again = 0  # how many words were gone back over

        def _retreat(self, index: int) -> None:
            """Go back to try another reading. Some words of other dialects, nested, would do so without end."""
            self._read_again += max(0, self._index - index)
            if self._read_again > _READ_AGAIN_MIN + _READ_AGAIN_TIMES * len(self._tokens):
                raise too_complex("its words can be read in too many ways")
            super()._retreat(index)

        def _parse_expression(self) -> Any:
            return self._lone_literal() or super()._parse_expression()

        def _parse_assignment(self) -> Any:
            return self._lone_literal() or super()._parse_assignment()

        def _lone_literal(self) -> Any:
            """A literal that is an item of a list, as those of VALUES and IN are, without a look at each operator."""
            token = self._curr
            if token.token_type not in _LITERALS or self._next.token_type not in _BEHIND_ITEMS:
                return None
            self._advance()
            return self.PRIMARY_PARSERS[token.token_type](self, token)

        def _at_typed_literal(self) -> bool:
            """Whether a string follows the words, numbers and brackets of which the name of a type is made."""
            place, tokens = self._index + 1, self._tokens
            while place < len(tokens) and tokens[place].token_type is not TokenType.STRING:
                token = tokens[place]
                if token.token_type not in _IN_TYPES and token.text.lower() not in _TYPE_WORDS:
                    return False
                place += 1
            return bool(place < len(tokens))

        def _parse_query_modifiers(self, this: Any) -> Any:
            """Joins may also follow what is lateral, inside parentheses."""
            if isinstance(this, (exp.Lateral, exp.Unnest)):
                for join in self._parse_joins():
                    this.append("joins", join)
                return this
            return super()._parse_query_modifiers(this)


# What may follow `interval`. sqlglot's class has abbreviations too, and would take what is a name for part of the type.
EverviewSql.VALID_INTERVAL_UNITS = {field.upper() for field in _INTERVAL_FIELDS}


def parse_query(text: str) -> Tree:
    """The syntax tree of a single query, which remembers what is read of it: see `check_all_read`."""
    try:
        statements = _parsed(_plain_numbers(_plain_strings(_without_comments(text))))
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        raise SqlError(
            SYNTAX_ERROR,
            f'syntax error at or near "{found.get("highlight", "")}"',
            detail=str(found.get("description") or error),
            position=_offset(text, found.get("line"), found.get("col")),
        ) from error
    except TokenError as error:
        check_wanted()  # an error of any kind comes as one of words
        raise SqlError(SYNTAX_ERROR, "the text cannot be split into words", detail=str(error)) from error
    if len(statements) != 1:
        raise SqlError(SYNTAX_ERROR, f"one query was expected, and there are {len(statements)}")
    return watch(statements[0])


@contextmanager
def query_tree(text: str) -> Iterator[Tree]:
    """While inside, the syntax tree of a single query, all of which is to be read. Nobody has it afterwards.

    Nodes know what they are part of, so a tree goes only when Python looks for garbage, and then all at once, which
    takes long if it is large. So a large one is taken apart.
    """
    tree = parse_query(text)
    try:
        yield tree
        check_all_read(tree)
    finally:
        if len(text) > _LONG:
            _take_apart(tree)


def _take_apart(tree: Tree) -> None:
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        for value in dict.values(node.args):
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, exp.Expression):
                    nodes.append(part)
        node.args, node.parent = {}, None


def _parsed(text: str) -> list[Tree]:
    dialect = EverviewSql()
    words = dialect.tokenize(text)
    depth = 0
    for word in words:
        depth += NESTING.get(word.text, 0) if word.token_type in _BRACKETS else 0
        if depth > NESTED_MAX:
            raise too_complex()
    parser = dialect.parser()
    try:
        return [tree for tree in parser.parse(words, text) if tree is not None]
    finally:
        parser.reset()
        while words:  # to let go of all at once would hold up everyone
            del words[-_LET_GO:]


def tailed(tree: Tree) -> bool:
    """Whether a query in parentheses, or a part of a set operation, has clauses that come before those around it."""
    return any(tree.args.get(clause) for clause in ("with_", "order", "limit", "offset"))


def check_all_read(tree: Tree) -> None:
    """Raise if a part of the tree was not read while it was bound."""
    check_read(tree, position_of)


def position_of(tree: Tree) -> int | None:
    """Where the expression begins in the text, counted from 1, as well as the parser knows.

    Every node remembers its answer, so asking for all nodes of a tree takes time linear in its size.
    """
    waiting = [tree]
    for step in itertools.count(1):
        if not waiting:
            break
        if step % _CHECK_EVERY == 0:
            check_wanted()
        node = waiting[-1]
        meta = node.meta
        if _POSITION in meta:
            waiting.pop()
            continue
        inside = [each for each in node.iter_expressions() if _POSITION not in each.meta]
        if inside:
            waiting += inside
            continue
        waiting.pop()
        starts = [meta["start"] + 1] if "start" in meta else []
        starts += [start for each in node.iter_expressions() if (start := each.meta[_POSITION]) is not None]
        meta[_POSITION] = min(starts, default=None)
    found: int | None = tree.meta[_POSITION]
    return found


def _offset(text: str, line: int | None, column: int | None) -> int | None:
    if line is None or column is None:
        return None
    return sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column
