"""`unique_lets`: every Let of a plan with a name of its own, so that a name means one thing wherever it stands.

A Let that nobody reads is left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from everview.compute.ir.relation import Get, Let, Relation, inputs_of, walk, with_inputs


def unique_lets(plan: Relation) -> Relation:
    return _rename(plan, {}, itertools.count())


def _rename(plan: Relation, names: Mapping[str, str], numbers: Iterator[int]) -> Relation:
    if isinstance(plan, Get):
        return Get(names[plan.id], plan.schema) if plan.id in names else plan
    if isinstance(plan, Let):
        name = f"let:{next(numbers)}"
        body = _rename(plan.body, {**names, plan.id: name}, numbers)
        if not any(isinstance(each, Get) and each.id == name for each in walk(body)):
            return body  # what nobody reads is not evaluated, and cannot fail
        return Let(name, _rename(plan.value, names, numbers), body)
    below = inputs_of(plan)
    return with_inputs(plan, tuple(_rename(each, names, numbers) for each in below)) if below else plan
