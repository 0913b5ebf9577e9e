"""The adapter knows kinds of sources, sinks and connections by their registries: no other module of it names one.

Where a kind is named, another one would have to be added there too. Names that are words of SQL as well, or keys, are
listed with the module in which they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import everview.adapter
from everview.adapter.connection_kinds import CONNECTIONS
from everview.adapter.sources.registry import SOURCES
from everview.flow.drivers.registry import DRIVERS

ADAPTER = Path(everview.adapter.__file__).parent
# The registries, and the kind of source that is at home in the adapter: it is where streams and collections meet.
AT_HOME = {"sources/registry.py", "connection_kinds.py", "sources/change_stream.py", "stream_locations.py"}
OTHER_MEANINGS = {
    ("settings.py", "postgres"),  # the style of intervals
    ("catalog/codec.py", "delta"),  # a key: whether updates are delivered as such
    ("statements/sinks.py", "delta"),  # DELTA UPDATES
}
KINDS = {*SOURCES, *CONNECTIONS, *DRIVERS}
# In sentences and statements a kind is in capitals; DELTA and COMMAND are words of SQL that stand there for others.
IN_CAPITALS = re.compile(rf"\b({'|'.join(sorted(each.upper() for each in {*SOURCES, *CONNECTIONS}))})\b")
PACKAGES = re.compile(
    r"everview\.(sources\.(?!contract|feeder|errors)|cdc\.kafka|flow\.drivers\.(?!contract|registry))"
)


def named(source: str) -> Iterator[tuple[int, str]]:
    """Where a module names a kind, or imports the module of one."""
    tree = ast.parse(source)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if id(node) not in documentation:
                if text.lower() in KINDS:
                    yield node.lineno, text.lower()
                elif (found := IN_CAPITALS.search(text)) is not None:
                    yield node.lineno, found[0]
            case ast.ImportFrom(module=str() as module, names=names):
                for each in names:
                    if PACKAGES.match(f"{module}.{each.name}"):
                        yield node.lineno, f"{module}.{each.name}"
            case ast.Import(names=names):
                for each in names:
                    if PACKAGES.match(each.name):
                        yield node.lineno, each.name


def test_no_module_but_the_registries_names_a_kind() -> None:
    found = [
        f"{name}:{line}: {what}"
        for path in ADAPTER.rglob("*.py")
        if (name := str(path.relative_to(ADAPTER))) not in AT_HOME
        for line, what in named(path.read_text())
        if (name, what) not in OTHER_MEANINGS
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "if kind == 'postgres': pass",
        "hint = 'FROM POSTGRES CONNECTION name'",
        "f'FROM LOAD GENERATOR {name}'",
        "from everview.sources.postgres import spec",
        "from everview.flow.drivers.kafka import KafkaDriver",
        "import everview.cdc.kafka",
    ],
)
def test_a_kind_that_is_named_is_found(source: str) -> None:
    assert list(named(source))


def test_each_kind_is_found_by_its_name() -> None:
    assert all(kind.name == name for kinds in (SOURCES, CONNECTIONS) for name, kind in kinds.items())
