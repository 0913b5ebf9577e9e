"""A small collection for the tests to write to, in an environment of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import SqlType, arrow_type
from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import Binding
from everview.flow.fencing import OwnedRange
from everview.flow.materialization import make_binding
from everview.flow.protocol import StateUpdate
from everview.flow.recovery_log import RecoveryLog
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain


class Ledger:
    """One collection with named columns, and its writer."""

    def __init__(self, folder: Path, *columns: tuple[str, SqlType], at: int = 0) -> None:
        self.columns = columns
        self.environment = Environment(MemoryConsensus(), MemoryBlob(), folder / "scratch", background=False)
        self.schema = pa.schema([(f"c{at}", arrow_type(kind)) for at, (_, kind) in enumerate(columns)])
        _, self._writer = self.environment.create("u1", self.schema, at=at)

    @property
    def upper(self) -> int:
        return self.environment.frontiers("u1").upper.only

    def write(self, *changes: tuple[int, Sequence[Any]]) -> int:
        """Changes (diff, row) at one time; gives the upper after it."""
        now = self.upper
        columns: dict[str, Any] = {
            "_time": pa.array([now] * len(changes), pa.int64()),
            "_diff": pa.array([diff for diff, _ in changes], pa.int64()),
        }
        for at, field in enumerate(self.schema):
            columns[field.name] = pa.array([row[at] for _, row in changes], field.type)
        self._writer = self.environment.append(self._writer, pa.table(columns), Antichain(now + 1))
        return now + 1

    def binding(self, key: Sequence[str], **more: Any) -> Binding:
        return make_binding(self.environment, "u1", self.columns, key, **more)

    def close(self) -> None:
        self.environment.close()


def commit_one(log: RecoveryLog, row: OwnedRange, checkpoint: Checkpoint, update: StateUpdate | None) -> OwnedRange:
    """Commit one range to the log; gives the new row."""
    (new,) = log.commit_together([(row, checkpoint, None)], [] if update is None else [update])
    return new
