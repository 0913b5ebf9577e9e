"""Values to bytes and back, in either format: what DataRow and Bind carry."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from everview.adapter.contract import Column, Row
from everview.compute.functions.contract import Failure
from everview.compute.functions.input import from_text, invalid, limited
from everview.compute.functions.output import to_text
from everview.compute.ir.types import VECTORS, Kind, SqlType
from everview.compute.sql.errors import SqlError
from everview.compute.sql.strings import utf8
from everview.server.pgwire import arrays, binary
from everview.server.pgwire.backend import NULL
from everview.server.pgwire.binary import Decoder, Encoder
from everview.server.pgwire.oids import WireParameter

TEXT, BINARY = 0, 1
_LENGTH = struct.Struct("!I")
_ROW = struct.Struct("!IH")
_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8, Kind.MZ_TIMESTAMP)
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN, Kind.JSONB, Kind.UUID)
# The text of one value that goes into an error message.
_SHOWN_MAX = 200


def encoder(sql_type: SqlType, form: int) -> Encoder:
    """What writes values of a type in a format."""
    if form == BINARY:
        return arrays.encoder(sql_type) if sql_type.kind is Kind.ARRAY else binary.encoder(sql_type)
    if sql_type.kind in _INTEGERS:
        return b"%d".__mod__
    if sql_type.alias in VECTORS:
        return lambda value: " ".join(map(str, value)).encode()
    if sql_type.kind in _TEXTS:
        return str.encode
    return lambda value: to_text(value, sql_type).encode()


def row_encoder(columns: Sequence[Column], formats: Sequence[int]) -> Callable[[Row], bytes]:
    """What makes a DataRow of a row."""
    encoders = [encoder(column.type, form) for column, form in zip(columns, formats, strict=True)]
    count = len(encoders)
    length = _LENGTH.pack

    def encode(row: Row) -> bytes:
        parts = [b""]
        size = 6
        for value, encode_one in zip(row, encoders, strict=True):
            if value is None:
                parts.append(NULL)
                size += 4
            else:
                data = encode_one(value)
                parts += (length(len(data)), data)
                size += 4 + len(data)
        parts[0] = b"D" + _ROW.pack(size, count)
        return b"".join(parts)

    return encode


def decoder(parameter: WireParameter, form: int) -> Decoder:
    """What reads the values of a parameter in a format."""
    sql_type = _without_length(parameter.type)
    if form == TEXT:
        return lambda data: read_text(utf8(data), sql_type)
    if sql_type.kind is Kind.ARRAY:
        return arrays.decoder(parameter.oid, sql_type)
    return binary.decoder(parameter.oid, sql_type)


def read_text(text: str, sql_type: SqlType) -> Any:
    """The value that a text means, whatever the text is."""
    try:
        return from_text(text, sql_type)
    except (ValueError, ArithmeticError, RecursionError) as error:  # text beyond what anyone thought of
        shown = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
        raise invalid(shown, sql_type) from error


def read_column(text: str, sql_type: SqlType) -> Any:
    """The value to store in a column: too long a text fails, where a cast would cut it."""
    if sql_type.kind in (Kind.VARCHAR, Kind.CHAR):
        return limited(text, sql_type, explicit=False)
    return read_text(text, sql_type)


def decode_parameters(
    values: Sequence[bytes | None], parameters: Sequence[WireParameter], formats: Sequence[int]
) -> tuple[Any, ...]:
    """The values of a Bind, its formats already one for each."""
    decoded = []
    for number, (data, parameter, form) in enumerate(zip(values, parameters, formats, strict=True), 1):
        try:
            decoded.append(None if data is None else decoder(parameter, form)(data))
        except Failure as failure:
            error = SqlError(failure.sqlstate, failure.message, detail=f"it is the value of parameter ${number}")
            raise error from failure
    return tuple(decoded)


def _without_length(sql_type: SqlType) -> SqlType:
    """Parameters have no modifiers that cut: whether a value fits is for the statement to say."""
    if sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        return replace(sql_type, element=_without_length(sql_type.element))
    return replace(sql_type, length=None) if sql_type.length is not None else sql_type
