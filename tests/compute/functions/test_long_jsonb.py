"""Long jsonb values: the same as short ones, in linear time, with an end when it is asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from everview.compute.allowance import Allowance, OutOfMemory, allowing
from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.functions import json_value
from everview.compute.functions.contract import Failure
from everview.compute.functions.jsonb import FUNCTIONS

COUNT = 200_000
TEXTS = [f"t{number}" for number in range(COUNT)]
NUMBERS = f"[{', '.join(map(str, range(COUNT)))}]"
NAMES = f"[{', '.join(map(json_value.quote, TEXTS))}]"
OBJECT = json_value.canonical(f"{{{', '.join(f'{json_value.quote(each)}: 1' for each in TEXTS)}}}")
LISTS = f"[{'[], ' * COUNT}1]"


def function(key: str) -> Callable[..., Any]:
    return next(each for each in FUNCTIONS if each.key == key).evaluate


def random_json(rng: random.Random, depth: int = 0) -> str:
    blank = rng.choice(["", "", " ", "\n\t\r "])
    if depth > 3 or rng.random() < 0.4:
        return blank + rng.choice(
            ["1", "-0.50e2", "01", '"a\\u00e9"', '"', '"\\ud83d"', "true", "null", "nul", "NaN", ""]
        )
    inside = [random_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    if rng.random() < 0.5:
        return f"{blank}[{','.join(inside)}{blank}]"
    return f"{blank}{{{','.join(f'{blank}{rng.choice(NAMED)}{blank}:{each}' for each in inside)}{blank}}}"


NAMED = ['"a"', '"b"', '"c"', "a"]


def canonical(text: str) -> str:
    try:
        return json_value.canonical(text)
    except Failure as failure:
        return f"{failure.sqlstate} {failure.message}"


def test_long_values_are_read_as_short_ones(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [random_json(rng) + rng.choice(["", "", " ", "x", "]"]) for _ in range(5_000)]
    texts += [
        "[",
        "{",
        "[1",
        '{"a"',
        '{"a":',
        '{"a":1',
        '{"a":1,',
        "[1,",
        "[1,]",
        '{"a":1,}',
        "[}",
        "{]",
        "[1}",
        '{"a":1]',
    ]
    short = [canonical(text) for text in texts]
    assert sum(each[0] in '[{"' for each in short) > 500
    monkeypatch.setattr(json_value, "_LONG", -1)
    assert [canonical(text) for text in texts] == short


@pytest.mark.parametrize(
    ("key", "args", "expected"),
    [
        ("json_contains(jsonb,jsonb)", (NUMBERS, NUMBERS), True),
        ("json_contains(jsonb,jsonb)", (NUMBERS, f"[{COUNT}, 1]"), False),
        ("json_contains(jsonb,jsonb)", (NUMBERS, "1"), True),
        ("json_within(jsonb,jsonb)", (NAMES, NAMES), True),
        ("json_contains(jsonb,jsonb)", ("[true, null, [1]]", "[1]"), False),
        ("json_contains(jsonb,jsonb)", ("[true, null, [1, 2]]", "[null, [1.0], true]"), True),
        ("json_has(jsonb,text)", (NAMES, "t7"), True),
        ("json_has(jsonb,text)", (OBJECT, "u7"), False),
        ("json_has(jsonb,text)", ('"a"', "a"), True),
        ("json_has(jsonb,text)", ("[1, null]", "1"), False),
        ("json_has_all(jsonb,text[])", (NAMES, TEXTS), True),
        ("json_has_any(jsonb,text[])", (NAMES, [None, *map(str.upper, TEXTS)]), False),
        ("json_has_all(jsonb,text[])", (OBJECT, TEXTS), True),
        ("json_without(jsonb,text[])", (NAMES, TEXTS), "[]"),
        ("json_without(jsonb,text[])", (OBJECT, [None, *TEXTS]), "{}"),
        ("jsonb_pretty(jsonb)", ('{"a": [1, {}], "b": {"c": []}}',), None),
    ],
)
def test_parts_are_looked_up(key: str, args: tuple[Any, ...], expected: Any) -> None:
    """None of these ended while each part was compared with each other."""
    if expected is None:
        expected = (
            '{\n    "a": [\n        1,\n        {\n        }\n    ],\n    "b": {\n        "c": [\n        ]\n    }\n}'
        )
    assert function(key)(*args) == expected


@pytest.mark.parametrize(
    ("key", "args"),
    [
        ("json_contains(jsonb,jsonb)", (LISTS, LISTS)),
        ("json_contains(jsonb,jsonb)", (NUMBERS, NUMBERS)),
        ("json_has_all(jsonb,text[])", (NAMES, TEXTS)),
        ("json_without(jsonb,text[])", (OBJECT, TEXTS)),
        ("jsonb_pretty(jsonb)", (LISTS,)),
        ("jsonb_array_length(jsonb)", (LISTS,)),
    ],
)
def test_long_values_end_when_they_are_to(key: str, args: tuple[Any, ...]) -> None:
    with cancelable(Cancellation(lambda: True)), pytest.raises(Ended):
        function(key)(*args)


def test_memory_of_long_values_is_limited() -> None:
    with allowing(Allowance(memory_bytes=16 << 20)):
        assert function("jsonb_array_length(jsonb)")(f"[{'[], ' * 40_000}1]") == 40_001
        with pytest.raises(OutOfMemory):
            function("jsonb_array_length(jsonb)")(LISTS)
        with pytest.raises(OutOfMemory):  # a thousand blanks in front of each
            function("jsonb_pretty(jsonb)")(f"{'[' * 250}{'1, ' * 10_000}1{']' * 250}")
