"""Every pass, and all of them together, keep the meaning of random plans over random collections."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from everview.compute.functions.lookup import any_can_fail
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Join, Relation, types, walk
from everview.compute.optimize.flatten_joins import flatten_joins
from everview.compute.optimize.fold_constants import fold_constants
from everview.compute.optimize.fuse import fuse
from everview.compute.optimize.join_keys import join_keys
from everview.compute.optimize.lets import inline_lets
from everview.compute.optimize.limit_windows import limit_windows
from everview.compute.optimize.order_joins import order_joins
from everview.compute.optimize.pipeline import PASSES, optimize
from everview.compute.optimize.prune_columns import prune_columns
from everview.compute.optimize.push_filters import push_filters
from everview.compute.optimize.remove_empty import remove_empty
from everview.compute.optimize.simplify_distinct import simplify_distinct
from tests.compute.choosing import Seeded
from tests.compute.plans import Sample, sample, samples

Pass = Callable[[Relation], Relation]

ROWWISE = ("project", "map", "filter", "union")

# The operators that each pass is about. Those that fail exactly where the plan did:
EXACT: dict[Pass, tuple[str, ...]] = {
    fold_constants: ("map", "filter"),
    fuse: (*ROWWISE, "negate", "threshold"),
    inline_lets: ("let", "union", "join"),
    flatten_joins: ("join", "join", "project", "filter"),
    order_joins: ("join", "filter"),
    simplify_distinct: ("reduce", "topk", "threshold", "union", "negate"),
}
# And those after which there may be fewer errors, but never more:
REFINING: dict[Pass, tuple[str, ...]] = {
    push_filters: ("filter", *ROWWISE, "join", "reduce", "window", "topk", "negate", "threshold", "flat_map", "let"),
    remove_empty: ("filter", "union", "join"),
    prune_columns: ("project", "project", "map", "join", "reduce", "topk", "window", "let", "union", "threshold"),
    join_keys: ("join", "join", "filter"),
    limit_windows: ("window", "filter"),
    optimize: (),
}
SAMPLES, SAMPLES_LONG = 1_000, 20_000


def test_every_pass_is_tested() -> None:
    assert {*PASSES, optimize} == {*EXACT, *REFINING}


def check(case: Sample, rewrite: Pass, *, exact: bool) -> None:
    """The rewritten plan has the rows of the plan, unless that fails."""
    before = evaluate(case.plan, case.inputs)
    plan = rewrite(case.plan)
    assert types(plan) == types(case.plan)
    after = evaluate(plan, case.inputs)
    if exact:
        assert bool(after.errors) == bool(before.errors)
    if before.errors and not exact:
        return
    if after.errors and _has_keys_that_fail(plan):  # the exception that `join_keys` makes
        return
    assert after.rows == before.rows
    assert not after.errors or before.errors


def _has_keys_that_fail(plan: Relation) -> bool:
    joins = (each for each in walk(plan) if isinstance(each, Join))
    return any(any_can_fail(members) for join in joins for members in join.equivalences + join.nullsafe)


@pytest.mark.parametrize("rewrite", [*EXACT, *REFINING], ids=lambda each: each.__name__)
def test_a_pass_keeps_the_meaning(rewrite: Pass, rng: random.Random, long_forms: bool) -> None:
    favour = EXACT.get(rewrite) or REFINING[rewrite]
    for _ in range(SAMPLES_LONG if long_forms else SAMPLES):
        plan = sample(Seeded(rng), fails=rng.random() < 0.7, favour=favour if rng.random() < 0.8 else ())
        check(plan, rewrite, exact=rewrite in EXACT)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(plan=samples())
def test_the_optimizer_keeps_the_meaning(plan: Sample) -> None:
    check(plan, optimize, exact=False)


def test_the_optimizer_comes_to_an_end(rng: random.Random) -> None:
    for _ in range(SAMPLES):
        plan = optimize(sample(Seeded(rng)).plan)
        assert optimize(plan) == plan
