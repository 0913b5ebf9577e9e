"""Every driver of ours in this process and as a program, in both codecs: all scenarios, and processes that are killed.

What is pushed, read and counted is the same however a driver is run. Most of it is long.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everview.flow.check.harness import Endpoint
from everview.flow.check.scenarios import SCENARIOS, Scenario
from everview.flow.check.suite import run_scenario
from everview.flow.check.workload import summary, without_repeats
from everview.flow.drivers.command import CommandDriver
from everview.storage.environment import Environment
from tests.flow.conftest import PROGRAM
from tests.flow.matrix_child import ResumedWorkload, opened

DRIVERS = ("sqlite", "postgres", "delta", "parquet", "redis", "webhook")
KAFKA = "kafka"  # of the mock broker, which takes what was aborted for committed: so nothing is killed there
CODECS = ("json", "proto")
SHORT = {("parquet", "proto", "transactions")}  # a program of ours takes a second or more to start
KILLED_SHORT = {("strict", "proto"), ("redis", "here")}
KILLS_SHORT, KILLS_LONG = 2, 12
WAIT_S = 120.0


def program_of(endpoint: Endpoint, codec: str) -> Endpoint:
    """The same endpoint, with its driver as a program."""
    inner = endpoint.driver
    config = {"command": f"{sys.executable} {PROGRAM} {inner.name}", "codec": codec, "config": dict(inner.config)}

    class Program(CommandDriver):
        delta_only = inner.delta_only

    return dataclasses.replace(endpoint, driver=Program(config))


def cases() -> list[Any]:
    found = []
    for driver in (*DRIVERS, KAFKA):
        for codec in CODECS:
            for scenario in SCENARIOS:
                if scenario.in_process or (driver == "webhook" and scenario.needs_fence):
                    continue
                if driver == KAFKA and scenario.aborts:
                    continue
                marks = () if (driver, codec, scenario.name) in SHORT else pytest.mark.long
                found.append(pytest.param(driver, codec, scenario, id=f"{driver}-{codec}-{scenario.name}", marks=marks))
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("driver", "codec", "scenario"), cases())
def test_scenario_of_a_driver_as_a_program(
    driver: str, codec: str, scenario: Scenario, endpoint: Callable[..., Endpoint], tmp_path: Path
) -> None:
    run_scenario(scenario, program_of(endpoint(driver), codec), tmp_path, seed=int(os.environ["EVERVIEW_SEED"]))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("driver", "codec"),
    [
        pytest.param(*case, id="-".join(case), marks=() if case in KILLED_SHORT else pytest.mark.long)
        for case in ((driver, codec) for driver in (*DRIVERS, "strict") for codec in ("here", *CODECS))
        if case != ("strict", "here")
    ],
)
def test_splits_that_change_and_processes_that_are_killed(
    driver: str, codec: str, *, endpoint: Callable[..., Endpoint], tmp_path: Path, rng: random.Random, long_forms: bool
) -> None:
    made = endpoint(driver, codec=codec) if driver == "strict" else endpoint(driver)
    if codec != "here" and driver != "strict":
        made = program_of(made, codec)
    kill_and_compare(made, tmp_path, rng, KILLS_LONG if long_forms else KILLS_SHORT)


def kill_and_compare(made: Endpoint, tmp_path: Path, rng: random.Random, kills: int) -> None:
    """The whole process is killed again and again while it delivers; in the end the endpoint is the source."""
    settings = {
        "name": f"killed-{uuid.uuid4().hex}",
        "driver": made.driver.name,
        "config": dict(made.driver.config),
        "resources": {name: dict(resource) for name, resource in made.resources.items()},
        "deltas": made.deltas,
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    transactions = 0
    for _ in range(kills):
        transactions += run_and_kill(tmp_path, rng)
    assert transactions, "the processes were killed in the middle of their transactions"
    with Environment.open(tmp_path / "data", background=False) as environment:
        workload = ResumedWorkload(environment, "last")
        workload.write(3)
        sink = opened(environment, settings)
        sink.split(rng.randint(1, 3))
        sink.start()
        assert sink.wait(workload.time, WAIT_S), sink.status()
        names = [each for each in ("totals", "view", "log") if each in made.resources]
        for name, binding in zip(names, sink._spec.bindings, strict=True):
            compare(made, name, binding, workload)
        sink.drop()


def compare(made: Endpoint, name: str, binding: Any, workload: ResumedWorkload) -> None:
    assert made.read is not None
    found, expected = summary(name, made.read(name, binding), deltas=made.deltas), workload.expected(name)
    if not made.exact:
        found, expected = without_repeats(found), without_repeats(expected)
    assert found == expected, name


def run_and_kill(folder: Path, rng: random.Random) -> int:
    """Start the child and kill it some time later; gives how many transactions it made."""
    arguments = [sys.executable, "-m", "tests.flow.matrix_child", str(folder / "data"), str(folder / "settings.json")]
    errors = folder / "errors.txt"
    with (
        errors.open("w") as log,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        assert child.stdout is not None
        transactions, deadline = 0, 0.0
        while line := child.stdout.readline():
            transactions = max(transactions, int(line))  # splits that change begin to count anew
            if transactions:
                deadline = deadline or time.monotonic() + rng.uniform(0.1, 3.0)
            if deadline and time.monotonic() > deadline:
                child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL, errors.read_text()
    return transactions
