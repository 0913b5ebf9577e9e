"""Look-ups from memory, answered on the event loop: a whole cycle of messages that came at once.

Handing a statement to a thread and its answer back costs several times what such a look-up does. So messages are looked
at here before they are handed over: one Bind, perhaps a Parse before it and a Describe behind, an Execute and a Sync;
or one simple query. Anything else, anything wrong, and any statement that the session does not find in memory gives
None, and then nothing was done. So do long messages and long rows, over which the loop would keep all others waiting.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from everview.adapter.contract import Prepared, Row, Session
from everview.compute.functions.contract import Failure
from everview.compute.sql.errors import SqlError
from everview.compute.sql.strings import utf8
from everview.server.errors import ProtocolViolation
from everview.server.metrics import Metrics
from everview.server.pgwire import backend, frontend
from everview.server.pgwire.binary import Decoder
from everview.server.pgwire.extended import Extended, Statement, formats_for, keep_form, statement_of
from everview.server.pgwire.oids import type_of
from everview.server.pgwire.values import TEXT, decoder, row_encoder

LONG_BYTES = 1 << 16  # of messages and of rows: to read or write down more holds up all other clients
_LENGTH = struct.Struct("!i")
_COUNT = struct.Struct("!H")
_DESCRIBE, _EXECUTE, _SYNC = b"D\0\0\0\x06P\0", b"E\0\0\0\x09\0\0\0\0\0", b"S\0\0\0\x04"
# What may follow a Bind, all of it about the portal without a name; and whether it is described.
_CYCLES = {_DESCRIBE + _EXECUTE + _SYNC: True, _EXECUTE + _SYNC: False}
_FAILURES = (SqlError, Failure, ProtocolViolation, struct.error, ValueError)


@dataclass(frozen=True, slots=True)
class Form:
    """How the values of a statement come and how its rows go out, for one choice of formats."""

    decoders: tuple[Decoder, ...]
    description: bytes
    encode: Callable[[Row], bytes]


class Lookups:
    """For one session, while nothing else of it runs."""

    def __init__(self, session: Session, extended: Extended, metrics: Metrics) -> None:
        self._session, self._extended, self._metrics = session, extended, metrics

    def answer(self, data: bytes) -> bytes | None:
        """What these bytes are answered with."""
        if len(data) > LONG_BYTES:
            return None
        start = time.monotonic()
        kind = data[0] if len(data) > backend.HEADER_BYTES else None
        try:
            if kind == frontend.BIND:
                answer = self._bound(data)
            elif kind == frontend.PARSE:
                answer = self._parsed(data)
            elif kind == frontend.QUERY:
                answer = self._simple(data)
            else:
                return None
        except _FAILURES:
            return None  # running it tells what is wrong, in the order of its messages
        if answer is not None:
            self._metrics.statement("SELECT", time.monotonic() - start)
        return answer

    def _parsed(self, data: bytes) -> bytes | None:
        """Prepare the statement without a name once more, and then as if it was there already."""
        end = _end(data)
        if len(data) <= end or data[end] != frontend.BIND:
            return None
        message = frontend.decode(frontend.PARSE, data[backend.HEADER_BYTES : end])
        assert isinstance(message, frontend.Parse)
        prepared = None if message.name else self._session.known(message.text, [type_of(oid) for oid in message.types])
        if prepared is None or self._extended.full:
            return None
        statement = statement_of(prepared, message)
        answer = self._bound(data[end:], statement)
        if answer is None:
            return None
        self._extended.statements[""] = statement
        return backend.PARSE_COMPLETE + answer

    def _bound(self, data: bytes, parsed: Statement | None = None) -> bytes | None:
        """Bind to the portal without a name, and run that; of the statement named, or of the one just parsed."""
        end = _end(data)
        described = _CYCLES.get(data[end:])
        named = data[backend.HEADER_BYTES] != 0
        if described is None or named or self._extended.portals:
            return None
        at = data.index(0, backend.HEADER_BYTES + 1) + 1
        name = utf8(data[backend.HEADER_BYTES + 1 : at - 1])
        statement = self._extended.statements.get(name) if parsed is None else parsed
        look = None if statement is None else self._session.lookup(statement.prepared)
        if statement is None or look is None or (parsed is not None and name):
            return None
        fields_at = at + 2 + 2 * _COUNT.unpack_from(data, at)[0]
        fields, results_at = _fields(data, fields_at)
        form = _form(statement, data[at:fields_at], data[results_at:end])
        if len(fields) != len(form.decoders):
            return None
        values = [None if field is None else decode(field) for decode, field in zip(form.decoders, fields, strict=True)]
        rows = look(values)
        if rows is None or _are_long(rows):
            return None
        head = backend.BIND_COMPLETE + form.description if described else backend.BIND_COMPLETE
        return b"".join((head, *map(form.encode, rows), _completed(len(rows))))

    def _simple(self, data: bytes) -> bytes | None:
        """A simple query of one statement."""
        if _end(data) != len(data) or data.index(0, backend.HEADER_BYTES) != len(data) - 1:
            return None
        recognized = self._session.recognize(utf8(data[backend.HEADER_BYTES : -1]))
        if recognized is None or self._extended.portals:
            return None
        prepared, values = recognized
        look = self._session.lookup(prepared)
        rows = None if look is None else look(values)
        if rows is None or _are_long(rows):
            return None
        self._extended.forget_unnamed()
        form = self._text_form(prepared)
        return b"".join((form.description, *map(form.encode, rows), _completed(len(rows))))

    def _text_form(self, prepared: Prepared) -> Form:
        form: Form | None = prepared.forms.get(TEXT)
        if form is None:
            columns = prepared.columns or ()
            formats = (TEXT,) * len(columns)
            form = Form((), backend.row_description(columns, formats), row_encoder(columns, formats))
            keep_form(prepared.forms, TEXT, form)
        return form


def _are_long(rows: Sequence[Row]) -> bool:
    """Whether it takes long to write these rows down."""
    return sum(map(_length, chain.from_iterable(rows))) > LONG_BYTES


def _length(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if not isinstance(value, list):
        return 0
    return len(value) if len(value) > LONG_BYTES else len(value) + sum(map(_length, value))


def _end(data: bytes) -> int:
    """Where the first message ends, and its body has at least the zero byte of a name or a text."""
    end = int(_LENGTH.unpack_from(data, 1)[0]) + 1
    if not backend.HEADER_BYTES < end <= len(data):
        raise ProtocolViolation("invalid message length")
    return end


def _fields(data: bytes, at: int) -> tuple[list[bytes | None], int]:
    """The values that stand in a Bind from here on, and where they end."""
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    fields: list[bytes | None] = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, at)
        at += 4
        if length == -1:
            fields.append(None)
            continue
        end = at + length
        if length < 0 or end > len(data):
            raise ProtocolViolation("insufficient data left in message")
        fields.append(data[at:end])
        at = end
    return fields, at


def _form(statement: Statement, given: bytes, wanted: bytes) -> Form:
    """The form for these format codes, each with their number in front."""
    form: Form | None = statement.forms.get((given, wanted))
    if form is None:
        columns = statement.prepared.columns or ()
        formats = formats_for(_codes(given), len(statement.parameters), "parameter")
        results = formats_for(_codes(wanted), len(columns), "result")
        decoders = tuple(decoder(each, code) for each, code in zip(statement.parameters, formats, strict=True))
        form = Form(decoders, backend.row_description(columns, results), row_encoder(columns, results))
        keep_form(statement.forms, (given, wanted), form)
    return form


def _codes(data: bytes) -> tuple[int, ...]:
    (count,) = _COUNT.unpack_from(data)
    codes: Sequence[int] = struct.unpack(f"!{count}h", data[2:])
    if any(code not in (0, 1) for code in codes):
        raise ProtocolViolation("unsupported format code")
    return tuple(codes)


@lru_cache(1_000)
def _completed(rows: int) -> bytes:
    return backend.command_complete(f"SELECT {rows}") + backend.ready_for_query("I")
