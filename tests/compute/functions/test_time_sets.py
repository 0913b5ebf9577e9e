"""Sets of times and the bounds that they are made of: exact at every time, and the same on Spark."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.functions.calendar import DAY, HOUR, add_interval, days_of, micros_of, month_length, timestamp
from everview.compute.functions.dates import at_zone
from everview.compute.functions.naming import key_of
from everview.compute.functions.precision import ZERO_US, rounded
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.functions.temporal_bounds import FUNCTIONS as BOUNDS
from everview.compute.functions.temporal_bounds import bound
from everview.compute.functions.temporal_inverses import moments
from everview.compute.functions.time_sets import INTERVALS, TIMES, times
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.relation import Constant, FlatMap, Map, Relation, types
from everview.compute.ir.scalar import Column, Literal, Scalar
from everview.compute.ir.types import (
    DATE,
    INT8,
    INTERVAL,
    MZ_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Interval,
    Kind,
    SqlType,
    numeric,
)
from tests.compute.engine.test_spark import ASCENDING, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = (TIME_MIN, TIME_MIN + 1, -1001, -1000, -999, -1, 0, 1, 999, 1000, 1001, 10**15, TIME_MAX - 1, TIME_MAX)


def drawn(rng: random.Random, last: int = 12) -> list[int]:
    """A set, of small times."""
    return sorted(rng.sample(range(last), rng.randint(0, 6)))


def has(found: Sequence[int], time: int) -> bool:
    """Whether a time is in a set."""
    return bisect_right(found, time) % 2 == 1


def value(scalar: Scalar) -> Any:
    return compile_scalar(scalar)(())


def test_sets_are_what_they_say(rng: random.Random) -> None:
    for _ in range(400):
        sets = [drawn(rng) for _ in range(rng.randint(2, 4))]
        literals = [Literal(each, TIMES) for each in sets]
        every, some = value(times("of all", *literals)), value(times("of any", *literals))
        outside = value(times("outside", literals[0]))
        low, high = rng.randint(-3, 12), rng.choice([rng.randint(-3, 12), TIME_MAX])
        between = value(times("between", Literal(low, INT8), Literal(high, INT8)))
        for found in (every, some, outside, between):
            assert found == sorted(set(found)) and all(0 <= each < TIME_MAX for each in found)
        for time in range(14):
            assert has(every, time) is all(has(each, time) for each in sets)
            assert has(some, time) is any(has(each, time) for each in sets)
            assert has(outside, time) is not has(sets[0], time)
            assert has(between, time) is (low <= time < high)


def test_moved_by_months_is_exact_around_every_end(rng: random.Random, long_forms: bool) -> None:
    for _ in range(20_000 if long_forms else 1_500):
        sign = rng.choice((1, -1))
        span = Interval(rng.randint(-14, 14), rng.choice((0, 0, 1, -3)), rng.choice((0, 0, 1500, -DAY // 2)))
        year, month = rng.randint(1970, 2030), rng.randint(1, 12)
        length = month_length(year, month)
        least = days_of(year, month, rng.choice((1, 28, length, rng.randint(1, length)))) * DAY
        least += rng.choice((0, 1, rng.randrange(DAY), DAY - 1))
        name = "moved on" if sign > 0 else "moved back"
        found = value(times(name, Literal(least, INT8), Literal(span, INTERVAL)))
        around = add_interval(least, span, -sign) // 1000
        looked = {0, *(each + by for each in found for by in (-1, 0, 1))}
        looked |= {around + rng.randint(-5 * DAY, 5 * DAY) // 1000 for _ in range(10)}
        for time in looked:
            if time >= 0:
                assert has(found, time) is (add_interval(time * 1000, span, sign) >= least), (least, span, sign, time)


def test_clocks_are_exact_around_every_change(rng: random.Random, long_forms: bool) -> None:
    for _ in range(2_000 if long_forms else 150):
        zone = rng.choice(
            ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo")
        )
        word, kind = rng.choice((("by", Kind.TIMESTAMPTZ), ("of", Kind.TIMESTAMP)))
        least = days_of(2023, rng.choice((3, 3, 4, 10, 11, 7)), rng.randint(1, 30)) * DAY + rng.randrange(DAY)
        found = value(moments(f"{word} the clocks of", Literal(least, INT8), Literal(zone, TEXT)))
        looked = {each + by for each in found for by in (-1, 0, 1)} | {
            least + rng.randint(-30 * HOUR, 30 * HOUR) for _ in range(20)
        }
        for each in looked:
            shown = at_zone(zone, timestamp(each, kind))
            assert not isinstance(shown, Infinite)
            assert has(found, each) is (micros_of(shown) >= least), (zone, word, least, each)


def test_rounding_is_exact_on_both_sides_of_2000(rng: random.Random) -> None:
    for _ in range(500):
        digits = rng.randint(0, 5)
        of = SqlType(Kind.TIMESTAMP, length=digits)
        least = ZERO_US + rng.randint(-3_000_000, 3_000_000)
        found = value(bound("the moment unrounded", Literal(least, INT8), Literal(10 ** (6 - digits), INT8)))
        for each in (found - 1, found, found + 1):
            assert (micros_of(rounded(timestamp(each, Kind.TIMESTAMP), of)) >= least) is (each >= found)


def calls(rng: random.Random) -> list[Relation]:
    """Plans that call each function over awkward arguments, NULL among them."""
    plans: list[Relation] = []

    def add(rows: Sequence[tuple[Any, ...]], schema: Sequence[Any], *scalars: Scalar) -> None:
        distinct = dict.fromkeys(tuple(map(_frozen, row)) for row in rows)
        plans.append(Map(Constant(tuple((row, 1) for row in distinct), tuple(schema)), scalars))

    def column(place: int, of: Any) -> Scalar:
        return Column(place, of)

    one, other = column(0, INT8), column(1, INT8)
    numbers = [None, *NUMBERS]
    add([(each,) for each in numbers], (INT8,), *(bound(name, one) for name in ("the time from", "the time past")))
    pairs = [(a, b) for a in numbers for b in numbers]
    add(
        pairs,
        (INT8, INT8),
        *(bound(f"the {what} moved {way}", one, other) for what in ("time", "moment") for way in ("on", "back")),
        times("between", one, other),
    )
    scaled = [each.name for each in BOUNDS if each.name in ("the factor from", "the dividend from")]
    scaled += ["the moment rounded up", "the next moment rounded"]
    add(
        [(a, by) for a in numbers for by in (1, 7, 1000, DAY)],
        (INT8, INT8),
        *(bound(each, one, other) for each in scaled),
    )
    for of in (DATE, TIMESTAMP, TIMESTAMPTZ):
        stamps = [(each,) for each in (*ASCENDING[of], None)]
        add(stamps, (of,), *(bound(name, column(0, of)) for name in ("the moment", "the time at")))
    add([(each,) for each in (*ASCENDING[INTERVAL], None)], (INTERVAL,), bound("the span", column(0, INTERVAL)))
    digits = numeric(24, 2)
    decimals = [
        None,
        *map(Decimal, ("0.00", "-0.01", "0.01", "5.00", "-7.50", "9223372036854775807.00", "-1e20", "1e20")),
    ]
    settled = [(None if each is None else each.quantize(Decimal("0.01")),) for each in decimals]
    names = ("the whole number from", "the whole number past", "the second from", "the second past")
    add(settled, (digits,), *(bound(name, column(0, digits)) for name in names))
    add([(0,), (5,), (TIME_MAX,), (None,)], (MZ_TIMESTAMP,), bound("the time after", column(0, MZ_TIMESTAMP)))
    sets = [(drawn(rng), rng.choice([drawn(rng), [], None]), drawn(rng)) for _ in range(60)]
    columns = [column(place, TIMES) for place in range(3)]
    add(
        sets,
        (TIMES, TIMES, TIMES),
        times("of all", *columns),
        times("of any", *columns),
        times("outside", columns[1]),
        times("of any", columns[0], times("outside", times("of all", columns[0], columns[2]))),
    )
    spans = [(days_of(2023, 2, 28) * DAY + 7, each) for each in (Interval(1, 0, 0), Interval(-1, 2, 5), None)]
    add(spans, (INT8, INTERVAL), *(times(name, one, column(1, INTERVAL)) for name in ("moved on", "moved back")))
    for each in (f"{quantifier} {name}" for quantifier in ("any", "all") for name in ("eq", "ne", "lt", "ge")):
        values = [([5, 7],), ([],), ([3, None],), ([TIME_MAX],), (None,)]
        add(values, (TIMES,), times(each, columns[0]))
    add(spans, (INT8, INTERVAL), *(moments(name, one, column(1, INTERVAL)) for name in ("moved on", "moved back")))
    cuts = [(days_of(2023, 2, 28) * DAY + 7, unit) for unit in ("month", "week", "century", "nonsense", None)]
    zones = [(days_of(2023, 3, 26) * DAY + 2 * HOUR, zone) for zone in ("Europe/Berlin", "UTC", "Mars/X", None)]
    add(cuts, (INT8, TEXT), bound("the moment cut up", one, column(1, TEXT)))
    add(zones, (INT8, TEXT), moments("by the clocks of", one, column(1, TEXT)))
    days = [(each,) for each in (None, 0, 5, -7, 2**31, TIME_MIN, TIME_MAX)]
    add(days, (INT8,), *(bound(f"the span of {unit}", one) for unit in ("days", "milliseconds")))
    rows = dict.fromkeys((tuple(drawn(rng)),) for _ in range(30))
    given = Constant(tuple((row, 1) for row in [*rows, (None,)]), (TIMES,))
    plans.append(FlatMap(given, key_of(INTERVALS, (TIMES,)), (Column(0, TIMES),), (INT8, INT8)))
    return plans


def _frozen(each: Any) -> Any:
    return tuple(each) if isinstance(each, list) else each


@pytest.mark.spark
def test_the_same_on_spark(rng: random.Random, spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    for plan in calls(rng):
        expected = evaluate(plan, {})
        assert not expected.errors
        assert run(engine, plan, {}) == expected.rows, types(plan)
