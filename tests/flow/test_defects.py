"""Every scenario catches a deliberate defect: a suite that nothing can fail proves nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from everview.flow.check.harness import Endpoint
from everview.flow.check.scenarios import SCENARIOS
from everview.flow.check.suite import run_scenario
from everview.flow.errors import FlowError
from tests.flow.defects import DEFECTS, Defect

SEED = 7  # a defect shows in most workloads, not in all: this is one in which each does
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def test_every_scenario_has_a_defect() -> None:
    assert {defect.scenario for defect in DEFECTS} == set(BY_NAME)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda each: f"{each.scenario}-{each.parts.__name__}-{each.driver}")
def test_defect_is_caught(
    defect: Defect, endpoint: Callable[[str], Endpoint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = endpoint(defect.driver)
    kept = {name: place for name, place in made.resources.items() if name not in defect.without}
    made = dataclasses.replace(made, resources=kept)
    parts = defect.parts(monkeypatch)
    with pytest.raises(FlowError):
        run_scenario(BY_NAME[defect.scenario], made, tmp_path, seed=SEED, parts=parts)
