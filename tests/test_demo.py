"""The demo runs, shows what it says, and its checks would notice if something were wrong."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import everview
from everview import cli
from everview.console import Hydrating, hydration_line
from everview.demo import run as demo_run
from everview.demo.display import busy
from everview.demo.proof import delivered, heard, recomputed
from everview.demo.scenario import VIEWS, source
from everview.demo.watch import Follower, Watch
from everview.errors import EverviewError
from tests.adapter.test_hydrating import Endless
from tests.waiting import eventually

CLAIMS = [
    "named_bids (join) is what its query says",
    "items (aggregate) is what its query says",
    "top_buyers (top 5) is what its query says",
    "a subscription to items adds up to its contents",
    "a subscription to top_buyers adds up to its contents",
    "named_bids in SQLite is what the view holds",
    "items in SQLite is what the view holds",
    "top_buyers in SQLite is what the view holds",
]

NAMES = [view.name for view in VIEWS]


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_demo(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "from everview.cli import main; main()", "demo", "--data", tmp_path / "data"],
        env={**os.environ, "DEMO_SECONDS": "2"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    assert [line.partition(":")[0] for line in ran.stdout.splitlines() if line[:1] in "✓✗" and line] == [
        f"✓ {claim}" for claim in CLAIMS
    ]
    assert "ms behind" in ran.stdout and "All views are exact." in ran.stdout
    assert (tmp_path / "data" / "consensus.db").is_file(), "a folder that was named is kept"
    with closing(sqlite3.connect(demo_run.delivered_at(tmp_path / "data"))) as file:
        assert {name: file.execute(f"SELECT count(*) > 0 FROM {name}").fetchone() for name in NAMES} == dict.fromkeys(
            NAMES, (1,)
        )


DEFECTS = {
    "a value": "UPDATE items SET bids = bids + 1 WHERE item = (SELECT min(item) FROM items)",
    "a missing row": "DELETE FROM items WHERE item = (SELECT min(item) FROM items)",
    "a row too many": "INSERT INTO items (item, bids, bid, mean) VALUES ('nothing', 1, 1, '1.00')",
    "another table": "ALTER TABLE items RENAME TO others",
}


@pytest.mark.parametrize("defect", [None, *DEFECTS])
def test_the_check_of_a_delivery_notices_a_defect(tmp_path: Path, defect: str | None) -> None:
    view, file = VIEWS[1], tmp_path / "out.db"
    with everview.open(tmp_path / "data", spark=None) as database:
        database.sql(source(seed=3))
        database.sql(view.statement)
        database.sql(view.sink_statement(file))
        now = "SELECT mz_now() AS now, n FROM (SELECT count(*) AS n FROM bids) AS counted"
        while (last := database.sql(now)[0]).n < 200:
            pass
        assert delivered(database, view, file, last.now).passed
        database.sql(f"ALTER SINK {view.sink} PAUSE")  # or it would write over what is spoiled
        if defect is not None:
            with closing(sqlite3.connect(file)) as spoiled, spoiled:
                spoiled.execute(DEFECTS[defect])
        check = delivered(database, view, file, last.now)
    assert (check.claim, check.passed) == (CLAIMS[6], defect is None), check


@pytest.mark.parametrize("defect", [None, "query", "subscription"])
def test_the_checks_notice_a_defect(tmp_path: Path, defect: str | None) -> None:
    view = VIEWS[1]
    with everview.open(tmp_path / "data", spark=None) as database:
        database.sql(source(seed=3))
        database.sql(view.statement)
        follower = Follower(database, "public", view.name)
        now = "SELECT mz_now() AS now, n FROM (SELECT count(*) AS n FROM bids) AS counted"
        first = last = database.sql(now)[0]
        while last.n < 200:
            last = database.sql(now)[0]
        follower.finish(last.now + 1)
        if defect == "query":
            view = replace(view, query=view.query.replace("count(*)", "count(*) + 1"))
        if defect == "subscription":
            follower.contents[("nothing", 1, 1, 1)] += 1
        checks = [*recomputed(database, [view], [first.now, last.now]), heard(database, follower)]
    assert [check.claim for check in checks] == [CLAIMS[1], CLAIMS[3]]
    assert [check.passed for check in checks] == [defect != "query", defect != "subscription"]


def test_a_bar_says_how_far_the_views_are() -> None:
    """At a terminal; the brackets of the bar are not taken for rich's marks."""
    screen = StringIO()
    with busy(Console(file=screen, force_terminal=True, width=120), "the views are computed") as say:
        say(hydration_line([Hydrating("items", 1_500, 6_000, 47.3, False), Hydrating("bids", None, None, None, False)]))
        bar = "[#####...............] 25%, reading, 1,500 of 6,000 rows, about 48 s left; and 1 more"
        assert eventually(lambda: f"hydrating items {bar}" in screen.getvalue())


def test_the_bar_is_shown_while_the_views_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, said = Endless(), []
    engine.endless, engine.read = True, 250
    monkeypatch.setattr("everview.instance.LocalEngine", lambda: engine)
    monkeypatch.setattr(demo_run, "TABLES", ("t",))

    def say(line: str) -> None:
        said.append(line)
        if "25%" in line:
            engine.read = 1_000
        if "100%" in line and engine.endless:  # enough was seen: what runs ends, and begins anew
            engine.endless = False
            instance.coordinator.maintenance.abandon(view)
            instance.coordinator.maintenance.restore(view)

    with everview.open(tmp_path / "data", spark=None) as database:
        instance = database._instance
        database.sql("CREATE TABLE t (a int)")
        database.sql("INSERT INTO t VALUES (1)")
        database.sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        view = next(item.id for item in instance.coordinator.catalog.state.items.values() if item.name == "v")
        demo_run._wait_for_views(instance, Watch(instance, ("t", "v")), [], tmp_path / "spark.log", say)
    bars = dict.fromkeys(line.partition(", ")[0] for line in said if "[" in line)
    assert list(bars) == ["hydrating v [#####...............] 25%", f"hydrating v [{'#' * 20}] 100%"]


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(EverviewError, match="is not an empty folder"):
        demo_run.run(tmp_path, 1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failed_check_is_a_failed_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for passed, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(demo_run, "run", lambda *_, passed=passed, **__: passed)
        assert CliRunner().invoke(cli.app, ["demo"]).exit_code == code
