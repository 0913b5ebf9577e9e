"""Random histories, mangled at random, through codecs, at any parallelism, with restarts: what is covered comes out.

A deliberately broken reader of each kind that has been seen in the wild must be caught by the same test.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from everview.cdc.codec.avro import AvroCodec
from everview.cdc.codec.contract import Codec
from everview.cdc.codec.json import JsonCodec
from everview.cdc.contract import Message, Progress, ReaderCheckpoint, Updates
from everview.cdc.errors import ConflictingDiffs
from everview.cdc.mangle import mangle
from everview.cdc.reader import Reader
from everview.cdc.schema import StreamSchema
from everview.cdc.tracker import Tracker
from everview.timely.antichain import Antichain
from tests.cdc.histories import History, Model, closed_by, in_order, random_history

CASES_SHORT, CASES_LONG = 300, 10_000
DATA = [(n, text) for n in (1, 2, None) for text in ("a", "b", None)]
COLUMNS = pa.schema([("n", pa.int64()), ("text", pa.string())])


def through(codec: Codec, messages: list[Message[Any]]) -> list[Message[Any]]:
    """The messages, written to a file and read back."""
    items = codec.decode_file(pa.BufferReader(codec.encode_file(messages)), "a file")
    result = list(items)
    assert all(not hasattr(item, "raw") for item in result)
    return result  # type: ignore[return-value]


def one_case(rng: random.Random, make: Callable[..., Reader[Any]] = Reader) -> None:
    """Write, mangle, read with restarts, and compare with the history and with the model."""
    history = random_history(rng, DATA)
    messages = mangle(history.messages, rng, complete=rng.random() < 0.7)
    codec = rng.choice((JsonCodec, AvroCodec))(StreamSchema(COLUMNS, history.shape))
    messages = through(codec, messages)
    reader = make(history.start, parallelism=rng.randint(1, 8))
    out = []
    for message in messages:
        closed = reader.push(message)
        if closed is not None:
            out += closed.updates
        if rng.random() < 0.1:
            reader = restarted(reader, codec, rng)
    check(history, messages, out, reader)


def restarted(reader: Reader[Any], codec: Codec, rng: random.Random) -> Reader[Any]:
    """The reader, written down and read back, at another parallelism."""
    saved = reader.checkpoint()
    messages = tuple(through(codec, list(saved.messages)))
    restored = type(reader).restore(ReaderCheckpoint(saved.frontier, messages), parallelism=rng.randint(1, 8))
    assert restored.frontier == reader.frontier and restored.covered == reader.covered
    assert (restored.open_updates, restored.tracker.open_times) == (reader.open_updates, reader.tracker.open_times)
    return restored


def check(history: History, messages: list[Message[Any]], out: list[Any], reader: Reader[Any]) -> None:
    model = Model(history.shape, messages)
    closed = model.closed()
    assert closed_by(reader.frontier, history.shape) == closed, "the frontier is what the messages cover"
    assert len(out) == len(set(out)), "no update comes twice"
    assert set(out) == {u for u in history.updates if u[1] in closed}, "what comes out is the history"
    assert in_order(out), "time never goes back"
    heard = {(row, time) for m in messages if isinstance(m, Updates) for row, time, _ in m.updates}
    assert reader.open_updates == len({key for key in heard if key[1] not in closed}), "only what is open is kept"
    assert reader.contradiction() is None


@pytest.mark.timeout(1800)
def test_whatever_happens_in_between_the_history_comes_out(rng: random.Random, long_forms: bool) -> None:
    for number in range(CASES_LONG if long_forms else CASES_SHORT):
        seed = f"{rng.random()}"
        try:
            one_case(random.Random(seed))
        except AssertionError as error:
            raise AssertionError(f"case {number}, random.Random({seed!r})") from error


class KeyedOnTriples(Reader[Any]):
    """Deduplicates on data, time and diff by wrapping the diff into the data."""

    def _stash(self, stash: Any, time: Any, updates: Any) -> None:
        super()._stash(stash, time, [((data, diff), at, diff) for data, at, diff in updates])

    def _report(self, times: Any) -> Any:
        closed = super()._report(times)
        closed.updates[:] = [(data[0], time, diff) for data, time, diff in closed.updates]
        return closed


class CountsTwiceInABatch(Reader[Any]):
    """Holds a batch against what was there before it, so a duplicate inside the batch counts twice."""

    def _stash(self, stash: Any, time: Any, updates: Any) -> None:
        fresh = [update for update in updates if update[0] not in stash]
        super()._stash(stash, time, updates)
        surplus = len(fresh) - len({update[0] for update in fresh})
        if surplus:
            self.tracker.arrive(time, surplus)


class ForgetsLate(Reader[Any]):
    """Takes updates at closed times for new ones."""

    def _report(self, times: Any) -> Any:
        closed = super()._report(times)
        self.tracker.is_open = lambda time: True  # type: ignore[method-assign]
        return closed


class IgnoresGaps(Reader[Any]):
    """Applies progress statements as they come."""

    def __init__(self, start: Any, **options: Any) -> None:
        super().__init__(start, **options)

        class Hasty(Tracker):
            def hear(self, progress: Any) -> None:
                self._apply(progress)

        self.tracker = Hasty(start)


class ForgetsInCheckpoints(Reader[Any]):
    """Leaves the last message out of a checkpoint."""

    def checkpoint(self) -> Any:
        saved = super().checkpoint()
        return ReaderCheckpoint(saved.frontier, saved.messages[:-1])


@pytest.mark.parametrize("broken", [CountsTwiceInABatch, ForgetsLate, IgnoresGaps, ForgetsInCheckpoints])
def test_a_broken_reader_is_caught(broken: type[Reader[Any]], rng: random.Random) -> None:
    caught = 0
    for _ in range(CASES_SHORT):
        try:
            one_case(random.Random(f"{rng.random()}"), broken)
        except Exception:
            caught += 1
    assert caught > 3, f"{broken.__doc__} passed"


def test_deduplicating_on_triples_is_caught_by_the_scenario_of_conflicting_diffs() -> None:
    messages: list[Message[Any]] = [Updates([(1, 0, 1)]), Updates([(1, 0, 2)]), until_one()]
    honest, broken = Reader[Any](), KeyedOnTriples()
    for message in messages:
        honest.push(message)
        broken.push(message)
    assert isinstance(honest.contradiction(), ConflictingDiffs)
    assert not isinstance(broken.contradiction(), ConflictingDiffs)


def until_one() -> Progress:
    return Progress(Antichain(0), Antichain(1), ((0, 2),))
