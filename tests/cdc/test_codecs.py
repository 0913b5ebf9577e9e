"""Codecs: every value comes back as it was, what is damaged is kept and reported, what is cut off is waited for."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import random
import zlib
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from everview.cdc.codec.avro import AvroCodec
from everview.cdc.codec.container import long_bytes
from everview.cdc.codec.contract import Bad, Codec, Partial, codec_for
from everview.cdc.codec.json import JsonCodec
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import InvalidUse, SchemaDiffers, Undecodable
from everview.cdc.rows import rows_of, table_of, updates_of
from everview.cdc.schema import StreamSchema, message_schema, stream_schema
from everview.timely.antichain import Antichain
from tests.cdc import values

SMALL = StreamSchema(pa.schema([("n", pa.int64()), pa.field("text", pa.string(), nullable=False)]))
MESSAGES: list[Message[Any]] = [
    Updates([((1, "a"), 3, 1), ((None, "b"), 4, -2)]),
    Progress(Antichain(0), Antichain(5), ((3, 1), (4, 1))),
    Progress(Antichain(5), Antichain()),
]


@pytest.fixture(params=[JsonCodec, AvroCodec])
def codec(request: pytest.FixtureRequest) -> Codec:
    return request.param(SMALL)


def decode(codec: Codec, data: bytes) -> list[Any]:
    return list(codec.decode_file(pa.BufferReader(data), "a file"))


@pytest.mark.parametrize("kind", [JsonCodec, AvroCodec])
def test_every_value_comes_back(kind: Any) -> None:
    codec = kind(StreamSchema(values.SCHEMA))
    updates = [(row, number, number or 7) for number, row in enumerate(values.rows())]
    table = table_of(updates, values.SCHEMA)
    (message,) = decode(codec, codec.encode_file([Updates(updates_of(table))]))
    assert list(message.updates) == updates, "as Python values"
    assert table_of(message.updates, values.SCHEMA).equals(table) or not table.equals(table), "as Arrow, but for NaN"
    assert rows_of(table_of(message.updates, values.SCHEMA).select(values.SCHEMA.names)) == values.rows()
    assert len({row for row, _, _ in [*message.updates, *updates]}) == len(updates), "equal rows are one"
    assert codec.decode(codec.encode(message)) == message


def test_others_read_our_avro() -> None:
    """Nobody needs our code: what any library for Avro finds in a file is what was said."""
    fastavro = pytest.importorskip("fastavro")
    many = Updates([((n, f"text {n}"), n, -n) for n in range(1, 30_000)])
    data = AvroCodec(SMALL).encode_file([*MESSAGES, many, MESSAGES[1]])
    first, progress, end, theirs, again = fastavro.reader(io.BytesIO(data))
    assert first[0] == {"data": {"n": 1, "text": "a"}, "time": 3, "diff": 1} and len(first) == 2
    assert (
        progress == again == {"lower": [0], "upper": [5], "counts": [{"time": 3, "count": 1}, {"time": 4, "count": 1}]}
    )
    assert end == {"lower": [5], "upper": [], "counts": []}
    assert [(tuple(each["data"].values()), each["time"], each["diff"]) for each in theirs] == list(many.updates)


@pytest.mark.parametrize("kind", [JsonCodec, AvroCodec])
def test_partially_ordered_times_come_back(kind: Any) -> None:
    shape = (0, (0, 0))
    codec = kind(StreamSchema(SMALL.data, shape))
    said = [
        Updates([((1, "a"), (1, (2, 3)), 1)]),
        Progress(Antichain(shape), Antichain((1, (0, 0)), (0, (5, 0))), (((0, (1, 1)), 4),)),
    ]
    assert decode(codec, codec.encode_file(said)) == said


def test_messages_come_back_alone_and_in_files(codec: Codec) -> None:
    assert [codec.decode(codec.encode(message)) for message in MESSAGES] == MESSAGES
    assert decode(codec, codec.encode_file(MESSAGES)) == MESSAGES
    assert decode(codec, codec.encode_file([])) == []


def test_a_file_that_is_cut_off_gives_what_is_whole(codec: Codec) -> None:
    data = codec.encode_file(MESSAGES * 50)
    for size in range(0, len(data), 37):
        *whole, last = [*decode(codec, data[:size]), None]
        if whole and isinstance(whole[-1], Partial):
            whole.pop()
        assert last is None and whole == (MESSAGES * 50)[: len(whole)]
        assert not any(isinstance(item, Bad) for item in whole)


def test_damage_costs_what_is_damaged_and_is_reported(codec: Codec, rng: random.Random) -> None:
    many = [Updates([((n, "x" * 50), n, 1)]) for n in range(20_000)]
    data = bytearray(codec.encode_file(many))
    place = len(data) // 2
    data[place : place + 3] = bytes(rng.choice([b"\xff\xfe\xfd", b"\x00\x00\x00"]))
    items = decode(codec, bytes(data))
    bad = [item for item in items if isinstance(item, Bad)]
    good = {item.updates[0][0][0] for item in items if isinstance(item, Updates)}
    assert bad and all(item.raw and item.reason for item in bad)
    assert good < set(range(20_000)) and len(good) > 5_000, "what comes before and behind is good"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "Expecting value"),
        ("{}", "one member, updates or progress"),
        ('{"updates":[],"progress":{}}', "one member"),
        ('{"upsets":[]}', "neither updates nor progress"),
        ('{"updates":[],"more":1}', "one member"),
        ('{"updates":[{"data":{"n":1,"text":"a"},"time":1}]}', "data, time and diff"),
        ('{"updates":[{"data":{"n":1,"text":"a"},"time":1,"diff":0}]}', "diff is 0"),
        ('{"updates":[{"data":{"n":1,"text":"a"},"time":-1,"diff":1}]}', "not a time"),
        ('{"updates":[{"data":{"n":1,"text":"a"},"time":true,"diff":1}]}', "not a time"),
        ('{"updates":[{"data":{"n":"1","text":"a"},"time":1,"diff":1}]}', "column n is int64"),
        ('{"updates":[{"data":{"n":9223372036854775808,"text":"a"},"time":1,"diff":1}]}', "does not fit"),
        ('{"updates":[{"data":{"n":1},"time":1,"diff":1}]}', "a row has no member text"),
        ('{"updates":[{"data":{"n":1,"text":"a","more":1},"time":1,"diff":1}]}', "a member more that is unknown"),
        ('{"updates":[{"data":{"n":1,"txet":"a"},"time":1,"diff":1}]}', "no member text, and one txet"),
        ('{"updates":[{"data":{"text":"a"},"time":1,"diff":1}]}', "a row has no member n"),
        ('{"updates":[{"data":{"n":1,"n":2,"text":"a"},"time":1,"diff":1}]}', "member n comes twice"),
        ('{"updates":[{"data":{"n":1,"n" :2,"text":"a"},"time":1,"diff":1}]}', "member n comes twice"),
        ('{"updates":[{"data":{"n":1,"\\u006e":2,"text":"a"},"time":1,"diff":1}]}', "member n comes twice"),
        ('{"updates":[{"data":{"n":1,"text":"a"},"time":1,"diff":1,"diff":1}]}', "member diff comes twice"),
        ('{"updates":[{"data":{"n":1,"text":"a"},"time":1,"diff":1,"more":1}]}', "a member more that is unknown"),
        ('{"updates":[{"data":{"n":1,"text":null},"time":1,"diff":1}]}', "column text has no value"),
        ('{"updates":[{"data":{"n":1,"text":"a\\u0000b"},"time":1,"diff":1}]}', "U+0000"),
        ('{"updates":[{"data":{"n":NaN,"text":"a"},"time":1,"diff":1}]}', "NaN is not JSON"),
        ('{"progress":{"lower":[0],"upper":[5]}}', "no member counts"),
        ('{"progress":{"lower":[0],"upper":[5],"counts":{}}}', "counts are not"),
        ('{"progress":{"lower":[0],"upper":[5],"counts":[],"more":1}}', "a member more that is unknown"),
        ('{"progress":{"lower":[0],"upper":[5],"upper":[6],"counts":[]}}', "member upper comes twice"),
        (
            '{"progress":{"lower":[0],"upper":[5],"counts":[{"time":1,"count":1,"of":1}]}}',
            "a member of that is unknown",
        ),
        ('{"progress":{"lower":[0],"upper":[5],"counts":[{"time":5,"count":0}]}}', "does not cover"),
        ('{"progress":{"lower":[5],"upper":[4],"counts":[]}}', "from {5} back to {4}"),
        ('{"progress":{"lower":[],"upper":[4],"counts":[]}}', "from {} back to {4}"),
        ('{"progress":{"lower":[1,2],"upper":[4],"counts":[]}}', "some of its times are before others"),
        ('{"progress":{"lower":[0],"upper":[5],"counts":[{"time":5,"count":1}]}}', "does not cover"),
        ('{"progress":{"lower":[0],"upper":[5],"counts":[{"time":4,"count":-1}]}}', "counts -1"),
        ('{"progress":{"lower":[0],"upper":[5],"counts":[{"time":4,"count":1},{"time":4,"count":1}]}}', "twice"),
        ('{"progress":{"lower":0,"upper":[5],"counts":[]}}', "not a frontier"),
        ("[" * 100_000, ""),
    ],
)
def test_lines_that_are_no_messages(line: str, why: str) -> None:
    codec = JsonCodec(SMALL)
    good = codec.encode(MESSAGES[0])
    items = decode(codec, b"\n".join([good, line.encode(), good, b""]))
    assert [type(item) for item in items] == [Updates, Bad, Updates]
    assert (items[1].raw, items[1].position) == (line.encode(), len(good) + 1)
    assert why in items[1].reason
    with pytest.raises(Undecodable):
        codec.decode(line.encode())


def test_avro_that_is_no_message() -> None:
    codec = AvroCodec(SMALL)
    zero = codec.encode(Updates([((1, "a"), 1, 1)]))
    for data in (b"", b"\xff", b"\x08", zero[:-1], zero + b"\x00", zero[:-2] + b"\x00\x00"):
        with pytest.raises(Undecodable):
            codec.decode(data)
    assert isinstance(decode(codec, b"not avro")[0], Bad)


def test_a_zero_count_says_nothing() -> None:
    line = b'{"progress":{"lower":[0],"upper":[5],"counts":[{"time":4,"count":0}]}}'
    assert JsonCodec(SMALL).decode(line) == Progress(Antichain(0), Antichain(5))


def test_the_schema_goes_along() -> None:
    for schema in (SMALL, StreamSchema(values.SCHEMA), StreamSchema(SMALL.data, (0, (0, 0)))):
        described = json.loads(json.dumps(message_schema(schema)))
        assert stream_schema(described).data.equals(schema.data) and stream_schema(described).shape == schema.shape


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([{"name": "id", "type": "int64"}], "it has no array of updates"),
        ({"schema": []}, "it has no array of updates"),
        ([{"type": "array"}], '"items" is missing'),
        ([{"type": "array", "items": {"fields": [{"name": "time", "type": "long"}]}}], '"diff" is missing'),
        (message_schema(StreamSchema(pa.schema([("a", pa.int64())] * 2))), 'column "a" comes twice'),
        ([{"type": "array", "items": {"fields": 5}}], "a part of it is not what stands there in one"),
    ],
)
def test_what_is_no_schema_is_told_by_what_it_lacks(said: Any, why: str) -> None:
    with pytest.raises(SchemaDiffers, match="not the schema of a change stream") as found:
        stream_schema(said)
    assert found.value.detail == why


def test_any_part_of_a_schema_may_be_something_else() -> None:
    described = json.loads(json.dumps(message_schema(StreamSchema(values.SCHEMA, (0, (0, 0))))))
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        for key in list(part) if isinstance(part, dict) else range(len(part)):
            places.append((part, key))
            if isinstance(part[key], (dict, list)):
                walk(part[key])

    walk(described)
    for part, key in places:
        right = part[key]
        for odd in (None, 7, -1, "", "odd", [], {}, [None], {"type": "odd"}, True, 1 << 70):
            part[key] = odd
            with suppress(SchemaDiffers):
                assert isinstance(stream_schema(described), StreamSchema)
        part[key] = right


def test_files_in_another_order_of_columns(codec: Codec) -> None:
    turned = codec_for(codec.suffix, StreamSchema(pa.schema(list(SMALL.data)[::-1])))
    data = turned.encode_file([Updates([(("a", 1), 3, 1)])])
    assert decode(codec, data) == [Updates([((1, "a"), 3, 1)])]


@pytest.mark.parametrize(
    "other",
    [
        StreamSchema(pa.schema([("n", pa.int32()), ("text", pa.string())])),
        StreamSchema(pa.schema([("n", pa.int64())])),
        StreamSchema(SMALL.data, (0, 0)),
    ],
)
def test_another_schema_is_refused(codec: Codec, other: StreamSchema) -> None:
    data = codec_for(codec.suffix, other).encode_file([])
    with pytest.raises(SchemaDiffers):
        decode(codec, data)


def numbers(precision: int, *, listed: bool = False) -> StreamSchema:
    dtype = pa.decimal128(precision, 2)
    return StreamSchema(pa.schema([("d", pa.list_(dtype) if listed else dtype)]))


@pytest.mark.parametrize("kind", [JsonCodec, AvroCodec])
@pytest.mark.parametrize("listed", [False, True])
def test_decimals_of_another_number_of_digits_are_read_if_they_fit(kind: Any, listed: bool) -> None:
    wide, narrow = kind(numbers(38, listed=listed)), kind(numbers(10, listed=listed))
    short, long = (((each,),) if listed else (each,) for each in (Decimal("-99999999.99"), Decimal("100000000.00")))
    for writer, reader in ((wide, narrow), (narrow, wide), (wide, wide)):
        assert decode(reader, writer.encode_file([Updates([(short, 1, 1)])])) == [Updates([(short, 1, 1)])]
    assert decode(wide, wide.encode_file([Updates([(long, 1, 1)])])) == [Updates([(long, 1, 1)])]
    (refused,) = decode(narrow, wide.encode_file([Updates([(long, 1, 1)])]))
    assert isinstance(refused, Bad) and "does not fit" in refused.reason
    with pytest.raises(Undecodable):
        narrow.decode(wide.encode(Updates([(long, 1, 1)])))


def test_what_cannot_be_written() -> None:
    with pytest.raises(SchemaDiffers, match="cannot be written"):
        codec_for(".jsonl", StreamSchema(pa.schema([("n", pa.duration("s"))])))
    with pytest.raises(InvalidUse, match="no codec"):
        codec_for(".csv", SMALL)


def test_text_with_a_zero_character_is_refused_from_avro_too() -> None:
    """Neither PostgreSQL's protocol nor its clients can show one."""
    codec = AvroCodec(SMALL)
    (item,) = decode(codec, codec.encode_file([Updates([((1, "a\0b"), 1, 1)])]))
    assert isinstance(item, Bad) and "U+0000" in item.reason
    nested = StreamSchema(pa.schema([("texts", pa.list_(pa.string()))]))
    for kind in (AvroCodec, JsonCodec):
        (item,) = decode(kind(nested), kind(nested).encode_file([Updates([((("a", None, "\0"),), 1, 1)])]))
        assert isinstance(item, Bad) and "U+0000" in item.reason


