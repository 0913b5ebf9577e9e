"""Kinds are classes, enums and entries of registries: nothing in the adapter asks whether a kind is some text.

The kinds of words are left out: they are a closed set of the lexer, which the type checker knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import pytest

import everview.adapter

ADAPTER = Path(everview.adapter.__file__).parent
OF_WORDS = {"token.kind", "words.next.kind", "self.next.kind"}


def compared_kinds(source: str, names: Mapping[str, object] | None = None) -> Iterator[str]:
    """The comparisons of a kind with texts in a module, of which `names` are the globals."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
            case ast.Match(subject=subject, cases=cases):
                sides = [subject, *(part.value for case in cases for part in ast.walk(case.pattern)
                                    if isinstance(part, ast.MatchValue))]  # fmt: skip
            case _:
                continue
        if any(map(_is_kind, sides)) and any(_is_text(side, names or {}) for side in sides):
            yield f"{node.lineno}: {ast.unparse(node).splitlines()[0]}"


def _is_kind(side: ast.expr) -> bool:
    name = side.id if isinstance(side, ast.Name) else side.attr if isinstance(side, ast.Attribute) else ""
    return name.rpartition("_")[2] in ("kind", "relkind", "to") and ast.unparse(side) not in OF_WORDS


def _is_text(side: ast.expr, names: Mapping[str, object]) -> bool:
    match side:
        case ast.Constant(value=str()):
            return True
        case ast.Tuple(elts) | ast.Set(elts) | ast.List(elts):
            return any(_is_text(each, names) for each in elts)
        case ast.Name(id):
            return type(names.get(id)) is str  # and not a member of an enum
        case _:
            return False


def test_no_module_compares_a_kind_with_a_text() -> None:
    found = []
    for path in ADAPTER.rglob("*.py"):
        name = ".".join(path.relative_to(ADAPTER.parent.parent).with_suffix("").parts)
        found += [f"{name}:{each}" for each in compared_kinds(path.read_text(), vars(import_module(name)))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "item.kind == 'table'",
        "'table' != kind",
        "relkind in 'rm'",
        "connection.to == 'postgres'",
        "kind == FILES",
        "item.kind in ('table', 'view')",
        "match item.kind:\n    case 'table' | 'view':\n        pass",
    ],
)
def test_such_a_comparison_is_found(source: str) -> None:
    assert list(compared_kinds(source, {"FILES": "files"}))


@pytest.mark.parametrize("source", ["item.kind is Kind.TABLE", "kind == other.kind", "token.kind == 'word'"])
def test_other_comparisons_are_not(source: str) -> None:
    assert not list(compared_kinds(source))
