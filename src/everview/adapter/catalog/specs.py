"""What sinks are defined by: what a statement says, as the catalog keeps it.

`shown` is what anyone may see of where something is: the same without secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from everview.storage.contract import GlobalId

if TYPE_CHECKING:
    from everview.adapter.stream_locations import StreamLocation


@dataclass(frozen=True, slots=True)
class Delivered:
    """One collection of a sink, where it goes and how."""

    collection: GlobalId
    resource: Mapping[str, Any] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    delta_updates: bool = False
    reductions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DriverSink:
    """A sink by the materialization protocol, of one collection or several, all of them in the same transactions.

    `kind` is the driver, and `name` that of the checkpoints, which no other environment has. Where a `connection` is
    named, it gives the settings that `config` lacks.
    """

    kind: str
    name: str
    config: Mapping[str, Any] = field(repr=False)
    collections: tuple[Delivered, ...]
    options: Mapping[str, int | float] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    connection: GlobalId | None = None


@dataclass(frozen=True, slots=True)
class StreamSink:
    """A sink that is a change stream."""

    location: StreamLocation = field(repr=False)
    collection: GlobalId
    options: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    sealed: bool = field(default=False, compare=False)  # whether the catalog has the location sealed

    @property
    def kind(self) -> str:
        return self.location.kind

    @property
    def collections(self) -> tuple[Delivered, ...]:
        return (Delivered(self.collection),)


SinkSpec: TypeAlias = DriverSink | StreamSink
