"""Looking at a stream in a folder or topic: what is in it, whether it holds together, and mangled copies of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

from everview.cdc.codec.contract import Bad, Codec, Item, Partial, codec_for
from everview.cdc.codec.registry import Registry, RegistryCodec
from everview.cdc.compaction import base_contents, base_messages, message_from
from everview.cdc.contract import Closed, Frontier, Message, Progress, Stall, Update, Updates
from everview.cdc.errors import InvalidUse, SchemaDiffers, StreamMoved
from everview.cdc.files import Folder, base_time
from everview.cdc.joining import Digest, told_before
from everview.cdc.mangle import mangle
from everview.cdc.multiplicity import Offence, offences_among
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.timely.antichain import Antichain
from everview.timely.lattice import Time

MANGLE_UPDATES_MAX = 5_000_000
JUDGED_MAX = 1_000_000  # updates that are held for their multiplicities to be judged, unless all are held anyway
_TRIES = 10
T = TypeVar("T")
_SUFFIXES = {"json": ".jsonl", "avro": ".avro"}


@dataclass(slots=True)
class Flaw:
    """Bytes of a file that are not a message."""

    file: str
    position: int
    reason: str


@dataclass(slots=True)
class Stats:
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
    judged: bool = True  # whether the multiplicities of rows were judged: otherwise there are too many to hold

    @property
    def sound(self) -> bool:
        """Whether all that is stated is there, and nothing contradicts itself."""
        return not self.flaws and not self.partial and not self.stalls and not self.open_updates


class Stream:
    def __init__(self, place: str | Folder, schema: StreamSchema | None = None) -> None:
        self.folder = Folder(place, read_only=True) if isinstance(place, str) else place
        url = self.folder.url
        self._list()
        if not self.files:
            hint = "files of a stream end in .jsonl or .avro"
            raise InvalidUse(f"no stream in {url}", hint=hint)
        found = schema or self.folder.schema()
        if found is None:
            hint = "give one with --schema, as it is in the first line of a file that has it"
            raise InvalidUse(f"no file in {url} says its schema", hint=hint)
        self.schema = found

    def _list(self) -> None:
        self.files = self.folder.files()
        bases = [(time, info.key) for info in self.files if (time := base_time(info.key)) is not None]
        self.base_time: int | None
        self.base_time, self._base = max(bases, default=(None, ""))

    def changed(self) -> bool:
        """List the files again. Gives whether any are gone, because somebody compacts the stream."""
        before = {info.key for info in self.files}
        self._list()
        return not before <= {info.key for info in self.files}

    @property
    def start(self) -> Frontier:
        """Where the history of the stream begins: after its base, if it has one."""
        return Antichain(self.schema.shape if self.base_time is None else self.base_time + 1)

    def base(self) -> list[Update[Row]]:
        """The contents of the base."""
        if self.base_time is None:
            return []
        contents = base_contents(self.folder.items(self._base, self.schema), self.base_time, self._base)
        if contents is None:
            raise StreamMoved(f"{self._base} was removed meanwhile", hint="someone compacts the stream; try again")
        return [(row, self.base_time, count) for row, count in contents.items()]

    def items(self) -> Iterator[tuple[str, Item]]:
        """What is in the files, by name."""
        for info in self.files:
            if info.key == self._base:
                continue
            try:
                yield from ((info.key, item) for item in self.folder.items(info.key, self.schema))
            except SchemaDiffers as error:
                yield info.key, Bad(0, b"", str(error).replace("\n", "; "))

    def messages(self) -> Iterator[Message[Row]]:
        """The messages about the history; undecodable bytes are left out."""
        for _, item in self.items():
            if not isinstance(item, Updates | Progress):
                continue
            message = item if self.base_time is None else message_from(item, self.base_time + 1)
            if message is not None:
                yield message

    def closed(self, reader: Reader[Row]) -> Iterator[Closed[Row]]:
        """The history as far as it is covered."""
        if self.base_time is not None:
            yield Closed(self.base(), self.start)
        for message in self.messages():
            closed = reader.push(message)
            if closed is not None:
                yield closed


class TopicStream(Stream):
    """A topic: `kafka://host:port/topic?format=avro`, with settings of librdkafka behind the question mark.

    `registry=http://host:8081` there is a schema registry: it says the schema, and frames the messages.
    """

    def __init__(self, url: str, schema: StreamSchema | None) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        registry = Registry(options.pop("registry")) if "registry" in options else None
        suffix = _SUFFIXES.get(options.pop("format", "json" if registry is None else "avro"))
        topic = parts.path.strip("/")
        if not parts.netloc or not topic or "/" in topic or suffix is None:
            raise InvalidUse(f"not the address of a topic: {url}", hint="kafka://host:port/topic?format=json or avro")
        if registry is not None and suffix != ".avro":
            raise InvalidUse("a schema registry is for format=avro")
        if schema is None and registry is not None:
            schema = registry.latest(topic)
        if schema is None:
            raise InvalidUse("messages of a topic do not say their schema", hint="give it with --schema")
        self.schema, self.base_time, self._base = schema, None, ""
        self._topic = topic
        self._codec: Codec = codec_for(suffix, schema) if registry is None else RegistryCodec(registry, topic, schema)
        self._config = {"bootstrap.servers": parts.netloc, **options}
        self.files = []

    def changed(self) -> bool:
        return False

    def items(self) -> Iterator[tuple[str, Item]]:
        from everview.cdc.kafka import read_topic

        return read_topic(self._config, self._topic, self._codec)


def open_stream(url: str, schema: StreamSchema | None = None) -> Stream:
    """The stream at an address: a folder, a prefix of an object store, or a topic."""
    return TopicStream(url, schema) if url.startswith("kafka://") else Stream(url, schema)


def examine(stream: Stream, *, thoroughly: bool = False) -> Stats:
    """Read all of a stream; thoroughly, all of it is held until the end, so that no contradiction is missed."""
    return steadily(stream, lambda: _examined(stream, thoroughly=thoroughly))


def contents_before(stream: Stream, time: int) -> tuple[int, Digest]:
    """The contents just before a time, or before the first later one that the stream has not forgotten."""

    def read() -> tuple[int, Digest]:
        before = max(time, 0 if stream.base_time is None else stream.base_time + 1)
        reader: Reader[Row] = Reader(stream.start)
        return before, told_before(stream.closed(reader), reader, before)

    return steadily(stream, read)


def steadily(stream: Stream, read: Callable[[], T]) -> T:
    """What is read of a stream as a whole. If files go meanwhile, what they said is in others: it is read again."""
    for _ in range(_TRIES):
        try:
            found = read()
        except StreamMoved:
            stream.changed()
            continue
        if not stream.changed():
            return found
    raise InvalidUse("files of the stream keep disappearing", hint="wait until nobody compacts it, and try again")


def _examined(stream: Stream, *, thoroughly: bool) -> Stats:
    stats = Stats(files=len(stream.files), size_bytes=sum(info.size_bytes for info in stream.files))
    reader: Reader[Row] = Reader(stream.start)
    base = stream.base()
    stats.updates += len(base)
    held: list[Update[Row]] = []

    def add(closed: Closed[Row] | None) -> None:
        _add(stats, closed)
        if closed is not None and stats.judged:
            held.extend(closed.updates)
            stats.judged = thoroughly or len(held) <= JUDGED_MAX

    add(Closed(base, stream.start))
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
            add(reader.settle())
    add(reader.settle())
    stats.distinct += reader.open_updates
    stats.frontier, stats.covered = reader.frontier, reader.covered
    stats.open_times, stats.open_updates = reader.tracker.open_times, reader.open_updates
    stats.statements_waiting, stats.stalls = reader.tracker.statements_waiting, reader.stalls()
    if stats.judged and held:
        _judge(stats, Closed(held, reader.frontier))
    return stats


def judged(history: Iterator[Closed[Row]]) -> tuple[Iterator[Update[Row]], list[Offence] | None]:
    """The updates of a history before the first times at which rows have impossible multiplicities, and these times.

    None instead of the times if there are too many updates to hold them.
    """
    held: list[Update[Row]] = []
    frontier: Frontier = Antichain()
    for closed in history:
        held += closed.updates
        frontier = closed.frontier
        if len(held) > JUDGED_MAX:
            return chain(held, (update for each in history for update in each.updates)), None
    offences = offences_among(held, frontier) if held else []
    wrong = Antichain(*(each.time for each in offences))
    return (update for update in held if not wrong.less_equal(update[1])), offences


def _judge(stats: Stats, closed: Closed[Row]) -> None:
    """Hold times open at which rows have impossible multiplicities, as a source does."""
    offences = offences_among(closed.updates, closed.frontier)
    if not offences:
        return
    stats.frontier = Antichain(*stats.frontier, *(each.time for each in offences))
    held = [time for _, time, _ in closed.updates if stats.frontier.less_equal(time)]
    stats.open_updates += len(held)
    stats.open_times += len(set(held))
    stats.stalls = [*(Stall(each.reason, each.time, detail=each.detail) for each in offences), *stats.stalls]


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
    base = {row: count for row, _, count in stream.base()}
    begin = () if stream.base_time is None else base_messages(base, stream.base_time)
    for message in chain(begin, stream.messages()):
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
