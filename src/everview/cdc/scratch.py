"""Contents that are put together piece by piece, in a collection of their own: memory is bounded, whatever they are.

Such a collection is of no use to a later process, and nobody knows of its capabilities: whoever opens the environment
next drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from everview.storage import contract
from everview.storage.batch import INLINE_BYTES_MAX, Part, part_batch
from everview.storage.contract import AllocateId, Create, Downgrade, Drop, GlobalId, UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.storage.staging import Staged
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, HASH, TIME, int_column, with_column
from everview.timely.lattice import TIME_MAX


class Scratch:
    """Rows with the schema of a collection, each as often as its diffs sum to."""

    def __init__(self, environment: Environment, like: GlobalId) -> None:
        self._environment = environment
        (self.id,) = environment.commit(AllocateId())
        ((read, write),) = environment.commit(Create(self.id, environment.shard(like).spec.schema))
        self._read: contract.ReadCapability = read
        self._write: contract.WriteCapability = write

    def add(self, updates: pa.Table) -> None:
        """Add updates, whatever their times."""
        at = self._write.frontier.only
        self._write, self._read = self._environment.commit(
            UpdateAndDowngrade(self._write, _at(updates, at), Antichain(at + 1)), Downgrade(self._read, Antichain(at))
        )

    def subtract(self, id: GlobalId) -> None:
        """Subtract the contents of a collection. What remains is the difference."""
        for table in contents(self._environment, id):
            self.add(with_column(table, DIFF, -int_column(table, DIFF)))

    def staged(self, id: GlobalId, at: int) -> tuple[Staged, int, int]:
        """All rows as updates of a collection at one time, with the sums of positive and of negative diffs."""
        added = removed = 0

        def tables() -> Iterator[pa.Table]:
            nonlocal added, removed
            for table in contents(self._environment, self.id):
                diffs = int_column(table, DIFF)
                more = int(diffs[diffs > 0].sum())
                added, removed = added + more, removed + more - int(diffs.sum())
                yield _at(table, at)

        return stage_all(self._environment, id, tables()), added, removed

    def drop(self) -> None:
        self._environment.commit(Drop(self._write), Drop(self._read))


def contents(environment: Environment, id: GlobalId) -> Iterator[pa.Table]:
    """The contents of a collection in pieces, with multiplicities."""
    with environment.everything(id) as selection:
        for chunk in selection.chunks(TIME_MAX):
            yield chunk.drop_columns([HASH])


def stage_all(environment: Environment, id: GlobalId, tables: Iterable[pa.Table]) -> Staged:
    """Several tables, ready for one commit."""
    staged: list[Staged] = []
    held: pa.Table | None = None  # a table is held back until the next is known: a small last one goes with it
    for table in tables:
        if held is not None and table.nbytes > 2 * INLINE_BYTES_MAX:
            staged.append(environment.stage(id, held))
            held = table
        else:
            held = table if held is None else pa.concat_tables([held, table])
    staged.append(environment.stage(id, held))
    if len(staged) == 1:
        return staged[0]
    parts: list[Part] = []
    for each in staged:
        assert each.batch is not None and not each.batch.inline
        parts += each.batch.parts
    return Staged(id, part_batch(tuple(parts), 0, 0, 0))


def _at(updates: pa.Table, at: int) -> pa.Table:
    return with_column(updates, TIME, np.full(updates.num_rows, at))
