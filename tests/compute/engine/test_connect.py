"""Spark Connect where it cannot be used: the error says what to do. `test_cluster.py` uses it."""

from __future__ import annotations

import importlib.util
import os
import threading

import pytest

from everview.compute.engine.contract import RunFailed
from everview.compute.engine.spark import session
from everview.compute.engine.spark.service import SparkService
from tests.waiting import eventually

NOBODY = "sc://127.0.0.1:1/;token=hunter2"


def failure() -> RunFailed:
    service = SparkService(NOBODY)
    try:
        with pytest.raises(RunFailed, match=r"spark at sc://127\.0\.0\.1:1/ could not be started") as caught:
            service.spark()
    finally:
        service.close()
        # While it tries, sessions of PySpark in this process are those of Spark Connect.
        eventually(lambda: all(each.name != "everview-spark-start" for each in threading.enumerate()))
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ
    assert "hunter2" not in str(caught.value) and "Java" not in str(caught.value)
    return caught.value


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None if name.startswith("grpc") else object())
    found = failure()
    assert "missing: grpc, grpc_status" in str(found.detail)
    assert found.hint == "install them: pip install 'everview[connect]'"


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    if not all(map(importlib.util.find_spec, session.CONNECT_MODULES)):
        pytest.skip("the client of Spark Connect is not installed: see the extra `connect`")
    monkeypatch.setattr(session, "CONNECT_TRIES_MAX", 1)
    assert "a Spark Connect server listens at this address" in str(failure().hint)
