"""Operators on numbers: + - * / % and signs, by type, and the operators on bits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

from everview.compute.functions import kernels
from everview.compute.functions.columns import named
from everview.compute.functions.contract import Arguments, Failure
from everview.compute.functions.naming import as_numeric, short_name
from everview.compute.functions.numbers import EXACT, RANGES, fit, quotient, real, whole
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, infinite, let, spark_type
from everview.compute.ir.types import FLOAT4, FLOAT8, INT2, INT4, INT8, Kind, SqlType, numeric

FUNCTIONS = Family()
define = FUNCTIONS.define


def sum_type(types: Sequence[SqlType]) -> SqlType:
    """The type of + and -: the larger scale, and one more digit in front."""
    left, right = map(as_numeric, types)
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    return _numeric(scale, digits, types)


def product_type(types: Sequence[SqlType]) -> SqlType:
    """The type of *: the sum of the scales, up to 18."""
    left, right = map(as_numeric, types)
    return _numeric(min(left.scale + right.scale, 18), left.precision + right.precision + 1, types)


def remainder_type(types: Sequence[SqlType]) -> SqlType:
    """The type of %: the larger scale."""
    left, right = map(as_numeric, types)
    scale = max(left.scale, right.scale)
    return _numeric(scale, max(left.precision - left.scale, right.precision - right.scale) + scale, types)


def _numeric(scale: int, precision: int, types: Sequence[SqlType]) -> SqlType:
    constrained = all(as_numeric(each).constrained for each in types)
    return replace(numeric(min(38, precision), scale), constrained=constrained)


def _sum_fits(types: Sequence[SqlType]) -> bool:
    left, right = map(as_numeric, types)
    return max(left.precision - left.scale, right.precision - right.scale) + max(left.scale, right.scale) < 38


def _product_fits(types: Sequence[SqlType]) -> bool:
    """Whether a product of such numbers always has room, to its last digit."""
    left, right = map(as_numeric, types)
    return left.precision + right.precision <= 38 and left.scale + right.scale <= 18


def _quotient_fits(given: Arguments) -> bool:
    """Whether the quotient has room: the divisor is a literal of at least 1, and the dividend is not too long."""
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
    """The remainder, with the sign of the dividend."""
    if b == 0:
        raise _zero()
    if isinstance(a, Decimal):
        with localcontext(EXACT):
            return a % b
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _wrapped(value: int, kind: Kind) -> int:
    low, high, _ = RANGES[kind]
    return (value - low) % (high - low + 1) + low


def _checked(name: str) -> dict[str, Any]:
    """A function that fails beyond its range, as one of Arrow does."""
    return {"fails": True, "arrow": named(name)}


def _integers(of: SqlType) -> None:
    kind, name = of.kind, spark_type(of)
    shift_mask, wide = (63, "bigint") if kind is Kind.INT8 else (31, "int")
    left = f"shiftleft(cast({{0}} as {wide}), {{1}})"
    if kind is Kind.INT2:  # the bits beyond the sixteenth fall off
        left = f"cast(shiftright(shiftleft({left}, 16), 16) as smallint)"
    right = f"cast(shiftright(cast({{0}} as {wide}), {{1}}) as {name})"
    modulo, negated = f"cast(try_mod({{0}}, {{1}}) as {name})", f"try_subtract(cast(0 as {name}), {{0}})"

    define("+ add(T, T) -> T", lambda a, b: whole(a + b, kind), "try_add({0}, {1})", **_checked("add_checked"), T=of)
    define(
        "- sub(T, T) -> T",
        lambda a, b: whole(a - b, kind),
        "try_subtract({0}, {1})",
        **_checked("subtract_checked"),
        T=of,
    )
    define(
        "* mul(T, T) -> T",
        lambda a, b: whole(a * b, kind),
        "try_multiply({0}, {1})",
        **_checked("multiply_checked"),
        T=of,
    )
    divided = lambda a, b: whole(_integer_division(a, b), kind)
    quotient_of: Any = {**_checked("divide_checked"), "safe": _divides}
    define("/ div(T, T) -> T", divided, _integer_division_sql, **quotient_of, T=of)
    define("% mod(T, T) -> T", remainder, modulo, fails=True, safe=_divides, arrow=kernels.remainder, T=of)
    define("- neg(T) -> T", lambda a: whole(-a, kind), negated, **_checked("negate_checked"), T=of)
    define("+ pos(T) -> T", lambda a: a, "{0}", T=of)
    define("& bit_and(T, T) -> T", lambda a, b: a & b, "({0} & {1})", T=of)
    define("| bit_or(T, T) -> T", lambda a, b: a | b, "({0} | {1})", T=of)
    define("# bit_xor(T, T) -> T", lambda a, b: a ^ b, "({0} ^ {1})", T=of)
    define("~ bit_not(T) -> T", lambda a: ~a, "(~ {0})", T=of)
    define("<< shift_left(T, int4) -> T", lambda a, n: _wrapped(a << (n & shift_mask), kind), left, T=of)
    define(">> shift_right(T, int4) -> T", lambda a, n: a >> (n & shift_mask), right, T=of)


def _integer_division_sql(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    name = spark_type(result)
    overflow = f"try_subtract(cast(0 as {name}), v.a)"
    return let(f"CASE v.b WHEN 0 THEN NULL WHEN -1 THEN {overflow} ELSE cast(v.a div v.b as {name}) END", *args)


_FLOAT_SUM, _FLOAT_DIFFERENCE = kernels.of_floats(operator.add), kernels.of_floats(operator.sub)
_FLOAT_PRODUCT = kernels.of_floats(operator.mul, keeps_zero=True)


def _floats(left: SqlType, right: SqlType, of: SqlType) -> None:
    kind, args = of.kind, f"({short_name(left)}, {short_name(right)}) -> {short_name(of)}"

    def infinity(a: float, b: float) -> bool:
        return math.isinf(a) or math.isinf(b)

    def divided(a: float, b: float) -> float:
        if b == 0 and not math.isnan(a):
            raise _zero()
        if b == 0:
            return a
        return real(a / b, kind, infinite=math.isinf(a), nonzero=a != 0 and not math.isinf(b))

    def multiplied(a: float, b: float) -> float:
        return real(a * b, kind, infinite=infinity(a, b), nonzero=a != 0 and b != 0)

    def guarded(operation: str, lost: str = "false") -> str:
        # An infinity must come from an argument, and a zero from one too.
        bad = (
            f"w.a IS NULL OR (({infinite('w.a')}) AND NOT ({infinite('v.a')}) AND NOT ({infinite('v.b')})) OR ({lost})"
        )
        checked = let(f"CASE WHEN NOT ({bad}) THEN w.a + cast(0 as {spark_type(of)}) END", operation, name="w")
        return let(checked, *(f"cast({argument} as {spark_type(of)})" for argument in ("{0}", "{1}")))

    # Spark divides floats as doubles; by zero it would fail.
    by_zero = f"CASE WHEN isnan(v.a) AND v.b = 0 THEN v.a ELSE cast(v.a / nullif(v.b, 0) as {spark_type(of)}) END"
    quotient_sql = guarded(by_zero, "w.a = 0 AND v.a <> 0 AND NOT (" + infinite("v.b") + ")")
    product_sql = guarded("v.a * v.b", "w.a = 0 AND v.a <> 0 AND v.b <> 0")
    sum_sql, difference_sql = guarded("v.a + v.b"), guarded("v.a - v.b")
    define(
        "+ add" + args, lambda a, b: real(a + b, kind, infinite=infinity(a, b)), sum_sql, fails=True, arrow=_FLOAT_SUM
    )
    subtracted = lambda a, b: real(a - b, kind, infinite=infinity(a, b))
    define("- sub" + args, subtracted, difference_sql, fails=True, arrow=_FLOAT_DIFFERENCE)
    define("* mul" + args, multiplied, product_sql, fails=True, arrow=_FLOAT_PRODUCT)
    define("/ div" + args, divided, quotient_sql, fails=True, arrow=kernels.float_quotient)
    if left is right:
        negated = f"(cast(0 as {spark_type(of)}) - {{0}})"
        define("- neg(T) -> T", lambda a: -a + 0.0, negated, arrow=kernels.negated_float, T=of)
        define("+ pos(T) -> T", lambda a: a, "{0}", T=of)


_SIGNS = {"try_add": "+", "try_subtract": "-"}


def _decimal_sql(operation: str) -> Renderer:
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


for _type in (INT2, INT4, INT8):
    _integers(_type)
_floats(FLOAT4, FLOAT4, FLOAT4)
_floats(FLOAT8, FLOAT8, FLOAT8)
_floats(FLOAT4, FLOAT8, FLOAT8)
_floats(FLOAT8, FLOAT4, FLOAT8)

_sum, _difference, _product = (_exactly(each) for each in (operator.add, operator.sub, operator.mul))
_sum_sql, _difference_sql, _modulo_sql = map(_decimal_sql, ("try_add", "try_subtract", "try_mod"))
_of_sums: dict[str, Any] = {"typed": True, "fails": True, "result": sum_type, "safe": lambda a: _sum_fits(a.types)}
_of_products: dict[str, Any] = {**_of_sums, "result": product_type, "safe": lambda a: _product_fits(a.types)}
define("+ add(numeric, numeric)", _sum, _sum_sql, **_of_sums, arrow=kernels.numeric_sum(operator.add))
define("- sub(numeric, numeric)", _difference, _difference_sql, **_of_sums, arrow=kernels.numeric_sum(operator.sub))
define("* mul(numeric, numeric)", _product, _product_sql, **_of_products, arrow=kernels.numeric_product)
_divided = lambda result, a, b: quotient(a, b, result)
_of_quotients: dict[str, Any] = {"typed": True, "fails": True, "safe": _quotient_fits}
define("/ div(numeric, numeric) -> numeric", _divided, _quotient_sql, **_of_quotients, arrow=kernels.numeric_quotient)
define("% mod(numeric, numeric)", _exactly(remainder), _modulo_sql, result=remainder_type, typed=True, fails=True)
define("- neg(numeric) -> $1", EXACT.minus, "(- {0})", arrow=kernels.numeric_negation)
define("+ pos(numeric) -> $1", lambda a: a, "{0}")
