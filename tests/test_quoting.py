"""Quoted names and texts are read back as what they were, by a database that has these rules."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

import everview
from everview.compute.functions.spark_sql import unquoted
from everview.quoting import escape_literal, identifier, literal, spark_identifier, spark_literal

ODD = ["", "a", "it's", '"', "''", "a.b", "--", "\\", "\\'", "$x", "${x}", "`", "é\n\t", "'; DROP TABLE t; --"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_quoted_is_read_back(text: str) -> None:
    with sqlite3.connect(":memory:") as db:
        name = text or "empty"
        cursor = db.execute(f"SELECT {literal(text)} AS {identifier(name)}")
        assert cursor.description[0][0] == name
        assert cursor.fetchone() == (text,)
    assert unquoted(spark_literal(text)) == text


def test_backslashes_mean_the_same_whatever_the_setting() -> None:
    assert escape_literal("a'b") == "'a''b'"
    assert escape_literal("a\\b'") == "E'a\\\\b'''"


def test_backticks_are_doubled() -> None:
    assert spark_identifier("a`b") == "`a``b`"


def test_nobody_else_doubles_quotes() -> None:
    source = Path(everview.__file__).parent
    doubling = re.compile(r"""\.replace\(("'", "''"|'"', '""')\)""")
    found = {str(each.relative_to(source)) for each in source.rglob("*.py") if doubling.search(each.read_text())}
    assert found == {"quoting.py"}
