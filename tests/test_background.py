"""The loop that background work runs in: when its step runs, what it does after failures, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from everview.background import Backoff, Loop
from tests.clock import ManualClock
from tests.waiting import eventually

BACKOFF = Backoff(1.0, 5.0)


class Stop(Exception):
    """What ends the loops of these tests."""


class Steps:
    """A step that gives what the test has put down for it, one after the other, and then the last forever."""

    def __init__(self, *results: float | Exception | None) -> None:
        self.results = list(results)
        self.count = 0

    def __call__(self) -> float | None:
        result = self.results[min(self.count, len(self.results) - 1)]
        self.count += 1
        if isinstance(result, Exception):
            raise result
        return result


class Running:
    """Loops of one test, under one clock; they are stopped when it ends."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.loops: list[Loop] = []
        self.told: list[tuple[str, float]] = []

    def __call__(self, step: Callable[[], float | None], on_wake: Callable[[], None] | None = None) -> Loop:
        loop = Loop(
            "test",
            step,
            backoff=BACKOFF,
            ends=(Stop,),
            on_failure=lambda error, pause_s: self.told.append((str(error), pause_s)),
            on_wake=on_wake,
            clock=self.clock,
        )
        self.loops.append(loop)
        return loop

    def count(self, steps: Steps, expected: int) -> None:
        """Wait until the step ran so often and the loop sleeps again."""
        eventually(lambda: steps.count == expected and len(self.clock.pauses()) == 1)


@pytest.fixture
def running() -> Iterator[Running]:
    found = Running()
    yield found
    for loop in found.loops:
        loop.stop(10)


def is_over(loop: Loop) -> bool:
    return loop._thread is not None and not loop._thread.is_alive()


def test_pauses_double_up_to_the_longest() -> None:
    assert [BACKOFF.pause_s(failures) for failures in (1, 2, 3, 4, 5, 10_000)] == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]


def test_a_step_runs_at_once_and_then_when_it_is_due(running: Running) -> None:
    steps = Steps(2.0)
    running(steps).start()
    running.count(steps, 1)
    running.clock.advance(1.9)
    assert running.clock.await_pause() == pytest.approx(0.1)
    assert steps.count == 1
    running.clock.advance(0.1)
    running.count(steps, 2)


def test_a_first_step_can_be_delayed(running: Running) -> None:
    steps = Steps(1.0)
    running(steps).start(delay_s=3.0)
    assert running.clock.await_pause() == 3.0
    assert steps.count == 0
    running.clock.advance(3.0)
    running.count(steps, 1)


def test_whoever_wakes_the_loop_gets_a_step(running: Running) -> None:
    steps = Steps(60.0)
    loop = running(steps)
    loop.start()
    for expected in (1, 2, 3):
        running.count(steps, expected)
        loop.wake()
    running.count(steps, 4)


def test_a_wake_up_while_the_step_runs_is_not_lost(running: Running) -> None:
    inside, go_on = threading.Event(), threading.Event()
    count = 0

    def step() -> float:
        nonlocal count
        count += 1
        inside.set()
        assert go_on.wait(60)
        return 60.0

    loop = running(step)
    loop.start()
    assert inside.wait(60)
    loop.wake()
    go_on.set()
    eventually(lambda: count == 2)


def test_failures_are_told_and_tried_again_with_growing_pauses(running: Running) -> None:
    steps = Steps(*[ValueError(f"no {number}") for number in range(5)], 10.0)
    loop = running(steps)
    loop.start()
    for number, pause_s in enumerate((1.0, 2.0, 4.0, 5.0, 5.0), start=1):
        running.count(steps, number)
        assert running.clock.await_pause() == pause_s
        assert running.told[-1] == (f"no {number - 1}", pause_s)
        status = loop.status
        assert (str(status.error), status.failures) == (f"no {number - 1}", number)
        assert status.retry_ms == running.clock.wall_ms() + pause_s * 1000
        running.clock.advance(pause_s)
    running.count(steps, 6)
    assert loop.status.error is None and loop.status.retry_ms is None
    assert (loop.status.failures, loop.status.failures_in_a_row) == (5, 0)


def test_pauses_are_short_again_after_a_success(running: Running) -> None:
    steps = Steps(ValueError(), ValueError(), 1.0, ValueError("again"), 1.0)
    running(steps).start()
    for number, pause_s in enumerate((1.0, 2.0, 1.0, 1.0), start=1):
        running.count(steps, number)
        assert running.clock.await_pause() == pause_s
        running.clock.advance(pause_s)
    running.count(steps, 5)


