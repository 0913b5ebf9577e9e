"""A materialization as the layers above drive it: checked, created, run in the background, watched, split and dropped.

`validate` checks everything before anything is written. `found` takes a read capability on each collection and
remembers it with the ranges; `resume` picks all of that up again after a restart. Each range has a worker, a thread
that opens a task and makes transactions as the collections move on. Ranges of a foreign driver go together, phase by
phase, and one worker has all of them; so has one that runs them as Spark tasks. Whatever fails is told as a value, and
tried again with back-off from the last commit: a worker gives up only when it is fenced off. How
far the past is needed follows the worst acknowledged checkpoint, and moves with the next commit of the recovery log.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from everview.compute.ir.types import SqlType
from everview.errors import EverviewError
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import Binding, Field, Spec
from everview.flow.drift import DriftWatch
from everview.flow.drivers.contract import Driver
from everview.flow.drivers.registry import open_driver
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.joint_worker import JointWorker
from everview.flow.keyrange import SPLITS_MAX, WHOLE, KeyRange, check_partition
from everview.flow.lineage import Owner, taken_over
from everview.flow.protocol import DriverState, StateUpdate
from everview.flow.recovery_log import RecoveryLog, updated
from everview.flow.reduction import LAST_WRITE_WINS, Reduction
from everview.flow.runtime import Delivery, Limits
from everview.flow.source import Collections, Readable
from everview.flow.spark import SparkWhenThere, SparkWorker
from everview.flow.validation import check_data, check_endpoint, check_spec
from everview.flow.worker import STOP_S, Runner, Worker, WorkerStatus
from everview.storage.contract import Clone, Command, Downgrade, Drop, GlobalId, Put, ReadCapability
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER
from everview.timely.antichain import Antichain

ROUND_MS = 1_000  # the least time between rounds on Spark, where nothing else is said
HALT_S = 10.0  # how long an endpoint that is left for good is waited for


@dataclass(frozen=True)
class Options:
    """How a materialization runs."""

    splits: int = 1
    interval_ms: int | None = None  # the least time between transactions; None leaves it to the driver
    stall_s: float = 300.0
    heartbeat_s: float = 30.0
    backoff_s: float = 0.5
    backoff_s_max: float = 60.0
    check_s: float = 600.0  # how often the rows at the endpoint are counted, where that is possible; 0: never
    spark: bool = False  # whether splits are tasks of Spark, in rounds, instead of threads of this process


class State(Enum):
    """What a materialization is doing."""

    RUNNING = "running"
    PAUSED = "paused"
    STALLED = "stalled"  # something fails, and is tried again
    DRIFTED = "drifted"  # the endpoint does not hold what was delivered; tried again as well
    FENCED = "fenced off"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Status:
    """A materialization at one instant. The endpoint is exact for every time before `frontier`."""

    name: str
    state: State
    frontier: int
    upper: int
    transactions: int
    stored_by: tuple[int, ...]  # documents, of each binding
    error: str | None
    splits: tuple[WorkerStatus, ...]


def make_binding(
    environment: Environment,
    collection: GlobalId,
    columns: Sequence[tuple[str, SqlType]],
    key: Sequence[str],
    *,
    resource: Mapping[str, Any] | None = None,
    delta_updates: bool = False,
    reductions: Mapping[str, str | Mapping[str, Any] | Reduction] | None = None,
    places: Sequence[int] = (),
    title: str = "",
) -> Binding:
    """A binding of a collection whose columns have these names and types, in order.

    With `places`, they are these columns of the collection, else the first.
    """
    reductions = reductions or {}
    names = {name for name, _ in columns}
    if unknown := [name for name in reductions if name not in names]:
        hint = f"one of {', '.join(sorted(names))}"
        raise InvalidMaterialization(f'column "{unknown[0]}" to be reduced does not exist', hint=hint)
    fields = tuple(
        Field(name, sql_type, Reduction.parse(reductions.get(name, LAST_WRITE_WINS))) for name, sql_type in columns
    )
    return Binding(collection, fields, tuple(key), dict(resource or {}), delta_updates, tuple(places), title)


class Materialization:
    def __init__(
        self,
        environment: Environment,
        driver: Driver,
        spec: Spec,
        options: Options,
        *,
        readable: Readable | None = None,
        spark: SparkWhenThere = lambda: None,
    ) -> None:
        """Use `found` or `resume`."""
        self._spark = spark
        self._environment, self._driver, self._spec, self._options = environment, driver, spec, options
        self.name = spec.name
        self._source = Collections(environment, spec.bindings, readable=readable)
        self._log = RecoveryLog(environment, spec.name, shared=driver.foreign)
        self._lock = threading.RLock()
        self._runners: list[Runner] = []
        self._acknowledged: dict[KeyRange, int] = {}
        self._reached = START
        self._state = State.PAUSED
        note = json.loads(environment.get(_note(spec.name)) or b"{}")
        self._tokens: dict[GlobalId, str] = note["tokens"]
        self._begins_anew = bool(note.get("anew"))
        self._last_config: Mapping[str, Any] | None = note.get("last")  # which a program was applied with, if outdated
        self._watch: DriftWatch | None = None
        self._was_fenced = False  # when it was halted
        self._last_owner: Owner | None = None
        self._beginning = threading.Lock()
        self.ranges = [KeyRange.parse(each) for each in note["ranges"]]

    # Creation

    @classmethod
    def validate(
        cls, environment: Environment, name: str, driver: str, config: Mapping[str, Any], bindings: Sequence[Binding]
    ) -> tuple[Driver, Spec]:
        """Check all that can be checked without changing anything."""
        opened = open_driver(driver, config)
        spec = check_spec(opened, Spec(name, opened.name, tuple(bindings), opened.config))
        check_data(environment, spec.bindings)
        with _hidden(opened):
            return opened, check_endpoint(opened, spec)

    @classmethod
    def check_reach(
        cls, environment: Environment, name: str, driver: str, config: Mapping[str, Any], bindings: Sequence[Binding]
    ) -> None:
        """An error unless the endpoint of a materialization that exists takes it, reached by this config."""
        opened = open_driver(driver, config)
        spec = _as_noted(environment, check_spec(opened, Spec(name, opened.name, tuple(bindings), opened.config)))
        with _hidden(opened):
            _check_same_places(spec, check_endpoint(opened, spec))

    @staticmethod
    def prepare(driver: Driver, spec: Spec) -> StateUpdate | None:
        """Make what the endpoint needs for a materialization that was validated; gives the driver's first state."""
        with _hidden(driver):
            return driver.prepare(spec)

    @classmethod
    def found(
        cls,
        environment: Environment,
        driver: Driver,
        spec: Spec,
        *,
        options: Options,
        state: StateUpdate | None = None,
        readable: Readable | None = None,
        also: Sequence[Command] = (),
        spark: SparkWhenThere = lambda: None,
    ) -> Materialization:
        """Remember a materialization that was validated and prepared. This is quick, unlike those two."""
        if environment.get(_note(spec.name)) is not None:
            raise InvalidMaterialization(f"materialization {spec.name} exists already")
        ranges = WHOLE.split(options.splits)
        collections = dict.fromkeys(each.collection for each in spec.bindings)
        note = _noted({id: _reader(environment, id).token for id in collections}, ranges, spec)
        log = RecoveryLog(environment, spec.name, shared=driver.foreign)
        begun = log.beginning(updated({}, state))
        environment.commit(Put(_note(spec.name), note), *begun, *also)
        return cls(environment, driver, spec, options, readable=readable, spark=spark)

    @classmethod
    def resume(
        cls,
        environment: Environment,
        name: str,
        driver: str,
        config: Mapping[str, Any],
        bindings: Sequence[Binding],
        *,
        options: Options | None = None,
        readable: Readable | None = None,
        spark: SparkWhenThere = lambda: None,
    ) -> Materialization:
        """A materialization that was created before, to go on from its last commit."""
        if environment.get(_note(name)) is None:
            raise InvalidMaterialization(f"materialization {name} does not exist")
        opened = open_driver(driver, config)
        spec = check_spec(opened, Spec(name, opened.name, tuple(bindings), opened.config))
        spec = _as_noted(environment, spec)
        return cls(environment, opened, spec, options or Options(), readable=readable, spark=spark)

    # Running

    def start(self) -> None:
        """Start all workers that do not run yet."""
        with self._lock:
            if self._state is State.DROPPED:
                raise InvalidMaterialization(f"materialization {self.name} was dropped")
            self._state = State.RUNNING
            self._source.readers = len(self.ranges)
            if not self._runners:
                self._runners = self._made()
                for runner in self._runners:
                    runner.loop.start()
                if self._options.check_s and type(self._driver).census is not Driver.census:
                    runners, spec = list(self._runners), self._spec
                    self._watch = DriftWatch(self._driver, spec, self._source, runners, self._options.check_s)

    def pause(self, wait_s: float = STOP_S) -> None:
        """Stop all workers after the transaction that is under way, if any."""
        with self._lock:
            if self._state is State.RUNNING:
                self._state = State.PAUSED
            self._stop(wait_s)

    def split(self, count: int, also: Sequence[Command] = ()) -> None:
        """Change the number of ranges; those that run go on from where the ones before them were."""
        self.set_ranges(WHOLE.split(count), also)

    def set_ranges(self, ranges: Sequence[KeyRange], also: Sequence[Command] = ()) -> None:
        """Change the ranges: they may split, join or cut across those before, whose work is never lost or repeated.

        `also` are commands for the same durable step.
        """
        checked = check_partition(ranges)
        if len(checked) > SPLITS_MAX:
            raise InvalidMaterialization(f"a materialization has at most {SPLITS_MAX} splits")
        with self._lock:
            running = self._state is State.RUNNING
            self._stop(HALT_S)  # whoever is left behind is fenced off by those who come
            # Until every place has a new owner's word, no more of the past is given up than before.
            lowest = min(self._acknowledged.values(), default=START)
            self._environment.commit(self._put(checked), *also)
            self.ranges = checked
            self._acknowledged = dict.fromkeys(checked, lowest)
            if running:
                self.start()

    def backfill(self, also: Sequence[Command] = ()) -> None:
        """Deliver everything anew, into what is emptied first. `also` are commands for the same durable step.

        It happens in the background, and is tried again until it is done, also after a restart.
        """
        if not self._driver.foreign and type(self._driver).reset is Driver.reset:
            self._driver.reset(self._spec)  # says why it cannot be
        with self._lock:
            running = self._state is State.RUNNING
            self._stop(HALT_S)
            self._begins_anew = True
            # The collections' past is held from here on only: the beginning is what they hold then.
            self._environment.commit(self._put(self.ranges), *also)
            self._acknowledged, self._reached = {}, START
            if running:
                self.start()

    def change_settings(self, also: Sequence[Command] = ()) -> None:
        """Its settings are others once `also` is committed: it is halted, and is to be resumed with them.

        A program is told of them by Apply before anything more is delivered, in the background as a backfill is.
        """
        if self._spec.described is not None and self._last_config is None:
            self._last_config = self._spec.config
        self._environment.commit(self._put(self.ranges), *also)

    def _prepare_again(self) -> None:
        """Empty the endpoint, or tell a program of new settings, if either is due; one of the workers does it."""
        with self._beginning:
            anew, last = self._begins_anew, self._last_config
            if not anew and last is None:
                return
            spec = self._spec
            if self._driver.foreign:
                spec, state = self._applied_again(anew, last)
                begun = self._log.anew(state) if anew else self._log.restating(state)
            else:
                self._driver.reset(spec)
                begun = self._log.anew({})
            self._begins_anew, self._last_config = False, None
            try:
                self._environment.commit(self._put(self.ranges, spec), *begun)
            except BaseException:
                self._begins_anew, self._last_config = anew, last
                raise
            self._spec = spec
            for runner in self._runners:
                runner.spec = spec

    def _applied_again(self, anew: bool, last: Mapping[str, Any] | None) -> tuple[Spec, DriverState]:
        """Apply the materialization as its next version, `last` being the settings before; gives its state, too."""
        state = self._log.state()
        before = self._spec if last is None else replace(self._spec, config=last)
        with _hidden(self._driver), _hidden(open_driver(self._driver.name, before.config)):
            spec = self._driver.again(self._spec, anew=anew)
            return spec, updated(state, self._driver.prepare(spec, before, state))

    def drop(self, also: Sequence[Command] = ()) -> None:
        """Stop, and forget everything but what was delivered. `also` are commands for the same durable step."""
        self.halt()
        self._environment.commit(*self.let_go(), *also)
        self.forget()

    def halt(self) -> None:
        """Stop for good, or until `start`: an endpoint that does not answer is not waited for.

        A worker that is left behind cannot commit once the materialization is dropped or another has its keys.
        """
        self._was_fenced = self.status().state is State.FENCED
        self.pause(HALT_S)

    def let_go(self) -> list[Command]:
        self._last_owner = self._log.owner([each.collection for each in self._spec.bindings])
        return let_go(self._environment, self.name)

    def forget(self) -> None:
        """It was dropped, with all that `let_go` names: let the endpoint forget it, too.

        TakenOver if another copy of the environment delivers there now: what is kept there is that one's.
        """
        self._state = State.DROPPED
        if self._driver.foreign and self._was_fenced:  # which cannot be asked without fencing others off
            raise taken_over(self.name, "the connector was not told that this sink is gone")
        with _hidden(self._driver):
            self._driver.forget(self._spec, self._last_owner)

    close = pause

    def wait(self, frontier: int, timeout_s: float) -> bool:
        """Wait until the endpoint is exact for every time before `frontier`; false when the time is over."""
        deadline = time.monotonic() + timeout_s
        while self.status().frontier < frontier:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def status(self) -> Status:
        # Without the lock, which is held while an endpoint is waited for.
        splits = tuple(status for runner in list(self._runners) for status in runner.statuses())
        state, watch = self._state, self._watch
        drift = None if watch is None else watch.drift
        if state is State.RUNNING:
            if any(each.fenced for each in splits):
                state = State.FENCED
            elif any(each.drifted for each in splits):
                state = State.DRIFTED
            elif any(each.error is not None for each in splits):
                state = State.STALLED
            elif drift is not None:
                state = State.DRIFTED
        frontier = self._frontier(splits)
        return Status(
            self.name,
            state,
            frontier,
            self._source.upper if state is not State.DROPPED else frontier,
            sum(each.transactions for each in splits),
            tuple(map(sum, zip(*(each.stored_by for each in splits), strict=True))),
            next((each.error for each in splits if each.error is not None), drift),
            splits,
        )

    # Inside

    def _made(self) -> list[Runner]:
        """The workers: one for each range, or one for all ranges if they go together or run on Spark."""
        options = self._options
        interval_ms = options.interval_ms
        if interval_ms is None:
            interval_ms = max(self._driver.interval_ms, ROUND_MS if options.spark else 0)
        driver, spec = self._driver, self._spec
        limits = Limits(options.stall_s, interval_ms / 1000, options.heartbeat_s)
        noted = {"acknowledged": self._note_acknowledged, "also": self._downgrades}
        delivery = Delivery.by(driver, self._source, self._log, limits=limits, **noted)
        how: dict[str, Any] = {"backoff_s": (options.backoff_s, options.backoff_s_max), "before": self._prepare_again}
        how["group"] = object()
        if options.spark:
            return [SparkWorker(driver, spec, self.ranges, self._spark, delivery, **how)]
        if driver.foreign and len(self.ranges) > 1:
            return [JointWorker(driver, spec, self.ranges, delivery, **how)]
        return [Worker(driver, spec, range, delivery, **how) for range in self.ranges]

    def _put(self, ranges: Sequence[KeyRange], spec: Spec | None = None) -> Put:
        """The command that stores its note."""
        due = {"anew": self._begins_anew, "last": self._last_config}
        return Put(_note(self.name), _noted(self._tokens, ranges, spec or self._spec, **due))

    def _stop(self, wait_s: float) -> None:
        runners, self._runners = self._runners, []
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()
        for runner in runners:
            runner.loop.ask_to_stop()
        self._environment.wake()
        deadline = time.monotonic() + wait_s
        for runner in runners:
            runner.loop.join(max(0.0, deadline - time.monotonic()))
        self._reached = max(self._reached, self._frontier([each for one in runners for each in one.statuses()]))

    def _frontier(self, splits: Sequence[WorkerStatus]) -> int:
        """Before which time the endpoint is exact, as far as is known here.

        Checkpoints do not tell all of it: while nothing changes they stay where they are. What was reached remains.
        """
        frontiers = [each.frontier for each in splits]
        known = min(frontiers) if len(frontiers) == len(self.ranges) else min(self._acknowledged.values(), default=0)
        return max(known, self._reached)

    def _note_acknowledged(self, range: KeyRange, checkpoint: Checkpoint) -> None:
        self._acknowledged[range] = checkpoint.lowest

    def _downgrades(self) -> list[Command]:
        """How far the collections' past is no longer needed: up to just before the worst acknowledged frontier."""
        if any(range not in self._acknowledged for range in self.ranges):
            return []
        needed = min(self._acknowledged[range] for range in self.ranges) - 1
        commands: list[Command] = []
        for id, token in self._tokens.items():
            capability = self._environment.present(id, token)
            if not capability.frontier.empty and capability.frontier.only < needed < FOREVER - 1:
                commands.append(Downgrade(capability, Antichain(needed)))
        return commands

    def __repr__(self) -> str:
        return f"Materialization({self.name!r}, {self._driver.name}, {self._state.value})"


