"""What the server sends: each message as the bytes that go over the wire."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from everview.adapter.contract import Column, Status
from everview.server.errors import Report
from everview.server.pgwire.oids import oid_of, size_of, typmod_of

_LENGTH = struct.Struct("!I")
_COUNT = struct.Struct("!H")
_FIELD = struct.Struct("!IhIhih")

SSL_YES, ENCRYPTION_NO = b"S", b"N"
NULL = b"\xff\xff\xff\xff"
HEADER_BYTES = 5  # of every message: its kind and its length


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + _LENGTH.pack(len(body) + 4) + body


def _string(text: str) -> bytes:
    # What cannot be said in UTF-8 without zero bytes is said with a question mark: a message must always get out.
    return text.encode("utf-8", "replace").replace(b"\0", b"?") + b"\0"


AUTHENTICATION_OK = message(b"R", _LENGTH.pack(0))
PARSE_COMPLETE, BIND_COMPLETE, CLOSE_COMPLETE = message(b"1"), message(b"2"), message(b"3")
NO_DATA, EMPTY_QUERY, PORTAL_SUSPENDED, COPY_DONE = message(b"n"), message(b"I"), message(b"s"), message(b"c")
_READY: dict[Status, bytes] = {"I": message(b"Z", b"I"), "T": message(b"Z", b"T"), "E": message(b"Z", b"E")}


def ready_for_query(status: Status) -> bytes:
    return _READY[status]


def authentication_sasl(mechanisms: Iterable[str]) -> bytes:
    return message(b"R", _LENGTH.pack(10) + b"".join(map(_string, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return message(b"R", _LENGTH.pack(11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return message(b"R", _LENGTH.pack(12) + data)


def negotiate_protocol_version(minor: int, unknown_options: Sequence[str]) -> bytes:
    head = struct.pack("!II", 3 << 16 | minor, len(unknown_options))
    return message(b"v", head + b"".join(map(_string, unknown_options)))


def backend_key_data(process: int, secret: bytes) -> bytes:
    return message(b"K", _LENGTH.pack(process) + secret)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", _string(name) + _string(value))


def command_complete(tag: str) -> bytes:
    return message(b"C", _string(tag))


def error_response(report: Report) -> bytes:
    return message(b"E", _report(report))


def notice_response(report: Report) -> bytes:
    return message(b"N", _report(report))


def _report(report: Report) -> bytes:
    fields = (
        ("S", report.severity),
        ("V", report.severity),
        ("C", report.sqlstate),
        ("M", report.message),
        ("D", report.detail),
        ("H", report.hint),
        ("P", None if report.position is None else str(report.position)),
        ("W", report.where),
    )
    return b"".join(letter.encode() + _string(text) for letter, text in fields if text is not None) + b"\0"


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    parts = [_COUNT.pack(len(columns))]
    for column, form in zip(columns, formats, strict=True):
        kind = column.type
        # Neither a table's OID nor a column's number: results are of no table.
        parts += (_string(column.name), _FIELD.pack(0, 0, oid_of(kind), size_of(kind), typmod_of(kind), form))
    return message(b"T", b"".join(parts))


def copy_in_response(columns: int, *, binary: bool = False) -> bytes:
    return message(b"G", _copy_response(columns, binary))


def copy_out_response(columns: int, *, binary: bool = False) -> bytes:
    return message(b"H", _copy_response(columns, binary))


def _copy_response(columns: int, binary: bool) -> bytes:
    return struct.pack(f"!bH{columns}h", binary, columns, *([int(binary)] * columns))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)
