"""Deep and long statements: each is answered, or refused as too complex, and never an internal error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from everview.adapter.interrupts import Interrupts
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


def listed(item: str, count: int, between: str = ",") -> str:
    return between.join(item.format(n) for n in range(count))


TEXT, ROW = "'x{}'", "({0}, 'x{0}')"
Written = tuple[str, str]  # a statement and its answer

# Every one of these was an internal error, or took time quadratic or worse in its length. The count is what is tried.
ANSWERED: dict[str, tuple[int, Callable[[int], Written]]] = {
    "parentheses": (1_500, lambda n: (f"SELECT {nested('(', '1', ')', n)}", "1")),
    "+": (3_000, lambda n: (f"SELECT {'+'.join(['a'] * n)} FROM t", str(n))),
    "||": (2_000, lambda n: (f"SELECT length({'||'.join(['b'] * n)}) FROM t", str(2 * n))),
    "AND": (2_000, lambda n: (f"SELECT count(*) FROM t WHERE {listed('a <> -{}', n, ' AND ')}", "1")),
    "OR": (5_000, lambda n: (f"SELECT count(*) FROM t WHERE {listed('a = {}', n, ' OR ')}", "1")),
    "IN": (4_000, lambda n: (f"SELECT count(*) FROM t WHERE a IN ({listed('{}', n)})", "1")),
    "NOT IN": (2_000, lambda n: (f"SELECT count(*) FROM t WHERE b NOT IN ({listed(TEXT, n)})", "0")),
    "IN of rows": (1_000, lambda n: (f"SELECT count(*) FROM t WHERE (a, b) IN ({listed(ROW, n)})", "1")),
    "ANY": (2_000, lambda n: (f"SELECT count(*) FROM t WHERE a = ANY (ARRAY[{listed('{}', n)}])", "1")),
    "UNION ALL": (1_000, lambda n: (f"SELECT count(*) FROM ({' UNION ALL '.join(['SELECT a FROM t'] * n)}) u", str(n))),
    "EXCEPT": (200, lambda n: (f"SELECT count(*) FROM ({listed('SELECT {}', n, ' EXCEPT ')}) u", "1")),
    "VALUES": (3_000, lambda n: (f"SELECT count(*) FROM (VALUES {listed('({})', n)}) v", str(n))),
    "columns": (1_600, lambda n: (f"SELECT count(*) FROM (SELECT {listed('a + {}', n)} FROM t) s", "1")),
    "CASE": (1_000, lambda n: (f"SELECT CASE {listed('WHEN a = {0} THEN {0}', n, ' ')} END FROM t", "1")),
    "nested CASE": (500, lambda n: (f"SELECT {nested('CASE WHEN a = 0 THEN 0 ELSE ', 'a', ' END', n)} FROM t", "1")),
    "casts": (500, lambda n: (f"SELECT a{'::bigint::int' * n} FROM t", "1")),
    "functions": (1_000, lambda n: (f"SELECT {nested('abs(', 'a', ')', n)} FROM t", "1")),
    "NOT": (1_000, lambda n: (f"SELECT {'NOT ' * n} (a = 1) FROM t", "t")),
    "signs": (1_000, lambda n: (f"SELECT {'- ' * n} a FROM t", "1")),
    "selects": (500, lambda n: (nested("SELECT * FROM (", "SELECT a FROM t", ") s", n), "1")),
    "joins": (
        40,
        lambda n: (
            f"SELECT t0.a FROM t t0 {' '.join(f'JOIN t t{i} ON t{i}.a = t{i - 1}.a' for i in range(1, n + 1))}",
            "1",
        ),
    ),
    "WITH": (
        150,
        lambda n: (
            f"WITH c0 AS (SELECT a FROM t){''.join(f', c{i} AS (SELECT a FROM c{i - 1})' for i in range(1, n))} "
            f"SELECT * FROM c{n - 1}",
            "1",
        ),
    ),
    "comments": (1_000, lambda n: (f"SELECT {nested('/* ', '$$', ' */', n)} '/* no */' /* '' */", "/* no */")),
    "jsonb": (256, lambda n: (f"SELECT length(('{nested('[', '', ']', n)}'::jsonb)::text)", str(2 * n))),
    "a long string": (1_000_000, lambda n: ("SELECT length('" + "x''" * n + "')", str(2 * n))),
    "a long name": (10_000, lambda n: (f'SELECT "{"x" * n}" FROM (SELECT a AS "{"x" * n}" FROM t) s', "1")),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_long_and_deep_statements_are_answered(filled: SessionClient, name: str) -> None:
    count, written = ANSWERED[name]
    text, expected = written(count)
    assert filled(text)[1:] == [expected]


def steps(sql: SessionClient, text: str) -> int:
    """How many calls of Python functions a statement takes."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        sql(text)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


