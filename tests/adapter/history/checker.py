"""Is a history strictly serializable? Says which operation contradicts that, and how.

Facts are unique, are added by one transaction and removed by at most one later. For such histories it is enough to
look at sets. In the order in which things really happened: a read sees what was acknowledged or seen before it began,
and nothing that was gone by then, failed or had not begun. Within a read: transactions are whole, and whoever sees one
sees those that had ended before it began. Among reads: of any two one has seen all that the other has. And by the times
that the system gives: contents at a time are the same for everyone, and follow one another as the times do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.adapter.history.model import Anomaly, Facts, Group, Operation, numbers

Meaning = Callable[[Mapping[Group, Facts]], Hashable]
BEGINS, ENDS = 1, 0  # what ends at the moment at which another begins, ended before


def check(history: Sequence[Operation], meanings: Mapping[str, Meaning] | None = None) -> list[Anomaly]:
    """All anomalies of a history; `meanings` say what follows from the facts that a read has seen."""
    concerned: dict[Group, list[Operation]] = defaultdict(list)
    for each in history:
        for group in {*each.adds, *each.removes, *each.sees}:
            concerned[group].append(each)
    removable = _removable(history)
    return [
        *(anomaly for group, some in concerned.items() for anomaly in _in_real_time(some, group)),
        *(anomaly for group, some in concerned.items() for anomaly in _by_time(some, group, removable[group])),
        *_doubled(history),
        *_torn(history, removable),
        *_out_of_order(history, concerned, removable),
        *_forked(history, removable),
        *_counters(history),
        *_shown(history, meanings or {}),
        *_times(history),
        *_frontiers(history),
    ]


def _events(history: Iterable[Operation]) -> list[tuple[int, Operation]]:
    """Beginnings and ends in the order in which they happened."""
    found = [event for each in history for event in ((each.began, BEGINS, each), (each.ended, ENDS, each))]
    return [(what, each) for _, what, each in sorted(found, key=lambda event: event[:2])]


def _removable(history: Iterable[Operation]) -> dict[Group, Facts]:
    """The facts that someone tried to remove; of those, absence says little."""
    found: dict[Group, Facts] = defaultdict(int)
    for each in history:
        for group, some in each.removes.items():
            found[group] |= some
    return found


@dataclass
class _Known:
    """What is certain about a group at some moment."""

    begun: Facts = 0  # may be there
    acknowledged: Facts = 0
    seen: Facts = 0  # by a read that has ended
    removing: Facts = 0  # may be gone
    removed: Facts = 0
    gone: Facts = 0  # not seen by a read that has ended, though it was there before, or never comes
    settled: Facts = 0  # of transactions that were cut: there from now on, or never


def _in_real_time(concerned: Sequence[Operation], group: Group) -> Iterator[Anomaly]:
    """What each read has to see, and cannot see, by what had happened before it began."""
    failed = 0
    for each in concerned:
        failed |= each.adds.get(group, 0) if each.outcome == "failed" else 0
    now = _Known()
    at_beginning: dict[int, _Known] = {}
    for what, each in _events(concerned):
        added, gone = each.adds.get(group, 0), each.removes.get(group, 0)
        if what == BEGINS:
            now.begun |= added
            now.removing |= gone if each.outcome != "failed" else 0
            at_beginning[id(each)] = _Known(**vars(now))
            continue
        before = at_beginning.pop(id(each))
        if each.reads and group in each.sees:
            yield from _read_in_real_time(each, group, before, now, failed)
            there = each.sees[group]
            now.seen |= there
            now.gone |= (before.acknowledged | before.seen | before.settled) & ~there
        if each.outcome == "ok":
            now.acknowledged |= added
            now.removed |= gone
        elif each.outcome == "unknown":
            now.settled |= added


def _read_in_real_time(each: Operation, group: Group, before: _Known, now: _Known, failed: Facts) -> Iterator[Anomaly]:
    there = each.sees[group]
    stale = before.acknowledged & ~there & ~now.removing
    back = before.seen & ~there & ~now.removing & ~stale
    resurrected = there & (before.removed | before.gone)
    cases = (
        ("stale read", stale, "acknowledged before the read began, and not seen"),
        ("going back", back, "seen by a read that had ended before, and not seen any more"),
        ("resurrected write", resurrected, "gone before the read began, and seen again"),
        ("aborted write", there & failed, "failed, and seen"),
        ("unwritten", there & ~now.begun, "seen before anyone wrote it"),
    )
    for kind, some, text in cases:
        if some:
            yield Anomaly(kind, f"{_shown_facts(group, some)}: {text}", each)


def _by_time(history: Iterable[Operation], group: Group, removable: Facts) -> Iterator[Anomaly]:
    """Contents as a function of the system's times, whoever asks and whenever."""
    timed = [each for each in history if each.outcome == "ok" and each.time is not None and group in each.sees]
    timed.sort(key=lambda each: each.time or 0)
    ever = gone = 0
    last: Operation | None = None
    for each in timed:
        there = each.sees[group]
        if last is not None and last.time == each.time:
            if last.sees[group] != there:
                some = _shown_facts(group, last.sees[group] ^ there)
                yield Anomaly("unrepeatable read", f"{some}: seen by one of two reads at the same time", each)
            continue
        lost, again = ever & ~there & ~removable, there & gone
        if lost:
            yield Anomaly("going back", f"{_shown_facts(group, lost)}: seen at an earlier time only", each)
        if again:
            yield Anomaly("resurrected write", f"{_shown_facts(group, again)}: gone at an earlier time", each)
        gone |= ever & ~there
        ever |= there
        last = each


