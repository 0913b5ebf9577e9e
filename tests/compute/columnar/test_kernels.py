"""Kernels of functions give what the functions give in Python, for the least, greatest and oddest values."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from everview.compute.columnar.batch import Batch
from everview.compute.columnar.scalars import Expressions, TooManyByRow
from everview.compute.functions.columns import SomeRowFails
from everview.compute.functions.contract import Failure, Function
from everview.compute.functions.registry import FUNCTIONS
from everview.compute.interpreter.scalars import compile_value
from everview.compute.ir.scalar import Call, Column, Literal, Scalar
from everview.compute.ir.types import SqlType
from everview.compute.rows.arrow import values_from_arrow, values_to_arrow
from everview.compute.rows.collection import canonical
from tests.compute.functions.samples import result_of, variants
from tests.compute.functions.test_awkward import values

TIMES, TIMES_LONG, ROWS = 8, 150, 30
WITH_KERNELS = [each for each in FUNCTIONS.values() if each.arrow is not None]
NO_ANSWER = "no answer"


def test_over_columns_as_in_python(rng: random.Random, long_forms: bool) -> None:
    outcomes = Counter[str]()
    for function in WITH_KERNELS:
        for _ in range(TIMES_LONG if long_forms else TIMES):
            outcomes[outcome(function, rng)] += 1
    assert outcomes["answered"] > 0.4 * outcomes.total(), outcomes


def outcome(function: Function, rng: random.Random) -> str:
    """What became of a call over columns, and perhaps a literal."""
    types = rng.choice(list(variants(function)))
    pools = [[*drawn(each, rng), None] for each in types]
    rows = [tuple(map(rng.choice, pools)) for _ in range(ROWS)]
    args: list[Scalar] = [Column(place, each) for place, each in enumerate(types)]
    if len(types) > 1 and rng.random() < 0.5:
        place = rng.randrange(len(types))
        args[place] = Literal(rng.choice(pools[place]), types[place])
    call = Call(function.key, tuple(args), result_of(function, types))
    evaluate = compile_value(call)
    try:
        expected = [evaluate(row) for row in rows]
    except Failure:
        expected = None
    found = by_kernel(call, rows, types)
    if found == NO_ANSWER:
        return NO_ANSWER
    assert (found is None) == (expected is None), f"{call} over {rows}: {found}, not {expected}"
    if found is None or expected is None:
        return "failed"
    assert list(map(repr, found)) == list(map(repr, expected)), f"{call} over {rows}"
    return "answered"


def drawn(sql_type: SqlType, rng: random.Random) -> list[Any]:
    """Values of a type: all kinds, or a few, for of all kinds nearly always one fails."""
    settle = canonical(sql_type)
    found = [settle(each) if settle else each for each in values(sql_type, rng)]
    return found if rng.random() < 0.3 else rng.sample(found, min(3, len(found)))


def by_kernel(call: Call, rows: Sequence[tuple[Any, ...]], types: Sequence[SqlType]) -> Any:
    """The values that the kernel gives; None if it says that some row fails."""
    columns = [values_to_arrow([row[place] for row in rows], each) for place, each in enumerate(types)]
    try:
        found = Expressions(by_row_max=-1).array(call, Batch(columns, len(rows)))
    except (SomeRowFails, pa.ArrowInvalid):
        return None
    except TooManyByRow:
        return NO_ANSWER
    return values_from_arrow(pa.chunked_array([found]), call.type)
