"""Values in JSON: what each column's values look like there, checked on the way back.

Numbers, text and booleans are themselves. Decimals are text, so that they stay exact; NaN and the infinities are text,
for JSON has no numbers for them; dates and timestamps are ISO 8601, or `infinity` and `-infinity`; bytes are base64;
a list is an array, a struct an object. Columns are converted and checked as a whole, which Python does many times
faster than value by value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from json.encoder import encode_basestring
from types import NoneType
from typing import Any

import pyarrow as pa

from everview.cdc.codec.sql_values import sql_conversion
from everview.cdc.rows import NAN, Convert
from everview.compute.ir.infinite import Infinite

_INFINITE = {each.value: each for each in Infinite}
_WORDS = {"NaN": NAN, "Infinity": math.inf, "-Infinity": -math.inf}


class JsonColumn:
    def __init__(self, field: pa.Field) -> None:
        self.name = field.name
        self._dtype = field.type
        self._nullable = field.nullable
        self._types, self._in, self._out = _conversion(field.type)
        self._sql = sql_conversion(field)
        self._bounds = _bounds(field.type)

    def encode(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values as `json.dumps` takes them."""
        convert = self._out
        return values if convert is None else [None if v is None else convert(v) for v in values]

    def texts(self, values: Sequence[Any]) -> Iterable[str]:
        """The values as they stand in JSON."""
        if None in values:
            return map(_dump, self.encode(values))
        if self._types == {int}:
            return map(str, values)
        if self._types == {str} and self._out is None:
            return map(encode_basestring, values)
        if pa.types.is_floating(self._dtype) and all(map(math.isfinite, values)):
            return map(repr, values)
        return map(_dump, self.encode(values))

    def decode(self, values: Sequence[Any]) -> Sequence[Any]:
        """The values that JSON has as these; raises ValueError."""
        kinds = set(map(type, values))
        if NoneType in kinds:
            if not self._nullable:
                raise ValueError(f"column {self.name} has no value")
            kinds.discard(NoneType)
        if not kinds <= self._types:
            found = ", ".join(sorted(kind.__name__ for kind in kinds - self._types))
            raise ValueError(f"column {self.name} is {self._dtype}, and a value is {found}")
        if self._bounds is not None:
            low, high = self._bounds
            present = [v for v in values if v is not None] if None in values else values
            if present and not (low <= min(present) and max(present) <= high):
                raise ValueError(f"column {self.name} is {self._dtype}, and a value does not fit")
        if pa.types.is_string(self._dtype) and (wrong := wrong_text(values)):
            raise ValueError(f"column {self.name} is {self._dtype}, and a value has {wrong}")
        try:
            for convert in (self._in, self._sql):
                if convert is not None:
                    values = [None if v is None else convert(v) for v in values]
        except (ValueError, ArithmeticError, TypeError) as error:
            raise ValueError(f"column {self.name} is {self._dtype}, and a value is not: {error}") from error
        return values


def wrong_text(values: Sequence[str | None]) -> str | None:
    """Name what no text may hold, if one of these texts holds it.

    JSON can name half of a surrogate pair, and Python takes it for text. PostgreSQL's text has no U+0000, and neither
    its protocol nor its clients can show one.
    """
    joined = "".join(filter(None, values))
    if "\0" in joined:
        return "the character U+0000"
    try:
        joined.encode()
    except UnicodeEncodeError:
        return "half of a character"
    return None


def has_members(dtype: pa.DataType) -> bool:
    """Whether values of a type have objects in them."""
    return bool(pa.types.is_struct(dtype)) or (bool(pa.types.is_list(dtype)) and has_members(dtype.value_type))


def unexpected(value: Mapping[str, Any], names: Iterable[str], what: str) -> str:
    """Say how the members of an object differ from the names that they should have."""
    wanted = set(names)
    missing, more = sorted(wanted - value.keys()), sorted(value.keys() - wanted)
    if missing and more:
        return f"{what} has no member {missing[0]}, and one {more[0]} that is unknown"
    return f"{what} has no member {missing[0]}" if missing else f"{what} has a member {more[0]} that is unknown"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _bounds(dtype: pa.DataType) -> tuple[int, int] | None:
    if not pa.types.is_integer(dtype):
        return None
    half = 1 << (dtype.bit_width - 1)
    return -half, half - 1


def _conversion(dtype: pa.DataType) -> tuple[set[type], Convert | None, Convert | None]:
    """The Python types of JSON's values, the conversion to our values, and the one back."""
    if pa.types.is_boolean(dtype):
        return {bool}, None, None
    if pa.types.is_integer(dtype):
        return {int}, None, None
    if pa.types.is_floating(dtype):
        return {int, float, str}, _float_in, _float_out
    if pa.types.is_string(dtype):
        return {str}, None, None
    if pa.types.is_binary(dtype):
        return {str}, lambda text: base64.b64decode(text, validate=True), lambda value: base64.b64encode(value).decode()
    if pa.types.is_decimal128(dtype):
        return {str, int}, _decimal_in(dtype), str
    if pa.types.is_date32(dtype):
        return {str}, _or_infinite_in(date.fromisoformat), _or_infinite_out(date.isoformat)
    if pa.types.is_timestamp(dtype):
        if dtype.tz is None:
            return {str}, _or_infinite_in(_local_in), _or_infinite_out(_local_text)
        return {str}, _or_infinite_in(_zoned_in), _or_infinite_out(lambda value: _local_text(value) + "Z")
    if pa.types.is_list(dtype):
        item = JsonColumn(pa.field("item", dtype.value_type))
        return {list}, lambda values: tuple(item.decode(values)), lambda values: list(item.encode(values))
    if pa.types.is_struct(dtype):
        return {dict}, *_struct([JsonColumn(dtype.field(i)) for i in range(dtype.num_fields)])
    raise AssertionError(f"no column has type {dtype}")


def _struct(parts: list[JsonColumn]) -> tuple[Convert, Convert]:
    names = {part.name for part in parts}

    def read(value: dict[str, Any]) -> tuple[Any, ...]:
        if value.keys() != names:
            raise ValueError(unexpected(value, names, "a composite"))
        return tuple(part.decode([value[part.name]])[0] for part in parts)

    def write(value: tuple[Any, ...]) -> dict[str, Any]:
        return {part.name: part.encode([each])[0] for part, each in zip(parts, value, strict=True)}

    return read, write


def _float_in(value: int | float | str) -> float:
    if isinstance(value, str):
        if value not in _WORDS:
            raise ValueError(f"{value!r} is not a number")
        return _WORDS[value]
    return float(value)


def _float_out(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal_in(dtype: pa.DataType) -> Convert:
    limit, least = 10 ** (dtype.precision - dtype.scale), -dtype.scale

    def read(value: str | int) -> Decimal:
        number = Decimal(value)
        exponent = number.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < least or number.copy_abs() >= limit:
            raise ValueError(f"{value} does not fit")
        return number

    return read


def _or_infinite_in(read: Convert) -> Convert:
    return lambda value: _INFINITE[value] if value in _INFINITE else read(value)


def _or_infinite_out(write: Convert) -> Convert:
    return lambda value: value.value if isinstance(value, Infinite) else write(value)


def _local_in(value: str) -> datetime:
    result = datetime.fromisoformat(value)
    if result.tzinfo is not None:
        raise ValueError(f"{value!r} has a zone")
    return result


def _local_text(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat(timespec="microseconds")


def _zoned_in(value: str) -> datetime:
    result = datetime.fromisoformat(value)
    if result.tzinfo is None:
        raise ValueError(f"{value!r} has no zone")
    return result.astimezone(UTC)