def test_members_of_composites_are_those_of_the_schema() -> None:
    pair = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    codec = JsonCodec(StreamSchema(pa.schema([("pair", pair)])))
    for text, why in [
        ('{"a":1}', "a composite has no member b"),
        ('{"a":1,"b":2,"c":3}', "a member c that is unknown"),
        ('{"a":1,"b":2,"b":3}', "member b comes twice"),
    ]:
        (item,) = decode(codec, f'{{"updates":[{{"data":{{"pair":{text}}},"time":1,"diff":1}}]}}\n'.encode())
        assert isinstance(item, Bad) and why in item.reason


def compressed(data: bytes, compression: str) -> bytes:
    """As any library for Avro compresses a block."""
    match compression:
        case "null":
            return data
        case "bzip2":
            return bz2.compress(data)
        case "xz":
            return lzma.compress(data)
        case "zstandard":
            return bytes(pa.Codec("zstd").compress(data, asbytes=True))
        case "snappy":
            return bytes(pa.Codec("snappy").compress(data, asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")
    raise AssertionError(compression)


@pytest.mark.parametrize("compression", ["null", "bzip2", "xz", "zstandard", "snappy"])
def test_files_that_others_compress(compression: str) -> None:
    codec, marker = AvroCodec(SMALL), b"0123456789abcdef"
    records = b"".join(map(codec.encode, MESSAGES))
    metadata = {b"avro.schema": json.dumps(message_schema(SMALL)).encode(), b"avro.codec": compression.encode()}
    pairs = b"".join(long_bytes(len(part)) + part for pair in metadata.items() for part in pair)
    packed = compressed(records, compression)
    block = long_bytes(len(MESSAGES)) + long_bytes(len(packed)) + packed + marker
    data = b"Obj\x01" + long_bytes(len(metadata)) + pairs + long_bytes(0) + marker + block
    assert decode(codec, data) == MESSAGES
    damaged = data.replace(packed, packed[: len(packed) // 2] + b"\xff\xff" + packed[len(packed) // 2 + 2 :])
    items = decode(codec, damaged)
    assert any(isinstance(item, Bad) and item.reason for item in items)
