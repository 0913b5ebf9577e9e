"""The recovery log: checkpoints and driver states of a materialization, in our own storage.

A row for each range, carved as `fencing` says, is one small value beside the collections, so a commit of checkpoint,
driver state and how far the collections' past is no longer needed is one durable write. One process owns an
environment, and storage fences the one before it; among the workers of this process it is the rows' fences that tell
an owner from a zombie, compared under a lock that all logs of the materialization share.

A driver of ours has a state for each range. Foreign ones share one state among all of their ranges, as their protocol
has it: it is a value beside the rows, and changes of it, which are merge patches, come from any range.

Two copies of an environment have the same log, and then go ways of their own. So every process has a `lineage`, which
its checkpoints carry and its log knows: an endpoint's checkpoint of a lineage that the log does not know was written by
another copy, and so was one of a former process that is beyond what the collections were when this one began.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.errors import FencedOff, FlowError, Stopped
from everview.flow.fencing import OwnedRange, carve, merge_patch
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.lineage import Owner
from everview.flow.protocol import DriverState, StateUpdate
from everview.storage.contract import Command, GlobalId, Put
from everview.storage.environment import Environment
from everview.storage.shard import from_frontier

STATE_BYTES_MAX = 1 << 20
OPENINGS_POLL_S = 0.1


class Openings:
    """Who opens ranges of a materialization now.

    A group of workers that are started together open their ranges at the same time. Those that are started later wait
    until the ones before them, which are to stop, are through with it: whoever opens last owns the keys.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: list[object] = []

    @contextmanager
    def opening(self, group: object, stopping: Callable[[], bool]) -> Iterator[None]:
        """Within the block, a worker of this group opens its ranges. Raises Stopped if it has to stop first."""
        with self._changed:
            while any(other is not group for other in self._under_way) and not stopping():
                self._changed.wait(OPENINGS_POLL_S)
            if stopping():
                raise Stopped("the worker is to stop")
            self._under_way.append(group)
        try:
            yield
        finally:
            with self._changed:
                self._under_way.remove(group)
                self._changed.notify_all()


@dataclass
class _Process:
    """This process, as the owner of an environment: who it is, and how far the collections were when it began."""

    uppers: Mapping[GlobalId, int]
    lineage: str = field(default_factory=lambda: secrets.token_hex(6))
    lock: threading.RLock = field(default_factory=threading.RLock)
    opening: dict[str, threading.RLock] = field(default_factory=dict)  # by materialization
    openings: dict[str, Openings] = field(default_factory=dict)  # by materialization


_processes: WeakKeyDictionary[Environment, _Process] = WeakKeyDictionary()
_guard = threading.Lock()


def begin_lineage(environment: Environment) -> _Process:
    """Note how far the collections are before this process writes to them. Once for each environment."""
    with _guard:
        found = _processes.get(environment)
        if found is None:
            uppers = {id: from_frontier(environment.frontiers(id).upper) for id in environment.ids()}
            found = _processes[environment] = _Process(uppers)
        return found


