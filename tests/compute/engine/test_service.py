"""Spark that dies is started again. In a process of its own: a process has one Java, and this one kills it."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

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
