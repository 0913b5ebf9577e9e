"""Calls that are said not to fail, because of their types or of literals in them, do not."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from everview.compute.functions import lookup, registry
from everview.compute.functions.casts import cast_between
from everview.compute.functions.contract import Failure
from everview.compute.functions.resolve import resolve
from everview.compute.interpreter.scalars import compile_attempt
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.scalar import Call, Column, Literal, Scalar
from everview.compute.ir.types import (
    BOOLEAN,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Interval,
    Kind,
    SqlType,
    numeric,
)

FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)
LIMITS: dict[SqlType, list[Any]] = {
    BOOLEAN: [False, True],
    INT2: [-(2**15), -1, 0, 2**15 - 1],
    INT4: [-(2**31), -1, 0, 2**31 - 1],
    INT8: [-(2**63), -1, 0, 2**63 - 1],
    FLOAT4: [-3.4028234663852886e38, 0.0, 3.4028234663852886e38],
    FLOAT8: [-1.7976931348623157e308, 0.0, 1.7976931348623157e308],
    TEXT: ["", "a", "%\\_ü"],
    DATE: [FIRST.date(), date(2000, 2, 29), LAST.date(), *Infinite],
    TIME: [0, 86_399_999_999],
    TIMESTAMP: [FIRST, LAST, *Infinite],
    TIMESTAMPTZ: [FIRST.replace(tzinfo=UTC), LAST.replace(tzinfo=UTC), *Infinite],
    INTERVAL: [
        Interval(-178_956_970, -(2**31), -(2**63)),
        Interval(0, 0, 0),
        Interval(2**31 - 1, 2**31 - 1, 2**63 - 1),
    ],
}
PATTERNS = ["a%", "%", "", "a_b", "\\%", "\\\\", "a\\"]
FIELDS = ["year", "month", "day", "dow", "doy", "week", "epoch", "hour", "second", "century", "julian", "nonsense"]


def numbers(sql_type: SqlType) -> list[Decimal]:
    """The least, the greatest and some number of a numeric."""
    most = Decimal(10**sql_type.precision - 1).scaleb(-sql_type.scale)
    return [-most, Decimal(0).scaleb(-sql_type.scale), most]


def values_of(sql_type: SqlType) -> list[Any]:
    return numbers(sql_type) if sql_type.kind is Kind.NUMERIC else LIMITS[sql_type]


def evaluated(call: Call) -> list[str]:
    """What fails among the values of the columns of a call."""
    read = [arg for arg in call.args if isinstance(arg, Column)]
    attempt, failures = compile_attempt(call), []
    for row in product(*(values_of(each.type) for each in read)):
        try:
            attempt(row)
        except Failure as failure:
            failures.append(f"{call.function}{row}: {failure.message}")
    return failures


def over(name: str, *args: SqlType | Literal) -> Call:
    """A call over columns of these types, and literals."""
    found = resolve(name, [each.type if isinstance(each, Literal) else each for each in args])
    scalars: list[Scalar] = []
    for each in args:
        place = sum(isinstance(known, Column) for known in scalars)
        scalars.append(each if isinstance(each, Literal) else Column(place, each))
    return Call(found.function.key, tuple(scalars), found.result)


def cases(rng: random.Random) -> list[Call]:
    calls = []
    for _ in range(300):
        pair = []
        for _ in range(2):
            precision = rng.randint(1, 38)
            pair.append(numeric(precision, rng.randint(0, min(precision, 18))))
        calls += [over(sign, *pair) for sign in "+-*"]
        divisor = Decimal(rng.choice([0, 1, -1, 7, 5, 100])).scaleb(-rng.randint(0, 2))
        calls.append(over("/", pair[0], Literal(divisor, numeric(6, -int(divisor.as_tuple().exponent)))))
    for of, by in product((INT2, INT4, INT8), (0, 1, -1, 7)):
        calls += [over(sign, of, Literal(by, of)) for sign in "/%"]
    for start, length in product((-1, 0, 3), (-1, 0, 3)):
        calls.append(over("substring", TEXT, Literal(start, INT4), Literal(length, INT4)))
    for symbol, pattern in product(("~~", "!~~", "~~*", "!~~*"), PATTERNS):
        calls.append(over(symbol, TEXT, Literal(pattern, TEXT)))
        calls += [over(symbol, TEXT, Literal(pattern, TEXT), Literal(each, TEXT)) for each in ("", "x", "xy")]
    for field, kind in product(FIELDS, (DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL)):
        calls.append(over("extract", Literal(field, TEXT), kind))
        if kind is not DATE:
            calls.append(over("date_part", Literal(field, TEXT), kind))
    targets = [
        *LIMITS,
        *(numeric(precision, scale) for precision, scale in ((5, 0), (12, 2), (21, 2), (38, 18))),
        numeric(),
    ]
    for source, target in product(LIMITS, targets):
        found = cast_between(source, target)
        if found is not None and found.key is not None:
            calls.append(Call(found.key, (Column(0, source),), target))
    return calls


def test_what_is_said_not_to_fail_does_not(rng: random.Random) -> None:
    chosen = [call for call in cases(rng) if lookup.function(call.function).safe is not None]
    safe = [call for call in chosen if not lookup.can_fail(call)]
    assert not [failure for call in safe for failure in evaluated(call)]
    told = {lookup.function(call.function).name for call in safe}
    assert told >= {"+", "-", "*", "/", "%", "substring", "~~", "extract", "cast"}, "each of them is safe sometimes"


def test_most_of_what_may_fail_does(rng: random.Random) -> None:
    """Not all: a bound on digits is one of all numbers that have so many."""
    chosen = [call for call in cases(rng) if lookup.function(call.function).safe is not None]
    unsafe = [call for call in chosen if lookup.can_fail(call)]
    failing = [call for call in unsafe if evaluated(call)]
    assert len(failing) > len(unsafe) // 3


@pytest.mark.parametrize("name", ["+", "~~", "extract", "substring"])
def test_of_columns_nothing_is_known(name: str) -> None:
    entries = [each for each in registry.FUNCTIONS.values() if each.name == name and each.safe is not None]
    for each in entries:
        call = Call(each.key, tuple(Column(place, kind) for place, kind in enumerate(each.args)), each.args[0])
        assert lookup.can_fail(call), each.key
