"""Functions of bytea: parts, places, and single bytes and bits."""

from __future__ import annotations

from everview.compute.functions.contract import Failure
from everview.compute.functions.family import Family
from everview.compute.functions.spark_sql import not_on_spark
from everview.compute.ir.types import BYTEA, INT4, INT8

FUNCTIONS = Family()
_add = FUNCTIONS.add


def _inside(index: int, count: int) -> None:
    if not 0 <= index < count:
        raise Failure("2202E", f"index {index} out of valid range, 0..{count - 1}")


def _get_byte(data: bytes, index: int) -> int:
    _inside(index, len(data))
    return data[index]


def _set_byte(data: bytes, index: int, value: int) -> bytes:
    _inside(index, len(data))
    return data[:index] + bytes([value & 255]) + data[index + 1 :]


def _get_bit(data: bytes, index: int) -> int:
    """Bits are counted from the lowest of each byte."""
    _inside(index, 8 * len(data))
    return data[index // 8] >> index % 8 & 1


def _set_bit(data: bytes, index: int, value: int) -> bytes:
    _inside(index, 8 * len(data))
    if value not in (0, 1):
        raise Failure("22023", "new bit must be 0 or 1")
    place, mask = index // 8, 1 << index % 8
    return _set_byte(data, place, data[place] | mask if value else data[place] & ~mask)


for _name, _strip in (("btrim", bytes.strip), ("ltrim", bytes.lstrip), ("rtrim", bytes.rstrip)):
    _add(
        _name,
        (BYTEA, BYTEA),
        BYTEA,
        lambda data, ends, strip=_strip: strip(data, ends) if ends else data,
        not_on_spark(_name),
    )
_add("position", (BYTEA, BYTEA), INT4, lambda data, part: data.find(part) + 1, not_on_spark("position"))
_add("bit_length", (BYTEA,), INT4, lambda data: 8 * len(data), "bit_length({0})")
_add("bit_count", (BYTEA,), INT8, lambda data: sum(map(int.bit_count, data)), not_on_spark("bit_count"))
_add("get_byte", (BYTEA, INT4), INT4, _get_byte, not_on_spark("get_byte"), fails=True)
_add("set_byte", (BYTEA, INT4, INT4), BYTEA, _set_byte, not_on_spark("set_byte"), fails=True)
_add("get_bit", (BYTEA, INT8), INT4, _get_bit, not_on_spark("get_bit"), fails=True)
_add("set_bit", (BYTEA, INT8, INT4), BYTEA, _set_bit, not_on_spark("set_bit"), fails=True)
