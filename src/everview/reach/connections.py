"""What a kind of connection is: the options of CREATE CONNECTION, and what they come to for whoever connects.

A kind is one file with a `ConnectionKind`, and one line in the list of kinds. It knows nothing of the catalog: it is
given the options by name, with the texts of secrets, and a way to have a text in a private file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from everview.errors import EverviewError

Settings: TypeAlias = Mapping[str, str]  # the options of a connection, those that are secrets with their texts
FileOf: TypeAlias = Callable[[str], str]  # the path of a private file with a text


@dataclass(frozen=True, slots=True)
class ConnectionOption:
    """An option of a connection: what it may be, and whether it has to come from a secret."""

    required: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    number: bool = False


class ConnectionKind(ABC):
    """One kind of connection."""

    name: ClassVar[str]  # the word after TO, and the name of the drivers and sources that can use it
    options: ClassVar[Mapping[str, ConnectionOption]]

    @abstractmethod
    def check(self, settings: Settings, file_of: FileOf) -> list[EverviewError]:
        """Connect, and raise if that fails. Gives what a source would lack, which a sink does without."""

    sink_settings: ClassVar[frozenset[str]]  # the settings of a sink's driver that a connection gives

    @abstractmethod
    def for_sink(self, settings: Settings, file_of: FileOf) -> dict[str, Any]:
        """The values of `sink_settings`."""

    def for_source(self, settings: Settings, file_of: FileOf) -> str:
        """How a source connects."""
        raise EverviewError(f"no source reads by a connection to {self.name.upper()}")
