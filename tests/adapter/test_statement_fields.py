"""What a statement says is looked at: every field of every statement is read by someone who carries statements out.

The parsers of statements take every word, so nothing that a user writes gets lost before it is a field.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import defaultdict
from pathlib import Path

from everview.adapter.statements import nodes

SOURCE = Path(nodes.__file__).parent.parent


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_every_field_of_a_statement_is_read() -> None:
    attributes: set[str] = set()
    by_place: dict[str, set[int]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "statements":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                attributes.add(node.attr)
            elif isinstance(node, ast.MatchClass):
                attributes.update(node.kwd_attrs)
                for place, pattern in enumerate(node.patterns):
                    if not (isinstance(pattern, ast.MatchAs) and pattern.name is None and pattern.pattern is None):
                        by_place[_last_name(node.cls)].add(place)
    unread = [
        f"{name}.{field.name}"
        for name, kind in vars(nodes).items()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
        for place, field in enumerate(dataclasses.fields(kind))
        if field.name not in attributes and place not in by_place[name]
    ]
    assert not unread
