"""Values in PostgreSQL's binary formats, both directions, for every type but arrays, which `arrays` adds."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from everview.compute.functions.calendar import DAY, day, micros_of, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.json_value import canonical
from everview.compute.functions.numbers import RANGES, real
from everview.compute.ir.infinite import OF_DAYS, OF_MICROS, Infinite
from everview.compute.ir.types import PG_OID, Interval, Kind, SqlType
from everview.compute.sql.strings import utf8
from everview.server.pgwire import numeric
from everview.server.pgwire.oids import JSON, OID

Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes], Any]

_INT2, _INT4, _INT8 = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!q")
_UINT4 = struct.Struct("!I")
_FLOAT4, _FLOAT8 = struct.Struct("!f"), struct.Struct("!d")
_INTERVAL = struct.Struct("!qii")

# PostgreSQL counts from 2000.
EPOCH_DAYS = (date(2000, 1, 1) - date(1970, 1, 1)).days
_EPOCH_ORDINAL = date(2000, 1, 1).toordinal()
EPOCH_MICROS = micros_of(datetime(2000, 1, 1))
_JSONB_VERSION = b"\x01"


def _days(value: date | Infinite) -> int:
    return value.days if isinstance(value, Infinite) else value.toordinal() - _EPOCH_ORDINAL


def _micros(value: datetime | Infinite) -> int:
    return value.micros if isinstance(value, Infinite) else micros_of(value) - EPOCH_MICROS


_ENCODERS: dict[Kind, Encoder] = {
    Kind.BOOLEAN: lambda value: b"\x01" if value else b"\x00",
    Kind.INT2: _INT2.pack,
    Kind.INT4: _INT4.pack,
    Kind.INT8: _INT8.pack,
    Kind.MZ_TIMESTAMP: _INT8.pack,
    Kind.FLOAT4: _FLOAT4.pack,
    Kind.FLOAT8: _FLOAT8.pack,
    Kind.TEXT: str.encode,
    Kind.VARCHAR: str.encode,
    Kind.UNKNOWN: str.encode,
    Kind.BYTEA: bytes,
    Kind.DATE: lambda value: _INT4.pack(_days(value)),
    Kind.TIME: _INT8.pack,
    Kind.TIMESTAMP: lambda value: _INT8.pack(_micros(value)),
    Kind.TIMESTAMPTZ: lambda value: _INT8.pack(_micros(value)),
    Kind.INTERVAL: lambda value: _INTERVAL.pack(value.micros, value.days, value.months),
    Kind.UUID: lambda value: uuid.UUID(value).bytes,
    Kind.JSONB: lambda value: _JSONB_VERSION + value.encode(),
}


def encoder(sql_type: SqlType) -> Encoder:
    """What writes values of a type that is no array."""
    if sql_type.kind is Kind.NUMERIC:
        constrained = sql_type.constrained
        return lambda value: numeric.encode(value, constrained=constrained)
    if sql_type.kind is Kind.CHAR:
        length = sql_type.length or 0
        return lambda value: value.ljust(length).encode()
    if sql_type.alias == PG_OID.alias:
        return _UINT4.pack
    return _ENCODERS[sql_type.kind]


def decoder(oid: int, sql_type: SqlType) -> Decoder:
    """What reads values of a type that is no array, as they come for an OID that stands for it."""
    if oid == JSON:
        return lambda data: canonical(utf8(data))
    if oid == OID:
        return lambda data: _unpack(_UINT4, data)
    if sql_type.kind is Kind.NUMERIC:
        return lambda data: numeric.decode(data, sql_type)
    return _DECODERS[sql_type.kind]


def _unpack(form: struct.Struct, data: bytes) -> Any:
    if len(data) != form.size:
        raise numeric.malformed()
    return form.unpack(data)[0]


def _boolean(data: bytes) -> bool:
    if len(data) != 1:
        raise numeric.malformed()
    return data != b"\x00"


def _float(form: struct.Struct, data: bytes, kind: Kind) -> float:
    value = float(_unpack(form, data))
    # One NaN of the many: equal values have equal representations.
    return math.nan if math.isnan(value) else real(value, kind, infinite=True)


def _mz_timestamp(data: bytes) -> int:
    value = int(_unpack(_INT8, data))
    if value < 0:
        raise Failure("22003", "mz_timestamp out of range")
    return value


def _date(data: bytes) -> date | Infinite:
    days = _unpack(_INT4, data)
    return OF_DAYS[days] if days in OF_DAYS else day(days + EPOCH_DAYS)


def _time(data: bytes) -> int:
    micros = int(_unpack(_INT8, data))
    if not 0 <= micros <= DAY:
        raise Failure("22008", "time out of range")
    return micros


def _timestamp(kind: Kind) -> Decoder:
    def decode(data: bytes) -> datetime | Infinite:
        micros = _unpack(_INT8, data)
        return OF_MICROS[micros] if micros in OF_MICROS else timestamp(micros + EPOCH_MICROS, kind)

    return decode


def _interval(data: bytes) -> Interval:
    if len(data) != _INTERVAL.size:
        raise numeric.malformed()
    micros, days, months = _INTERVAL.unpack(data)
    low, high, _ = RANGES[Kind.INT4]
    if (micros, days, months) in ((2**63 - 1, high, high), (-(2**63), low, low)):
        raise Failure("22008", "interval out of range")  # the infinities
    return Interval(months, days, micros)


def _uuid(data: bytes) -> str:
    if len(data) != 16:
        raise numeric.malformed()
    return str(uuid.UUID(bytes=data))


def _jsonb(data: bytes) -> str:
    if data[:1] != _JSONB_VERSION:
        raise Failure("22P03", f"unsupported jsonb version number {data[0] if data else 0}")
    return canonical(utf8(data[1:]))


_DECODERS: dict[Kind, Decoder] = {
    Kind.BOOLEAN: _boolean,
    Kind.INT2: lambda data: _unpack(_INT2, data),
    Kind.INT4: lambda data: _unpack(_INT4, data),
    Kind.INT8: lambda data: _unpack(_INT8, data),
    Kind.MZ_TIMESTAMP: _mz_timestamp,
    Kind.FLOAT4: lambda data: _float(_FLOAT4, data, Kind.FLOAT4),
    Kind.FLOAT8: lambda data: _float(_FLOAT8, data, Kind.FLOAT8),
    Kind.TEXT: utf8,
    Kind.VARCHAR: utf8,
    Kind.UNKNOWN: utf8,
    Kind.CHAR: lambda data: utf8(data).rstrip(" "),
    Kind.BYTEA: bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _timestamp(Kind.TIMESTAMP),
    Kind.TIMESTAMPTZ: _timestamp(Kind.TIMESTAMPTZ),
    Kind.INTERVAL: _interval,
    Kind.UUID: _uuid,
    Kind.JSONB: _jsonb,
}
