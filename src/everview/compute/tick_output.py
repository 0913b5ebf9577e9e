"""The output of a tick: tables, or batches that executors wrote, which are removed if the commit fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from everview.compute.cancel import check_wanted
from everview.storage.environment import Environment
from everview.storage.errors import Indeterminate, StorageError
from everview.storage.staging import Staged

Updates: TypeAlias = pa.Table | Staged | None


@dataclass(frozen=True, slots=True)
class TickReport:
    """The work of a tick, and the time that its phases took."""

    lower: int
    upper: int
    rows_in: int = 0
    rows_out: int = 0
    rows_looked_up: int = 0
    statements: int = 0
    careful: bool = False  # whether something failed
    large: bool = False  # whether it ran where the data are
    # read, look_up, compute (in this process), those of Spark (`engine.run_phases`, such as spark_job), commit
    phases_s: Mapping[str, float] = field(default_factory=dict)


@contextmanager
def writing(environment: Environment, written: Iterable[Updates]) -> Iterator[None]:
    """While inside, a tick commits its changes; batches that executors wrote are removed if it fails.

    Nothing is committed that nobody wants any more. And whoever drops a dataflow drops its capabilities, so a tick that
    has not heard of it can commit nothing either.
    """
    try:
        check_wanted()
        yield
    except Indeterminate:
        raise  # it may be committed
    except BaseException:
        for each in written:
            if isinstance(each, Staged):
                with suppress(StorageError):  # else the next process finds it
                    environment.unstage(each)
        raise


def row_count(updates: Updates) -> int:
    if updates is None:
        return 0
    if isinstance(updates, Staged):
        return updates.batch.rows if updates.batch is not None else 0
    return int(updates.num_rows)
