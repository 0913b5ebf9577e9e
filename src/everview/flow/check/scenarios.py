"""The scenarios: what befalls a materialization, and that the endpoint holds exactly what it must afterwards.

Each scenario is a function of a `Harness`. The docstring of each is its line in the report.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from everview.flow.check.harness import Crash, Harness, Trigger, When, Wrong, crash
from everview.flow.drivers.contract import Started, Transactor
from everview.flow.errors import DriverStalled
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.protocol import (
    Acknowledge,
    Acknowledged,
    Flush,
    Flushed,
    Message,
    Opened,
    StartCommit,
    StartedCommit,
    Store,
)
from everview.flow.runtime import Limits

LOW, HIGH = WHOLE.split(2)
_WRITES_MAX = 50
T = TypeVar("T")
SETTLE_S = 0.15  # for a driver's commit that has begun


@dataclass(frozen=True)
class Scenario:
    """A name, what it does, and what it asks of an endpoint."""

    name: str
    about: str
    run: Callable[[Harness], None]
    needs_fence: bool = False
    aborts: bool = False  # leaves transactions at the endpoint that were not committed
    in_process: bool = False  # reaches into the driver


SCENARIOS: list[Scenario] = []


def scenario(
    *, needs_fence: bool = False, aborts: bool = False, in_process: bool = False
) -> Callable[[Callable[[Harness], None]], Callable[[Harness], None]]:
    """Enter a function in the list."""

    def enter(run: Callable[[Harness], None]) -> Callable[[Harness], None]:
        about = (run.__doc__ or "").strip().rstrip(".")
        SCENARIOS.append(Scenario(run.__name__, about, run, needs_fence, aborts, in_process))
        return run

    return enter


def _begin(harness: Harness) -> None:
    """Two transactions, of which one is delivered."""
    harness.write(3)
    harness.deliver()
    harness.write(2)


def _go_on(harness: Harness) -> None:
    """One more transaction, after which the endpoint holds what it must."""
    harness.write(2)
    harness.deliver()
    harness.verify()


def _crash_at(message: type[Message], *, when: When = "after", settle_s: float = 0.0) -> Callable[[Harness], None]:
    """One transaction that goes well, one that is struck, and one more after the restart."""

    def act() -> None:
        time.sleep(settle_s)
        crash()

    def run(harness: Harness) -> None:
        _begin(harness)
        harness.crash(Trigger(message, act, when=when))
        _go_on(harness)

    return run


@scenario()
def transactions(harness: Harness) -> None:
    """Transactions one after another, the next prepared while the last one commits."""
    for _ in range(3):
        harness.write(2)
        harness.deliver()
    task = harness.task()
    task.open()
    for _ in range(5):
        harness.write()
        task.transact()
    task.drain()
    task.close(orderly=True)
    harness.verify()


SCENARIOS += [
    Scenario("crash_at_open", "A crash right after the endpoint was opened", _crash_at(Opened)),
    Scenario("crash_before_flush", "A crash with all loads sent, before Flush", _crash_at(Flush, when="before")),
    Scenario("crash_at_flushed", "A crash with everything loaded and nothing stored", _crash_at(Flushed)),
    Scenario(
        "crash_in_mid_store",
        "A crash with some documents of a transaction stored and others not",
        _crash_at(Store, settle_s=SETTLE_S),
        aborts=True,
    ),
    Scenario(
        "crash_before_start_commit",
        "A crash with all documents stored, before StartCommit",
        _crash_at(StartCommit, when="before", settle_s=SETTLE_S),
        aborts=True,
    ),
    Scenario(
        "crash_at_start_commit",
        "A crash right after StartCommit: the endpoint may commit, and nobody hears of it",
        _crash_at(StartCommit),
    ),
    Scenario(
        "crash_between_the_commits",
        "A crash after the endpoint's commit and before the recovery log's",
        _crash_at(StartedCommit, settle_s=SETTLE_S),
    ),
]


@scenario()
def crash_before_acknowledge(harness: Harness) -> None:
    """A crash after the recovery log's commit, before the driver is told."""
    _begin(harness)
    # The first Acknowledge is the one of the opening.
    harness.crash(Trigger(Acknowledge, crash, nth=2, when="before"))
    harness.deliver()
    harness.verify()
    _go_on(harness)


