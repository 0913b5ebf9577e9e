"""Compaction: the same stream in fewer files, and a stream without its distant past.

*Merging* writes what many small files say into one, and then removes them. Whatever a reader sees in between is the
same statements, some of them twice.

*Forgetting* writes the contents at a time as a base, one file that appears at once, and then removes what only tells of
times up to it. From the moment at which the base is there, readers of ours take nothing else about those times, so it
does not matter how much of the past has been removed yet. Files that also tell of later times are written again without
the past first, so that in the end the folder holds a plain stream that begins with the contents.

To a reader that starts with it, a base is an ordinary part of the stream: updates, and one progress statement. A reader
that is beyond its time has no use for it. One that is not, and whose missing history may be gone, takes the contents
over and goes on behind them.

Only files that were named here are touched, for nobody appends to them. A process that dies leaves files that say what
others say as well; the next one removes them. Any number of processes may compact a stream while others write it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from everview.cdc.codec.contract import Bad, Item, Partial, suffix_of
from everview.cdc.contract import MESSAGE_UPDATES, Message, Progress, Update, Updates, in_messages
from everview.cdc.errors import CdcError, InvalidUse, SchemaDiffers
from everview.cdc.files import FILE_BYTES, MERGED, Folder, FolderOutlet, base_name, base_time
from everview.cdc.listing import FileInfo
from everview.cdc.multiplicity import COUNT_MAX
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.cdc.times import bound_of
from everview.timely.antichain import Antichain

TIERS_BYTES = (64 << 10, 2 << 20, FILE_BYTES)  # files smaller than this are merged with others of their kind
MERGE_FILES = 64  # at least so many of a kind, so that every byte is written again a few times and no more
CONTENTS_MAX = 5_000_000
SETTLE_UPDATES = 2_000_000  # so many are held before any time is closed, to see what contradicts them
_OURS = re.compile(r"\d{19}-([0-9a-f]{8}|base|merged)-[0-9a-f]{6,12}\.(jsonl|avro)\Z")


@dataclass(slots=True)
class Compacted:
    written: int = 0
    removed: int = 0
    base: int | None = None


def is_ours(name: str) -> bool:
    """Whether a file was named by a sink or a compaction, and so is never appended to."""
    return _OURS.match(name) is not None


def merge(folder: Folder, schema: StreamSchema, *, at_least: int = MERGE_FILES) -> Compacted:
    """Write many small files as few larger ones; the stream says the same at every moment."""
    done = Compacted()
    files = [info for info in folder.files() if is_ours(info.key) and base_time(info.key) is None]
    for suffix in sorted({suffix_of(info.key) for info in files}):
        for low, high in zip((0, *TIERS_BYTES), TIERS_BYTES, strict=False):
            alike = [info for info in files if suffix_of(info.key) == suffix and low <= info.size_bytes < high]
            for group in _groups(alike):
                if len(group) >= at_least:
                    _merge_files(folder, schema, [info.key for info in group], done)
    return done


def _groups(files: Iterable[FileInfo]) -> Iterator[list[FileInfo]]:
    """Files by name, in groups that make a file of the usual size."""
    group: list[FileInfo] = []
    size = 0
    for info in files:
        group.append(info)
        size += info.size_bytes
        if size >= FILE_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _merge_files(folder: Folder, schema: StreamSchema, names: list[str], done: Compacted) -> None:
    said = _Said()
    whole = [name for name in names if said.take(_messages(folder, schema, name))]
    if len(whole) < 2:
        return
    outlet = FolderOutlet(folder, folder.codec(names[0], schema), MERGED)
    outlet.write(said.messages())
    done.written += outlet.files_written
    for name in whole:
        folder.remove(name)
    done.removed += len(whole)


class _Said:
    """What files say, each statement once."""

    def __init__(self) -> None:
        self._updates: dict[tuple[Row, int, int], None] = {}
        self._statements: dict[Progress, None] = {}

    def take(self, messages: list[Message[Row]] | None) -> bool:
        """Take the messages of a file. False if the file cannot be read."""
        if messages is None:
            return False
        for message in messages:
            if isinstance(message, Progress):
                self._statements[message] = None
            else:
                self._updates.update(dict.fromkeys(message.updates))  # type: ignore[arg-type]
        return True

    def messages(self) -> Iterator[Message[Row]]:
        """All of it in the order of time, with adjacent statements joined."""
        yield from in_messages(sorted(self._updates, key=lambda update: update[1]))
        if not all(isinstance(time, int) for each in self._statements for time in (*each.lower, *each.upper)):
            yield from self._statements  # where one goes on is no matter of numbers
            return
        bounds = {
            each: (bound_of(each.lower) or 0, each.upper.empty, bound_of(each.upper)) for each in self._statements
        }
        statements = sorted(self._statements, key=bounds.__getitem__)
        glued: Progress | None = None
        for each in statements:
            if glued is None:
                glued = each
            elif glued.upper == each.lower and len(glued.counts) < MESSAGE_UPDATES:
                glued = Progress(glued.lower, each.upper, (*glued.counts, *each.counts))
            else:
                yield glued
                glued = each
        if glued is not None:
            yield glued


def _messages(folder: Folder, schema: StreamSchema, name: str) -> list[Message[Row]] | None:
    found: list[Message[Row]] = []
    try:
        for item in folder.items(name, schema):
            if isinstance(item, Bad | Partial):
                return None
            found.append(item)
    except SchemaDiffers:
        return None
    return found


def forget(folder: Folder, schema: StreamSchema, before: int, *, contents_max: int = CONTENTS_MAX) -> Compacted:
    """Let a stream begin with its contents just before a time; what it says from that time on stays.

    The stream must be complete up to there, and be true of a collection.
    """
    if schema.shape != 0:
        raise InvalidUse("a stream of partially ordered times has no contents before a time")
    time, done = before - 1, Compacted()
    files = folder.files()
    bases = {info.key: found for info in files if (found := base_time(info.key)) is not None}
    if time < 0 or any(found >= time for found in bases.values()):
        return done
    contents, start = _begin(folder, schema, bases)
    history = _History(contents, start, time, contents_max)
    for info in files:
        if info.key not in bases and not (is_ours(info.key) and int(info.key[:19]) > time):
            history.take(info.key, folder, schema)
    history.check()
    ((suffix, _),) = Counter(suffix_of(info.key) for info in files).most_common(1)
    name = base_name(time, suffix)
    folder.put(name, folder.codec(name, schema).encode_file(base_messages(history.contents, time)))
    done.written, done.base = 1, time
    past = [*bases, *(name for name in history.past if is_ours(name))]
    for name in history.both:
        if is_ours(name):
            done.written += _write_rest(folder, schema, name, before)
            past.append(name)
    for name in past:
        folder.remove(name)
    done.removed = len(past)
    return done


def _begin(folder: Folder, schema: StreamSchema, bases: dict[str, int]) -> tuple[dict[Row, int], int]:
    """The contents that the stream begins with, and the time from which on it has a history."""
    if not bases:
        return {}, 0
    name, time = max(bases.items(), key=lambda each: each[::-1])
    contents = base_contents(folder.items(name, schema), time, name)
    if contents is None:
        raise InvalidUse(f"{name} was removed meanwhile", hint="another process compacts the stream; try again")
    return contents, time + 1


class _History:
    """The contents of a stream at a time, and which files are about the past only, or about past and future."""

    def __init__(self, contents: dict[Row, int], start: int, time: int, contents_max: int) -> None:
        self.contents, self._time, self._contents_max = contents, time, contents_max
        self._reader: Reader[Row] = Reader(Antichain(start))
        self.past: list[str] = []
        self.both: list[str] = []

    def take(self, name: str, folder: Folder, schema: StreamSchema) -> None:
        messages = _messages(folder, schema, name)
        if messages is None:
            return
        early = late = False
        for message in messages:
            if isinstance(message, Progress):
                end = bound_of(message.upper)
                early |= (bound_of(message.lower) or 0) <= self._time and message.lower != message.upper
                late |= end is None or end > self._time + 1
            else:
                times = [time for _, time, _ in message.updates]
                early |= any(time <= self._time for time in times)  # type: ignore[operator]
                late |= any(time > self._time for time in times)  # type: ignore[operator]
            self._reader.take(message)
        if self._reader.open_updates > SETTLE_UPDATES:
            self._settle()
        if not late:
            self.past.append(name)
        elif early:
            self.both.append(name)

    def _settle(self) -> None:
        closed = self._reader.settle()
        for row, time, diff in [] if closed is None else closed.updates:
            if time <= self._time:  # type: ignore[operator]
                total = self.contents.get(row, 0) + diff
                if not 0 <= total <= COUNT_MAX:
                    detail = f"row {row!r} would occur {total} times at {time}"
                    raise InvalidUse("the stream is true of no collection", detail=detail, hint="repair it first")
                if total:
                    self.contents[row] = total
                else:
                    del self.contents[row]
        if len(self.contents) > self._contents_max:
            raise InvalidUse(f"the contents have more than {self._contents_max} rows", hint="merge files only")

    def check(self) -> None:
        """Raise InvalidUse unless the contents at the time are known."""
        self._settle()
        frontier = bound_of(self._reader.frontier)
        if frontier is not None and frontier <= self._time:
            detail = f"it is closed before {frontier}"
            hint = "name an earlier time; 'everview cdc verify' says what is wrong, if anything is"
            raise InvalidUse(f"the stream is not complete up to {self._time}", detail=detail, hint=hint)


def _write_rest(folder: Folder, schema: StreamSchema, name: str, before: int) -> int:
    messages = _messages(folder, schema, name) or ()
    rest = [left for message in messages if (left := message_from(message, before)) is not None]
    outlet = FolderOutlet(folder, folder.codec(name, schema), MERGED)
    outlet.write(rest)
    return outlet.files_written


EVERY_FILES = 128  # written since the last time, in this life or an earlier one
FORGET_BYTES = 1 << 20


class Upkeep:
    """Maintains the folder of a sink: merges small files, and forgets history that need not be kept."""

    def __init__(self, folder: Folder, schema: StreamSchema, retain_ms: int | None = None) -> None:
        self._folder, self._schema, self._retain_ms = folder, schema, retain_ms
        self._written: int | None = None  # when it did what was due; None: perhaps in an earlier life

    def after(self, files_written: int, frontier: int) -> Compacted | None:
        """Do what is due after so many files were written, all up to `frontier`."""
        if self._written is None:
            files = (info for info in self._folder.files() if is_ours(info.key) and base_time(info.key) is None)
            left = sum(f"-{MERGED}-" not in info.key and info.size_bytes < FILE_BYTES for info in files)
            self._written = files_written - left  # what nobody has merged, though it is small enough
        if files_written - self._written < EVERY_FILES:
            return None
        self._written = files_written
        done = Compacted()
        failure: CdcError | None = None
        if self._retain_ms is not None and self._worth_it(frontier - self._retain_ms):
            try:
                done = forget(self._folder, self._schema, frontier - self._retain_ms)
            except CdcError as error:  # it stays longer then, and files are merged nonetheless
                failure = error
        merged = merge(self._folder, self._schema)
        if failure is not None:
            raise failure
        return Compacted(done.written + merged.written, done.removed + merged.removed, done.base)

    def _worth_it(self, before: int) -> bool:
        """Whether forgetting removes at least as many bytes as the contents take to write."""
        past = base = 0
        for info in self._folder.files():
            if base_time(info.key) is not None:
                base = max(base, info.size_bytes)
            elif is_ours(info.key) and int(info.key[:19]) < before:
                past += info.size_bytes
        return past >= max(base, FORGET_BYTES)


def base_messages(contents: Mapping[Row, int], time: int) -> Iterator[Message[Row]]:
    """The messages of a stream that begins with these contents."""
    updates = [(row, time, count) for row, count in contents.items()]
    yield from in_messages(updates)
    counts = ((time, len(updates)),) if updates else ()
    yield Progress(Antichain(0), Antichain(time + 1), counts)


def base_contents(items: Iterable[Item], time: int, name: str) -> dict[Row, int] | None:
    """The contents in a base file; None if the file is gone."""
    rows: dict[Row, int] = {}
    there = read_base(items, time, name, lambda updates: rows.update({row: diff for row, _, diff in updates}))
    return rows if there else None


def read_base(items: Iterable[Item], time: int, name: str, take: Callable[[Sequence[Update[Row]]], None]) -> bool:
    """Hand over the contents of a base file, piece by piece. False if the file is gone."""
    stated: Progress | None = None
    number = 0
    damaged = CdcError(f"the contents at time {time} cannot be read", detail=f"{name} is damaged")
    for item in items:
        match item:
            case Bad() | Partial():
                raise damaged
            case Updates():
                if any(at != time or diff <= 0 for _, at, diff in item.updates):
                    raise damaged
                take(item.updates)
                number += len(item.updates)
            case Progress():
                stated = item
    if stated is None and not number:
        return False
    counts = ((time, number),) if number else ()
    if stated != Progress(Antichain(0), Antichain(time + 1), counts):
        raise damaged
    return True


def message_from(message: Message[Row], start: int) -> Message[Row] | None:
    """The part of a message about times from `start` on; None if there is nothing left."""
    if isinstance(message, Updates):
        updates = [update for update in message.updates if update[1] >= start]  # type: ignore[operator]
        return Updates(updates) if updates else None
    end = bound_of(message.upper)
    if end is not None and end <= start:
        return None
    lower = bound_of(message.lower)
    counts = tuple(pair for pair in message.counts if pair[0] >= start)  # type: ignore[operator]
    return Progress(message.lower if lower is None or lower > start else Antichain(start), message.upper, counts)
