"""From which number on floats of it reach a float: the first one, at every size, and none for what is never reached."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from everview.compute.functions.numbers import EXACT, real
from everview.compute.functions.temporal import TIME_MAX, TIME_MIN
from everview.compute.functions.temporal_floats import of_float, of_number, of_seconds, of_whole
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir.scalar import Literal, Scalar
from everview.compute.ir.types import FLOAT8, Kind

ODD = (0.0, -0.0, 0.5, -0.5, 5e-324, 1e-40, 2.0**53, 2.0**53 + 2, 2.0**62, 2.0**63, -(2.0**63), 1e300, -1e300)
NEVER, ALWAYS = (math.inf, math.nan), -math.inf


def floats(rng: random.Random, count: int) -> list[float]:
    large = [rng.uniform(-1, 1) * 2.0 ** rng.randint(-10, 64) for _ in range(count)]
    return [*ODD, *large, *(float(round(each)) for each in large), *(real(each, Kind.FLOAT4) for each in large)]


def reaches(value: float, least: float, *, strict: bool) -> bool:
    return value > least if strict else value >= least


def value(scalar: Scalar) -> Any:
    return compile_scalar(scalar)(())


def as_real(number: float | Decimal) -> float:
    return real(float(number), Kind.FLOAT4, infinite=True)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("kind", "cast"), [(Kind.FLOAT8, float), (Kind.FLOAT4, as_real)])
def test_whole_numbers(rng: random.Random, kind: Kind, cast: Callable[[Any], float], strict: bool) -> None:
    for least in floats(rng, 200):
        found = value(of_whole(Literal(least, FLOAT8), kind, strict=strict))
        if found > TIME_MIN:
            assert not reaches(cast(found - 1), least, strict=strict), least
        if found < TIME_MAX:
            assert reaches(cast(found), least, strict=strict), least
    assert [value(of_whole(Literal(each, FLOAT8), kind, strict=strict)) for each in NEVER] == [TIME_MAX] * 2
    assert value(of_whole(Literal(ALWAYS, FLOAT8), kind, strict=strict)) == TIME_MIN
    assert value(of_whole(Literal(None, FLOAT8), kind, strict=strict)) is None


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("scale", [0, 2, 18])
@pytest.mark.parametrize(("kind", "cast"), [(Kind.FLOAT8, float), (Kind.FLOAT4, as_real)])
def test_numbers(rng: random.Random, kind: Kind, cast: Callable[[Any], float], scale: int, strict: bool) -> None:
    most = 10**38 - 1

    def number(units: int) -> Decimal:
        return EXACT.scaleb(Decimal(units), -scale)

    for least in floats(rng, 50):
        units = int(EXACT.scaleb(value(of_number(Literal(least, FLOAT8), kind, scale, strict=strict)), scale))
        if -most < units:
            assert not reaches(cast(number(units - 1)), least, strict=strict), least
        if units < most:
            assert reaches(cast(number(units)), least, strict=strict), least
    for each in NEVER:
        assert value(of_number(Literal(each, FLOAT8), kind, scale, strict=strict)) == number(most)


@pytest.mark.parametrize("strict", [False, True])
def test_seconds(rng: random.Random, strict: bool) -> None:
    for least in floats(rng, 200):
        found = value(of_seconds(Literal(least, FLOAT8), strict=strict))
        if found > TIME_MIN:
            assert not reaches(float(Decimal(found - 1) / 1_000_000), least, strict=strict), least
        if found < TIME_MAX:
            assert reaches(float(Decimal(found) / 1_000_000), least, strict=strict), least
    assert [value(of_seconds(Literal(each, FLOAT8), strict=strict)) for each in NEVER] == [TIME_MAX] * 2


STEPS: dict[str, Callable[[float, float], float]] = {
    "add": lambda x, by: x + by,
    "sub": lambda x, by: x - by,
    "from": lambda x, by: by - x,
    "mul": lambda x, by: x * by,
    "div": lambda x, by: x / by,
    "neg": lambda x, _: -x,
    "real": lambda x, _: as_real(x),
    "floor": lambda x, _: float(math.floor(x)),
    "ceil": lambda x, _: float(math.ceil(x)),
    "trunc": lambda x, _: float(math.trunc(x)),
    "round": lambda x, _: float(round(x)),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_floats(rng: random.Random, name: str, strict: bool) -> None:
    step = STEPS[name]
    for least in floats(rng, 100):
        by = rng.choice((rng.uniform(0.1, 1000), 3.0, 2.0**40, -rng.uniform(0.1, 1000), -3.0))
        falls = name in ("neg", "from") or (name in ("mul", "div") and by < 0)
        found = value(of_float(Literal(least, FLOAT8), name, Literal(by, FLOAT8), strict=strict))
        before = math.nextafter(found, -math.inf)
        if math.isfinite(before):
            assert reaches(step(before, by), least, strict=strict) is falls, (least, by)
        if math.isfinite(found):
            assert reaches(step(found, by), least, strict=strict) is not falls, (least, by)


@pytest.mark.parametrize("by", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("least", [math.nan, math.inf, -math.inf, 5.0])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["add", "sub", "from"])
def test_sums_without_a_number(by: float, least: float, strict: bool, name: str) -> None:
    """They are one value whatever the other operand is, and NaN is above all others."""
    total = STEPS[name](5.0, by)
    place, other = ((math.isnan(each), 0 if math.isnan(each) else each) for each in (total, least))
    so = place > other if strict else place >= other
    found = value(of_float(Literal(least, FLOAT8), name, Literal(by, FLOAT8), strict=strict))
    assert (found <= 5.0) is (so is not (name == "from"))
