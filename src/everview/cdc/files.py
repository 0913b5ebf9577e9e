"""Streams as files: a folder or a prefix of an object store that writers add to and readers poll.

Every file is named once and never changed by us, but others may append to theirs: a file is read again when it has
grown. Reading anything twice is harmless. Names start with the first time in the file, so that a reader that goes by
name meets times roughly in order, and with an underscore or a point where they are none of the stream's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from everview.cdc.codec import json
from everview.cdc.codec.contract import SUFFIXES, Bad, Codec, Item, codec_for
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import InvalidUse, SchemaDiffers
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.storage.blob.contract import Blob, BlobInfo
from everview.storage.blob.open import open_blob
from everview.storage.errors import BlobMissing

T = TypeVar("T")

MESSAGE_UPDATES = 1000
FILE_UPDATES = 100_000
FILE_BYTES = 32 << 20
FIRST_FILE_UPDATES = 10_000
FILES_MAX = 1_000_000


def file_name(first: int, writer: str, number: str, suffix: str) -> str:
    """A name for a file whose times start at `first`."""
    return f"{first:019d}-{writer}-{number}{suffix}"


class Folder:
    """The files of one stream."""

    def __init__(self, url: str, *, read_only: bool = False, suffixes: tuple[str, ...] = SUFFIXES) -> None:
        self.url, self._suffixes = url, suffixes
        self._blob: Blob = open_blob(url, read_only)

    def files(self) -> list[BlobInfo]:
        """The files of the stream, by name."""
        found = []
        for info in self._blob.list():
            hidden = any(word.startswith(("_", ".")) for word in info.key.split("/"))
            if not hidden and info.key.endswith(self._suffixes):
                found.append(info)
            if len(found) > FILES_MAX:
                raise InvalidUse(f"more than {FILES_MAX} files in {self.url}", hint="remove old ones")
        return found

    def put(self, name: str, data: bytes) -> None:
        """Add a file, durably."""
        self._blob.put(name, data)

    def take(self, name: str) -> bytes:
        """Read a file and remove it."""
        with self._blob.open(name) as file:
            data: bytes = file.read()
        self._blob.delete(name)
        return data

    def uri(self, name: str) -> str:
        """Where executors find a file."""
        return self._blob.uri(name)

    def read(self, name: str, by: Callable[[pa.NativeFile], Iterator[T]]) -> Iterator[T]:
        """What `by` finds in a file; nothing if it is gone."""
        try:
            file = self._blob.open(name)
        except BlobMissing:
            return
        with file:
            yield from by(file)

    def items(self, name: str, codec: Codec) -> Iterator[Item]:
        """What is in a file; nothing if it is gone."""

        def decode(file: pa.NativeFile) -> Iterator[Item]:
            if codec.suffix == ".avro" and not isinstance(file, pa.MemoryMappedFile):
                file = pa.BufferReader(file.read_buffer())  # far away, reading by bytes would be a request for each
            return codec.decode_file(file, name)

        return self.read(name, decode)

    def schema(self) -> StreamSchema | None:
        """The schema that the files say they have: that of the first that says one."""
        for info in self.files():
            try:
                with self._blob.open(info.key) as file:
                    found = _header_of(info.key, file)
            except BlobMissing:
                continue
            if found is not None:
                return found
        return None

    def close(self) -> None:
        """Let go of the folder."""
        self._blob.close()


def _header_of(name: str, file: pa.NativeFile) -> StreamSchema | None:
    if name.endswith(".avro"):
        from everview.cdc.codec import avro

        return avro.header_of(file)
    return json.header_of(file)


class FolderOutlet:
    """Where a sink writes: each call adds files to the folder, durably.

    A file is cut by the number of its updates, such that at the size of those written before it has the bytes wanted.
    """

    def __init__(self, folder: Folder, codec: Codec, writer: str | None = None) -> None:
        self._folder, self._codec = folder, codec
        self._file_updates = FIRST_FILE_UPDATES
        # Nobody else's, and not that of an earlier life either: no file is ever written twice.
        self.writer = writer or secrets.token_hex(4)
        self._number = 0

    def write(self, messages: Iterable[Message[Row]]) -> None:
        """Write the messages, in files of a modest size."""
        some: list[Message[Row]] = []
        size = 0
        for message in messages:
            some.append(message)
            size += len(message.updates) if isinstance(message, Updates) else len(message.counts)
            if size >= self._file_updates:
                self._put(some, size)
                some, size = [], 0
        if some:
            self._put(some, size)

    def _put(self, messages: list[Message[Row]], size: int) -> None:
        self._number += 1
        name = file_name(_first(messages), self.writer, f"{self._number:06d}", self._codec.suffix)
        data = self._codec.encode_file(messages)
        self._folder.put(name, data)
        if size >= self._file_updates:
            self._file_updates = max(1, min(FILE_UPDATES, FILE_BYTES * size // len(data)))


def _first(messages: Iterable[Message[Row]]) -> int:
    times = []
    for message in messages:
        if isinstance(message, Progress):
            times += [time for time in message.lower if isinstance(time, int)]
        else:
            times += [time for _, time, _ in message.updates if isinstance(time, int)]
    return min(times, default=0)


@dataclass(slots=True)
class Piece:
    """Part of a stream that was read: a file, or a message of a log.

    Whoever reads it says in `needed_until` up to which frontier it may be needed again (None: for good) and how much of
    it could not be decoded; when the reader has passed that, the piece is spent and never read again.
    """

    name: str
    size_bytes: int
    items: Iterator[Item]
    needed_until: int | None = 0
    flawed: bool = False

    def spent(self, frontier: int | None) -> bool:
        """Whether a reader that has reported all before `frontier` has no use for it."""
        if self.flawed:
            return False
        return frontier is None or (self.needed_until is not None and self.needed_until <= frontier)


class Inlet(Protocol):
    """Where a source reads from; it remembers what it gave out, and tells what of that to remember durably."""

    def restore(self, saved: Mapping[str, bytes]) -> None:
        """Start again from what was saved: give out again all that was not spent."""
        ...

    def pieces(self) -> Iterator[Piece]:
        """What is there and was not given out yet."""
        ...

    def finish(self, piece: Piece) -> None:
        """The piece was read to its end."""
        ...

    def spend(self, frontier: int | None) -> dict[str, bytes | None]:
        """What to save, and what to remove, now that all before `frontier` is reported; None is the end."""
        ...

    def close(self) -> None:
        """Let go of the place."""
        ...


class FolderInlet:
    """Polls a folder."""

    def __init__(self, folder: Folder, schema: StreamSchema) -> None:
        self.folder = folder
        self._codecs: dict[str, Codec] = {}
        self._schema = schema
        self._spent: dict[str, int] = {}
        self.open: dict[str, Piece] = {}
        self._gone: list[str] = []

    @property
    def files_spent(self) -> int:
        """How many files will not be read again."""
        return len(self._spent)

    def restore(self, saved: Mapping[str, bytes]) -> None:
        self._spent = {name: int(size) for name, size in saved.items()}
        self.open = {}

    def waiting(self) -> list[BlobInfo]:
        """The files that were not given out yet, or have grown since."""
        files = self.folder.files()
        present = {info.key for info in files}
        self._gone = [name for name in self._spent if name not in present]
        for name in [name for name in self.open if name not in present]:
            del self.open[name]
        return [info for info in files if info.size_bytes != self._known_size(info.key)]

    def unspent(self) -> list[BlobInfo]:
        """All files that may hold anything that is still needed."""
        return [info for info in self.folder.files() if self._spent.get(info.key) != info.size_bytes]

    def pieces(self) -> Iterator[Piece]:
        for info in self.waiting():
            yield Piece(info.key, info.size_bytes, self._items(info.key))

    def finish(self, piece: Piece) -> None:
        self._spent.pop(piece.name, None)
        self.open[piece.name] = piece

    def take(self, info: BlobInfo, needed: bool) -> None:
        """Note a file that was read by other means, and whether anything in it may be needed again."""
        if needed:
            self.open.pop(info.key, None)
            self._spent.pop(info.key, None)
        else:
            self.open[info.key] = Piece(info.key, info.size_bytes, iter(()))

    def spend(self, frontier: int | None) -> dict[str, bytes | None]:
        changes: dict[str, bytes | None] = dict.fromkeys(self._gone)
        for name in self._gone:
            del self._spent[name]
        self._gone = []
        for name in [name for name, piece in self.open.items() if piece.spent(frontier)]:
            size = self.open.pop(name).size_bytes
            self._spent[name] = size
            changes[name] = str(size).encode()
        return changes

    def close(self) -> None:
        self.folder.close()

    def _known_size(self, name: str) -> int | None:
        if name in self.open:
            return self.open[name].size_bytes
        return self._spent.get(name)

    def _items(self, name: str) -> Iterator[Item]:
        suffix = "." + name.rpartition(".")[2]
        if suffix not in self._codecs:
            self._codecs[suffix] = codec_for(suffix, self._schema)
        try:
            yield from self.folder.items(name, self._codecs[suffix])
        except SchemaDiffers as error:
            yield Bad(0, b"", str(error).replace("\n", "; "))
