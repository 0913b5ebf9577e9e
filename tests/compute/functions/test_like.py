"""LIKE: the same matches whatever computes them, and never more time than the text and the pattern are long."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import profiles
from everview.compute.functions import like as like_module
from everview.compute.functions.contract import Failure
from everview.compute.functions.like import like
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import types
from everview.compute.ir.types import TEXT
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Texts:
    """A catalog of one table of texts and patterns."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection("t", ("a", "p"), (TEXT, TEXT)) if path[-1] == "t" else None

    def names(self) -> list[str]:
        return ["t"]


def drawn(rng: random.Random) -> tuple[str, str]:
    text = "".join(rng.choice("aab\\%é\nΣİ") for _ in range(rng.randrange(8)))
    return text, "".join(rng.choice("aab%%_\\é\nσi") for _ in range(rng.randrange(9))).rstrip("\\")


def tokens(pattern: str, escape: str) -> list[tuple[str, bool]]:
    """The characters of a pattern, and whether each stands for itself."""
    found, place = [], 0
    while place < len(pattern):
        escaped = pattern[place] == escape
        place += escaped
        found.append((pattern[place], escaped or pattern[place] not in "%_"))
        place += 1
    return found


def naive(text: str, wanted: list[tuple[str, bool]]) -> bool:
    """What the standard says, tried in all ways."""
    reached = {0}  # places of the text up to which the pattern can match
    for character, itself in wanted:
        if itself:
            reached = {place + 1 for place in reached if text[place : place + 1] == character}
        elif character == "_":
            reached = {place + 1 for place in reached if place < len(text)}
        else:
            reached = set(range(min(reached, default=len(text) + 1), len(text) + 1))
    return len(text) in reached


def one_by_one(text: str) -> str:
    """Letters in lower case as C's `towlower` and so PostgreSQL do it."""
    return "".join({"Σ": "σ", "İ": "i"}.get(each) or each.lower() for each in text)


def test_random_patterns_match_as_the_standard_says(rng: random.Random) -> None:
    for _ in range(20_000):
        text, pattern = drawn(rng)
        escape = rng.choice(["", "\\", "a", "%", "_"])
        wanted = tokens(pattern, escape) if not dangles(pattern, escape) else None
        if wanted is None:
            with pytest.raises(Failure, match="must not end with escape"):
                like(pattern, escape)
            continue
        assert like(pattern, escape).matches(text) == naive(text, wanted), (text, pattern, escape)
        folded = [(one_by_one(character), itself) for character, itself in wanted]
        alike = like(pattern, escape, ignore_case=True).matches(text)
        assert alike == naive(one_by_one(text), folded), (text, pattern, escape)


def dangles(pattern: str, escape: str) -> bool:
    place = 0
    while place < len(pattern) and escape:
        if pattern[place] == escape:
            place += 1
            if place == len(pattern):
                return True
        place += 1
    return False


def test_long_texts_are_searched_in_slices_and_by_bits(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are so low that every way of searching is gone."""
    monkeypatch.setattr(like_module, "_SLICE", 3)
    monkeypatch.setattr(like_module, "_WRONG_PARTS_MAX", 0)
    monkeypatch.setattr(like_module, "_WINDOW_MIN", 5)
    monkeypatch.setattr(like_module, "_CHECK_EVERY", 2)
    for _ in range(3_000):
        text = "".join(rng.choice("aaaab") for _ in range(rng.randrange(60)))
        pattern = "".join(rng.choice("aaaab__%") for _ in range(rng.randrange(50)))
        assert like(pattern).matches(text) == naive(text, tokens(pattern, "\\")), (text, pattern)
        pieces = [text[at : at + rng.randrange(20)] for at in sorted(rng.randrange(60) for _ in range(3))]
        pattern = "%".join("".join(rng.choice([each, "_"]) for each in piece) for piece in pieces)
        assert like(f"%{pattern}%").matches(text) == naive(text, tokens(f"%{pattern}%", "\\")), (text, pattern)


def test_patterns_of_columns_and_literals_match_alike_on_spark(spark: SparkSession, rng: random.Random) -> None:
    engine = SparkEngine(profiles(spark).small)
    rows = {drawn(rng): 1 for _ in range(400)}
    patterns = ["%a%é%", "a_%b%_a", "%%", "_%_%\\%%", "a%b%é%", "", "i_%", "%σ", "_\n%", "%\\_a%"]
    literals = ", ".join(f"a LIKE '{each}', a ILIKE '{each.upper()}'" for each in patterns)
    relation = plan(
        f"SELECT a, p, a LIKE p, a ILIKE upper(p), a NOT LIKE p ESCAPE '', {literals} FROM t", Texts()
    ).relation
    expected = evaluate(relation, {"t": rows})
    assert not expected.errors
    result = engine.run(relation, {"t": rows_to_arrow(rows, [TEXT, TEXT])})
    assert rows_from_arrow(result, types(relation)) == expected.rows


@pytest.mark.parametrize("ignore_case", [False, True])
def test_a_hostile_pattern_ends_at_once(ignore_case: bool) -> None:
    """Each of these took longer than anyone waits, and held up everybody."""
    long = "a" * 200_000

    def matches(text: str, pattern: str) -> bool:
        return like(pattern, ignore_case=ignore_case).matches(text)

    assert not matches(long[:5_000], "%a" * 200 + "%b")
    assert not matches(long[:5_000], "%_a" * 100 + "%b_")
    assert not matches(long, "%" + "a" * 100_000 + "b%")
    assert not matches(long, "%" + "a_" * 20_000 + "b%")
    assert matches(long, "%a" * 200_000)
    assert not matches(long, "%a" * 200_001)
    assert not matches(long, "%_a" * 100_001)
    assert matches(long, "%_a" * 100_000)


def test_a_search_can_be_canceled_in_the_middle() -> None:
    """Whatever takes long asks now and then whether it is still wanted."""
    text = "a" * 3_000_000
    for pattern in ("%" + "a" * 1_000 + "b%", "%" + "a_" * 1_000 + "b%", "%b_" * 10_000, "%a" * 100_000):
        asked = 0

        def due() -> bool:
            nonlocal asked
            asked += 1
            return asked > 1

        with pytest.raises(Ended), cancelable(Cancellation(due)):
            like(pattern).matches(text)


def test_a_hostile_pattern_ends_at_once_on_spark(spark: SparkSession) -> None:
    engine = SparkEngine(profiles(spark).small)
    rows = {("a" * 5_000, "%a" * 200 + "%b"): 1}
    relation = plan(f"SELECT a LIKE p, a LIKE '{'%a' * 200}%b' FROM t", Texts()).relation
    result = engine.run(relation, {"t": rows_to_arrow(rows, [TEXT, TEXT])})
    assert rows_from_arrow(result, types(relation)) == {(False, False): 1}
