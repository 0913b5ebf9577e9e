"""Streams that are complete and cannot be: negative and overflowing multiplicities, and contradictions, at random.

Whoever reads such a stream says the same: the iterator into a shard, Spark into a shard, and `verify`. Nothing that is
contradictory is called sound, and nothing of it becomes visible.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everview.cdc import least_times
from everview.cdc.codec.contract import SUFFIXES, codec_for
from everview.cdc.contract import NEGATIVE, OVERFLOW, UNJUDGED, Frontier, Message, Progress, Updates
from everview.cdc.errors import ImpossibleMultiplicity
from everview.cdc.files import Folder, FolderInlet
from everview.cdc.inspect import Stats, Stream, examine
from everview.cdc.mangle import mangle
from everview.cdc.multiplicity import offences_among
from everview.cdc.reader import Reader
from everview.cdc.schema import StreamSchema
from everview.cdc.source import Source, SourceStatus
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from tests.cdc.histories import before, universe
from tests.cdc.shards import COLUMNS, contents
from tests.cdc.writing import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = StreamSchema(COLUMNS)
PLANE = StreamSchema(COLUMNS, (0, 0))
HUGE = 2**62
ROWS = [(1, "a"), (2, None), (None, "b"), (None, None)]


def write(folder: Path, name: str, *messages: Message[Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(codec_for(Path(name).suffix, SCHEMA).encode_file(messages))


def progress(lower: int, upper: int, **counts: int) -> Progress:
    return Progress(Antichain(lower), Antichain(upper), tuple((int(t[1:]), n) for t, n in counts.items()))


def read(
    environment: Environment, folder: Path, name: str = "in", session: SparkSession | None = None, at: int | None = None
) -> tuple[Source, SourceStatus]:
    inlet = FolderInlet(Folder(str(folder), read_only=True), SCHEMA)
    source, _ = Source.create(environment, name, name, inlet, SCHEMA, session=session, bulk_bytes=1, at=at or 0)
    while source.poll(at):
        at = None if at is None else at + 1
    return source, source.status


def verify(folder: Path) -> Stats:
    return examine(Stream(str(folder)), thoroughly=True)


@pytest.fixture
def environment(tmp_path: Path) -> Any:
    with Environment.open(tmp_path / "environment", background=False) as opened:
        yield opened


def test_a_row_that_is_taken_away_and_was_never_there(environment: Environment, tmp_path: Path) -> None:
    folder = tmp_path / "stream"
    write(folder, "1.jsonl", Updates([(ROWS[0], 1, 1), (ROWS[1], 2, -1)]), progress(0, 9, t1=1, t2=1))
    source, found = read(environment, folder)
    (stall,) = found.stalls
    assert (stall.time, stall.reason, stall.curable) == (2, NEGATIVE, False)
    assert "(2, None) would occur -1 times" in stall.detail
    assert found.frontier == Antichain(2) and contents(environment, "in", 1) == {ROWS[0]: 1}
    stats = verify(folder)
    assert not stats.sound and stats.frontier == Antichain(2)
    assert [(each.time, each.reason) for each in stats.stalls] == [(2, NEGATIVE)]
    # A repair is noticed without a restart, and what waited behind it is there.
    write(folder, "1.jsonl", Updates([(ROWS[0], 1, 1), (ROWS[0], 2, -1)]), progress(0, 9, t1=1, t2=1))
    while source.poll():
        pass
    assert (source.status.stalls, source.status.frontier) == ((), Antichain(9))
    assert contents(environment, "in", 8) == {} and verify(folder).sound


def test_what_was_read_before_a_restart_counts(environment: Environment, tmp_path: Path) -> None:
    folder = tmp_path / "stream"
    write(folder, "1.jsonl", Updates([(ROWS[0], 1, 2)]), progress(0, 5, t1=1))
    read(environment, folder)
    write(folder, "2.jsonl", Updates([(ROWS[0], 6, -2)]), progress(5, 7, t6=1))
    source = Source(environment, "in", FolderInlet(Folder(str(folder)), SCHEMA), SCHEMA)
    while source.poll():
        pass
    assert source.status.frontier == Antichain(7) and not source.status.stalls
    write(folder, "3.jsonl", Updates([(ROWS[0], 8, -1)]), progress(7, 9, t8=1))
    while source.poll():
        pass
    assert source.status.frontier == Antichain(8) and source.status.stalls[0].reason == NEGATIVE


def test_a_multiplicity_that_does_not_fit(environment: Environment, tmp_path: Path) -> None:
    folder = tmp_path / "stream"
    write(folder, "1.jsonl", Updates([(ROWS[0], 1, HUGE)]), progress(0, 2, t1=1))
    source, found = read(environment, folder)
    assert found.frontier == Antichain(2) and not found.stalls
    write(folder, "2.jsonl", Updates([(ROWS[0], 3, HUGE)]), progress(2, 9, t3=1))
    while source.poll():
        pass
    (stall,) = source.status.stalls
    assert (stall.time, stall.reason, source.status.frontier) == (3, OVERFLOW, Antichain(3))
    stats = verify(folder)
    assert not stats.sound and [(each.time, each.reason) for each in stats.stalls] == [(3, OVERFLOW)]


def test_a_held_time_is_a_typed_contradiction() -> None:
    reader: Reader[Any] = Reader()
    reader.hold(3, NEGATIVE, "row 'a' would occur -1 times")
    closed = reader.push(progress(0, 9))
    assert closed is not None and closed.frontier == Antichain(3)
    error = reader.contradiction()
    assert isinstance(error, ImpossibleMultiplicity) and error.time == 3


def test_partially_ordered_times_are_judged_where_they_meet() -> None:
    """Two removals at times of which neither is before the other are too many where both have happened."""
    updates = [("a", (0, 0), 1), ("a", (0, 1), -1), ("a", (1, 0), -1)]
    assert [each.time for each in offences_among(updates, Antichain((2, 2)))] == [(1, 1)]
    assert offences_among(updates, Antichain((1, 1))) == [], "there, more may still come"


def test_partially_ordered_times_overflow_where_they_meet() -> None:
    updates = [("a", (0, 0), HUGE // 2), ("b", (1, 0), HUGE), ("c", (0, 1), HUGE)]
    (found,) = offences_among(updates, Antichain())
    assert (found.time, found.reason) == ((1, 1), OVERFLOW) and "would have come" in found.detail
    assert offences_among(updates, Antichain((1, 1))) == []
    gone = [("a", (0, 0), 4 * HUGE), ("a", (1, 0), -HUGE), ("a", (0, 1), -HUGE)]
    assert [(each.time, each.reason) for each in offences_among(gone, Antichain())] == [((0, 0), OVERFLOW)]
    both = [("a", (1, 0), -1), ("b", (0, 1), 2 * HUGE)]
    assert [(each.time, each.reason) for each in offences_among(both, Antichain())] == [
        ((0, 1), OVERFLOW),
        ((1, 0), NEGATIVE),
    ]


def test_a_row_at_many_incomparable_times() -> None:
    """Every pair of times meets somewhere, and the one wrong sum is where the last two do."""
    size = 400
    updates = [("a", (number, size - number), 1) for number in range(size)]
    updates += [("a", (size, size - 1), -size - 1)]  # by then, all but the first of those before are there
    (found,) = offences_among(updates, Antichain())
    assert (found.time, found.reason, found.detail) == ((size, size - 1), NEGATIVE, "row 'a' would occur -2 times")
    assert offences_among([*updates, ("a", (0, 0), 2)], Antichain()) == []


@pytest.mark.parametrize(("limit", "value"), [("SUMS_MAX", 10), ("ADDITIONS_MAX", 1000)])
def test_what_is_too_much_to_judge_is_never_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    updates = [((1, "a"), (number, 50 - number), 1 if number else -1) for number in range(50)]
    writer: Writer[Any] = Writer(Antichain((0, 0)))
    writer.push(updates)
    write_plane(tmp_path / "stream", ".jsonl", writer.advance(Antichain()))
    assert [(each.time, each.reason) for each in verify(tmp_path / "stream").stalls] == [((0, 50), NEGATIVE)]
    monkeypatch.setattr(least_times, limit, value)
    stats = verify(tmp_path / "stream")
    assert not stats.sound and {each.reason for each in stats.stalls} == {UNJUDGED}
    assert stats.frontier == Antichain(*(time for _, time, _ in updates)), "nothing of the row is called closed"


def write_plane(folder: Path, suffix: str, messages: list[Message[Any]]) -> None:
    folder.mkdir()
    (folder / f"1{suffix}").write_bytes(codec_for(suffix, PLANE).encode_file(messages))


def judged_in_the_plane(updates: dict[tuple[Any, Any], int], frontier: Antichain[Any]) -> set[tuple[Any, str]]:
    """A second opinion: the least closed times with a wrong sum, from sums at each of all times."""
    wrong: dict[Any, str] = {}
    for time in universe((0, 0)):
        if frontier.less_equal(time):
            continue
        here = {key: diff for key, diff in updates.items() if before(key[1], time)}
        come, gone = (sum(max(sign * diff, 0) for diff in here.values()) for sign in (1, -1))
        if max(come, gone) >= 2**63 - 1:
            wrong[time] = OVERFLOW
        if any(sum(diff for (row, _), diff in here.items() if row == each) < 0 for each, _ in here):
            wrong[time] = NEGATIVE
    least = [time for time in wrong if not any(other != time and before(other, time) for other in wrong)]
    return {(time, wrong[time]) for time in least}


def test_random_streams_of_partially_ordered_times(tmp_path: Path, rng: random.Random, long_forms: bool) -> None:
    kinds: Counter[str] = Counter()
    times = universe((0, 0))
    for number in range(2000 if long_forms else 150):
        updates: dict[tuple[Any, Any], int] = {(row, (0, 0)): rng.randrange(1, 4) for row in ROWS}
        for _ in range(rng.randrange(12)):
            least = 1 if rng.random() < 0.5 else -3
            updates[rng.choice(ROWS), rng.choice(times)] = rng.choice([d for d in (-3, -2, -1, 1, 2) if d >= least])
        for _ in range(rng.choice((0, 0, 0, 3))):
            updates[rng.choice(ROWS), rng.choice(times)] = HUGE - rng.randrange(2)
        ends: tuple[Frontier, ...] = (Antichain(), Antichain((3, 3)), Antichain((2, 0), (0, 3)))
        end = rng.choice(ends)
        said = {key: diff for key, diff in updates.items() if not end.less_equal(key[1])}
        writer: Writer[Any] = Writer(Antichain((0, 0)))
        writer.push([(row, time, diff) for (row, time), diff in said.items()])
        folder = tmp_path / f"stream{number}"
        write_plane(folder, rng.choice((".jsonl", ".avro")), mangle(writer.advance(end), rng))
        stats, wanted = verify(folder), judged_in_the_plane(said, end)
        assert {(each.time, each.reason) for each in stats.stalls} == wanted
        assert stats.sound == (not wanted)
        assert stats.frontier == Antichain(*end, *(time for time, _ in wanted))
        kinds.update({reason for _, reason in wanted} or {"sound"})
    assert min(kinds[each] for each in ("sound", NEGATIVE, OVERFLOW)) > 10


def random_messages(rng: random.Random) -> list[Message[Any]]:
    """A stream of a few rows: mostly sound, with an occasional flaw of every kind."""
    counts: Counter[Any] = Counter()
    updates: dict[tuple[Any, int], int] = {}
    for time in range(12):
        for row in rng.sample(ROWS, rng.randrange(3)):
            least = 0 if rng.random() < 0.97 else -3
            diff = rng.choice([d for d in (-3, -2, -1, 1, 2, HUGE) if d == HUGE or counts[row] + d >= least])
            if diff == HUGE and rng.random() < 0.9:
                diff = 1
            updates[row, time] = diff
            counts[row] += diff
    cuts = sorted({0, 12, *(rng.randrange(12) for _ in range(3))})
    statements: list[Message[Any]] = []
    for lower, upper in itertools.pairwise(cuts):
        stated = Counter(time for _, time in updates if lower <= time < upper)
        if stated and rng.random() < 0.03:
            stated[rng.choice(list(stated))] += rng.choice((-1, 1))
        statements.append(Progress(Antichain(lower), Antichain(upper), tuple((t, n) for t, n in stated.items() if n)))
    said = [(row, time, diff) for (row, time), diff in updates.items()]
    if said and rng.random() < 0.05:
        row, time, diff = rng.choice(said)
        said.append((row, time, diff + 1 or 1))
    if said and rng.random() < 0.05:
        said.remove(rng.choice(said))
    messages = [*(Updates([each]) for each in said), *statements]
    messages += rng.choices(messages, k=rng.randrange(4))
    rng.shuffle(messages)
    return messages


def judged(messages: list[Message[Any]]) -> bool:
    """A second opinion, from all of the messages: whether they are true of some collection, and complete."""
    updates: dict[tuple[Any, Any], set[int]] = {}
    counts: dict[int, set[int]] = {}
    for message in messages:
        if isinstance(message, Updates):
            for row, time, diff in message.updates:
                updates.setdefault((row, time), set()).add(diff)
        else:
            stated = dict(message.counts)
            lower, upper = message.lower.only, message.upper.only
            assert isinstance(lower, int) and isinstance(upper, int)
            for at in range(lower, upper):
                counts.setdefault(at, set()).add(stated.get(at, 0))
    if any(len(diffs) > 1 for diffs in updates.values()) or any(len(each) > 1 for each in counts.values()):
        return False
    arrived = Counter(time for _, time in updates)
    if any(counts.get(time, {0}) != {arrived[time]} for time in range(12)):
        return False
    totals: Counter[Any] = Counter()
    for (row, _), (diff,) in sorted(updates.items(), key=lambda each: each[0][1]):
        totals[row] += diff
        if totals[row] < 0:
            return False
    come = sum(diff for (diff,) in updates.values() if diff > 0)
    gone = sum(-diff for (diff,) in updates.values() if diff < 0)
    return max(come, gone) < 2**63 - 1


def outcome(found: SourceStatus | Stats) -> tuple[Any, set[tuple[Any, str]]]:
    return found.frontier, {(stall.time, stall.reason) for stall in found.stalls}


def test_random_streams_are_judged_alike(
    environment: Environment, tmp_path: Path, rng: random.Random, long_forms: bool
) -> None:
    kinds: Counter[bool] = Counter()
    for number in range(1000 if long_forms else 120):
        messages, folder = random_messages(rng), tmp_path / f"stream{number}"
        at = rng.randrange(len(messages) + 1)
        write(folder, f"1{rng.choice(SUFFIXES)}", *messages[:at])
        write(folder, f"2{rng.choice(SUFFIXES)}", *messages[at:])
        stats = verify(folder)
        assert stats.sound == judged(messages)
        kinds[stats.sound] += 1
        _, found = read(environment, folder, f"in{number}")
        assert outcome(found) == outcome(stats)
        if found.frontier != Antichain(0):
            rows = contents(environment, f"in{number}", found.frontier.only - 1)  # type: ignore[operator]
            assert all(count > 0 for count in rows.values())
    assert min(kinds[True], kinds[False]) > 10


@pytest.mark.spark
@pytest.mark.timeout(300)  # Spark shares the machine
def test_spark_judges_alike(
    environment: Environment, tmp_path: Path, rng: random.Random, spark: SparkSession, long_forms: bool
) -> None:
    for number in range(100 if long_forms else 8):
        messages = random_messages(rng)
        while judged(messages) and (not long_forms or number % 5):  # in the long form, some that are sound
            messages = random_messages(rng)
        folder = tmp_path / f"stream{number}"
        at = rng.randrange(len(messages) + 1) if number % 2 else 0
        write(folder, f"1{rng.choice(SUFFIXES)}", *messages[at:])
        if at:
            write(folder, f"2{rng.choice(SUFFIXES)}", *messages[:at])
        _, found = read(environment, folder, f"in{number}", session=spark)
        _, other = read(environment, folder, f"other{number}")
        assert outcome(found) == outcome(other) == outcome(verify(folder))
        if found.frontier != Antichain(0):
            last = found.frontier.only - 1  # type: ignore[operator]
            assert contents(environment, f"in{number}", last) == contents(environment, f"other{number}", last)
