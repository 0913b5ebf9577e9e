"""Deep and long statements: each is answered, or refused as too complex, and never an internal error."""

from __future__ import annotations

import pytest
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from everview.compute.sql.errors import SqlError
from everview.compute.sql.parse import EverviewSql, parse_query, position_of
from tests.adapter.scripts import SessionClient


@pytest.fixture
def filled(sql: SessionClient) -> SessionClient:
    sql("CREATE TABLE t (a int, b text)")
    sql("INSERT INTO t VALUES (1, 'x1')")
    return sql


def nested(before: str, inside: str, behind: str, count: int) -> str:
    return before * count + inside + behind * count


TEXTS = ",".join(f"'x{n}'" for n in range(2_000))
ROWS = ",".join(f"({n}, 'x{n}')" for n in range(1_000))

# Every one of these was an internal error, or took time quadratic or worse in its length.
ANSWERED = {
    "parentheses": (f"SELECT {nested('(', '1', ')', 1_500)}", "1"),
    "+": (f"SELECT {'+'.join(['a'] * 3_000)} FROM t", "3000"),
    "||": (f"SELECT length({'||'.join(['b'] * 2_000)}) FROM t", "4000"),
    "AND": (f"SELECT count(*) FROM t WHERE {' AND '.join(f'a <> {-n}' for n in range(2_000))}", "1"),
    "OR": (f"SELECT count(*) FROM t WHERE {' OR '.join(f'a = {n}' for n in range(2_000))}", "1"),
    "IN": (f"SELECT count(*) FROM t WHERE a IN ({','.join(map(str, range(4_000)))})", "1"),
    "NOT IN": (f"SELECT count(*) FROM t WHERE b NOT IN ({TEXTS})", "0"),
    "IN of rows": (f"SELECT count(*) FROM t WHERE (a, b) IN ({ROWS})", "1"),
    "ANY": (f"SELECT count(*) FROM t WHERE a = ANY (ARRAY[{','.join(map(str, range(2_000)))}])", "1"),
    "UNION ALL": (f"SELECT count(*) FROM ({' UNION ALL '.join(['SELECT a FROM t'] * 1_000)}) u", "1000"),
    "EXCEPT": (f"SELECT count(*) FROM ({' EXCEPT '.join(f'SELECT {n}' for n in range(200))}) u", "1"),
    "VALUES": (f"SELECT count(*) FROM (VALUES {','.join(f'({n})' for n in range(3_000))}) v", "3000"),
    "columns": (f"SELECT count(*) FROM (SELECT {','.join(f'a + {n}' for n in range(1_600))} FROM t) s", "1"),
    "CASE": (f"SELECT CASE {' '.join(f'WHEN a = {n} THEN {n}' for n in range(1_000))} END FROM t", "1"),
    "nested CASE": (f"SELECT {nested('CASE WHEN a = 0 THEN 0 ELSE ', 'a', ' END', 500)} FROM t", "1"),
    "casts": (f"SELECT a{'::bigint::int' * 500} FROM t", "1"),
    "functions": (f"SELECT {nested('abs(', 'a', ')', 1_000)} FROM t", "1"),
    "NOT": (f"SELECT {'NOT ' * 1_000} (a = 1) FROM t", "t"),
    "signs": (f"SELECT {'- ' * 1_000} a FROM t", "1"),
    "selects": (nested("SELECT * FROM (", "SELECT a FROM t", ") s", 100), "1"),
    "joins": (f"SELECT t0.a FROM t t0 {' '.join(f'JOIN t t{n} ON t{n}.a = t{n - 1}.a' for n in range(1, 41))}", "1"),
    "WITH": (
        f"WITH c0 AS (SELECT a FROM t){''.join(f', c{n} AS (SELECT a FROM c{n - 1})' for n in range(1, 150))} "
        "SELECT * FROM c149",
        "1",
    ),
    "comments": (f"SELECT {nested('/* ', '$$', ' */', 1_000)} '/* no */' /* '' */", "/* no */"),
    "jsonb": (f"SELECT length(('{nested('[', '', ']', 256)}'::jsonb)::text)", "512"),
    "a long string": ("SELECT length('" + "x''" * 1_000_000 + "')", "2000000"),
    "a long name": (f'SELECT "{"x" * 10_000}" FROM (SELECT a AS "{"x" * 10_000}" FROM t) s', "1"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_long_and_deep_statements_are_answered(filled: SessionClient, name: str) -> None:
    text, expected = ANSWERED[name]
    assert filled(text)[1:] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {nested('(', '1', ')', 100_000)}",
        f"SELECT {nested('abs(', '1', ')', 50_000)}",
        f"SELECT {'NOT ' * 100_000} true",
        f"SELECT {nested('CASE WHEN true THEN ', '1', ' END', 20_000)}",
        f"SELECT {nested('(SELECT ', '1', ')', 20_000)}",
        f"CREATE VIEW v AS SELECT {nested('(', '1', ')', 100_000)}",
        f"INSERT INTO t (a) VALUES ({nested('(', '1', ')', 100_000)})",
        f"CREATE TABLE u (a int DEFAULT {nested('(', '1', ')', 100_000)})",
    ],
    ids=lambda text: text[:20],
)
def test_deeper_than_there_is_room_is_refused_as_too_complex(filled: SessionClient, text: str) -> None:
    assert filled(text) == ["! 54001 statement too complex"]
    assert filled("SELECT a FROM t") == ["a", "1"]


