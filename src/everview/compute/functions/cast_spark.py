"""Casts in Spark SQL, over the physical types. A value that cannot be cast is NULL."""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.functions.input import FALSE, TRUE
from everview.compute.functions.naming import NUMERIC, short_name
from everview.compute.functions.numbers import FLOATS, INTEGERS
from everview.compute.functions.precision import PRECISE, rounded_sql
from everview.compute.functions.spark_sql import (
    NotOnSpark,
    carried,
    date_of,
    infinity,
    interval,
    let,
    micros_of,
    once,
    spark_type,
    timestamp_of,
)
from everview.compute.ir.infinite import INFINITY, MINUS_INFINITY, Infinite
from everview.compute.ir.types import MZ_TIMESTAMP, NUMERIC_SCALE, Kind, SqlType, element_of
from everview.quoting import spark_literal

_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.CHAR)
_STAMPS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_DATE = r"(\\d{4})-(\\d{1,2})-(\\d{1,2})"
_TIME = r"(\\d{1,2}):(\\d{2})(?::(\\d{2})(?:\\.(\\d*))?)?"
_ZONE = r"\\s*(?:(Z|UTC|GMT)|([+-])(\\d{1,2})(?::?(\\d{2}))?)"
_STAMP = rf"(?i)^\\s*{_DATE}(?:(?:\\s*T|\\s+){_TIME}(?:{_ZONE})?)?\\s*$"
_ONLY_TIME = rf"^\\s*{_TIME}\\s*$"
_BLANK = "' \\t\\n\\r\\u000b\\u000c'"


def cast(args: Sequence[str], types: Sequence[SqlType], result: SqlType) -> str:
    """A cast, with the modifiers of the actual types."""
    return cast_sql(args[0], types[0], result)


def widened(args: Sequence[str], _types: Sequence[SqlType], result: SqlType) -> str:
    """A numeric as one of a type that holds all of its values."""
    return f"cast({args[0]} as {spark_type(result)})"


def cast_sql(value: str, source: SqlType, target: SqlType, depth: int = 0) -> str:
    return rounded_sql(_exact_sql(value, source, target, depth), target)


def _exact_sql(value: str, source: SqlType, target: SqlType, depth: int) -> str:
    """The value as one of the target type, before seconds are rounded to the digits that the type keeps."""
    if source.kind is Kind.ARRAY and target.kind is Kind.ARRAY:
        return _array(value, source, target, depth)
    if source.kind in _TEXTS or source.kind is Kind.UNKNOWN:
        return _from_text(value, target)
    if target.kind in _TEXTS:
        text = f"cast({value} as string)" if source.kind is Kind.BOOLEAN else text_sql(value, source, depth)
        return _limited(text, target)
    if source.kind is Kind.JSONB:
        return _from_jsonb(value, target)
    if target.kind in INTEGERS and source.kind in FLOATS:
        return let(f"CASE WHEN NOT isnan(x.a) THEN try_cast(rint(x.a) as {spark_type(target)}) END", value, name="x")
    if target.kind in INTEGERS and source.kind is Kind.NUMERIC:
        return f"try_cast(round({value}, 0) as {spark_type(target)})"
    if target.kind is Kind.NUMERIC:
        return _to_numeric(value, source, target)
    if target.kind is Kind.FLOAT4 and source.kind is not Kind.FLOAT4:
        return _to_float4(value)
    if target.kind is Kind.FLOAT8 and source.kind is Kind.FLOAT4:
        return f"cast({value} as double)"
    if target.kind is Kind.MZ_TIMESTAMP:
        return _to_mz(value, source)
    if source.kind is Kind.MZ_TIMESTAMP and target.kind in _STAMPS:
        return once(
            value, lambda of: carried(of, source, target, timestamp_of(f"try_multiply({of}, 1000L)", target)), "k"
        )
    if source.kind is Kind.MZ_TIMESTAMP and target.kind is Kind.DATE:
        return once(value, lambda of: carried(of, source, target, date_of(f"floor({of} / 86400000BD)")), "k")
    if source.kind is target.kind and target.kind in PRECISE:
        return value
    if target.kind is Kind.TIME:
        micros = f"{value}.micros" if source.kind is Kind.INTERVAL else micros_of(value, source)
        return f"pmod({micros}, 86400000000L)"
    if target.kind is Kind.INTERVAL:
        return interval("0", "0", value)
    if target.kind is Kind.BOOLEAN:
        return f"({value} <> 0)"
    if Kind.DATE in (source.kind, target.kind):
        return once(value, lambda of: carried(of, source, target, f"try_cast({of} as {spark_type(target)})"), "k")
    return f"try_cast({value} as {spark_type(target)})"


