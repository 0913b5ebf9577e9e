"""Rounds of Spark tasks, with the tasks run here: what each is given, and what a connector makes of a shared state."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everview.compute.ir import types as t
from everview.flow import spark as flow_spark
from everview.flow.check.harness import Endpoint, Harness
from everview.flow.drivers.registry import open_driver
from everview.flow.keyrange import WHOLE
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Delivery
from everview.flow.source import Collections
from everview.flow.spark import Rounds
from tests.flow.created import created
from tests.flow.ledger import Ledger
from tests.flow.test_joint_worker import QUICK, STAGED, bindings, changes, expected, found, settings


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run in this process, one after the other."""

    def answers(spark: Any, driver: Any, jobs: Any, payloads: Any) -> list[dict[str, Any]]:
        run = flow_spark._runner(driver.name, dict(driver.config), jobs)
        return [json.loads(run(each["split"], each["payloads"])) for each in payloads]

    monkeypatch.setattr(flow_spark, "_answers", answers)


@pytest.mark.usefixtures("here")
def test_bindings_get_their_own_updates_in_any_order(endpoint: Callable[[str], Endpoint], tmp_path: Path) -> None:
    """Some are read at once and some when their turn comes."""
    harness = Harness(endpoint("sqlite"), tmp_path, name="rounds")
    names = list(reversed(harness.names))
    harness.names, harness.spec = names, replace(harness.spec, bindings=tuple(reversed(harness.spec.bindings)))
    source = Collections(harness.environment, harness.spec.bindings)
    driver = harness.endpoint.driver
    rounds = Rounds(driver, harness.spec, WHOLE.split(2), Delivery.by(driver, source, harness.log))
    for _ in range(3):
        harness.write(3)
        done = rounds.run(None, harness.workload.time)  # type: ignore[arg-type]
        assert all(len(each) == 3 for each in done.stored_by.values())
        harness.verify()
    harness.close()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("codec", ["json", "proto"])
def test_what_all_tasks_staged_is_applied_by_the_first(tmp_path: Path, codec: str, rng: random.Random) -> None:
    ledger = Ledger(tmp_path, ("id", t.INT8), ("k", t.INT8), ("n", t.INT8))
    config = settings(tmp_path, codec, STAGED)
    made = created(ledger.environment, "m", "command", config, bindings(ledger), options=QUICK)
    log = RecoveryLog(ledger.environment, "m", shared=True)
    rows: dict[int, tuple[int, int, int]] = {}
    for splits in (3, 2):
        source = Collections(ledger.environment, made._spec.bindings)
        driver = open_driver("command", config)
        rounds = Rounds(driver, made._spec, WHOLE.split(splits), Delivery.by(driver, source, log))
        for _ in range(2):
            upper = ledger.write(*changes(rng, rows))
            rounds.run(None, upper)  # type: ignore[arg-type]
            assert found(tmp_path) == expected(rows)
    assert not any(log.state().get("ranges", {}).values()), "nothing is left to be applied"
    made.drop()
    ledger.close()