def _doubled(history: Iterable[Operation]) -> Iterator[Anomaly]:
    for each in history:
        for group, some in each.twice.items():
            if some:
                yield Anomaly("doubled write", f"{_shown_facts(group, some)}: there more than once", each)


def _torn(history: Sequence[Operation], removable: Mapping[Group, Facts]) -> Iterator[Anomaly]:
    """Transactions of which a read has seen a part only."""
    by_group: dict[Group, list[Operation]] = defaultdict(list)
    for each in history:
        if sum(some.bit_count() for some in each.adds.values()) > 1:
            for group in each.adds:
                by_group[group].append(each)
    for read in history:
        if read.outcome != "ok":
            continue
        for writer in {id(each): each for group in read.sees for each in by_group[group]}.values():
            common = read.sees.keys() & writer.adds.keys()
            parts = [(group, writer.adds[group] & ~removable[group]) for group in common]
            missing = [(group, some & ~read.sees[group]) for group, some in parts]
            if any(some for _, some in missing) and any(some & read.sees[group] for group, some in parts):
                text = ", ".join(_shown_facts(group, some) for group, some in missing if some)
                yield Anomaly("torn transaction", f"{text}: not seen, though the rest of its transaction is", read)


class _Order:
    """The facts of a group by when their transactions ended, and by when they began."""

    def __init__(self, history: Iterable[Operation], group: Group, removable: Facts) -> None:
        writers = [each for each in history if each.adds.get(group, 0) & ~removable]
        acknowledged = sorted((each for each in writers if each.outcome == "ok"), key=lambda each: each.ended)
        self._ends = [each.ended for each in acknowledged]
        self._ended = _unions(each.adds[group] & ~removable for each in acknowledged)
        begun = sorted(writers, key=lambda each: -each.began)
        self._begins = [each.began for each in begun]
        self._begun = _unions(each.adds[group] for each in begun)

    def first_missing(self, there: Facts) -> float:
        """When the first transaction ended that is not seen."""
        index = bisect_left(self._ended, True, key=lambda some: bool(some & ~there))
        return self._ends[index] if index < len(self._ends) else float("inf")

    def last_seen(self, there: Facts) -> float:
        """When the last transaction began that is seen."""
        index = bisect_left(self._begun, True, key=lambda some: bool(some & there))
        return self._begins[index] if index < len(self._begins) else float("-inf")


def _unions(some: Iterable[Facts]) -> list[Facts]:
    """Of the first, of the first two, and so on."""
    found, union = [], 0
    for each in some:
        union |= each
        found.append(union)
    return found


def _out_of_order(
    history: Sequence[Operation], concerned: Mapping[Group, Sequence[Operation]], removable: Mapping[Group, Facts]
) -> Iterator[Anomaly]:
    """Reads that see a transaction and not one that had ended before that one began."""
    orders = {group: _Order(some, group, removable[group]) for group, some in concerned.items()}
    for each in history:
        if each.outcome == "ok" and each.sees:
            missing = min(orders[group].first_missing(there) for group, there in each.sees.items())
            seen = max(orders[group].last_seen(there) for group, there in each.sees.items())
            if missing < seen:
                text = f"sees what began at {seen:.4f} and not what had ended at {missing:.4f}"
                yield Anomaly("out of order", text, each)


