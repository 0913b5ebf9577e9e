"""The codec without I/O: frames, startup packets and message bodies, whole, in pieces, and broken."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.compute.sql.errors import SqlError
from everview.server.errors import ConnectionEnd, ProtocolViolation, Report
from everview.server.pgwire import backend, frontend, startup
from everview.server.pgwire.framing import AUTH_LIMITS, Frame, Framer, session_limits
from everview.server.pgwire.startup import CancelRequest, GssRequest, PacketReader, SslRequest, Startup
from tests.server import raw

LIMITS = session_limits(1000)


def all_frames(framer: Framer) -> list[Frame]:
    found = []
    while (frame := framer.next()) is not None:
        found.append(frame)
    return found


@given(
    bodies=st.lists(st.tuples(st.sampled_from("QPBd"), st.binary(max_size=200)), max_size=8),
    cuts=st.lists(st.integers(1, 50), max_size=200),
)
def test_messages_come_out_whole_however_they_are_cut(bodies: list[tuple[str, bytes]], cuts: list[int]) -> None:
    data = b"".join(raw.message(kind, body) for kind, body in bodies)
    framer, found = Framer(LIMITS), []
    for cut in [*cuts, len(data)]:
        framer.feed(data[:cut])
        data = data[cut:]
        found += all_frames(framer)
    assert found == [Frame(ord(kind), body) for kind, body in bodies]
    assert framer.rest == b""


@pytest.mark.parametrize(
    "data",
    [
        b"Q" + struct.pack("!i", 3),
        b"Q" + struct.pack("!i", -1),
        b"Q" + struct.pack("!i", 1005),
        b"Q" + struct.pack("!i", 2**31 - 1),
        b"S" + struct.pack("!i", 1005),
        b"\x00",
        b"p" + struct.pack("!i", 8),
        b"GET / HTTP/1.1",
    ],
)
def test_a_frame_that_cannot_be_ends_the_connection_at_once(data: bytes) -> None:
    framer = Framer(LIMITS, data)
    with pytest.raises(ConnectionEnd) as caught:
        framer.next()
    assert caught.value.sqlstate == "08P01"


def test_nothing_but_passwords_is_taken_before_authentication() -> None:
    with pytest.raises(ConnectionEnd):
        Framer(AUTH_LIMITS, raw.query("select 1")).next()


def packets(data: bytes) -> startup.Packet | None:
    reader = PacketReader()
    for at in range(len(data)):
        assert reader.next() is None
        reader.feed(data[at : at + 1])
    return reader.next()


def test_startup_packets() -> None:
    assert packets(raw.SSL_REQUEST) == SslRequest()
    assert packets(raw.GSS_REQUEST) == GssRequest()
    assert packets(raw.cancel_request(7, b"abcd")) == CancelRequest(7, b"abcd")
    assert packets(raw.cancel_request(7, b"x" * 32)) == CancelRequest(7, b"x" * 32)
    plain = packets(raw.startup(database="d", application_name="a"))
    assert plain == Startup("everview", "d", {"application_name": "a"}, 0, 0, ())
    assert isinstance(plain, Startup) and not plain.negotiated


def test_later_protocols_are_negotiated() -> None:
    later = packets(raw.startup(9999, **{"_pq_.wish": "1"}))
    assert isinstance(later, Startup)
    assert (later.minor, later.unknown_options, later.negotiated) == (2, ("_pq_.wish",), True)
    answer = backend.negotiate_protocol_version(later.minor, later.unknown_options)
    assert answer == raw.message("v", struct.pack("!ii", 3 << 16 | 2, 1) + b"_pq_.wish\0")
    current = packets(raw.startup(2))
    assert isinstance(current, Startup) and not current.negotiated


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (raw.startup(0, 2), "0A000"),
        (raw.startup(0, 4), "0A000"),
        (raw.startup(user=""), "28000"),
        (raw.startup(replication="true"), "0A000"),
        (raw.startup(replication="database"), "0A000"),
        (raw.startup(client_encoding="LATIN1"), "22023"),
        (raw.startup(options="--"), "42601"),
        (raw.packet(struct.pack("!i", 3 << 16) + b"user"), "08P01"),
        (raw.packet(struct.pack("!i", 3 << 16) + b"user\0a\0\0more"), "08P01"),
        (raw.packet(struct.pack("!i", 3 << 16) + b"\xff\0a\0\0"), "22021"),
        (raw.packet(struct.pack("!i", 80877103) + b"x"), "08P01"),
        (raw.packet(struct.pack("!ii", 80877102, 1)), "08P01"),
        (raw.packet(struct.pack("!ii", 80877102, 1) + b"x" * 257), "08P01"),
        (struct.pack("!i", 7) + b"abc", "08P01"),
        (struct.pack("!i", 10_001), "08P01"),
        (b"\x16\x03\x01\x02", "08P01"),
    ],
)
def test_startup_packets_that_are_refused(data: bytes, sqlstate: str) -> None:
    reader = PacketReader()
    reader.feed(data)
    with pytest.raises(ConnectionEnd) as caught:
        reader.next()
    assert caught.value.sqlstate == sqlstate


def test_replication_off_and_quoted_encodings_are_fine() -> None:
    found = packets(raw.startup(replication="off", client_encoding="'utf-8'"))
    assert isinstance(found, Startup) and found.settings == {}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("-c a=b", {"a": "b"}),
        (
            "  -c  search_path=x\\ y --statement-timeout=5s -cq=1 ",
            {"search_path": "x y", "statement_timeout": "5s", "q": "1"},
        ),
        ("-c a=\\\\", {"a": "\\"}),
    ],
)
def test_options(text: str, settings: dict[str, str]) -> None:
    assert startup.parse_options(text) == settings


def test_message_bodies() -> None:
    def decoded(data: bytes) -> frontend.Message:
        (frame,) = raw.frames(data)
        return frontend.decode(*frame)

    assert decoded(raw.query("select 'ä'")) == frontend.Query("select 'ä'")
    assert decoded(raw.parse("x", "n", [23, 0])) == frontend.Parse("n", "x", (23, 0))
    assert decoded(raw.bind(b"1", None, formats=[1, 0], results=[1])) == frontend.Bind(
        "", "", (1, 0), (b"1", None), (1,)
    )
    assert decoded(raw.describe("S", "n")) == frontend.Describe("S", "n")
    assert decoded(raw.execute(5, "p")) == frontend.Execute("p", 5)
    assert decoded(raw.execute(-5)) == frontend.Execute("", 0)
    assert decoded(raw.close("P")) == frontend.Close("P", "")
    assert decoded(raw.SYNC) == frontend.Sync()


@pytest.mark.parametrize(
    "data",
    [
        raw.message("Q", b"no end"),
        raw.message("Q", b"one\0two\0"),
        raw.message("P", b"\0\0"),
        raw.message("P", b"\0\0\x00\x02\x00\x00\x00\x01"),
        raw.message("B", b"\0\0\x00\x00\x00\x01\x00\x00\x00\x09abc"),
        raw.message("B", b"\0\0\x00\x00\x00\x01\xff\xff\xff\xfe"),
        raw.message("B", b"\0\0\x00\x01\x00\x02"),
        raw.message("D", b"Z\0"),
        raw.message("D", b""),
        raw.message("S", b"x"),
        raw.message("E", b"\0\x00"),
    ],
)
def test_a_body_that_is_wrong_is_a_protocol_violation(data: bytes) -> None:
    (frame,) = raw.frames(data)
    with pytest.raises(ProtocolViolation):
        frontend.decode(*frame)


@given(kind=st.sampled_from("QPBDECHSFf"), body=st.binary(max_size=100))
def test_any_body_is_read_or_refused(kind: str, body: bytes) -> None:
    try:
        frontend.decode(ord(kind), body)
    except SqlError as error:
        assert error.sqlstate in ("08P01", "22021")


@given(data=st.binary(max_size=200))
def test_any_bytes_are_packets_or_refused(data: bytes) -> None:
    reader = PacketReader()
    reader.feed(data)
    try:
        while reader.next() is not None:
            pass
    except ConnectionEnd:
        pass


def test_an_error_says_all_that_it_has() -> None:
    report = Report("ERROR", "42601", "no\0pe \ud800", "detail", "hint", 7, "where")
    (found,) = raw.messages(backend.error_response(report))
    assert found.fields == {
        "S": "ERROR",
        "V": "ERROR",
        "C": "42601",
        "M": "no?pe ?",
        "D": "detail",
        "H": "hint",
        "P": "7",
        "W": "where",
    }
