"""jsonb as a value: the canonical text, and the order that PostgreSQL gives to jsonb values.

Canonical: keys by length and then by bytes, the last of equal keys kept, one space after a colon and a comma, and
numbers plain and without digits that do not count. So equal values are equal texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from everview.compute.functions.contract import Failure

_DIGITS_MAX = 1000
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
DEPTH_MAX = 256  # of values that come in: what every process that reads them has room for, those of Spark too
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}]', re.DOTALL)
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def canonical(text: str) -> str:
    """The canonical form of JSON text; fails with 22P02 for other text, 54001 if it is nested too deeply."""
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _check_depth(text)
    return dump(_read(text))


def _check_depth(text: str) -> None:
    depth = 0
    for mark in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
        if depth > DEPTH_MAX:
            raise Failure("54001", f"jsonb value nested too deeply, more than {DEPTH_MAX} levels")


def parse(text: str) -> Any:
    """The Python value of JSON text, with numbers as Decimals. Callers must not change it: it is shared."""
    if len(text) <= _SHORT:
        return _remembered(text)
    return _remembered_long(text) if len(text) <= _LONG else _read(text)


def _read(text: str) -> Any:
    try:
        value = json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_refuse, object_pairs_hook=dict)
    except RecursionError as error:
        raise Failure("54001", "jsonb value nested too deeply") from error
    except ValueError as error:
        raise Failure("22P02", "invalid input syntax for type json") from error
    if "\\u" in text:
        for each in _texts(value):
            if "\0" in each:
                raise Failure("22P05", "unsupported Unicode escape sequence")
            if any("\ud800" <= letter <= "\udfff" for letter in each):  # half of a pair has no form in UTF-8
                raise Failure("22P02", "invalid input syntax for type json")
    return value


# Several functions are asked about the same value. How much is remembered is bounded by the lengths of texts, too.
_SHORT, _LONG = 1_000, 100_000
_remembered, _remembered_long = lru_cache(4_096)(_read), lru_cache(16)(_read)


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation as error:  # an exponent beyond all measure
        raise Failure("22003", "value overflows numeric format") from error
    if number and abs(number.adjusted()) > _DIGITS_MAX:
        raise Failure("22003", "value overflows numeric format")
    return number


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)


def dump(value: Any) -> str:
    """The canonical text of a value as `parse` gives it; ints are taken too."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return number_text(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(dump, value)) + "]"
    pairs = sorted(value.items(), key=lambda pair: key_order(pair[0]))
    return "{" + ", ".join(f"{quote(name)}: {dump(each)}" for name, each in pairs) + "}"


def number_text(value: Decimal) -> str:
    """Plain digits, without zeros at the end of a fraction and without a sign on zero."""
    if not value:
        return "0"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quote(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'


def key_order(name: str) -> tuple[int, bytes]:
    """The order of an object's keys."""
    encoded = name.encode()
    return len(encoded), encoded


def json_order(value: Any) -> tuple[Any, ...]:
    """Object > array > boolean > number > string > null; but an empty array is before everything."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return 1, value
    if isinstance(value, bool):
        return 3, value
    if isinstance(value, Decimal | int):
        return 2, value
    if isinstance(value, list):
        return (4, len(value), tuple(map(json_order, value))) if value else (-1,)
    pairs = sorted(value.items(), key=lambda pair: key_order(pair[0]))
    return 5, len(value), tuple((key_order(name), json_order(each)) for name, each in pairs)
