"""LIKE and regular expressions.

On Spark a LIKE pattern or a regular expression that is a literal is translated when it is rendered, if Java cannot take
long over it; any other is matched in Python. One from a column is too, for it may be none, which ends a job of Spark's.
A group that may take no part in a match cannot be told from an empty one there. Where no match is NULL, that cannot say
that the expression is none, or was given up: the binder puts `A_PATTERN` in front.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from everview.compute.functions import regex
from everview.compute.functions.contract import Arguments, Failure
from everview.compute.functions.family import Family
from everview.compute.functions.like import Pattern, java, like
from everview.compute.functions.naming import TEXT_ARRAY
from everview.compute.functions.spark_sql import NotOnSpark, Renderer, let, unquoted
from everview.compute.ir.types import BOOLEAN, INT4, TEXT
from everview.quoting import spark_literal

FUNCTIONS = Family()
_add = FUNCTIONS.add

_JAVA_MAX = 200  # characters of a pattern: Java's time is that of the text times the pattern, and nothing ends it


def _like_sql(*, negated: bool, ignore_case: bool) -> Renderer:
    def rendered(args: Sequence[str], _types: Any, _result: Any) -> str:
        text, escape = unquoted(args[1]), unquoted(args[2]) if len(args) > 2 else "\\"
        if text is None or escape is None:
            raise NotOnSpark("LIKE with a pattern from a column")
        try:
            found = _like_literal(args[0], like(text, escape, ignore_case=ignore_case))
        except Failure:
            return "cast(NULL as boolean)"
        return f"(NOT {found})" if negated else found

    return rendered


def _like_literal(value: str, pattern: Pattern) -> str:
    if pattern.ignore_case:
        value = f"lower(translate({value}, 'İΣ', 'iσ'))"
    texts = [segment.literal for segment in pattern.segments]
    match texts:
        case [str(whole)]:
            return f"({value} = {spark_literal(whole)})"
        case [str(start), ""]:
            return f"startswith({value}, {spark_literal(start)})"
        case ["", str(end)]:
            return f"endswith({value}, {spark_literal(end)})"
        case ["", str(inside), ""]:
            return f"contains({value}, {spark_literal(inside)})"
    if sum(segment.length for segment in pattern.segments) > _JAVA_MAX or len(texts) > _JAVA_MAX:
        raise NotOnSpark("LIKE with a pattern that Java could take too long over")
    return f"({value} RLIKE {spark_literal(java(pattern))})"


def _is_pattern(given: Arguments) -> bool:
    """Whether the pattern is there to be looked at, and is one."""
    _, pattern, *escape = given.values
    if not all(isinstance(each, str) for each in (pattern, *escape)):
        return False
    try:
        like(pattern, *escape)
    except Failure:
        return False
    return True


def _likes() -> None:
    for symbol, word, negated, ignore_case in (
        ("~~", "like", False, False),
        ("!~~", "not_like", True, False),
        ("~~*", "ilike", False, True),
        ("!~~*", "not_ilike", True, True),
    ):

        def evaluate(
            text: str, pattern: str, escape: str = "\\", negated: bool = negated, ignore_case: bool = ignore_case
        ) -> bool:
            return like(pattern, escape, ignore_case=ignore_case).matches(text) is not negated

        spark = _like_sql(negated=negated, ignore_case=ignore_case)
        _add(symbol, (TEXT, TEXT), BOOLEAN, evaluate, spark, word=word, fails=True, safe=_is_pattern)
        _add(symbol, (TEXT, TEXT, TEXT), BOOLEAN, evaluate, spark, word=word, fails=True, safe=_is_pattern)


def java_pattern(rendered: str, flags: str = "") -> str:
    """The pattern in Java's syntax; it must be a literal."""
    literal = unquoted(rendered)
    if literal is None:
        raise NotOnSpark("a regular expression from a column")
    try:
        translated = regex.java(literal, flags)
    except Failure as failure:
        raise NotOnSpark(failure.message) from None
    if translated is None:
        raise NotOnSpark("a regular expression that Java could take too long over")
    return spark_literal(translated)


def flags_of(args: Sequence[str], place: int) -> str:
    """The options of a regular expression, which must be a literal."""
    if len(args) <= place:
        return ""
    flags = unquoted(args[place])
    if flags is None:
        raise NotOnSpark("a regular expression with options from a column")
    return flags


def is_regex(options: int) -> Callable[[Arguments], bool]:
    """Whether the regular expression, and its options from this place on, are there to be looked at, and are such."""

    def looked_at(given: Arguments) -> bool:
        texts = (given.values[1], *given.values[options:])
        try:
            return all(isinstance(each, str) for each in texts) and not regex.compiled(*texts).may_give_up
        except Failure:
            return False

    return looked_at


def _matches() -> None:
    for symbol, word, flags, wanted in (
        ("~", "matches", "", True),
        ("!~", "not_matches", "", False),
        ("~*", "imatches", "i", True),
        ("!~*", "not_imatches", "i", False),
    ):

        def evaluate(text: str, pattern: str, flags: str = flags, wanted: bool = wanted) -> bool:
            return bool(regex.compiled(pattern, flags).search(text)) is wanted

        def rendered(args: Sequence[str], _t: Any, _r: Any, flags: str = flags, wanted: bool = wanted) -> str:
            found = f"({args[0]} RLIKE {java_pattern(args[1], flags)})"
            return found if wanted else f"(NOT {found})"

        _add(symbol, (TEXT, TEXT), BOOLEAN, evaluate, rendered, word=word, fails=True, safe=is_regex(2))
    for args in ((TEXT, TEXT), (TEXT, TEXT, TEXT)):
        _add(
            "regexp_like",
            args,
            BOOLEAN,
            lambda a, p, f="": bool(regex.compiled(p, f).search(a)),
            lambda a, t, r: f"({a[0]} RLIKE {java_pattern(a[1], flags_of(a, 2))})",
            fails=True,
            safe=is_regex(2),
        )
        _add("regexp_match", args, TEXT_ARRAY, lambda a, p, f="": _captured(regex.compiled(p, f).search(a)), _match_sql)
    _add(
        "regexp_count",
        (TEXT, TEXT),
        INT4,
        lambda a, p: sum(1 for _ in regex.compiled(p).matches(a)),
        lambda a, t, r: f"regexp_count({a[0]}, {java_pattern(a[1])})",
        fails=True,
        safe=is_regex(2),
    )
    _add("substring", (TEXT, TEXT), TEXT, _substring, _substring_sql, word="substring_regex")


