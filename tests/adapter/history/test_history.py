"""Concurrent clients over the wire, a server that is killed again and again, and a history that has to be in order."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.adapter.history.checker import check
from tests.adapter.history.clients import MEANINGS
from tests.adapter.history.run import WAIT_S_MAX, Run
from tests.adapter.history.server import ON_SPARK, WITHOUT_SPARK
from tests.waiting import eventually

KILLS = 2  # of the short form; of the long one, as many as there is time for
LONG_S = float(os.environ.get("EVERVIEW_HISTORY_S", "600"))


def check_run(run: Run) -> None:
    """Nothing went wrong, nothing is out of order, and enough was done for that to mean something."""
    stage = run.stage
    assert not stage.problems, stage.problems[:3]
    assert not run.defects, run.defects[0][-4000:]
    found = check(stage.history, MEANINGS)
    assert not found, "\n".join(map(str, found[:10]))
    done = Counter(each.outcome for each in stage.history)
    seen = sum(bool(each.shows) for each in stage.history)
    print(
        f"{run.kills} kills, {dict(done)}, {seen} reads of everything, {sum(each.as_of for each in stage.history)} past"
    )


@pytest.mark.timeout(LONG_S + 900)
def test_no_anomaly_without_spark(tmp_path: Path, rng: random.Random, long_forms: bool) -> None:
    over = time.monotonic() + LONG_S
    with Run(WITHOUT_SPARK, tmp_path / "data", rng) as run:
        while run.kills < KILLS or (long_forms and time.monotonic() < over):
            operations = rng.randrange(10, 1_000 if long_forms else 100)
            run.live(operations, until_views=rng.random() < 0.7)
            run.again()
        run.finish()
    check_run(run)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(LONG_S + 900)
def test_no_anomaly_on_spark(tmp_path: Path, rng: random.Random) -> None:
    over = time.monotonic() + LONG_S
    with Run(ON_SPARK, tmp_path / "data", rng) as run:
        while run.kills < KILLS or time.monotonic() < over:
            run.live(rng.randrange(10, 2_000), until_views=rng.random() < 0.6)
            run.again()
        run.finish()
    check_run(run)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("defect", "kind"),
    [
        ("loses writes", "stale read"),
        ("tears transactions", "torn transaction"),
        ("writes twice", "doubled write"),
    ],
)
def test_a_server_that_errs_is_found_out(tmp_path: Path, rng: random.Random, defect: str, kind: str) -> None:
    """So what the others do not find would have been found."""

    def written(run: Run, tables: int) -> int:
        done = [each for each in list(run.stage.history) if each.outcome == "ok" and not each.increments]
        return sum(len(each.adds) == tables for each in done)

    with Run((*WITHOUT_SPARK, defect), tmp_path / "data", rng) as run:
        eventually(lambda: written(run, 1) >= 40 and written(run, 2) >= 1, WAIT_S_MAX)
        run.finish()
    assert kind in {each.kind for each in check(run.stage.history, MEANINGS)}
