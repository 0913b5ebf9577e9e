"""Values on the wire are PostgreSQL's, bit for bit: both formats, both directions, asked of a real PostgreSQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.pq import ExecStatus

from everview.compute.functions.contract import Failure
from everview.compute.functions.input import from_text
from everview.compute.functions.numbers import constrain
from everview.compute.ir import types as t
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Interval, Kind, SqlType
from everview.compute.sql.errors import SqlError
from everview.server.pgwire import oids
from everview.server.pgwire.oids import WireParameter, oid_of, size_of, type_of, typmod_of, wire_parameter
from everview.server.pgwire.values import BINARY, TEXT, decode_parameters, decoder, encoder

VARCHAR, CHAR = SqlType(Kind.VARCHAR, length=5), SqlType(Kind.CHAR, length=5)


def _timestamps(zone: Any = None) -> st.SearchStrategy[datetime]:
    return st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)).map(
        lambda value: value.replace(tzinfo=zone, fold=0)
    )


def _one_nan(value: float) -> float:
    return math.nan if math.isnan(value) else value + 0.0


def _decimals(sql_type: SqlType) -> st.SearchStrategy[Decimal]:
    digits = sql_type.precision - sql_type.scale
    return st.tuples(
        st.integers(-(10**digits) + 1, 10**digits - 1), st.integers(0, 10**sql_type.scale - 1), st.integers(0, 12)
    ).map(
        lambda parts: constrain(Decimal(f"{parts[0]}.{parts[1]:0{max(sql_type.scale, 1)}d}"[: 40 - parts[2]]), sql_type)
    )


_TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
# The spaces beyond ASCII, and what else Python takes for space, are for the tests of the functions layer.
_WORDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]) | st.sampled_from(' \t\n\\"{},'), max_size=8
)
TEXTUAL = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
_INT = {
    kind: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for kind, bits in ((t.INT2, 16), (t.INT4, 32), (t.INT8, 64))
}
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    t.BOOLEAN: st.booleans(),
    **_INT,
    t.FLOAT4: st.floats(width=32).map(_one_nan),
    t.FLOAT8: st.floats().map(_one_nan),
    t.numeric(10, 2): _decimals(t.numeric(10, 2)),
    t.numeric(38, 0): _decimals(t.numeric(38, 0)),
    t.numeric(38, 38): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: constrain(Decimal(f"{n}e-38"), t.numeric(38, 38))
    ),
    t.numeric(): _decimals(SqlType(Kind.NUMERIC, scale=18, precision=38, constrained=False)),
    t.TEXT: _TEXTS,
    VARCHAR: _TEXTS.map(lambda text: text[:5]),
    CHAR: _TEXTS.map(lambda text: text[:5].rstrip(" ")),
    t.BYTEA: st.binary(max_size=20),
    t.DATE: st.dates() | st.sampled_from(Infinite),
    t.TIME: st.integers(0, 86_400_000_000),
    t.TIMESTAMP: _timestamps() | st.sampled_from(Infinite),
    t.TIMESTAMPTZ: _timestamps(UTC) | st.sampled_from(Infinite),
    t.INTERVAL: st.builds(
        Interval, st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-(10**15), 10**15)
    ),
    t.UUID: st.uuids().map(str),
    t.JSONB: st.sampled_from(['{"a": 1, "b": [true, null]}', '"ä\\n"', "[]", "12.5"]),
}
# Of two texts of a float that are equally short, PostgreSQL may choose the other one: they are compared as values.
FLOATS = (Kind.FLOAT4, Kind.FLOAT8)
TYPES = [*VALUES, *(t.array_of(each) for each in VALUES)]


def values_of(sql_type: SqlType) -> st.SearchStrategy[Any]:
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        elements = _WORDS.map(lambda text: text[:5].rstrip(" "))
        return st.lists(
            st.none() | (elements if sql_type.element.kind in TEXTUAL else VALUES[sql_type.element]), max_size=4
        )
    return VALUES[sql_type]


@pytest.fixture(scope="module")
def postgres(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute("SET datestyle = 'ISO'")
        connection.execute("SET intervalstyle = 'postgres'")
        yield connection


def ask(connection: psycopg.Connection, sql_type: SqlType, data: bytes, form: int, wanted: int) -> bytes | None:
    """What PostgreSQL makes of a value in one format, in another."""
    statement = f"SELECT $1::{sql_type}".encode()
    result = connection.pgconn.exec_params(statement, [data], [oid_of(sql_type)], [form], wanted)
    assert result.status == ExecStatus.TUPLES_OK, result.error_message.decode()
    assert result.ftype(0) == oid_of(sql_type)
    assert result.fsize(0) == size_of(sql_type)
    assert result.fmod(0) == typmod_of(sql_type)
    return result.get_value(0, 0)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other and repr(one) == repr(other)


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
def test_every_value_is_what_postgresql_says(sql_type: SqlType, postgres: psycopg.Connection) -> None:
    parameter = WireParameter(oid_of(sql_type), sql_type)

    @given(values_of(sql_type))
    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    def check(value: Any) -> None:
        written = {form: encoder(sql_type, form)(value) for form in (TEXT, BINARY)}
        for form in (TEXT, BINARY):
            for wanted in (TEXT, BINARY):
                answer = ask(postgres, sql_type, written[form], form, wanted)
                if not (wanted == TEXT and oids.innermost(sql_type).kind in FLOATS):
                    assert answer == written[wanted]
                assert answer is not None
                assert same(decoder(parameter, wanted)(answer), value)

    check()


def test_numerics_without_a_scale_are_shown_without_zeros(postgres: psycopg.Connection) -> None:
    for text in ("0", "1", "-1.5", "10000", "0.0001", "123456789.000000000000000001", "-0.00000001", "99990000"):
        value = from_text(text, t.numeric())
        for form in (TEXT, BINARY):
            assert encoder(t.numeric(), form)(value) == ask(postgres, t.numeric(), text.encode(), TEXT, form)


def test_blank_padded_characters_are_padded_in_both_formats() -> None:
    assert [encoder(CHAR, form)("ab") for form in (TEXT, BINARY)] == [b"ab   ", b"ab   "]


@pytest.mark.parametrize("sql_type", TYPES, ids=str)
@given(data=st.binary(max_size=60))
@settings(max_examples=60)
def test_any_bytes_are_a_value_or_refused(sql_type: SqlType, data: bytes) -> None:
    for form in (TEXT, BINARY):
        try:
            decode_parameters([data], [WireParameter(oid_of(sql_type), sql_type)], [form])
        except SqlError as error:
            assert len(error.sqlstate) == 5 and not error.sqlstate.startswith("XX")


@pytest.mark.parametrize(
    ("sql_type", "data", "sqlstate"),
    [
        (t.INT4, b"\0\0", "22P03"),
        (t.INT4, b"\0" * 8, "22P03"),
        (t.BOOLEAN, b"", "22P03"),
        (t.numeric(), b"\0\0", "22P03"),
        (t.numeric(), b"\0\0\0\0\xc0\0\0\0", "22003"),
        (t.numeric(3, 0), b"\0\1\0\1\0\0\0\0\0\1", "22003"),
        (t.numeric(), b"\0\1\x7f\xff\0\0\0\0\0\1", "22003"),
        (t.numeric(), b"\0\1\0\0\0\0\0\0\x27\x10", "22P03"),
        (t.numeric(), b"\0\1\0\0\x12\x34\0\0\0\1", "22P03"),
        (t.TEXT, b"a\0b", "22021"),
        (t.TEXT, b"\xff", "22021"),
        (t.DATE, b"\x7f\xff\xff\xfe", "22008"),
        (t.TIMESTAMP, b"\x7f" + b"\xff" * 6 + b"\xfe", "22008"),
        (t.TIMESTAMPTZ, b"\x80" + b"\0" * 6 + b"\1", "22008"),
        (t.TIME, b"\xff" * 8, "22008"),
        (t.INTERVAL, b"\x7f" + b"\xff" * 7 + b"\x7f\xff\xff\xff" * 2, "22008"),
        (t.UUID, b"abc", "22P03"),
        (t.JSONB, b"\x02{}", "22P03"),
        (t.JSONB, b"\x01{", "22P02"),
        (t.array_of(t.INT4), b"\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\1\0\0\0\1", "42804"),
        (t.array_of(t.INT4), b"\0\0\0\2\0\0\0\0\0\0\0\x17" + b"\0\0\0\1" * 4, "0A000"),
        (t.array_of(t.INT4), b"\0\0\0\1\0\0\0\0\0\0\0\x17\x7f\xff\xff\xff\0\0\0\1", "22P03"),
    ],
)
def test_bytes_that_are_no_value(sql_type: SqlType, data: bytes, sqlstate: str) -> None:
    with pytest.raises(SqlError) as caught:
        decode_parameters([data], [WireParameter(oid_of(sql_type), sql_type)], [BINARY])
    assert caught.value.sqlstate == sqlstate


def test_types_that_stand_for_ours() -> None:
    json, oid = wire_parameter(oids.JSON, t.JSONB), wire_parameter(oids.OID, t.INT8)
    assert decode_parameters([b'{"b":1}', b"\xff\xff\xff\xff"], [json, oid], [BINARY, BINARY]) == (
        '{"b": 1}',
        2**32 - 1,
    )
    assert wire_parameter(oids.JSON, t.TEXT).oid == 25  # the adapter has the last word
    assert type_of(0) is None and type_of(705) is None
    assert type_of(19) == t.TEXT and type_of(1231) == t.array_of(t.numeric())
    with pytest.raises(SqlError, match="type with OID 4711 does not exist"):
        type_of(4711)
    oid_array = wire_parameter(1028, t.array_of(t.INT8))
    data = b"\0\0\0\1\0\0\0\0\0\0\0\x1a\0\0\0\1\0\0\0\1\0\0\0\4\0\0\0\7"
    assert decode_parameters([data], [oid_array], [BINARY]) == ([7],)


def test_parameters_are_not_cut_to_a_length() -> None:
    assert decode_parameters([b"abcdefgh"], [WireParameter(1043, VARCHAR)], [TEXT]) == ("abcdefgh",)


def test_arrays_in_arrays_are_one_block_or_refused(postgres: psycopg.Connection) -> None:
    nested = t.array_of(t.array_of(t.INT4))
    result = postgres.pgconn.exec_params(b"SELECT '{{1,2},{3,NULL}}'::int4[]", [], result_format=1)
    assert encoder(nested, BINARY)([[1, 2], [3, None]]) == result.get_value(0, 0)
    with pytest.raises(Failure):
        encoder(nested, BINARY)([[1, 2], [3]])


def test_mz_timestamps_are_int8_to_clients() -> None:
    assert oid_of(t.MZ_TIMESTAMP) == 20
    assert encoder(t.MZ_TIMESTAMP, TEXT)(5) == b"5"
    with pytest.raises(SqlError):
        decode_parameters([b"\xff" * 8], [WireParameter(20, t.MZ_TIMESTAMP)], [BINARY])


def test_a_text_that_nobody_thought_of_is_refused() -> None:
    with pytest.raises(SqlError) as caught:
        decode_parameters([b"1" * 5000], [WireParameter(23, t.INT4)], [TEXT])
    assert caught.value.sqlstate in ("22P02", "22003")
    assert len(caught.value.message) < 6000


def test_there_is_one_nan_and_one_zero() -> None:
    for data, expected in (("fff8000000000001", b"\x7f\xf8" + b"\0" * 6), ("8000000000000000", b"\0" * 8)):
        (value,) = decode_parameters([bytes.fromhex(data)], [WireParameter(701, t.FLOAT8)], [BINARY])
        assert encoder(t.FLOAT8, BINARY)(value) == expected


def test_days_before_and_after_2000() -> None:
    for day in (date(1999, 12, 31), date(2000, 1, 1), date(1, 1, 1), date(9999, 12, 31)):
        data = encoder(t.DATE, BINARY)(day)
        assert int.from_bytes(data, signed=True) == (day - date(2000, 1, 1)) // timedelta(days=1)


@pytest.mark.parametrize("infinite", Infinite)
def test_infinities_are_as_postgresql_has_them(infinite: Infinite, postgres: psycopg.Connection) -> None:
    for sql_type, size in ((t.DATE, 4), (t.TIMESTAMP, 8), (t.TIMESTAMPTZ, 8)):
        most = 2 ** (8 * size - 1) - 1
        data = encoder(sql_type, BINARY)(infinite)
        assert int.from_bytes(data, signed=True) == (most if infinite is Infinite.AFTER else -most - 1)
        assert (
            ask(postgres, sql_type, data, BINARY, TEXT) == encoder(sql_type, TEXT)(infinite) == str(infinite).encode()
        )
