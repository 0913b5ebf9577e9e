"""Branches: a relation as passes over the rows of others, and nothing else.

Of several relations that are passes over the same rows, each row can be computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.compute.functions.lookup import can_fail
from everview.compute.ir.relation import Get, Negate, Relation, Union, all_columns
from everview.compute.ir.scalar import Column, Scalar, substitute, walk
from everview.compute.optimize.row_by_row import fused

_BRANCHES_MAX = 8  # of a step; with more, it is one to itself
_PARTS_MAX = 200  # of the scalars of a branch: what is written twice is longer each time


@dataclass(frozen=True, slots=True)
class Branch:
    """These outputs for each row of a step or input that passes; if `negated`, with the opposite multiplicity."""

    base: str
    outputs: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...] = ()
    negated: bool = False


def branches_of(names: Iterable[str], relations: Mapping[str, Relation]) -> dict[str, list[Branch]]:
    """The branches of each of these steps, over other steps or over inputs."""
    known: dict[str, list[Branch]] = {}
    return {name: _branches_of(name, relations, known) for name in names}


def _branches_of(name: str, relations: Mapping[str, Relation], known: dict[str, list[Branch]]) -> list[Branch]:
    """The branches of a step; a step that is more than passes over rows has one branch, over itself."""
    if name not in known:
        found = _branches(relations[name], relations, known)
        if found is None or len(found) > _BRANCHES_MAX or any(_parts(each) > _PARTS_MAX for each in found):
            found = [Branch(name, all_columns(relations[name]))]
        known[name] = found
    return known[name]


def _branches(plan: Relation, relations: Mapping[str, Relation], known: dict[str, list[Branch]]) -> list[Branch] | None:
    match plan:
        case Get(id) if id in relations:
            return _branches_of(id, relations, known)
        case Get(id):
            return [Branch(id, all_columns(plan))]
        case Union(inputs):
            parts = [_branches(each, relations, known) for each in inputs]
            return None if any(part is None for part in parts) else [each for part in parts if part for each in part]
        case Negate(input):
            below = _branches(input, relations, known)
            return below and [Branch(b.base, b.outputs, b.predicates, not b.negated) for b in below]
        case _:
            rows = fused(plan)
            below = None if rows.input is plan else _branches(rows.input, relations, known)
            if below is None or (rows.predicates and any(can_fail(each) for b in below for each in b.outputs)):
                return None  # a filter must not keep a failure before it from being seen
            return [
                Branch(
                    b.base,
                    tuple(substitute(each, b.outputs) for each in rows.outputs),
                    b.predicates + tuple(substitute(each, b.outputs) for each in rows.predicates),
                    b.negated,
                )
                for b in below
            ]


def _parts(branch: Branch) -> int:
    """How long its scalars are; columns and literals by themselves cost nothing."""
    return sum(1 for each in branch.outputs + branch.predicates if not isinstance(each, Column) for _ in walk(each))
