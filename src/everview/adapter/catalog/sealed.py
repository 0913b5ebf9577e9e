"""Settings of sinks that hold passwords, as the catalog keeps them: sealed, and opened when a sink needs them first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from everview.adapter.sealing import Sealer


class SealedSettings(Mapping[str, Any]):
    """The settings of an object of the catalog. Without the key, whoever looks into them is told so."""

    def __init__(self, sealed: str, bound: str, sealer: Sealer) -> None:
        self.sealed, self._bound, self._sealer = sealed, bound, sealer
        self._opened: dict[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        return self._open()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._open())

    def __len__(self) -> int:
        return len(self._open())

    def __repr__(self) -> str:
        return "SealedSettings(***)"

    def _open(self) -> dict[str, Any]:
        if self._opened is None:
            self._opened = json.loads(self._sealer.unseal(self.sealed, self._bound))
        return self._opened
