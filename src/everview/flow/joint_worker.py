"""The worker that takes all ranges of a foreign driver through their transactions together, phase by phase.

Public connectors share one state among their ranges, and some let the first range apply what all of them have staged.
So each hears of the changes of state that all have made: with `Flush` of those that came with `Acknowledged`, with
`StartCommit` of those of `Flushed`, and with `Acknowledge` of those of `StartedCommit`. For that to be true, no range
may be flushed before all are acknowledged, nor acknowledged before all have begun to commit. The recovery log has all
of them in one commit. The next transactions are read, and their loads sent, while the last ones are still committed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import add
from typing import Any

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Spec
from everview.flow.drivers.contract import Driver
from everview.flow.errors import DuplicateKey, NullKey
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import Patches
from everview.flow.runtime import Delivery, Task
from everview.flow.worker import WAIT_S, Runner, WorkerStatus

POLL_S = 0.05


class JointWorker(Runner):
    """Delivers all ranges of a program, phase by phase."""

    def __init__(
        self, driver: Driver, spec: Spec, ranges: Sequence[KeyRange], delivery: Delivery, **options: Any
    ) -> None:
        super().__init__(driver, spec, f"{len(ranges)} splits", delivery, **options)
        self._ranges = list(ranges)
        self._rounds = 0
        self._frontiers = dict.fromkeys(ranges, START)
        self._stored_by = dict.fromkeys(ranges, (0,) * len(spec.bindings))

    def statuses(self) -> tuple[WorkerStatus, ...]:
        return tuple(
            self._status(range, self._frontiers[range], self._rounds, self._stored_by[range]) for range in self._ranges
        )

    def _converse(self) -> None:
        tasks = [Task(self.spec, range, self._delivery) for range in self._ranges]
        before, orderly = dict(self._stored_by), False
        try:
            for task in tasks:
                with self._opening():
                    task.open()
            while not self.loop.stopping:
                if self._ready(tasks):
                    self._round(tasks)
                    self._noted(tasks)
                    for task in tasks:
                        self._stored_by[task.range] = tuple(map(add, before[task.range], task.counters.stored_by))
            deadline = time.monotonic() + self._limits.stall_s
            while not (orderly := self._acknowledged(tasks, POLL_S)) and time.monotonic() < deadline:
                pass
        except (NullKey, DuplicateKey):
            self._source.halves = False  # what is wrong in the middle of an interval may be right at its end
            raise
        finally:
            for task in tasks:
                task.close(orderly=orderly)

    def _acknowledged(self, tasks: Sequence[Task], wait_s: float) -> bool:
        """Wait a while for all ranges to be acknowledged. Gives whether they are."""
        for task in tasks:
            if not task.acknowledged:
                task.step_acknowledged(wait_s)
        return self._noted(tasks)

    def _noted(self, tasks: Sequence[Task]) -> bool:
        """If all ranges are acknowledged, note where they stand. Gives whether they are."""
        if not all(task.acknowledged for task in tasks):
            return False
        self.loop.recovered()
        for task in tasks:
            self._frontiers[task.range] = task.position
        return True

    def _ready(self, tasks: Sequence[Task]) -> bool:
        """Whether something can be delivered now. If not, wait a while for that or for acknowledgements."""
        lowest = min(task.position for task in tasks)
        due_s = max(task.due_s() for task in tasks)
        if (self._source.upper <= lowest or due_s > 0) and not self._acknowledged(tasks, POLL_S):
            return False
        if self._source.upper <= lowest:
            self._source.wait(lambda: self.loop.stopping or self._source.upper > lowest, WAIT_S)
            return False
        if due_s > 0:
            self.loop.pause(min(due_s, WAIT_S))
            return False
        return True

    def _round(self, tasks: Sequence[Task]) -> None:
        """One transaction of each range, as far as the collections are complete."""
        time = self._source.interval_end(Checkpoint.merged([task.at for task in tasks]))
        ends = [task.end_at(max(time, task.at.highest)) for task in tasks]
        changed = []
        for task, end in zip(tasks, ends, strict=True):
            with _explained(task):
                changed.append(task.prepare(end))
        if not any(changed) and not any(task.heartbeat_due for task in tasks):
            for task, end in zip(tasks, ends, strict=True):
                task.skip(end)
            return
        combiners = [task.combiners for task in tasks]
        for task, each in zip(tasks, combiners, strict=True):
            task.send_loads(each)
        for task in tasks:
            task.settle()
        self._noted(tasks)
        patches = _news(tasks)
        for task, end in zip(tasks, ends, strict=True):
            task.flush(patches, end)
        for task, each in zip(tasks, combiners, strict=True):
            with _explained(task):
                task.take_loaded(each)
        for task, end in zip(tasks, ends, strict=True):
            with _explained(task):
                task.store(end)
        patches = _news(tasks)
        for task, end in zip(tasks, ends, strict=True):
            task.start_commit(end, patches)
        rows = [task.started() for task in tasks]
        done = [(row, end, task.committed) for row, end, task in zip(rows, ends, tasks, strict=True)]
        updates = [update for task in tasks for update in task.unsaved()]
        rows = self._delivery.log.commit_together(done, updates, self._delivery.also)
        patches = _news(tasks)
        for task, row, end in zip(tasks, rows, ends, strict=True):
            task.end_transaction(row, end, patches)
        self._rounds += 1
        self.loop.progressed()
        self._source.halves = True


def _news(tasks: Sequence[Task]) -> Patches:
    """The changes of state that all ranges have reported, in the order of the ranges."""
    return tuple(patch for task in tasks for patch in task.take_news())


@contextmanager
def _explained(task: Task) -> Iterator[None]:
    """Within the block, a key that occurs twice at the endpoint alone is reported as drift."""
    try:
        yield
    except DuplicateKey as error:
        task.check_data(error)
        raise