def _forked(history: Iterable[Operation], removable: Mapping[Group, Facts]) -> Iterator[Anomaly]:
    """Reads of the same groups, each of which has seen what the other has not."""
    alike: dict[frozenset[Group], list[Operation]] = defaultdict(list)
    for each in history:
        if each.outcome == "ok" and each.sees:
            alike[frozenset(each.sees)].append(each)
    for groups, reads in alike.items():
        reads.sort(key=lambda each: sum((each.sees[group] & ~removable[group]).bit_count() for group in groups))
        for less, more in pairwise(reads):
            for group in sorted(groups):
                only = less.sees[group] & ~more.sees[group] & ~removable[group]
                if only:
                    text = f"{_shown_facts(group, only)}: not seen, and seen by a read that misses other writes"
                    yield Anomaly("forked", text, more)
                    break


def _counters(history: Sequence[Operation]) -> Iterator[Anomaly]:
    """Increments are all there, each once."""
    concerned: dict[str, list[Operation]] = defaultdict(list)
    for each in history:
        for name in {*each.increments, *each.counts}:
            concerned[name].append(each)
    for name, some in concerned.items():
        yield from _found_twice(some, name)
        yield from _counted(some, name)


def _found_twice(history: Iterable[Operation], name: str) -> Iterator[Anomaly]:
    by_value: dict[int, Operation] = {}
    for each in history:
        found = each.increments.get(name)
        if found is None or each.outcome != "ok":
            continue
        if found in by_value:
            text = f"counter {name} was {found} for another increment too, of {by_value[found].worker}"
            yield Anomaly("lost update", text, each)
        by_value[found] = each


def _counted(history: Sequence[Operation], name: str) -> Iterator[Anomaly]:
    begun = acknowledged = seen = 0
    at_beginning: dict[int, tuple[int, int]] = {}
    for what, each in _events(history):
        if what == BEGINS:
            begun += name in each.increments and each.outcome != "failed"
            at_beginning[id(each)] = (acknowledged, seen)
            continue
        least, before = at_beginning.pop(id(each))
        if each.reads and name in each.counts:
            count = each.counts[name]
            if count < least:
                yield Anomaly("lost update", f"counter {name} is {count} after {least} increments", each)
            elif count < before:
                yield Anomaly("going back", f"counter {name} is {count} and was {before} before", each)
            if count > begun:
                yield Anomaly("doubled write", f"counter {name} is {count} and {begun} increments had begun", each)
            seen = max(seen, count)
        acknowledged += name in each.increments and each.outcome == "ok"


def _shown(history: Iterable[Operation], meanings: Mapping[str, Meaning]) -> Iterator[Anomaly]:
    """Results that do not follow from the tables of the same transaction."""
    for each in history:
        if each.outcome == "ok":
            for name, shown in each.shows.items():
                meant = meanings[name](each.sees)
                if shown != meant:
                    yield Anomaly("wrong view", f"{name} is {shown!r}, and recomputed {meant!r}", each)


def _times(history: Iterable[Operation]) -> Iterator[Anomaly]:
    """The system's time never goes back."""
    latest, at_beginning = 0, {}
    for what, each in _events(each for each in history if each.reads and each.time is not None):
        assert each.time is not None
        if what == BEGINS:
            at_beginning[id(each)] = latest
        else:
            if each.time < at_beginning.pop(id(each)):
                yield Anomaly("time went back", f"{each.time}, and {latest} before", each)
            latest = max(latest, each.time)


def _frontiers(history: Iterable[Operation]) -> Iterator[Anomaly]:
    """A view that was read at a time is complete beyond that time for good."""
    latest: dict[str, int] = defaultdict(lambda: -1)
    at_beginning: dict[int, dict[str, int]] = {}
    for what, each in _events(each for each in history if each.outcome == "ok" and (each.frontiers or each.through)):
        if what == BEGINS:
            at_beginning[id(each)] = dict(latest)
            continue
        before = at_beginning.pop(id(each))
        for name, frontier in each.frontiers.items():
            if frontier <= before.get(name, -1):
                text = f"{name} is complete up to {frontier} only, and was read at {before[name]}"
                yield Anomaly("view started over", text, each)
        for name in each.through:
            latest[name] = max(latest[name], each.time if each.time is not None else -1)


def _shown_facts(group: Group, some: Facts) -> str:
    shown = numbers(some)
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return f"{group[0]} {group[1]}: {', '.join(map(str, shown[:5]))}{more}"
