"""Functions of text: parts, padding, trimming, and text from codes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from everview import quoting
from everview.compute.allowance import look_at_value
from everview.compute.cancel import paced
from everview.compute.functions.cast_spark import cast_sql
from everview.compute.functions.columns import named
from everview.compute.functions.contract import Failure
from everview.compute.functions.kernels import concatenated, of_ascii
from everview.compute.functions.keywords import KEYWORDS
from everview.compute.functions.naming import ELEMENTS
from everview.compute.functions.normalizing import normalized
from everview.compute.functions.numbers import integer_of, whole
from everview.compute.functions.output import cast_text
from everview.compute.functions.signatures import Family
from everview.compute.functions.slices import mapped
from everview.compute.functions.spark_sql import Renderer, let, let_arguments
from everview.compute.functions.trimming import trimmed
from everview.compute.ir.types import BYTEA, INT4, INT8, MZ_TIMESTAMP, TEXT, Kind, SqlType
from everview.quoting import escape_literal

FUNCTIONS = Family()
define = FUNCTIONS.define
LENGTH_MAX = 16 * 2**20  # of text that is padded or repeated: more would take the engine down


def _repeat(text: str, times: int) -> str:
    if len(text.encode()) * times > LENGTH_MAX:
        raise Failure("54000", "requested length too large")
    return text * max(times, 0)


def _substring(text: Any, start: int, length: int | None = None) -> Any:
    if length is not None and length < 0:
        raise Failure("22011", "negative substring length not allowed")
    end = len(text) + 1 if length is None else start + length
    first = max(start, 1)
    return text[first - 1 : max(end, first) - 1]


# Not greatest({1}, 1): that passes over NULLs.
_SUBSTRING = "substring({0}, CASE WHEN {1} < 1 THEN 1 ELSE {1} END)"
_SUBSTRING_OF = let_arguments(
    "CASE WHEN s.c >= 0 AND s.b IS NOT NULL THEN substring(s.a, greatest(s.b, 1),"
    " cast(greatest(least(cast(s.b as bigint) + s.c, 2147483647L) - greatest(s.b, 1), 0) as int)) END",
    3,
    "s",
)


def _overlay(text: Any, new: Any, start: int, length: int | None = None) -> Any:
    """Replace a part of a text; it is as long as the new text unless a length is given."""
    if start <= 0:
        raise Failure("22011", "negative substring length not allowed")
    end = whole(start + (len(new) if length is None else length), Kind.INT4)
    return text[: start - 1] + new + text[max(end, 1) - 1 :]


def _overlay_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    size = "octet_length" if types[0].kind is Kind.BYTEA else "length"
    end = "cast(o.c as bigint) + o.d"
    rest = f"substring(o.a, cast(greatest({end}, 1L) as int))"
    body = f"concat(substring(o.a, 1, o.c - 1), o.b, {rest})"
    found = f"CASE WHEN o.c > 0 AND {end} BETWEEN -2147483648L AND 2147483647L THEN {body} END"
    return let(found, *args[:3], args[3] if len(args) > 3 else f"{size}({args[1]})", name="o")


_LEFT = "CASE WHEN s.b < 0 THEN substring(s.a, 1, greatest(length(s.a) + s.b, 0)) ELSE substring(s.a, 1, s.b) END"
_RIGHT = (
    "CASE WHEN s.b < 0 THEN substring(s.a, cast(least(1 - cast(s.b as bigint), 2147483647L) as int))"
    " WHEN s.b >= length(s.a) THEN s.a ELSE substring(s.a, length(s.a) - s.b + 1) END"
)
_SPLIT_PART = (
    "CASE WHEN s.c = 0 THEN NULL WHEN s.b = '' THEN CASE WHEN s.c IN (1, -1) THEN s.a ELSE '' END"
    " WHEN abs(cast(s.c as bigint)) > length(s.a) + 1L THEN nvl2(s.b, '', NULL)"  # Spark counts with 32 bits
    " WHEN s.a IS NOT NULL AND s.b IS NOT NULL THEN split_part(s.a, s.b, s.c) END"
)
_STRPOS = "CASE WHEN {1} = '' THEN nvl2({0}, 1, NULL) ELSE instr({0}, {1}) END"


def _pad(text: str, length: int, fill: str = " ", *, before: bool) -> str:
    if length > LENGTH_MAX:
        raise Failure("54000", "requested length too large")
    missing = max(length, 0) - len(text)
    if missing <= 0 or not fill:
        return text[: max(length, 0)]
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if before else text + padding


def _split_part(text: str, glue: str, number: int) -> str:
    if number == 0:
        raise Failure("22023", "field position must not be zero")
    if not glue:
        return text if number in (1, -1) else ""
    if number < 0:
        number += text.count(glue) + 2
    if number < 1:
        return ""
    start = 0
    for _ in paced(range(number - 1)):  # to split all of a long text takes many times its memory
        found = text.find(glue, start)
        if found < 0:
            return ""
        start = found + len(glue)
    end = text.find(glue, start)
    return text[start:] if end < 0 else text[start:end]


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(new) > len(old):
        look_at_value(len(text) + text.count(old) * (len(new) - len(old)))  # few characters may become very many
    return text.replace(old, new)


def _concatenated(one: Any, other: Any) -> Any:
    look_at_value(len(one) + len(other))
    return one + other


_WORDS = re.compile(r"([^\W_]+)|[\W_]+")  # and what is between them
_INITCAP = (
    "array_join(transform(regexp_extract_all({0}, '([\\\\p{{L}}\\\\p{{N}}]+|[^\\\\p{{L}}\\\\p{{N}}]+)', 1),"
    " w -> concat(upper(substring(w, 1, 1)), lower(substring(w, 2)))), '')"
)
_REPEAT = (
    f"CASE WHEN octet_length({{0}}) * cast({{1}} as bigint) <= {LENGTH_MAX} THEN repeat({{0}}, greatest({{1}}, 0)) END"
)


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for place, character in enumerate(paced(old)):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return mapped(lambda part: part.translate(table), text)


def _lower(text: str) -> str:
    return text.lower() if "Σ" in text else mapped(str.lower, text)  # a sigma is another at the end of a word


def _initcap(text: str) -> str:
    parts = paced(_WORDS.finditer(text))
    return "".join(part[1][0].upper() + part[1][1:].lower() if part[1] else part[0] for part in parts)


def _chr(code: int) -> str:
    if code == 0:
        raise Failure("54000", "null character not permitted")
    if code < 0:
        raise Failure("22023", "character number must be positive")
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise Failure("54000", f"requested character too large for encoding: {code}")
    return chr(code)


def _digits(letter: str, bits: int) -> Any:
    return lambda value: format(value & (2**bits - 1), letter)


_CHR = (
    "CASE WHEN c.a BETWEEN 1 AND 55295 OR c.a BETWEEN 57344 AND 1114111"
    " THEN decode(unhex(lpad(hex(c.a), 8, '0')), 'UTF-32') END"
)
_QUOTE_IDENT = (
    f"CASE WHEN {{0}} RLIKE '^[a-z_][a-z0-9_]*$' AND {{0}} NOT IN ({', '.join(map(repr, sorted(KEYWORDS)))})"
    " THEN {0} ELSE concat('\"', replace({0}, '\"', '\"\"'), '\"') END"
)


def _quoted(value: Any, of: SqlType) -> str:
    return "NULL" if value is None else escape_literal(cast_text(value, of))


def _quoted_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    text = args[0] if types[0].kind is Kind.TEXT else cast_sql(args[0], types[0], TEXT)
    body = (
        "concat(CASE WHEN contains(q.a, '\\\\') THEN 'E' ELSE '' END, '\\'',"
        " replace(replace(q.a, '\\'', '\\'\\''), '\\\\', '\\\\\\\\'), '\\'')"
    )
    return let(body, text, name="q")


def quote_identifier(name: str) -> str:
    """The name in quotes, unless it reads the same without them."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name, re.ASCII) and name not in KEYWORDS
    return name if plain else quoting.identifier(name)