@scenario()
def replayed_acknowledge(harness: Harness) -> None:
    """Acknowledge comes again, and again, with a state that has already been applied."""
    harness.write(3)
    harness.crash(Trigger(Acknowledged, crash, nth=2))
    for _ in range(2):
        harness.crash(Trigger(Acknowledged, crash))
    _go_on(harness)


@scenario()
def crash_again_and_again(harness: Harness) -> None:
    """Crashes at one message after another, transaction by transaction."""
    rng = random.Random(f"crashes {harness.seed}")
    kinds: list[type[Message]] = [Opened, Flushed, StartCommit, StartedCommit, Acknowledged]
    if harness.endpoint.aborts:
        kinds.append(Store)
    for _ in range(8):
        harness.write(rng.randint(1, 3))
        with contextlib.suppress(Crash):
            harness.deliver(WHOLE, Trigger(rng.choice(kinds), crash, nth=rng.randint(1, 2)))
    harness.deliver()
    harness.verify()


def _taken_over(harness: Harness) -> Callable[[], None]:
    """What happens while a task stands still: a new owner takes over and goes on."""

    def take_over() -> None:
        harness.deliver()
        harness.write(2)
        harness.deliver()

    return harness.meanwhile(take_over)


def _zombie(harness: Harness, message: type[Message]) -> None:
    """A task stands still before a message while a new owner takes over and goes on; then it moves again."""
    _begin(harness)
    zombie = harness.task(WHOLE, Trigger(message, _taken_over(harness), when="before"))
    zombie.open()
    try:
        harness.must_fail(zombie.drain)
    finally:
        zombie.close()
    harness.verify()
    _go_on(harness)


@scenario(needs_fence=True, aborts=True)
def zombie_at_store(harness: Harness) -> None:
    """A zombie wakes in the middle of its stores, after a new owner has gone on."""
    _zombie(harness, Store)


@scenario(needs_fence=True, aborts=True)
def zombie_at_commit(harness: Harness) -> None:
    """A zombie wakes with everything stored and commits, after a new owner has gone on."""
    _zombie(harness, StartCommit)


@scenario(needs_fence=True, aborts=True)
def zombie_at_acknowledge(harness: Harness) -> None:
    """A zombie wakes after its commit and acknowledges what a new owner has applied and passed."""
    harness.write(3)
    zombie = harness.task(WHOLE, Trigger(Acknowledge, _taken_over(harness), nth=2, when="before"))

    def come_back() -> None:
        zombie.open()
        zombie.drain()

    try:
        harness.must_fail(come_back)
    finally:
        zombie.close()
    harness.verify()


@scenario(in_process=True)
def stalled_commit(harness: Harness) -> None:
    """Commits are slow, and the next transaction's loads are sent meanwhile: they must see what was committed."""
    _slowly(harness, 0.0, 0.05)
    harness.write(2)
    task = harness.task()
    task.open()
    for _ in range(4):
        task.transact()
        harness.write()
    task.drain()
    task.close(orderly=True)
    harness.verify()


@scenario(needs_fence=True, aborts=True, in_process=True)
def stall_beyond_the_limit(harness: Harness) -> None:
    """The driver stalls for so long that the runtime gives up and starts anew, and then it commits after all."""
    _begin(harness)
    wrap = harness.parts.wrap
    _slowly(harness, 0.6, 0.0)
    stalled = harness.task(limits=Limits(stall_s=0.2, heartbeat_s=3600.0))
    try:
        stalled.open()
        stalled.drain()
    except DriverStalled:
        pass
    else:
        raise Wrong("a driver that says nothing was not given up on")
    harness.parts.wrap = wrap
    harness.deliver()
    time.sleep(0.8)  # by now the stalled driver has come around
    stalled.close()
    harness.verify()
    _go_on(harness)