def held_tokens(environment: Environment, name: str) -> dict[GlobalId, str]:
    """The tokens of the capabilities by which a materialization reads its collections, running or not."""
    note = environment.get(_note(name))
    return {} if note is None else dict(json.loads(note)["tokens"])


def let_go(environment: Environment, name: str) -> list[Command]:
    commands: list[Command] = []
    for id, token in held_tokens(environment, name).items():
        if token in environment.shard(id).held:
            commands.append(Drop(environment.present(id, token)))
    return [*commands, *RecoveryLog(environment, name).forgetting(), Put(_note(name), None)]


def _note(name: str) -> str:
    return f"flow/{name}/materialization"


def _noted(tokens: Mapping[GlobalId, str], ranges: Sequence[KeyRange], spec: Spec, **due: Any) -> bytes:
    """What is remembered; `due` is what has yet to be done before anything more is delivered."""
    noted: dict[str, Any] = {"tokens": dict(tokens), "ranges": [str(range) for range in ranges]}
    noted |= {name: value for name, value in due.items() if value}
    if spec.described is not None:
        noted |= {"described": spec.described, "version": spec.version}
    return json.dumps(noted).encode()


def _as_noted(environment: Environment, spec: Spec) -> Spec:
    """The materialization as its last apply described it."""
    noted = json.loads(environment.get(_note(spec.name)) or b"{}")
    if noted.get("described") is None:
        return spec
    return replace(spec, described=noted["described"], version=noted["version"])


