"""What the demo shows: at a terminal a table that is redrawn in place, elsewhere a line every second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from everview.demo.generator import BIDS, SCHEMAS
from everview.demo.workload import Follower, Writer
from everview.storage.contract import Frontier
from everview.storage.environment import Environment
from everview.storage.rendering import size_text

DRAW_EVERY_S = 0.125
LINE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was said to be true, and whether it is."""

    claim: str
    passed: bool
    detail: str


class Display:
    """Shows the writer, the follower and the collections for as long as it is entered."""

    def __init__(self, console: Console, environment: Environment, writer: Writer, follower: Follower) -> None:
        self._console, self._environment = console, environment
        self._writer, self._follower = writer, follower
        self._began = self._next = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
            self._live.stop()

    def tick(self) -> None:
        """Show how things stand, if it is time to."""
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + (DRAW_EVERY_S if self._live else LINE_EVERY_S)
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
        else:
            self._console.print(self._headline(), soft_wrap=True)

    def _headline(self) -> Text:
        seconds = time.monotonic() - self._began
        commits = len(self._writer.times)
        frontiers = self._environment.frontiers(BIDS)
        behind_ms = max(0, frontiers.upper.only - self._follower.frontier)
        return Text(
            f"{seconds:4.1f} s   {commits:,} commit{'s' * (commits != 1)} ({commits / max(seconds, 0.001):,.0f}/s, "
            f"{self._writer.latency_ms:.1f} ms each)   {self._writer.updates:,} updates   "
            f"subscription {behind_ms} ms behind"
        )

    def _picture(self) -> RenderableType:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("collection")
        for name in ("rows", "readable since", "until before", "batches", "parts", "stored"):
            table.add_column(name, justify="right")
        for id in SCHEMAS:
            batches = self._environment.shard(id).batches.values()
            frontiers = self._environment.frontiers(id)
            table.add_row(
                id,
                f"{self._writer.rows[id]:,}",
                _clock_time(frontiers.since),
                _clock_time(frontiers.upper),
                str(len(batches)),
                str(sum(len(batch.parts) for batch in batches)),
                size_text(sum(batch.size_bytes for batch in batches)),
            )
        return Group(self._headline(), table)


def _clock_time(frontier: Frontier) -> str:
    if frontier.empty:
        return "∅"
    return datetime.fromtimestamp(frontier.only // 1000, UTC).strftime(f"%H:%M:%S.{frontier.only % 1000:03d}")


@contextmanager
def busy(console: Console, doing: str) -> Iterator[None]:
    """Say what is going on while it takes a while."""
    if console.is_terminal:
        with console.status(doing):
            yield
    else:
        console.print(f"{doing} ...")
        yield


def print_checks(console: Console, checks: list[Check]) -> None:
    """What was checked: a table at a terminal, else lines."""
    if not console.is_terminal:
        for check in checks:
            console.print(f"{'✓' if check.passed else '✗'} {check.claim}: {check.detail}", markup=False)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("check", overflow="fold")
    table.add_column("found", overflow="fold")
    for check in checks:
        mark = Text("✓", style="bold green") if check.passed else Text("✗", style="bold red")
        table.add_row(mark, Text(check.claim), Text(check.detail))
    console.print(table)
