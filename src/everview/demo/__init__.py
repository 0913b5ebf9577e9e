"""A demo of what there is today: an auction house at work on durable collections, and the proof that they are exact."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from everview.demo.checks import Proof
from everview.demo.display import Check, Display, busy, print_checks
from everview.demo.generator import SCHEMAS
from everview.demo.spark import spark_session
from everview.demo.workload import Follower, Writer
from everview.errors import EverviewError
from everview.storage.environment import Environment

HISTORY_MS_MAX = 3000
STEPS_AFTER_COMPACTION = 10  # so that some updates are in files and some inline


def run(data: Path | None, seconds: float, seed: int) -> bool:
    """Show it for so many seconds, in folder `data` or in one that does not stay; whether all checks passed."""
    if data is not None and data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise EverviewError(f"{data} exists and is not an empty folder", hint="name a new folder for the demo's data")
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="everview-demo-") as scratch:
        folder = data or Path(scratch, "data")
        console.print(f"An auction house at work in {folder} for {seconds:g} seconds, from seed {seed}:\n")
        checks = list(_work_and_check(console, folder, Path(scratch), seconds, seed))
    print_checks(console, checks)
    passed = all(check.passed for check in checks)
    if passed:
        console.print("All checks passed.", style="green")
    if data is not None:
        console.print(f"Look inside with: everview shard ls --data {data}")
    return passed


def _work_and_check(console: Console, folder: Path, scratch: Path, seconds: float, seed: int) -> Iterator[Check]:
    with Environment.open(folder) as environment:
        writer = Writer(environment, seed, history_ms=min(HISTORY_MS_MAX, int(seconds * 300)))
        follower = Follower(environment, writer.reader)
        with Display(console, environment, writer, follower) as display:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                writer.step()
                display.tick()
            for id in SCHEMAS:
                environment.maintenance.compact(id)
            for _ in range(STEPS_AFTER_COMPACTION):
                writer.step()
            follower.finish(writer.now)
        with busy(console, "working out from the seed what must be there, and comparing"):
            proof = Proof(environment, writer, seed)
            yield from proof.checks(follower, folder)
        with busy(console, "starting Spark, to ask it too"):
            yield _spark_check(proof, scratch)
    with busy(console, "opening it again"), Environment.open(folder) as environment:
        yield proof.reopened(environment)


def _spark_check(proof: Proof, scratch: Path) -> Check:
    try:
        with spark_session(scratch) as spark:
            return proof.spark(spark)
    except EverviewError as error:
        return Check(Proof.SPARK_CLAIM, False, str(error))
