"""Every pass, and all of them together, keep the meaning of random plans over random collections."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from everview.compute.engine.local.evaluate import evaluate
from everview.compute.ir.relation import Join, Relation, types, walk
from everview.compute.optimize.demand import demand
from everview.compute.optimize.failing import any_can_fail
from everview.compute.optimize.flatten_joins import flatten_joins
from everview.compute.optimize.fold_constants import fold_constants
from everview.compute.optimize.fuse import fuse
from everview.compute.optimize.inline_lets import inline_lets
from everview.compute.optimize.join_keys import join_keys
from everview.compute.optimize.order_joins import order_joins
from everview.compute.optimize.pipeline import PASSES, optimize
from everview.compute.optimize.push_filters import push_filters
from everview.compute.optimize.remove_empty import remove_empty
from everview.compute.optimize.simplify_distinct import simplify_distinct
from tests.compute.plans import Sample, samples

Pass = Callable[[Relation], Relation]

# Those that fail exactly where the plan did, and those after which there may be fewer errors, but never more.
EXACT = (fold_constants, fuse, inline_lets, flatten_joins, order_joins, simplify_distinct)
REFINING = (push_filters, remove_empty, demand, join_keys)

quick = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def test_every_pass_is_tested() -> None:
    assert set(PASSES) == {*EXACT, *REFINING}


def check(sample: Sample, rewrite: Pass, *, exact: bool) -> None:
    """The rewritten plan has the rows of the plan, unless that fails."""
    before = evaluate(sample.plan, sample.inputs)
    plan = rewrite(sample.plan)
    assert types(plan) == types(sample.plan)
    after = evaluate(plan, sample.inputs)
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


@pytest.mark.parametrize("rewrite", EXACT, ids=lambda each: each.__name__)
@quick
@given(sample=samples())
def test_a_pass_keeps_rows_and_errors(rewrite: Pass, sample: Sample) -> None:
    check(sample, rewrite, exact=True)


@pytest.mark.parametrize("rewrite", REFINING, ids=lambda each: each.__name__)
@quick
@given(sample=samples())
def test_a_pass_keeps_rows_where_nothing_fails(rewrite: Pass, sample: Sample) -> None:
    check(sample, rewrite, exact=False)


@quick
@given(sample=samples())
def test_the_optimizer_keeps_rows_where_nothing_fails(sample: Sample) -> None:
    check(sample, optimize, exact=False)


@quick
@given(sample=samples(fails=False))
def test_the_optimizer_keeps_the_rows_of_plans_in_which_only_aggregates_fail(sample: Sample) -> None:
    check(sample, optimize, exact=False)


@quick
@given(sample=samples(fails=False))
def test_the_optimizer_comes_to_an_end(sample: Sample) -> None:
    plan = optimize(sample.plan)
    assert optimize(plan) == plan
