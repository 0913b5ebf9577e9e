"""The first run of a statement on Spark, beside the ticks that need it.

Spark analyzes, plans and compiles a statement when it first runs it, which takes a hundred times what later runs take.
So a tick does not wait for that: it is interpreted, and the statement is run once in the background over the same rows,
without a reader for the result. A thread does so for one statement after the other, with the share of Spark that
hydrations have.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

import structlog

from everview.compute.cancel import in_background
from everview.compute.ir.relation import Steps

STATEMENTS_MAX = 1_000  # that are remembered
WAITING_MAX = 256  # each with some thousand rows; what does not fit is asked for again by the next tick
IDLE_S = 30.0  # after so long its thread ends

# Steps are known by their identity, for a program hands over the same ones in each tick.
Key = tuple[int, tuple[str, ...], tuple[str, ...], bool]

_log = structlog.get_logger()


class FirstRuns:
    """Which statements one Spark has run, and those that wait for their first run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._run: OrderedDict[Key, Steps] = OrderedDict()  # the steps are kept, so that no others get their identity
        self._waiting: OrderedDict[Key, tuple[Steps, Callable[[], object]]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._closed = False

    def over(self, key: Key, steps: Steps, run: Callable[[], object]) -> bool:
        """Whether the first run is over; asks for it if not. One that failed is over too, for a tick tells more."""
        with self._changed:
            if key in self._run:
                self._run.move_to_end(key)
                return True
            if key not in self._waiting and len(self._waiting) < WAITING_MAX and not self._closed:
                self._waiting[key] = (steps, run)
                self._changed.notify()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="everview-first-runs", daemon=True)
                    self._thread.start()
            return False

    def close(self) -> None:
        """Begin no further run."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting or self._closed, IDLE_S) or self._closed:
                    self._thread = None
                    return
                key, (steps, run) = next(iter(self._waiting.items()))
            try:
                with in_background():
                    run()
            except Exception as error:
                _log.debug("a first run failed", detail=str(error).partition("\n")[0])
            with self._changed:
                self._waiting.pop(key, None)
                self._run[key] = steps
                while len(self._run) > STATEMENTS_MAX:
                    self._run.popitem(last=False)
