"""The demo from start to end: views are made while Spark starts, are shown live for a while, and are then checked."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from everview.api import Database
from everview.console import Hydrating, hydration_line, last_lines, spark_log
from everview.demo.display import DRAW_EVERY_S, Display, busy, print_checks
from everview.demo.proof import Check, delivered, heard, recomputed
from everview.demo.scenario import SCHEMA, TABLES, VIEWS, source
from everview.demo.watch import Follower, Watch
from everview.errors import EverviewError
from everview.instance import Folder, Instance, check_java
from everview.storage.stores import IN_FOLDER, StoreAddresses

OPENS = (
    "An auction house opens: ten times a second an auction and 20 bids, and three materialized views.\n"
    "Spark is starting in the background. Until it is warm, views are maintained without it.\n"
)
LOG = "spark.log"
DELIVERED = "-delivered.db"  # the SQLite file is beside the data folder, never in it
FOLLOWED = ("items", "top_buyers")
LIVE_S_MIN = 5.0  # however long Spark took to start
WARM_S_MAX = 120.0
TIMES = 4
FIRST_S = 10.0  # a newcomer's first impression, shown beside what is usual


def run(
    data: Path | None,
    seconds: float,
    seed: int,
    spark: str | None = "local[*]",
    *,
    stores: StoreAddresses = IN_FOLDER,
    take_over: bool = False,
) -> bool:
    """Run the demo for so many seconds, in folder `data` or a temporary one; gives whether all checks passed."""
    if data is not None and data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise EverviewError(f"{data} exists and is not an empty folder", hint="name a new folder for the demo's data")
    if data is not None and delivered_at(data).exists():
        raise EverviewError(f"{delivered_at(data)} exists", hint="remove it, or name another folder")
    check_java(spark)
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="everview-demo-", ignore_cleanup_errors=True) as scratch:
        path = data or Path(scratch, "data")
        with Folder(path) as folder, spark_log(path / LOG):
            opened = partial(Instance, folder, spark=spark, stores=stores, take_over=take_over)
            checks = list(_show(console, folder, seconds, seed, opened))
    print_checks(console, checks)
    passed = all(check.passed for check in checks)
    console.print("All views are exact." if passed else "Something is wrong.", style="green" if passed else "red")
    if data is not None:
        console.print(f"To go on with this data: everview serve --data {data}")
    return passed


def delivered_at(data: Path) -> Path:
    """The SQLite file that views of the demo in this folder are delivered into."""
    path = data.resolve()
    return path.with_name(path.name + DELIVERED)


def _show(
    console: Console,
    folder: Folder,
    seconds: float,
    seed: int,
    opened: Callable[[], Instance],
) -> Iterator[Check]:
    began, log = time.monotonic(), folder.path / LOG
    with opened() as instance, Database(instance, folder) as database:
        console.print(OPENS)
        database.sql(f"CREATE SCHEMA {SCHEMA}")
        database.sql(f"SET search_path = {SCHEMA}")
        database.sql(source(seed))
        for view in VIEWS:
            database.sql(view.statement)
        file = delivered_at(folder.path)
        watch = Watch(instance, (*TABLES, *(view.name for view in VIEWS)))
        with busy(console, "computing the views for the first time") as say:
            followers = [Follower(database, SCHEMA, name) for name in FOLLOWED]
            _wait_for_views(instance, watch, followers, log, say)
            for view in VIEWS:
                database.sql(view.sink_statement(file))
        with Display(console, watch, followers) as display:
            end = max(began + seconds, time.monotonic() + LIVE_S_MIN)
            while time.monotonic() < end:
                if not instance.ready:  # some of it is to be seen on Spark
                    _check_spark(instance, log, began)
                    end = max(end, time.monotonic() + LIVE_S_MIN)
                display.draw()
                time.sleep(DRAW_EVERY_S)
        standings = watch.look()
        since = max(each.frontiers.since.only for each in standings)
        first, last = since, min(each.frontiers.upper.only for each in standings) - 1
        console.print(f"\nMedian distance behind the present, {distances(watch)}\n")
        with busy(console, "recomputing every view from scratch at several timestamps, and comparing"):
            for follower in followers:
                follower.finish(last + 1)
            times = [first + (last - first) * number // (TIMES - 1) for number in range(TIMES)]
            yield from recomputed(database, VIEWS, times)
            for follower in followers:
                yield heard(database, follower)
            for view in VIEWS:
                yield delivered(database, view, file, last)


def distances(watch: Watch) -> str:
    """How far the views were behind the present in the demo's first seconds, and in all that was shown."""

    def medians(seconds: float | None = None) -> str:
        return ", ".join(f"{view.name} {watch.usual_ms(view.name, seconds):,.0f} ms" for view in VIEWS)

    return f"in the first {FIRST_S:.0f} s: {medians(FIRST_S)}; in all: {medians()}"


def _check_spark(instance: Instance, log: Path, began: float) -> None:
    """Raise if Spark failed to start, or takes too long."""
    if instance.spark_error is not None:
        raise EverviewError("Spark did not start", detail=f"{instance.spark_error}; {last_lines(log)}")
    if time.monotonic() > began + WARM_S_MAX:
        raise EverviewError(f"Spark has not started within {WARM_S_MAX:.0f} s", detail=last_lines(log) or None)


def _wait_for_views(
    instance: Instance, watch: Watch, followers: Sequence[Follower], log: Path, say: Callable[[str], None]
) -> None:
    """Wait until every view has been computed once, and the followers have the contents."""
    began = time.monotonic()

    def there() -> bool:
        _check_spark(instance, log, began)
        if views := hydrating(instance):
            say(hydration_line(views))
        standings = [each for each in watch.look() if each.name not in TABLES]
        return all(each.ticks for each in standings) and all(each.frontier or each.error for each in followers)

    while not there():
        if time.monotonic() > began + WARM_S_MAX:
            raise EverviewError(f"the views were not there within {WARM_S_MAX:.0f} s", detail=last_lines(log) or None)
        time.sleep(0.1)


def hydrating(instance: Instance) -> list[Hydrating]:
    """The views that are being computed for the first time."""
    coordinator = instance.coordinator
    items = coordinator.catalog.state.items.values()
    running = [
        (item, hydration) for item in items if (hydration := coordinator.maintenance.hydration(item.id)) is not None
    ]
    return [
        Hydrating(item.name, each.rows_read, each.rows_total, each.left_s, coordinator.hydrated(item))
        for item, each in running
    ]