def _array(value: str, source: SqlType, target: SqlType, depth: int) -> str:
    name = f"cast{depth}"
    inner = cast_sql(name, element_of(source), element_of(target), depth + 1)
    cast = f"transform(y.a, {name} -> {inner})"
    if element_of(target).kind is Kind.TIME and element_of(source).kind in _STAMPS:
        return f"transform({value}, {name} -> {inner})"  # nothing fails, and of an infinity it is NULL
    lost = "array_contains(zip_with(y.a, z.a, (p, q) -> p IS NOT NULL AND q IS NULL), true)"
    checked = let(f"CASE WHEN NOT {lost} THEN z.a END", cast, name="z")
    return let(checked, value, name="y")


def _limited(text: str, target: SqlType) -> str:
    cut = text if target.length is None else f"substring({text}, 1, {target.length})"
    return f"rtrim({cut})" if target.kind is Kind.CHAR else cut


def assigned(args: Sequence[str], _types: Sequence[SqlType], target: SqlType) -> str:
    """A text as a value of a column, which is NULL if it is too long."""
    lost = f"length(rtrim(substring(x.a, {(target.length or 0) + 1})))"
    return let(f"CASE WHEN {lost} = 0 THEN {_limited('x.a', target)} END", args[0], name="x")


def _to_numeric(value: str, source: SqlType, target: SqlType) -> str:
    if source.kind in FLOATS:
        digits = 14 if source.kind is Kind.FLOAT8 else 5
        # Of a float4 the shortest digits, which as a double it does not have.
        exact = f"cast(cast({value} as string) as double)" if source.kind is Kind.FLOAT4 else value
        value = f"try_cast(format_string('%.{digits}e', {exact}) as decimal(38,{target.scale}))"
    physical = spark_type(target)
    limit = f"decimal({target.precision},{target.scale})"
    if not target.constrained or limit == physical:
        return f"try_cast({value} as {physical})"
    return f"cast(try_cast({value} as {limit}) as {physical})"


def _to_float4(value: str) -> str:
    bad = "(abs(z.a) = float('Infinity') AND abs(y.a) <> double('Infinity')) OR (z.a = 0 AND y.a <> 0)"
    return let(
        let(f"CASE WHEN NOT ({bad}) THEN z.a END", "cast(y.a as float)", name="z"), f"cast({value} as double)", name="y"
    )


def _to_mz(value: str, source: SqlType) -> str:
    if source.kind in (Kind.DATE, *_STAMPS):  # which may be before the epoch
        floor = "cast(floor({} / 1000BD) as bigint)"
        return once(value, lambda of: carried(of, source, MZ_TIMESTAMP, floor.format(micros_of(of, source))), "k")
    return let("CASE WHEN x.a >= 0 AND x.a % 1 = 0 THEN try_cast(x.a as bigint) END", value, name="x")


def _from_jsonb(value: str, target: SqlType) -> str:
    if target.kind is Kind.BOOLEAN:
        return f"CASE {value} WHEN 'true' THEN true WHEN 'false' THEN false END"
    of = spark_type(target) if target.kind in FLOATS else f"decimal(38,{target.scale or 18})"
    number = let(f"CASE WHEN x.a RLIKE '^-?[0-9]' THEN try_cast(x.a as {of}) END", value, name="x")
    if target.kind in FLOATS:
        return number
    return _to_numeric(number, NUMERIC, target) if target.kind is Kind.NUMERIC else cast_sql(number, NUMERIC, target)


