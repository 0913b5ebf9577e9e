"""Join: the product of the inputs where the members of each equivalence are equal, input after input by hashing.

Input i is joined to the product of those before it on the equivalences that have a member in both. NULL equals nothing,
not even within one input, except in the classes of `nullsafe`. A member that fails for a row puts that row's error in
the result, with its multiplicity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from everview.compute.functions.contract import Failure
from everview.compute.interpreter import limits
from everview.compute.interpreter.scalars import compile_row
from everview.compute.ir.relation import Join, arity
from everview.compute.ir.scalar import Scalar, columns_of, shift
from everview.compute.rows.collection import Errors, Result, Row, Rows, add_all, add_failure

_Keyed: TypeAlias = tuple[Row, Row, int]  # a row, the values of its equivalences, and how often it occurs


@dataclass(slots=True)
class JoinSide:
    """One input: for each equivalence the members that are over it, over its own columns."""

    start: int
    members: dict[int, list[Scalar]] = field(default_factory=dict)
    nullsafe: set[int] = field(default_factory=set)


def evaluate_join(join: Join, inputs: Sequence[Result]) -> Result:
    sides = join_sides(join)
    errors: Errors = {}
    for each in inputs:
        add_all(errors, each.errors)
    # Rows joined so far, each with the value of every equivalence in `known`, in that order. None occurs twice: none
    # does in any input.
    known: list[int] = []
    joined: list[_Keyed] = [((), (), 1)]
    for side, each in zip(sides, inputs, strict=True):
        with limits.emptied(joined), limits.emptied(keyed := _keyed(side, each.rows, errors)):
            joined = _product(joined, keyed, known, list(side.members))
        known += [index for index in side.members if index not in known]
    rows: Rows = {}
    with limits.emptied(joined), limits.emptied_if_ended(rows):
        for row, _, multiplicity in limits.paced(joined):
            rows[row] = multiplicity
    return Result(rows, errors)


def join_sides(join: Join) -> list[JoinSide]:
    ends, sides, total = [], [], 0
    for each in join.inputs:
        sides.append(JoinSide(total))
        total += arity(each)
        ends.append(total)
    for index, equivalence in enumerate(join.equivalences + join.nullsafe):
        for member in equivalence:
            first = min(columns_of(member), default=0)  # a member without columns may belong to any input
            side = sides[next((place for place, end in enumerate(ends) if first < end), 0)]
            if index >= len(join.equivalences):
                side.nullsafe.add(index)
            side.members.setdefault(index, []).append(shift(member, -side.start))
    return sides


def _keyed(side: JoinSide, rows: Rows, errors: Errors) -> list[_Keyed]:
    """The rows with the values of their equivalences; rows whose members differ or are NULL are left out."""
    groups = [compile_row(members) for members in side.members.values()]
    safe = [index in side.nullsafe for index in side.members]
    result = []
    for row, multiplicity in limits.paced(rows.items()):
        try:
            values = [group(row) for group in groups]
        except Failure as failure:
            add_failure(errors, failure, multiplicity)
            continue
        # `count` finds NaN too, for it tries identity first.
        alike = (value.count(value[0]) == len(value) for value in values)
        if all(alike) and all(may or value[0] is not None for may, value in zip(safe, values, strict=True)):
            result.append((row, tuple([value[0] for value in values]), multiplicity))
    return result


def _product(left: list[_Keyed], right: list[_Keyed], known: list[int], members: list[int]) -> list[_Keyed]:
    """The rows of both sides that agree in the equivalences that both have values of."""
    shared = [index for index in known if index in members]
    left_places = [known.index(index) for index in shared]
    right_places = [members.index(index) for index in shared]
    added_places = [place for place, index in enumerate(members) if index not in known]
    table: dict[Row, list[_Keyed]] = {}
    for row, values, multiplicity in right:
        key = tuple([values[place] for place in right_places])
        table.setdefault(key, []).append((row, tuple([values[place] for place in added_places]), multiplicity))
    result: list[_Keyed] = []
    next_look = limits.LOOK_ROWS
    with limits.emptied_if_ended(result):
        for row, values, multiplicity in left:
            for other, more, times in table.get(tuple([values[place] for place in left_places]), ()):
                result.append((row + other, values + more, multiplicity * times))
            if len(result) >= next_look:
                limits.look(len(result))
                next_look = len(result) + limits.LOOK_ROWS
    return result
