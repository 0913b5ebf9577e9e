"""Rewriting plans."""

from __future__ import annotations

import pytest

from everview.compute.cancel import Cancellation, Ended, cancelable
from everview.compute.ir.relation import Relation, Union, transform
from tests.compute.terms import get


def test_a_rewrite_of_a_large_plan_ends_when_nobody_wants_it() -> None:
    """A pass over three hundred nested queries took seconds, which neither a timeout nor a cancel ended."""
    seen: list[Relation] = []

    def change(relation: Relation) -> Relation:
        seen.append(relation)
        return relation

    with cancelable(Cancellation(lambda: len(seen) == 3)), pytest.raises(Ended):
        transform(Union(tuple(get() for _ in range(100))), change)
    assert len(seen) == 3
