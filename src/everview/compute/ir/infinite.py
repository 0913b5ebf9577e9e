"""`infinity` and `-infinity`: the date and the timestamp after all others, and before.

In Python they are values of their own, equal only to themselves, which compare with dates and timestamps. In Arrow, and
so at rest and on Spark, they are the greatest and the least number of the type, which are ordered and hashed as any.
Whoever does arithmetic with a date has to look whether it is one of these first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

DAY_INFINITY, DAY_MINUS_INFINITY = 2**31 - 1, -(2**31)
MICROS_INFINITY, MICROS_MINUS_INFINITY = 2**63 - 1, -(2**63)


class Infinite(Enum):
    """An infinite date or timestamp; its value is its text."""

    AFTER = "infinity"
    BEFORE = "-infinity"

    def __lt__(self, other: Any) -> bool:
        return self is Infinite.BEFORE and other is not self

    def __gt__(self, other: Any) -> bool:
        return self is Infinite.AFTER and other is not self

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __str__(self) -> str:
        return self.value

    @property
    def days(self) -> int:
        """The number that stands for it among the days of Arrow and of PostgreSQL's wire."""
        return DAY_INFINITY if self is Infinite.AFTER else DAY_MINUS_INFINITY

    @property
    def micros(self) -> int:
        """The number that stands for it among microseconds."""
        return MICROS_INFINITY if self is Infinite.AFTER else MICROS_MINUS_INFINITY

    @property
    def number(self) -> float:
        """The float that is as far away."""
        return float(self.value)


INFINITY, MINUS_INFINITY = Infinite.AFTER, Infinite.BEFORE
OF_DAYS = {each.days: each for each in Infinite}
OF_MICROS = {each.micros: each for each in Infinite}
_TEXT = re.compile(r"\s*+(?:([+-])\s*+)?infinity\s*+", re.ASCII | re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1)


def infinite_of(text: str) -> Infinite | None:
    """The infinity that a text means, if it means one."""
    match = _TEXT.fullmatch(text)
    return None if match is None else MINUS_INFINITY if match[1] == "-" else INFINITY


def to_python(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column of any type; what Arrow cannot say in Python are infinities."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except OverflowError:
        dtype = column.type
    if pa.types.is_list(dtype):
        return [to_python(each.values) if each.is_valid else None for each in column]
    if pa.types.is_struct(dtype):
        names = [field.name for field in dtype]
        parts = zip(*(to_python(pc.struct_field(column, name)) for name in names), strict=True)
        present = column.is_valid().to_pylist()
        return [
            dict(zip(names, part, strict=True)) if there else None for part, there in zip(parts, present, strict=True)
        ]
    if pa.types.is_date32(dtype):
        return [None if days is None else date_of(days) for days in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(dtype) and dtype.unit == "us":
        zoned, numbers = dtype.tz is not None, column.cast(pa.int64()).to_pylist()
        return [None if micros is None else timestamp_of(micros, zoned=zoned) for micros in numbers]
    raise OverflowError(f"values of {dtype} that Python has none for")


def date_of(days: int) -> date | Infinite:
    """The date so many days after the epoch, or the infinity that the number stands for; OverflowError of others."""
    return OF_DAYS[days] if days in OF_DAYS else (_EPOCH + timedelta(days=days)).date()


def timestamp_of(micros: int, *, zoned: bool) -> datetime | Infinite:
    """Microseconds, as numbers of Arrow, as a timestamp."""
    if micros in OF_MICROS:
        return OF_MICROS[micros]
    value = _EPOCH + timedelta(microseconds=micros)
    return value.replace(tzinfo=UTC) if zoned else value


def has_infinities(column: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a date or timestamp of a column is infinite."""
    dtype = column.type
    if pa.types.is_list(dtype):
        return has_infinities(pc.list_flatten(column))
    if not pa.types.is_date32(dtype) and not (pa.types.is_timestamp(dtype) and dtype.unit == "us"):
        return False
    ends, word = (OF_DAYS, pa.int32()) if pa.types.is_date32(dtype) else (OF_MICROS, pa.int64())
    return bool(pc.any(pc.is_in(column.cast(word), value_set=pa.array(list(ends), word))).as_py())


def as_numbers(values: Sequence[Any], dtype: pa.DataType) -> Sequence[Any]:
    """Values of dates or timestamps as `pa.array` takes them for this type: infinities as numbers."""
    if pa.types.is_list(dtype):
        return [each if each is None else as_numbers(list(each), dtype.value_type) for each in values]
    if pa.types.is_date32(dtype):
        return [each.days if isinstance(each, Infinite) else each for each in values]
    if pa.types.is_timestamp(dtype):
        return [each.micros if isinstance(each, Infinite) else each for each in values]
    return values
