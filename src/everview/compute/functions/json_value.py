"""jsonb as a value: the canonical text, and the order that PostgreSQL gives to jsonb values.

Canonical: keys by length and then by bytes, the last of equal keys kept, one space after a colon and a comma, and
numbers plain and without digits that do not count. So equal values are equal texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from everview.compute.allowance import look_ahead
from everview.compute.cancel import check_wanted, paced
from everview.compute.functions.contract import Failure
from everview.compute.functions.slices import mapped
from everview.compute.functions.sorting import sort

_DIGITS_MAX = 1000
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
DEPTH_MAX = 256  # of values that come in: what every process that reads them has room for, those of Spark too
_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[][{}]', re.DOTALL)
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_BLANK = r"[ \t\n\r]*+"
_BLANKS, _COLON = re.compile(_BLANK), re.compile(f"{_BLANK}:{_BLANK}")
_MARK, _EMPTY = re.compile(rf"{_BLANK}([]}},]){_BLANK}"), re.compile(rf"\[{_BLANK}\]|\{{{_BLANK}\}}")
_CHECK_EVERY = 4_096  # parts of a value
_PART_BYTES = 100  # of memory that a part takes, about


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
        value = _DECODER.decode(text) if len(text) <= _LONG else _read_long(text)
    except RecursionError as error:
        raise Failure("54001", "jsonb value nested too deeply") from error
    except ValueError as error:
        raise Failure("22P02", "invalid input syntax for type json") from error
    if "\\u" in text:
        for each in _texts(value):
            if "\0" in each:
                raise Failure("22P05", "unsupported Unicode escape sequence")
            try:
                each.encode()
            except UnicodeEncodeError as error:  # half of a pair has no form in UTF-8
                raise Failure("22P02", "invalid input syntax for type json") from error
    return value


def _read_long(text: str) -> Any:
    """The value of a long text, part by part: the decoder would hold the interpreter's lock until it is done."""
    open_values: list[tuple[Any, str]] = []  # lists and objects that are not complete, each object with a name
    place, count = _end_of(_BLANKS, text, 0), 0
    while True:
        if count % _CHECK_EVERY == 0:
            check_wanted()
            look_ahead(count * _PART_BYTES)
        count += 1
        mark = text[place : place + 1]
        if mark not in ("[", "{"):
            value, place = _DECODER.raw_decode(text, place)
        elif closed := _EMPTY.match(text, place):
            value, place = [] if mark == "[" else {}, closed.end()
        elif mark == "[":
            open_values.append(([], ""))
            place = _end_of(_BLANKS, text, place + 1)
            continue
        else:
            name, place = _name(text, _end_of(_BLANKS, text, place + 1))
            open_values.append(({}, name))
            continue
        while open_values:
            parent, name = open_values[-1]
            is_list = isinstance(parent, list)
            if is_list:
                parent.append(value)
            else:
                parent[name] = value
            found = _MARK.match(text, place)
            if found is None:
                raise ValueError
            place, mark = found.end(), found[1]
            if mark == ",":
                if not is_list:
                    name, place = _name(text, place)
                    open_values[-1] = parent, name
                break
            if mark != ("]" if is_list else "}"):
                raise ValueError
            open_values.pop()
            value = parent
        else:
            if _end_of(_BLANKS, text, place) != len(text):
                raise ValueError
            return value


def _name(text: str, place: int) -> tuple[str, int]:
    """The name of a field, and where its value begins."""
    if text[place : place + 1] != '"':
        raise ValueError
    name, place = _DECODER.raw_decode(text, place)
    return name, _end_of(_COLON, text, place)


def _end_of(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    if match is None:
        raise ValueError
    return match.end()


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


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_refuse, object_pairs_hook=dict)


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
        return "[" + ", ".join(map(dump, elements(value))) + "]"
    return "{" + ", ".join(f"{quote(name)}: {dump(each)}" for name, each in fields(value)) + "}"


def elements(value: list[Any]) -> Iterable[Any]:
    """The elements; raises `Ended`, now and then if there are many, if nobody wants the rest."""
    return value if len(value) < _CHECK_EVERY else paced(value)


def fields(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """Names and values in the order of the names."""
    pairs = list(value.items())
    sort(pairs, key=lambda pair: key_order(pair[0]))
    return pairs


def number_text(value: Decimal) -> str:
    """Plain digits, without zeros at the end of a fraction and without a sign on zero."""
    if not value:
        return "0"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quote(text: str) -> str:
    return '"' + mapped(_escaped, text) + '"'


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text)


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
    return 5, len(value), tuple((key_order(name), json_order(each)) for name, each in fields(value))
