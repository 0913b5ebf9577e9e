"""The scenarios that every reader must pass, the iterator at several parallelisms and Spark over both codecs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from everview.cdc.contract import COUNTS, DIFFS, GAP, MISSING, SURPLUS, Frontier, Message, Progress, Updates
from everview.cdc.errors import ConflictingCounts, ConflictingDiffs, SurplusUpdates
from everview.timely.antichain import Antichain
from tests.cdc.readers import Run, iterator, on_spark

pytestmark = pytest.mark.timeout(300)  # Spark shares the machine

A, B, C = (1, "a"), (2, "b"), (3, None)
END: Antichain[Any] = Antichain()


def progress(lower: int, upper: int | None, **counts: int) -> Progress:
    """`progress(0, 5, t3=2)`: two updates at time 3 and no others from 0 to before 5; None is the end of time."""
    pairs = tuple((int(name[1:]), number) for name, number in counts.items())
    return Progress(Antichain(lower), END if upper is None else Antichain(upper), pairs)


HISTORY = [(A, 0, 2), (B, 0, 1), (C, 0, 1), (B, 1, -1), (C, 1, 1), (A, 2, -1), (C, 2, -1)]
STATEMENTS = [progress(0, 1, t0=3), progress(1, 3, t1=2, t2=2), progress(3, 4)]


@pytest.fixture(
    params=[
        "iterator-1",
        "iterator-3",
        "iterator-8",
        "restarting",
        pytest.param("spark-jsonl", marks=pytest.mark.spark),
    ]
)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    kind = request.param
    if kind.startswith("spark"):
        yield on_spark(request.getfixturevalue("spark"), tmp_path, f".{kind.partition('-')[2]}")
    elif kind == "restarting":
        yield iterator(2, restart=True)
    else:
        yield iterator(int(kind.partition("-")[2]))


def messages(updates: Sequence[Any], statements: Sequence[Progress], size: int = 3) -> list[Message[Any]]:
    return [*(Updates(updates[at : at + size]) for at in range(0, len(updates), size)), *statements]


def test_a_plain_history(run: Run) -> None:
    outcome = run(messages(HISTORY, STATEMENTS))
    assert sorted(outcome.updates, key=repr) == sorted(HISTORY, key=repr)
    assert (outcome.frontier, outcome.stalls) == (Antichain(4), [])


@pytest.mark.parametrize("size", [1, 2, 7])
def test_any_rebatching_and_progress_before_or_after(run: Run, size: int) -> None:
    for order in (messages(HISTORY, STATEMENTS, size), messages(HISTORY, STATEMENTS, size)[::-1]):
        outcome = run(order)
        assert (set(outcome.updates), outcome.frontier) == (set(HISTORY), Antichain(4))


def test_duplication(run: Run) -> None:
    outcome = run(messages(HISTORY, STATEMENTS, 2) * 3)
    assert sorted(outcome.updates, key=repr) == sorted(HISTORY, key=repr)


def test_duplicates_in_one_batch_do_not_stand_for_what_is_missing(run: Run) -> None:
    outcome = run([Updates([(A, 0, 1), (A, 0, 1)]), progress(0, 1, t0=2)])
    assert (outcome.updates, outcome.frontier, outcome.reasons) == ([], Antichain(0), {0: MISSING})
    (stall,) = outcome.stalls
    assert (stall.expected, stall.arrived, stall.curable) == (2, 1, True)


def test_gaps_wait(run: Run) -> None:
    outcome = run(messages(HISTORY, [STATEMENTS[0], STATEMENTS[2]]))
    assert (set(outcome.updates), outcome.frontier) == ({u for u in HISTORY if u[1] == 0}, Antichain(1))
    assert outcome.reasons == {1: GAP}


def test_overlapping_and_nested_intervals(run: Run) -> None:
    overlapping = [progress(0, 2, t0=3, t1=2), progress(1, 3, t1=2, t2=2), progress(0, 4, t0=3, t1=2, t2=2)]
    for statements in (overlapping, overlapping[::-1], overlapping[:2]):
        outcome = run(messages(HISTORY, statements))
        assert set(outcome.updates) == set(HISTORY) and outcome.contradiction is None


def test_two_writers_with_different_boundaries(run: Run) -> None:
    first = [progress(0, 1, t0=3), progress(1, 2, t1=2)]  # then it dies
    second = [progress(0, 2, t0=3, t1=2), progress(2, 9, t2=2)]
    outcome = run([*messages(HISTORY[:5], first, 2), *messages(HISTORY, second, 4)])
    assert (set(outcome.updates), outcome.frontier) == (set(HISTORY), Antichain(9))
    assert len(outcome.updates) == len(HISTORY)


def test_late_updates_at_closed_times_are_dropped(run: Run) -> None:
    outcome = run([Updates(HISTORY[:3]), STATEMENTS[0], Updates([*HISTORY[:3], (B, 1, -1)]), Updates(HISTORY[:1])])
    assert sorted(outcome.updates, key=repr) == sorted(HISTORY[:3], key=repr)


def test_times_before_the_start_are_none_of_ours(run: Run) -> None:
    outcome = run(messages(HISTORY, STATEMENTS), Antichain(2))
    assert (set(outcome.updates), outcome.frontier) == (set(HISTORY[5:]), Antichain(4))


def test_empty_progress(run: Run) -> None:
    outcome = run([progress(0, 5), progress(5, 5), progress(5, 9), Updates([])])
    assert (outcome.updates, outcome.frontier, outcome.stalls) == ([], Antichain(9), [])


def test_an_empty_upper_closes_only_when_counts_are_met(run: Run) -> None:
    outcome = run([progress(0, None, t7=2), Updates([(A, 7, 1)])])
    assert (outcome.updates, outcome.frontier, outcome.reasons) == ([], Antichain(7), {7: MISSING})
    outcome = run([progress(0, None, t7=2), Updates([(A, 7, 1)]), Updates([(B, 7, 1)])])
    assert (set(outcome.updates), outcome.frontier) == ({(A, 7, 1), (B, 7, 1)}, END)


def test_partially_ordered_times(run: Run) -> None:
    updates = [(A, (0, 0), 1), (B, (0, 1), 1), (C, (1, 0), 1), (A, (1, 1), -1)]
    start: Frontier = Antichain((0, 0))
    corner = Progress(start, Antichain((0, 1), (1, 0)), (((0, 0), 1),))
    column = Progress(Antichain((0, 1), (1, 0)), Antichain((1, 0)), (((0, 1), 1),))
    row = Progress(Antichain((0, 1), (1, 0)), Antichain((0, 1)), (((1, 0), 1),))
    rest = Progress(Antichain((1, 1)), Antichain((2, 0), (0, 2)), (((1, 1), 1),))
    whole = [corner, column, row, rest]
    for statements in (whole, whole[::-1]):
        outcome = run([*statements, Updates(updates)], start)
        # The rest covers what is beyond (1, 1); of what is beyond (2, 0) and (0, 2) nothing is said.
        assert (set(outcome.updates), outcome.frontier) == (
            set(updates),
            Antichain((2, 0), (0, 2)).join(Antichain((1, 1))),
        )
    outcome = run([corner, row, Updates(updates)], start)
    assert (set(outcome.updates), outcome.frontier) == ({updates[0], updates[2]}, Antichain((0, 1)))
    outcome = run([corner, column, row, Updates(updates[:2])], start)
    assert (set(outcome.updates), outcome.reasons) == (set(updates[:2]), {(1, 0): MISSING})


def test_conflicting_diffs_are_reported_and_hold_the_time(run: Run) -> None:
    outcome = run(
        [Updates([(A, 0, 1), (B, 0, 1)]), Updates([(A, 0, 2)]), Updates([(C, 1, 1)]), progress(0, 5, t0=2, t1=1)]
    )
    assert (outcome.updates, outcome.frontier, outcome.reasons) == ([], Antichain(0), {0: DIFFS})
    assert isinstance(outcome.contradiction, ConflictingDiffs) and outcome.contradiction.time == 0


def test_an_understated_count_is_reported_while_the_time_is_open(run: Run) -> None:
    outcome = run([Updates([(A, 3, 1), (B, 3, 1)]), progress(0, 5, t3=1)])
    assert (outcome.updates, outcome.frontier, outcome.reasons) == ([], Antichain(3), {3: SURPLUS})
    assert isinstance(outcome.contradiction, SurplusUpdates)
    outcome = run([Updates([(A, 3, 1), (B, 3, 1)]), progress(0, 5)])
    assert isinstance(outcome.contradiction, SurplusUpdates)


def test_an_overstated_count_stalls_visibly(run: Run) -> None:
    outcome = run([Updates([(A, 3, 1), (B, 4, 1)]), progress(0, 9, t3=2, t4=1)])
    assert (outcome.updates, outcome.frontier, outcome.reasons) == ([], Antichain(3), {3: MISSING})


@pytest.mark.parametrize("other", [progress(0, 5, t3=3), progress(2, 9), progress(3, None, t3=1)])
def test_statements_that_disagree_are_reported(run: Run, other: Progress) -> None:
    stated, late = Updates([(A, 3, 1)]), progress(0, 2)
    before: list[Message[Any]] = [progress(0, 5, t3=2), other, stated]
    after: list[Message[Any]] = [other, progress(2, 5, t3=2), stated, late]
    for said in (before, after):
        outcome = run(said)
        assert (outcome.updates, outcome.frontier, outcome.reasons.get(3)) == ([], Antichain(3), COUNTS)
        assert isinstance(outcome.contradiction, ConflictingCounts)


def test_every_permutation_of_a_small_history_agrees() -> None:
    history = [(A, 0, 1), (B, 1, 1), (A, 1, -1)]
    said: list[Message[Any]] = [
        Updates(history[:2]),
        Updates(history[1:]),
        progress(0, 1, t0=1),
        progress(1, 3, t1=2),
        progress(0, 2, t0=1, t1=2),
    ]
    for order in permutations(said):
        for parallelism in (1, 2):
            outcome = iterator(parallelism)(list(order))
            assert sorted(outcome.updates, key=repr) == sorted(history, key=repr)
            assert outcome.frontier == Antichain(3)
            assert [time for _, time, _ in outcome.updates] == [0, 1, 1], "time never goes back"
