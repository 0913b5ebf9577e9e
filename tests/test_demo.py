"""The demo runs, shows what it says, and its checks would notice if something were wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import everview
from everview import cli
from everview.demo import showing
from everview.demo.proof import heard, recomputed
from everview.demo.scenario import VIEWS, source
from everview.demo.watching import Follower
from everview.errors import EverviewError

CLAIMS = [
    "named_bids (join) is what its query says",
    "items (aggregate) is what its query says",
    "top_buyers (top 5) is what its query says",
    "a subscription to items adds up to its contents",
    "a subscription to top_buyers adds up to its contents",
]


@pytest.mark.spark
@pytest.mark.timeout(300)
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


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(EverviewError, match="is not an empty folder"):
        showing.run(tmp_path, 1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failed_check_is_a_failed_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for passed, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(showing, "run", lambda *_, passed=passed: passed)
        assert CliRunner().invoke(cli.app, ["demo"]).exit_code == code
