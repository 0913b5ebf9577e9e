"""What a scenario works with: a workload, an endpoint, tasks with triggers on them, and the final comparison.

A trigger acts at the Nth message of a kind between runtime and driver. It raises `Crash`, sleeps, or lets others do as
they please while this conversation stands still, as when a new owner comes and this one is a zombie without knowing it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from everview.flow.channel import Channel, Serving
from everview.flow.check.workload import ACCOUNT_NAMES, Document, Workload, bindings, summary, without_repeats
from everview.flow.contract import Binding, Spec
from everview.flow.drivers.contract import Driver, Transactor
from everview.flow.errors import DriverFailed, FencedOff, FlowError
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.protocol import REQUESTS, Acknowledge, Flush, Flushed, Load, Loaded, Message, Open, Request, Response
from everview.flow.recovery_log import RecoveryLog, updated
from everview.flow.runtime import Delivery, Limits, Task
from everview.flow.source import Collections
from everview.flow.validation import check_endpoint
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.environment import Environment

STALL_S = 60.0
LOG = "log"  # the binding that is append-only, whatever the driver


class Wrong(FlowError):
    """The endpoint does not hold what it must, or something that must fail did not."""


@dataclass(frozen=True)
class Endpoint:
    """A driver, places for the bindings of the workload, and a way to look at what arrived there."""

    driver: Driver
    resources: Mapping[str, Mapping[str, Any]]
    read: Callable[[str, Binding], list[tuple[Document, bool]]] | None = None
    exact: bool = True  # exactly once; else what is delivered may be there more than once
    fenced: bool = True  # a zombie can change nothing
    aborts: bool = True  # what was not committed is not seen
    clean: Callable[[], None] = field(default=lambda: None)
    left: tuple[str, ...] = ()  # places that `clean` cannot remove; they are emptied, and used again

    @property
    def uncompared(self) -> tuple[str, ...]:
        """Bindings of which nothing tells what arrived: without a reader, those that cannot be loaded."""
        return () if self.read is not None else tuple(each for each in self.resources if self.deltas or each == LOG)

    @property
    def deltas(self) -> bool:
        """Whether what arrives are changes."""
        return self.driver.delta_only


@dataclass
class Parts:
    """What a scenario is run with; a deliberate defect replaces some of it."""

    task: type[Task] = Task
    log: type[RecoveryLog] = RecoveryLog
    wrap: Callable[[Transactor], Transactor] | None = None
    limits: Limits = field(default_factory=lambda: Limits(stall_s=STALL_S, heartbeat_s=3600.0))


class Harness:
    """One run of one scenario."""

    def __init__(
        self, endpoint: Endpoint, folder: Path, *, name: str, seed: int = 0, parts: Parts | None = None
    ) -> None:
        self.endpoint, self.parts = endpoint, parts or Parts()
        self.seed = seed
        self.environment = Environment(MemoryConsensus(), MemoryBlob(), folder, background=False)
        self.workload = Workload(self.environment, seed)
        self.names = [each for each in ("totals", "view", LOG) if each in endpoint.resources]
        driver = endpoint.driver
        made = bindings(driver, endpoint.resources)
        spec = Spec(name, driver.name, made, driver.config)
        self.log = self.parts.log(self.environment, name, shared=driver.foreign)
        self.transcript: list[str] = []
        self.spec = check_endpoint(driver, spec)
        begun = self.log.beginning(updated({}, driver.prepare(self.spec)))
        if begun:
            self.environment.commit(*begun)

    def write(self, transactions: int = 1) -> None:
        self.workload.write(transactions)

    def task(self, range: KeyRange = WHOLE, *triggers: Trigger, limits: Limits | None = None) -> Task:
        """A task on a range, not yet open."""
        source = Collections(self.environment, self.spec.bindings)
        delivery = Delivery.by(self.endpoint.driver, source, self.log, limits=limits or self.parts.limits)
        connect = lambda request: Shim(self._connect(request), list(triggers), self.transcript)  # noqa: E731
        return self.parts.task(self.spec, range, replace(delivery, connect=connect))

    def _connect(self, request: Open) -> Channel:
        wrap, driver = self.parts.wrap, self.endpoint.driver
        if wrap is None:
            return driver.connect(request)
        return Serving(lambda: wrap(driver.opened(request)))

    def deliver(self, range: KeyRange = WHOLE, *triggers: Trigger) -> None:
        """Open, deliver all there is, and end in order."""
        task = self.task(range, *triggers)
        orderly = False
        try:
            task.open()
            task.drain()
            orderly = True
        finally:
            task.close(orderly=orderly)

    def crash(self, *triggers: Trigger, range: KeyRange = WHOLE) -> None:
        """Deliver until a trigger ends it."""
        try:
            self.deliver(range, *triggers)
        except Crash:
            return
        raise Wrong("the fault was never reached", detail=" ".join(self.transcript[-30:]))

    def meanwhile(self, work: Callable[[], None]) -> Callable[[], None]:
        """What others do while a task stands still; that it fails is not to be taken for the task's failure."""

        def act() -> None:
            try:
                work()
            except FlowError as error:
                raise Wrong("the new owner failed", detail=str(error)) from error

        return act

    def must_fail(self, work: Callable[[], None]) -> None:
        """What a zombie does must fail, as fenced off or because the endpoint threw it out."""
        try:
            work()
        except (FencedOff, DriverFailed):
            return
        raise Wrong("a zombie was not fenced off")

    def verify(self) -> None:
        """Compare the endpoint with the source."""
        for at, (name, binding) in enumerate(zip(self.names, self.spec.bindings, strict=True)):
            if name in self.endpoint.uncompared:
                continue  # nobody but its own readers can tell
            read = self.endpoint.read
            rows = self._load(at, binding) if read is None else read(name, binding)
            found = summary(name, rows, deltas=self.endpoint.deltas)
            expected = self.workload.expected(name)
            if not self.endpoint.exact:
                found, expected = without_repeats(found), without_repeats(expected)
            if found != expected:
                raise Wrong(f"binding {name} is wrong", detail=_difference(found, expected))

    def empty(self) -> bool:
        """Have a program begin anew, with nothing to deliver. Gives whether its places are empty then."""
        driver = self.endpoint.driver
        again = driver.again(self.spec, anew=True)
        driver.prepare(again, self.spec, self.log.state())
        self.spec = again
        keyed = [(at, binding) for at, binding in enumerate(again.bindings) if not binding.delta_updates]
        return not any(self._load(at, binding) for at, binding in keyed)

    def _load(self, at: int, binding: Binding) -> list[tuple[Document, bool]]:
        """What the endpoint gives when asked for every key that there may be."""
        row = self.log.open(WHOLE)
        channel = self.endpoint.driver.connect(Open(self.spec, WHOLE, row.state))
        try:
            self._next(channel)
            channel.send(Acknowledge(), STALL_S)
            self._next(channel)
            channel.send(Load(at, pa.table({binding.key[0]: pa.array(ACCOUNT_NAMES)})), STALL_S)
            channel.send(Flush(), STALL_S)
            rows: list[tuple[Document, bool]] = []
            while not isinstance(message := self._next(channel), Flushed):
                assert isinstance(message, Loaded)
                rows += [(each, False) for each in message.documents.to_pylist()]
            return rows
        finally:
            channel.close()

    def _next(self, channel: Channel) -> Any:
        response = channel.receive(STALL_S)
        if response is None:
            raise DriverFailed("the driver said nothing")
        return response

    def close(self) -> None:
        self.environment.close()