# The order of joins is looked for among all that are left: few enough are possible at all.
@pytest.mark.parametrize("name", sorted(set(ANSWERED) - {"joins"}))
def test_steps_are_in_proportion_to_the_length(filled: SessionClient, name: str) -> None:
    """Of twice the length there are twice the steps, and not four times."""
    count, written = ANSWERED[name]
    filled(written(count // 8)[0])  # what is done once is done
    short, long = (steps(filled, written(each)[0]) for each in (count // 4, count // 2))
    assert long < 2.6 * short + 20_000


# For each row there is much to do, whatever the number of rows.
CONDITIONS = {
    "IN": f"a IN ({listed('a + 1 + {}', 500)})",
    "AND": listed("a + 1 <> -{}", 500, " AND "),
    "CASE": f"CASE {listed('WHEN a + 1 = -{} THEN true', 500, ' ')} ELSE false END",
    "coalesce": f"coalesce({listed('nullif(a + 1, a + 1)', 500)}, 0) = 0",
    "greatest": f"greatest({listed('a + {}', 500)}) < 0",
    "ANY": f"a < ANY (ARRAY[{listed('a - 1 - {}', 500)}])",
    "aggregates": f"(SELECT {listed('max(t.a + {})', 400, ' + ')} FROM t) > 0",
    "ANY of constants": f"a = ANY ('{{{listed('-{}', 500)}}}'::int[])",
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_looks_come_often_beside_long_conditions(
    filled: SessionClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 600) g")
    query = f"SELECT count(*) FROM t WHERE {CONDITIONS[name]}"
    filled(query)  # what is done once is done
    calls = longest = last = 0
    due = Interrupts.due.fget  # type: ignore[attr-defined]

    def looked(self: Interrupts) -> bool:
        nonlocal longest, last
        longest, last = max(longest, calls - last), calls
        return bool(due(self))

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    monkeypatch.setattr(Interrupts, "due", property(looked))
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        assert not filled(query)[0].startswith("!")
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert max(longest, calls - last) < 400_000


def test_a_wide_table_is_read(filled: SessionClient) -> None:
    filled(f"CREATE TABLE wide ({listed('c{} int', 700)})")
    filled(f"INSERT INTO wide VALUES ({listed('{}', 700)})")
    assert filled("SELECT * FROM wide") == [listed("c{}", 700, "|"), listed("{}", 700, "|")]


@pytest.mark.parametrize(
    "text",
    [
        f"VALUES {listed(ROW, 100_000)}",
        f"INSERT INTO t VALUES {listed(ROW, 70_000)}",
        f"SELECT count(*) FROM t WHERE a IN ({listed('{}', 50_000)})",
        f"SELECT count(*) FROM t WHERE {listed('a = {}', 20_000, ' OR ')}",
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("looks", [1, 20, 200, 5_000])
def test_a_statement_can_be_canceled_while_it_is_planned(
    filled: SessionClient, text: str, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks often whether it is to go on: in the lexer, the parser, the binder and the optimizer."""
    asked = 0
    due = Interrupts.due.fget  # type: ignore[attr-defined]

    def counted(self: Interrupts) -> bool:
        nonlocal asked
        asked += 1
        if asked == looks:
            self.cancel()
        return bool(due(self))

    monkeypatch.setattr(Interrupts, "due", property(counted))
    assert filled(text) == ["! 57014 canceling statement due to user request"]
    assert asked <= looks + 10
    monkeypatch.undo()
    assert filled("SELECT count(*) FROM t") == ["count", "1"]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {nested('(', '1', ')', 100_000)}",
        f"SELECT {nested('(', '1', ')', 1_000_000)}",
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

    class Counting(EverviewSql.Parser):
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
    assert found["Literal"] == 27


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1; VALUES (1, HERE'x'::int)",
        "/* ; */ SELECT 1 AS one; -- ;\n INSERT INTO t (a) VALUES (1), (HERE'x')",
        "SELECT 1; SELECT a, HEREnothing FROM t",
        "SELECT 1; SELECT a FROM HEREnothing",
        "SELECT 1; SELECT a FROM t HERE+ 1",
        "SELECT 1; SELECT E'a' || $$b$$, 0x10 + 1_000, HEREnothing",
        "SELECT 1; CREATE TABLE u (a HEREnothing)",
        "SELECT 1; CREATE VIEW v AS SELECT HEREnothing FROM t",
        "SELECT 1; SELECT a FROM t AS OF HEREnothing",
        "SELECT 1; EXPLAIN SELECT HEREnothing FROM t",
        "SELECT 1; SUBSCRIBE HEREnothing",
        "SELECT 1; COPY HEREnothing TO STDOUT",
        "SELECT 1; SELECT 'HEREopen".replace("'HERE", "HERE'"),
    ],
)
def test_errors_point_at_their_place_in_the_whole_text(filled: SessionClient, text: str) -> None:
    session, place = filled.session, text.index("HERE") + 1
    with pytest.raises(SqlError) as raised:
        for piece in session.split(text.replace("HERE", "")):
            session.run(session.prepare(piece))
    assert raised.value.position == place


def test_words_that_are_types_are_names_of_functions_too(filled: SessionClient) -> None:
    assert filled("SELECT date '2024-01-01', text 'x', double precision '1.5', timestamp(0) '2024-01-01 00:00:00.7'")[
        1
    ] == ("2024-01-01|x|1.5|2024-01-01 00:00:01")
    assert filled("SELECT ARRAY[ARRAY[a, 2][1], 3]::int[] FROM t")[1] in ("{1,3}",)
    assert TokenType.ARRAY in EverviewSql.Parser.TYPE_TOKENS
    with pytest.raises(SqlError):
        parse_query("SELECT date '2024-01-01")
