"""Sums of floats by bins and limbs are the floats nearest to the exact sums, in Python and on Spark."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from everview.compute.functions import exact_floats as exact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EDGES = (0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308)


def value(rng: random.Random) -> float:
    """A float of any size; now and then a power of two, one from the edge, or none that is finite."""
    kind = rng.random()
    if kind < 0.3:
        return rng.choice((-1, 1)) * rng.random() * 10.0 ** rng.randint(-10, 10)
    if kind < 0.5:
        found: float = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
        return found
    if kind < 0.6:
        return rng.choice((-1, 1)) * math.ldexp(1.0, rng.randint(-1074, 1023))
    if kind < 0.7:
        return rng.choice(EDGES)
    if kind < 0.72:
        return rng.choice((math.inf, -math.inf, math.nan))
    return rng.choice((-1, 1)) * math.ldexp(rng.random(), rng.randint(-60, 60))


def group(rng: random.Random) -> list[float]:
    """Values of which many cancel each other out."""
    values = [value(rng) for _ in range(rng.randint(1, 12))]
    if rng.random() < 0.3:
        values += [-each for each in values] + [value(rng)]
    return values if rng.random() < 0.3 else [each for each in values if math.isfinite(each)] or [1.0]


def expected(values: list[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return sum(values)
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        return None


def limbs(part: float) -> list[int]:
    return [exact.limb_of(part, index) for index in range(exact.LIMBS)]


def same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isnan(one) and math.isnan(other))


def test_a_float_is_its_part_of_its_bin(rng: random.Random) -> None:
    for each in filter(math.isfinite, (*EDGES, *(value(rng) for _ in range(3000)))):
        place = exact.bin_of(each)
        whole = exact.whole(*limbs(exact.part_of(each, place)))
        assert Fraction(int(whole)) * Fraction(2) ** (32 * place - 1074) == Fraction(each)


def test_sums_in_python(rng: random.Random) -> None:
    for _ in range(1000):
        values = group(rng)
        found = exact.exact_sum(values)
        by_bins = exact.rounded((place := exact.bin_of(each), exact.part_of(each, place)) for each in values)
        for each in (found, by_bins):
            assert same(expected(values), None if math.isinf(each) and all(map(math.isfinite, values)) else each)


@pytest.mark.spark
def test_sums_on_spark(rng: random.Random, session: SparkSession) -> None:
    groups = [group(rng) for _ in range(400)]
    numbers = [number for number, values in enumerate(groups) for _ in values]
    table = pa.table({"n": numbers, "x": [each for values in groups for each in values]})
    session.createDataFrame(table).createOrReplaceTempView("floats")
    binned = f"SELECT n, x, {exact.bin_sql('x')} AS b FROM floats"
    parts = f"SELECT n, b, {exact.part_sql('x', 'b')} AS p FROM ({binned})"
    summed = ", ".join(f"sum({exact.limb_sql('p', index)}) AS l{index}" for index in range(exact.LIMBS))
    whole = exact.whole_sql(*(f"l{index}" for index in range(exact.LIMBS)))
    totals = f"SELECT n, b, {whole} AS t FROM (SELECT n, b, {summed} FROM ({parts}) GROUP BY n, b)"
    assert isinstance(exact.TOTAL_OF_BINS.spark, str)
    by_bins = f"SELECT n, {exact.TOTAL_OF_BINS.spark.format('b', 't')} AS s FROM ({totals}) GROUP BY n"
    at_once = f"SELECT n, {exact.sum_sql('collect_list(x)')} AS s FROM floats GROUP BY n"
    for statement in (by_bins, at_once):
        found = dict(map(tuple, session.sql(statement).collect()))
        wrong = [values for number, values in enumerate(groups) if not same(expected(values), found[number])]
        assert not wrong, wrong[0]
