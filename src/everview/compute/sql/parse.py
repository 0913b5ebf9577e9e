"""Text to syntax trees: sqlglot's PostgreSQL dialect, told not to interpret what it parses.

sqlglot likes to translate between dialects, so it turns known functions into classes of its own and JSON arrows into
paths. Here functions stay names with arguments, and operators stay operators: what they mean is for the binder to say.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import TokenType

from everview.compute.cancel import check_wanted
from everview.compute.sql.clauses import check_read, watch
from everview.compute.sql.errors import SYNTAX_ERROR, SqlError, too_complex
from everview.compute.sql.lexer import KEYWORDS, SqlText, Token, for_parser, let_go, tokens

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
_LITERALS = frozenset([TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.TRUE, TokenType.FALSE])
_BEHIND_ITEMS = (TokenType.COMMA, TokenType.R_PAREN)
# How often the parser may read a statement's words again, on the average, before it is refused.
_READ_AGAIN_TIMES, _READ_AGAIN_MIN = 64, 10_000
_CHECK_EVERY = 4_096  # words
_LONG = 20_000  # characters of a statement
_POSITION = "everview position"  # where a node keeps what `position_of` found
_CONSTANTS = frozenset([exp.Literal, exp.Null, exp.Boolean])  # most of a long statement, with nothing inside
_WORDS: dict[type, str] = {
    exp.IgnoreNulls: "IGNORE NULLS",
    exp.RespectNulls: "RESPECT NULLS",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Variadic: "VARIADIC",
}
_ARROWS = (TokenType.ARROW, TokenType.DARROW, TokenType.HASH_ARROW, TokenType.DHASH_ARROW)


def _operator(name: str) -> Any:
    return lambda parser, left, right: exp.Anonymous(this=name, expressions=[left, right])


def _node(kind: type[exp.Expression]) -> Any:
    return lambda parser, left, right: parser.expression(kind(this=left, expression=right))


class EverviewSql(Postgres):
    """PostgreSQL's syntax, uninterpreted."""

    INDEX_OFFSET = 0

    class Tokenizer(Postgres.Tokenizer):
        """Reads nothing but the names of types that sqlglot does not know."""

        KEYWORDS = KEYWORDS

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
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
            """Parse a literal with its type in front, `date '2024-01-01'`. A cast behind it applies to all of it.

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

        def raise_error(self, message: str, token: Any = None) -> None:
            """Raise an error that says what is wrong with which word."""
            found = token or self._curr or self._prev
            place = {"start": found.start, "end": found.end} if found else {}
            raise ParseError(message, [{"description": message, **place}])

        def _find_sql(self, start: Any, end: Any) -> str:
            offset = self.sql.offset if isinstance(self.sql, SqlText) else 0
            return str(self.sql[start.start - offset : end.end - offset + 1])

        def _parse_expression(self) -> Any:
            return self._lone_literal() or super()._parse_expression()

        def _parse_assignment(self) -> Any:
            return self._lone_literal() or super()._parse_assignment()

        def _lone_literal(self) -> Any:
            """Parse a literal that is an item of a list, as in VALUES and IN, without trying every operator."""
            token = self._curr
            if token.token_type not in _LITERALS or self._next.token_type not in _BEHIND_ITEMS:
                return None
            self._advance()
            return self.PRIMARY_PARSERS[token.token_type](self, token)

        def _at_typed_literal(self) -> bool:
            """Whether the name of a type comes next, with a string behind it."""
            place, tokens = self._index + 1, self._tokens
            while place < len(tokens) and tokens[place].token_type is not TokenType.STRING:
                token = tokens[place]
                if token.token_type not in _IN_TYPES and token.text.lower() not in _TYPE_WORDS:
                    return False
                place += 1
            return bool(place < len(tokens))

        def _parse_query_modifiers(self, this: Any) -> Any:
            """Parse the joins that may follow a lateral item inside parentheses."""
            if isinstance(this, (exp.Lateral, exp.Unnest)):
                for join in self._parse_joins():
                    this.append("joins", join)
                return this
            return super()._parse_query_modifiers(this)


# What may follow `interval`. sqlglot's class has abbreviations too, and would take what is a name for part of the type.
EverviewSql.VALID_INTERVAL_UNITS = {field.upper() for field in _INTERVAL_FIELDS}


def parse_query(text: str) -> Tree:
    """Parse a single statement. Its tree remembers what is read of it: see `check_all_read`."""
    return _parsed(text, EverviewSql.Parser._parse_statement)


def parse_expression(text: str) -> Tree:
    return _parsed(text, EverviewSql.Parser._parse_assignment)


def parse_order(text: str) -> Tree:
    """The syntax trees of sort keys, as they stand behind ORDER BY."""

    def keys(parser: Any) -> Tree | None:
        found = parser._parse_csv(parser._parse_ordered)
        return exp.Order(expressions=found) if found else None

    return _parsed(text, keys)


def parse_type(text: str) -> Tree:
    """The syntax tree of the name of a type, read as in a cast."""
    return _parsed(text, lambda parser: parser._parse_cast(strict=True).to, before=tokens("NULL AS")[:-1])


@contextmanager
def query_tree(text: str) -> Iterator[Tree]:
    """Give the syntax tree of a single statement for the block, and check at its end that all of it was read.

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


