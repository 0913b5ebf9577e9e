"""The runtime's side of one conversation: transactions over one range of keys, one after another.

A `Task` opens its range in the recovery log and at the endpoint, and goes on from the checkpoint of whichever is
authoritative. Each transaction takes all bindings from there to a later time. Where a failed one leaves traces
(`repeatable`), its end is noted in the log first, so that what is repeated is the same. The next transaction is read,
grouped and its loads sent while the driver still commits the last: only `Flush` waits for it. Where the commit is
complete on both sides, `acknowledged` tells how far, and the past before it may be forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from everview.flow.channel import Channel, Connect
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.combine import Combiner, combine, holds_rows
from everview.flow.contract import Binding, Spec
from everview.flow.conversation import Conversation
from everview.flow.drivers.contract import Keys
from everview.flow.errors import DriverStalled, DuplicateKey
from everview.flow.fencing import Row
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import (
    Acknowledge,
    Acknowledged,
    Flush,
    Flushed,
    Load,
    Loaded,
    Open,
    Opened,
    Request,
    Response,
    StartCommit,
    StartedCommit,
    Store,
)
from everview.flow.recovery_log import RecoveryLog, updated
from everview.flow.source import Source
from everview.storage.contract import Command


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait: for an answer, between transactions, and until an idle checkpoint is moved on."""

    stall_s: float = 300.0
    interval_s: float = 0.0
    heartbeat_s: float = 30.0


@dataclass
class Counters:
    """What a task has done so far."""

    transactions: int = 0
    loaded: int = 0
    stored: int = 0


