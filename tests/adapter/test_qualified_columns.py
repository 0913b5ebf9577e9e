"""Stored queries of earlier versions, which held the schema before a column's table against nothing, go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from everview.adapter.catalog.items import Index, MaterializedView, View
from everview.adapter.coordinator import Coordinator
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_restart import open_at

OLDER = [
    "SELECT public.t.x FROM everview.public.t AS t",
    "SELECT nosuch.t.x FROM everview.public.t AS t",
    "SELECT nosuch.t.* FROM (SELECT public.t.x FROM everview.public.t AS t) AS t",
]


def store(coordinator: Coordinator, text: str) -> None:
    """Let the views and the index be as an earlier version stored them."""
    catalog = coordinator.catalog
    with catalog.lock:
        change = catalog.change("everview")
        for item in catalog.state.items.values():
            if isinstance(item, View | MaterializedView):
                change.alter(replace(item, query=text))
            if isinstance(item, Index):
                change.alter(replace(item, keys=("nosuch.t.x",)))
        catalog.commit(change)


@pytest.mark.parametrize("text", OLDER)
def test_views_of_earlier_versions_are_read_and_maintained(text: str, tmp_path: Path) -> None:
    clock = Clock()
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        for statement in (
            "CREATE TABLE t (x int)",
            "INSERT INTO t VALUES (1)",
            "CREATE INDEX i ON t (x)",
            "CREATE VIEW v AS SELECT x FROM t",
            "CREATE MATERIALIZED VIEW m AS SELECT x FROM t",
        ):
            assert not sql(statement)[0].startswith("!")
        store(coordinator, text)
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        assert sql("INSERT INTO t VALUES (2)") == ["INSERT 0 1"]
        assert sql("SELECT x FROM v ORDER BY x") == ["x", "1", "2"]
        assert sql("SELECT x FROM m ORDER BY x") == ["x", "1", "2"]
        assert sql("SELECT x FROM t WHERE x = 2") == ["x", "2"]
        assert sql("CREATE MATERIALIZED VIEW r REPLACING m AS SELECT x + 1 AS x FROM t") == ["CREATE MATERIALIZED VIEW"]
        assert sql("ALTER MATERIALIZED VIEW m APPLY REPLACEMENT r") == ["ALTER MATERIALIZED VIEW"]
        assert sql("ALTER MATERIALIZED VIEW m ROLLBACK REPLACEMENT")[-1] == "ALTER MATERIALIZED VIEW"
        assert sql("ALTER MATERIALIZED VIEW m APPLY REPLACEMENT m_rollback")[-1] == "ALTER MATERIALIZED VIEW"
        assert sql("SELECT x FROM m ORDER BY x") == ["x", "1", "2"]
        (stored,) = sql("SELECT definition FROM pg_matviews WHERE matviewname = 'm'")[1:]
        assert "nosuch" not in stored and "SELECT public" not in stored
