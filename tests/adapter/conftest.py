"""What tests of the adapter share: an environment in a folder, a clock that tests move, sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.served_indexes import ServedIndex
from tests.adapter.scripts import SessionClient


class Clock:
    """A wall clock that goes where it is told, and a little further each time it is read."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        self.now_ms += 1
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def coordinator(tmp_path: Path, clock: Clock) -> Iterator[Coordinator]:
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as opened:
        yield opened


@pytest.fixture
def sql(coordinator: Coordinator) -> SessionClient:
    return SessionClient(coordinator)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many look-ups there were."""
    counted: list[int] = []
    original = ServedIndex.lookup

    def lookup(self: ServedIndex, *args):  # type: ignore[no-untyped-def]
        counted.append(1)
        return original(self, *args)

    monkeypatch.setattr(ServedIndex, "lookup", lookup)
    return counted
