"""Definitions in a block see the catalog as it was when the first of them was made."""

from __future__ import annotations

import pytest

from everview.adapter.catalog.store import Change
from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient


def test_what_others_make_while_a_definition_is_tried_is_not_seen(
    coordinator: Coordinator, sql: SessionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, catalog = SessionClient(coordinator), coordinator.catalog
    change = catalog.change

    def change_then_other(user: str | None) -> Change:
        made = change(user)
        monkeypatch.undo()
        other("CREATE TABLE late (x int)")
        return made

    sql("BEGIN")
    monkeypatch.setattr(catalog, "change", change_then_other)
    answer = sql("CREATE VIEW v AS SELECT x FROM late")
    assert answer[0].startswith("! 42P01"), answer
    sql("ROLLBACK")
    assert sql("CREATE VIEW v AS SELECT x FROM late") == ["CREATE VIEW"]
