"""Deliberate defects, one for each scenario at least: with it, the scenario must fail."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from everview.flow import fencing
from everview.flow.check.harness import Parts
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.combine import Combiner
from everview.flow.drivers import sql, sqlite
from everview.flow.drivers.contract import Transactor
from everview.flow.fencing import Carved, OwnedRange, carve
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import Acknowledge, StartCommit, StartedCommit
from everview.flow.recovery_log import RecoveryLog
from everview.flow.runtime import Task
from tests.flow.ledger import commit_one
from tests.flow.program import leaves_others


@dataclass(frozen=True)
class Defect:
    """What is wrong, in which scenario it must show, on which driver, and how it is brought about.

    `without` are bindings to leave out, where their primary keys would save the others.
    """

    scenario: str
    driver: str
    about: str
    parts: Callable[[pytest.MonkeyPatch], Parts]
    without: tuple[str, ...] = ()


DEFECTS: list[Defect] = []


def defect(
    *scenarios: str, driver: str, without: tuple[str, ...] = ()
) -> Callable[[Callable[[pytest.MonkeyPatch], Parts]], Any]:
    """Enter a function in the list."""

    def enter(make: Callable[[pytest.MonkeyPatch], Parts]) -> Any:
        DEFECTS.extend(Defect(each, driver, (make.__doc__ or "").strip(), make, without) for each in scenarios)
        return make

    return enter


@defect("transactions", driver="sqlite")
@defect("transactions", driver="postgres")
@defect("transactions", driver="parquet")
def truncated_tail(patch: pytest.MonkeyPatch) -> Parts:
    """The driver loses the last document of every batch."""

    def wrap(made: Any) -> Transactor:
        store = made.store
        made.store = lambda binding, documents: store(binding, documents.slice(0, max(1, documents.num_rows - 1)))
        return made

    return Parts(wrap=wrap)


@defect("crash_at_open", "crash_again_and_again", driver="parquet")
def starts_anew(patch: pytest.MonkeyPatch) -> Parts:
    """The runtime forgets its checkpoint when it starts."""

    class Forgetful(Task):
        def open(self) -> None:
            super().open()
            self.committed = self._position = Checkpoint.at(self.range, START)

    return Parts(task=Forgetful)


@defect("crash_before_flush", driver="parquet")
def log_before_flush(patch: pytest.MonkeyPatch) -> Parts:
    """The recovery log has the checkpoint before anything is loaded or stored."""

    class Hasty(Task):
        def _load(self, combiners: dict[int, Combiner], end: Checkpoint) -> None:
            self._row = commit_one(self._log, self._row, Checkpoint.at(self.range, self._source.upper), None)
            super()._load(combiners, end)

    return Parts(task=Hasty)


@defect("crash_at_flushed", driver="parquet")
def log_at_flushed(patch: pytest.MonkeyPatch) -> Parts:
    """The recovery log has the checkpoint as soon as everything is loaded: before Flushed is looked at."""

    class Hasty(Task):
        def settle(self) -> None:
            super().settle()
            self._row = commit_one(self._log, self._row, Checkpoint.at(self.range, self._source.upper), None)

    return Parts(task=Hasty)


@defect("crash_in_mid_store", driver="sqlite")
def commits_every_store(patch: pytest.MonkeyPatch) -> Parts:
    """The driver commits every batch by itself."""

    def wrap(made: Any) -> Transactor:
        store = made.store

        def commit(binding: int, documents: pa.Table) -> None:
            store(binding, documents)
            made._write()
            made._db.execute("COMMIT")

        made.store = commit
        return made

    return Parts(wrap=wrap)


@defect("crash_before_start_commit", driver="sqlite")
def commits_on_close(patch: pytest.MonkeyPatch) -> Parts:
    """The driver commits what it has when the conversation ends, however it ends."""

    def wrap(made: Any) -> Transactor:
        close = made.close

        def commit() -> None:
            made._write()
            made._db.execute("COMMIT")
            close()

        made.close = commit
        return made

    return Parts(wrap=wrap)


@defect("crash_at_start_commit", driver="parquet")
def log_before_started(patch: pytest.MonkeyPatch) -> Parts:
    """The recovery log has the checkpoint before the driver has begun to commit, and so without its state."""

    class Hasty(Task):
        def _commit(self, checkpoint: Checkpoint) -> None:
            self._row = commit_one(self._log, self._row, checkpoint, None)
            self._send(StartCommit(checkpoint.encode()))
            response = self._receive()
            assert isinstance(response, StartedCommit)
            self._row = commit_one(self._log, self._row, checkpoint, response.state)
            self.committed = self._position = checkpoint
            self._send(Acknowledge())

    return Parts(task=Hasty)


@defect("crash_between_the_commits", driver="sqlite")
@defect("crash_between_the_commits", driver="postgres")
def ignores_the_endpoint(patch: pytest.MonkeyPatch) -> Parts:
    """The runtime goes on from its own checkpoint although the endpoint is authoritative."""

    class Deaf(Task):
        def open(self) -> None:
            super().open()
            self.committed = self._position = self._row.checkpoint

    return Parts(task=Deaf)


@defect("crash_between_the_commits", driver="parquet")
@defect("crash_between_the_commits", driver="delta")
def applies_too_early(patch: pytest.MonkeyPatch) -> Parts:
    """The driver applies what it staged before the recovery log has it."""

    def wrap(made: Any) -> Transactor:
        start_commit = made.start_commit

        def early(checkpoint: str) -> Any:
            started = start_commit(checkpoint)
            made.acknowledge()
            return started

        made.start_commit = early
        return made

    return Parts(wrap=wrap)


@defect("crash_before_acknowledge", driver="parquet")
@defect("crash_before_acknowledge", driver="delta")
def first_acknowledge_ignored(patch: pytest.MonkeyPatch) -> Parts:
    """The driver takes it for granted that a former one applied what it staged."""

    def wrap(made: Any) -> Transactor:
        acknowledge = made.acknowledge
        calls: list[None] = []

        def ignoring() -> Any:
            calls.append(None)
            return acknowledge() if len(calls) > 1 else None

        made.acknowledge = ignoring
        return made

    return Parts(wrap=wrap)


@defect("replayed_acknowledge", driver="parquet")
def applies_twice(patch: pytest.MonkeyPatch) -> Parts:
    """The driver applies a staged file as often as it is told to."""

    def copied(source: Path, target: Path) -> None:
        shutil.copy(source, target.with_name(f"{target.stem}-{uuid.uuid4().hex}.parquet"))

    patch.setattr(os, "replace", copied)
    return Parts()


@defect("split_during_commit", driver="parquet")
def state_forgotten(patch: pytest.MonkeyPatch) -> Parts:
    """A range that is opened does not get the driver's state."""

    class Forgetful(RecoveryLog):
        def open(self, range: KeyRange, held: OwnedRange | None = None) -> OwnedRange:
            return replace(super().open(range, held), state={})

    return Parts(log=Forgetful)


