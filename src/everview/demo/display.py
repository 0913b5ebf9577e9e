"""The demo's display: at a terminal a picture that is redrawn in place, elsewhere a line every other second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich import box
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from everview.demo.proof import Check
from everview.demo.scenario import TABLES, VIEWS
from everview.demo.watch import Follower, Standing, Watch
from everview.storage.contract import Frontier

DRAW_EVERY_S = 0.25
LINE_EVERY_S = 2.0


class Display:
    """Shows the relations and the contents that subscribers have received."""

    def __init__(self, console: Console, watch: Watch, followers: Sequence[Follower]) -> None:
        self._console, self._watch, self._followers = console, watch, followers
        self._began = time.monotonic()
        self._next_line = 0.0
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._live is not None:
            self._live.stop()

    def draw(self) -> None:
        """Look at the relations, and show them if it is time."""
        standings = self._watch.look()
        self._watch.remember(standings)
        if self._live is not None:
            self._live.update(self._picture(standings), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_EVERY_S
            views = [each for each in standings if each.name not in TABLES]
            parts = [f"{each.name} {each.behind_ms} ms behind, {each.rate:,.0f} changes/s" for each in views]
            self._console.print(f"{time.monotonic() - self._began:5.1f} s   {'   '.join(parts)}", soft_wrap=True)

    def _picture(self, standings: list[Standing]) -> RenderableType:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("relation")
        table.add_column("what it is")
        for name in ("readable since", "complete until", "behind", "updates", "per s", "ticks", "ms each"):
            table.add_column(name, justify="right")
        shows = {view.name: view.shows for view in VIEWS}
        for each in standings:
            ticks = (str(each.ticks), f"{each.tick_ms:,.0f}") if each.name in shows else ()
            table.add_row(
                each.name,
                shows.get(each.name, "source"),
                clock_time(each.frontiers.since),
                clock_time(each.frontiers.upper),
                f"{each.behind_ms:,} ms",
                f"{each.updates:,}",
                f"{each.rate:,.0f}",
                *ticks,
            )
        headline = Text(f"{time.monotonic() - self._began:4.1f} s", style="bold")
        return Group(headline, table, Columns([_rows(each) for each in self._followers], padding=(0, 4)))


def _rows(follower: Follower) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"SUBSCRIBE TO {follower.view}", title_justify="left")
    names: tuple[str, ...] = {"items": ("item", "bids", "bid", "mean"), "top_buyers": ("name", "id", "bid")}[
        follower.view
    ]
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number == 0 else "right")
    for row in sorted(follower.rows(), key=lambda row: (row[0],) if len(row) > 3 else (-row[-1], row[1])):
        table.add_row(*(f"{value:,}" if not isinstance(value, str) else value for value in row))
    return table


def clock_time(frontier: Frontier) -> str:
    """A frontier as the time of day."""
    if frontier.empty:
        return "∅"
    return datetime.fromtimestamp(frontier.only // 1000, UTC).strftime(f"%H:%M:%S.{frontier.only % 1000:03d}")


@contextmanager
def busy(console: Console, doing: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done, for as long as it takes; gives a function that changes the text at a terminal."""
    if console.is_terminal:
        with console.status(doing) as status:
            yield lambda said: status.update(Text(said))  # brackets in it are brackets, not rich's marks
    else:
        console.print(f"{doing} ...")
        yield lambda _: None


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Print the checks: as a table at a terminal, else as lines."""
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
