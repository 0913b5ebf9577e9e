"""Which steps make one statement: stages of a program, and which steps are worth computing once.

A statement that reads a step twice computes it twice, unless both are passes over its rows for what is wanted. That is
cheap for what is small, and another statement costs more; but a step that is heavy and read often is computed first, by
a statement of its own, and handed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from everview.compute.delta.program import Lookup, Stage
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, walk
from everview.compute.optimize.branches import branches_of

# As much work as another statement, in operators over a thousand rows: measured on two cores, in local mode.
STATEMENT_WEIGHT = 4
_HEAVY = (ir.Join, ir.Reduce, ir.TopK, ir.Window, ir.Threshold, ir.Accumulate)


def stages(
    steps: Mapping[str, Relation], lookups: Sequence[Lookup], outputs: Iterable[str], cut: Iterable[str]
) -> tuple[Stage, ...]:
    """Divide steps into stages; `cut` names steps whose results feed look-ups, `outputs` the final results."""
    first = set(cut)
    wanted = set(outputs) | first
    first |= _worth_their_own(steps, wanted, first)
    wanted |= first
    feeding: dict[str, list[Lookup]] = {}
    for lookup in lookups:
        feeding.setdefault(lookup.reading, []).append(lookup)
    named = {lookup.name: lookup for lookup in lookups}

    @cache
    def of_step(name: str) -> int:
        return max((of_table(each.id) for each in walk(steps[name]) if isinstance(each, ir.Get)), default=0)

    def of_table(name: str) -> int:
        if name in steps:
            return of_step(name) + (name in first)
        return max((of_lookup(each.name) for each in feeding.get(name, ())), default=0)

    @cache
    def of_lookup(name: str) -> int:
        return max((of_source(each.table) for each in named[name].sources), default=0)

    def of_source(table: str) -> int:
        if table in named:
            return of_lookup(table)
        return of_step(table) + 1 if table in steps else 0

    last = max((of_step(name) for name in wanted), default=0)
    return tuple(
        Stage(
            tuple(lookup for lookup in lookups if of_lookup(lookup.name) == number),
            tuple(name for name in steps if name in wanted and of_step(name) == number),
        )
        for number in range(last + 1)
    )


def _worth_their_own(steps: Mapping[str, Relation], wanted: set[str], first: set[str]) -> set[str]:
    uses = _uses(steps, wanted)
    weights: dict[str, int] = {}
    chosen: set[str] = set()
    for name, step in steps.items():
        weight = 0
        for each in walk(step):
            weight += isinstance(each, _HEAVY)
            if isinstance(each, ir.Get) and each.id in steps and each.id not in chosen and each.id not in first:
                weight += weights[each.id]
        weights[name] = weight
        if name not in first and (uses[name] - 1) * weight >= STATEMENT_WEIGHT:
            chosen.add(name)
    return chosen


def _uses(steps: Mapping[str, Relation], wanted: set[str]) -> Counter[str]:
    """How often each step is computed in a statement for all that is wanted: passes over its rows count once."""
    found = branches_of([name for name in steps if name in wanted], steps)
    uses = Counter({branch.base for branches in found.values() for branch in branches})
    for name in reversed(list(steps)):
        if uses[name]:
            uses.update(each.id for each in walk(steps[name]) if isinstance(each, ir.Get))
    return uses
