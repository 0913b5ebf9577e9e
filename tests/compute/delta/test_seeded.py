"""The oracle by seed: many random views, quickly; what hypothesis shrinks, in `test_exact`, is found here in bulk."""

from __future__ import annotations

import random
from itertools import pairwise
from unittest.mock import patch

from everview.compute import tick
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, walk
from everview.compute.ir.show import show
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import rows_of
from tests.compute.choosing import Seeded
from tests.compute.delta.history import Maintained, Updates, contents, has_constant_filter
from tests.compute.plans import Sample, sample

TIMES = 8


def history_of(rng: random.Random, chosen: Sample) -> dict[str, Updates]:
    """Rows that are born, die and come back."""
    schemas = {each.id: each.schema for each in walk(chosen.plan) if isinstance(each, Get)}
    result: dict[str, Updates] = {}
    for name, rows in chosen.inputs.items():
        updates = []
        for row, count in rows_of(list(rows.items()), schemas[name]).items() if name in schemas else ():
            alive, last = False, rng.randint(0, TIMES - 1)
            for _ in range(rng.randint(1, 3)):
                updates.append((row, last, -count if alive else count))
                alive, last = not alive, rng.randint(last, TIMES - 1)
        result[name] = updates
    return result


def check(seed: int) -> tuple[int, int]:
    """One view; gives its statements and its ticks in which something failed."""
    rng = random.Random(seed)
    chosen = sample(Seeded(rng), fails=rng.random() < 0.5)
    history = history_of(rng, chosen)
    plan = optimize(chosen.plan) if rng.random() < 0.5 or has_constant_filter(chosen.plan) else chosen.plan
    if has_constant_filter(plan):
        return 0, 0  # one that stays, behind a predicate that may fail
    view = Maintained(plan)
    cuts = sorted(rng.sample(range(1, TIMES), rng.randint(0, 4)))
    limits = {"KEYS_FROM_ALL_MAX": rng.choice([0, 0, 3, 1000]), "NETTED_ROWS_MIN": rng.choice([0, 1000])}
    limits |= {"WHOLE_ROWS_MAX": rng.choice([-1, 3, 1000]), "WHOLE_ROWS_A_KEY_MAX": rng.choice([-1, 2])}
    with patch.multiple(tick, **limits):  # type: ignore[call-overload]
        for lower, upper in pairwise([0, *cuts, TIMES]):
            view.tick(history, lower, upper)
    for time in range(TIMES):
        expected = evaluate(plan, {name: contents(updates, time) for name, updates in history.items()})
        shown = f"seed {seed} at {time}\n{show(plan)}"
        assert contents(view.output, time) == expected.rows, shown
        assert bool(contents(view.errors, time)) == bool(expected.errors), shown
    return view.statements, view.careful


def test_maintained_is_recomputed_at_every_time(rng: random.Random, long_forms: bool) -> None:
    first = rng.randrange(1 << 32)
    results = [check(first + number) for number in range(3000 if long_forms else 250)]
    assert sum(statements for statements, _ in results) > len(results), "the views do something"
    assert sum(careful for _, careful in results) > 0, "some rows fail"
