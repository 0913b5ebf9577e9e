"""Project, Map and Filter on top of each other as one SELECT: a small statement costs as much as Spark must analyze.

A filter may come before a map that it was written behind, if that cannot fail; and nothing is computed twice that is
not a column or a literal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from everview.compute.functions.lookup import can_fail
from everview.compute.ir.relation import Filter, Get, Map, Project, Relation, all_columns, inputs_of
from everview.compute.ir.scalar import Column, Literal, Scalar, columns_of, remap, substitute, walk


@dataclass(frozen=True, slots=True)
class RowByRow:
    """These outputs for each row of the input that passes."""

    input: Relation
    outputs: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...] = ()


def fused(plan: Relation) -> RowByRow:
    """The operators on top of a plan as one."""
    rows = RowByRow(plan, all_columns(plan))
    while (below := _below(rows)) is not None:
        rows = below
    return rows


def _below(rows: RowByRow) -> RowByRow | None:
    """The rows with one more operator fused; None if the operator below cannot be."""
    match rows.input:
        case Project(input, columns):
            moved = [
                tuple(remap(each, columns.__getitem__) for each in part) for part in (rows.outputs, rows.predicates)
            ]
            return RowByRow(input, *moved)
        case Filter(input, predicates):
            return RowByRow(input, rows.outputs, predicates + rows.predicates)
        case Map(input, scalars):
            values: list[Scalar] = list(all_columns(input))
            start = len(values)
            for place, scalar in enumerate(scalars):
                if not _may_stand_in(scalar, values, start):  # it takes another SELECT to read what was just computed
                    return _below(replace(rows, input=Map(Map(input, scalars[:place]), scalars[place:])))
                values.append(substitute(scalar, values))
            if rows.predicates and any(map(can_fail, scalars)):
                return None
            if _repeats(values, start, rows.outputs + rows.predicates):
                return None
            outputs = tuple(substitute(each, values) for each in rows.outputs)
            return RowByRow(input, outputs, tuple(substitute(each, values) for each in rows.predicates))
        case _:
            return None


def columns_read(plans: Iterable[Relation]) -> dict[str, set[int]]:
    """The columns of each collection that statements for these plans read."""
    read: dict[str, set[int]] = {}
    pending = list(plans)
    while pending:
        plan = pending.pop()
        if isinstance(plan, Get):
            read.setdefault(plan.id, set()).update(range(len(plan.schema)))
            continue
        rows = fused(plan)
        if rows.input is plan:
            pending += inputs_of(plan)
        elif isinstance(rows.input, Get):
            scalars = rows.outputs + rows.predicates
            read.setdefault(rows.input.id, set()).update(*(columns_of(each) for each in scalars))
        else:
            pending.append(rows.input)
    return read


def _is_plain(scalar: Scalar) -> bool:
    return isinstance(scalar, (Column, Literal))


def _may_stand_in(scalar: Scalar, values: Sequence[Scalar], start: int) -> bool:
    """Whether the scalar reads, of the columns added before it, only columns and literals."""
    read = [part.index for part in walk(scalar) if isinstance(part, Column)]
    return all(index < start or _is_plain(values[index]) for index in read)


def _repeats(values: Sequence[Scalar], start: int, scalars: Sequence[Scalar]) -> bool:
    reads = Counter(part.index for scalar in scalars for part in walk(scalar) if isinstance(part, Column))
    return any(reads[index] > 1 and not _is_plain(values[index]) for index in range(start, len(values)))
