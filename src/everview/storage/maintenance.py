"""Background work: compaction, expiry of leases, and removal of garbage, by one thread that never dies of an error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable

import structlog

from everview.background import Backoff, Loop
from everview.storage import compaction, gc
from everview.storage.applier import Applier
from everview.storage.blob.contract import Blob
from everview.storage.compaction import Compaction
from everview.storage.consensus.contract import Consensus
from everview.storage.contract import GlobalId
from everview.storage.errors import Fenced, Indeterminate, StorageError
from everview.storage.hotcopy import HotCopies
from everview.storage.parts import PartReader
from everview.storage.shard import Clocks, Shard
from everview.storage.staging import Stager
from everview.storage.transitions import Expire, Substitute

PAUSE_S = 1.0
BACKOFF = Backoff(2 * PAUSE_S, 60.0)
COMPACTIONS_MAX = 100  # of one shard before others have their turn
BATCHES_MAX = 1000  # of one shard; beyond it writers wait for compaction

log = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), layer="storage")


class Maintenance:
    """Does background work on a thread; `run` does all of it at once, for tests."""

    def __init__(
        self,
        applier: Applier,
        *,
        consensus: Consensus,
        blob: Blob,
        epoch: int,
        stager: Stager,
        reader: PartReader,
        hot: HotCopies,
        pins: gc.Pins,
        now_ms: Callable[[], int],
    ) -> None:
        self._applier, self._consensus, self._blob, self._epoch = applier, consensus, blob, epoch
        self._stager, self._reader, self._hot, self._pins = stager, reader, hot, pins
        self._now_ms = now_ms
        self._dirty: set[GlobalId] = set()
        self._leased: dict[GlobalId, int] = {}
        self._swept = False
        self.behind = False
        self._working = threading.Lock()
        self._loop = Loop("everview-maintenance", self._step, backoff=BACKOFF, ends=(Fenced,), on_failure=_log_failure)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Finish the piece of work at hand and stop."""
        self._loop.stop()

    def consider(self, shard: Shard) -> None:
        """Note that the batches of a shard have changed. Commits call this, so the decision what to do comes later."""
        self._dirty.add(shard.id)
        if len(shard.batches) >= compaction.SMALLEST_FAN_IN:
            self._loop.wake()
            self.behind = self.behind or len(shard.batches) >= BATCHES_MAX

    def note_leases(self, shards: Iterable[Shard]) -> None:
        """Remember when the next lease on each of these ends."""
        for shard in shards:
            deadlines = [h.deadline_ms for h in shard.held.values() if h.deadline_ms is not None]
            if deadlines:
                self._leased[shard.id] = min(deadlines)
            elif shard.id in self._leased:
                del self._leased[shard.id]

    def lend_a_hand(self) -> None:
        """Let a writer that is faster than compaction do some of it. Its failures are not the writer's."""
        if self.behind:
            try:
                self.run()
            except Exception as error:  # the commit stands, and must not look as if it did not
                log.error("compaction failed", error=str(error))

    def run(self) -> None:
        """Do all work that is due."""
        with self._working:
            self.behind = False
            if not self._swept:
                self._sweep()
            now = self._now_ms()
            for id in [id for id, deadline in list(self._leased.items()) if deadline < now]:
                self._applier.commit((Expire(id),))
            for id in sorted(self._dirty):
                self._dirty.discard(id)
                self._compact_shard(id, compaction.plan)
            self._collect()

    def compact(self, id: GlobalId) -> None:
        """Compact one shard as far as possible, now."""
        with self._working:
            self._compact_shard(id, compaction.full)
            self._collect()

    def _compact_shard(self, id: GlobalId, choose: Callable[[Shard, Clocks], Compaction | None]) -> None:
        for _ in range(COMPACTIONS_MAX):
            shard = self._applier.shard(id)
            work = None if shard is None else choose(shard, self._applier.clocks)
            if work is None or self._loop.stopping or not self._compact(work):
                return

    def _compact(self, work: Compaction) -> bool:
        with self._pins.lock:
            inputs = [work.shard.batches[number] for number in work.inputs]
            release = self._pins.pin_locked(part for batch in inputs for part in batch.parts)
        try:
            output = compaction.compact(work, self._stager, self._reader)
            written = [part.key for part in output.parts] if output is not None else []
            try:
                (done,) = self._applier.commit((Substitute(work.shard.id, work.inputs, output),))
            except Indeterminate:
                raise  # the parts may be referred to now
            except StorageError:
                self._pins.retire(written)
                raise
            if not done:
                self._pins.retire(written)
            return bool(done)
        finally:
            release()

    def _sweep(self) -> None:
        """Once per process: remove garbage of earlier processes, and note the leases that they granted."""
        damaged = self._applier.inspect()
        if not damaged:  # else something may be referred to that is not known to be
            self._hot.keep_only(gc.referenced(self._consensus))
            self._pins.retire(gc.orphans(self._consensus, self._blob, self._epoch))
        for key, _ in self._consensus.scan("state/"):
            id = key.split("/")[1]
            shard = None if id in damaged else self._applier.shard(id)
            if shard is not None:
                self.note_leases([shard])
                self.consider(shard)
        self._swept = True

    def _collect(self) -> None:
        _, failed = gc.remove(self._blob, self._pins.removable(), self._forget)
        self._pins.retire(failed)

    def _forget(self, key: str) -> None:
        self._reader.forget(key)
        self._hot.forget(key)

    def _step(self) -> float:
        try:
            self.run()
        except Fenced as error:
            log.warning("fenced", detail=error.detail)
            raise
        return PAUSE_S


def _log_failure(error: Exception, pause_s: float) -> None:
    log.error("background work failed", error=str(error), retry_in_s=pause_s)