def _from_text(value: str, target: SqlType) -> str:
    kind = target.kind
    trimmed = f"btrim({value}, {_BLANK})"
    if kind in _TEXTS:
        return _limited(value, target)
    if kind in INTEGERS:
        guard = "x.a RLIKE '^[+-]?[0-9]+(_[0-9]+)*$'"
        body = f"CASE WHEN {guard} THEN try_cast(replace(x.a, '_', '') as {spark_type(target)}) END"
        return let(body, trimmed, name="x")
    if kind is Kind.NUMERIC:
        guard = "x.a RLIKE '^[+-]?([0-9]+\\\\.?[0-9]*|\\\\.[0-9]+)([eE][+-]?[0-9]{1,4})?$'"
        return let(f"CASE WHEN {guard} THEN {_to_numeric('x.a', target, target)} END", trimmed, name="x")
    if kind in FLOATS:
        return _float_from_text(trimmed, target)
    if kind is Kind.BOOLEAN:
        true, false = (", ".join(map(spark_literal, words)) for words in (TRUE, FALSE))
        body = f"CASE WHEN x.a IN ({true}) THEN true WHEN x.a IN ({false}) THEN false END"
        return let(body, f"lower({trimmed})", name="x")
    if kind is Kind.BYTEA:
        body = (
            "CASE WHEN startswith(x.a, '\\\\x') AND length(x.a) % 2 = 0 THEN try_to_binary(substring(x.a, 3), 'hex')"
            " WHEN NOT contains(x.a, '\\\\') THEN cast(x.a as binary) END"
        )
        return let(body, value, name="x")
    if kind is Kind.UUID:
        return _uuid(value)
    if kind is Kind.TIME:
        return let(f"CASE WHEN x.a RLIKE '{_ONLY_TIME}' THEN {_clock(_ONLY_TIME, 1)} END", value, name="x")
    if kind in (Kind.DATE, *_STAMPS):
        return _stamp(value, target)
    if kind is Kind.MZ_TIMESTAMP:
        return let("CASE WHEN x.a RLIKE '^-?[0-9]+$' THEN try_cast(x.a as bigint) END", trimmed, name="x")
    raise NotOnSpark(f"cast of text to {short_name(target)}")


def _float_from_text(trimmed: str, target: SqlType) -> str:
    guard = "x.a RLIKE '^[+-]?([0-9]+\\\\.?[0-9]*|\\\\.[0-9]+)([eE][+-]?[0-9]+)?$'"
    lost = "abs(z.a) = double('Infinity') OR (z.a = 0 AND regexp_replace(x.a, '[eE].*$', '') RLIKE '[1-9]')"
    body = f"CASE WHEN NOT ({lost}) THEN z.a + cast(0 as {spark_type(target)}) END"
    number = let(body, f"try_cast(x.a as {spark_type(target)})", name="z")
    special = f"x.a RLIKE '(?i)^([+-]?inf(inity)?|nan)$' THEN try_cast(x.a as {spark_type(target)})"
    return let(f"CASE WHEN {guard} THEN {number} WHEN {special} END", trimmed, name="x")


def _uuid(value: str) -> str:
    digits = "regexp_replace(x.a, '[{}-]', '')"
    dashed = f"regexp_replace({digits}, '^(.{{8}})(.{{4}})(.{{4}})(.{{4}})(.{{12}})$', '$1-$2-$3-$4-$5')"
    guard = "x.a RLIKE '^(\\\\{(?=.*\\\\}$))?[0-9a-f]{4}(-?[0-9a-f]{4}){7}((?<=^\\\\{.{0,50})\\\\})?$'"
    return let(f"CASE WHEN {guard} THEN {dashed} END", f"lower({value})", name="x")


def _part(pattern: str, group: int, of: str = "x.a") -> str:
    return f"regexp_extract({of}, '{pattern}', {group})"


def _clock(pattern: str, first: int) -> str:
    """The microseconds of a time in groups from `first` on. NULL for a time that does not exist."""
    hour, minute, second, fraction = (_part(pattern, first + index) for index in range(4))
    micros = f"cast(bround(cast(concat('0.', {fraction}, '0') as decimal(38,30)) * 1000000, 0) as bigint)"
    fields = (
        f"coalesce(try_cast({hour} as bigint), 0L)",
        f"coalesce(try_cast({minute} as bigint), 0L)",
        f"coalesce(try_cast({second} as bigint), 0L)",
        micros,
    )
    total = "(t.a * 3600 + t.b * 60 + t.c) * 1000000L + t.d"
    return let(f"CASE WHEN t.b < 60 AND t.c <= 60 AND {total} <= 86400000000L THEN {total} END", *fields, name="t")


