"""The SQL scripts, run on the adapter in this process."""

from __future__ import annotations

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import FOLDER, SessionClient, check, parse


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.sql")))
def test_script(name: str, coordinator: Coordinator) -> None:
    steps = parse((FOLDER / f"{name}.sql").read_text())
    assert steps
    check(steps, lambda _: SessionClient(coordinator))
