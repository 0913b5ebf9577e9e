"""No layer imports upward: every import statement in the source is read and held against the order of the layers.

Imports inside functions and under TYPE_CHECKING count too: a layer that needs another's types leans on it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

# From the bottom. A layer imports itself and what is on lines before its own, not its neighbours on the same line.
LAYERS = (
    {"timely", "reach", "background"},
    {"storage"},
    {"compute"},
    {"cdc", "sources", "flow"},
    {"adapter"},
    {"server"},
    {"console", "instance", "parameters"},
    {"api"},
    {"demo", "serve", "shell"},
    {"cli"},
)

# Inside compute: plans and functions, what evaluates and rewrites them, the engines. What maintains views is on top.
COMPUTE = (
    {"cancel", "allowance"},
    {"ir"},
    {"functions"},
    {"rows"},
    {"interpreter"},
    {"columnar"},
    {"optimize"},
    {"sql"},
    {"delta"},
    {"engine"},
)
ENGINES = ({"contract", "java", "progress", "run_phases"}, {"local"}, {"spark"})

# Packages with an order of their own: a module in none of its lines is above all of them.
INNER = {"everview.compute": COMPUTE, "everview.compute.engine": ENGINES}


def height(name: str, order: tuple[set[str], ...]) -> int:
    """The index of the line that a name is on. A name on no line is above all of them."""
    return next((index for index, line in enumerate(order) if name in line), len(order))


# What every layer may import, and what imports no layer: the package itself (its version), the errors, the depth of
# recursion, how SQL is quoted, and what closes itself.
COMMON = {"", "closing", "errors", "recursion", "quoting"}


def imported_modules(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """The line and full name of everything in `everview` that a module imports."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
            # `from everview import storage` imports a layer; `from everview.storage import shard` says it already.
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "everview" or base in INNER else [base]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "everview":
                yield node.lineno, name


def layer_of(module: str) -> str:
    """Of `everview.storage.shard`, "storage"; of the package itself and its attributes, such as its version, ""."""
    name = f"{module}.".split(".")[1]
    return "" if name.startswith("__") else name


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What in a module's imports breaks the order, one line each."""
    layer = layer_of(module)
    if height(layer, LAYERS) == len(LAYERS) and layer not in COMMON:
        return [f"{module} is in no layer"]
    broken = []
    for line, name in imported_modules(source, module, is_package=is_package):
        target = layer_of(name)
        below = height(target, LAYERS) < height(layer, LAYERS)
        if layer in COMMON or not (target in COMMON or target == layer or below) or breaks_inner_order(module, name):
            broken.append(f"{module}:{line} imports {name}")
    return broken


def breaks_inner_order(module: str, imported: str) -> bool:
    """Whether a module imports a part of its own package that is on its line or above it."""
    for package, order in INNER.items():
        if not (module.startswith(f"{package}.") and imported.startswith(f"{package}.")):
            continue
        part, target = (name.removeprefix(f"{package}.").split(".")[0] for name in (module, imported))
        own, other = height(part, order), height(target, order)
        if part != target and own < len(order) and other >= own:
            return True
    return False


def test_no_layer_imports_upward() -> None:
    broken = []
    for path in sorted(SOURCE.glob("everview/**/*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        broken += violations(path.read_text(), module, is_package=is_package)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("everview.storage.shard", "from everview.compute import engine"),
        ("everview.storage.shard", "import everview.compute.engine as engine"),
        ("everview.storage.shard", "from everview import compute"),
        ("everview.storage.shard", "from ..compute.engine import java"),
        ("everview.storage.shard", "from .. import compute"),
        ("everview.storage.blob.local", "from ...server.http import app"),
        ("everview.storage.shard", "def f():\n    import everview.adapter"),
        ("everview.storage.shard", "if TYPE_CHECKING:\n    from everview.flow.protocol import Driver"),
        ("everview.cdc.reader", "from everview.sources.files import read"),
        ("everview.flow.runtime", "import everview.cdc.sink"),
        ("everview.compute.contract", "import os, everview.cli"),
        ("everview.errors", "from everview.timely import antichain"),
        ("everview", "from everview.cli import main"),
        ("everview.helpers", ""),
        ("everview.compute.optimize.simplify", "from everview.compute.engine.contract import Engine"),
        ("everview.compute.optimize.simplify", "from everview.compute import engine"),
        ("everview.compute.delta.join", "from everview.compute.engine.local import LocalEngine"),
        ("everview.compute.functions.text", "from everview.compute.rows.collection import Row"),
        ("everview.compute.ir.relation", "from everview.compute.tick import Ticker"),
        ("everview.compute.engine.contract", "from everview.compute.engine import spark"),
        ("everview.compute.engine.local", "from everview.compute.dataflow import Dataflow"),
    ],
)
def test_the_checker_catches(module: str, source: str) -> None:
    assert violations(source, module)


def test_the_checker_catches_it_in_a_package_itself() -> None:
    assert violations("from ..compute import engine", "everview.storage", is_package=True)
    assert violations("from ..server import http", "everview.storage.blob", is_package=True) == []  # its own `server`
    assert violations("from ...server import http", "everview.storage.blob", is_package=True)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("everview.storage.shard", "from everview.timely.antichain import Antichain"),
        ("everview.storage.shard", "from . import batch\nfrom .blob import local\nfrom ..timely import lattice"),
        (
            "everview.storage.shard",
            "from everview.errors import EverviewError\nfrom everview import errors, __version__",
        ),
        ("everview.flow.runtime", "import everview.compute.engine.java, everview.storage"),
        ("everview.cli", "from everview.server import http\nfrom everview.timely import lattice"),
        ("everview.errors", "import os"),
        ("everview.compute.tick", "from everview.compute.view import View\nfrom everview.compute.engine import local"),
        ("everview.compute.delta.join", "from everview.compute.optimize.join_keys import facts\nfrom . import totals"),
    ],
)
def test_the_checker_lets_pass(module: str, source: str) -> None:
    assert violations(source, module) == []