class Task:
    """One range of keys, from open to close."""

    def __init__(
        self,
        spec: Spec,
        range: KeyRange,
        *,
        source: Source,
        log: RecoveryLog,
        connect: Connect,
        keys: Keys,
        held: Row | None = None,
        repeatable: bool = False,
        limits: Limits | None = None,
        acknowledged: Callable[[KeyRange, Checkpoint], None] = lambda range, checkpoint: None,
        also: Callable[[], Sequence[Command]] = lambda: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec, self.range = spec, range
        self.counters = Counters()
        self._source, self._log, self._connect, self._keys = source, log, connect, keys
        self._limits, self._on_acknowledged, self._also, self._clock = limits or Limits(), acknowledged, also, clock
        self._held, self._repeatable = held, repeatable
        self.authoritative = False  # whether the endpoint's checkpoint is the one that counts
        self._conversation = Conversation()
        self._channel: Channel | None = None
        self._committed_s = clock()
        self._row: Row
        self.committed: Checkpoint  # as far as this side knows
        self._position: Checkpoint  # up to where there is nothing left to deliver, for nothing changed since

    @property
    def position(self) -> int:
        """The endpoint is exact for every time before this one, once the last commit is acknowledged."""
        return self._position.lowest

    @property
    def acknowledged(self) -> bool:
        """Whether the endpoint has the last commit."""
        return self._conversation.acknowledged

    @property
    def row(self) -> Row:
        """What says that the range is ours, in the recovery log."""
        return self._row

    def open(self) -> None:
        """Take the range over, on both sides, and begin."""
        self._row = self._log.open(self.range, self._held)
        request = Open(self.spec, self.range, self._row.state)
        self._conversation.observe(request)
        self._channel = self._connect(request)
        opened = self._receive()
        assert isinstance(opened, Opened)
        self.committed = self._row.checkpoint
        self.authoritative = opened.checkpoint is not None
        if opened.checkpoint is not None:
            self.committed = Checkpoint.decode(opened.checkpoint).within(self.range)
        self._position = self.committed
        self._send(Acknowledge())

    def step(self, wait_s: float, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Deliver what there is, or wait for something; whether a transaction was made."""
        if self._ready():
            return self.transact()
        if not self.acknowledged:
            self.step_acknowledged(min(wait_s, 0.05))
        elif self._due_s() > 0:
            time.sleep(min(wait_s, self._due_s()))
        else:
            self._source.wait(lambda: stopping() or self._ready(), wait_s)
        return False

    def step_acknowledged(self, wait_s: float) -> None:
        """Wait a while for the last commit to be acknowledged."""
        response = self._poll(wait_s)
        assert response is None or isinstance(response, Acknowledged)

    def drain(self) -> None:
        """Deliver all that is complete, and wait until the endpoint has it."""
        while self._source.upper > self._position.lowest:
            self.transact()
        self.settle()

    def settle(self) -> None:
        """Wait for the last commit to be acknowledged."""
        while not self._conversation.acknowledged:
            self._receive()

    def transact(self) -> bool:
        """One transaction, as far as the collections are complete; false if nothing has changed in them."""
        end = self._row.intent if self._repeatable else None
        if end is None:
            time = self._source.interval_end(self._position)
            if time <= self._position.lowest:
                return False
            end = Checkpoint.at(self.range, time)
        streams = [self._combined(binding, end) for binding in self.spec.bindings]
        firsts = [next(stream, None) for stream in streams]
        if not any(firsts) and not self._heartbeat_due():
            self._position = end
            self._row = replace(self._row, intent=None)
            return False
        self._load({at: first for at, first in enumerate(firsts) if first is not None})
        if self._repeatable:
            self._row = self._log.intend(self._row, end)
        for at, (first, rest) in enumerate(zip(firsts, streams, strict=True)):
            for combiner in chain([first] if first is not None else [], rest):
                for documents in combiner.stores():
                    self._send(Store(at, documents))
                    self.counters.stored += documents.num_rows
        self._commit(end)
        return True

    def close(self, *, orderly: bool = False) -> None:
        """End the conversation; in order if nothing is under way."""
        channel, self._channel = self._channel, None
        if channel is None:
            return
        if orderly:
            channel.end()
        else:
            channel.close()

    # The phases

    def _load(self, combiners: dict[int, Combiner]) -> None:
        for at, combiner in combiners.items():
            for keys in combiner.loads():
                self._send(Load(at, keys))
        self.settle()
        self._send(Flush())
        while True:
            response = self._receive()
            if isinstance(response, Loaded):
                self.counters.loaded += response.documents.num_rows
                try:
                    combiners[response.binding].loaded(response.documents)
                except DuplicateKey:
                    self._log.check(self._row)  # whoever took over may have stored it: then the data are not at fault
                    raise
            elif isinstance(response, Flushed):
                self._row = replace(self._row, state=updated(self._row.state, response.state))
                return

    def _commit(self, checkpoint: Checkpoint) -> None:
        self._send(StartCommit(checkpoint.encode()))
        response = self._receive()
        assert isinstance(response, StartedCommit)
        self._row = self._log.commit(self._row, checkpoint, response.state, self._also)
        self.committed = self._position = checkpoint
        self._committed_s = self._clock()
        self.counters.transactions += 1
        self._send(Acknowledge())

    # Reading

    def _combined(self, binding: Binding, end: Checkpoint) -> Iterator[Combiner]:
        """The changes of a binding, those that are any; all in one where they have to be held."""
        first = self._position.highest == START
        if holds_rows(binding, self._keys):
            tables = iter([self._source.read(binding, self._position, end)])
        else:
            tables = self._source.passes(binding, self._position, end)
        combiners = (combine(binding, updates, self._keys, first) for updates in tables)
        return (each for each in combiners if not each.empty)

    def _ready(self) -> bool:
        return self._source.upper > self._position.lowest and self._due_s() <= 0

    def _due_s(self) -> float:
        return self._committed_s + self._limits.interval_s - self._clock() if self.counters.transactions else 0.0

    def _heartbeat_due(self) -> bool:
        return self._clock() - self._committed_s >= self._limits.heartbeat_s

    # Messages

    def _send(self, request: Request) -> None:
        assert self._channel is not None, "the task is not open"
        self._conversation.observe(request)
        self._channel.send(request, self._limits.stall_s)

    def _receive(self) -> Response:
        response = self._poll(self._limits.stall_s)
        if response is None:
            waiting = self._conversation.phase.value
            raise DriverStalled(f"the driver said nothing within {self._limits.stall_s:g} s", detail=waiting)
        return response

    def _poll(self, timeout_s: float) -> Response | None:
        assert self._channel is not None, "the task is not open"
        response = self._channel.receive(timeout_s)
        if response is not None:
            self._conversation.observe(response)
        if isinstance(response, Acknowledged):
            self._row = replace(self._row, state=updated(self._row.state, response.state))
            self._on_acknowledged(self.range, self.committed)
        return response