def _format(pattern: str | None, *args: str | None) -> str | None:
    """%s, %I, %L and %%, by position too."""
    if pattern is None:
        return None
    following = iter(range(len(args)))

    def piece(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        if not match[2]:
            raise Failure("22023", "unrecognized format() type specifier")
        place = integer_of(match[1][:-1]) - 1 if match[1] else next(following, len(args))
        if not 0 <= place < len(args):
            raise Failure("22023", "too few arguments for format()")
        value = args[place]
        if match[2] == "s":
            return value or ""
        if match[2] == "L":
            return "NULL" if value is None else escape_literal(value)
        if value is None:
            raise Failure("22004", "null values cannot be formatted as an SQL identifier")
        return quote_identifier(value)

    return re.sub(r"%(?:%|(\d+\$)?([sIL]?))", piece, pattern)


def _concat_ws(glue: str | None, *args: str | None) -> str | None:
    return None if glue is None else glue.join(each for each in args if each is not None)


_has_length = lambda given: isinstance(given.values[2], int) and given.values[2] >= 0
for _of in (TEXT, BYTEA):
    define("substring, substr(T, int4) -> T", _substring, _SUBSTRING, T=_of)
    define("substring, substr(T, int4, int4) -> T", _substring, _SUBSTRING_OF, fails=True, safe=_has_length, T=_of)
define("overlay(T, T, int4 [, int4]) -> T", _overlay, _overlay_sql, fails=True, T="text bytea")
define("left(text, int4) -> text", lambda a, n: a[:n], let_arguments(_LEFT, 2, "s"))
define("right(text, int4) -> text", lambda a, n: a[-n:] if n else "", let_arguments(_RIGHT, 2, "s"))
define("split_part(text, text, int4) -> text", _split_part, let_arguments(_SPLIT_PART, 3, "s"), fails=True)
define("strpos, position(text, text) -> int4", lambda a, b: a.find(b) + 1, _STRPOS)
for _name, _side, _front, _back in (
    ("btrim", "BOTH", True, True),
    ("ltrim", "LEADING", True, False),
    ("rtrim", "TRAILING", False, True),
):
    _trimmed = partial(trimmed, front=_front, back=_back)
    _of_blanks = lambda text, trim=_trimmed: trim(text, " ")
    define(f"{_name}(text) -> text", _of_blanks, f"trim({_side} ' ' FROM {{0}})")
    _sql = f"CASE WHEN {{1}} = '' THEN {{0}} ELSE trim({_side} {{1}} FROM {{0}}) END"
    define(f"{_name}(text, text) -> text", _trimmed, _sql)
_SMALL = f"CASE WHEN {{1}} <= {LENGTH_MAX} THEN CASE WHEN {{1}} <= 0 THEN "
for _name in ("lpad", "rpad"):
    _padded = partial(_pad, before=_name == "lpad")
    _blanks = _SMALL + f"nvl2({{0}}, '', NULL) ELSE {_name}({{0}}, {{1}}, ' ') END END"
    _filled = (
        _SMALL + "nvl2({0}, nvl2({2}, '', NULL), NULL) WHEN {2} = '' THEN substring({0}, 1, {1})"
        f" ELSE {_name}({{0}}, {{1}}, {{2}}) END END"
    )
    define(f"{_name}(text, int4) -> text", _padded, _blanks, fails=True)
    define(f"{_name}(text, int4, text) -> text", _padded, _filled, fails=True)

define("lower(text) -> text", _lower, "lower({0})", arrow=of_ascii("ascii_lower"))
define("upper(text) -> text", lambda text: mapped(str.upper, text), "upper({0})", arrow=of_ascii("ascii_upper"))
define("initcap(text) -> text", _initcap, _INITCAP)
define("replace(text, text, text) -> text", _replace, "replace({0}, {1}, {2})")
define("translate(text, text, text) -> text", _translate, "translate({0}, {1}, {2})")
define("repeat(text, int4) -> text", _repeat, _REPEAT, fails=True)
define("reverse(text) -> text", lambda a: a[::-1], "reverse({0})")
define("starts_with, ^@ starts(text, text) -> bool", str.startswith, "startswith({0}, {1})")
define("normalize(text) -> text", normalized)
define("normalize(text, text) -> text", normalized, fails=True)

define("length, char_length, character_length(text) -> int4", len, "length({0})", arrow=named("utf8_length"))
define("length, octet_length(bytea) -> int4", len, "octet_length({0})")
define("octet_length(text) -> int4", lambda a: len(a.encode()), "octet_length({0})")
define("bit_length(text) -> int4", lambda a: 8 * len(a.encode()), "bit_length({0})")

define("ascii(text) -> int4", lambda a: ord(a[0]) if a else 0, "ascii({0})")
define("chr(int4) -> text", _chr, let_arguments(_CHR, 1, "c"), fails=True)
define("md5(text) -> text", lambda a: hashlib.md5(a.encode()).hexdigest(), "md5({0})")
define("md5(bytea) -> text", lambda a: hashlib.md5(a).hexdigest(), "md5({0})")
for _bits, _digest in ((224, hashlib.sha224), (256, hashlib.sha256), (384, hashlib.sha384), (512, hashlib.sha512)):
    define(f"sha{_bits}(bytea) -> bytea", lambda a, d=_digest: d(a).digest(), f"unhex(sha2({{0}}, {_bits}))")
for _of, _bits, _value in ((INT4, 32, "{0} & 4294967295L"), (INT8, 64, "{0}")):
    define("to_hex(T) -> text", _digits("x", _bits), f"lower(hex({_value}))", T=_of)
    define("to_bin(T) -> text", _digits("b", _bits), f"lower(conv(hex({_value}), 16, 2))", T=_of)
    define("to_oct(T) -> text", _digits("o", _bits), f"lower(conv(hex({_value}), 16, 8))", T=_of)
define("quote_ident(text) -> text", quote_identifier, _QUOTE_IDENT)

define("|| concat_text(text, text) -> text", _concatenated, "concat({0}, {1})", arrow=concatenated)
define("|| concat_bytea(bytea, bytea) -> bytea", _concatenated, "concat({0}, {1})")
_nullable_sql: Renderer = lambda args, types, result: f"coalesce({_quoted_sql(args, types, result)}, 'NULL')"
for _of in (*ELEMENTS, MZ_TIMESTAMP):
    define("quote_literal(T) -> text", partial(_quoted, of=_of), _quoted_sql, T=_of)
    define("quote_nullable(T) -> text", partial(_quoted, of=_of), _nullable_sql, strict=False, T=_of)
    if _of is not TEXT:
        _behind: Renderer = lambda a, t, r: f"concat({a[0]}, {cast_sql(a[1], t[1], TEXT)})"
        _before: Renderer = lambda a, t, r: f"concat({cast_sql(a[0], t[0], TEXT)}, {a[1]})"
        define("|| concat_text(text, T) -> text", lambda a, b, of=_of: a + cast_text(b, of), _behind, T=_of)
        define("|| concat_text(T, text) -> text", lambda a, b, of=_of: cast_text(a, of) + b, _before, T=_of)

# The arguments of these go through text_of first.
_CONCAT: Renderer = lambda a, t, r: f"concat_ws('', {', '.join(a)})" if a else "''"
define("concat(any...) -> text", partial(_concat_ws, ""), _CONCAT, strict=False)
define("concat_ws(text, any...) -> text", _concat_ws, "concat_ws({args})", strict=False)
define("format(text, any...) -> text", _format, strict=False, fails=True)
