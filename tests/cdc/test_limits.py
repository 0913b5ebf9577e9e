"""Limits, refusals and errors: what a reader or writer will not hold, take or let pass unnoticed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from everview.cdc import tracker
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import (
    ConflictingCounts,
    ConflictingDiffs,
    InvalidStatement,
    InvalidUse,
    SurplusUpdates,
    TooMuchOpen,
)
from everview.cdc.reader import Reader
from everview.cdc.sink import STATEMENT_COUNTS, statements
from everview.cdc.times import Line, Product, from_wire, to_wire
from everview.timely.antichain import Antichain
from tests.cdc.writing import Writer

A, B = "a", "b"


def until(upper: int, *counts: tuple[int, int], lower: int = 0) -> Progress:
    return Progress(Antichain(lower), Antichain(upper), counts)


def test_contradictions_are_raised_where_they_are_met() -> None:
    cases: list[tuple[list[Message[Any]], type[Exception], str]] = [
        ([Updates([(A, 1, 1)]), Updates([(A, 1, 2)])], ConflictingDiffs, "data 'a' have diffs 1, 2"),
        ([until(5, (1, 1)), until(5, (1, 2))], ConflictingCounts, "one says 1, another 2"),
        ([Updates([(A, 1, 1), (B, 1, 1)]), until(5, (1, 1))], SurplusUpdates, "2 have arrived and 1 are stated"),
    ]
    for messages, kind, detail in cases:
        reader: Reader[Any] = Reader()
        with pytest.raises(kind, match=detail) as raised:
            list(reader.read(messages))
        assert getattr(raised.value, "time") == 1  # noqa: B009 - it is on all three kinds
        assert reader.frontier.less_equal(1), "the time stays open"
        assert Reader.restore(reader.checkpoint()).contradiction() is not None, "and a restart does not help"


def test_a_reader_holds_so_many_updates_and_no_more() -> None:
    reader: Reader[Any] = Reader(open_updates_max=10)
    with pytest.raises(TooMuchOpen, match=r"no progress statement reaches beyond \{0\}"):
        for number in range(20):
            reader.push(Updates([(number, 5, 1)]))
    for number in range(20):
        reader = Reader(open_updates_max=10)
        reader.push(Updates([(number, number, 1)]))
        reader.push(until(number + 1, (number, 1)))
        assert reader.open_updates == 0, "what closes is not held"


def test_a_reader_holds_so_many_statements_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "STATEMENTS_MAX", 10)
    reader: Reader[Any] = Reader()
    for _ in range(20):
        reader.push(until(9, lower=5))
    assert reader.tracker.statements_waiting == 1, "the same statement waits once"
    with pytest.raises(TooMuchOpen, match="nothing is said"):
        for lower in range(5, 50):
            reader.push(until(lower + 1, lower=lower))


@pytest.mark.parametrize(
    "message",
    [
        Updates([(A, 1, 0)]),
        Updates([(A, (1, 2), 1)]),
        until(5, (5, 1)),
        until(9, (1, 1), lower=5),
        until(5, (1, 1), (1, 1)),
        until(5, (1, -1)),
        Progress(Antichain((0, 0)), Antichain(), ()),
    ],
)
def test_messages_that_no_history_makes_true(message: Message[Any]) -> None:
    with pytest.raises(InvalidStatement):
        Reader().push(message)


def test_state_is_bounded_by_what_is_open() -> None:
    reader: Reader[int] = Reader()
    for time in range(10_000):
        reader.push(Updates([(n, time, 1) for n in range(5)] * 2))
        reader.push(until(time + 1, (time, 5), lower=time))
        assert (reader.open_updates, reader.tracker.open_times, reader.tracker.statements_waiting) == (0, 0, 0)
    assert len(reader.checkpoint().messages) == 0


def test_many_open_times_close_in_any_order() -> None:
    times = 20_000
    reader: Reader[int] = Reader()
    out = []
    messages: list[Message[int]] = [until(t + 1, (t, 1), lower=t) for t in reversed(range(times))]
    messages += [Updates([(0, time, 1)]) for time in reversed(range(times))]
    for message in messages:
        closed = reader.push(message)
        out += closed.updates if closed else []
    assert [time for _, time, _ in out] == list(range(times))


def test_a_writer_states_only_what_is_final() -> None:
    writer: Writer[str] = Writer(message_updates=2)
    writer.push([(A, 1, 1), (B, 1, 1), (A, 3, 1), (A, 1, 1), (B, 1, -1)])
    assert writer.advance(Antichain(2)) == [Updates([(A, 1, 2)]), until(2, (1, 1))]
    assert writer.advance(Antichain(2)) == []
    assert writer.open_updates == 1
    with pytest.raises(InvalidUse, match="too late"):
        writer.push([(A, 1, 1)])
    with pytest.raises(InvalidUse, match="go back"):
        writer.advance(Antichain(1))
    assert writer.advance(Antichain()) == [Updates([(A, 3, 1)]), Progress(Antichain(2), Antichain(), ((3, 1),))]


def test_a_writer_holds_so_many_updates_and_no_more() -> None:
    writer: Writer[int] = Writer(open_updates_max=3)
    with pytest.raises(TooMuchOpen):
        writer.push([(n, 1, 1) for n in range(9)])


def test_long_progress_is_cut_into_statements_that_meet() -> None:
    counts = [(time, 1) for time in range(0, STATEMENT_COUNTS * 5, 2)]
    cut = statements(Antichain(0), Antichain(), counts)
    assert len(cut) == 3 and all(len(each.counts) <= STATEMENT_COUNTS for each in cut)
    assert all(a.upper == b.lower for a, b in pairwise(cut))
    reader: Reader[int] = Reader()
    messages: list[Message[int]] = [*cut, Updates([(0, time, 1) for time, _ in counts])]
    for message in messages:
        reader.push(message)
    assert reader.frontier == Antichain()


def test_sets_of_times() -> None:
    cases: list[tuple[Any, Callable[[int], Any]]] = [(Line(), lambda n: n), (Product(), lambda n: (n, 0))]
    for times, make in cases:
        for number in (3, 1, 2, 3, 9):
            times.add(make(number))
        assert list(times.minimal()) == [make(1)]
        assert sorted(times.inside(Antichain(make(2)), Antichain(make(9)))) == [make(2), make(3)]
        times.discard(make(1))
        times.discard(make(7))
        assert list(times.minimal()) == [make(2)]
        assert times.take_before(Antichain(make(3))) == [make(2)]
        assert times.take_before(Antichain()) == [make(3), make(9)] and len(times) == 0


@pytest.mark.parametrize(("value", "shape"), [(-1, 0), (True, 0), ("1", 0), ([1], 0), ([1], (0, 0)), ([1, -1], (0, 0))])
def test_what_is_no_time(value: Any, shape: Any) -> None:
    with pytest.raises(ValueError, match="not a time"):
        from_wire(value, shape)
    assert from_wire(to_wire((1, (2, 3))), (0, (0, 0))) == (1, (2, 3))