def _parsed(text: str, method: Callable[[Any], Tree | None], before: Sequence[Token] = ()) -> Tree:
    """Parse all of a text, after the words `before`, with one of the parser's methods."""
    given = text if isinstance(text, SqlText) else SqlText(text)
    taken = given.take_tokens()
    words = for_parser(itertools.chain(before, taken))
    let_go(taken)
    parser = EverviewSql.Parser(dialect=EverviewSql())
    try:
        trees = [tree for tree in parser._parse(method, words, text) if tree is not None]
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        where = given[found["start"] - given.offset : found["end"] - given.offset + 1] if "start" in found else ""
        raise SqlError(
            SYNTAX_ERROR,
            f'syntax error at or near "{where}"' if where else "syntax error at end of input",
            detail=str(found.get("description") or error),
            position=found["start"] + 1 if "start" in found else None,
        ) from error
    finally:
        copied = parser._tokens
        parser.reset()
        let_go(copied)
        let_go(words)
    if len(trees) != 1:
        raise SqlError(SYNTAX_ERROR, "a statement or an expression was expected")
    return watch(trees[0])


def _take_apart(tree: Tree) -> None:
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        for value in dict.values(node.args):
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, exp.Expression):
                    nodes.append(part)
        node.args, node.parent = {}, None


def tailed(tree: Tree) -> bool:
    """Whether a query in parentheses, or a part of a set operation, has clauses that come before those around it."""
    return any(tree.args.get(clause) for clause in ("with_", "order", "limit", "offset"))


def check_all_read(tree: Tree) -> None:
    """Raise if a part of the tree was not read while it was bound."""
    check_read(tree, position_of)


def error_at(tree: Tree, sqlstate: str, message: str, hint: str | None = None) -> SqlError:
    """An error at the position of a node."""
    return SqlError(sqlstate, message, hint=hint, position=position_of(tree))


def shown(tree: Tree) -> str:
    """A node in words for a refusal, which have to be found in the statement."""
    return _WORDS.get(type(tree)) or f"{tree.key} ({written(tree)})"


def written(tree: Tree) -> str:
    """A node as SQL. What PostgreSQL does not have is written as well, and sqlglot keeps its warnings to itself."""
    return str(tree.sql("postgres", unsupported_level=ErrorLevel.IGNORE))


def position_of(tree: Tree) -> int | None:
    """Where the expression begins in the text, counted from 1, as well as the parser knows.

    Every node remembers its answer, so asking for all nodes of a tree takes time linear in its size.
    """
    if type(tree) in _CONSTANTS:
        start = tree.meta.get("start")
        return None if start is None else int(start) + 1
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
