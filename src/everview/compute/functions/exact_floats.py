"""Exact sums of floats, from parts that add up.

A float is a whole number of the smallest float there is, 2^-1074. So a sum of floats is one of whole numbers, exact and
in no order, and is rounded once, at the end: it can be kept as totals, to which a row is added and from which it is
taken away again. Numbers of 2,100 bits would be long, so a float is a *part* in a *bin*: `part * 2^(32 * bin - 1074)`,
and only bins that some value is in have a total. A part has no more than 85 bits, so it is a float still, and it is
three *limbs* of 29 bits, whose sums fit 64 bits for 17 billion values. What is not finite is counted in bins of its
own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from everview.compute.functions.contract import Failure
from everview.compute.functions.signatures import Aggregates, Family
from everview.compute.functions.spark_sql import let
from everview.compute.ir.types import SqlType, numeric

FUNCTIONS, _AGGREGATES = Family(), Aggregates()
define = FUNCTIONS.define

BIN, PART, LIMB, WHOLE = "bin of a float", "part of a float", "limb of a part", "whole of limbs"
TOTAL, MEAN = "total of floats", "mean of floats"
WHOLE_TYPE = numeric(38, 0)
LIMBS = 3
_WIDTH, _LEAST = 32, 1074
_NAN, _POSITIVE, _NEGATIVE = -1, -2, -3  # the bins of what is not finite, whose parts are ones
_LIMB_BITS = 29
_BIN_MAX, _PART_LIMIT = 65, 2.0**86


def bin_of(value: float) -> int:
    if not math.isfinite(value):
        return _NAN if math.isnan(value) else _POSITIVE if value > 0 else _NEGATIVE
    _, exponent = math.frexp(value)
    return (max(exponent - 53, -_LEAST) + _LEAST) // _WIDTH if value else 0


def part_of(value: float, place: int) -> float:
    """How much of its bin a value is: a whole number."""
    if not math.isfinite(value) or not 0 <= place <= _BIN_MAX:
        return 1.0
    try:
        return math.ldexp(value, _LEAST - _WIDTH * place)
    except OverflowError:  # it is not of this bin
        return math.copysign(math.inf, value)


def limb_of(part: float, index: int) -> int:
    """One of the limbs of a part, the lowest being the first; all of them have its sign."""
    if not abs(part) < _PART_LIMIT:
        return 0
    limb = int(abs(part)) >> _LIMB_BITS * index
    if index < LIMBS - 1:
        limb &= (1 << _LIMB_BITS) - 1
    return limb if part > 0 else -limb


def whole(low: int, middle: int, high: int) -> Decimal:
    """A part of its limbs, or a total of theirs."""
    return Decimal((high << 2 * _LIMB_BITS) + (middle << _LIMB_BITS) + low)


def rounded(totals: Iterable[tuple[int, Decimal | float]]) -> float:
    """The float nearest to the sum of the totals of bins; infinite if no float is near."""
    kept = [(place, int(total)) for place, total in totals if total]
    special = {place for place, _ in kept if place < 0}
    if special:
        return math.nan if _NAN in special or len(special) > 1 else math.inf if _POSITIVE in special else -math.inf
    number = sum(total << _WIDTH * place for place, total in kept)
    try:
        return number / (1 << _LEAST)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def exact_sum(values: Sequence[float]) -> float:
    """The float nearest to the sum."""
    try:
        return math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    except OverflowError:  # on the way, it may be
        return rounded((place := bin_of(value), part_of(value, place)) for value in values)


def bin_sql(value: str) -> str:
    """`bin_of` a double, without a `let`, which is slow for many rows.

    Spark's log2 may be wrong by one next to a power of two; powers of two, and products with them, are exact.
    """
    about = f"floor(log2(abs({value})))"
    exponent = (
        f"CASE WHEN pow(2D, {about}) > abs({value}) THEN {about} - 1"
        f" WHEN pow(2D, {about} + 1) <= abs({value}) THEN {about} + 1 ELSE {about} END"
    )
    return (
        f"CASE WHEN {value} = 0 THEN 0L WHEN abs({value}) < double('Infinity')"
        f" THEN (greatest({exponent} - 52, -{_LEAST}L) + {_LEAST}L) div {_WIDTH}"
        f" WHEN isnan({value}) THEN {_NAN}L WHEN {value} > 0 THEN {_POSITIVE}L"
        f" WHEN {value} IS NOT NULL THEN {_NEGATIVE}L END"
    )


def part_sql(value: str, place: str) -> str:
    scaled = _scaled(value, f"({_LEAST}L - {_WIDTH} * {place})")
    finite = f"{place} BETWEEN 0 AND {_BIN_MAX} AND abs({value}) < double('Infinity')"
    return f"CASE WHEN {finite} THEN {scaled} WHEN {value} IS NOT NULL AND {place} IS NOT NULL THEN 1D END"


def limb_sql(part: str, index: int) -> str:
    """`limb_of` a part; differences and products with powers of two are exact."""
    given, limb = part, ""
    for place in range(LIMBS - 1, index - 1, -1):
        size = f"{2 ** (_LIMB_BITS * place)}D"
        limb = f"cast({part} / {size} as bigint)"
        part = f"({part} - {limb} * {size})"
    return f"CASE WHEN abs({given}) < {_PART_LIMIT!r}D THEN {limb} WHEN {given} IS NOT NULL THEN 0L END"


def whole_sql(low: str, middle: str, high: str) -> str:
    size = f"{2**_LIMB_BITS}"
    return f"cast((cast({high} as decimal(38,0)) * {size} + {middle}) * {size} + {low} as decimal(38,0))"


def _scaled(value: str, power: str) -> str:
    """Times a power of two, in two steps, for the power itself may be no float."""
    return f"({value} * pow(2D, {power} div 2) * pow(2D, {power} - {power} div 2))"


def rounded_sql(totals: str) -> str:
    """`rounded` of an array of bins `b` and totals `t`, which has some.

    The digits of a sum, of 32 bits each, are those of its totals with what a bin carries to the next. If there is a
    carry left, which is -1 then, the sum is negative, and its digits are those of its opposite.
    """
    has = "exists(w.a, e -> e.b = {}L)".format
    special = (
        f"CASE WHEN {has(_NAN)} OR ({has(_POSITIVE)} AND {has(_NEGATIVE)}) THEN double('NaN')"
        f" WHEN {has(_POSITIVE)} THEN double('Infinity') ELSE double('-Infinity') END"
    )
    digits = f"CASE WHEN o.a.c < 0 THEN {_digits_sql('-')}.d ELSE o.a.d END"
    last = "size(d.a) - array_position(reverse(transform(d.a, e -> e <> 0)), true)"
    number = let(f"CASE WHEN o.a.c < 0 THEN - {_float_sql()} ELSE {_float_sql()} END", "d.a", last, name="t")
    finite = let(let(number, digits, name="d"), _digits_sql("+"), name="o")
    bins = "transform(w.a, e -> e.b)"
    known = let(finite, f"array_min({bins})", f"array_max({bins})", name="k")
    return let(f"CASE WHEN exists(w.a, e -> e.b < 0) THEN {special} ELSE {known} END", totals, name="w")


def _digits_sql(sign: str) -> str:
    """The digits `d` from the lowest bin on, and the carry `c` that is left."""
    base, zero = f"{2**_WIDTH}BD", "cast(0 as decimal(38,0))"
    digit = f"cast(pmod(g.a, {base}) as bigint)"
    carry = f"cast((h.a - h.b) / {base} as decimal(38,0))"
    step = let(f"named_struct('c', {carry}, 'd', concat(s.d, array(h.b)))", "g.a", digit, name="h")
    here = f"aggregate(filter(w.a, e -> e.b = i), s.c, (p, e) -> cast(p {sign} e.t as decimal(38,0)))"
    step = let(step, here, name="g")
    start = f"named_struct('c', {zero}, 'd', cast(array() as array<bigint>))"
    return f"aggregate(sequence(k.a, k.b + 3L), {start}, (s, i) -> {step})"


def _float_sql() -> str:
    """A float of digits `t.a`, the last at `t.b`: from the first three digits and whether there are more."""
    base = f"{2**_WIDTH}BD"
    place = "coalesce(get(t.a, t.b - {}), 0L)".format
    three = f"cast({place(0)} * {base} * {base} + {place(1)} * {base} + {place(2)} as decimal(38,0))"
    more = "exists(slice(t.a, 1, greatest(t.b - 2, 0)), e -> e <> 0)"
    sticky = let(f"CASE WHEN {more} AND u.a % 2 = 0 THEN u.a + 1 ELSE u.a END", three, name="u")
    scaled = _scaled(f"cast({sticky} as double)", f"({_WIDTH} * (k.a + t.b - 2) - {_LEAST}L)")
    return f"CASE WHEN t.b = size(t.a) THEN 0D ELSE {scaled} END"


def _total(_: SqlType, rows: list[tuple[Any, ...]]) -> float:
    found = rounded(rows)
    if math.isinf(found) and all(place >= 0 for place, total in rows if total):
        raise Failure("22003", "value out of range: overflow")
    return found


def _finite(totals: str) -> str:
    """The sum of bins. NULL for no bins, and where finite values have an infinite sum."""
    sound = "abs(z.a) < double('Infinity') OR exists(n.a, e -> e.b < 0)"
    found = let(f"CASE WHEN {sound} THEN z.a END", rounded_sql("n.a"), name="z")
    return let(f"CASE WHEN size(n.a) > 0 THEN {found} END", totals, name="n")


def sum_sql(values: str) -> str:
    """`exact_sum` of an array of doubles; NULL for an empty array, and where finite values have an infinite sum."""
    binned = f"transform(j.a, x -> named_struct('x', x, 'b', {bin_sql('x')}))"
    parts = f"transform({binned}, y -> named_struct('b', y.b, 'p', {part_sql('y.x', 'y.b')}))"
    total = whole_sql(*(limb_sql("y.p", index) for index in range(LIMBS)))
    totals = f"transform({parts}, y -> named_struct('b', y.b, 't', {total}))"
    return let(_finite(totals), values, name="j")


define(f"{BIN}(float8) -> int8", bin_of, lambda args, types, result: bin_sql(args[0]))
define(f"{PART}(float8, int8) -> float8", part_of, lambda args, types, result: part_sql(*args))
for _index in range(LIMBS):
    _limb_sql = lambda args, types, result, index=_index: limb_sql(args[0], index)
    define(f"{LIMB} {_index}(float8) -> int8", partial(limb_of, index=_index), _limb_sql)
define(f"{WHOLE}(int8, int8, int8) -> numeric(38,0)", whole, lambda args, types, result: whole_sql(*args))
_mean = lambda total, count: total / count if count else None
define(f"{MEAN}(float8, int8) -> float8", _mean, "{0} / nullif(cast({1} as double), 0D)")
# The sum, of the bins of floats and totals of their parts; it fails where there is no such float.
_ITEM = "CASE WHEN {0} IS NOT NULL AND {1} IS NOT NULL THEN named_struct('b', {0}, 't', cast({1} as decimal(38,0))) END"
_AGGREGATES.define(f"{TOTAL}(int8, numeric) -> float8", _total, _finite(f"collect_list({_ITEM})"))
(TOTAL_OF_BINS,) = _AGGREGATES
