"""Arrays in PostgreSQL's binary format: dimensions, the OID of what they hold, then the values one after another."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from everview.compute.allowance import ROW_BYTES, take
from everview.compute.cancel import check_wanted
from everview.compute.functions.contract import Failure
from everview.compute.ir.types import Kind, SqlType
from everview.compute.sql.errors import DATATYPE_MISMATCH
from everview.server.pgwire import binary
from everview.server.pgwire.binary import Decoder, Encoder
from everview.server.pgwire.numeric import malformed
from everview.server.pgwire.oids import JSON, OID, innermost, oid_of

_HEADER = struct.Struct("!iiI")
_DIMENSION = struct.Struct("!ii")
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_DIMENSIONS_MAX = 6
_CHECK_EVERY = 1_024  # elements

# What the elements of arrays of types that we have no arrays of come as.
_ELEMENT_OIDS = {199: JSON, 1003: 19, 1028: OID}


def encoder(sql_type: SqlType) -> Encoder:
    """What writes arrays of a type; arrays in arrays must form a block, as PostgreSQL has it."""
    element = innermost(sql_type)
    oid, encode = oid_of(element), binary.encoder(element)
    depth = _depth(sql_type)

    def write(value: list[Any]) -> bytes:
        lengths = _lengths(value, depth)
        if 0 in lengths:
            return _HEADER.pack(0, 0, oid)
        parts = [b"", *(_DIMENSION.pack(length, 1) for length in lengths)]
        nulls = 0
        for each in _leaves(value, lengths):
            if each is None:
                nulls = 1
                parts.append(_NULL)
            else:
                data = encode(each)
                parts += (_LENGTH.pack(len(data)), data)
        parts[0] = _HEADER.pack(len(lengths), nulls, oid)
        return b"".join(parts)

    return write


def decoder(array_oid: int, sql_type: SqlType) -> Decoder:
    """What reads arrays of one dimension."""
    element = innermost(sql_type)
    expected = _ELEMENT_OIDS.get(array_oid, oid_of(element))
    decode = binary.decoder(expected, element)

    def read(data: bytes) -> list[Any]:
        if len(data) < _HEADER.size:
            raise malformed()
        dimensions, flags, oid = _HEADER.unpack_from(data)
        if not 0 <= dimensions <= _DIMENSIONS_MAX:
            raise Failure("22P03", f"invalid number of dimensions: {dimensions}")
        if flags not in (0, 1):
            raise Failure("22P03", "invalid array flags")
        if oid != expected:
            raise Failure(
                DATATYPE_MISMATCH,
                f"binary data has array element type {oid} instead of expected {expected} ({element})",
            )
        if dimensions == 0:
            return []
        if dimensions > 1:
            raise Failure("0A000", "multidimensional arrays are not supported as parameters")
        if len(data) < _HEADER.size + _DIMENSION.size:
            raise malformed()
        (length, _) = _DIMENSION.unpack_from(data, _HEADER.size)
        return list(_elements(data, length, decode))

    return read


def _elements(data: bytes, length: int, decode: Decoder) -> Iterator[Any]:
    at = _HEADER.size + _DIMENSION.size
    if length < 0 or length * _LENGTH.size > len(data) - at:
        raise malformed()
    for number in range(length):
        if number % _CHECK_EVERY == 0:
            check_wanted()
            take(_CHECK_EVERY * ROW_BYTES)
        if at + _LENGTH.size > len(data):
            raise malformed()
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if size == -1:
            yield None
            continue
        if size < 0 or at + size > len(data):
            raise malformed()
        yield decode(data[at : at + size])
        at += size
    if at != len(data):
        raise malformed()


def _depth(sql_type: SqlType) -> int:
    depth = 0
    while sql_type.kind is Kind.ARRAY:
        assert sql_type.element is not None
        sql_type, depth = sql_type.element, depth + 1
    return depth


def _lengths(value: list[Any], depth: int) -> list[int]:
    lengths = [len(value)]
    while len(lengths) < depth and lengths[-1]:
        value = value[0]
        if value is None:
            raise _ragged()
        lengths.append(len(value))
    return lengths


def _leaves(value: Any, lengths: list[int]) -> Iterator[Any]:
    if value is None or len(value) != lengths[0]:
        raise _ragged()
    if len(lengths) == 1:
        yield from value
        return
    for each in value:
        yield from _leaves(each, lengths[1:])


def _ragged() -> Failure:
    return Failure("2202E", "multidimensional arrays must have sub-arrays with matching dimensions")