def _stamp(value: str, target: SqlType) -> str:
    found = "CASE WHEN d.a > '0000' THEN unix_date(try_cast(concat_ws('-', d.a, d.b, d.c) as date)) END"
    days = let(found, *(_part(_STAMP, group) for group in (1, 2, 3)), name="d")
    parts = [days, _clock(_STAMP, 4)]
    offset = (
        f"(CASE {_part(_STAMP, 9)} WHEN '+' THEN -1 WHEN '-' THEN 1 ELSE 0 END)"
        f" * (coalesce(try_cast({_part(_STAMP, 10)} as bigint), 0L) * 60"
        f" + coalesce(try_cast({_part(_STAMP, 11)} as bigint), 0L)) * 60000000L"
    )
    bad_zone = (
        f"coalesce(try_cast({_part(_STAMP, 10)} as int), 0) > 15"
        f" OR coalesce(try_cast({_part(_STAMP, 11)} as int), 0) > 59"
    )
    if target.kind is Kind.DATE:
        body = let("CASE WHEN p.b IS NOT NULL THEN date_from_unix_date(p.a) END", *parts, name="p")
    else:
        moved = f" + {offset}" if target.kind is Kind.TIMESTAMPTZ else ""
        body = let(
            f"CASE WHEN NOT ({bad_zone}) THEN {timestamp_of(f'p.a * 86400000000L + p.b{moved}', target)} END",
            *parts,
            name="p",
        )
    epoch = f"cast('1970-01-01' as {spark_type(target)})"
    infinite = " ".join(
        f"WHEN x.a RLIKE '(?i)^\\\\s*{sign}\\\\s*infinity\\\\s*$' THEN {infinity(target, each)}"
        for sign, each in (("[+]?", INFINITY), ("-", MINUS_INFINITY))
    )
    chosen = f"CASE WHEN x.a RLIKE '{_STAMP}' THEN {body} WHEN lower(trim(x.a)) = 'epoch' THEN {epoch} {infinite} END"
    return let(chosen, value, name="x")


def text_sql(value: str, source: SqlType, depth: int = 0) -> str:
    """PostgreSQL's output form of a value."""
    kind = source.kind
    if kind is Kind.BOOLEAN:
        return f"CASE WHEN {value} THEN 't' WHEN NOT {value} THEN 'f' END"
    if kind is Kind.NUMERIC:
        plain = f"cast({value} as string)"
        return plain if source.scale != NUMERIC_SCALE else f"regexp_replace({plain}, '\\\\.?0+$', '')"
    if kind in FLOATS:
        return float_text(value, 15 if kind is Kind.FLOAT8 else 6)
    if kind is Kind.BYTEA:
        return f"concat('\\\\x', lower(hex({value})))"
    if kind is Kind.TIME:
        return _time_text(value)
    if kind in (Kind.DATE, *_STAMPS):
        zone = "'+00'" if kind is Kind.TIMESTAMPTZ else "''"
        return once(value, lambda of: moment_text(of, source, f"concat(cast({of} as string), {zone})"), "k")
    if kind is Kind.INTERVAL:
        return _interval_text(value)
    if kind is Kind.CHAR:
        return value
    if kind is Kind.ARRAY:
        name = f"q{depth}"
        text = text_sql(name, element_of(source), depth + 1)
        bare = f"{name}t.a <> '' AND upper({name}t.a) <> 'NULL' AND NOT ({name}t.a RLIKE '[{{}}\",\\\\\\\\\\\\s]')"
        marked = f"concat('\"', regexp_replace({name}t.a, '([\"\\\\\\\\])', '\\\\\\\\$1'), '\"')"
        body = f"CASE WHEN {name}t.a IS NULL THEN 'NULL' WHEN {bare} THEN {name}t.a ELSE {marked} END"
        item = let(body, text, name=f"{name}t")
        return f"concat('{{', array_join(transform({value}, {name} -> {item}), ','), '}}')"
    return f"cast({value} as string)"


def moment_text(value: str, source: SqlType, finite: str) -> str:
    """The text of a date or timestamp that may be infinite; the value is a name."""
    cases = (f"WHEN {value} = {infinity(source, each)} THEN '{each.value}'" for each in Infinite)
    return f"CASE {' '.join(cases)} ELSE {finite} END"


