"""The kinds of sources: one line for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.adapter.sources.change_stream import ChangeStreamKind
from everview.adapter.stream_locations import LOCATIONS
from everview.compute.sql.errors import unsupported
from everview.sources.contract import SourceKind, Spec
from everview.sources.generator.kind import LoadGeneratorKind
from everview.sources.postgres.kind import PostgresKind

_KINDS: tuple[SourceKind[Any], ...] = (LoadGeneratorKind(), *map(ChangeStreamKind, LOCATIONS.values()), PostgresKind())
SOURCES: Mapping[str, SourceKind[Any]] = {each.name: each for each in _KINDS}


def kind_named(name: str) -> SourceKind[Any]:
    if name not in SOURCES:
        *others, last = (f"FROM {each.upper()}" for each in SOURCES)
        raise unsupported(f"a source from {name.upper()}", hint=f"{', '.join(others)} and {last} exist")
    return SOURCES[name]


def kind_of(spec: Spec) -> SourceKind[Any]:
    return SOURCES[spec.kind]
