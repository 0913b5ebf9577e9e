"""Keys followed down through steps that many others share."""

from __future__ import annotations

from everview.compute.delta.program import Source
from everview.compute.delta.trace import trace
from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Column, Scalar
from everview.compute.ir.types import INT4

SCHEMA = (INT4, INT4)


def leaf(get: ir.Get, key: tuple[Scalar, ...]) -> list[Source] | None:
    return [Source(get.id, key)]


def test_a_shared_step_is_followed_once() -> None:
    """There are as many ways down as two to the number of steps."""
    steps: dict[str, ir.Relation] = {}
    below = ir.Get("input", SCHEMA)
    for number in range(60):
        other = ir.Project(below, (1, 0)) if number % 2 else ir.Negate(below)
        steps[f"step{number}"] = ir.Union((below, other))
        below = ir.Get(f"step{number}", SCHEMA)
    found = trace(below, (Column(0, INT4),), steps, leaf)
    assert found is not None and len(found) == 2
    assert set(found) == {Source("input", (Column(index, INT4),)) for index in (0, 1)}
