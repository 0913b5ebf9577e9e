"""Every scenario over every driver: whatever befalls a materialization, the endpoint holds what the source says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from everview.flow.check.harness import Endpoint
from everview.flow.check.scenarios import SCENARIOS, Scenario
from everview.flow.check.suite import not_for, run_scenario

DRIVERS = ("sqlite", "postgres", "delta", "parquet", "redis", "webhook")
# These take seconds to open: a few scenarios on every change, and all of them in the long form.
SLOW = ("kafka", "command")
SLOW_SHORT = {"transactions", "crash_between_the_commits"}


def test_there_are_scenarios_enough() -> None:
    assert len(SCENARIOS) >= 16
    assert all(scenario.about for scenario in SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("driver", DRIVERS)
def test_scenario(scenario: Scenario, driver: str, endpoint: Callable[[str], Endpoint], tmp_path: Path) -> None:
    run(scenario, endpoint(driver), tmp_path)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("driver", SLOW)
def test_scenario_of_a_slow_driver(
    scenario: Scenario, driver: str, endpoint: Callable[[str], Endpoint], tmp_path: Path, long_forms: bool
) -> None:
    if not long_forms and scenario.name not in SLOW_SHORT:
        pytest.skip("long: set EVERVIEW_LONG=1")
    run(scenario, endpoint(driver), tmp_path)


def run(scenario: Scenario, endpoint: Endpoint, folder: Path) -> None:
    if reason := not_for(scenario, endpoint):
        pytest.skip(f"{endpoint.driver.name}: {reason}")
    run_scenario(scenario, endpoint, folder, seed=int(os.environ["EVERVIEW_SEED"]))