def _check_same_places(before: Spec, now: Spec) -> None:
    """An error if a program delivers elsewhere with these settings: what was delivered would stay behind."""
    places = [
        [tuple(each["resourcePath"]) for each in (spec.described or {}).get("bindings", ())] for spec in (before, now)
    ]
    if before.described is not None and places[0] != places[1]:
        raise InvalidMaterialization(
            "the connector would deliver to another place by these settings",
            detail=f"it is {places[0]} and would be {places[1]}",
            hint="create another sink, and drop this one",
        )


def _reader(environment: Environment, id: GlobalId) -> ReadCapability:
    """A read capability of our own, at the collection's `since`."""
    held = environment.shard(id).held
    tokens = [token for token in held if token.startswith("r")]
    if tokens:
        (capability,) = environment.commit(Clone(environment.present(id, tokens[0])))
    else:
        capability, writer = environment.acquire(id)
        environment.drop(writer)
    assert isinstance(capability, ReadCapability)
    return capability


@contextmanager
def _hidden(driver: Driver) -> Iterator[None]:
    """Within the block, errors do not show the endpoint's secrets."""
    try:
        yield
    except EverviewError as error:
        error.message = driver.hide(error.message)
        error.args = (error.message,)
        error.detail = driver.hide(error.detail) if error.detail else None
        error.hint = driver.hide(error.hint) if error.hint else None
        raise error from None  # its cause may hold them still
    except Exception as error:  # of a library that speaks to the endpoint
        text = driver.hide(f"{type(error).__name__}: {error}")
        raise DriverFailed("the destination failed", detail=text) from None
