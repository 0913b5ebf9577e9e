"""Any values at all, from columns: what is said not to fail does not, and nothing ends a job of Spark's.

A view whose tick ends with an error of Spark's makes no more progress, whatever is done to the row that is to blame. So
a failing call must be NULL, and one that is said not to fail must have an answer, for the least and greatest values of
each type, and for texts that are no pattern, no number, no time zone and no JSON.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.input import from_text
from everview.compute.functions.registry import FUNCTIONS
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Kind, SqlType
from tests.compute.expressions import EXCLUDED_KEYS, EXCLUDED_NAMES, GUARDED
from tests.compute.functions.on_spark import Samples
from tests.compute.functions.samples import Case, pool, result_of, variants
from tests.compute.functions.test_safe import LIMITS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS, CALLS_ON_SPARK = 100, 40
TEXTS = (
    *("[", "(", "\\", "a\\", "%", "*", "a**", "a{1", "(?P<a", "\\1", "(a)", "gi", "q"),  # patterns and options
    *("Mars/X", "UTC", "century", "day", "YYYY-MM-DD", "2000-13-01", "2024-01-01", "1 month"),
    *("{", "{1,2}", "{a,b", '{"a":', "$.a[*]", "$..", "0x", "1e400", "-", "€", "😀"),
)


def awkward(function: Function, rng: random.Random, count: int) -> list[Case]:
    """So many calls with the same types."""
    types = rng.choice(list(variants(function)))
    pools = [list(values(each, rng)) for each in types]
    if not types or not all(pools):
        return []
    result, made = result_of(function, types), []
    for _ in range(count):
        given = tuple(map(rng.choice, pools))
        made.append(Case(function, types, tuple(map(repr, given)), given, result))
    return made


def values(sql_type: SqlType, rng: random.Random) -> Iterator[Any]:
    """The least, the greatest and the usual."""
    if sql_type.element is not None:
        items = [*values(sql_type.element, rng), None]
        yield from ([], [None], *([rng.choice(items) for _ in range(rng.randint(1, 4))] for _ in range(4)))
        return
    yield from LIMITS.get(sql_type, ())
    texts = [*(pool(sql_type)), *(TEXTS if sql_type.kind in (Kind.TEXT, Kind.VARCHAR) else ())]
    for text in texts:
        if text is not None:
            try:
                yield from_text(text, sql_type)
            except Failure:  # not of this type
                continue


def tried() -> list[Function]:
    return [
        each
        for each in FUNCTIONS.values()
        if not each.volatile and each.name not in EXCLUDED_NAMES and each.key not in EXCLUDED_KEYS
    ]


def test_in_python(rng: random.Random) -> None:
    wrong = []
    for function in tried():
        for case in awkward(function, rng, CALLS):
            try:
                found = case.evaluate()
            except Exception as error:
                wrong.append(f"{function.key} {case.texts}: {error!r}")
                break
            if isinstance(found, Failure) and not function.fails and not function.key.startswith(GUARDED):
                wrong.append(f"{function.key} {case.texts}: {found.message}")
                break
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:60])


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_on_spark(rng: random.Random, session: SparkSession, long_forms: bool) -> None:
    samples = Samples()
    functions = tried()
    for function in functions if long_forms else rng.sample(functions, len(functions) // 8):
        calls = [each for each in awkward(function, rng, CALLS_ON_SPARK) if not _is_unanswerable(each)]
        if calls:
            samples.add_columns(function, calls)
    wrong = samples.compared(session)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:60])


def _is_unanswerable(case: Case) -> bool:
    """Whether it fails behind a guard, and is not called then: fields of infinities are NULL, and must have a name."""
    if case.function.name in ("extract", "date_part") and isinstance(case.values[-1], Infinite):
        return True
    return case.function.key.startswith(GUARDED) and isinstance(case.evaluate(), Failure)
