"""Every scenario over every driver: whatever befalls a materialization, the endpoint holds what the source says."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from everview.flow.check.harness import Endpoint
from everview.flow.check.scenarios import SCENARIOS, Scenario
from everview.flow.check.suite import not_for, run_scenario
from tests.flow.conftest import PROGRAM

DRIVERS = ("sqlite", "postgres", "delta", "parquet", "redis", "webhook")
# These take seconds to open: a few scenarios on every change, and all of them in the long form.
SLOW = ("kafka", "command")
SLOW_SHORT = {"transactions", "crash_between_the_commits"}
# What cannot happen to a driver: what only pushes cannot be fenced, the mock broker does not honour aborted
# transactions, and a program cannot be reached into.
EXCEPT: dict[str, Callable[[Scenario], bool]] = defaultdict(
    lambda: lambda _: False,
    webhook=lambda scenario: scenario.needs_fence,
    kafka=lambda scenario: scenario.aborts,
    command=lambda scenario: scenario.in_process,
    json=lambda scenario: scenario.in_process,
    proto=lambda scenario: scenario.in_process,
)


def test_there_are_scenarios_enough() -> None:
    assert len(SCENARIOS) >= 16
    assert all(scenario.about for scenario in SCENARIOS)


def pairs(drivers: Sequence[str], short: Collection[str] | None = None) -> list[Any]:
    """Every scenario with every driver that it applies to; those that are not among the short ones are long."""
    found = []
    for driver in drivers:
        for scenario in SCENARIOS:
            if not EXCEPT[driver](scenario):
                marks = () if short is None or scenario.name in short else pytest.mark.long
                found.append(pytest.param(driver, scenario, id=f"{driver}-{scenario.name}", marks=marks))
    return found


@pytest.mark.parametrize(("driver", "scenario"), pairs(DRIVERS))
def test_scenario(scenario: Scenario, driver: str, endpoint: Callable[[str], Endpoint], tmp_path: Path) -> None:
    run(scenario, endpoint(driver), tmp_path)


@pytest.mark.parametrize(("driver", "scenario"), pairs(SLOW, SLOW_SHORT))
def test_scenario_of_a_slow_driver(
    scenario: Scenario, driver: str, endpoint: Callable[[str], Endpoint], tmp_path: Path
) -> None:
    run(scenario, endpoint(driver), tmp_path)


@pytest.mark.parametrize(("codec", "scenario"), [*pairs(["json"], SLOW_SHORT), *pairs(["proto"])])
def test_scenario_of_a_strange_connector(
    scenario: Scenario, codec: str, endpoint: Callable[..., Endpoint], tmp_path: Path
) -> None:
    run(scenario, endpoint("strict", codec=codec), tmp_path)


@pytest.mark.parametrize("name", ["split_during_commit", "join_after_split", "ranges_cut_across"])
def test_a_program_that_keeps_rows_of_former_ranges(
    name: str, endpoint: Callable[..., Endpoint], tmp_path: Path
) -> None:
    (scenario,) = (each for each in SCENARIOS if each.name == name)
    command = f"{sys.executable} {PROGRAM} sqlite keep-rows"
    run(scenario, endpoint("command", command=command), tmp_path)


def run(scenario: Scenario, endpoint: Endpoint, folder: Path) -> None:
    assert not_for(scenario, endpoint) is None
    run_scenario(scenario, endpoint, folder, seed=int(os.environ["EVERVIEW_SEED"]))
