"""The oracle: random plans over random histories, maintained tick by tick, equal recomputation at every time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, walk
from everview.compute.ir.show import show
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import rows_of
from tests.compute.delta.history import Maintained, Updates, contents, has_constant_filter
from tests.compute.plans import Sample, samples

TIMES = 8

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
relaxed = settings(suppress_health_check=SLOW)


@st.composite
def histories(draw: Any, sample: Sample) -> dict[str, Updates]:
    """Every row of the sample is born at some time; some die later; some come back."""
    schemas = {each.id: each.schema for each in walk(sample.plan) if isinstance(each, Get)}
    result: dict[str, Updates] = {}
    for name, rows in sample.inputs.items():
        updates: list[tuple[Any, int, int]] = []
        for row, count in rows_of(list(rows.items()), schemas[name]).items() if name in schemas else ():
            alive, last = False, draw(st.integers(0, TIMES - 1))
            for _ in range(draw(st.integers(1, 3))):
                updates.append((row, last, -count if alive else count))
                alive, last = not alive, draw(st.integers(last, TIMES - 1))
        result[name] = updates
    return result


def check(sample: Sample, history: dict[str, Updates], cuts: list[int], *, optimized: bool) -> None:
    plan = optimize(sample.plan) if optimized or has_constant_filter(sample.plan) else sample.plan
    assume(not has_constant_filter(plan))  # one that stays, behind a predicate that may fail
    expected = [
        evaluate(plan, {name: contents(updates, time) for name, updates in history.items()}) for time in range(TIMES)
    ]
    view = Maintained(plan)
    note(show(plan))
    for lower, upper in pairwise([0, *cuts, TIMES]):
        view.tick(history, lower, upper)
    for time in range(TIMES):
        assert contents(view.output, time) == expected[time].rows, f"at {time}"
        assert bool(contents(view.errors, time)) == bool(expected[time].errors), f"errors at {time}"


@relaxed
@given(st.data(), st.booleans(), st.booleans())
def test_maintained_is_recomputed_at_every_time(data: st.DataObject, fails: bool, optimized: bool) -> None:
    sample = data.draw(samples(fails=fails))
    history = data.draw(histories(sample))
    cuts = sorted(data.draw(st.sets(st.integers(1, TIMES - 1), max_size=4)))
    check(sample, history, cuts, optimized=optimized)
