"""The recovery log: checkpoints and driver states of a materialization, in our own storage.

A row for each range, carved as `fencing` says, is one small value beside the collections, so a commit of checkpoint,
driver state and how far the collections' past is no longer needed is one durable write. One process owns an
environment, and storage fences the one before it; among the workers of this process it is the rows' fences that tell
an owner from a zombie, compared under a lock that all logs of the materialization share.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from everview.flow.checkpoint import Checkpoint
from everview.flow.errors import FencedOff, FlowError
from everview.flow.fencing import Row, carve, merge_patch
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import State, StateUpdate
from everview.storage.contract import Command, Put
from everview.storage.environment import Environment

STATE_BYTES_MAX = 1 << 20

_locks: WeakKeyDictionary[Environment, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()


class RecoveryLog:
    """The log of one materialization."""

    def __init__(self, environment: Environment, name: str) -> None:
        self._environment = environment
        self._prefix = f"flow/{name}/split/"
        with _locks_guard:
            self._lock = _locks.setdefault(environment, threading.RLock())

    def rows(self) -> list[Row]:
        """All rows, in order of their ranges."""
        found = self._environment.scan(self._prefix)
        return sorted((_decoded(value) for value in found.values()), key=lambda row: row.range)

    def open(self, range: KeyRange, held: Row | None = None) -> Row:
        """Take a range over, fencing off whoever had any of it; if it was `held`, only if it still is."""
        with self._lock:
            if held is not None:
                self.check(held)
            carved = carve(self.rows(), range)
            gone = set(carved.removed) - {row.range for row in carved.written}
            puts = [Put(self._key(each), None) for each in sorted(gone)]
            self._environment.commit(*puts, *(self._put(row) for row in carved.written))
            return carved.mine

    def commit(
        self,
        row: Row,
        checkpoint: Checkpoint,
        update: StateUpdate | None,
        also: Callable[[], Sequence[Command]] = lambda: (),
    ) -> Row:
        """Make a checkpoint and the change of the driver's state durable in one step; gives the new row.

        `also` gives commands to go along; it is called under the lock.
        """
        new = replace(row, checkpoint=checkpoint, state=updated(row.state, update), intent=None)
        with self._lock:
            self.check(row)
            self._environment.commit(self._put(new), *also())
        return new

    def intend(self, row: Row, intent: Checkpoint) -> Row:
        """Note where the next commit will be, before anything is stored: whoever must repeat it, repeats all of it."""
        new = replace(row, intent=intent)
        with self._lock:
            self.check(row)
            self._environment.commit(self._put(new))
        return new

    def check(self, row: Row) -> None:
        """An error unless the row is still its holder's."""
        value = self._environment.get(self._key(row.range))
        if value is None or _decoded(value).fence != row.fence:
            raise FencedOff(
                f"the keys {row.range} were taken over", detail=f"fence {row.fence} is no longer the last one"
            )

    def forgetting(self) -> list[Command]:
        """The commands that remove all rows."""
        return [Put(self._key(row.range), None) for row in self.rows()]

    def _key(self, range: KeyRange) -> str:
        return f"{self._prefix}{range}"

    def _put(self, row: Row) -> Put:
        intent = None if row.intent is None else row.intent.encode()
        fields = [str(row.range), row.fence, row.checkpoint.encode(), row.state, intent]
        text = json.dumps(fields, separators=(",", ":"))
        if len(text) > STATE_BYTES_MAX:
            raise FlowError(
                f"the driver's state has {len(text)} bytes",
                detail=f"at most {STATE_BYTES_MAX}: it is no place for data",
            )
        return Put(self._key(row.range), text.encode())


def updated(state: State, update: StateUpdate | None) -> State:
    """A driver's state after a change."""
    if update is None:
        return state
    return merge_patch(state, update.updated) if update.merge_patch else dict(update.updated)


def _decoded(value: bytes) -> Row:
    range, fence, checkpoint, state, intent = json.loads(value)
    end = None if intent is None else Checkpoint.decode(intent)
    return Row(KeyRange.parse(range), fence, Checkpoint.decode(checkpoint), state, end)
