"""What tasks of Spark find in a file is what the iterator finds, however odd its lines are."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from everview.cdc.codec.contract import Bad, Item, Partial, codec_for
from everview.cdc.codec.json import JsonCodec, blocks
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.files import Folder
from everview.cdc.rows import rows_of
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.cdc.spark import stream_files
from everview.cdc.spark.quick_json import QuickJson
from everview.cdc.spark.stream_files import FileRows
from everview.cdc.times import from_wire
from everview.timely.antichain import Antichain
from tests.cdc import values

COLUMNS = pa.schema([pa.field("n", pa.int64(), False), ("text", pa.string()), ("real", pa.float64())])
SCHEMA = StreamSchema(COLUMNS)
PRODUCT = StreamSchema(COLUMNS, (0, 0))


def update(
    *, n: str = "1", text: str = '"a"', real: str = "0.5", time: str = "1", diff: str = "1", more: str = ""
) -> str:
    return f'{{"data":{{"n":{n},"text":{text},"real":{real}}},"time":{time},"diff":{diff}{more}}}'


def updates(*each: str) -> str:
    return f'{{"updates":[{",".join(each)}]}}'


ODD = [
    "",
    "  ",
    "nonsense",
    "{}",
    "[]",
    "null",
    '{"updates":null}',
    '{"updates":{}}',
    '{"updates":[]}',
    '{"updates":[null]}',
    '{"updates":[5]}',
    '{"upsets":[]}',
    f"[{updates(update())}]",
    updates(update()) * 2,
    updates(update()) + " ",
    " " + updates(update()),
    updates(update()) + "x",
    updates(update())[:-5],
    updates(update(more=',"and":[1,{"more":null}]')),
    updates(update(), update(diff="0")),
    updates(update(), update(diff="null")),
    updates(update(), update(diff="9223372036854775808")),
    updates(update(), update(diff="1.0")),
    updates(update(), update(diff="true")),
    updates(update(), update(time="-1")),
    updates(update(), update(time="null")),
    updates(update(), update(time='"1"')),
    updates(update(), update(time="[1]")),
    updates(update(), update(time="[1,2]")),
    updates(update(), update(time="[1,null]")),
    updates(update(), update(n="null")),
    updates(update(), update(n='"1"')),
    updates(update(), update(n="1e3")),
    updates(update(), update(n="01")),
    updates(update(), update(n='1,"n":2')),
    updates(update(), update(text="5")),
    updates(update(), update(text='{"a":1}')),
    updates(update(), update(text="null")),
    updates(update(), update(text='"}\\n{"')),
    updates(update(), update(text='"\\ud83d\\ude00 \\u0000"')),
    updates(update(), update(text='"\\"progress\\""')),
    updates(update(), update(text="'a'")),
    updates(update(), update(real="1")),
    updates(update(), update(real='"NaN"')),
    updates(update(), update(real="NaN")),
    updates(update(), update(real="-Infinity")),
    updates(update(), update(real='"+INF"')),
    updates(update(), update(real="1e999")),
    updates(update(), '{"data":null,"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7},"time":1,"diff":1}'),
    updates(update(), '{"data":[7,null,null],"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":null},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"txet":null,"real":null},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":null,"real":null,"more":1},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":null,"text":null},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":null,"text":null,"real":1},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text" : null,"real":null},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"t\\u0065xt":null,"real":null},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":"\\"real\\":1"},"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":null,"real":1},"time":1,"time":1,"diff":1}'),
    updates(update(), '{"data":{"n":7,"text":null,"real":1},"data":{"n":7,"text":null,"real":1},"time":1,"diff":1}'),
    updates(update(), update(text='"\x00"')),
    updates(update(), update(text='"\x01"')),
    updates(update(), update(text='"\\\\u0000"')),
    updates(update())[:-1] + ',"updates":[]}',
    updates(update())[:-1] + ',"more":1}',
    '{"progress":{"lower":[5],"upper":[4],"counts":[]}}',
    '{"progress":{"lower":[0],"upper":[5],"counts":[],"more":1}}',
    '{"progress":{"lower":[0],"upper":[5],"counts":[{"time":1,"count":1,"time":2}]}}',
    '{"progress":{"lower":[0],"upper":[5],"counts":[{"time":1,"count":1}]}}',
    '{"progress":{"lower":[0],"upper":[5],"counts":[{"time":7,"count":1}]}}',
    '{"progress":null}',
    updates(update())[:-1] + ',"progress":null}',
    updates(update())[:-1] + ',"progress":{"lower":[0],"upper":[],"counts":[]}}',
    '{"updates":[],',
    '"progress":1}',
]


def by_iterator(folder: Folder, name: str, schema: StreamSchema) -> list[Item]:
    return list(folder.items(name, schema))


def rows_in(folder: Folder, name: str, schema: StreamSchema) -> tuple[Counter[Any], list[str]]:
    """The updates of a file as tasks give them, and the rest."""
    found: Counter[Any] = Counter()
    others: list[str] = []
    width = len(schema.data)
    for batch in FileRows(folder, name, schema).rows():
        table = pa.Table.from_batches([batch])
        others += [text for text in table.column("other").to_pylist() if text is not None]
        table = table.filter(pc.is_null(table.column("other")))
        times = [from_wire(time, schema.shape) for time in table.column("time").to_pylist()]
        data = rows_of(table.select(range(width)))
        found.update(zip(data, times, table.column("diff").to_pylist(), strict=True))
    return found, others


def check(folder: Folder, name: str, schema: StreamSchema) -> None:
    items = by_iterator(folder, name, schema)
    found, others = rows_in(folder, name, schema)
    assert found == Counter(u for item in items if isinstance(item, Updates) for u in item.updates)
    plain = JsonCodec(schema)
    wanted = [stream_files.STATEMENT + plain.encode(item).decode() for item in items if isinstance(item, Progress)]
    assert sorted(text for text in others if text[0] == stream_files.STATEMENT) == sorted(wanted)
    bad = [stream_files.undecodable(text) for text in others if text[0] != stream_files.STATEMENT]
    assert bad == [item for item in items if isinstance(item, (Bad, Partial))]


@pytest.mark.parametrize("schema", [SCHEMA, PRODUCT], ids=["total", "product"])
def test_each_odd_line_is_what_the_codec_says(
    tmp_path: Path, schema: StreamSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_files, "_BAD_KEPT", 1000)
    folder = Folder(str(tmp_path))
    good = updates(update(n="8", time="3" if schema is SCHEMA else "[3,4]"))
    for number, line in enumerate(ODD):
        for place, lines in enumerate(([line], [good, line], [line, good], [good, line, good])):
            for end in ("", "\n"):
                name = f"{number}-{place}-{len(end)}.jsonl"
                (tmp_path / name).write_bytes(("\n".join(lines) + end).encode())
                check(folder, name, schema)


def test_random_lines_in_random_blocks(tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_files, "_BAD_KEPT", 1000)
    folder = Folder(str(tmp_path))
    odd = [line.encode() for line in ODD] + [updates(update(text='"\xff"')).encode("latin-1")]
    for number in range(150):
        monkeypatch.setattr("everview.cdc.codec.json._BLOCK_BYTES", rng.choice((50, 300, 1000, 1 << 20)))
        lines = [rng.choice(odd) if rng.random() < 0.2 else updates(*[update()] * 3).encode() for _ in range(20)]
        (tmp_path / f"{number}.jsonl").write_bytes(b"\n".join(lines) + rng.choice((b"", b"\n")))
        check(folder, f"{number}.jsonl", SCHEMA)


def test_plain_lines_are_read_by_arrow() -> None:
    codec, quick = JsonCodec(SCHEMA), QuickJson(SCHEMA)
    said: list[Message[Any]] = [
        Updates([((n, None if n % 3 else f"t{n}", n / 7), n, 1 - 2 * (n % 2)) for n in range(100)])
    ]
    statement: Message[Any] = Progress(Antichain(0), Antichain(200), ((1, 1),))
    block = b"".join(codec.encode(message) + b"\n" for message in (*said, statement, *said))
    found = quick.updates(block)
    assert found is not None and (len(found[0]), found[1]) == (200, [1])


@pytest.mark.parametrize("suffix", [".jsonl", ".avro"])
def test_every_type_is_read_as_the_codec_reads_it(tmp_path: Path, suffix: str) -> None:
    """Type by type: Arrow reads some of them, and the codec the rest."""
    folder = Folder(str(tmp_path))
    for place, field in enumerate(values.SCHEMA):
        schema = StreamSchema(pa.schema([field]))
        said = [Updates([((row[place],), time, 1)]) for time, row in enumerate(values.rows())]
        folder.put(f"{place}{suffix}", codec_for(suffix, schema).encode_file(said))
        check(folder, f"{place}{suffix}", schema)


@pytest.mark.parametrize("suffix", [".jsonl", ".avro"])
def test_nothing_of_a_file_of_another_schema_is_believed(tmp_path: Path, suffix: str) -> None:
    folder, theirs = Folder(str(tmp_path)), StreamSchema(pa.schema([("n", pa.int64()), ("name", pa.string())]))
    folder.put(f"a{suffix}", codec_for(suffix, theirs).encode_file([Updates([((1, "a"), 1, 1)])]))
    found, others = rows_in(folder, f"a{suffix}", SCHEMA)
    assert not found
    (bad,) = [stream_files.undecodable(text) for text in others]
    assert isinstance(bad, Bad) and "has other columns" in bad.reason


def test_a_text_with_half_a_character_is_no_text(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    folder.put("a.jsonl", updates(update(text='"\\ud800"')).encode() + b"\n")
    check(folder, "a.jsonl", SCHEMA)
    (bad,) = by_iterator(folder, "a.jsonl", SCHEMA)
    assert isinstance(bad, Bad) and "column text" in bad.reason


def test_a_file_that_is_gone_has_nothing_in_it(tmp_path: Path) -> None:
    assert rows_in(Folder(str(tmp_path)), "gone.jsonl", SCHEMA) == (Counter(), [])


def test_blocks_are_whole_lines(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.cdc.codec.json._BLOCK_BYTES", 7)
    for _ in range(200):
        data = bytes(rng.choice(b"ab\n") for _ in range(rng.randrange(60)))
        found = list(blocks(pa.BufferReader(data)))
        assert b"".join(block for _, block in found) == data
        assert all(data[position:].startswith(block) for position, block in found)
        assert all(block.endswith(b"\n") for _, block in found[:-1])


def test_a_line_longer_than_any_message_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.cdc.codec.json._BLOCK_BYTES", 4)
    monkeypatch.setattr("everview.cdc.codec.json.RECORD_BYTES_MAX", 10)
    found = list(blocks(pa.BufferReader(b"ok\n" + b"x" * 50 + b"\nyes\n")))
    assert b"".join(block for _, block in found).split(b"\n")[0] == b"ok"
    assert found[-1][1].endswith(b"yes\n") and sum(len(block) for _, block in found) < 40


SQL_VALUES = {
    "uuid": ['"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"', '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', '"abc"', '""', "null"],
    "jsonb": ['"{\\"a\\": 1}"', '"{\\"a\\":1}"', '"{a}"', "null"],
    "varchar(3)": ['"abc"', '"äöü"', '"abc  "', '"abcd"', "null"],
    "char(3)": ['"abc"', '"a  "', '"abcd"'],
    "time": ["0", "86400000000", "86400000001", "-1", "null"],
    "mz_timestamp": ["0", "-1", "9223372036854775807"],
}


@pytest.mark.parametrize("kind", SQL_VALUES)
def test_values_of_sql_types_are_checked_alike(tmp_path: Path, kind: str) -> None:
    folder = Folder(str(tmp_path))
    dtype = pa.int64() if kind in ("time", "mz_timestamp") else pa.string()
    schema = StreamSchema(pa.schema([pa.field("x", dtype, metadata={b"sql": kind.encode()})]))
    good = SQL_VALUES[kind][0]
    for number, value in enumerate(SQL_VALUES[kind]):
        lines = [updates(f'{{"data":{{"x":{each}}},"time":1,"diff":1}}') for each in (good, value)]
        folder.put(f"{number}.jsonl", ("\n".join(lines) + "\n").encode())
        check(folder, f"{number}.jsonl", schema)
    assert stream_schema(message_schema(schema)).data.equals(schema.data, check_metadata=True)