def _captured(match: regex.Match | None) -> list[str | None] | None:
    return None if match is None else match.captured


ALL_CAPTURED = "all matches of a regular expression"


def all_captured(text: str, pattern: str, flags: str = "") -> list[list[str | None]]:
    """What the groups of each match captured; of the first match without the option g."""
    found = regex.compiled(pattern, flags).matches(text)
    return [match.captured for match in (found if "g" in flags else islice(found, 1))]


def folded(text: str, pattern: str, flags: str = "") -> list[str | None]:
    """The same in one array, behind the number of groups of each match."""
    width = max(regex.groups(pattern, flags), 1)
    return [str(width), *(each for captured in all_captured(text, pattern, flags) for each in captured)]


def captures(rendered: str) -> int:
    """How many groups a literal pattern has; refused where some may take no part in a match."""
    literal = unquoted(rendered)
    if literal is None:
        raise NotOnSpark("the groups of a regular expression from a column")
    count = regex.groups(literal)
    if (count and re.search(r"\|", literal)) or re.search(r"\)[?*]|\)\{0", literal):
        raise NotOnSpark("a regular expression with groups that may take no part")
    return count


def _match_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    count, pattern = captures(args[1]), java_pattern(args[1], flags_of(args, 2))
    found = ", ".join(f"regexp_extract(x.a, {pattern}, {group})" for group in (range(1, count + 1) if count else [0]))
    return let(f"CASE WHEN x.a RLIKE {pattern} THEN array({found}) END", args[0], name="x")


def _substring(text: str, pattern: str) -> str | None:
    match = regex.compiled(pattern).search(text)
    return None if match is None else match.captured[0]


def _substring_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    group = 1 if captures(args[1]) else 0
    pattern = java_pattern(args[1])
    return let(f"CASE WHEN x.a RLIKE {pattern} THEN regexp_extract(x.a, {pattern}, {group}) END", args[0], name="x")


def _replace(text: str, pattern: str, new: str, flags: str = "") -> str:
    return regex.compiled(pattern, flags).replaced(text, new, number=0 if "g" in flags else 1)


def _replace_sql(args: Sequence[str], _types: Any, _result: Any) -> str:
    flags, new = flags_of(args, 3), unquoted(args[2])
    pattern = java_pattern(args[1], flags.replace("g", ""))
    if new is None:
        raise NotOnSpark("regexp_replace with a replacement from a column")
    by = spark_literal(regex.java_replacement(new, regex.groups(unquoted(args[1]) or "", flags)))
    if "g" in flags:
        return f"regexp_replace({args[0]}, {pattern}, {by})"
    # Spark replaces all: here only inside the first match.
    first = f"regexp_extract(x.a, {pattern}, 0)"
    place = f"regexp_instr(x.a, {pattern})"
    body = (
        f"concat(substring(x.a, 1, y.b - 1), regexp_replace(y.a, {pattern}, {by}), substring(x.a, y.b + length(y.a)))"
    )
    return let(let(f"CASE WHEN y.b > 0 THEN {body} ELSE x.a END", first, place, name="y"), args[0], name="x")


def split(text: str, pattern: str, flags: str = "") -> list[str]:
    """The parts between matches; an empty match splits between two characters."""
    if "g" in flags:
        raise Failure("22023", 'splitting by a regular expression does not support the "global" option')
    parts, start = [], 0
    for match in regex.compiled(pattern, flags).matches(text):
        if match.end == match.start and match.start in (start, len(text)):
            continue
        if match.end == 0:
            continue
        parts.append(text[start : match.start])
        start = match.end
    return [*parts, text[start:]]


def _is_for_splitting(given: Arguments) -> bool:
    return is_regex(2)(given) and not any("g" in each for each in given.values[2:])


def split_sql(args: Sequence[str]) -> str:
    """The same in Spark, which also splits at an empty match at the end."""
    flags = flags_of(args, 2)
    if "g" in flags:
        return "cast(NULL as array<string>)"
    text, pattern = args[0], java_pattern(args[1], flags)
    at_end = "v.a <> '' AND v.a RLIKE concat('\\\\z(?:', v.b, ')')"
    body = f"CASE WHEN {at_end} THEN slice(v.c, 1, size(v.c) - 1) ELSE v.c END"
    return let(body, text, pattern, f"split({text}, {pattern})")


_likes()
_matches()
_add("regexp_replace", (TEXT, TEXT, TEXT), TEXT, _replace, _replace_sql, fails=True, safe=is_regex(3))
_add("regexp_replace", (TEXT, TEXT, TEXT, TEXT), TEXT, _replace, _replace_sql, fails=True, safe=is_regex(3))
for _args in ((TEXT, TEXT), (TEXT, TEXT, TEXT)):
    _add(
        "regexp_split_to_array",
        _args,
        TEXT_ARRAY,
        split,
        lambda a, t, r: split_sql(a),
        fails=True,
        safe=_is_for_splitting,
    )
