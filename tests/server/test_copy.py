"""COPY data are PostgreSQL's: what it writes we write, what it reads we read, and what it refuses we refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from everview.adapter.contract import Column, CopyFormat, Row
from everview.compute.ir import types as t
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql.errors import SqlError
from everview.server.pgwire import copy, copy_lines
from tests.server import raw

TEXT_FORM = CopyFormat()
CSV_FORM = CopyFormat("csv", ",", "")
FORMS = {
    "text": TEXT_FORM,
    "text, other signs": CopyFormat("text", "|", "nil"),
    "text, header": replace(TEXT_FORM, header=True),
    "csv": CSV_FORM,
    "csv, header": replace(CSV_FORM, header=True),
    "csv, other signs": CopyFormat("csv", ";", "NULL", False, "'", "\\"),
    "csv, forced": replace(CSV_FORM, force_quote=(1,)),
}
COLUMNS = (Column("a", t.TEXT), Column("b", t.TEXT))


def options(form: CopyFormat, *, reading: bool) -> str:
    def quoted(text: str) -> str:
        return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    parts = [f"FORMAT {form.kind}", f"DELIMITER {quoted(form.delimiter)}", f"NULL {quoted(form.null)}"]
    parts.append(f"HEADER {form.header}")
    if form.kind == "csv":
        parts += [f"QUOTE {quoted(form.quote)}", f"ESCAPE {quoted(form.escape)}"]
        if form.force_quote and not reading:
            parts.append("FORCE_QUOTE (b)")
    return ", ".join(parts)


def written(rows: list[Row], form: CopyFormat) -> bytes:
    encode = copy.forms(COLUMNS, form).row
    data = copy.header(COLUMNS, form) + b"".join(map(encode, rows))
    return b"".join(each.body for each in raw.messages(data))


def read(data: bytes, form: CopyFormat, size: int = 7, columns: tuple[Column, ...] = COLUMNS) -> list[Row]:
    return list(copy.read_rows((data[at : at + size] for at in range(0, len(data), size)), columns, form))


@pytest.fixture(scope="module")
def postgres(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE copied (n serial, a text, b text)")
        yield connection


FIELDS = st.none() | st.text(st.sampled_from("ab\\N.|;,'\"\t\n\r\b\vä NUL"), max_size=8)


@pytest.mark.parametrize("name", FORMS)
def test_rows_are_written_as_postgresql_writes_them(name: str, postgres: psycopg.Connection) -> None:
    form = FORMS[name]

    @given(st.lists(st.tuples(FIELDS, FIELDS), max_size=4))
    @settings(max_examples=25)
    def check(rows: list[Row]) -> None:
        postgres.execute("TRUNCATE copied")
        for row in rows:
            postgres.execute("INSERT INTO copied (a, b) VALUES (%s, %s)", row)
        statement = f"COPY (SELECT a, b FROM copied ORDER BY n) TO STDOUT WITH ({options(form, reading=False)})"
        with postgres.cursor().copy(statement.encode()) as source:
            expected = b"".join(bytes(each) for each in source)
        data = written(rows, form)
        assert data == expected
        for size in (1, 3, 1000):
            assert read(data, form, size) == rows

    check()


def given_by_postgres(connection: psycopg.Connection, data: bytes, form: CopyFormat) -> list[Row] | None:
    connection.execute("TRUNCATE copied")
    try:
        with connection.cursor().copy(
            f"COPY copied (a, b) FROM STDIN WITH ({options(form, reading=True)})".encode()
        ) as to:
            to.write(data)
    except psycopg.Error:
        return None
    return connection.execute("SELECT a, b FROM copied ORDER BY n").fetchall()


# Lines end in one way only: mixtures are where we and PostgreSQL may differ about what is wrong with them.
@pytest.mark.parametrize("name", FORMS)
def test_data_are_read_as_postgresql_reads_them(name: str, postgres: psycopg.Connection) -> None:
    form = FORMS[name]
    pieces = [
        form.delimiter,
        form.quote,
        form.escape,
        form.null,
        "\n",
        "\n",
        "a",
        "\\",
        "\\x41",
        "\\101",
        "\\t",
        "ä",
        " ",
    ]

    @given(st.lists(st.sampled_from(pieces), max_size=14), st.sampled_from(["\n", "\r\n", "\r"]))
    @settings(max_examples=80)
    @example(["a", form.delimiter, "a", "\n", "\\", "\n", "a", form.delimiter], "\n")
    @example([form.delimiter, "\\"], "\n")
    @example(["\\", "\n", form.delimiter], "\r\n")
    @example(["a", form.delimiter, "\\", "\r", "\n", "a", form.delimiter, "\\", "\r", "\n"], "\n")
    def check(parts: list[str], end: str) -> None:
        data = "".join(parts).replace("\n", end).encode()
        expected = given_by_postgres(postgres, data, form)
        for size in (1, 5, 1000):
            try:
                found: list[Row] | None = read(data, form, size)
            except SqlError as error:
                assert error.sqlstate in ("22P04", "22021")
                found = None
            if end == "\n" or expected is not None:
                assert found == expected

    check()


def test_the_end_mark_ends_the_data() -> None:
    for form in (TEXT_FORM, CSV_FORM):
        sign = form.delimiter.encode()
        assert read(b"a" + sign + b"b\n\\.\nwhatever comes\n", form) == [("a", "b")]


def test_values_of_columns() -> None:
    columns = (
        Column("n", t.INT4),
        Column("v", SqlType(Kind.VARCHAR, length=3)),
        Column("d", t.numeric(4, 1)),
        Column("l", t.array_of(t.INT4)),
    )
    (row,) = read(b'1,abc  ,1.25,"{1,2}"\n', CSV_FORM, columns=columns)
    assert row[:2] == (1, "abc") and str(row[2]) == "1.3" and row[3] == [1, 2]
    encode = copy.forms(columns, CSV_FORM).row
    assert raw.messages(encode(row))[0].body == b'1,abc,1.3,"{1,2}"\n'


@pytest.mark.parametrize(
    ("data", "sqlstate", "where"),
    [
        (b"1,abc\nx,abc\n", "22P02", 'COPY, line 2, column n: "x"'),
        (b"1,abcd\n", "22001", 'COPY, line 1, column v: "abcd"'),
        (b"1\n", "22P04", 'COPY, line 1: "1"'),
        (b"1,a,b\n", "22P04", 'COPY, line 1: "1,a,b"'),
        (b'1,"a', "22P04", 'COPY, line 1: "1,"a"'),
        (b"1,\xff\n", "22021", 'COPY, line 1: "1,\ufffd"'),
        (b"1,a\0\n", "22021", 'COPY, line 1: "1,a\0"'),
        (b"1,a\n1,a\r\n", "22P04", "COPY, line 2"),
    ],
)
def test_errors_say_where(data: bytes, sqlstate: str, where: str) -> None:
    columns = (Column("n", t.INT4), Column("v", SqlType(Kind.VARCHAR, length=3)))
    with pytest.raises(copy.CopyError) as caught:
        read(data, CSV_FORM, columns=columns)
    assert (caught.value.sqlstate, caught.value.where) == (sqlstate, where)


def test_a_line_has_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_lines, "LINE_BYTES_MAX", 100)
    for data in (b"x" * 200, b'"' + b"x\n" * 100):
        with pytest.raises(SqlError) as caught:
            read(data, CSV_FORM)
        assert caught.value.sqlstate == "54000"


def test_long_lines_are_looked_at_once() -> None:
    lines = copy_lines.Lines(CSV_FORM)
    for _ in range(2_000):  # a megabyte and a half in pieces, inside of quotes
        assert list(lines.feed(b'"' + b"x" * 700 + b'\n"')) == []
    (first,) = lines.feed(b"\n")
    assert len(first) == 2_000 * 703