@defect("zombie_at_store", "zombie_at_commit", driver="sqlite")
def fence_not_compared(patch: pytest.MonkeyPatch) -> Parts:
    """The driver commits whatever the fence."""

    def unfenced(self: Any, checkpoint: str) -> None:
        change = f"UPDATE {sql.CHECKPOINTS} SET checkpoint = ? WHERE {self._of_range}"
        self._db.execute(change, [checkpoint, *self._mine])
        self._db.execute("COMMIT")

    patch.setattr(sqlite.SqliteTransactor, "check_fence", lambda self: None)
    patch.setattr(sqlite.SqliteTransactor, "commit", unfenced)
    return Parts()


@defect("stall_beyond_the_limit", driver="sqlite", without=("view", "totals"))
def fence_not_moved(patch: pytest.MonkeyPatch) -> Parts:
    """Opening leaves the fence as it was."""

    def same(rows: Any, range: KeyRange) -> Carved:
        carved = carve(rows, range)
        mine = replace(carved.mine, fence=1)
        return Carved(mine, carved.removed, (mine, *carved.written[1:]))

    patch.setattr(sql, "carve", same)
    return Parts()


@defect("zombie_at_acknowledge", driver="parquet")
def log_not_fenced(patch: pytest.MonkeyPatch) -> Parts:
    """The recovery log takes a commit from anyone."""

    class Open(RecoveryLog):
        def check(self, row: OwnedRange) -> None:
            return None

    def wrap(made: Any) -> Transactor:  # whoever stalls is not closed either, and goes on by itself
        start_commit = made.start_commit

        def committing(checkpoint: str) -> Any:
            started = start_commit(checkpoint)
            made.acknowledge()
            return started

        made.start_commit = committing
        return made

    return Parts(log=Open, wrap=wrap)


@defect("stalled_commit", driver="delta")
def loads_before_apply(patch: pytest.MonkeyPatch) -> Parts:
    """The driver reads before the last transaction is applied."""

    def wrap(made: Any) -> Transactor:
        acknowledge, flush = made.acknowledge, made.flush

        def late() -> Iterator[Any]:
            found = list(flush())
            acknowledge()
            yield from found

        made.acknowledge, made.flush = lambda: None, late
        return made

    return Parts(wrap=wrap)


@defect("split_during_store", "join_after_split", "ranges_cut_across", driver="sqlite")
def rows_left_behind(patch: pytest.MonkeyPatch) -> Parts:
    """Rows of ranges that were split or joined stay as they were."""
    patch.setattr(sql, "carve", leaves_others)
    return Parts()


@defect("join_with_staged_commits", driver="parquet")
@defect("join_with_staged_commits", driver="delta")
def last_state_wins(patch: pytest.MonkeyPatch) -> Parts:
    """Of the states of ranges that are joined, only the last one is kept."""
    patch.setattr(fencing, "merge_patch", lambda target, change: dict(change))
    return Parts()


@defect("join_after_split", "ranges_cut_across", "ranges_and_crashes_at_random", driver="postgres")
@defect("join_after_split", "ranges_cut_across", driver="parquet")
def greatest_frontier(patch: pytest.MonkeyPatch) -> Parts:
    """Of the frontiers of ranges that are joined, the greatest is taken for all."""
    merged = Checkpoint.merged

    def greatest(checkpoints: Any) -> Checkpoint:
        found = merged(checkpoints)
        return Checkpoint.at(KeyRange(found.pieces[0][0].begin, found.pieces[-1][0].end), found.highest)

    patch.setattr(Checkpoint, "merged", greatest)
    return Parts()
