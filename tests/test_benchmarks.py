"""Benchmarks are not run by tests; what they use of the product is there, so that `make bench` can begin."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def imports() -> Iterator[tuple[str, str, str]]:
    """All names that benchmarks import from the product, also within functions: file, module, name."""
    for path in sorted(BENCHMARKS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("everview", "benchmarks")):
                yield from ((path.name, node.module or "", each.name) for each in node.names)


@pytest.mark.parametrize("module", sorted({module for _, module, _ in imports() if module.startswith("everview")}))
def test_what_benchmarks_import_is_there(module: str) -> None:
    found = importlib.import_module(module)
    for file, own, name in imports():
        if own == module and not hasattr(found, name):
            missing = f"benchmarks/{file} imports {name} from {module}"
            assert importlib.util.find_spec(f"{module}.{name}") is not None, missing
