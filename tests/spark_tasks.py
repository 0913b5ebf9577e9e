"""What a Spark runs: tasks, whether their job is still there or not, and the pools that jobs are in."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.waiting import WAIT_S_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def running_tasks(session: SparkSession) -> int:
    """How many tasks have a core now."""
    java: Any = session.sparkContext._jsc
    executors = java.sc().statusStore().executorList(True)
    return sum(int(executors.apply(place).activeTasks()) for place in range(executors.size()))


class Jobs:
    """The jobs of a Spark that began since it was last asked, by the pools that their stages were submitted to."""

    def __init__(self, session: SparkSession) -> None:
        self._context: Any = session.sparkContext
        self._seen = self._total()

    def _total(self) -> int:
        return int(self._context._jsc.sc().dagScheduler().numTotalJobs())

    def pools(self) -> set[str]:
        """Of all stages of new jobs that have begun."""
        first, self._seen = self._seen, self._total()
        java = self._context._jsc.sc()
        java.listenerBus().waitUntilEmpty(int(1000 * WAIT_S_MAX))
        tracker, store = self._context.statusTracker(), java.statusStore()
        found = [tracker.getJobInfo(job) for job in range(first, self._seen)]
        stages = []
        for stage in (stage for job in found if job is not None for stage in job.stageIds):
            with suppress(Exception):  # of a stage that was not needed nothing may be known
                stages.append(store.lastStageAttempt(stage))
        begun = [stage for stage in stages if str(stage.status()) not in ("PENDING", "SKIPPED")]
        return {str(stage.schedulingPool()) for stage in begun}
