"""Named functions of numbers: rounding, roots, powers and logarithms.

The roots, powers and logarithms of a numeric are computed as floats and kept to 15 significant digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal, localcontext
from functools import partial

from everview.compute.functions import arithmetic, kernels
from everview.compute.functions.contract import Failure
from everview.compute.functions.naming import key_of
from everview.compute.functions.numbers import EXACT, fit, real, significant, truncated, whole
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import Renderer, infinite, let, let_arguments, spark_type
from everview.compute.ir.types import INT2, INT4, INT8, Kind, SqlType, numeric

FUNCTIONS = Family()
define = FUNCTIONS.define
# Whose last digit may be another on Spark than in Python.
ROUGH = frozenset(
    ("cbrt", "exp", "ln", "log", "log10", "power", "pow", "^", "sin", "cos", "tan", "atan", "degrees", "radians")
)
_SCALE_MIN, _SCALE_MAX = -20, 38


def _whole_type(types: Sequence[SqlType]) -> SqlType:
    """A numeric without fraction; one digit more, for rounding up."""
    return numeric(min(38, max(types[0].precision - types[0].scale, 0) + 1), 0)


def scaled_type(types: Sequence[SqlType], digits: int | None) -> SqlType:
    """The result type of round and trunc to a number of digits; with None, the argument's scale."""
    if digits is None:
        return replace(types[0], precision=min(38, types[0].precision + 1))
    front = types[0].precision - types[0].scale + 1
    scale = min(max(digits, 0), 18)
    return numeric(min(38, front + scale), scale)


def _rounding(rounding: str) -> Callable[..., Decimal]:
    def evaluate(result: SqlType, value: Decimal, digits: int = 0) -> Decimal:
        limited = min(max(digits, _SCALE_MIN), _SCALE_MAX)
        with localcontext(EXACT):
            return fit(value.quantize(Decimal(1).scaleb(-limited), rounding), result)

    return evaluate


