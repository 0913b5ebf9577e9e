"""The runtime's side of one conversation: transactions over one range of keys, one after another.

A `Task` opens its range in the recovery log and at the endpoint, and goes on from the checkpoint of whichever is
authoritative; but never from before what the endpoint has acknowledged, whatever a driver says that keeps rows of
ranges that were split or joined since. Such a driver is `foreign`, and is asked for its last word on the old ranges
before new ones are made of them. Each transaction takes all bindings from there to a later time. Where a failed one
leaves traces (`repeatable`, and the log is authoritative), its end is noted in the log first, so that what is repeated
is the same. The next transaction is read,
grouped and its loads sent while the driver still commits the last: only `Flush` waits for it. Where the commit is
complete on both sides, `acknowledged` tells how far, and the past before it may be forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from everview.flow import protocol
from everview.flow.channel import Channel, Connect
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.combine import Combiner, combine, holds_rows
from everview.flow.contract import Binding, Spec
from everview.flow.conversation import Conversation
from everview.flow.drivers.contract import Driver, Guarantee, Keys, Trouble
from everview.flow.errors import Drifted, DriverStalled, DuplicateKey, NullKey
from everview.flow.fencing import OwnedRange
from everview.flow.keyrange import KeyRange
from everview.flow.lineage import is_void, signature
from everview.flow.recovery_log import RecoveryLog
from everview.flow.source import Collections
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

    opened: bool = False
    transactions: int = 0
    loaded: int = 0
    stored_by: list[int] = field(default_factory=list)  # documents, of each binding


@dataclass(frozen=True)
class Delivery:
    """How a materialization is delivered, in whatever ranges."""

    source: Collections
    log: RecoveryLog
    connect: Connect
    keys: Keys
    repeatable: bool = False  # a transaction that failed may have left traces, and is to be repeated as it was
    foreign: bool = False  # the driver may keep checkpoints of ranges that are no more
    limits: Limits = Limits()
    acknowledged: Callable[[KeyRange, Checkpoint], None] = lambda range, checkpoint: None
    also: Callable[[], Sequence[Command]] = lambda: ()  # commands for each commit of the log

    @classmethod
    def by(cls, driver: Driver, source: Collections, log: RecoveryLog, **more: Any) -> Delivery:
        """By a driver, as it says of itself."""
        repeatable = driver.guarantee is Guarantee.AT_LEAST_ONCE
        return cls(source, log, driver.connect, driver.keys, repeatable, driver.foreign, **more)


class Task:
    """One range of keys, from open to close."""

    def __init__(
        self,
        spec: Spec,
        range: KeyRange,
        delivery: Delivery,
        *,
        held: OwnedRange | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.spec, self.range, self._delivery = spec, range, delivery
        self.counters = Counters(stored_by=[0] * len(spec.bindings))
        self._source, self._log, self._limits = delivery.source, delivery.log, delivery.limits
        self._repeatable, self._foreign = delivery.repeatable, delivery.foreign
        self._held, self._clock = held, clock
        self.authoritative = False  # whether the endpoint's checkpoint is the one that counts
        self._loads_all = False  # whether the driver wants to be asked for keys that are known to be new, too
        self._conversation = Conversation()
        self._channel: Channel | None = None
        self._committed_s = clock()
        self._row: OwnedRange
        self.committed: Checkpoint  # as far as this side knows
        self._position: Checkpoint  # up to where there is nothing left to deliver, for nothing changed since
        self.news: list[protocol.StateUpdate] = []  # changes of state that the driver has told, and not been told of
        self._unsaved: list[protocol.StateUpdate] = []  # and those that are not durable yet
        self._changes: list[tuple[Combiner | None, Iterator[Combiner]]] = []  # of the transaction, by binding

    @property
    def position(self) -> int:
        """The endpoint is exact for every time before this one, once the last commit is acknowledged."""
        return self._position.lowest

    @property
    def at(self) -> Checkpoint:
        """The same, place by place."""
        return self._position

    @property
    def acknowledged(self) -> bool:
        """Whether the endpoint has the last commit."""
        return self._conversation.acknowledged

    @property
    def trouble(self) -> Trouble | None:
        """What the driver has failed at and tries again, as it says."""
        return getattr(self._channel, "trouble", None)

    @property
    def drift(self) -> str | None:
        """What the driver has found changed by others at the endpoint, as it says."""
        return getattr(self._channel, "drift", None)

    @property
    def row(self) -> OwnedRange:
        """What says that the range is ours, in the recovery log."""
        return self._row

    def open(self) -> None:
        """Take the range over, on both sides, and begin."""
        with self._log.opening:
            if self._foreign:
                self._settle_others()
            self._row = self._log.open(self.range, self._held)
        self._converse()

    def _converse(self) -> None:
        """Begin, with the range taken over in the log."""
        owner = self._log.owner([each.collection for each in self.spec.bindings], self._row)
        request = protocol.Open(self.spec, self.range, self._row.state, owner)
        self._conversation.observe(request)
        self._channel = self._delivery.connect(request)
        opened = self._receive()
        assert isinstance(opened, protocol.Opened)
        if opened.checkpoint is not None:
            self._row = replace(self._row, authoritative=True)
        self.authoritative = self._row.authoritative
        self._loads_all = opened.disable_load_optimization
        self.committed = self._position = self._found(opened.checkpoint)
        self.counters.opened = True
        self._send(protocol.Acknowledge())
        unknown = not self.authoritative and self._row.acknowledged is None and self._row.checkpoint.highest == START
        if self._foreign and unknown:
            self._greet()
            self.close(orderly=True)
            self.save_state()
            self._conversation = Conversation()
            self._row = self._log.open(self.range, self._row)  # if it still is ours
            self._converse()

    def _settle_others(self) -> None:
        """Hear how far ranges are that are to be split or joined: the endpoint may keep their rows as they were."""
        for row in self._log.unsettled(self.range):
            quietly = replace(self._delivery, repeatable=False, acknowledged=lambda range, checkpoint: None)
            other = Task(self.spec, row.range, quietly)
            orderly = False
            try:
                other.open()
                other.settle()
                other.save_state()
                orderly = True
            finally:
                other.close(orderly=orderly)
            self._log.settle(other.row, other.committed)

    def _found(self, said: str | None) -> Checkpoint:
        """Where to go on: where the endpoint is, if it knows, and is not behind what it has acknowledged."""
        row = self._row
        certain = row.acknowledged or Checkpoint.at(self.range, START)
        if said is None:  # it has no row of these keys: of those that it had, it was asked before
            return certain if row.authoritative else row.checkpoint
        found = Checkpoint.decode(said).within(self.range)
        if is_void(found, row.generation):
            return certain
        stale = self._foreign and row.moved
        if not (stale and found.behind(certain)):
            self._log.check_lineage(row, found, [each.collection for each in self.spec.bindings])
        return found.latest(certain) if stale else found

    def _greet(self) -> None:
        """Commit nothing, for once: a driver that keeps checkpoints has one from now on, and tells of it when asked.

        Without it nobody could say, after a failure in the first transaction, whether the driver has committed it.
        """
        self._load({}, self.committed)
        self._commit(self.committed)
        self.counters.transactions = 0
        self.settle()

    def step(self, wait_s: float, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Deliver what there is, or wait for something; whether a transaction was made."""
        if self._ready():
            return self.transact()
        if not self.acknowledged:
            self.step_acknowledged(min(wait_s, 0.05))
        elif self.due_s() > 0:
            time.sleep(min(wait_s, self.due_s()))
        else:
            self._source.wait(lambda: stopping() or self._ready(), wait_s)
        return False

    def step_acknowledged(self, wait_s: float) -> None:
        """Wait a while for the last commit to be acknowledged."""
        response = self._poll(wait_s)
        assert response is None or isinstance(response, protocol.Acknowledged)

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
        try:
            time = self._source.interval_end(self._position)
            end = self.end_at(time)
            if time <= self._position.lowest and end != self._row.intent:
                return False
            if not self.prepare(end) and not self.heartbeat_due:
                self.skip(end)
                return False
            self._load(self.combiners, end)
            self.store(end)
            self._commit(end)
            return True
        except DuplicateKey as error:
            self.check_data(error)
            raise

    def check_data(self, error: DuplicateKey) -> None:
        """A key was there already: drift of the endpoint, unless the collections have it twice."""
        if not isinstance(self._source, Collections) or self._source.upper <= START:
            return
        try:
            for binding in self.spec.bindings:
                if binding.key and not binding.reduces:
                    self._source.check_unique(binding, self.range)
        except (DuplicateKey, NullKey):
            return
        raise Drifted(
            "the endpoint has a row under a key that was not delivered by this sink",
            detail=error.detail,
            hint="remove what others have written there, or deliver everything anew with ALTER SINK … BACKFILL",
        ) from error

    # The parts of a transaction, in order

    def end_at(self, time: int) -> Checkpoint:
        """Where the next transaction ends, at a time unless one has to be repeated."""
        intent = self._row.intent if self._repeats else None
        return Checkpoint.at(self.range, time) if intent is None else intent

    def prepare(self, end: Checkpoint) -> bool:
        """Read what the transaction is to deliver; whether that is something."""
        streams = [self._combined(binding, end) for binding in self.spec.bindings]
        self._changes = [(next(stream, None), stream) for stream in streams]
        return any(first for first, _ in self._changes)

    def skip(self, end: Checkpoint) -> None:
        """Go on to where nothing has happened."""
        self._position = end
        self._row = replace(self._row, intent=None)

    @property
    def combiners(self) -> dict[int, Combiner]:
        """What is to be loaded, by binding."""
        return {at: first for at, (first, _) in enumerate(self._changes) if first is not None}

    def send_loads(self, combiners: dict[int, Combiner]) -> None:
        """Ask for documents; the driver may still be committing."""
        for at, combiner in combiners.items():
            for keys in combiner.loads():
                self._send(protocol.Load(at, keys))

    def flush(self, patches: protocol.Patches, end: Checkpoint) -> None:
        """All is asked for, and the last commit is acknowledged."""
        self._send(protocol.Flush(patches, self._signed(end)))

    def take_loaded(self, combiners: dict[int, Combiner]) -> None:
        """Take documents until there are no more. A state that comes with that is durable before anything is stored."""
        while True:
            response = self._receive()
            if isinstance(response, protocol.Loaded):
                self.counters.loaded += response.documents.num_rows
                try:
                    combiners[response.binding].loaded(response.documents)
                except DuplicateKey:
                    self._log.check(self._row)  # whoever took over may have stored it: then the data are not at fault
                    raise
            elif isinstance(response, protocol.Flushed):
                self._told(response.state)
                if response.state is not None:
                    self.save_state()
                return

    def store(self, end: Checkpoint) -> None:
        if self._repeats:
            self._row = self._log.intend(self._row, end)
        changes, self._changes = self._changes, []
        for at, (first, rest) in enumerate(changes):
            for combiner in chain([first] if first is not None else [], rest):
                for documents in combiner.stores():
                    self._send(protocol.Store(at, documents, f"{end.highest:x}-{self.range.begin:08x}"))
                    self.counters.stored_by[at] += documents.num_rows

    def start_commit(self, checkpoint: Checkpoint, patches: protocol.Patches) -> None:
        self._send(protocol.StartCommit(self._signed(checkpoint), patches))

    def _signed(self, checkpoint: Checkpoint) -> str:
        return checkpoint.by(signature(self._log.lineage, self._row.generation)).encode()

    def started(self) -> OwnedRange:
        """Wait until the commit has begun; gives the row to be committed to the log, but for its checkpoint."""
        response = self._receive()
        assert isinstance(response, protocol.StartedCommit)
        self._told(response.state)
        if self.counters.transactions:  # so the endpoint has a checkpoint of ours
            return replace(self._row, lineages=(self._log.lineage,), moved=False)
        return self._row

    def save_state(self) -> None:
        """Make changes of state durable that came after the last commit."""
        if self._unsaved:
            self._row = self._log.save(self._row, self.unsaved())

    def unsaved(self) -> list[protocol.StateUpdate]:
        """Changes of state that are to be made durable; they count as durable from now on."""
        updates, self._unsaved = self._unsaved, []
        return updates

    def end_transaction(self, row: OwnedRange, checkpoint: Checkpoint, patches: protocol.Patches) -> None:
        """The recovery log has the transaction."""
        self._row = row
        self.committed = self._position = checkpoint
        self._committed_s = self._clock()
        self.counters.transactions += 1
        self._send(protocol.Acknowledge(patches))

    def take_news(self) -> protocol.Patches:
        """The changes of state that the driver has told since it was last told of some."""
        news, self.news = self.news, []
        return tuple(patch for update in news for patch in update.patches)

    def _told(self, update: protocol.StateUpdate | None) -> None:
        if update is not None:
            self.news.append(update)
            self._unsaved.append(update)

    @property
    def _repeats(self) -> bool:
        return self._repeatable and not self.authoritative

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

    def _load(self, combiners: dict[int, Combiner], end: Checkpoint) -> None:
        self.send_loads(combiners)
        self.settle()
        self.flush(self.take_news(), end)
        self.take_loaded(combiners)

    def _commit(self, checkpoint: Checkpoint) -> None:
        self.start_commit(checkpoint, self.take_news())
        row = self.started()
        done = [(row, checkpoint, self.committed)]
        (row,) = self._log.commit_together(done, self.unsaved(), self._delivery.also)
        self.end_transaction(row, checkpoint, self.take_news())

    # Reading

    def _combined(self, binding: Binding, end: Checkpoint) -> Iterator[Combiner]:
        """The changes of a binding, those that are any; all in one where they have to be held."""
        first, keys = self._position.highest == START, self._delivery.keys
        untouched = self.authoritative or (self._repeatable and self._row.intent is None)
        if keys is Keys.LOADED and first and untouched and not self._loads_all:
            keys = Keys.ENFORCED  # nothing was ever stored there and left, so nothing need be asked for
        if holds_rows(binding, keys):
            tables = iter([self._source.read(binding, self._position, end)])
        else:
            tables = self._source.passes(binding, self._position, end)
        combiners = (combine(binding, updates, keys, first) for updates in tables)
        return (each for each in combiners if not each.empty)

    def _ready(self) -> bool:
        return self._source.upper > self._position.lowest and self.due_s() <= 0

    def due_s(self) -> float:
        """How long the next transaction has to wait."""
        return self._committed_s + self._limits.interval_s - self._clock() if self.counters.transactions else 0.0

    @property
    def heartbeat_due(self) -> bool:
        """Whether a checkpoint is to be moved on although nothing has changed."""
        return self._clock() - self._committed_s >= self._limits.heartbeat_s

    # Messages

    def _send(self, request: protocol.Request) -> None:
        assert self._channel is not None, "the task is not open"
        self._conversation.observe(request)
        self._channel.send(request, self._limits.stall_s)

    def _receive(self) -> protocol.Response:
        response = self._poll(self._limits.stall_s)
        if response is None:
            waiting = self._conversation.phase.value
            raise DriverStalled(f"the driver said nothing within {self._limits.stall_s:g} s", detail=waiting)
        return response

    def _poll(self, timeout_s: float) -> protocol.Response | None:
        assert self._channel is not None, "the task is not open"
        response = self._channel.receive(timeout_s)
        if response is not None:
            self._conversation.observe(response)
        if isinstance(response, protocol.Acknowledged):
            self._told(response.state)
            self._delivery.acknowledged(self.range, self.committed)
        return response