def float_text(value: str, digits: int, low: int = -4) -> str:
    """Turn Java's shortest digits, `d.dddE±x` or plain, into PostgreSQL's."""
    body = (
        "named_struct('m', CASE WHEN g.a LIKE '%E%' THEN replace(substring_index(g.a, 'E', 1), '.', '')"
        " ELSE regexp_replace(replace(g.a, '.', ''), '^0+(?=.)', '') END,"
        " 'e', CASE WHEN g.a LIKE '%E%' THEN cast(substring_index(g.a, 'E', -1) as int)"
        " WHEN g.a LIKE '0.%' THEN - length(regexp_extract(g.a, '^0\\\\.(0*)', 1)) - 1"
        " ELSE length(substring_index(g.a, '.', 1)) - 1 END)"
    )
    parts = let(body, "cast(abs(f.a) as string)", name="g")
    mantissa = "coalesce(nullif(regexp_replace(h.a.m, '0+$', ''), ''), '0')"
    plain = (
        "CASE WHEN i.b < 0 THEN concat('0.', repeat('0', - i.b - 1), i.a)"
        " WHEN length(i.a) <= i.b + 1 THEN rpad(i.a, i.b + 1, '0')"
        " ELSE concat(substring(i.a, 1, i.b + 1), '.', substring(i.a, i.b + 2)) END"
    )
    exponent = "lpad(abs(i.b), greatest(2, length(abs(i.b))), '0')"
    scientific = (
        "concat(substring(i.a, 1, 1), CASE WHEN length(i.a) > 1 THEN concat('.', substring(i.a, 2)) ELSE '' END,"
        f" 'e', CASE WHEN i.b < 0 THEN '-' ELSE '+' END, {exponent})"
    )
    shown = f"CASE WHEN i.b BETWEEN {low} AND {digits - 1} THEN {plain} ELSE {scientific} END"
    number = let(let(shown, mantissa, "h.a.e", name="i"), parts, name="h")
    found = (
        "CASE WHEN f.a IS NULL THEN NULL WHEN isnan(f.a) THEN 'NaN' WHEN f.a = double('Infinity') THEN 'Infinity'"
        " WHEN f.a = double('-Infinity') THEN '-Infinity' WHEN f.a = 0 THEN '0'"
        f" ELSE concat(CASE WHEN f.a < 0 THEN '-' ELSE '' END, {number}) END"
    )
    return let(found, value, name="f")


def _time_text(micros: str) -> str:
    clock = "format_string('%02d:%02d:%02d', t.a div 3600000000, t.a div 60000000 % 60, t.a div 1000000 % 60)"
    fraction = "regexp_replace(format_string('.%06d', t.a % 1000000), '\\\\.?0+$', '')"
    return let(f"CASE WHEN t.a IS NOT NULL THEN concat({clock}, {fraction}) END", micros, name="t")


def _interval_text(value: str) -> str:
    def unit(amount: str, name: str, before: str) -> str:
        plus = f"CASE WHEN {amount} > 0 AND ({before}) THEN '+' ELSE '' END"
        plural = f"CASE WHEN {amount} = 1 THEN '' ELSE 's' END"
        return f"CASE WHEN {amount} <> 0 THEN concat({plus}, {amount}, ' {name}', {plural}) END"

    year, month = "(n.a.months div 12)", "(n.a.months % 12)"
    months_negative = "n.a.months < 0"
    days_negative = "n.a.days < 0 OR (n.a.days = 0 AND n.a.months < 0)"
    empty = "n.a.months = 0 AND n.a.days = 0"
    mark = f"CASE WHEN n.a.micros < 0 THEN '-' WHEN {days_negative} THEN '+' ELSE '' END"
    # Of the least number there is no opposite.
    time = (
        f"CASE WHEN n.a.micros < -{2**63 - 1}L THEN '2562047788:00:54.775808' ELSE {_time_text('abs(n.a.micros)')} END"
    )
    clock = f"CASE WHEN n.a.micros <> 0 OR ({empty}) THEN concat({mark}, {time}) END"
    days = unit("n.a.days", "day", months_negative)
    joined = ", ".join((unit(year, "year", "false"), unit(month, "mon", months_negative), days, clock))
    return let(f"CASE WHEN n.a IS NOT NULL THEN concat_ws(' ', {joined}) END", value, name="n")
