"""Every function, operator, cast and aggregate gives what a real PostgreSQL gives, or fails with the same SQLSTATE."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import psycopg
import pytest

from everview.compute.functions import (
    plan_functions,
    regression,
    temporal_bounds,
    temporal_floats,
    temporal_inverses,
    time_sets,
)
from everview.compute.functions.contract import Failure
from everview.compute.functions.keywords import COLUMNS, KEYWORDS, NEED_AS, RESERVED, TYPES_AND_FUNCTIONS
from everview.compute.functions.output import to_text
from everview.compute.functions.registry import AGGREGATES, TABLES
from everview.compute.functions.text import quote_identifier
from everview.compute.ir.types import Kind, SqlType
from tests.compute.functions.samples import Case, by_name, call, cases
from tests.compute.functions.sets import groups, table_calls

ATTEMPT = """
CREATE OR REPLACE FUNCTION attempt(expression text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE answer text[];
BEGIN
  EXECUTE 'SELECT CASE WHEN r IS NULL THEN ARRAY[''null''] ELSE ARRAY[''value'', format(''%s'', r)] END'
    || ' FROM (SELECT ' || expression || ' AS r) AS q' INTO answer;
  RETURN answer;
EXCEPTION WHEN OTHERS THEN RETURN ARRAY['error', SQLSTATE];
END $$;
CREATE TABLE IF NOT EXISTS assigned (v varchar(4), c char(4));
CREATE OR REPLACE FUNCTION attempt_assign_v(value text) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE held varchar(4); BEGIN held := value; RETURN held; END $$;
CREATE OR REPLACE FUNCTION attempt_assign_c(value text) RETURNS char LANGUAGE plpgsql AS $$
DECLARE held char(4); BEGIN held := value; RETURN held; END $$;
"""
# Digits differ by design: computed as floats, or at a static scale.
VARIANCES = {"variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop"}
APPROXIMATE = {
    *("/", "sqrt", "cbrt", "exp", "ln", "log", "log10", "power", "pow", "^", "sin", "cos", "tan", "atan"),
    *("degrees", "radians", "avg", "sum", *VARIANCES),
    *(each.name for each in regression.AGGREGATES),
}
OURS_ALONE = {"single", "some", "any_value", "min(uuid)", "max(uuid)"}
RELATIVE = Decimal("1e-12")
ROUGHLY = Decimal("1e-9")  # PostgreSQL itself shows few digits of a standard deviation


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute("SET timezone = 'UTC'")
        opened.execute("SET extra_float_digits = 1")
        opened.execute("SET intervalstyle = 'postgres'")
        opened.execute(ATTEMPT)
        yield opened


# What plans use and SQL has no name for.
_WITHOUT_NAMES = (plan_functions, temporal_bounds, time_sets, temporal_floats)
NAMELESS = {each.name for family in _WITHOUT_NAMES for each in family.FUNCTIONS}
NAMELESS |= {each.name for each in temporal_inverses.FUNCTIONS if " " in each.name}  # the others are ANY and ALL


def differs(case: Case, ours: Any, theirs: list[str]) -> bool:
    """Whether the answers differ in more than is meant to."""
    kind, *rest = theirs
    if isinstance(ours, Failure):
        return ours.sqlstate != rest[0] if kind == "error" else not beyond(case.result, ours, theirs)
    if kind == "error":
        return True
    if ours is None or kind == "null":
        return (ours is None) != (kind == "null")
    return not same(case.result, ours, rest[0], approximate=case.function.name in APPROXIMATE)


def same(sql_type: SqlType, ours: Any, theirs: str, *, approximate: bool, relative: Decimal = RELATIVE) -> bool:
    """Whether a value is what PostgreSQL shows."""
    text = to_text(ours, sql_type)
    if text == theirs:
        return True
    if sql_type.kind is Kind.NUMERIC:
        if theirs in ("NaN", "Infinity", "-Infinity"):
            return False
        with localcontext(prec=100):
            value = Decimal(theirs)
            if abs(value - ours) <= Decimal("0.5").scaleb(-sql_type.scale):
                return True
            return approximate and abs(value - ours) <= abs(value) * relative
    if sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8) and approximate and theirs not in ("NaN", "Infinity", "-Infinity"):
        return abs(Decimal(theirs) - Decimal(ours)) <= max(abs(Decimal(theirs)) * relative, Decimal("1e-300"))
    if sql_type.kind is Kind.JSONB:  # numbers keep no zeros at the end
        return text == re.sub(r"(\.[0-9]*?)0+\b", lambda digits: digits[1].rstrip("."), theirs)
    # Zero has no sign: equal values have equal representations.
    return theirs == "-0" and text == "0"


def beyond(sql_type: SqlType, failure: Failure, theirs: list[str]) -> bool:
    """Whether PostgreSQL's answer is one that our representations do not hold."""
    if theirs[0] == "null":  # a jsonb null is no number
        return failure.sqlstate == "22023" and "cannot cast jsonb null" in failure.message
    if failure.sqlstate == "22003":  # more than 38 digits, or a numeric NaN
        return theirs[1] in ("NaN", "Infinity", "-Infinity") or (
            sql_type.kind is Kind.NUMERIC and abs(Decimal(theirs[1])) >= Decimal(10) ** (38 - sql_type.scale)
        )
    # Only the years 1 to 9999.
    return failure.sqlstate == "22008" and bool(re.search(r"BC|^[0-9]{5}|infinity", theirs[1]))


@pytest.mark.parametrize("name", sorted(by_name().keys() - NAMELESS))
def test_function(name: str, connection: psycopg.Connection[Any]) -> None:
    tried = [(case, sql) for function in by_name()[name] for case in cases(function) if (sql := call(case)) is not None]
    wrong = []
    for (case, sql), theirs in zip(tried, ask(connection, [sql for _, sql in tried]), strict=True):
        ours = case.evaluate()
        if differs(case, ours, theirs):
            shown = f"{ours.sqlstate} {ours}" if isinstance(ours, Failure) else ours
            wrong.append(f"{case.function.key} {sql}: {shown!r}, PostgreSQL {theirs}")
    assert not wrong, f"{len(wrong)} of {len(tried)}\n" + "\n".join(wrong[:40])


def ask(connection: psycopg.Connection[Any], expressions: list[str]) -> list[list[str]]:
    """What PostgreSQL answers to each expression."""
    query = "SELECT attempt(e) FROM unnest(%s::text[]) WITH ORDINALITY AS t(e, n) ORDER BY n"
    return [answer for (answer,) in connection.execute(query, (expressions,)).fetchall()]


@pytest.mark.parametrize("name", sorted({each.name for each in AGGREGATES.values()}))
def test_aggregate(name: str, connection: psycopg.Connection[Any]) -> None:
    chosen = [each for each in AGGREGATES.values() if each.name == name and not {each.key, name} & OURS_ALONE]
    every = [group for each in chosen for group in groups(each)]
    asked = [group for group in every if not {Kind.MZ_TIMESTAMP, Kind.CHAR} & {each.kind for each in group.types}]
    wrong = []
    for group, theirs in zip(asked, ask(connection, [group.sql() for group in asked]), strict=True):
        ours = group.evaluate()
        if isinstance(ours, Failure):
            # The squares of the largest integers have more than 38 digits.
            right = theirs == ["error", ours.sqlstate] or (name in VARIANCES and ours.sqlstate == "22003")
        elif ours is None or theirs[0] != "value":
            right = ours is None and theirs[0] == "null"
        else:
            relative = ROUGHLY if name in VARIANCES else RELATIVE
            right = same(group.result, ours, theirs[1], approximate=name in APPROXIMATE, relative=relative)
        if not right:
            wrong.append(f"{group.aggregate.key} {group.sql()}: {ours!r}, PostgreSQL {theirs}")
    assert not wrong, f"{len(wrong)} of {len(asked)}\n" + "\n".join(wrong[:20])


# Those that look into a catalog are there if the adapter is loaded, and are no part of this.
@pytest.mark.parametrize("name", sorted({each.name for each in TABLES.values() if not each.volatile}))
def test_table_function(name: str, connection: psycopg.Connection[Any]) -> None:
    calls = [each for function in TABLES.values() if function.name == name for each in table_calls(function)]
    wrong = []
    for made, theirs in zip(calls, ask(connection, [each.sql() for each in calls]), strict=True):
        ours = made.evaluate()
        if isinstance(ours, Failure):
            right = theirs == ["error", ours.sqlstate]
        else:
            shown = [
                "|".join(
                    "<NULL>" if value is None else to_text(value, each)
                    for value, each in zip(row, made.columns, strict=True)
                )
                for row in ours
            ]
            right = theirs[0] == "value" and json.loads(theirs[1]) == shown
        if not right:
            wrong.append(f"{made.function.key} {made.texts}: {ours!r}, PostgreSQL {theirs}")
    assert not wrong, f"{len(wrong)} of {len(calls)}\n" + "\n".join(wrong[:20])


def test_words_that_need_quotes(connection: psycopg.Connection[Any]) -> None:
    found = connection.execute("SELECT word, quote_ident(word) FROM pg_get_keywords()").fetchall()
    assert {word for word, shown in found if shown != word} == KEYWORDS
    assert all(quote_identifier(word) == shown for word, shown in found)


def test_categories_of_words(connection: psycopg.Connection[Any]) -> None:
    found = connection.execute("SELECT word, catcode, barelabel FROM pg_get_keywords()").fetchall()
    for code, words in (("R", RESERVED), ("T", TYPES_AND_FUNCTIONS), ("C", COLUMNS)):
        assert {word for word, category, _ in found if category == code} == set(words)
    assert {word for word, _, bare in found if not bare} == NEED_AS