class RecoveryLog:
    def __init__(self, environment: Environment, name: str, *, shared: bool = False) -> None:
        """Open the log. `shared`: the driver has one state for all ranges, instead of one for each."""
        self._environment, self._shared = environment, shared
        self._name, self._prefix, self._state_key = name, f"flow/{name}/split/", f"flow/{name}/state"
        self._process = begin_lineage(environment)
        self._lock = self._process.lock
        self.lineage = self._process.lineage
        # Held while ranges are opened: other owners of their keys may have to be heard first, which takes a while.
        self.opening = self._process.opening.setdefault(name, threading.RLock())
        self.openings = self._process.openings.setdefault(name, Openings())

    def rows(self) -> list[OwnedRange]:
        """All rows, in order of their ranges."""
        found = self._environment.scan(self._prefix)
        return sorted((_decoded(value) for value in found.values()), key=lambda row: row.range)

    def anew(self, state: DriverState) -> list[Command]:
        """The commands that start the log again: current owners are fenced off, and what they wrote is void."""
        rows = self.rows()
        fence, generation = (
            max((getattr(row, each) for row in rows), default=0) + 1 for each in ("fence", "generation")
        )
        first = OwnedRange(WHOLE, fence, Checkpoint.at(WHOLE, START), state, settled=True, generation=generation)
        gone = [Put(self._key(row.range), None) for row in rows if row.range != WHOLE]
        return [*gone, self._put(first), *([self._put_state(state)] if self._shared else [])]

    def state(self) -> DriverState:
        """The driver's state, of all ranges."""
        found = self._environment.get(self._state_key)
        if found is not None:
            return json.loads(found)  # type: ignore[no-any-return]
        state: dict[str, Any] = {}  # as it was kept before states were shared
        for row in self.rows():
            state = merge_patch(state, row.state)
        return state

    def beginning(self, state: DriverState) -> list[Command]:
        """The commands that start the log with a state from before the first delivery."""
        if not state:
            return []
        first = self._put(OwnedRange(WHOLE, 0, Checkpoint.at(WHOLE, START), state, settled=True))
        return [first, *([self._put_state(state)] if self._shared else [])]

    def restating(self, state: DriverState) -> list[Command]:
        """The commands that replace the state that all ranges share, while none of them is open."""
        assert self._shared, "a state of each range is changed by whoever has the range"
        return [self._put_state(state)]

    def open(self, range: KeyRange, held: OwnedRange | None = None) -> OwnedRange:
        """Take a range over and fence off its owners. With `held`, only if this row is still valid."""
        with self._lock:
            if held is not None:
                self.check(held)
            carved = carve(self.rows(), range)
            mine = replace(carved.mine, lineages=tuple(dict.fromkeys((*carved.mine.lineages, self.lineage))))
            carved = replace(carved, mine=mine, written=(mine, *carved.written[1:]))
            gone = set(carved.removed) - {row.range for row in carved.written}
            puts = [Put(self._key(each), None) for each in sorted(gone)]
            if self._shared:
                mine = replace(mine, state=self.state())
                puts.append(self._put_state(mine.state))
            self._environment.commit(*puts, *(self._put(row) for row in carved.written))
            return mine

    def commit_together(
        self,
        rows: Sequence[tuple[OwnedRange, Checkpoint, Checkpoint | None]],
        updates: Sequence[StateUpdate],
        also: Callable[[], Sequence[Command]] = lambda: (),
    ) -> list[OwnedRange]:
        """Commit rows with their checkpoints and what is acknowledged of them; changes of state in their order.

        Several rows have one state, which is `shared`.
        """
        with self._lock:
            state = self.state() if self._shared else rows[0][0].state
            for update in updates:
                state = updated(state, update)
            made = []
            for row, checkpoint, acknowledged in rows:
                self.check(row)
                certain = row.acknowledged if acknowledged is None else acknowledged.within(row.range)
                made.append(replace(row, checkpoint=checkpoint, state=state, intent=None, acknowledged=certain))
            puts = [self._put(new) for new in made]
            if self._shared and updates:
                puts.append(self._put_state(state))
            self._environment.commit(*puts, *also())
        return made

    def save(self, row: OwnedRange, updates: Sequence[StateUpdate]) -> OwnedRange:
        """Make changes of the driver's state durable before its next commit."""
        with self._lock:
            self.check(row)
            state = self.state() if self._shared else row.state
            for update in updates:
                state = updated(state, update)
            new = replace(row, state=state)
            self._environment.commit(self._put_state(state) if self._shared else self._put(new))
        return new

    def unsettled(self, range: KeyRange) -> list[OwnedRange]:
        """Rows of other ranges that share keys with this one, and whose position only the endpoint knows."""
        return [row for row in self.rows() if row.range.overlaps(range) and row.range != range and not row.settled]

    def settle(self, row: OwnedRange, checkpoint: Checkpoint) -> None:
        """Note the endpoint's exact checkpoint of a row, whose holder writes no more."""
        with self._lock:
            self.check(row)
            new = replace(row, checkpoint=checkpoint, acknowledged=checkpoint, settled=True)
            self._environment.commit(self._put(new))

    def owner(self, collections: Sequence[GlobalId], row: OwnedRange | None = None) -> Owner:
        """This process as whoever delivers all ranges, for endpoints that say who delivered last and not which range.

        A process that has signed there has opened a range, whose row names it until another has signed.
        """
        with self._lock:
            rows = [*self.rows(), *([] if row is None else [row])]
        known = frozenset(each for one in rows for each in one.lineages)
        reached = max([self._began_at(collections), *(each.checkpoint.highest for each in rows)])
        generation = max((each.generation for each in rows), default=0) if row is None else row.generation
        return Owner(self._name, self.lineage, generation, known, reached)

    def check_lineage(self, row: OwnedRange, found: Checkpoint, collections: Sequence[GlobalId]) -> None:
        """An error unless a checkpoint of the endpoint was written for the collections of this environment."""
        reached = max(self._began_at(collections), row.checkpoint.highest)
        Owner(self._name, self.lineage, row.generation, frozenset(row.lineages), reached).check(found)

    def _began_at(self, collections: Sequence[GlobalId]) -> int:
        """How far the collections were when this process began."""
        return min(self._process.uppers.get(id, START) for id in collections)

    def intend(self, row: OwnedRange, intent: Checkpoint) -> OwnedRange:
        """Note the end of the next transaction before anything is stored: a repeat has to deliver the same."""
        new = replace(row, intent=intent)
        with self._lock:
            self.check(row)
            self._environment.commit(self._put(new))
        return new

    def check(self, row: OwnedRange) -> None:
        """FencedOff unless the row still belongs to its holder."""
        value = self._environment.get(self._key(row.range))
        if value is None or _decoded(value).fence != row.fence:
            raise FencedOff(
                f"the keys {row.range} were taken over", detail=f"fence {row.fence} is no longer the last one"
            )

    def forgetting(self) -> list[Command]:
        """The commands that remove all rows."""
        commands: list[Command] = [Put(self._key(row.range), None) for row in self.rows()]
        if self._environment.get(self._state_key) is not None:
            commands.append(Put(self._state_key, None))
        return commands

    def _key(self, range: KeyRange) -> str:
        return f"{self._prefix}{range}"

    def _put(self, row: OwnedRange) -> Put:
        intent = None if row.intent is None else row.intent.encode()
        certain = None if row.acknowledged is None else row.acknowledged.encode()
        state = {} if self._shared else row.state
        fields = [str(row.range), row.fence, row.checkpoint.encode(), state, intent, certain, row.settled]
        fields += [row.lineages, row.moved, row.generation, row.authoritative]
        return Put(self._key(row.range), _bounded(fields))

    def _put_state(self, state: DriverState) -> Put:
        return Put(self._state_key, _bounded(dict(state)))


def updated(state: DriverState, update: StateUpdate | None) -> DriverState:
    """A driver's state after a change."""
    if update is None:
        return state
    return merge_patch(state, update.updated) if update.merge_patch else dict(update.updated)


def _bounded(value: Any) -> bytes:
    """A row or a state as bytes. An error if it is too large."""
    text = json.dumps(value, separators=(",", ":"))
    if len(text) > STATE_BYTES_MAX:
        raise FlowError(
            f"the driver's state has {len(text)} bytes", detail=f"at most {STATE_BYTES_MAX}: it is no place for data"
        )
    return text.encode()


def _decoded(value: bytes) -> OwnedRange:
    # Older rows have fewer fields.
    range, fence, checkpoint, state, intent, *more = json.loads(value)
    later: list[Any] = [None, False, (), False, 0, False]
    certain, settled, lineages, moved, generation, authoritative = more + later[len(more) :]
    end, known = (None if each is None else Checkpoint.decode(each) for each in (intent, certain))
    first = KeyRange.parse(range), fence, Checkpoint.decode(checkpoint), state
    return OwnedRange(*first, end, known, settled, tuple(lineages), moved, generation, authoritative)