def _difference(found: Any, expected: Any) -> str:
    missing = {key: value for key, value in expected.items() if found.get(key) != value}
    wrong = {key: value for key, value in found.items() if expected.get(key) != value}
    return json.dumps({"expected": _shown(missing), "found": _shown(wrong)}, ensure_ascii=False)[:1000]


def _shown(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in list(values.items())[:8]}


When: TypeAlias = Literal["before", "after"]


class Crash(BaseException):
    """The runtime dies here; not an `Exception`, so that nothing takes it for a failure it knows."""


def crash() -> None:
    raise Crash


@dataclass
class Trigger:
    """When to act: before or after the `nth` message of a kind goes through."""

    message: type[Message]
    act: Callable[[], None]
    nth: int = 1
    when: When = "after"
    seen: int = field(default=0, init=False)

    @property
    def hit(self) -> bool:
        """Whether it has acted, or is about to."""
        return self.seen >= self.nth

    def at(self, message: Message, when: str) -> None:
        if type(message) is self.message and when == self.when:
            self.seen += 1
            if self.seen == self.nth:
                self.act()


class Shim:
    """A channel with triggers on it. It also keeps the conversation, by the names of its messages."""

    def __init__(self, inner: Channel, triggers: list[Trigger], transcript: list[str] | None = None) -> None:
        self._inner, self._triggers = inner, triggers
        self.transcript = transcript if transcript is not None else []

    def send(self, request: Request, timeout_s: float) -> None:
        self._see(request, "before")
        self._inner.send(request, timeout_s)
        self._see(request, "after")

    def receive(self, timeout_s: float) -> Response | None:
        response = self._inner.receive(timeout_s)
        if response is not None:
            self._see(response, "before")
            self._see(response, "after")
        return response

    def end(self) -> None:
        self._inner.end()

    def close(self) -> None:
        self._inner.close()

    def _see(self, message: Message, when: str) -> None:
        if when == "before":
            arrow = "→" if isinstance(message, REQUESTS) else "←"
            self.transcript.append(f"{arrow} {type(message).__name__}")
        for trigger in self._triggers:
            trigger.at(message, when)
