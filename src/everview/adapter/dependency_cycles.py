"""Cycles of definitions: no view may read itself, not even after several replacements at once."""

from __future__ import annotations

from collections.abc import Mapping

from everview.adapter.catalog.items import Item
from everview.adapter.catalog.state import Catalog
from everview.compute.sql.errors import SqlError
from everview.storage.contract import GlobalId

CYCLE = "42P19"


def cycle(catalog: Catalog, replaced: Mapping[GlobalId, tuple[GlobalId, ...]]) -> list[GlobalId]:
    """A cycle that would exist if the items in `replaced` had these dependencies; empty if there would be none.

    Each item reads the next, and the last one reads the first.
    """

    def depends(id: GlobalId) -> tuple[GlobalId, ...]:
        return replaced[id] if id in replaced else catalog.items[id].depends

    over: set[GlobalId] = set()  # leads into no cycle

    def search(path: list[GlobalId]) -> list[GlobalId]:
        for each in depends(path[-1]):
            if each in path:
                return path[path.index(each) :]
            if each not in over and (found := search([*path, each])):
                return found
        over.add(path[-1])
        return []

    for id in replaced:
        if id not in over and (found := search([id])):
            return found
    return []


def check_acyclic(catalog: Catalog, pairs: Mapping[GlobalId, Item]) -> None:
    """Raise if a view would read itself once these replacements, given by target, have been applied."""
    found = cycle(catalog, {id: item.depends for id, item in pairs.items()})
    if not found:
        return
    names = [catalog.items[id].name for id in found]
    lines = []
    for id, name, read in zip(found, names, [*names[1:], names[0]], strict=True):
        by = f', by its replacement "{pairs[id].name}"' if id in pairs else ""
        lines.append(f'"{name}" would read "{read}"{by}' if by else f'"{name}" reads "{read}"')
    shown = ", ".join(f'"{item.name}"' for item in pairs.values())
    quoted = " and ".join(f'"{name}"' for name in names)
    what = f"replacement {shown}" if len(pairs) == 1 else f"replacements {shown}"
    raise SqlError(
        CYCLE,
        f"cannot apply {what} because {quoted} would depend on {'itself' if len(names) == 1 else 'themselves'}",
        detail="\n".join(lines),
        hint="drop one of the replacements, or apply it together with another that ends the cycle",
    )
