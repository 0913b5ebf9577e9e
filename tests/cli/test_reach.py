"""An open environment finds out by itself whether Spark reaches its data, and the server prints why not."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from everview import instance as instance_module
from everview.compute.engine.contract import EngineError
from everview.compute.engine.spark.reach import Reached
from everview.instance import Folder, Instance
from everview.serve.cli import keep_serving
from everview.storage.stores import StoreAddresses
from tests.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOBODY = "sc://127.0.0.1:1"


def checked() -> bool:
    """Whether no check is going on."""
    return all(thread.name != "everview-reach" for thread in threading.enumerate())


@pytest.mark.spark
def test_an_object_store_that_spark_has_no_connector_for(
    tmp_path: Path, spark: SparkSession, s3_url: Callable[[str], str]
) -> None:
    stores = StoreAddresses(None, s3_url(f"reach{os.getpid()}"))
    with Folder(tmp_path) as folder, Instance(folder, stores=stores, spark=spark) as opened:
        error = eventually(lambda: opened.unreachable)
        assert "cannot read the blob store" in str(error) and "hadoop-aws" in str(error)


@pytest.mark.spark
@pytest.mark.parametrize(("stops", "told"), [(None, None), (ValueError("odd"), "it was not found out whether")])
def test_what_else_may_come_of_it(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, stops: Exception | None, told: str | None
) -> None:
    def check(*_: Any) -> Reached:
        if stops is not None:
            raise stops
        return Reached(frozenset({"one"}), 2)

    monkeypatch.setattr(instance_module, "check_reach", check)
    with Folder(tmp_path) as folder, Instance(folder, spark=spark) as opened:
        eventually(checked)
        assert told is None if opened.unreachable is None else str(told) in str(opened.unreachable)


def test_that_spark_does_not_start_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Folder(tmp_path) as folder, Instance(folder, spark=NOBODY) as opened:
        eventually(lambda: opened.spark_error)
        eventually(checked)
        assert opened.unreachable is None
        said = lines_of_server(opened, capsys, lambda out: "Spark does not start" in out)
    assert "ticks of many rows" not in said
    eventually(lambda: all(each.name != "everview-spark-start" for each in threading.enumerate()))


def test_the_line_of_the_server(capsys: pytest.CaptureFixture[str]) -> None:
    error = EngineError("spark's executors cannot read the blob store", detail="why", hint="what to do")
    opened = cast("Instance", SimpleNamespace(unreachable=error, fenced=None, spark_error=None, ready=False))
    said = lines_of_server(opened, capsys, lambda out: "what to do" in out)
    assert said == f"error: ticks of many rows will fail: {error}\n"


def lines_of_server(opened: Instance, capsys: pytest.CaptureFixture[str], until: Callable[[str], bool]) -> str:
    """What a server says on standard error until then."""
    said: list[str] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            said.append(capsys.readouterr().err)
            return until("".join(said)) or super().wait(0.01)

        def is_set(self) -> bool:
            return True

    running: Any = SimpleNamespace(wait=lambda timeout: False)
    keep_serving(Stop(), running, opened, 0.0)
    return "".join(said)
