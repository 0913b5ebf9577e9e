"""Functions of text: parts, padding, trimming, and text from codes."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import Any

from everview import quoting
from everview.compute.allowance import look_at_value
from everview.compute.functions.cast_spark import cast_sql
from everview.compute.functions.contract import Arguments, Failure
from everview.compute.functions.family import Family
from everview.compute.functions.keywords import KEYWORDS
from everview.compute.functions.naming import ANY, ELEMENTS
from everview.compute.functions.numbers import integer_of, whole
from everview.compute.functions.output import untyped_text
from everview.compute.functions.spark_sql import let, not_on_spark
from everview.compute.ir.types import BOOLEAN, BYTEA, INT4, INT8, TEXT, Kind, SqlType
from everview.quoting import escape_literal

FUNCTIONS = Family()
_add = FUNCTIONS.add
LENGTH_MAX = 16 * 2**20  # of text that is padded or repeated: more would take the engine down


def _too_long() -> Failure:
    return Failure("54000", "requested length too large")


def _repeat(text: str, times: int) -> str:
    if len(text.encode()) * times > LENGTH_MAX:
        raise _too_long()
    return text * max(times, 0)


def _substring(text: Any, start: int, length: int | None = None) -> Any:
    if length is not None and length < 0:
        raise Failure("22011", "negative substring length not allowed")
    end = len(text) + 1 if length is None else start + length
    first = max(start, 1)
    return text[first - 1 : max(end, first) - 1]


# Not greatest({1}, 1): that passes over NULLs.
_SUBSTRING = "substring({0}, CASE WHEN {1} < 1 THEN 1 ELSE {1} END)"
_SUBSTRING_OF = let(
    "CASE WHEN s.c >= 0 AND s.b IS NOT NULL THEN substring(s.a, greatest(s.b, 1),"
    " cast(greatest(least(cast(s.b as bigint) + s.c, 2147483647L) - greatest(s.b, 1), 0) as int)) END",
    "{0}",
    "{1}",
    "{2}",
    name="s",
)


def _overlay(text: Any, new: Any, start: int, length: int | None = None) -> Any:
    """With the part that begins there, and is as long as what is new unless said otherwise, replaced."""
    if start <= 0:
        raise Failure("22011", "negative substring length not allowed")
    end = whole(start + (len(new) if length is None else length), Kind.INT4)
    return text[: start - 1] + new + text[max(end, 1) - 1 :]


def _overlay_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    size = "octet_length" if types[0].kind is Kind.BYTEA else "length"
    end = "cast(o.c as bigint) + o.d"
    rest = f"substring(o.a, cast(greatest({end}, 1L) as int))"
    body = f"concat(substring(o.a, 1, o.c - 1), o.b, {rest})"
    return let(
        f"CASE WHEN o.c > 0 AND {end} BETWEEN -2147483648L AND 2147483647L THEN {body} END",
        *args[:3],
        args[3] if len(args) > 3 else f"{size}({args[1]})",
        name="o",
    )


def _has_length(given: Arguments) -> bool:
    return isinstance(given.values[2], int) and given.values[2] >= 0


def _parts() -> None:
    for of in (TEXT, BYTEA):
        for name in ("substring", "substr"):
            _add(name, (of, INT4), of, _substring, _SUBSTRING)
            _add(name, (of, INT4, INT4), of, _substring, _SUBSTRING_OF, fails=True, safe=_has_length)
        for more in ((INT4,), (INT4, INT4)):
            _add("overlay", (of, of, *more), of, _overlay, _overlay_sql, fails=True)
    _add(
        "left",
        (TEXT, INT4),
        TEXT,
        lambda a, n: a[:n],
        let(
            "CASE WHEN s.b < 0 THEN substring(s.a, 1, greatest(length(s.a) + s.b, 0)) ELSE substring(s.a, 1, s.b) END",
            "{0}",
            "{1}",
            name="s",
        ),
    )
    _add(
        "right",
        (TEXT, INT4),
        TEXT,
        lambda a, n: a[-n:] if n > 0 else a[-n:] if n else "",
        let(
            "CASE WHEN s.b < 0 THEN substring(s.a, cast(least(1 - cast(s.b as bigint), 2147483647L) as int))"
            " WHEN s.b >= length(s.a) THEN s.a ELSE substring(s.a, length(s.a) - s.b + 1) END",
            "{0}",
            "{1}",
            name="s",
        ),
    )
    _add(
        "split_part",
        (TEXT, TEXT, INT4),
        TEXT,
        _split_part,
        let(
            "CASE WHEN s.c = 0 THEN NULL WHEN s.b = '' THEN CASE WHEN s.c IN (1, -1) THEN s.a ELSE '' END"
            " WHEN abs(cast(s.c as bigint)) > length(s.a) + 1L THEN nvl2(s.b, '', NULL)"  # Spark counts with 32 bits
            " WHEN s.a IS NOT NULL AND s.b IS NOT NULL THEN split_part(s.a, s.b, s.c) END",
            "{0}",
            "{1}",
            "{2}",
            name="s",
        ),
        fails=True,
    )
    for name in ("strpos", "position"):
        _add(
            name,
            (TEXT, TEXT),
            INT4,
            lambda a, b: a.find(b) + 1,
            "CASE WHEN {1} = '' THEN nvl2({0}, 1, NULL) ELSE instr({0}, {1}) END",
        )
    for name, side, ends in (
        ("btrim", "BOTH", (True, True)),
        ("ltrim", "LEADING", (True, False)),
        ("rtrim", "TRAILING", (False, True)),
    ):
        spark = f"trim({side} {{1}} FROM {{0}})"
        _add(name, (TEXT,), TEXT, lambda a, ends=ends: _trim(a, " ", *ends), spark.replace("{1}", "' '"))
        _add(
            name,
            (TEXT, TEXT),
            TEXT,
            lambda a, c, ends=ends: _trim(a, c, *ends),
            f"CASE WHEN {{1}} = '' THEN {{0}} ELSE {spark} END",
        )
    for name in ("lpad", "rpad"):
        small = f"CASE WHEN {{1}} <= {LENGTH_MAX} THEN CASE WHEN {{1}} <= 0 THEN "
        _add(
            name,
            (TEXT, INT4),
            TEXT,
            lambda a, n, name=name: _pad(a, n, " ", name),
            small + f"nvl2({{0}}, '', NULL) ELSE {name}({{0}}, {{1}}, ' ') END END",
            fails=True,
        )
        _add(
            name,
            (TEXT, INT4, TEXT),
            TEXT,
            lambda a, n, c, name=name: _pad(a, n, c, name),
            small + "nvl2({0}, nvl2({2}, '', NULL), NULL) WHEN {2} = '' THEN substring({0}, 1, {1})"
            f" ELSE {name}({{0}}, {{1}}, {{2}}) END END",
            fails=True,
        )


def _trim(text: str, characters: str, front: bool, back: bool) -> str:
    if not characters:
        return text
    text = text.lstrip(characters) if front else text
    return text.rstrip(characters) if back else text


def _pad(text: str, length: int, fill: str, side: str) -> str:
    if length > LENGTH_MAX:
        raise _too_long()
    missing = max(length, 0) - len(text)
    if missing <= 0 or not fill:
        return text[: max(length, 0)]
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if side == "lpad" else text + padding


def _split_part(text: str, glue: str, number: int) -> str:
    if number == 0:
        raise Failure("22023", "field position must not be zero")
    parts = text.split(glue) if glue else [text]
    index = number - 1 if number > 0 else number + len(parts)
    return parts[index] if 0 <= index < len(parts) else ""


def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(new) > len(old):
        look_at_value(len(text) + text.count(old) * (len(new) - len(old)))  # few characters may become very many
    return text.replace(old, new)


def _concatenated(one: Any, other: Any) -> Any:
    look_at_value(len(one) + len(other))
    return one + other


def _initcap(text: str) -> str:
    return re.sub(r"[^\W_]+", lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def _changes() -> None:
    _add("lower", (TEXT,), TEXT, str.lower, "lower({0})")
    _add("upper", (TEXT,), TEXT, str.upper, "upper({0})")
    _add(
        "initcap",
        (TEXT,),
        TEXT,
        _initcap,
        "array_join(transform(regexp_extract_all({0}, '([\\\\p{{L}}\\\\p{{N}}]+|[^\\\\p{{L}}\\\\p{{N}}]+)', 1),"
        " w -> concat(upper(substring(w, 1, 1)), lower(substring(w, 2)))), '')",
    )
    _add(
        "replace",
        (TEXT, TEXT, TEXT),
        TEXT,
        _replace,
        "replace({0}, {1}, {2})",
    )
    _add("translate", (TEXT, TEXT, TEXT), TEXT, _translate, "translate({0}, {1}, {2})")
    guarded = f"CASE WHEN octet_length({{0}}) * cast({{1}} as bigint) <= {LENGTH_MAX} THEN "
    _add("repeat", (TEXT, INT4), TEXT, _repeat, guarded + "repeat({0}, greatest({1}, 0)) END", fails=True)
    _add("reverse", (TEXT,), TEXT, lambda a: a[::-1], "reverse({0})")
    _add("starts_with", (TEXT, TEXT), BOOLEAN, str.startswith, "startswith({0}, {1})")
    _add("^@", (TEXT, TEXT), BOOLEAN, str.startswith, "startswith({0}, {1})", word="starts")
    _add("normalize", (TEXT,), TEXT, _normalized, not_on_spark("normalize"))
    _add("normalize", (TEXT, TEXT), TEXT, _normalized, not_on_spark("normalize"), fails=True)


def _normalized(text: str, form: str = "NFC") -> str:
    if form.upper() not in ("NFC", "NFD", "NFKC", "NFKD"):
        raise Failure("22023", f"invalid normalization form: {form}")
    return unicodedata.normalize(form.upper(), text)  # type: ignore[arg-type]


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return text.translate(table)


def _sizes() -> None:
    for name in ("length", "char_length", "character_length"):
        _add(name, (TEXT,), INT4, len, "length({0})")
    _add("length", (BYTEA,), INT4, len, "octet_length({0})")
    _add("octet_length", (TEXT,), INT4, lambda a: len(a.encode()), "octet_length({0})")
    _add("octet_length", (BYTEA,), INT4, len, "octet_length({0})")
    _add("bit_length", (TEXT,), INT4, lambda a: 8 * len(a.encode()), "bit_length({0})")


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


def _codes() -> None:
    _add("ascii", (TEXT,), INT4, lambda a: ord(a[0]) if a else 0, "ascii({0})")
    valid = "c.a BETWEEN 1 AND 55295 OR c.a BETWEEN 57344 AND 1114111"
    _add(
        "chr",
        (INT4,),
        TEXT,
        _chr,
        let(f"CASE WHEN {valid} THEN decode(unhex(lpad(hex(c.a), 8, '0')), 'UTF-32') END", "{0}", name="c"),
        fails=True,
    )
    _add("md5", (TEXT,), TEXT, lambda a: hashlib.md5(a.encode()).hexdigest(), "md5({0})")
    _add("md5", (BYTEA,), TEXT, lambda a: hashlib.md5(a).hexdigest(), "md5({0})")
    for bits in (224, 256, 384, 512):
        digest = getattr(hashlib, f"sha{bits}")
        _add(f"sha{bits}", (BYTEA,), BYTEA, lambda a, d=digest: d(a).digest(), f"unhex(sha2({{0}}, {bits}))")
    _add("to_hex", (INT4,), TEXT, _digits("x", 32), "lower(hex({0} & 4294967295L))")
    _add("to_hex", (INT8,), TEXT, _digits("x", 64), "lower(hex({0}))")
    for name, letter, base in (("to_bin", "b", 2), ("to_oct", "o", 8)):
        for of, bits in ((INT4, 32), (INT8, 64)):
            spark = f"lower(conv(hex({'{0} & 4294967295L' if bits == 32 else '{0}'}), 16, {base}))"
            _add(name, (of,), TEXT, _digits(letter, bits), spark)
    keywords = ", ".join(f"'{word}'" for word in sorted(KEYWORDS))
    identifier = (
        f"CASE WHEN {{0}} RLIKE '^[a-z_][a-z0-9_]*$' AND {{0}} NOT IN ({keywords})"
        " THEN {0} ELSE concat('\"', replace({0}, '\"', '\"\"'), '\"') END"
    )
    _add("quote_ident", (TEXT,), TEXT, quote_identifier, identifier)
    for of in ELEMENTS:
        _add("quote_literal", (of,), TEXT, partial(_quoted, of=of), _quoted_sql)
        _add(
            "quote_nullable",
            (of,),
            TEXT,
            partial(_quoted, of=of),
            lambda a, t, r: f"coalesce({_quoted_sql(a, t, r)}, 'NULL')",
            strict=False,
        )


def _quoted(value: Any, of: SqlType) -> str:
    return "NULL" if value is None else escape_literal(_shown(value, of))


def _quoted_sql(args: Sequence[str], types: Sequence[SqlType], _result: SqlType) -> str:
    text = args[0] if types[0].kind is Kind.TEXT else cast_sql(args[0], types[0], TEXT)
    return let(
        "concat(CASE WHEN contains(q.a, '\\\\') THEN 'E' ELSE '' END, '\\'',"
        " replace(replace(q.a, '\\'', '\\'\\''), '\\\\', '\\\\\\\\'), '\\'')",
        text,
        name="q",
    )


def quote_identifier(name: str) -> str:
    """In quotes, unless it reads as the same without them."""
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


def _shown(value: Any, of: SqlType) -> str:
    """What a cast to text gives."""
    if of.kind is Kind.BOOLEAN:
        return "true" if value else "false"
    return str(value) if of is TEXT else untyped_text(value, of)


def _joins() -> None:
    pair = (TEXT, TEXT)
    _add("||", pair, TEXT, _concatenated, "concat({0}, {1})", word="concat_text")
    _add("||", (BYTEA, BYTEA), BYTEA, _concatenated, "concat({0}, {1})", word="concat_bytea")
    for of in ELEMENTS:
        if of is TEXT:
            continue
        _add(
            "||",
            (TEXT, of),
            TEXT,
            lambda a, b, of=of: a + _shown(b, of),
            lambda a, t, r: f"concat({a[0]}, {cast_sql(a[1], t[1], TEXT)})",
            word="concat_text",
        )
        _add(
            "||",
            (of, TEXT),
            TEXT,
            lambda a, b, of=of: _shown(a, of) + b,
            lambda a, t, r: f"concat({cast_sql(a[0], t[0], TEXT)}, {a[1]})",
            word="concat_text",
        )
    # Their arguments go through text_of first.
    _add(
        "concat",
        (ANY,),
        TEXT,
        lambda *args: "".join(each for each in args if each is not None),
        lambda a, t, r: f"concat_ws('', {', '.join(a)})" if a else "''",
        strict=False,
        variadic=True,
    )
    _add(
        "concat_ws",
        (TEXT, ANY),
        TEXT,
        lambda glue, *args: None if glue is None else glue.join(each for each in args if each is not None),
        "concat_ws({args})",
        strict=False,
        variadic=True,
    )
    _add("format", (TEXT, ANY), TEXT, _format, not_on_spark("format"), strict=False, fails=True, variadic=True)


_parts()
_changes()
_sizes()
_codes()
_joins()
