"""Streams as files: a folder or a prefix of an object store that writers add to and readers poll.

Every file is named once and never changed by us, but others may append to theirs: a file is read again when it has
grown. Reading anything twice is harmless. Names start with the first time in the file, so that a reader that goes by
name meets times roughly in order, and with an underscore or a point where they are none of the stream's.

A file whose name says `base` holds the contents at one time, with the progress statement from the start up to it. It
stands for the history before: whatever other files say about times up to that one does not matter any more.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from everview.cdc.codec import json
from everview.cdc.codec.contract import SUFFIXES, Bad, Codec, Item, codec_for, suffix_of
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.errors import SchemaDiffers
from everview.cdc.listing import FileInfo, Listing, LocalListing, RemoteListing
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema
from everview.storage.blob.contract import Blob, checked_key
from everview.storage.blob.local import LocalBlob
from everview.storage.errors import BlobMissing, InvalidUsage
from everview.storage.stores import open_blob

T = TypeVar("T")

FILE_UPDATES = 100_000
FILE_BYTES = 32 << 20
FIRST_FILE_UPDATES = 10_000
MERGED = "merged"  # the writer, in the name of a file, of what others have written before
_BASE = re.compile(r"(?:.*/)?(\d{19})-base-[^/]*\Z")


def file_name(first: int, writer: str, number: str, suffix: str) -> str:
    """A name for a file whose times start at `first`."""
    return f"{first:019d}-{writer}-{number}{suffix}"


def base_name(time: int, suffix: str) -> str:
    """A new name for a base file: the contents at a time, in place of the history before."""
    return file_name(time, "base", secrets.token_hex(6), suffix)


def base_time(name: str) -> int | None:
    """The time of a base file; None for other files."""
    found = _BASE.match(name)
    return None if found is None else int(found[1])


class Folder:
    def __init__(
        self, url: str, *, read_only: bool = False, suffixes: tuple[str, ...] = SUFFIXES, confined: bool = False
    ) -> None:
        self.url, self._suffixes, self._confined = url, suffixes, confined
        self._blob: Blob = open_blob(url, read_only, confined=confined)
        self._codecs: dict[str, Codec] = {}

    def listing(self) -> Listing:
        """A listing that reports which files come, change and go."""
        if isinstance(self._blob, LocalBlob):
            return LocalListing(self._blob.root, self._is_ours)
        return RemoteListing(self._after, self._is_ours, self.url)

    def _after(self, name: str) -> Iterator[FileInfo]:
        if (versions := getattr(self._blob, "versions", None)) is not None:
            return (FileInfo(*each) for each in versions(name))
        return (FileInfo(info.key, info.size_bytes) for info in self._blob.list() if info.key > name)

    def _is_ours(self, key: str) -> bool:
        if not key.endswith(self._suffixes) or any(word.startswith(("_", ".")) for word in key.split("/")):
            return False
        try:
            checked_key(key)
        except InvalidUsage:
            return False
        return True

    def files(self) -> list[FileInfo]:
        """The files of the stream, by name."""
        listing = self.listing()
        listing.look()
        return sorted(listing.files.values(), key=lambda info: info.key)

    def checksum(self, name: str, size_bytes: int) -> int | None:
        """The checksum of the first bytes of a file; None if it is gone, and in stores that do not append."""
        if not isinstance(self._blob, LocalBlob):
            return None
        try:
            file = self._blob.open(name)
        except BlobMissing:
            return None
        with file:
            left, found = size_bytes, 0
            while left > 0 and (some := file.read_buffer(min(left, 1 << 24))).size:
                found, left = zlib.crc32(some, found), left - some.size
        return None if left else found

    def remove(self, name: str) -> None:
        """Remove a file. A power cut may bring it back."""
        if isinstance(self._blob, LocalBlob) and not self._confined:
            (self._blob.root / checked_key(name)).unlink(missing_ok=True)  # not synced: that takes long for many
        else:
            self._blob.delete(name)

    def put(self, name: str, data: bytes) -> None:
        self._blob.put(name, data)

    def take(self, name: str) -> bytes:
        with self._blob.open(name) as file:
            data: bytes = file.read()
        self._blob.delete(name)
        return data

    def uri(self, name: str) -> str:
        return self._blob.uri(name)

    def read(self, name: str, by: Callable[[pa.NativeFile], Iterator[T]]) -> Iterator[T]:
        """Apply `by` to a file. Gives nothing if the file is gone."""
        try:
            file = self._blob.open(name)
        except BlobMissing:
            return
        with file:
            yield from by(file)

    def codec(self, name: str, schema: StreamSchema) -> Codec:
        """The codec of a file of a stream with this schema."""
        suffix = suffix_of(name)
        if suffix not in self._codecs or self._codecs[suffix].schema is not schema:
            self._codecs[suffix] = codec_for(suffix, schema)
        return self._codecs[suffix]

    def items(self, name: str, schema: StreamSchema) -> Iterator[Item]:
        """The messages of a file of a stream with this schema, and bytes that are none. Nothing if the file is gone."""
        codec = self.codec(name, schema)

        def decode(file: pa.NativeFile) -> Iterator[Item]:
            if codec.suffix == ".avro" and not isinstance(file, pa.MemoryMappedFile):
                file = pa.BufferReader(file.read_buffer())  # far away, reading by bytes would be a request for each
            return codec.decode_file(file, name)

        return self.read(name, decode)

    def schema(self) -> StreamSchema | None:
        """The schema in the first file that states one."""
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
        self.files_written = 0

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
        self.files_written += 1
        number = secrets.token_hex(6) if self.writer == MERGED else f"{self.files_written:06d}"
        name = file_name(_first(messages), self.writer, number, self._codec.suffix)
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
    version: str = ""
    checksum: int | None = None

    def spent(self, frontier: int | None) -> bool:
        """Whether a reader that reported all before `frontier` never needs the piece again."""
        if self.flawed:
            return False
        return frontier is None or (self.needed_until is not None and self.needed_until <= frontier)


class Inlet(Protocol):
    """Where a source reads from. It knows what it gave out, and what of that has to be remembered durably."""

    def restore(self, saved: Mapping[str, bytes]) -> None:
        """Start again from what was saved: give out all that was not spent."""

    def disturbed(self) -> bool:
        """Look for changes. Gives whether something that was given out, and may still be needed, changed or went."""

    def base(self, frontier: int | None) -> tuple[int, Piece] | None:
        """The base that covers history which a reader at `frontier` has not read: its time and contents."""

    def pieces(self) -> Iterator[Piece]:
        """The pieces that were not given out yet."""

    def finish(self, piece: Piece) -> None:
        """Note that the piece was read to its end."""

    def spend(self, frontier: int | None) -> dict[str, bytes | None]:
        """The notes to save or remove once all before `frontier` is reported. None is the end of time."""

    def close(self) -> None:
        """Let go of the place."""


class FolderInlet:
    def __init__(self, folder: Folder, schema: StreamSchema) -> None:
        self.folder = folder
        self._listing = folder.listing()
        self._schema = schema
        self._spent: dict[str, tuple[int, str]] = {}  # sizes and versions, by name
        self._last_spent = ""
        self._waiting: dict[str, FileInfo] = {}
        self.open: dict[str, Piece] = {}
        self._bases: dict[str, int] = {}
        self._gone: list[str] = []
        self._disturbed = False

    def restore(self, saved: Mapping[str, bytes]) -> None:
        self._spent = {}
        for name, value in saved.items():
            size, _, version = value.decode().partition(" ")  # there was no version in earlier days
            self._spent[name] = (int(size), version)
        self._last_spent = max(self._spent, default="")
        self.open, self._gone, self._disturbed = {}, [], False
        self._waiting = {info.key: info for info in self.unspent()}

    def disturbed(self) -> bool:
        look = self._listing.look(self.open, self._settled())
        for name in look.gone:
            self._waiting.pop(name, None)
            self._bases.pop(name, None)
            self._disturbed |= self.open.pop(name, None) is not None
            if self._spent.pop(name, None) is not None:
                self._gone.append(name)
        for info in look.fresh:
            if (time := base_time(info.key)) is not None:
                self._bases[info.key] = time
            if not self._is_spent(info):
                piece = self.open.get(info.key)
                self._disturbed |= piece is not None and not self._only_grew(piece, info)
                self._waiting[info.key] = info
        return self._disturbed

    def waiting(self) -> list[FileInfo]:
        """The files that were not given out yet, or have changed since."""
        return sorted(self._waiting.values(), key=lambda info: info.key)

    def unspent(self) -> list[FileInfo]:
        """All files that may hold anything that is still needed."""
        files = (info for info in self._listing.files.values() if not self._is_spent(info))
        return sorted(files, key=lambda info: info.key)

    def base(self, frontier: int | None) -> tuple[int, Piece] | None:
        if not self._bases:
            return None
        name, time = max(self._bases.items(), key=lambda each: each[::-1])
        if frontier is None or time < frontier:
            return None
        info = self._listing.files[name]
        return time, Piece(name, info.size_bytes, self._items(name))

    def pieces(self) -> Iterator[Piece]:
        for info in self.waiting():
            yield Piece(info.key, info.size_bytes, self._items(info.key), version=info.version)

    def finish(self, piece: Piece) -> None:
        self._spent.pop(piece.name, None)
        self._waiting.pop(piece.name, None)
        piece.checksum = self.folder.checksum(piece.name, piece.size_bytes)
        self.open[piece.name] = piece

    def take(self, info: FileInfo, needed: bool) -> None:
        """Note a file that Spark read, and whether it may be needed again."""
        if needed:
            self.open.pop(info.key, None)
            self._spent.pop(info.key, None)
            self._waiting[info.key] = info
        else:
            self._waiting.pop(info.key, None)
            self.open[info.key] = Piece(info.key, info.size_bytes, iter(()), version=info.version)

    def spend(self, frontier: int | None) -> dict[str, bytes | None]:
        changes: dict[str, bytes | None] = dict.fromkeys(self._gone)
        self._gone = []
        for name in [name for name, piece in self.open.items() if piece.spent(frontier)]:
            piece = self.open.pop(name)
            self._spent[name] = (piece.size_bytes, piece.version)
            self._last_spent = max(name, self._last_spent)
            changes[name] = f"{piece.size_bytes} {piece.version}".encode()
        return changes

    def close(self) -> None:
        self.folder.close()

    def _is_spent(self, info: FileInfo) -> bool:
        size, version = self._spent.get(info.key, (-1, ""))
        return size == info.size_bytes and (not version or version == info.version)

    def _only_grew(self, piece: Piece, info: FileInfo) -> bool:
        if piece.checksum is None or info.size_bytes < piece.size_bytes:
            return False
        return self.folder.checksum(piece.name, piece.size_bytes) == piece.checksum

    def _settled(self) -> str:
        """A name before which, as far as is known, all files are spent."""
        least = min((name for names in (self.open, self._waiting) for name in names), default="")
        return self._last_spent if not least or self._last_spent < least else least[:-1]

    def _items(self, name: str) -> Iterator[Item]:
        try:
            yield from self.folder.items(name, self._schema)
        except SchemaDiffers as error:
            yield Bad(0, b"", str(error).replace("\n", "; "))
