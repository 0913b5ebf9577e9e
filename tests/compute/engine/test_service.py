"""Spark that dies is started again. In a process of its own: a process has one Java, and this one kills it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from concurrent.futures import Future

import pytest

from everview.compute.engine.contract import Early, RunFailed
from everview.compute.engine.spark import service

PROGRAM = """
    import os, signal
    from everview.compute.engine.spark.service import SparkService
    from everview.compute.ir.relation import Constant
    from everview.compute.ir.types import INT8
    from pyspark import SparkContext

    service = SparkService()
    plan = Constant((((1,), 1), ((2,), 3)), (INT8,))
    before = service.run(plan, {})
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    after = service.run(plan, {})
    assert before.sort_by("c0").equals(after.sort_by("c0")), (before, after)
    print("starts", service.starts)
    service.close()
"""


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_spark_that_is_killed_is_started_again() -> None:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=280, check=False
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert "starts 2" in result.stdout


@pytest.mark.parametrize("handed_over", [False, True])
def test_what_was_handed_over_is_not_written_again(handed_over: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that failed left nothing behind, and is tried again; but not if its first part was committed."""
    tries = []

    class Failing:
        def run_large(self, *_: object, early: Early, **__: object) -> None:
            tries.append(1)
            if handed_over:
                early.hand_over({})
            raise RunFailed("an executor is lost")

    monkeypatch.setattr(service, "PAUSE_S", 0.0)
    monkeypatch.setattr(service, "is_alive", lambda _: True)
    for name in ("spark", "_engine_of"):
        monkeypatch.setattr(service.SparkService, name, lambda *_: Failing())
    tried = object.__new__(service.SparkService)
    tried._closed, tried._started = False, Future()
    with pytest.raises(RunFailed):
        tried.run_large([], {}, {}, [], early=Early((), lambda _: None))
    assert len(tries) == (1 if handed_over else service.ATTEMPTS_MAX)