def _slowly(harness: Harness, before_s: float, after_s: float) -> None:
    """Let transactors take their time: before they say that a commit has begun, and after."""
    inner = harness.parts.wrap

    def slow(made: Transactor) -> Transactor:
        made = made if inner is None else inner(made)
        start_commit, acknowledge = made.start_commit, made.acknowledge

        def later(work: Callable[[], T]) -> T:
            time.sleep(after_s)
            return work()

        def start(checkpoint: str) -> Started:
            time.sleep(before_s)
            started = start_commit(checkpoint)
            return started if started.commit is None else replace(started, commit=partial(later, started.commit))

        made.start_commit, made.acknowledge = start, partial(later, acknowledge)  # type: ignore[method-assign]
        return made

    harness.parts.wrap = slow


def _split(harness: Harness, message: type[Message], nth: int) -> None:
    """The range is split in two while its task stands before a message; the task must not get any further."""
    _begin(harness)

    def split() -> None:
        harness.deliver(LOW)
        harness.write()
        harness.deliver(HIGH)

    parent = harness.task(WHOLE, Trigger(message, harness.meanwhile(split), nth=nth, when="before"))
    try:
        parent.open()
        harness.must_fail(parent.drain)
    finally:
        parent.close()
    harness.write()
    harness.deliver(LOW)
    harness.deliver(HIGH)
    harness.verify()


@scenario(needs_fence=True, aborts=True)
def split_during_store(harness: Harness) -> None:
    """A range is split in two in the middle of its stores."""
    _split(harness, Store, 1)


@scenario(needs_fence=True, aborts=True)
def split_during_commit(harness: Harness) -> None:
    """A range is split in two after its commit and before it is acknowledged: both halves inherit it."""
    _split(harness, Acknowledge, 2)


@scenario()
def join_after_split(harness: Harness) -> None:
    """Two halves that are at different times are joined again, then split, then joined."""
    harness.write(3)
    harness.deliver()
    for _ in range(2):
        harness.write(2)
        harness.deliver(LOW)
        harness.write(2)
        harness.deliver(HIGH)
        _go_on(harness)


@scenario()
def join_with_staged_commits(harness: Harness) -> None:
    """Two halves crash after their commits, before they are acknowledged, and are joined: both are still due."""
    harness.write(10)
    for half in (LOW, HIGH):
        for _ in range(_WRITES_MAX):  # until the half has something to commit
            try:
                harness.crash(Trigger(Acknowledge, crash, nth=2, when="before"), range=half)
            except Wrong:
                harness.write()
            else:
                break
        else:
            raise Wrong(f"nothing of the range {half} changes")
        harness.write()
    harness.deliver()
    harness.verify()


@scenario()
def ranges_cut_across(harness: Harness) -> None:
    """Ranges change to others that cut across them, in any order, each at a time of its own."""
    harness.write(3)
    quarters, thirds = WHOLE.split(4), WHOLE.split(3)
    uneven = [KeyRange(0, quarters[0].end), KeyRange(quarters[1].begin, WHOLE.end)]
    for ranges in ([LOW, HIGH], uneven, thirds, quarters, [WHOLE]):
        for each in ranges:
            harness.write()
            harness.deliver(each)
    harness.verify()


@scenario()
def ranges_and_crashes_at_random(harness: Harness) -> None:
    """Ranges change at random, and whoever opens, loads, stores or commits them crashes at random."""
    rng = random.Random(f"ranges {harness.seed}")
    kinds: list[type[Message]] = [Opened, Flush, Flushed, StartCommit, StartedCommit, Acknowledge, Acknowledged]
    if harness.endpoint.aborts:
        kinds.append(Store)
    harness.write(3)
    for _ in range(8):
        for each in rng.sample(ranges := WHOLE.split(rng.randint(1, 4)), len(ranges)):
            harness.write()
            with contextlib.suppress(Crash):
                when: When = rng.choice(("before", "after"))
                harness.deliver(each, Trigger(rng.choice(kinds), crash, nth=rng.randint(1, 3), when=when))
    harness.deliver()
    harness.verify()
