"""Linear operators: Δf(X) = f(ΔX). The time is one more column, or two for moments, which they carry along."""

from __future__ import annotations

from everview.compute.ir import relation as ir
from everview.compute.ir.parts import with_scalars
from everview.compute.ir.relation import Relation, with_inputs
from everview.compute.ir.scalar import shift


def delta(operator: Relation, change: Relation, front: int) -> Relation:
    """The operator over the change of its input, whose rows have `front` columns of times in front."""
    if isinstance(operator, ir.Project):
        return ir.Project(change, (*range(front), *(index + front for index in operator.columns)))
    return with_inputs(with_scalars(operator, lambda scalar: shift(scalar, front)), (change,))
