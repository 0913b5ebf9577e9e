"""The passes in their order, repeated until nothing changes.

The contract of a pass: where the plan that it is given makes no errors, the plan that it gives makes none either, and
has the same rows with the same multiplicities. Errors may become fewer, for a row or a column that nobody needs is not
computed, as in PostgreSQL; `join_keys` says when there may be one that was not there.
"""

from __future__ import annotations

from collections.abc import Callable

from everview.compute.cancel import check_wanted
from everview.compute.ir.relation import Relation
from everview.compute.optimize.flatten_joins import flatten_joins
from everview.compute.optimize.fold_constants import fold_constants
from everview.compute.optimize.fuse import fuse
from everview.compute.optimize.join_keys import join_keys
from everview.compute.optimize.lets import inline_lets
from everview.compute.optimize.limit_windows import limit_windows
from everview.compute.optimize.order_joins import order_joins
from everview.compute.optimize.prune_columns import prune_columns
from everview.compute.optimize.push_filters import push_filters
from everview.compute.optimize.remove_empty import remove_empty
from everview.compute.optimize.simplify_distinct import simplify_distinct

Pass = Callable[[Relation], Relation]

PASSES: tuple[Pass, ...] = (
    fold_constants,
    inline_lets,
    fuse,
    flatten_joins,
    join_keys,
    push_filters,
    limit_windows,
    remove_empty,
    simplify_distinct,
    prune_columns,
    fuse,
    order_joins,
    fuse,
)

ROUNDS_MAX = 10


def optimize(plan: Relation) -> Relation:
    """The plan after all passes, until a round changes nothing or there have been enough."""
    for _ in range(ROUNDS_MAX):
        before = plan
        for rewrite in PASSES:
            check_wanted()
            plan = rewrite(plan)
        if plan == before:
            break
    return plan
