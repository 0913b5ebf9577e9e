"""Looking at a stream in a folder: what is in its files, whether it holds together, and mangled copies of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from everview.cdc.codec.contract import Bad, Codec, Item, Partial, codec_for
from everview.cdc.contract import Closed, Frontier, Message, Progress, Stall, Updates
from everview.cdc.errors import InvalidUse, SchemaDiffers
from everview.cdc.files import Folder
from everview.cdc.mangle import mangle
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.timely.antichain import Antichain
from everview.timely.lattice import Time

MANGLE_UPDATES_MAX = 5_000_000


@dataclass(slots=True)
class Flaw:
    """Something in a file that is no message."""

    file: str
    position: int
    reason: str


@dataclass(slots=True)
class Stats:
    """What is in a stream."""

    files: int = 0
    size_bytes: int = 0
    messages: int = 0
    updates: int = 0
    distinct: int = 0
    statements: int = 0
    times: int = 0
    first: Time | None = None
    last: Time | None = None
    frontier: Frontier = field(default_factory=lambda: Antichain(0))
    covered: Frontier = field(default_factory=lambda: Antichain(0))
    open_times: int = 0
    open_updates: int = 0
    statements_waiting: int = 0
    flaws: list[Flaw] = field(default_factory=list)
    partial: list[Flaw] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether all that is stated is there, and nothing contradicts itself."""
        return not self.flaws and not self.partial and not self.stalls and not self.open_updates


class Stream:
    """The files of one stream."""

    def __init__(self, url: str, schema: StreamSchema | None = None) -> None:
        self.folder = Folder(url, read_only=True)
        self.files = self.folder.files()
        if not self.files:
            hint = "files of a stream end in .jsonl or .avro"
            raise InvalidUse(f"no stream in {url}", hint=hint)
        found = schema or self.folder.schema()
        if found is None:
            hint = "give one with --schema, as it is in the first line of a file that has it"
            raise InvalidUse(f"no file in {url} says its schema", hint=hint)
        self.schema = found
        self._codecs: dict[str, Codec] = {}

    @property
    def start(self) -> Frontier:
        """Where the stream begins."""
        return Antichain(self.schema.shape)

    def items(self) -> Iterator[tuple[str, Item]]:
        """What is in the files, by name."""
        for info in self.files:
            suffix = "." + info.key.rpartition(".")[2]
            if suffix not in self._codecs:
                self._codecs[suffix] = codec_for(suffix, self.schema)
            try:
                for item in self.folder.items(info.key, self._codecs[suffix]):
                    yield info.key, item
            except SchemaDiffers as error:
                yield info.key, Bad(0, b"", str(error).replace("\n", "; "))

    def messages(self) -> Iterator[Message[Row]]:
        """The messages, without what is none."""
        for _, item in self.items():
            if isinstance(item, Updates | Progress):
                yield item

    def closed(self, reader: Reader[Row]) -> Iterator[Closed[Row]]:
        """The history as far as it is covered."""
        for message in self.messages():
            closed = reader.push(message)
            if closed is not None:
                yield closed


def examine(stream: Stream, *, thoroughly: bool = False) -> Stats:
    """Read all of a stream; thoroughly, all of it is held until the end, so that no contradiction is missed."""
    stats = Stats(files=len(stream.files), size_bytes=sum(info.size_bytes for info in stream.files))
    reader: Reader[Row] = Reader(stream.start)
    for file, item in stream.items():
        match item:
            case Bad():
                stats.flaws.append(Flaw(file, item.position, item.reason))
                continue
            case Partial():
                stats.partial.append(Flaw(file, item.position, "the file ends within a record"))
                continue
            case Updates():
                stats.updates += len(item.updates)
            case Progress():
                stats.statements += 1
        stats.messages += 1
        reader.take(item)
        if not thoroughly:
            _add(stats, reader.settle())
    _add(stats, reader.settle())
    stats.distinct += reader.open_updates
    stats.frontier, stats.covered = reader.frontier, reader.covered
    stats.open_times, stats.open_updates = reader.open_times, reader.open_updates
    stats.statements_waiting, stats.stalls = reader.statements_waiting, reader.stalls()
    return stats


def _add(stats: Stats, closed: Closed[Row] | None) -> None:
    if closed is None or not closed.updates:
        return
    stats.distinct += len(closed.updates)
    times = dict.fromkeys(time for _, time, _ in closed.updates)
    stats.times += len(times)
    first, *_, last = [*times, next(reversed(times))]
    stats.first = first if stats.first is None else stats.first
    stats.last = last


def mangle_copy(stream: Stream, target: Path, seed: int, suffix: str) -> int:
    """Write a mangled copy of a stream to a new folder; gives the number of files."""
    if target.exists() and any(target.iterdir()):
        raise InvalidUse(f"{target} is not empty", hint="name a new folder")
    messages, updates = [], 0
    for message in stream.messages():
        messages.append(message)
        updates += len(message.updates) if isinstance(message, Updates) else 0
        if updates > MANGLE_UPDATES_MAX:
            raise InvalidUse(f"a stream of more than {MANGLE_UPDATES_MAX} updates is too large to mangle")
    rng = random.Random(seed)
    mangled = mangle(messages, rng)
    codec, folder = codec_for(suffix, stream.schema), Folder(str(target))
    number = at = 0
    while at < len(mangled):
        size = rng.choice((1, 3, 10, 100))
        number += 1
        folder.put(f"{rng.randrange(10**6):06d}-{number:06d}{suffix}", codec.encode_file(mangled[at : at + size]))
        at += size
    return number
