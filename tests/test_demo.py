"""The demo runs, shows what it says, and its checks would notice if something were wrong."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everview import cli, demo
from everview.demo import workload
from everview.demo.checks import Proof
from everview.demo.generator import BIDS, SCHEMAS, Market, add, replay
from everview.demo.workload import Follower, Writer
from everview.errors import EverviewError
from everview.storage.environment import Environment

CLAIMS = [
    "contents at past times are as generated",
    "transactions are seen whole or not at all",
    "the subscription adds up to the contents",
    "an observer from outside sees the same",
    "Spark counts the same bids per auction",
    "closed and opened again, all is there",
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
    assert "All checks passed." in ran.stdout
    assert (tmp_path / "data" / "consensus.db").is_file(), "a folder that was named is kept"


def test_the_same_seed_makes_the_same_market() -> None:
    one, same, other = (list(itertools.islice(Market(seed).steps(), 50)) for seed in (3, 3, 4))
    assert one == same != other


def test_replay_is_the_sum_of_the_steps() -> None:
    total = {id: Counter() for id in SCHEMAS}  # type: ignore[var-annotated]
    for changes, contents in zip(Market(5).steps(), itertools.islice(replay(5), 1, 80), strict=False):
        for id, rows in changes.items():
            add(total[id], rows)
        assert contents == total
    assert all(total.values()) and all(count > 0 for rows in total.values() for count in rows.values())


@pytest.mark.parametrize("defect", [None, "lost", "late"])
def test_the_checks_notice_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str | None) -> None:
    honest, calls = workload.updates_table, itertools.count()

    def with_defect(id: str, changes: list[tuple[workload.Row, int]], at: int) -> object:
        if id == BIDS and next(calls) >= 30:
            changes = (changes[1:] or changes) if defect == "lost" else changes
            at += defect == "late"
        return honest(id, changes, at)

    monkeypatch.setattr(workload, "updates_table", with_defect)
    with Environment.open(tmp_path, background=False) as environment:
        writer = Writer(environment, seed=1, history_ms=100_000)
        follower = Follower(environment, writer.reader)
        for _ in range(60):
            if defect == "late":
                workload.time.sleep(0.003)  # so that there is a later time in the interval of a step
            writer.step()
        follower.finish(writer.now)
        passed = {check.claim: check.passed for check in Proof(environment, writer, 1).checks(follower, tmp_path)}
    assert list(passed) == CLAIMS[:4]
    assert all(passed.values()) == (defect is None)


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(EverviewError, match="is not an empty folder"):
        demo.run(tmp_path, 1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failed_check_is_a_failed_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for passed, code in ((True, 0), (False, 1)):
        monkeypatch.setattr(demo, "run", lambda *_, passed=passed: passed)
        assert CliRunner().invoke(cli.app, ["demo"]).exit_code == code
