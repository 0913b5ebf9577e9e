"""The checker itself: each deliberate anomaly is named, and nothing else is."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.adapter.history.checker import check
from tests.adapter.history.model import Group, Operation, Outcome, facts, numbers

A: Group = ("a", 0)
B: Group = ("b", 0)


def op(began: float, ended: float, worker: str = "w", **what: Any) -> Operation:
    """An operation; sets of facts are given as lists."""
    sets: dict[str, Any] = {
        name: {group: facts(some) for group, some in what[name].items()}
        for name in ("adds", "removes", "sees", "twice")
        if name in what
    }
    return Operation(worker=worker, began=began, ended=ended, **{**what, **sets})


def write(began: float, ended: float, *some: int, group: Group = A, **what: Any) -> Operation:
    return op(began, ended, adds={group: some}, **what)


def read(began: float, ended: float, *some: int, group: Group = A, **what: Any) -> Operation:
    return op(began, ended, sees={group: some}, **what)


def remove(began: float, ended: float, *some: int, **what: Any) -> Operation:
    return op(began, ended, removes={A: some}, **what)


def bump(began: float, ended: float, found: int | None = None, **what: Any) -> Operation:
    return op(began, ended, increments={"c": found}, **what)


def count(began: float, ended: float, value: int, **what: Any) -> Operation:
    return op(began, ended, counts={"c": value}, **what)


DEFECTS = {
    "stale read": [
        [write(0, 1, 1), read(2, 3)],
        [write(0, 1, 1), write(0, 1, 2), read(2, 3, 2)],
        [write(0, 1, 1), read(2, 3, time=5), remove(4, 5, 1)],
    ],
    "going back": [
        [write(0, 9, 1), read(1, 2, 1), read(3, 4)],  # not acknowledged yet, and seen
        [write(0, 3, 1, outcome="unknown"), read(1, 2, 1), read(4, 5)],
        [write(0, 9, 1), read(1, 5, 1, time=10), read(1, 5, time=11)],  # together, but at different times
        [write(0, 9, 1), read(1, 5, 1, time=10), read(6, 7, as_of=True, time=11)],
        [bump(0, 9), count(1, 2, 1), count(3, 4, 0)],
    ],
    "resurrected write": [
        [write(0, 1, 1), remove(2, 3, 1), read(4, 5, 1)],
        [write(0, 1, 1), remove(2, 9, 1), read(3, 4), read(5, 6, 1)],
        [
            write(0, 1, 1, outcome="unknown"),
            read(2, 3),
            read(4, 5, 1),
        ],  # cut, not there after the crash, and then there
        [write(0, 1, 1), remove(2, 9, 1), *(read(3, 8, *some, time=t) for t, some in ((4, [1]), (5, []), (6, [1])))],
    ],
    "aborted write": [[write(0, 1, 1, outcome="failed"), read(2, 3, 1)]],
    "unwritten": [[read(0, 1, 7)], [read(0, 1, 1), write(2, 3, 1)]],
    "unrepeatable read": [
        [write(0, 9, 1), read(1, 2, 1, time=4), read(3, 5, time=4, as_of=True)],
        [write(0, 9, 1), read(1, 2, time=4), read(3, 5, 1, time=4)],
    ],
    "doubled write": [[write(0, 1, 1), read(2, 3, 1, twice={A: [1]})], [bump(0, 1), count(2, 3, 2)]],
    "torn transaction": [
        [op(0, 9, adds={A: [1], B: [1]}), op(1, 2, sees={A: [1], B: []})],
        [op(0, 9, adds={A: [1, 2]}), read(1, 2, 2)],
        [op(0, 1, adds={A: [1], B: [1]}, outcome="unknown"), op(2, 3, sees={A: [], B: [1]})],
    ],
    "out of order": [
        [write(0, 1, 1), write(2, 3, 2), read(0.5, 4, 2)],
        [write(0, 1, 1), write(2, 9, 1, group=B), op(0.5, 4, sees={A: [], B: [1]})],
    ],
    "forked": [[write(0, 9, 1), write(0, 9, 2), read(1, 8, 1), read(1, 8, 2)]],
    "lost update": [
        [bump(0, 1), bump(2, 3), count(4, 5, 1)],
        [bump(0, 5, 3), bump(1, 6, 3)],
    ],
    "wrong view": [[write(0, 1, 1), read(2, 3, 1, shows={"how many": 2})]],
    "time went back": [[read(0, 1, time=10), read(2, 3, time=9)]],
    "view started over": [[read(0, 1, time=10, through=frozenset({"v"})), op(2, 3, frontiers={"v": 10})]],
}

SOUND = {
    "reads while a write is under way": [write(0, 9, 1), read(1, 8, 1), read(1, 8), read(2, 3)],
    "an unknown write that happened": [write(0, 1, 1, outcome="unknown"), read(2, 3, 1), read(4, 5, 1)],
    "an unknown write that did not": [write(0, 1, 1, outcome="unknown"), read(2, 3), read(4, 5)],
    "a removal under way": [write(0, 1, 1), remove(2, 9, 1), read(3, 8, 1), read(4, 7), read(8.5, 8.6)],
    "a failed write": [write(0, 1, 1, outcome="failed"), read(2, 3)],
    "whole transactions": [op(0, 9, adds={A: [1], B: [1]}), op(1, 2, sees={A: [], B: []}), read(3, 4, 1)],
    "reading the past": [write(0, 1, 1), read(2, 3, 1, time=9), read(4, 5, time=1, as_of=True)],
    "increments": [bump(0, 1, 0), bump(0, 9, 1, outcome="unknown"), bump(2, 3, 1), count(4, 5, 2), count(4, 5, 3)],
    "the same time": [read(0, 1, time=10), read(2, 3, time=10)],
    "a view that goes on": [read(0, 1, time=10, through=frozenset({"v"})), op(2, 3, frontiers={"v": 11})],
    "a view as it should be": [write(0, 1, 1), read(2, 3, 1, shows={"how many": 1})],
}

MEANINGS = {"how many": lambda sees: sees[A].bit_count()}


@pytest.mark.parametrize("kind", DEFECTS)
def test_each_anomaly_is_named(kind: str) -> None:
    for history in DEFECTS[kind]:
        found = check(history, MEANINGS)
        assert kind in {each.kind for each in found}, (history, list(map(str, found)))


@pytest.mark.parametrize("kind", SOUND)
def test_sound_histories_pass(kind: str) -> None:
    assert check(SOUND[kind], MEANINGS) == []


def test_sets_of_facts() -> None:
    assert numbers(facts([3, 0, 70])) == [0, 3, 70]


def serial_history(rng: random.Random) -> list[Operation]:
    """A history that happened in some order: each operation takes effect at a moment between its two."""
    history, there, gone = [], {A: 0, B: 0}, {A: 0, B: 0}
    moment, number = 0.0, 0
    for _ in range(120):
        moment += 1.0
        began, ended = moment - rng.random() * 3, moment + rng.random() * 3
        action = rng.random()
        outcome: Outcome = "unknown" if rng.random() < 0.1 else "ok"
        if action < 0.4:
            happens = outcome == "ok" or rng.random() < 0.5
            some = 1 << number
            number += 1
            groups = [A, B] if rng.random() < 0.5 else [A]
            history.append(
                Operation(worker="w", began=began, ended=ended, outcome=outcome, adds=dict.fromkeys(groups, some))
            )
            for group in groups if happens else ():
                there[group] |= some
        elif action < 0.5 and there[A] & ~there[B]:
            some = 1 << rng.choice(numbers(there[A] & ~there[B]))
            history.append(Operation(worker="w", began=began, ended=ended, removes={A: some}))
            there[A] &= ~some
            gone[A] |= some
        else:
            history.append(Operation(worker="w", began=began, ended=ended, sees=dict(there), time=int(moment)))
    return history


def test_histories_that_happened_pass(rng: random.Random) -> None:
    for _ in range(50):
        found = check(serial_history(rng))
        assert not found, list(map(str, found))[:3]


def test_a_fact_that_a_read_should_have_seen(rng: random.Random) -> None:
    """Whatever acknowledged fact is taken out of the last read of a history is missed."""
    for _ in range(50):
        history = serial_history(rng)
        removed = facts(number for each in history for group in each.removes for number in numbers(each.removes[group]))
        acknowledged = 0
        for each in history:
            acknowledged |= each.adds.get(A, 0) if each.outcome == "ok" else 0
        last = Operation(worker="w", began=1_000, ended=1_001, sees={A: acknowledged & ~removed})
        lost = 1 << rng.choice(numbers(acknowledged & ~removed))
        worse = Operation(worker="w", began=1_000, ended=1_001, sees={A: last.sees[A] & ~lost})
        assert "stale read" in {each.kind for each in check([*history, worse])}
