"""Strings mean what they mean to PostgreSQL, and nothing to Spark but themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg
import pytest

from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.literal import render_literal
from everview.compute.engine.spark.session import profiles
from everview.compute.functions import registry
from everview.compute.functions.contract import Failure
from everview.compute.functions.spark_sql import NotOnSpark, render
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import types
from everview.compute.ir.types import TEXT
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.parameters import parameter
from everview.quoting import spark_literal
from tests.compute.functions import samples
from tests.compute.sql.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITTEN = [
    r"E'a\tb\n\r\b\f\\'",
    r"E'it\'s' || e'it''s \'' || E''",
    r"E'\x41\x4a\101\60\8'",
    r"E'\xC3\xA9\303\251'",
    r"E'\u00e9\U0001F600\uD83D\uDE00'",
    r"E'\q\%\_\''",
    r"E'a\x00b'",
    r"E'\000'",
    r"E'\u0000'",
    r"E'\uD800'",
    r"E'\uD800x'",
    r"E'\uD800\x41'",
    r"E'\uDC00'",
    r"E'\uD800\uD800'",
    r"E'\u12'",
    r"E'\U00110000'",
    r"E'\xff'",
    r"E'\xed\xa0\x80'",
    r"'\x41 E''\t'' '",
    r"$$ E'\t' ' $$ || $a$ ${b} $$ $a$",
    r"'${env:HOME}' || E'\x24{env:HOME}'",
    "E'first'\n'second'",
    r"""('"\ud83d\ude00"'::jsonb)::text""",
    r"""('"\ud800"'::jsonb)::text""",
    r"""('{"\ud800": 1}'::jsonb)::text""",
    r"""('["\u0000"]'::jsonb)::text""",
]


def ours(query: str) -> str:
    try:
        (row,) = evaluate(plan(query, Tables()).relation, {}).rows
    except (SqlError, Failure) as error:
        return error.sqlstate
    return repr(row)


def theirs(connection: psycopg.Connection, query: str) -> str:
    try:
        return repr(connection.execute(query.encode()).fetchone())
    except psycopg.Error as error:
        connection.rollback()
        return str(error.sqlstate)


def test_strings_are_postgresqls(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        answers = {written: (ours(query := f"SELECT {written}"), theirs(connection, query)) for written in WRITTEN}
    assert {written: pair for written, pair in answers.items() if pair[0] != pair[1]} == {}


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_parameters_are_texts(text: str) -> None:
    with pytest.raises(SqlError, match="invalid byte sequence") as raised:
        parameter(text, TEXT)
    assert raised.value.sqlstate == "22021"


HOSTILE = [
    "${env:HOME}", "${system:user.dir}", "${spark.app.name}", "${hivevar:x}", "\\${env:HOME}", "{{ x }}", "{0}",
    "%s", ":name", "?", "`", "``", "\\", "\\\\", "\\'", "'", "''", '"', "\\u0041", "\\n", "\n", "\r", "\t", "\x01",
    "\x7f", "--", "/*", "*/", "/*+ x */", ";", "$", "$$", "\\$", "\\%", "\\_", "%", "_", "\u2028", "\ufeff",
    "\U0001f600", "e\u0301", "r'x'",
    # What renderings call their inputs, steps and functions, and what they look for in what Spark says.
    "@input0@", "everview_input_0", "everview_packed", "everview_0", "step_0", "let0", "c0", "_diff", "v.a",
    "everview_python_x", "everview_python_x_0123456789abcdef", "everview: an evaluation failed", "Exchange", "sum(",
]  # fmt: skip
ALL = "".join(HOSTILE)


class Texts:
    """A catalog of one table, which holds the hostile texts."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("h", ("i", "v"), (TEXT, TEXT)) if path[-1] == "h" else None

    def names(self) -> list[str]:
        return ["h"]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def by_number(form: str) -> str:
    """An expression with each of the texts as a literal, in the row of that text."""
    whens = (f"WHEN '{number}' THEN {form.format(text=literal(text))}" for number, text in enumerate(HOSTILE))
    return f"CASE i {' '.join(whens)} END"


