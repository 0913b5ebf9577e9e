"""LIKE and regular expressions.

On Spark a LIKE pattern or a regular expression that is a literal is translated when it is rendered, if Java cannot take
long over it; any other is matched in Python. One from a column is too, for it may be none, which ends a job of Spark's.
A group that may take no part in a match cannot be told from an empty one there. Where no match is NULL, that cannot say
that the expression is none, or was given up: the binder puts `A_PATTERN` in front.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from everview.compute.functions import kernels, regex
from everview.compute.functions.contract import Arguments, Failure
from everview.compute.functions.like import Pattern, java, like
from everview.compute.functions.signatures import Family
from everview.compute.functions.spark_sql import NotOnSpark, Renderer, let, unquoted
from everview.quoting import spark_literal

FUNCTIONS = Family()
define = FUNCTIONS.define

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


def _like(text: str, pattern: str, escape: str = "\\", *, negated: bool, ignore_case: bool) -> bool:
    return like(pattern, escape, ignore_case=ignore_case).matches(text) is not negated


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
    """Whether the regular expression, and its options from this argument on, are literals that cannot fail."""

    def looked_at(given: Arguments) -> bool:
        texts = (given.values[1], *given.values[options:])
        try:
            return all(isinstance(each, str) for each in texts) and not regex.compiled(*texts).may_give_up
        except Failure:
            return False

    return looked_at


def _matches(text: str, pattern: str, flags: str = "", *, negated: bool = False) -> bool:
    return bool(regex.compiled(pattern, flags).search(text)) is not negated


def _matches_sql(*, flags: str = "", negated: bool = False) -> Renderer:
    def rendered(args: Sequence[str], _types: Any, _result: Any) -> str:
        found = f"({args[0]} RLIKE {java_pattern(args[1], flags or flags_of(args, 2))})"
        return f"(NOT {found})" if negated else found

    return rendered


ALL_CAPTURED = "all matches of a regular expression"


def all_captured(text: str, pattern: str, flags: str = "") -> list[list[str | None]]:
    """The texts of the groups of each match; without the option g, of the first match."""
    found = regex.compiled(pattern, flags).matches(text)
    return [match.captured for match in (found if "g" in flags else islice(found, 1))]


def folded(text: str, pattern: str, flags: str = "") -> list[str | None]:
    """The texts of all groups of all matches in one array, behind the number of groups."""
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


def _match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    match = regex.compiled(pattern, flags).search(text)
    return None if match is None else match.captured


def _substring(text: str, pattern: str) -> str | None:
    captured = _match(text, pattern)
    return captured[0] if captured else None


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


def split_sql(args: Sequence[str]) -> str:
    """`split` in Spark SQL, where an empty match at the end splits too."""
    flags = flags_of(args, 2)
    if "g" in flags:
        return "cast(NULL as array<string>)"
    text, pattern = args[0], java_pattern(args[1], flags)
    at_end = "v.a <> '' AND v.a RLIKE concat('\\\\z(?:', v.b, ')')"
    body = f"CASE WHEN {at_end} THEN slice(v.c, 1, size(v.c) - 1) ELSE v.c END"
    return let(body, text, pattern, f"split({text}, {pattern})")


# Regular expressions from a place on, and the match of a number. On Spark these are called in Python, where an empty
# pattern, a start behind the end and lookbehinds mean the same.


def check_places(name: str, start: int = 1, number: int = 1, group: int = 0, end: int = 0) -> None:
    """Raise unless these are what the function can be asked for."""
    least = 0 if name == "regexp_replace" else 1
    for title, value, low in (("start", start, 1), ("n", number, least), ("subexpr", group, 0)):
        if value < low:
            raise Failure("22023", f'invalid value for parameter "{title}": {value}')
    if end not in (0, 1):
        raise Failure("22023", f'invalid value for parameter "endoption": {end}')


def _matches_from(text: str, pattern: str, start: int, flags: str, name: str) -> Iterator[regex.Match]:
    if "g" in flags and name != "regexp_replace":
        raise Failure("22023", f'{name}() does not support the "global" option')
    compiled = regex.compiled(pattern, flags)
    return compiled.matches(text, start - 1) if start <= len(text) + 1 else iter(())


class WantedMatch(NamedTuple):
    """Which match from which place on, by which options, and which group of it, 0 being the whole."""

    start: int = 1
    number: int = 1
    flags: str = ""
    group: int = 0


def _nth(text: str, pattern: str, wanted: WantedMatch, name: str) -> regex.Match | None:
    """The match that is wanted, if it has such a group and the group takes part."""
    matches = _matches_from(text, pattern, wanted.start, wanted.flags, name)
    found = next(islice(matches, wanted.number - 1, None), None)
    takes_part = found is not None and wanted.group < len(found.spans) and found.spans[wanted.group][0] >= 0
    return found if takes_part else None


def _regexp_substr(text: str, pattern: str, *more: Any) -> str | None:
    wanted = WantedMatch(*more)
    check_places("regexp_substr", wanted.start, wanted.number, wanted.group)
    found = _nth(text, pattern, wanted, "regexp_substr")
    return None if found is None else found[wanted.group]


def _regexp_instr(text: str, pattern: str, *more: Any) -> int:
    """The place where the match begins, or ends if a third number is 1; 0 without a match."""
    wanted, end = WantedMatch(*more[:2], *more[3:]), more[2] if len(more) > 2 else 0
    check_places("regexp_instr", wanted.start, wanted.number, wanted.group, end)
    found = _nth(text, pattern, wanted, "regexp_instr")
    return 0 if found is None else found.spans[wanted.group][end] + 1


def _regexp_count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    check_places("regexp_count", start)
    return sum(1 for _ in _matches_from(text, pattern, start, flags, "regexp_count"))


def _replace_nth(text: str, pattern: str, new: str, *more: Any) -> str:
    """The match of that number is replaced, or with 0 every one."""
    wanted = WantedMatch(*more)
    check_places("regexp_replace", wanted.start, wanted.number)
    if wanted.start > len(text) + 1:
        return text
    return regex.compiled(pattern, wanted.flags).replaced(text, new, start=wanted.start - 1, number=wanted.number)


for _symbol, _negated, _ignore_case in (
    ("~~ like", False, False),
    ("!~~ not_like", True, False),
    ("~~* ilike", False, True),
    ("!~~* not_ilike", True, True),
):
    _evaluate = partial(_like, negated=_negated, ignore_case=_ignore_case)
    _sql = _like_sql(negated=_negated, ignore_case=_ignore_case)
    _over_arrow = None if _ignore_case else kernels.like(negated=_negated)
    _flags_of: Any = {"fails": True, "safe": _is_pattern, "arrow": _over_arrow}
    define(f"{_symbol}(text, text [, text]) -> bool", _evaluate, _sql, **_flags_of)
for _symbol, _flags, _negated in (
    ("~ matches", "", False),
    ("!~ not_matches", "", True),
    ("~* imatches", "i", False),
    ("!~* not_imatches", "i", True),
):
    _evaluate = partial(_matches, flags=_flags, negated=_negated)
    _sql = _matches_sql(flags=_flags, negated=_negated)
    define(f"{_symbol}(text, text) -> bool", _evaluate, _sql, fails=True, safe=is_regex(2))
define("regexp_like(text, text [, text]) -> bool", _matches, _matches_sql(), fails=True, safe=is_regex(2))
define("regexp_match(text, text [, text]) -> text[]", _match, _match_sql)
_count_sql: Renderer = lambda a, t, r: f"regexp_count({a[0]}, {java_pattern(a[1])})"
define("regexp_count(text, text) -> int4", _regexp_count, _count_sql, fails=True, safe=is_regex(2))
define("regexp_count(text, text, int4 [, text]) -> int4", _regexp_count, fails=True)
define("substring as substring_regex(text, text) -> text", _substring, _substring_sql)
define("regexp_replace(text, text, text [, text]) -> text", _replace, _replace_sql, fails=True, safe=is_regex(3))
define("regexp_replace(text, text, text, int4 [, int4 [, text]]) -> text", _replace_nth, fails=True)
_splits = lambda given: is_regex(2)(given) and not any("g" in each for each in given.values[2:])
_split_to_array: Renderer = lambda args, types, result: split_sql(args)
define("regexp_split_to_array(text, text [, text]) -> text[]", split, _split_to_array, fails=True, safe=_splits)
# It does not `fail`, since NULL is an answer: the binder sees to what it can be asked for.
define("regexp_substr(text, text [, int4 [, int4 [, text [, int4]]]]) -> text", _regexp_substr)
define("regexp_instr(text, text [, int4 [, int4 [, int4 [, text [, int4]]]]]) -> int4", _regexp_instr, fails=True)