def _rounding_sql(name: str) -> Renderer:
    def to(value: str, digits: int, result: SqlType) -> str:
        if name == "round":
            return f"try_cast(round({value}, {digits}) as {spark_type(result)})"
        # Towards zero: what is less than the last digit is taken away.
        unit = f"cast('1e{-digits}' as decimal(38,{max(digits, 0)}))"
        return f"try_cast({value} - {value} % {unit} as {spark_type(result)})"

    def rendered(args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
        scale = types[0].scale
        if len(args) == 1:
            return to(args[0], 0, result)
        if args[1].lstrip("-").isdigit():
            return to(args[0], min(max(int(args[1]), -37), max(scale, 0)), result)
        cases = " ".join(f"WHEN {digits} THEN {to('v.a', digits, result)}" for digits in range(_SCALE_MIN, scale))
        clamped = f"CASE least(greatest(v.b, {_SCALE_MIN}), {scale}) {cases} ELSE {to('v.a', scale, result)} END"
        return let(f"CASE WHEN v.b IS NOT NULL THEN {clamped} END", *args)

    return rendered


def _whole_sql(name: str) -> Renderer:
    return lambda args, _types, result: f"cast({name}({args[0]}) as {spark_type(result)})"


def _by_float(function: Callable[..., float]) -> Callable[..., Decimal]:
    return lambda result, *values: fit(significant(function(*map(float, values))), result)


def _by_float_sql(spark: str) -> Renderer:
    def rendered(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
        value = spark.format(*(f"cast({arg} as double)" for arg in args))
        digits = let("try_cast(format_string('%.14e', w.a) as decimal(38,18))", value, name="w")
        return f"try_cast({digits} as {spark_type(result)})"

    return rendered


def _sqrt(value: float) -> float:
    if value < 0:
        raise Failure("2201F", "cannot take square root of a negative number")
    return math.sqrt(value) + 0.0


def _ln(value: float, function: Callable[[float], float] = math.log) -> float:
    if value == 0:
        raise Failure("2201E", "cannot take logarithm of zero")
    if value < 0:
        raise Failure("2201E", "cannot take logarithm of a negative number")
    return function(value)


_log10 = partial(_ln, function=math.log10)


def _log(base: float, value: float) -> float:
    below, above = _ln(base), _ln(value)
    if below == 0:
        raise Failure("22012", "division by zero")
    return above / below


def _exp(value: float) -> float:
    try:
        result = math.exp(value)
    except OverflowError:
        result = math.inf
    return real(result, Kind.FLOAT8, infinite=math.isinf(value), nonzero=not math.isinf(value))


def power(base: float, exponent: float) -> float:
    """PostgreSQL's, which refuses what C answers with an infinity or NaN."""
    if math.isnan(base) or math.isnan(exponent):
        return 1.0 if base == 1 or exponent == 0 else math.nan
    if base == 0 and exponent < 0:
        raise Failure("2201F", "zero raised to a negative power is undefined")
    if base < 0 and not math.isinf(exponent) and exponent != math.floor(exponent):
        raise Failure("2201F", "a negative number raised to a non-integer power yields a complex result")
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        result = math.inf
    unbounded = math.isinf(base) or math.isinf(exponent)
    return real(result, Kind.FLOAT8, infinite=unbounded, nonzero=base != 0 and not unbounded)


_INFINITE_B = infinite("v.b")
_SQRT = let_arguments("CASE WHEN v.a >= 0 THEN sqrt(v.a) + 0D END", 1)
_LN = let_arguments("CASE WHEN v.a > 0 THEN ln(v.a) END", 1)
_LOG10 = let_arguments("CASE WHEN v.a > 0 THEN log10(v.a) END", 1)
_LOG = let_arguments("CASE WHEN v.a > 0 AND v.b > 0 AND v.a <> 1 THEN ln(v.b) / ln(v.a) END", 2)
_EXP = let_arguments(
    let(f"CASE WHEN {infinite('v.a')} OR NOT (({infinite('w.a')}) OR w.a = 0) THEN w.a END", "exp(v.a)", name="w"), 1
)
_POWER_FAILS = (
    "(v.a = 0 AND v.b < 0) OR (v.a < 0 AND NOT isnan(v.a) AND NOT isnan(v.b)"
    f" AND NOT ({_INFINITE_B}) AND v.b <> rint(v.b))"
    f" OR ((({infinite('w.a')}) OR (w.a = 0 AND v.a <> 0)) AND NOT ({infinite('v.a')}) AND NOT ({_INFINITE_B}))"
)
_POWER = let_arguments(
    let(
        f"CASE WHEN v.a IS NULL OR v.b IS NULL THEN NULL WHEN v.a = 1 OR v.b = 0 THEN 1D WHEN {_POWER_FAILS} THEN NULL"
        f" WHEN v.a = -1 AND ({_INFINITE_B}) THEN 1D ELSE w.a + 0D END",
        "power(v.a, v.b)",
        name="w",
    ),
    2,
)


def _finite(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) + 0.0 if math.isfinite(value) else value


def _bounded(function: Callable[[float], float]) -> Callable[[float], float]:
    def evaluate(value: float) -> float:
        if math.isinf(value):
            raise Failure("22003", "input is out of range")
        return function(value)

    return evaluate


# Spark's ceil and floor give integers, which do not hold every float.
_LARGE = "WHEN abs(v.a) >= 4503599627370496D OR isnan(v.a) THEN v.a"
_CEIL, _FLOOR = (let_arguments(f"CASE {_LARGE} ELSE cast({each}(v.a) as double) END", 1) for each in ("ceil", "floor"))
_TRUNC = let_arguments(f"CASE {_LARGE} ELSE cast(cast(v.a as bigint) as double) END", 1)
_SIGN = "CASE WHEN isnan({0}) THEN 0D ELSE sign({0}) + 0D END"
_DEGREES = f"CASE WHEN ({infinite('v.a')}) OR NOT ({infinite('degrees(v.a)')}) THEN degrees(v.a) END"
define("abs(T) -> T", abs, "abs({0})", arrow=kernels.absolute_float, T="float8 float4")
define("ceil, ceiling(float8) -> float8", _finite(math.ceil), _CEIL)
define("floor(float8) -> float8", _finite(math.floor), _FLOOR)
define("trunc(float8) -> float8", _finite(math.trunc), _TRUNC)
define("round(float8) -> float8", _finite(round), "(rint({0}) + 0D)")
define("sign(float8) -> float8", lambda a: float((a > 0) - (a < 0)), _SIGN)
define("sqrt(float8) -> float8", _sqrt, _SQRT, fails=True)
define("cbrt(float8) -> float8", lambda a: math.cbrt(a) + 0.0, "(cbrt({0}) + 0D)")
define("exp(float8) -> float8", _exp, _EXP, fails=True)
define("ln(float8) -> float8", _ln, _LN, fails=True)
define("log, log10(float8) -> float8", _log10, _LOG10, fails=True)
define("power, pow, ^ pow_op(float8, float8) -> float8", power, _POWER, fails=True)
define("pi() -> float8", lambda: math.pi, "pi()")
_degrees = lambda value: real(math.degrees(value), Kind.FLOAT8, infinite=math.isinf(value))
define("degrees(float8) -> float8", _degrees, let_arguments(_DEGREES, 1), fails=True)
define("radians(float8) -> float8", math.radians, "radians({0})")
define("atan(float8) -> float8", math.atan, "atan({0})")
for _name, _function in (("sin", math.sin), ("cos", math.cos), ("tan", math.tan)):
    _sql = let_arguments(f"CASE WHEN NOT ({infinite('v.a')}) THEN {_name}(v.a) END", 1)
    define(f"{_name}(float8) -> float8", _bounded(_function), _sql, fails=True)

define("abs(numeric) -> $1", Decimal.copy_abs, "abs({0})", arrow=kernels.numeric_absolute)
define("ceil, ceiling(numeric)", _rounding(ROUND_CEILING), _whole_sql("ceil"), result=_whole_type, typed=True)
define("floor(numeric)", _rounding(ROUND_FLOOR), _whole_sql("floor"), result=_whole_type, typed=True)
for _name, _direction in (("round", ROUND_HALF_UP), ("trunc", ROUND_DOWN)):
    _python, _spark = _rounding(_direction), _rounding_sql(_name)
    define(f"{_name}(numeric)", _python, _spark, result=_whole_type, typed=True, fails=True)
    _scaled = lambda types: scaled_type(types, None)
    define(f"{_name}(numeric, int4)", _python, _spark, result=_scaled, typed=True, fails=True)
define("sign(numeric) -> numeric(1,0)", lambda a: Decimal((a > 0) - (a < 0)), _whole_sql("sign"))
for _signature, _of_floats, _sql in (
    ("sqrt(numeric)", _sqrt, _SQRT),
    ("exp(numeric)", _exp, _EXP),
    ("ln(numeric)", _ln, _LN),
    ("log, log10(numeric)", _log10, _LOG10),
    ("log(numeric, numeric)", _log, _LOG),
    ("power, pow, ^ pow_op(numeric, numeric)", power, _POWER),
):
    define(f"{_signature} -> numeric", _by_float(_of_floats), _by_float_sql(_sql), typed=True, fails=True)


def _div(result: SqlType, a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise Failure("22012", "division by zero")
    return fit(Decimal(truncated(EXACT.divide(a, b))), result)


def _div_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    scale = max(types[0].scale, types[1].scale)
    exact = let(
        "try_divide(v.a - v.a % v.b, v.b)",  # without a remainder, so the digits that Spark keeps behind the point do
        f"try_cast({args[0]} as decimal(38,{scale}))",
        f"nullif(try_cast({args[1]} as decimal(38,{scale})), 0)",
    )
    return f"cast({exact} as decimal(38,0))"


define("div as quotient(numeric, numeric) -> numeric(38,0)", _div, _div_sql, typed=True, fails=True)
for _of in (INT2, INT4, INT8):
    _sql = let_arguments(f"CASE WHEN v.a < 0 THEN try_subtract(cast(0 as {spark_type(_of)}), v.a) ELSE v.a END", 1)
    define("abs(T) -> T", lambda a, kind=_of.kind: whole(abs(a), kind), _sql, fails=True, T=_of)
# mod() is % as a function.
FUNCTIONS += [
    replace(each, key=key_of("modulo", each.args), name="mod") for each in arithmetic.FUNCTIONS if each.name == "%"
]
