"""LIKE: the same matches whatever computes them, and never more time than the text and the pattern are long."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import profiles
from everview.compute.functions import regex
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
    text = "".join(rng.choice("aab\\%é") for _ in range(rng.randrange(8)))
    return text, "".join(rng.choice("aab%%_\\é") for _ in range(rng.randrange(9))).rstrip("\\")


def everything(pattern: str) -> str:
    """A pattern without escapes as an expression that tries all ways."""
    return "".join({"%": ".*", "_": "."}.get(character, re.escape(character)) for character in pattern)


def test_the_first_place_is_as_good_as_any(rng: random.Random) -> None:
    for _ in range(20_000):
        text, pattern = drawn(rng)
        found = re.fullmatch(regex.like(pattern, ""), text, re.DOTALL)
        assert bool(found) == bool(re.fullmatch(everything(pattern), text, re.DOTALL)), (text, pattern)


def test_patterns_of_columns_and_literals_match_alike_on_spark(spark: SparkSession, rng: random.Random) -> None:
    engine = SparkEngine(profiles(spark).small)
    rows = {drawn(rng): 1 for _ in range(400)}
    patterns = ["%a%é%", "a_%b%_a", "%%", "_%_%\\%%", "a%b%é%", ""]
    literals = ", ".join(f"a LIKE '{each}', a ILIKE '{each.upper()}'" for each in patterns)
    relation = plan(
        f"SELECT a, p, a LIKE p, a ILIKE upper(p), a NOT LIKE p ESCAPE '', {literals} FROM t", Texts()
    ).relation
    expected = evaluate(relation, {"t": rows})
    assert not expected.errors
    result = engine.run(relation, {"t": rows_to_arrow(rows, [TEXT, TEXT])})
    assert rows_from_arrow(result, types(relation)) == expected.rows


def test_a_hostile_pattern_ends_at_once() -> None:
    """Each of these took longer than anyone waits, and held up everybody."""
    text, pattern = "a" * 5_000, "%a" * 200 + "%b"
    assert not re.fullmatch(regex.like(pattern), text, re.DOTALL)
    assert not re.fullmatch(regex.like("%_a" * 100 + "%b_"), text, re.DOTALL)


def test_a_hostile_pattern_ends_at_once_on_spark(spark: SparkSession) -> None:
    engine = SparkEngine(profiles(spark).small)
    rows = {("a" * 5_000, "%a" * 200 + "%b"): 1}
    relation = plan(f"SELECT a LIKE p, a LIKE '{'%a' * 200}%b' FROM t", Texts()).relation
    result = engine.run(relation, {"t": rows_to_arrow(rows, [TEXT, TEXT])})
    assert rows_from_arrow(result, types(relation)) == {(False, False): 1}
