"""Environments that earlier versions made with every kind of object: all of it is there as it was, and goes on.

`kinds.py` is how the archives are made, with what the version of then said of its objects.
"""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest

from everview.adapter.catalog import codec
from everview.adapter.catalog.items import KINDS as ITEM_KINDS
from everview.adapter.catalog.items import Connection, Secret
from everview.adapter.catalog.store import CatalogStore
from everview.storage.environment import Environment
from tests.adapter.delivery import WAIT_S, delivered, ok, rows
from tests.adapter.kinds import KINDS, PLACE, SINKS, answers_of, move, open_at
from tests.adapter.scripts import SessionClient
from tests.waiting import eventually

LATER = {Connection, Secret}  # kinds that no archive has
ARCHIVES = sorted(KINDS.glob("*.tar.gz"))


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.gz"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    move(tmp_path, PLACE, str(tmp_path))
    return tmp_path


def test_it_is_what_it_was(folder: Path) -> None:
    text = (folder / "answers.json").read_text().replace(PLACE, str(folder))
    told = json.loads(re.sub(r", FROM '\d+'\)", ")", text))  # of generators, which is no option of theirs
    with open_at(folder) as coordinator:
        assert not coordinator.warnings()
        assert answers_of(SessionClient(coordinator)) == told


def test_entries_are_written_as_they_were(folder: Path) -> None:
    """A folder can go back to the version that made it."""
    with Environment.open(folder / "data") as environment:
        items = environment.scan("catalog/item/")
    assert {type(codec.decode_item(value)) for value in items.values()} == set(ITEM_KINDS.values()) - LATER
    for key, value in items.items():
        assert codec.encode(codec.decode_item(value)) == value, key


def test_it_goes_on(folder: Path) -> None:
    with open_at(folder) as coordinator:
        sql = SessionClient(coordinator)
        ok(sql, "INSERT INTO customer (id, since) VALUES (4, '2026-04-05')", "UPDATE due SET at = at WHERE k = 1")
        for name in SINKS:
            delivered(coordinator, name)
        for source in ("copy", "named", "timely"):
            eventually(lambda source=source: len(rows(sql(f"SELECT * FROM {source}"))) == 4, WAIT_S)  # type: ignore[misc]
        assert ok(sql, "SELECT n FROM over_timely") == ["n", "4"]
        assert ok(sql, "SELECT name FROM versions WHERE id = 4") == ["name", "nobody"]
        ok(
            sql,
            "ALTER MATERIALIZED VIEW spent APPLY REPLACEMENT staged",
            "ALTER MATERIALIZED VIEW versions ROLLBACK REPLACEMENT",
            "ALTER MATERIALIZED VIEW versions APPLY REPLACEMENT versions_rollback",
            "ALTER SINK files RESUME",
            "ALTER SINK one SET (SPLITS 1)",
            "ALTER SINK several BACKFILL",
            "ALTER SUBSCRIPTION changes SET (HOLD FOR '1 day')",
            "ALTER SUBSCRIPTION told RESTART",
            "ALTER SOURCE copy RESET",
            "ALTER TABLE due RESET (TTL)",
            "ALTER TABLE customer RENAME TO client",
        )
        for name in (*SINKS, "files"):
            delivered(coordinator, name)
    with open_at(folder) as coordinator:
        assert not coordinator.warnings()
        sql = SessionClient(coordinator)
        assert len(ok(sql, "SELECT * FROM client")) == 5
        ok(sql, "DROP SCHEMA shop CASCADE", "DROP SCHEMA public CASCADE")
    with Environment.open(folder / "data") as environment:
        assert not CatalogStore(environment, lambda: 0).state.items
