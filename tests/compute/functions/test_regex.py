"""Regular expressions: what they match, in which time, and what is refused."""

from __future__ import annotations

import random
import re
import threading

import pytest

from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.functions import patterns, regex, regex_steps
from everview.compute.functions.contract import Failure
from everview.compute.functions.regex_syntax import parse
from everview.compute.functions.spark_sql import NotOnSpark
from everview.quoting import spark_literal


def found(pattern: str, text: str, flags: str = "") -> list[list[str | None]]:
    return [match.captured for match in regex.compiled(pattern, flags).matches(text)]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 100_000 + "b"),
        ("((a*)*)*b", "a" * 10_000 + "!"),
        ("(a|aa)+$", "a" * 100_000 + "!"),
        ("(.*)(.*)(.*)(.*)(.*)x$", "a" * 10_000),
        ("(x+x+)+y", "x" * 100_000),
    ],
)
def test_a_pattern_takes_time_in_proportion_to_the_text(pattern: str, text: str) -> None:
    assert regex.compiled(pattern).search(text) is None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"(\w+) \1", "say hello hello", [["hello"]]),
        (r"foo(?=bar)", "foobar foo", [["foo"]]),
        (r"foo(?!bar)", "foobar foox", [["foo"]]),
        (r"(?<=a+)b", "caab b", [["b"]]),
        (r"(?<!a)b", "ab cb", [["b"]]),
        (r"\mfoo\M", "xfoo foo.", [["foo"]]),
        (r"[[:<:]]é\w", "xéa éb", [["éb"]]),
        (r"\yé", "é xé", [["é"]]),
        (r"[^\W_]+", "_é1_", [["é1"]]),
        (r"\w+", "naïve café", [["naïve"], ["café"]]),
        (r"[[:alpha:]]+\d", "ab1", [["ab1"]]),
        (r"(a)|(b)", "ab", [["a", None], [None, "b"]]),
        (r"a|ab", "ab", [["a"]]),
        (r"b*", "abb", [[""], ["bb"], [""]]),
        (r".*?", "ab", [[""], [""], [""]]),
        (r"(?i)É", "xé", [["é"]]),
        (r"***=a.b", "axb a.b", [["a.b"]]),
        (r"[]a-]+", "x]a-", [["]a-"]]),
        (r"\x41.", "AB", [["AB"]]),
        (r"a{2}b{1,}", "aabb", [["aabb"]]),
        (r"a{,2}", "a{,2}", [["a{,2}"]]),
        ("a b # comment", "ab", [["ab"]]),
    ],
)
def test_what_matches(pattern: str, text: str, expected: list[list[str | None]]) -> None:
    assert found(pattern, text, "x" if "#" in pattern else "") == expected


def test_lines() -> None:
    assert found("^.$", "a\nb\n", "n") == [["a"], ["b"]]
    assert found("[^x]+", "ab\ncd", "n") == [["ab"], ["cd"]]
    assert found("a.b$", "a\nb", "") == [["a\nb"]]


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "[", "[z-a]", "[[:foo:]]", "a**", "*", "a{1001}", "a{2,1}", "a{999999999999}", "(a{1000}){1000}"),
        *("(?P<n>a)", "(?>a)", "a*+", r"\1", r"(\1)", r"\q", "^*", "(?=a)*", "(?z)a", "(" * 200 + ")" * 200, "\\"),
        *(r"(?=\1)(a)", "(?<x>a)", "[[.ab.]]", "x" * 70_000),
    ],
)
def test_what_is_no_pattern_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(Failure, match="invalid regular expression") as raised:
        regex.compiled(pattern)
    assert raised.value.sqlstate == "2201B"


def test_a_search_with_references_back_is_given_up() -> None:
    with pytest.raises(Failure, match="steps") as raised:
        regex.compiled(r"^(a+)+\1b$").search("a" * 40)
    assert raised.value.sqlstate == "54000"
    assert regex.compiled(r"^(a+)+\1b$").may_give_up
    assert not regex.compiled("^(a+)+$").may_give_up


@pytest.mark.parametrize("pattern", [r"^(a+)+\1b$", r"(x|y)*x(x|y){500}z"])
def test_a_long_search_ends_when_canceled(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_steps, "STEPS_MAX", 10**12)
    monkeypatch.setattr(regex, "_LONG", 0)
    wish = Cancellation()
    timer = threading.Timer(0.2, wish.ask)
    timer.start()
    text = "a" * 60 if "a" in pattern else "xyyxyxxyxy" * 3_000_000
    with cancelable(wish), pytest.raises(Ended):
        while True:  # until it is asked for
            regex.compiled(pattern).search(text)


def drawn(draw: random.Random, depth: int = 0) -> str:
    kind = draw.random()
    if depth > 3 or kind < 0.35:
        return draw.choice(["a", "b", "c", ".", "[ab]", "[^a]", "\\w", "é", "\\W", "[a-c]", "_", "[^\\Wb]"])
    if kind < 0.55:
        return drawn(draw, depth + 1) + drawn(draw, depth + 1)
    if kind < 0.7:
        return f"({drawn(draw, depth + 1)}|{drawn(draw, depth + 1)})"
    if kind < 0.8:
        return f"({drawn(draw, depth + 1)})"
    if kind < 0.9:
        return draw.choice(["(^|a)", "($|b)", "^", "$"]) + drawn(draw, depth + 1)
    return draw.choice(["a", "b", ".", "[bé]"]) + draw.choice(["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}"])


def test_both_matchers_find_what_python_does() -> None:
    draw = random.Random(5)
    for _ in range(3_000):
        pattern = drawn(draw)
        text = "".join(draw.choice("abcé_1 ") for _ in range(draw.randint(0, 8)))
        match = re.compile(pattern.replace("$", "\\Z"), re.DOTALL).search(text)
        expected = None if match is None else [match.span(group) for group in range(match.re.groups + 1)]
        searched = regex.compiled(pattern).search(text)
        assert (searched and searched.spans) == expected, (pattern, text)
        assert regex_steps.Program(parse(pattern, "")).search(text, 0) == expected, (pattern, text)


@pytest.mark.parametrize(
    "pattern", ["^(a+)+$", "a*b*", "(a|b)*", r"(a)\1", "a(?=b)", r"(\w+)@(\w+)", "(ab)+", "[^\\Wb]"]
)
def test_java_is_not_given_what_it_could_take_long_over(pattern: str) -> None:
    with pytest.raises(NotOnSpark):
        patterns.java_pattern(spark_literal(pattern))


@pytest.mark.parametrize("pattern", ["^a+b?$", "a.*b", r"^\w+ \d+$", "(foo|bar)", "a{3}", r"\mfoo"])
def test_java_gets_the_others(pattern: str) -> None:
    assert patterns.java_pattern(spark_literal(pattern))


def test_replacements() -> None:
    assert regex.compiled("(o)(b)").replaced("foobar", "<\\2\\1\\&\\\\\\3>", number=1) == "fo<boob\\>ar"
    assert regex.compiled("é").replaced("éaé", "x") == "xax"
    assert regex.java_replacement("a\\1$2\\\\\\10", 1) == "a$1\\$2\\\\$1\\0"
