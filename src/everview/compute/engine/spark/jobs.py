"""The jobs of a run: they end when the run is to end, tell how far they are, and hydration gives way to ticks.

Spark knows the jobs of a thread by tags and by the pool that they belong to. With the fair scheduler, which a Spark
that is started here has, a task that ends makes room for one of the pool that is furthest below its share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everview.compute.cancel import cancellation, check_wanted, is_following, is_in_background
from everview.compute.engine.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

URGENT, FOLLOWING, BACKGROUND = "everview", "everview-following", "everview-background"
DEFAULT = "default"  # Spark's name for the pool of jobs that name none: those of programs, over DataFrames of ours
_POOL, _GROUP = "spark.scheduler.pool", "spark.jobGroup.id"
# Of every hundred tasks that begin while both have some waiting, one is of the background, and ten of what is large.
_POOLS = f"""<?xml version="1.0"?>
<allocations>
  <pool name="{URGENT}"><schedulingMode>FAIR</schedulingMode><weight>100</weight><minShare>1</minShare></pool>
  <pool name="{DEFAULT}"><schedulingMode>FAIR</schedulingMode><weight>100</weight><minShare>0</minShare></pool>
  <pool name="{FOLLOWING}"><schedulingMode>FAIR</schedulingMode><weight>10</weight><minShare>0</minShare></pool>
  <pool name="{BACKGROUND}"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""
_TOLD_MS_MAX, _TASKS_MAX = 5_000, 10_000
_numbers = itertools.count()


def fair_scheduling(folder: Path) -> dict[str, str]:
    """The settings of a Spark that knows the pools; the file that says what they are is written into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "pools.xml"
    file.write_text(_POOLS)
    return {"spark.scheduler.mode": "FAIR", "spark.scheduler.allocation.file": file.resolve().as_uri()}


@contextmanager
def jobs_of_piece(session: SparkSession, name: str) -> Iterator[None]:
    """While inside, what the jobs of this thread read is reported as a piece of the run, if someone wants to know."""
    report = progress()
    if report is None or is_connect(session):
        yield
        return
    group = f"everview_{next(_numbers)}"
    context = session.sparkContext
    context.setLocalProperty(_GROUP, group)
    try:
        with report.piece(name, lambda: _rows_read(session, group)):
            yield
    finally:
        with suppress(Exception):
            context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


def _rows_read(session: SparkSession, group: str) -> int | None:
    """How many rows the jobs of a group have read out of files; tasks that run tell every now and then."""
    try:
        java: Any = session.sparkContext._jsc
        tracker, store = session.sparkContext.statusTracker(), java.sc().statusStore()
        found = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = {stage for job in found if job is not None for stage in job.stageIds}
        return sum(int(store.lastStageAttempt(stage).inputRecords()) for stage in stages)
    except Exception:  # a Spark that is gone, or a stage that it has forgotten
        return None


@contextmanager
def failed_tasks(session: SparkSession) -> Iterator[Callable[[], list[str]]]:
    """Gives a function that tells on which machines and executors tasks of this thread failed, inside of the block.

    Spark's errors tell that of some failures only, and over Spark Connect it is not known.
    """
    if is_connect(session):
        yield list
        return
    group, context = f"everview_{next(_numbers)}", session.sparkContext
    context.setLocalProperty(_GROUP, group)
    try:
        yield lambda: _failed(session, group)
    finally:
        with suppress(Exception):
            context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


def _failed(session: SparkSession, group: str) -> list[str]:
    found: dict[str, None] = {}
    with suppress(Exception):  # a Spark that is gone
        java: Any = session.sparkContext._jsc
        java.sc().listenerBus().waitUntilEmpty(_TOLD_MS_MAX)
        tracker, store = session.sparkContext.statusTracker(), java.sc().statusStore()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        for stage in {stage for info in infos if info is not None for stage in info.stageIds}:
            tasks = store.taskList(stage, store.lastStageAttempt(stage).attemptId(), _TASKS_MAX)
            for task in (tasks.apply(number) for number in range(tasks.size())):
                if task.status() == "FAILED":
                    found[f"{task.host()}, executor {task.executorId()}"] = None
    return list(found)


@contextmanager
def jobs_of_run(session: SparkSession) -> Iterator[None]:
    """While inside, the jobs of this thread are in their pool, and end if whoever asked for them wants them no more.

    What runs `in_background` is in one of the pools that give way, and all else beside ticks.
    """
    check_wanted()
    _use_pool(session)
    wish = cancellation()
    if wish is None:
        yield
        return
    tag = f"everview_{next(_numbers)}"
    add, remove, interrupt = _tagging(session)
    add(tag)
    try:
        with wish.running(lambda: _asked(interrupt, tag)):
            check_wanted()  # who asked a moment ago did not know of this run
            yield
    finally:
        with suppress(Exception):  # of a Spark that died; the first error tells more
            remove(tag)


def _use_pool(session: SparkSession) -> None:
    """Threads are used again for other runs, so it is said each time."""
    if not is_connect(session):  # over Connect there is no context to say it to
        background = FOLLOWING if is_following() else BACKGROUND
        session.sparkContext.setLocalProperty(_POOL, background if is_in_background() else URGENT)


def _tagging(session: SparkSession) -> tuple[Callable[[str], None], Callable[[str], None], Callable[[str], object]]:
    """How to tag what this thread runs, and to end what is tagged.

    A session's tags are not those of the thread in which Java collects a result; those of the context are, and over
    Spark Connect, where there is no context, the session's are as good.
    """
    if is_connect(session):
        return session.addTag, session.removeTag, session.interruptTag
    context = session.sparkContext
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def is_connect(session: SparkSession) -> bool:
    """Whether the session speaks Spark Connect: then there is no SparkContext."""
    return "connect" in type(session).__module__


def _asked(interrupt: Callable[[str], object], tag: str) -> None:
    with suppress(Exception):  # a Spark that does not listen runs nothing any more, or is asked again
        interrupt(tag)