@pytest.mark.parametrize("depth", [257, 10_000, 1_000_000])
def test_values_nested_too_deeply_are_refused_wherever_they_come_in(filled: SessionClient, depth: int) -> None:
    message = "! 54001 jsonb value nested too deeply, more than 256 levels"
    filled("CREATE TABLE j (j jsonb)")
    for deep in (nested("[", "", "]", depth), nested('{"a":', "1", "}", depth)):
        assert filled(f"SELECT '{deep}'::jsonb") == [message]
        assert filled(f"INSERT INTO j VALUES ('{deep}')") == [message]
    assert filled(f"SELECT '\"{'[' * depth}\"'::jsonb IS NULL")[1:] == ["f"]


def test_no_word_makes_the_parser_read_again_and_again() -> None:
    """Words of all dialects, nested: the number of steps stays in proportion to the number of words."""
    steps = 0

    class Counting(EverviewSql.Parser):  # type: ignore[misc]
        def _advance(self, times: int = 1) -> None:
            nonlocal steps
            steps += 1
            super()._advance(times)

    words = {word for word in EverviewSql.Tokenizer.KEYWORDS if word.isalpha()} | {"array", "foo", "if"}
    for word in sorted(words):
        for begin, end in (("(", ")"), ("[", "]"), ("(x, ", ")"), (" - ", "")):
            for text in (nested(word + begin, "1", end, 16), f"x::{nested(word + begin, 'int', end, 16)}"):
                dialect, steps = EverviewSql(), 0
                tokens = dialect.tokenize(f"SELECT {text}")
                try:
                    Counting(dialect=dialect).parse(tokens)
                except Exception as error:
                    assert not isinstance(error, RecursionError)
                assert steps < 10_000 + 1_000 * len(tokens), text


def test_positions_are_found_in_linear_time_and_stay_the_same() -> None:
    tree = parse_query("SELECT foo + bar * (baz - 1) FROM t")
    found = {type(node).__name__: position_of(node) for node in tree.expressions[0].walk()}
    assert found["Add"] == 8 and found["Mul"] == 14 and found["Paren"] == 21 and found["Sub"] == 21


def test_words_that_are_types_are_names_of_functions_too(filled: SessionClient) -> None:
    assert filled("SELECT date '2024-01-01', text 'x', double precision '1.5', timestamp(0) '2024-01-01 00:00:00.7'")[
        1
    ] == ("2024-01-01|x|1.5|2024-01-01 00:00:01")
    assert filled("SELECT ARRAY[ARRAY[a, 2][1], 3]::int[] FROM t")[1] in ("{1,3}",)
    assert TokenType.ARRAY in EverviewSql.Parser.TYPE_TOKENS
    with pytest.raises(SqlError):
        parse_query("SELECT date '2024-01-01")