# Compared, concatenated, returned, in patterns, and as arguments of functions that only Python has.
EACH = (
    "v = {text}", "v || {text}", "{text}", "v LIKE '%' || {text} ESCAPE ''", "strpos(v, {text})",
    "regexp_replace({text} || i, i || '$', 'x')", "v ~ ('***=' || {text})",
)  # fmt: skip
TOGETHER = [
    "SELECT string_agg(v || {text}, {text} ORDER BY i), max(v) FILTER (WHERE v <> {text}), min({text} || v) FROM h",
    "SELECT i, lag(v, 1, {text}) OVER (ORDER BY i), string_agg(v, {text}) OVER (ORDER BY i ROWS 1 PRECEDING),"
    " first_value({text} || v) OVER (PARTITION BY v = {text} ORDER BY i) FROM h",
    "SELECT v, jsonb_build_object(v, {text})::text, ARRAY[{text}, v], CASE v WHEN {text} THEN {text} ELSE v END,"
    " v IN ({text}, '{{0}}', v), coalesce(nullif(v, v), {text}) FROM h",
    "SELECT part, column1, count(*) FROM h JOIN (VALUES ({text}), ('x')) AS w ON v <> column1,"
    " regexp_split_to_table({text}, 'a') AS part GROUP BY part, column1",
    "SELECT DISTINCT x.v || {text}, normalize(y.v || {text}) FROM h x JOIN h y ON x.v || {text} = y.v || {text}",
    "SELECT v FROM h WHERE i < '3' UNION SELECT {text} ORDER BY 1 LIMIT 3",
    "SELECT to_char(timestamp '2024-02-03', literals.l), v FROM h, (SELECT {text} AS l) AS literals",
]


@pytest.mark.spark
def test_texts_mean_nothing_to_spark(spark: SparkSession) -> None:
    """As one statement over views, as a prepared one, and over inputs that are packed into one."""
    queries = [f"SELECT i, {', '.join(map(by_number, EACH))} FROM h WHERE v IN ({', '.join(map(literal, HOSTILE))})"]
    queries += [query.format(text=literal(ALL)) for query in TOGETHER]
    rows = {(f"{number}", text): 1 for number, text in enumerate(HOSTILE)}
    inputs = {"h": rows_to_arrow(rows, [TEXT, TEXT])}
    small = profiles(spark).small
    engine, packing = SparkEngine(small), SparkEngine(small)
    packing._prepared = None
    for query in queries:
        relation = optimize(plan(query, Texts()).relation)
        expected = evaluate(relation, {"h": rows}).rows
        if query is queries[0]:
            assert {(row[0], row[1], row[3]) for row in expected} == {(i, True, v) for i, v in rows}
        steps = [("all", relation)]
        results = {
            "views": engine.run(relation, inputs),
            "prepared": engine.run_steps(steps, ["all"], inputs)["all"],
            "packed": packing.run_steps(steps, ["all"], inputs)["all"],
        }
        for way, result in results.items():
            assert rows_from_arrow(result, types(relation)) == expected, f"{way}: {query}"
        if query is queries[0]:
            assert engine._prepared is not None
            assert len(engine._prepared) == 1, "no text keeps a statement from being prepared"


# An argument that no rendering may look into: a call of a column, with a text in which each character is escaped.
OPAQUE = spark_literal("\\'{0}{{}}%s`\\\\$c0@\n\"--")


def test_renderings_leave_their_arguments_as_they_are() -> None:
    """All arguments of each function are opaque, or one of them is, and the others are literals that it may look at."""

    def opaque(place: int) -> str:
        return f"opaque({place}, {OPAQUE})"

    changed = {}
    for function in registry.FUNCTIONS.values():
        for case in samples.cases(function):
            if None in case.values:
                continue
            known = [render_literal(value, each) for value, each in zip(case.values, case.types, strict=True)]
            for only in (None, *range(len(known))):
                args = [opaque(place) if only in (None, place) else each for place, each in enumerate(known)]
                try:
                    rendered = render(function, args, case.types, samples.result_of(function, case.types))
                except NotOnSpark:
                    continue
                if any(rendered.count(f"opaque({n}, ") != rendered.count(opaque(n)) for n in range(len(args))):
                    changed[function.key] = rendered
    assert changed == {}
