"""PostgreSQL's binary form of numeric: digits to the base 10,000, and where the point is.

A header of four 16-bit numbers (how many digits, the weight of the first, sign, scale to show), then the digits.
"""

from __future__ import annotations

import struct
from decimal import Decimal

from everview.compute.functions.contract import Failure
from everview.compute.functions.numbers import constrain
from everview.compute.functions.output import numeric_text
from everview.compute.ir.types import SqlType

_HEADER = struct.Struct("!HhHH")
_POSITIVE, _NEGATIVE = 0x0000, 0x4000
_SCALE_MAX = 0x3FFF
_GROUP = 4
# Whole digits beyond this many groups overflow every numeric that there is.
_WEIGHT_MAX = 24


def encode(value: Decimal, *, constrained: bool) -> bytes:
    """The binary form, with the digits behind the point that the text form shows."""
    text = numeric_text(value, constrained=constrained)
    sign = _NEGATIVE if text.startswith("-") else _POSITIVE
    whole, _, fraction = text.lstrip("-").partition(".")
    scale = len(fraction)
    whole = whole.zfill(-(-len(whole) // _GROUP) * _GROUP)
    fraction = fraction.ljust(-(-scale // _GROUP) * _GROUP, "0")
    digits = whole + fraction
    groups = [int(digits[at : at + _GROUP]) for at in range(0, len(digits), _GROUP)]
    weight = len(whole) // _GROUP - 1
    first = next((at for at, group in enumerate(groups) if group), len(groups))
    last = next((at for at in range(len(groups), first, -1) if groups[at - 1]), first)
    kept = groups[first:last]
    if not kept:
        return _HEADER.pack(0, 0, _POSITIVE, scale)
    return _HEADER.pack(len(kept), weight - first, sign, scale) + struct.pack(f"!{len(kept)}H", *kept)


def decode(data: bytes, sql_type: SqlType) -> Decimal:
    """The value, at the scale of its type; Failure if it does not fit there, 22P03 if the bytes are no numeric."""
    if len(data) < _HEADER.size:
        raise malformed()
    count, weight, sign, scale = _HEADER.unpack_from(data)
    if len(data) != _HEADER.size + 2 * count:
        raise malformed()
    if sign not in (_POSITIVE, _NEGATIVE):
        if sign in (0xC000, 0xD000, 0xF000):  # NaN and the infinities: there are no such decimals
            raise Failure("22003", "numeric field overflow")
        raise Failure("22P03", 'invalid sign in external "numeric" value')
    if scale > _SCALE_MAX:
        raise Failure("22P03", 'invalid scale in external "numeric" value')
    groups = struct.unpack_from(f"!{count}H", data, _HEADER.size)
    if any(group > 9999 for group in groups):
        raise Failure("22P03", 'invalid digit in external "numeric" value')
    if not any(groups):
        return constrain(Decimal(0), sql_type)
    if weight > _WEIGHT_MAX:
        raise Failure("22003", "value overflows numeric format")
    digits = "".join(f"{group:04d}" for group in groups)
    exponent = (weight + 1 - count) * _GROUP
    return constrain(Decimal(f"{'-' if sign else ''}{digits}e{exponent}"), sql_type)


def malformed() -> Failure:
    """What PostgreSQL says about bytes that are too few or too many."""
    return Failure("22P03", "incorrect binary data format")
