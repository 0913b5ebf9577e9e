"""COPY data read by columns: the same rows as read one by one, and whatever is odd is left to that."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from everview.adapter.contract import Column, CopyFormat, Row
from everview.compute.ir import types as t
from everview.compute.ir.types import SqlType
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Rows, rows_of
from everview.compute.sql.errors import SqlError
from everview.server.pgwire import copy, copy_columns
from everview.server.pgwire.copy import RowReader, read_rows

# Texts that stand in quotes in csv, and some of them with escapes in the text format.
QUOTED = ['say "hi"', '"', '""', "a,b;c", "two\nlines", "\n", "back\\slash", "\\N", "\\\\", "\\n", "tab\tstop", "|"]
# Of each type texts that Arrow reads, and texts that are wrong, rare, or mean something else to Arrow.
PLAIN: dict[SqlType, list[str]] = {
    t.INT2: ["0", "-1", "32767", "-32768", "007", "-0"],
    t.INT4: ["5", "-2147483648", "2147483647", "0012"],
    t.INT8: ["123456789012345678", "-5", "0"],
    t.FLOAT8: ["0", "-0", "1.5", "-2.25e10", "1e-300", "123456789.123456789", "0e5", "0.1"],
    t.numeric(): ["0", "1.5", "-12345678901234567890.123456789012345678", "007.10", "-0.0"],
    t.numeric(6, 2): ["1234.56", "-0.5", "9999", "0.00"],
    t.BOOLEAN: ["t", "f", "true", "false"],
    t.TEXT: ["", "a", "ä ö", "x" * 300, "N", " padded ", "null", "NULL", "1", "nan", *QUOTED],
    t.DATE: ["2024-02-29", "1999-12-31", "9999-12-31"],
    t.TIMESTAMP: ["2024-02-29 23:59:59", "2024-02-29T00:00:00.5", "1500-01-01 12:00:00.123456"],
    t.TIMESTAMPTZ: ["2024-02-29 23:59:59+00", "2024-02-29T01:00:00Z", "2024-01-01 00:00:00.25-05:30"],
    t.UUID: ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    t.JSONB: ['{"a": [1, 2]}', "3"],
    t.array_of(t.INT4): ["{1,2,NULL}", "{}"],
    t.INTERVAL: ["1 day 02:00:00", "3 mons"],
    t.FLOAT4: ["1.1", "16777217"],
}
ODD: dict[SqlType, list[str]] = {
    t.INT2: ["32768", "+5", " 5", "0x10", "1_000", "", "5.0", "٣"],
    t.INT4: ["2147483648", "1e3", "--1", "9" * 30],
    t.INT8: ["9223372036854775807", "9223372036854775808", "99999999999999999999"],
    t.FLOAT8: ["NaN", "inf", "-Infinity", "1e400", "1e-400", "0x1p3", "1.", ".5", " 1"],
    t.numeric(): ["1e5", "NaN", "1" * 40, "0." + "1" * 30, ".5", "1."],
    t.numeric(6, 2): ["12345.67", "0.125", "0.126", "99999.999"],
    t.BOOLEAN: ["yes", "T", "1", "on", "tru", ""],
    t.TEXT: ["back\\\\slash", "tab\\t", "\\N inside", "x\\N", "\\101"],
    t.DATE: ["2024-02-30", "0000-01-01", "infinity", "20240229", "2024-2-3", "10000-01-01", "epoch", "2023-02-29"],
    t.TIMESTAMP: [
        "2024-01-01 24:00:00",
        "2024-01-01 10:00:60",
        "2024-01-01",
        "infinity",
        "2024-01-01 10:00:00.1234567",
    ],
    t.TIMESTAMPTZ: ["2024-01-01 00:00:00 Europe/Berlin", "2024-01-01 00:00:00", "-infinity", "2024-01-01 00:00:00+25"],
    t.UUID: ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "nothing"],
    t.JSONB: ["{", ""],
    t.array_of(t.INT4): ["{1,", "[0:1]={1,2}"],
    t.INTERVAL: ["P1D", "one day"],
    t.FLOAT4: ["1e39", "nan"],
}
TYPES = list(PLAIN)
ESCAPED = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\v": "\\v"}  # in the text format


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "BLOCK_BYTES", 300)
    monkeypatch.setattr(copy, "QUICK_BYTES_MIN", 1)


def outcome(found: Iterator[Row | pa.Table], types: list[SqlType]) -> tuple[Rows, tuple[str, str, str] | None]:
    """The rows up to the first error, and the error with where it is."""
    rows: list[tuple[Row, int]] = []
    try:
        for each in found:
            rows += rows_from_arrow(each, types).items() if isinstance(each, pa.Table) else [(each, 1)]
    except copy.CopyError as error:
        return rows_of(rows, types), (error.sqlstate, error.message, error.where)
    except SqlError as error:
        return rows_of(rows, types), (error.sqlstate, error.message, "")
    return rows_of(rows, types), None


def field_of(rng: random.Random, of: SqlType, form: CopyFormat, *, odd: float) -> str:
    """A field as a writer makes it, or an odd one."""
    if rng.random() < odd:
        return rng.choice(ODD[of])
    text = rng.choice(PLAIN[of])
    if form.kind == "csv":
        quoted = set(text) & set(',;"\n') or "\\." in text or text == form.null or rng.random() < 0.1
        return f'"{text.replace(chr(34), chr(34) * 2)}"' if quoted else text
    escaped = "".join(ESCAPED.get(each, each) for each in text)
    return escaped.replace(form.delimiter, f"\\{form.delimiter}")


def data_of(rng: random.Random, types: list[SqlType], form: CopyFormat, *, odd: float) -> bytes:
    """Lines, of which some hold what is odd, or are odd themselves."""
    lines = ["header"] if form.header else []
    for _ in range(rng.randint(0, 60)):
        fields = [form.null if rng.random() < 0.1 else field_of(rng, each, form, odd=odd) for each in types]
        line = form.delimiter.join(fields)
        if rng.random() < odd / 5:
            cut = line[: len(line) // 2]
            line = rng.choice([line + form.delimiter, "", cut, line + "\r", "\\.", line + "\\\n", cut + '"' + line])
        lines.append(line)
    ending = "\r\n" if rng.random() < 0.2 else "\n"
    return (ending.join(lines) + (ending if rng.random() < 0.8 else "")).encode()


FORMS = [
    CopyFormat("text", "\t", "\\N"),
    CopyFormat("text", "|", ""),
    CopyFormat("csv", ",", ""),
    CopyFormat("csv", ",", "", header=True),
    CopyFormat("csv", ";", "NULL"),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind} {form.delimiter!r} {form.null!r}")
def test_blocks_are_read_as_rows_are(form: CopyFormat, rng: random.Random, long_forms: bool) -> None:
    by_columns = 0
    for number in range(4_000 if long_forms else 250):
        types = rng.sample(TYPES, rng.randint(1, 4))
        columns = [Column(f"c{index}", each) for index, each in enumerate(types)]
        data = data_of(rng, types, form, odd=(0, 0, 0.02, 0.3)[number % 4])
        cuts = sorted(rng.sample(range(len(data) + 1), min(len(data), rng.randint(0, 5))))
        chunks = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        reader = RowReader(columns, form)

        def one_by_one(reader: RowReader = reader, chunks: list[bytes] = chunks) -> Iterator[Row]:
            for chunk in chunks:
                yield from reader.feed(chunk)
            yield from reader.finish()

        found = list(_counting(read_rows(chunks, columns, form)))
        by_columns += sum(isinstance(each, pa.Table) for each in found)
        rows, error = outcome(_replayed(found), types)
        expected, failed = outcome(one_by_one(), types)
        assert error == failed, data
        assert rows == expected, data
    assert by_columns > 100


def _counting(found: Iterator[Row | pa.Table]) -> Iterator[Row | pa.Table | Exception]:
    try:
        yield from found
    except SqlError as error:
        yield error


def _replayed(found: list[Row | pa.Table | Exception]) -> Iterator[Row | pa.Table]:
    for each in found:
        if isinstance(each, Exception):
            raise each
        yield each


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_ordinary_texts_are_read_by_columns(of: SqlType) -> None:
    """And no others are taken for something else."""
    parser = copy_columns.block_parser([Column("c", of)], FORMS[0])
    assert parser is not None
    plain = ["".join(ESCAPED.get(each, each) for each in text) for text in PLAIN[of]]
    if of is not t.INT2:
        assert parser.read("".join(f"{text}\n" for text in (*plain, "\\N")).encode(), None) is not None
    for text in ODD[of]:
        found = parser.read(f"{text}\n".encode(), None)
        reader = RowReader([Column("c", of)], FORMS[0])
        expected, failed = outcome(reader.feed(f"{text}\n".encode()), [of])
        assert found is None or (failed is None and rows_from_arrow(found[0], [of]) == expected), text


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("form", [FORMS[0], FORMS[2], FORMS[4]], ids=lambda form: f"{form.kind} {form.delimiter!r}")
def test_quotes_and_escapes_are_read_by_columns(form: CopyFormat, ending: str, rng: random.Random) -> None:
    """Not only blocks without any of them."""
    columns = [Column("c0", t.INT4), Column("c1", t.TEXT)]
    texts = [each for each in QUOTED if ending == "\n" or form.kind == "text" or "\n" not in each]
    lines = []
    for number in range(50):
        text = rng.choice(texts)
        if form.kind == "csv":
            lines.append(f'{number}{form.delimiter}"{text.replace(chr(34), chr(34) * 2)}"')
        else:
            lines.append(f"{number}\t" + "".join(ESCAPED.get(each, each) for each in text))
    parser = copy_columns.block_parser(columns, form)
    assert parser is not None
    block = "".join(f"{line}{ending}" for line in lines).encode()
    found = parser.read(block, None)
    assert found is not None and found[0].num_rows == 50 and found[1] == ending.encode()
    expected, failed = outcome(RowReader(columns, form).feed(block), [t.INT4, t.TEXT])
    assert failed is None and rows_from_arrow(found[0], [t.INT4, t.TEXT]) == expected
    assert parser.end(block) == len(block) == parser.end(block + b"9" + form.delimiter.encode() + b'"open')
    assert parser.read(block, b"\r") is None, "lines end in one way"
