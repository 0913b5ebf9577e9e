"""The parts of `docs/sql.md` that are made from the code; run as a module, this writes them there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from everview.adapter.settings import SETTINGS
from everview.adapter.system.registry import BY_ID
from everview.compute.functions import ordered_sets, registry

DOCUMENT = Path(__file__).parents[2] / "docs" / "sql.md"
# What plans use and nobody writes.
_INTERNAL = {
    "casts",
    "plan functions",
    "temporal inverses",
    "assign",
    "cast",
    "all_ne",
    "any_eq",
    "slice",
    "subscript",
    "text_of",
    "single",
    "numbers",
    "table functions intervals",
}
_OWN_WORDS = re.compile(r"[a-z_0-9]+|[^a-z\s]+|(is|not)( [a-z]+)*")


def functions() -> str:
    """Names of functions and operators, by family."""
    families = {
        family.__name__.rpartition(".")[2].replace("_", " "): {each.name for each in family.FUNCTIONS}
        for family in registry._FAMILIES
    }
    families["aggregates"] = {each.name for each in registry.AGGREGATES.values()}
    families["aggregates with WITHIN GROUP"] = set(ordered_sets.NAMES)
    families["window functions"] = {each.name for each in registry.WINDOWS.values()}
    families["table functions"] = {each.name for each in registry.TABLES.values()}
    lines = ["| family | names |", "|---|---|"]
    for family, found in families.items():
        inside = {name for name in found if name in _INTERNAL or f"{family} {name}" in _INTERNAL}
        names = [name for name in found - inside if _OWN_WORDS.fullmatch(name)]
        if family not in _INTERNAL and names:
            lines.append(f"| {family} | {_listed(names)} |")
    return "\n".join(lines)


def settings() -> str:
    """What can be set, with defaults."""
    lines = ["| setting | default | |", "|---|---|---|"]
    for each in sorted(SETTINGS.values(), key=lambda setting: setting.name.lower()):
        fixed = " (cannot be set)" if each.fixed else ""
        harmless = f" (no effect: {each.harmless})" if each.harmless else ""
        default = f"`{each.default}`" if each.default else ""
        lines.append(f"| `{each.name}` | {default} | {each.description}{fixed}{harmless} |")
    return "\n".join(lines)


def relations() -> str:
    """The relations of the system, by schema."""
    found = defaultdict(list)
    for relation in BY_ID.values():
        found[relation.schema].append(relation.name)
    return "\n".join(
        [
            "| schema | relations |",
            "|---|---|",
            *(f"| `{schema}` | {_listed(names)} |" for schema, names in found.items()),
        ]
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`".replace("|", "\\|") for name in sorted(names))


def written(text: str) -> str:
    """The document with the parts as they should be."""
    for name, make in (("functions", functions), ("settings", settings), ("relations", relations)):
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}\n{make()}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
