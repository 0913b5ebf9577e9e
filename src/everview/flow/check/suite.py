"""Running the scenarios against an endpoint: one result for each, and why those that do not apply were left out."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from everview.flow.check.harness import Endpoint, Harness, Parts
from everview.flow.check.scenarios import SCENARIOS, Scenario
from everview.flow.drivers.command import CommandDriver
from everview.flow.errors import FlowError

MakeEndpoint = Callable[[Path], Endpoint]


@dataclass(frozen=True)
class Result:
    """What became of a scenario."""

    scenario: Scenario
    passed: bool
    skipped: str | None = None
    error: str | None = None
    seconds: float = 0.0
    uncompared: tuple[str, ...] = ()  # bindings of which nothing tells what arrived
    left: tuple[str, ...] = ()  # places that stay


def not_for(scenario: Scenario, endpoint: Endpoint) -> str | None:
    """Why a scenario does not apply to an endpoint, if so."""
    if scenario.needs_fence and not endpoint.fenced:
        return "what only pushes cannot be fenced"
    if scenario.aborts and not endpoint.aborts:
        return "the mock broker does not honour aborted transactions"
    if scenario.in_process and isinstance(endpoint.driver, CommandDriver):
        return "a program cannot be reached into"
    return None


def run_scenario(
    scenario: Scenario,
    endpoint: Endpoint,
    folder: Path,
    *,
    seed: int = 0,
    parts: Parts | None = None,
    emptied: Callable[[], None] = lambda: None,
) -> None:
    """One scenario; raises whatever is wrong. `emptied` is called if the endpoint keeps its places, without rows."""
    harness = Harness(endpoint, folder, name=f"check-{folder.name}", seed=seed, parts=parts)
    try:
        scenario.run(harness)
    finally:
        if endpoint.left:
            with contextlib.suppress(FlowError):
                if harness.empty():
                    emptied()
        harness.close()
        with contextlib.suppress(FlowError):  # what is kept beside the data; that it stays is no fault of the driver
            endpoint.driver.forget(harness.spec)


def run_suite(make: MakeEndpoint, *, seed: int = 0, only: str | None = None) -> Iterator[Result]:
    """All scenarios, or those whose names contain `only`, each with an endpoint of its own.

    Places that cannot be removed are emptied by the protocol, and the next scenario takes them.
    """
    again: list[Endpoint] = []
    for scenario in SCENARIOS:
        if only is not None and only not in scenario.name:
            continue
        with tempfile.TemporaryDirectory(prefix="everview-check-") as made:
            folder = Path(made)
            endpoint = again.pop() if again else make(folder)
            try:
                reason = not_for(scenario, endpoint)
                if reason is not None:
                    yield Result(scenario, True, skipped=reason)
                    if endpoint.left:
                        again.append(endpoint)
                    continue
                started, error = time.perf_counter(), None
                try:
                    run_scenario(scenario, endpoint, folder, seed=seed, emptied=partial(again.append, endpoint))
                except Exception as raised:
                    error = endpoint.driver.hide(str(raised) or type(raised).__name__)
                seconds = time.perf_counter() - started
                yield Result(scenario, error is None, None, error, seconds, endpoint.uncompared, endpoint.left)
            finally:
                endpoint.clean()
