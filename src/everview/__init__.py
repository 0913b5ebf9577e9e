"""Everview keeps SQL views over changing data exact and fresh, on Spark.

`everview.open(path)` opens an environment inside a Python program; see `everview.api`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Loaded when they are asked for: the parts of the package that need little import little.
_FROM = {
    "open": "everview.api",
    "Database": "everview.api",
    "Infinite": "everview.compute.ir.infinite",
    "SqlError": "everview.compute.sql.errors",
    "EverviewError": "everview.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'everview' has no attribute {name!r}")
    return getattr(import_module(_FROM[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_FROM])
