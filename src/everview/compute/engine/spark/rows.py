"""How often rows occur: adding multiplicities up, writing rows out one by one, and which plans need neither."""

from __future__ import annotations

from collections.abc import Sequence

from everview.compute.ir.relation import Filter, Get, Let, Map, Reduce, Relation, Threshold, TopK


def consolidated(source: str, names: Sequence[str], which: str = "<> 0") -> str:
    """Each row once with its multiplicity, of those whose multiplicity is as asked for."""
    by = f" GROUP BY {', '.join(names)}" if names else ""
    return f"SELECT {', '.join([*names, 'sum(_diff) AS _diff'])} FROM {source}{by} HAVING sum(_diff) {which}"


def unfolded(source: str, names: Sequence[str]) -> str:
    """Each row as often as it occurs, of a consolidated source without negative multiplicities."""
    return (
        f"SELECT {', '.join([*names, '1L AS _diff'])} FROM {source} LATERAL VIEW explode(sequence(1L, _diff)) o AS copy"
    )


def is_consolidated(plan: Relation, bound: frozenset[str] = frozenset()) -> bool:
    """Whether the relation, as rendered, says no row twice; `bound` are the Lets around of which that is known."""
    match plan:
        case Reduce() | Threshold() | TopK():
            return True
        case Filter(input) | Map(input):
            return is_consolidated(input, bound)
        case Get(id):
            return id in bound
        case Let(id, value, body):
            inside = bound | {id} if is_consolidated(value, bound) else bound - {id}
            return is_consolidated(body, inside)
        case _:
            return False


def is_set(plan: Relation) -> bool:
    """Whether it says besides that every multiplicity is one."""
    match plan:
        case Reduce():
            return True
        case Filter(input) | Map(input):
            return is_set(input)
        case _:
            return False
