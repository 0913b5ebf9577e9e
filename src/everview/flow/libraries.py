"""Optional libraries of connectors: imported when they are needed, and asked for by name when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from everview.flow.errors import MissingLibrary


def library(module: str, package: str, extra: str) -> Any:
    """An optional module; where it is not installed, an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingLibrary(package, extra) from error
