"""Operators on numbers: + - * / % and signs, by type, and the operators on bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

from everview.compute.functions.contract import Arguments, Failure
from everview.compute.functions.family import Family
from everview.compute.functions.naming import NUMERIC, as_numeric
from everview.compute.functions.numbers import EXACT, RANGES, fit, quotient, real, whole
from everview.compute.functions.spark_sql import infinite, let, spark_type
from everview.compute.ir.types import FLOAT4, FLOAT8, INT2, INT4, INT8, Kind, SqlType, numeric

FUNCTIONS = Family()


def sum_type(types: Sequence[SqlType]) -> SqlType:
    """Of + and -: the larger scale, and one more digit in front."""
    left, right = map(as_numeric, types)
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return _numeric(scale, digits, types)


def product_type(types: Sequence[SqlType]) -> SqlType:
    """Of *: the scales together, up to 18."""
    left, right = map(as_numeric, types)
    return _numeric(min(left.scale + right.scale, 18), left.precision + right.precision + 1, types)


def remainder_type(types: Sequence[SqlType]) -> SqlType:
    """Of %: the larger scale."""
    left, right = map(as_numeric, types)
    scale = max(left.scale, right.scale)
    return _numeric(scale, max(left.precision - left.scale, right.precision - right.scale) + scale, types)


def _numeric(scale: int, precision: int, types: Sequence[SqlType]) -> SqlType:
    constrained = all(as_numeric(each).constrained for each in types)
    return replace(numeric(min(38, precision), scale), constrained=constrained)


def _sum_fits(types: Sequence[SqlType]) -> bool:
    """Whether a sum or difference of such numbers always has room."""
    left, right = map(as_numeric, types)
    return max(left.precision - left.scale, right.precision - right.scale) + max(left.scale, right.scale) < 38


def _product_fits(types: Sequence[SqlType]) -> bool:
    """Whether a product of such numbers always has room, to its last digit."""
    left, right = map(as_numeric, types)
    return left.precision + right.precision <= 38 and left.scale + right.scale <= 18


def _quotient_fits(given: Arguments) -> bool:
    """Whether the divisor is a number that makes nothing larger, and what is divided has room."""
    left, by = as_numeric(given.types[0]), given.values[1]
    return left.precision - left.scale < 20 and isinstance(by, Decimal) and abs(by) >= 1


def _divides(given: Arguments) -> bool:
    """Whether the divisor is a number other than zero, and than -1, by which the least number cannot be divided."""
    return isinstance(given.values[1], int) and given.values[1] not in (0, -1)


def _zero() -> Failure:
    return Failure("22012", "division by zero")


def _integer_division(a: int, b: int) -> int:
    if b == 0:
        raise _zero()
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: Any, b: Any) -> Any:
    """With the sign of the dividend."""
    if b == 0:
        raise _zero()
    if isinstance(a, Decimal):
        with localcontext(EXACT):
            return a % b
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _wrapped(value: int, kind: Kind) -> int:
    low, high, _ = RANGES[kind]
    return (value - low) % (high - low + 1) + low


def _integers(of: SqlType) -> None:
    kind, pair, name = of.kind, (of, of), spark_type(of)
    shift_mask = 63 if kind is Kind.INT8 else 31
    FUNCTIONS.add("+", pair, of, lambda a, b: whole(a + b, kind), "try_add({0}, {1})", fails=True, word="add")
    FUNCTIONS.add("-", pair, of, lambda a, b: whole(a - b, kind), "try_subtract({0}, {1})", fails=True, word="sub")
    FUNCTIONS.add("*", pair, of, lambda a, b: whole(a * b, kind), "try_multiply({0}, {1})", fails=True, word="mul")
    FUNCTIONS.add(
        "/",
        pair,
        of,
        lambda a, b: whole(_integer_division(a, b), kind),
        _integer_division_sql,
        fails=True,
        word="div",
        safe=_divides,
    )
    modulo = f"cast(try_mod({{0}}, {{1}}) as {name})"
    FUNCTIONS.add("%", pair, of, remainder, modulo, fails=True, word="mod", safe=_divides)
    FUNCTIONS.add(
        "-", (of,), of, lambda a: whole(-a, kind), f"try_subtract(cast(0 as {name}), {{0}})", fails=True, word="neg"
    )
    FUNCTIONS.add("+", (of,), of, lambda a: a, "{0}", word="pos")
    FUNCTIONS.add("&", pair, of, lambda a, b: a & b, "({0} & {1})", word="bit_and")
    FUNCTIONS.add("|", pair, of, lambda a, b: a | b, "({0} | {1})", word="bit_or")
    FUNCTIONS.add("#", pair, of, lambda a, b: a ^ b, "({0} ^ {1})", word="bit_xor")
    FUNCTIONS.add("~", (of,), of, lambda a: ~a, "(~ {0})", word="bit_not")
    wide = "bigint" if kind is Kind.INT8 else "int"
    left = f"shiftleft(cast({{0}} as {wide}), {{1}})"
    if kind is Kind.INT2:  # the bits beyond the sixteenth fall off
        left = f"cast(shiftright(shiftleft({left}, 16), 16) as smallint)"
    right = f"cast(shiftright(cast({{0}} as {wide}), {{1}}) as {name})"
    FUNCTIONS.add("<<", (of, INT4), of, lambda a, n: _wrapped(a << (n & shift_mask), kind), left, word="shift_left")
    FUNCTIONS.add(">>", (of, INT4), of, lambda a, n: a >> (n & shift_mask), right, word="shift_right")


def _integer_division_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    name = spark_type(result)
    overflow = f"try_subtract(cast(0 as {name}), v.a)"
    return let(f"CASE v.b WHEN 0 THEN NULL WHEN -1 THEN {overflow} ELSE cast(v.a div v.b as {name}) END", *args)


def _floats(left: SqlType, right: SqlType, of: SqlType) -> None:
    kind, pair = of.kind, (left, right)

    def infinity(a: float, b: float) -> bool:
        return math.isinf(a) or math.isinf(b)

    def divided(a: float, b: float) -> float:
        if b == 0 and not math.isnan(a):
            raise _zero()
        if b == 0:
            return a
        return real(a / b, kind, infinite=math.isinf(a), nonzero=a != 0 and not math.isinf(b))

    def guarded(operation: str, lost: str = "false") -> str:
        # An infinity must come from an argument, and a zero from one too.
        bad = (
            f"w.a IS NULL OR (({infinite('w.a')}) AND NOT ({infinite('v.a')}) AND NOT ({infinite('v.b')})) OR ({lost})"
        )
        return let(
            let(f"CASE WHEN NOT ({bad}) THEN w.a + cast(0 as {spark_type(of)}) END", operation, name="w"),
            *(f"cast({argument} as {spark_type(of)})" for argument in ("{0}", "{1}")),
        )

    FUNCTIONS.add(
        "+",
        pair,
        of,
        lambda a, b: real(a + b, kind, infinite=infinity(a, b)),
        guarded("v.a + v.b"),
        fails=True,
        word="add",
    )
    FUNCTIONS.add(
        "-",
        pair,
        of,
        lambda a, b: real(a - b, kind, infinite=infinity(a, b)),
        guarded("v.a - v.b"),
        fails=True,
        word="sub",
    )
    FUNCTIONS.add(
        "*",
        pair,
        of,
        lambda a, b: real(a * b, kind, infinite=infinity(a, b), nonzero=a != 0 and b != 0),
        guarded("v.a * v.b", "w.a = 0 AND v.a <> 0 AND v.b <> 0"),
        fails=True,
        word="mul",
    )
    # Spark divides floats as doubles; by zero it would fail.
    quotient_sql = f"cast(v.a / nullif(v.b, 0) as {spark_type(of)})"
    nothing = "w.a = 0 AND v.a <> 0 AND NOT (" + infinite("v.b") + ")"
    by_zero = f"CASE WHEN isnan(v.a) AND v.b = 0 THEN v.a ELSE {quotient_sql} END"
    infinite_by = guarded(by_zero, nothing)
    FUNCTIONS.add("/", pair, of, divided, infinite_by, fails=True, word="div")
    if left is not right:
        return
    FUNCTIONS.add("-", (of,), of, lambda a: -a + 0.0, f"(cast(0 as {spark_type(of)}) - {{0}})", word="neg")
    FUNCTIONS.add("+", (of,), of, lambda a: a, "{0}", word="pos")


_SIGNS = {"try_add": "+", "try_subtract": "-"}


def _decimal_sql(operation: str) -> Callable[[Sequence[str], Sequence[SqlType], SqlType], str]:
    def rendered(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
        left, right = (f"cast({each} as {spark_type(_type)})" for each, _type in zip(args, _types, strict=True))
        if operation in _SIGNS and _sum_fits(_types):
            return f"cast({left} {_SIGNS[operation]} {right} as {spark_type(result)})"
        return f"try_cast({operation}({left}, {right}) as {spark_type(result)})"

    return rendered


def _product_sql(args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
    """Exact also where the digits of the product are more than fit: by parts, in front of the point and behind."""
    left, right = types
    if _product_fits(types):
        return f"cast({args[0]} * {args[1]} as {spark_type(result)})"
    if left.scale + right.scale <= 18:
        return f"try_cast(try_multiply({args[0]}, {args[1]}) as {spark_type(result)})"
    # Each part is in a type so narrow that Spark computes with it exactly. Behind the point only the first 18 digits
    # of either count, and their product is rounded by itself: it has the sign of the rest, which ends at the 18th.
    front = "try_cast(cast({0} as decimal(38,18)) - cast({0} as decimal(38,18)) % 1 as decimal(20,0))"
    back = "cast(cast({0} as decimal(38,18)) % 1 as decimal(18,18))"
    high = "cast(cast({0} * 1000000000 as decimal(27,9)) - cast({0} * 1000000000 as decimal(27,9)) % 1 as decimal(9,0))"
    low = "cast(cast({0} * 1000000000 as decimal(27,9)) % 1 as decimal(9,9))"

    def across(whole_part: str, fraction: str) -> str:
        upper = f"try_multiply({whole_part}, {high.format(fraction)})"
        lower = f"try_multiply({whole_part}, {low.format(fraction)})"
        return (
            f"try_add(cast({upper} as decimal(38,9)) * cast('0.000000001' as decimal(9,9)),"
            f" cast({lower} as decimal(38,9)) * cast('0.000000001' as decimal(9,9)))"
        )

    pieces = [
        "try_cast(try_multiply(v.a, v.c) as decimal(38,18))",
        f"try_cast({across('v.a', 'v.d')} as decimal(38,18))",
        f"try_cast({across('v.c', 'v.b')} as decimal(38,18))",
        "cast(v.b * v.d as decimal(38,18))",
    ]
    total = pieces[0]
    for piece in pieces[1:]:
        total = f"try_add({total}, {piece})"
    operands = [front.format("u.a"), back.format("u.a"), front.format("u.b"), back.format("u.b")]
    return let(f"try_cast({let(total, *operands)} as {spark_type(result)})", *args, name="u")


def _quotient_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    # Two decimals of scale 18 divide into one of scale 18.
    left, right = (f"try_cast({each} as {spark_type(result)})" for each in args)
    return f"try_divide({left}, {right})"


def _exactly(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[..., Decimal]:
    def evaluate(result: SqlType, a: Decimal, b: Decimal) -> Decimal:
        with localcontext(EXACT):
            return fit(operation(a, b), result)

    return evaluate


def _decimals() -> None:
    pair = (NUMERIC, NUMERIC)
    FUNCTIONS.add(
        "+",
        pair,
        sum_type,
        _exactly(lambda a, b: a + b),
        _decimal_sql("try_add"),
        typed=True,
        fails=True,
        word="add",
        safe=lambda given: _sum_fits(given.types),
    )
    FUNCTIONS.add(
        "-",
        pair,
        sum_type,
        _exactly(lambda a, b: a - b),
        _decimal_sql("try_subtract"),
        typed=True,
        fails=True,
        word="sub",
        safe=lambda given: _sum_fits(given.types),
    )
    FUNCTIONS.add(
        "*",
        pair,
        product_type,
        _exactly(lambda a, b: a * b),
        _product_sql,
        typed=True,
        fails=True,
        word="mul",
        safe=lambda given: _product_fits(given.types),
    )
    FUNCTIONS.add(
        "/",
        pair,
        NUMERIC,
        lambda result, a, b: quotient(a, b, result),
        _quotient_sql,
        typed=True,
        fails=True,
        word="div",
        safe=_quotient_fits,
    )
    FUNCTIONS.add(
        "%", pair, remainder_type, _exactly(remainder), _decimal_sql("try_mod"), typed=True, fails=True, word="mod"
    )
    FUNCTIONS.add("-", (NUMERIC,), lambda types: types[0], EXACT.minus, "(- {0})", word="neg")
    FUNCTIONS.add("+", (NUMERIC,), lambda types: types[0], lambda a: a, "{0}", word="pos")


for _type in (INT2, INT4, INT8):
    _integers(_type)
for _left, _right, _type in (
    (FLOAT4, FLOAT4, FLOAT4),
    (FLOAT8, FLOAT8, FLOAT8),
    (FLOAT4, FLOAT8, FLOAT8),
    (FLOAT8, FLOAT4, FLOAT8),
):
    _floats(_left, _right, _type)
_decimals()
