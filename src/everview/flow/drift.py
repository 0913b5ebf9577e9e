"""Whether an endpoint still holds what was delivered, by counting: seen without a row of it being touched.

A table that holds a view has as many rows as the collection. The endpoint counts them together with the checkpoints
that they go with, and the collection's rows are known from what its batches say of themselves; so a difference is
certain, and a check costs what it costs the endpoint to count. Of reduced rows it is only known that there are some.
Rows that others have changed, as many as before, are not seen here, but when they are delivered the next time.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from everview.background import Backoff, Loop
from everview.errors import text_of
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import Driver
from everview.flow.errors import Drifted
from everview.flow.source import Collections
from everview.flow.worker import Runner
from everview.storage.errors import Canceled

FIRST_S = 0.5  # between tries until one was conclusive

log = structlog.get_logger()


class _Inconclusive(Exception):
    """The endpoint moved on meanwhile, or nothing is known to be there yet."""


class DriftWatch:
    """Looks at an endpoint once its ranges stand, and then every so often."""

    def __init__(
        self, driver: Driver, spec: Spec, source: Collections, runners: Sequence[Runner], every_s: float
    ) -> None:
        self._driver, self._spec, self._source, self._runners = driver, spec, source, runners
        self._every_s = every_s
        self.drift: str | None = None  # what differs, as it is told
        self.looks = 0  # how often it could be compared
        first_s = min(FIRST_S, every_s)
        backoff = Backoff(first_s, every_s)
        ends = (Canceled,)  # the environment was closed
        self._loop = Loop(f"drift {spec.name}", self._step, backoff=backoff, ends=ends, on_failure=self._tell_failure)
        self._loop.start(delay_s=first_s)

    def stop(self) -> None:
        self._loop.ask_to_stop()

    def _step(self) -> float:
        self._look()
        self.looks += 1
        return self._every_s

    def _tell_failure(self, error: Exception, pause_s: float) -> None:
        """Whoever delivers has the same trouble, and tells of it."""
        if not isinstance(error, _Inconclusive):
            log.info("rows were not counted", name=self._spec.name, error=self._driver.hide(text_of(error)))

    def _look(self) -> None:
        """Compare the endpoint with the collections."""
        before = [runner.standing() for runner in self._runners]
        known = [each for each in before if each is not None]
        if len(known) < len(before):
            raise _Inconclusive
        end = min(each.position for each in known)
        committed = Checkpoint.merged([each.committed for each in known])
        if committed.lowest == START or committed.highest > end:
            raise _Inconclusive
        try:
            found = self._driver.census(self._spec)
        except Drifted as error:
            self._tell([error.message])
            return
        after = [runner.standing() for runner in self._runners]
        moved = [None if each is None else each.committed for each in after] != [each.committed for each in known]
        if found is None or moved or found.checkpoint != committed:
            raise _Inconclusive
        wrong = [
            text
            for binding, rows in zip(self._spec.bindings, found.rows, strict=True)
            if (text := self._difference(binding, rows, end)) is not None
        ]
        self._tell(wrong)

    def _tell(self, wrong: list[str]) -> None:
        if wrong and self.drift is None:
            log.warning("materialization drifted", name=self._spec.name, error="; ".join(wrong))
        hint = "somebody else has written there; deliver everything anew with ALTER SINK … BACKFILL"
        self.drift = str(Drifted("; ".join(wrong), hint=hint)) if wrong else None

    def _difference(self, binding: Binding, rows: int | None, end: int) -> str | None:
        if binding.delta_updates:
            return None  # what is added there is its readers' own, to be removed as they please
        expected = self._source.count(binding, end)
        if rows is None:
            return f"the table of collection {binding.collection} is gone"
        if binding.reduces:
            deletes = any(each.reduction.delete for each in binding.fields)
            if rows or not expected or deletes:
                return None
            return f"the table of collection {binding.collection} is empty, and rows were delivered"
        if rows == expected:
            return None
        return f"collection {binding.collection} has {expected} rows, and its table has {rows}"
