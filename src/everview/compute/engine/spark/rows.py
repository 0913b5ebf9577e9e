"""How often rows occur: adding multiplicities up, writing rows out one by one, and which plans need neither."""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Column


def consolidated(source: str, names: Sequence[str], which: str = "<> 0") -> str:
    """Each row once with its multiplicity, of those whose multiplicity is as asked for."""
    by = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {', '.join([*names, 'sum(_diff) AS _diff'])} FROM {source}{by} HAVING sum(_diff) {which}"


def unfolded(source: str, names: Sequence[str]) -> str:
    """Each row as often as it occurs, of a consolidated source without negative multiplicities."""
    return (
        f"SELECT {', '.join([*names, '1L AS _diff'])} FROM {source} LATERAL VIEW explode(sequence(1L, _diff)) o AS copy"
    )


def is_consolidated(plan: ir.Relation) -> bool:
    """Whether the relation, as rendered, says no row twice."""
    return unique_key(plan) is not None


def unique_key(plan: ir.Relation) -> frozenset[int] | None:
    """Columns in which no two rows of the relation, as rendered, are equal. None if nothing is known."""
    match plan:
        case ir.Reduce(_, keys):
            return frozenset(range(len(keys)))
        case ir.Constant(rows) if len(rows) <= 1 and all(diff for _, diff in rows):
            return frozenset()
        case ir.Threshold(input) | ir.TopK(input):
            known = unique_key(input)
            return frozenset(range(ir.arity(input))) if known is None else known
        case ir.Filter(input) | ir.Map(input):
            return unique_key(input)
        case ir.Window(input) if occurs_once(input):
            return unique_key(input)
        case ir.Project(input, columns):
            places = {_origin(input, index): place for place, index in enumerate(columns)}
            known = unique_key(input)
            return None if known is None or not known <= places.keys() else frozenset(places[each] for each in known)
        case ir.Let(body=body):
            return unique_key(body)
        case _:
            return None


def _origin(plan: ir.Relation, index: int) -> int:
    """The column that this one is a copy of."""
    while isinstance(plan, ir.Map) and index >= ir.arity(plan.input):
        scalar = plan.scalars[index - ir.arity(plan.input)]
        if not isinstance(scalar, Column):
            break
        index = scalar.index
    return index


def occurs_once(plan: ir.Relation) -> bool:
    """Whether it says no row twice, and each with multiplicity one."""
    match plan:
        case ir.Reduce():
            return True
        case ir.Constant(rows):
            return is_consolidated(plan) and all(diff == 1 for _, diff in rows)
        case ir.Filter(input) | ir.Map(input) | ir.Threshold(input) | ir.TopK(input) | ir.Window(input):
            return occurs_once(input)
        case ir.Project(input):
            return is_consolidated(plan) and occurs_once(input)
        case ir.Let(body=body):
            return occurs_once(body)
        case _:
            return False
