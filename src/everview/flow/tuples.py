"""Keys packed as FoundationDB tuples: bytes whose order is the order of the keys, which some drivers read instead."""

from __future__ import annotations

import struct
from typing import Any


def pack(values: list[Any]) -> bytes:
    """Packed JSON scalars; anything else as its JSON text would have to come as a string."""
    return b"".join(map(_packed, values))


def _packed(value: Any) -> bytes:
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return b"\x27" if value else b"\x26"
    if isinstance(value, int):
        return pack_integer(value)
    if isinstance(value, float):
        return pack_float(value)
    if isinstance(value, bytes):
        return pack_bytes(value)
    if isinstance(value, str):
        return pack_text(value)
    raise TypeError(f"cannot be part of a packed key: {type(value).__name__}")


def pack_bytes(value: bytes) -> bytes:
    """Packed bytes."""
    return b"\x01" + value.replace(b"\x00", b"\x00\xff") + b"\x00"


def pack_text(value: str) -> bytes:
    """A packed text."""
    return b"\x02" + value.encode().replace(b"\x00", b"\x00\xff") + b"\x00"


def pack_integer(value: int) -> bytes:
    """A packed integer of at most 64 bits."""
    size = (abs(value).bit_length() + 7) // 8
    if size > 8:
        raise OverflowError(f"does not fit 64 bits: {value}")
    if value >= 0:
        return bytes([0x14 + size]) + value.to_bytes(size, "big")
    # Negative numbers as the complement of their size, so that they too are in order.
    return bytes([0x14 - size]) + (value + (1 << 8 * size) - 1).to_bytes(size, "big")


def pack_float(value: float) -> bytes:
    """A packed float: its bits, turned so that they are in order."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value))
    flipped = bits ^ (0xFFFFFFFFFFFFFFFF if bits >> 63 else 1 << 63)
    return b"\x21" + struct.pack(">Q", flipped)
