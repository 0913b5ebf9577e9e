"""Statements as values: words, splitting, and what each kind of statement says."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.adapter.catalog.items import ColumnInfo, MaterializedView, Table
from everview.adapter.statements import nodes
from everview.adapter.statements.parse import parse
from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import SqlText, split, tokens


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        (" ; ;", []),
        ("select 1", ["select 1"]),
        ("a; b ;c", ["a", "b", "c"]),
        ("select ';' ; x", ["select ';'", "x"]),
        ('select ";" ; x', ['select ";"', "x"]),
        ("select $$;$$; select $a$ $$ ; $a$", ["select $$;$$", "select $a$ $$ ; $a$"]),
        ("-- a;\nb /* ; /* ; */ */ c;", ["b /* ; /* ; */ */ c"]),
        (r"select E'\';' ; x", [r"select E'\';'", "x"]),
        ("select 'it''s;'; y", ["select 'it''s;'", "y"]),
    ],
)
def test_splitting(text: str, pieces: list[str]) -> None:
    found = split(text)
    assert list(found) == pieces
    for piece in found:  # each knows where it stands
        assert text[piece.offset :].startswith(piece)


def test_splitting_takes_no_more_than_the_text() -> None:
    """All words of a long text together would take many times its memory."""
    text = "SELECT 1;" * 20_000
    tracemalloc.start()
    try:
        pieces = split(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * len(text)
    assert len(pieces) == 20_000 and pieces[-1].offset == len(text) - 9
    assert pieces[1:3] == ["SELECT 1"] * 2
    with pytest.raises(IndexError):
        pieces[20_000]


@given(st.text(alphabet="abc '\";$-/*\n1.E\\(", max_size=40))
def test_any_text_is_split_or_refused(text: str) -> None:
    try:
        pieces = split(text)
    except SqlError as error:
        assert error.sqlstate == "42601"
        return
    assert "".join("".join(piece.split()) for piece in pieces).count("\0") == 0
    assert tokens(text)[-1].kind == "end"


@given(st.text(alphabet="abcselctinovwh '\";$-/*\n1.,=()", max_size=60))
def test_any_statement_is_parsed_or_refused(text: str) -> None:
    try:
        parse(text)
    except SqlError as error:
        assert error.sqlstate in ("42601", "0A000", "22023")


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("select 1 as of 5", nodes.Query(SqlText("select 1"), nodes.AsOf(SqlText("5")))),
        ("begin isolation level serializable read only", nodes.Begin("serializable", True)),
        ("START TRANSACTION", nodes.Begin(tag="START TRANSACTION")),
        ("end", nodes.End(True)),
        ("abort", nodes.End(False)),
        ("set a.b = 'x'", nodes.Set("a.b", "x")),
        ("set session time zone default", nodes.Set("timezone", None)),
        ("reset all", nodes.Reset(None)),
        ("show Time Zone", nodes.Show("timezone")),
        ("fetch 5 from c", nodes.Fetch("c", 5)),
        ("fetch all c with (timeout = '1s')", nodes.Fetch("c", None, "1s")),
        ("close all", nodes.CloseCursor(None)),
        (
            "drop materialized view if exists a, b.c cascade",
            nodes.Drop(MaterializedView, (("a",), ("b", "c")), True, True),
        ),
        ("alter table t rename to u", nodes.Rename(Table, ("t",), "u")),
        ("alter table t rename column a to b", nodes.Rename(Table, ("t",), "b", "a")),
        ("comment on column a.b is null", nodes.CommentOn(ColumnInfo, ("a", "b"), None)),
        ("create index on t (a, lower(b))", nodes.CreateIndex(None, ("t",), (SqlText("a"), SqlText("lower(b)")))),
        ("create default index on t", nodes.CreateIndex(None, ("t",), ())),
        ("deallocate prepare x", nodes.Deallocate("x")),
        ("with x as (select 1) delete from t", nodes.Modify(SqlText("with x as (select 1) delete from t"), "delete")),
        ("truncate table a, b", nodes.Truncate((("a",), ("b",)))),
        ("discard all", nodes.Discard("all")),
        ("", nodes.Empty()),
    ],
)
def test_parsing(text: str, node: nodes.Statement) -> None:
    assert parse(text) == node


@pytest.mark.parametrize(
    "text",
    [
        "subscribe to t as of 5 up to 7 with (progress)",
        "tail t with (snapshot = false)",
        "subscribe (select 1) envelope upsert (key (a, b))",
        "copy (subscribe to t) to stdout with (format csv)",
        "copy t (a) from stdin (format csv, null 'x', force_quote (a))",
        "create materialized view r replacing m as select 1",
        "create replacement materialized view r for m as select 1",
        "create source s from load generator counter (tick interval '1s')",
        "explain timestamp for select 1",
        "explain (verbose) select 1",
        "create table t (a int default (1 + 2) not null, b numeric(10, 2)) with (retain history for '1h')",
        "declare c cursor for subscribe t",
        "set search_path = a, \"B\", 'c'",
    ],
)
def test_these_are_statements(text: str) -> None:
    assert parse(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("create tabel t (a int)", "tabel"),
        ("drop t", "t"),
        ("create table t (a int", None),
        ("select 1 as of", None),
        ("begin now", "now"),
        ("fetch from", None),
        ("alter table t", None),
        ("create view v select 1", "select"),
    ],
)
def test_errors_say_where(text: str, near: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        parse(text)
    assert caught.value.sqlstate == "42601"
    if near is None:
        assert "at end of input" in caught.value.message
    else:
        assert caught.value.message == f'syntax error at or near "{near}"'
        assert caught.value.position == text.rindex(near) + 1


@pytest.mark.parametrize("text", ["BEGIN;", " COMMIT ; ", "SHOW x -- ;\n;", "SELECT 1;", ";", ""])
def test_a_semicolon_may_end_a_statement(text: str) -> None:
    assert parse(text) == parse(text.rstrip().removesuffix(";"))


def test_one_statement_at_a_time() -> None:
    assert parse("SET application_name = ';'") == nodes.Set("application_name", ";")
    with pytest.raises(SqlError, match="multiple commands"):
        parse("BEGIN; COMMIT")
