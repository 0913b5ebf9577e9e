"""Resolution chooses what PostgreSQL chooses: the same result type for the same argument types, or the same error."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from everview.compute.functions.casts import CastContext as Context
from everview.compute.functions.casts import cast_between
from everview.compute.functions.naming import base, display_name
from everview.compute.functions.registry import NAMES
from everview.compute.functions.resolve import ResolutionError, common_type, resolve, resolve_aggregate
from everview.compute.ir.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    Kind,
    SqlType,
    array_of,
    numeric,
)

VARCHAR = SqlType(Kind.VARCHAR, length=5)
CHAR = SqlType(Kind.CHAR, length=5)
TYPES = (
    *(BOOLEAN, INT2, INT4, INT8, FLOAT4, FLOAT8, numeric(10, 2), TEXT, VARCHAR, CHAR, BYTEA, DATE, TIME, TIMESTAMP),
    *(TIMESTAMPTZ, INTERVAL, UUID, JSONB, array_of(INT4), array_of(TEXT), UNKNOWN),
)
OPERATORS = ("+", "-", "*", "/", "%", "^", "=", "<", "||", "&", "<<", "~~", "~", "->", "->>", "@>", "?")
FUNCTIONS = (
    *("abs", "round", "ceil", "sqrt", "sign", "length", "lower", "reverse", "md5", "to_jsonb", "cardinality"),
    *("justify_days", "array_length", "trunc", "octet_length", "jsonb_typeof", "ascii"),
)
TWO = (
    "round",
    "mod",
    "power",
    "left",
    "strpos",
    "date_trunc",
    "date_part",
    "age",
    "array_append",
    "array_cat",
    "substring",
)
AGGREGATES = ("sum", "avg", "min", "max", "count", "bool_and", "stddev", "array_agg", "jsonb_agg")

QUERY = """
CREATE OR REPLACE FUNCTION type_of(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  EXECUTE 'SELECT pg_typeof(' || expression || ')::text' INTO answer;
  RETURN answer;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
"""


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute(QUERY)
        yield opened


def argument(sql_type: SqlType) -> str:
    return "NULL" if sql_type is UNKNOWN else f"NULL::{sql_type}"


def types_of(connection: psycopg.Connection[Any], expressions: Sequence[str]) -> list[str]:
    query = "SELECT type_of(e) FROM unnest(%s::text[]) WITH ORDINALITY AS t(e, n) ORDER BY n"
    return [answer for (answer,) in connection.execute(query, (list(expressions),)).fetchall()]


def ours(name: str, types: Sequence[SqlType], *, aggregate: bool = False) -> str:
    try:
        result = resolve_aggregate(name, types)[2] if aggregate else resolve(name, types).result
    except ResolutionError as error:
        return error.sqlstate
    return display_name(base(result))


def explained(types: Sequence[SqlType], mine: str, theirs: str) -> bool:
    """The known differences: more than PostgreSQL has, or less of what is not ours."""
    if mine == theirs:
        return True
    kinds = {each.kind for each in types}
    errors = ("42883", "42725", "42804", "22P02", "42P18", "42P38", "42846", "42704", "22004")
    # varchar and char come out as text; an error is an error.
    if (mine == "text" and theirs in ("character varying", "character")) or (mine in errors and theirs in errors):
        return True
    if mine == "text[]" and theirs.startswith("character"):
        return True
    # LIKE and reverse of bytea are missing.
    if kinds <= {Kind.BYTEA, Kind.UNKNOWN} and mine == "42883":
        return True
    # Arrays of two element types are cast, and a literal is taken for text or jsonb, where PostgreSQL refuses.
    return bool({Kind.ARRAY, Kind.UNKNOWN} & kinds) and (
        theirs in errors or (mine in errors[:2] and kinds == {Kind.UNKNOWN})
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, connection: psycopg.Connection[Any]) -> None:
    pairs = list(itertools.product(TYPES, TYPES))
    theirs = types_of(connection, [f"{argument(a)} {name} {argument(b)}" for a, b in pairs])
    wrong = [
        f"{a} {name} {b}: {mine}, PostgreSQL {answer}"
        for (a, b), answer in zip(pairs, theirs, strict=True)
        if not explained((a, b), mine := ours(name, (a, b)), answer)
    ]
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


@pytest.mark.parametrize(("name", "count"), [*((name, 1) for name in FUNCTIONS), *((name, 2) for name in TWO)])
def test_functions(name: str, count: int, connection: psycopg.Connection[Any]) -> None:
    rows = list(itertools.product(TYPES, repeat=count))
    call = f'pg_catalog."{name}"'
    theirs = types_of(connection, [f"{call}({', '.join(map(argument, row))})" for row in rows])
    wrong = [
        f"{name}({', '.join(map(str, row))}): {mine}, PostgreSQL {answer}"
        for row, answer in zip(rows, theirs, strict=True)
        if not explained(row, mine := ours(name, row), answer)
    ]
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(name: str, connection: psycopg.Connection[Any]) -> None:
    theirs = types_of(connection, [f"{name}({argument(each)})" for each in TYPES])
    wrong = [
        f"{name}({each}): {mine}, PostgreSQL {answer}"
        for each, answer in zip(TYPES, theirs, strict=True)
        if not explained((each,), mine := ours(name, (each,), aggregate=True), answer) and each is not UUID
    ]
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


def test_common_types(connection: psycopg.Connection[Any]) -> None:
    pairs = list(itertools.product(TYPES, TYPES))
    theirs = types_of(connection, [f"coalesce({argument(a)}, {argument(b)})" for a, b in pairs])
    wrong = []
    for pair, answer in zip(pairs, theirs, strict=True):
        try:
            mine = display_name(base(common_type(pair)))
        except ResolutionError as error:
            mine = error.sqlstate
        if not explained(pair, mine, answer):
            wrong.append(f"{pair[0]}, {pair[1]}: {mine}, PostgreSQL {answer}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


def test_contexts_of_casts(connection: psycopg.Connection[Any]) -> None:
    known = [each for each in TYPES if each is not UNKNOWN and each.kind is not Kind.ARRAY]
    rows = connection.execute(
        "SELECT castsource::regtype::text, casttarget::regtype::text, castcontext FROM pg_cast"
    ).fetchall()
    contexts = {"i": Context.IMPLICIT, "a": Context.ASSIGNMENT, "e": Context.EXPLICIT}
    listed = {(source, target): contexts[code] for source, target, code in rows}
    wrong = []
    for source, target in itertools.permutations(map(base, known), 2):
        pair = (display_name(source), display_name(target))
        cast = cast_between(source, target)
        theirs = listed.get(pair)
        if theirs is None:  # by way of text
            texts = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
            theirs = Context.ASSIGNMENT if target.kind in texts else Context.EXPLICIT if source.kind in texts else None
        missing = {("bytea", "smallint"), ("bytea", "integer"), ("bytea", "bigint")}
        if (cast.context if cast else None) != theirs and pair not in missing and pair[::-1] not in missing:
            wrong.append(f"{pair}: {cast}, PostgreSQL {theirs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "types", "function", "result"),
    [
        ("+", (INT4, numeric(10, 2)), "add(numeric,numeric)", numeric(13, 2)),
        ("*", (numeric(15, 2), numeric(15, 2)), "mul(numeric,numeric)", numeric(31, 4)),
        ("*", (numeric(38, 12), numeric(38, 12)), "mul(numeric,numeric)", numeric(38, 18)),
        ("/", (numeric(15, 2), INT4), "div(numeric,numeric)", numeric()),
        ("-", (numeric(5, 1), numeric(8, 4)), "sub(numeric,numeric)", numeric(9, 4)),
        ("=", (INT4, UNKNOWN), "eq(int4,int4)", BOOLEAN),
        ("||", (UNKNOWN, UNKNOWN), "concat_text(text,text)", TEXT),
    ],
)
def test_results(name: str, types: tuple[SqlType, ...], function: str, result: SqlType) -> None:
    resolution = resolve(name, types)
    assert (resolution.function.key, resolution.result) == (function, result)


def test_what_a_literal_decides() -> None:
    assert resolve("round", (numeric(10, 4), INT4), (None, 2)).result == numeric(9, 2)
    assert resolve("extract", (TEXT, TIMESTAMP), ("second", None)).result.scale == 6
    assert resolve("extract", (TEXT, TIMESTAMP), ("year", None)).result.scale == 0
    assert resolve("concat", (INT4, UNKNOWN, TEXT)).through == ("text_of(int4)", "text_of(text)", "text_of(text)")


def test_errors_help() -> None:
    with pytest.raises(ResolutionError) as unknown:
        resolve("lenght", (TEXT,))
    assert (unknown.value.sqlstate, unknown.value.hint) == ("42883", "did you mean length?")
    assert unknown.value.message == "function lenght(text) does not exist"
    with pytest.raises(ResolutionError) as mismatch:
        resolve("+", (BOOLEAN, INT4))
    assert mismatch.value.message == "operator does not exist: boolean + integer"
    with pytest.raises(ResolutionError) as untyped:
        resolve("+", (UNKNOWN, UNKNOWN))
    assert untyped.value.sqlstate == "42725"
    assert "generate_series" in NAMES and "sum" in NAMES and "cast" not in NAMES
