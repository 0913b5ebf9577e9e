"""Where the time of runs on Spark goes: engines tell it while they run, and whoever begins runs collects it.

`prepare`: a statement is rendered, analyzed and planned. `hand_over`: rows are encoded and given to Spark. `wait`: a
round of Spark runs for others. `job`: Spark schedules the job, its tasks run, and their results come back. `decode`:
the results become tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

RunPhase: TypeAlias = Literal["prepare", "hand_over", "wait", "job", "decode"]

_spent: ContextVar[dict[str, float] | None] = ContextVar("everview_run_phases", default=None)


@contextmanager
def recording() -> Iterator[dict[str, float]]:
    """Collect the seconds of all runs of this thread while inside."""
    spent: dict[str, float] = {}
    token = _spent.set(spent)
    try:
        yield spent
    finally:
        _spent.reset(token)


def add(phase: RunPhase, seconds: float) -> None:
    """Count seconds to a phase, if anyone collects them."""
    spent = _spent.get()
    if spent is not None:
        spent[phase] = spent.get(phase, 0.0) + seconds


@contextmanager
def timed(phase: RunPhase) -> Iterator[None]:
    """Count the time that is spent inside to a phase."""
    began = time.perf_counter()
    try:
        yield
    finally:
        add(phase, time.perf_counter() - began)
