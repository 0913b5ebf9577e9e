"""The oracle with temporal filters anywhere in random views: exact at every time, whatever comes, goes and expires.

Views compare `mz_now()` with what rows say under joins, outer joins, subqueries, aggregates, windows and other temporal
filters. Ticks hold many times, and some only pass expirations. Each view has a seed, which a failure names.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, Relation, Temporal, walk
from everview.compute.ir.show import show
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import Row, rows_of
from tests.compute.choosing import Choose, Drawn, Seeded, flip
from tests.compute.delta.history import Maintained, Updates, contents, has_constant_filter
from tests.compute.delta.test_exact import SLOW
from tests.compute.plans import Sample, sample
from tests.compute.temporal import at_time, at_time_in_full, sunk_at_time

TIMES = 10


@dataclass
class Seen:
    """What happened in a check, so that a run can tell that it looked at what it is about."""

    filters: int = 0
    failed: int = 0
    expired: int = 0  # ticks without data in which the view changed


def lives(choose: Choose, drawn: Sample) -> dict[str, Updates]:
    """Rows that come, go and come back, all the time or only at first: later ticks then pass expirations alone."""
    schemas = {each.id: each.schema for each in walk(drawn.plan) if isinstance(each, Get)}
    last = choose.pick((TIMES - 1, TIMES - 1, 3, 0))
    result: dict[str, Updates] = {}
    for name, rows in drawn.inputs.items():
        updates: list[tuple[Row, int, int]] = []
        for row, count in rows_of(list(rows.items()), schemas[name]).items() if name in schemas else ():
            alive, time = False, choose.integer(0, last)
            for _ in range(choose.integer(1, 3)):
                updates.append((row, time, -count if alive else count))
                alive, time = not alive, choose.integer(time, last)
        result[name] = updates
    return result


def check(choose: Choose, seen: Seen) -> None:
    """One view, maintained and recomputed."""
    drawn = sample(choose, fails=flip(choose), temporal=True)
    history = lives(choose, drawn)
    plan = optimize(drawn.plan) if flip(choose) or has_constant_filter(drawn.plan) else drawn.plan
    if has_constant_filter(plan):
        return  # one that stays, behind a predicate that may fail
    cuts = sorted({choose.integer(1, TIMES - 1) for _ in range(choose.integer(0, 8))})
    view = Maintained(plan)
    for lower, upper in pairwise([0, *cuts, TIMES]):
        before, data = len(view.output), any(lower <= time < upper for each in history.values() for _, time, _ in each)
        view.tick(history, lower, upper)
        seen.expired += not data and lower > 0 and len(view.output) > before
    seen.filters += sum(isinstance(each, Temporal) for each in walk(view.view.plan))
    seen.failed += bool(view.errors)
    for time in range(TIMES):
        compare(view, time, drawn.plan, plan, history)


def compare(view: Maintained, time: int, written: Relation, plan: Relation, history: dict[str, Updates]) -> None:
    """The view at a time beside the accounts of it from scratch: see `tests.compute.temporal`."""
    inputs = {name: contents(updates, time) for name, updates in history.items()}
    shown = f"at {time}\n{show(plan)}\n{history}"
    found, failed = contents(view.output, time), bool(contents(view.errors, time))
    full = evaluate(sunk_at_time(plan, time), inputs)
    assert (found, failed) == (full.rows, bool(full.errors)), shown
    above = evaluate(at_time_in_full(plan, time), inputs)
    assert above.errors or not failed, f"an error that filters where they are written do not have {shown}"
    assert failed or above.errors or found == above.rows, f"as written {shown}"
    asked = evaluate(at_time(plan, time), inputs)
    assert failed or asked.errors or found == asked.rows, f"asked {shown}"
    if written is not plan:
        first = evaluate(at_time(written, time), inputs)
        assert failed or first.errors or found == first.rows, f"not optimized {shown}"


def test_maintained_is_recomputed_at_every_time(rng: random.Random, long_forms: bool) -> None:
    first, seen = rng.randrange(1 << 32), Seen()
    count = 2500 if long_forms else 200
    for number in range(count):
        try:
            check(Seeded(random.Random(first + number)), seen)
        except AssertionError as error:
            raise AssertionError(f"seed {first + number} {error}") from error
    assert seen.filters > count / 4 and seen.failed, f"nothing to see: {seen}"
    assert seen.expired or not long_forms, f"no tick has passed expirations alone: {seen}"


@settings(max_examples=60, suppress_health_check=SLOW)
@given(st.data())
def test_the_smallest_view_that_is_not(data: st.DataObject) -> None:
    """The same with choices that can shrink."""
    check(Drawn(data.draw), Seen())
