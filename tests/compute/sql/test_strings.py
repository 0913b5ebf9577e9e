"""Strings mean what they mean to PostgreSQL, and nothing to Spark but themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg
import pytest

from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import profiles
from everview.compute.functions.contract import Failure
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import types
from everview.compute.ir.types import TEXT
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.sql.errors import SqlError
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.parameters import parameter
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
    "\U0001f600", "e\u0301", "r'x'", "everview_python_x",
]  # fmt: skip


class Texts:
    """A catalog of one table, which holds the hostile texts."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("h", ("i", "v"), (TEXT, TEXT)) if path[-1] == "h" else None

    def names(self) -> list[str]:
        return ["h"]


def test_texts_mean_nothing_to_spark(spark: SparkSession) -> None:
    """As literals that are compared, concatenated and returned, in patterns, and as arguments of Python's functions."""
    engine = SparkEngine(profiles(spark).small)
    rows = {(f"{number}", text): 1 for number, text in enumerate(HOSTILE)}
    quoted = [text.replace("'", "''") for text in HOSTILE]
    found = " UNION ALL ".join(
        f"SELECT i, v || '{text}' AS a, '{text}' AS b, v LIKE '%{text}' ESCAPE '' AS c, strpos(v, '{text}')::text AS d,"
        f" regexp_replace('{text}' || i, i || '$', 'x') AS e FROM h WHERE v = '{text}'"
        for text in quoted
    )
    relation = optimize(plan(found, Texts()).relation)
    expected = evaluate(relation, {"h": rows}).rows
    assert sorted(row[0] for row in expected) == sorted(row[0] for row in rows)
    result = engine.run(relation, {"h": rows_to_arrow(rows, [TEXT, TEXT])})
    assert rows_from_arrow(result, types(relation)) == expected