def test_a_wake_up_does_not_cut_a_back_off_short(running: Running) -> None:
    steps = Steps(ValueError(), 1.0)
    loop = running(steps)
    loop.start()
    running.count(steps, 1)
    loop.wake()
    eventually(lambda: not loop._woken)
    running.count(steps, 1)
    running.clock.advance(1.0)
    running.count(steps, 2)


def test_what_is_done_when_woken_can_differ_from_the_step(running: Running) -> None:
    steps, answers = Steps(ValueError(), 30.0), Steps(0.0, 0.0, ValueError("not even that"), Stop())

    def answer() -> None:
        answers()

    loop = running(steps, on_wake=answer)
    loop.start()
    running.count(steps, 1)
    loop.wake()  # also while the step backs off
    eventually(lambda: answers.count == 1)
    running.count(steps, 1)
    assert loop.status.error is not None
    running.clock.advance(1.0)
    running.count(steps, 2)
    loop.wake()
    eventually(lambda: answers.count == 2)
    assert running.clock.await_pause() == 30.0
    loop.wake()
    eventually(lambda: running.told[-1] == ("not even that", 1.0))
    assert running.clock.await_pause() == 1.0  # the failure moves the step
    loop.wake()
    eventually(lambda: is_over(loop))


def test_a_step_that_is_done_ends_the_loop(running: Running) -> None:
    steps = Steps(0.0, 0.0, None)
    loop = running(steps)
    loop.start()
    eventually(lambda: is_over(loop))
    assert steps.count == 3
    assert loop.status.ended_by is None


def test_some_errors_end_the_loop_and_are_remembered(running: Running) -> None:
    loop = running(Steps(Stop("another process has it")))
    loop.start()
    eventually(lambda: is_over(loop))
    assert str(loop.status.ended_by) == "another process has it"
    assert running.told == [] and loop.status.failures == 0


def test_a_failure_that_cannot_be_told_is_tried_again(running: Running) -> None:
    steps = Steps(ValueError(), 1.0)

    def closed(error: Exception, pause_s: float) -> None:
        raise OSError("the log is closed")

    loop = Loop("test", steps, backoff=BACKOFF, on_failure=closed, clock=running.clock)
    running.loops.append(loop)
    loop.start()
    running.count(steps, 1)
    running.clock.advance(1.0)
    running.count(steps, 2)


def test_a_long_step_pauses_and_says_how_it_is(running: Running) -> None:
    """A conversation that goes well, but makes no progress before it fails, backs off longer each time."""
    progress = False
    clock = running.clock

    def converse() -> None:
        loop.pause(10.0)
        loop.recovered()
        if progress:
            loop.progressed()
        raise ValueError("lost")

    loop = running(converse)
    loop.start()
    for pause_s in (1.0, 2.0, 4.0):
        assert clock.await_pause() == 10.0
        assert (loop.status.error is None) == (pause_s == 1.0)
        clock.advance(10.0)
        eventually(lambda: running.told and clock.pauses() == [pause_s])  # noqa: B023
        clock.advance(pause_s)
    assert clock.await_pause() == 10.0
    progress = True
    clock.advance(10.0)
    eventually(lambda: clock.pauses() == [1.0])


@pytest.mark.parametrize("within", ["a pause of the loop", "a pause of the step", "a wait of the step"])
def test_stopping_ends_every_pause(running: Running, within: str) -> None:
    asked = threading.Event()

    def step() -> float | None:
        if within == "a pause of the step":
            loop.pause(1_000.0)
        elif within == "a wait of the step":
            assert asked.wait(60)
        return None if loop.stopping else 1_000.0

    loop = Loop("test", step, backoff=BACKOFF, on_stop=asked.set, clock=running.clock)
    loop.start()
    if within != "a wait of the step":
        assert running.clock.await_pause() == 1_000.0
    loop.stop()
    assert is_over(loop)


def test_a_loop_may_stop_itself_and_one_that_never_began_can_be_stopped(running: Running) -> None:
    def step() -> float:
        loop.stop()
        return 1.0

    loop = running(step)
    loop.stop()
    loop = running(step)
    loop.start()
    eventually(lambda: is_over(loop))


def test_an_attempt_on_the_thread_of_the_caller_counts_as_well(running: Running) -> None:
    loop = running(Steps(ValueError("once"), 7.0))
    assert loop.attempt() == 1.0
    assert loop.status.failures == 1
    assert loop.attempt() == 7.0
    assert loop.status.error is None
