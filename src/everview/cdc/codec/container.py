"""Avro's container files, read block by block so that a file that is cut off or damaged gives what is whole.

A file is a header (magic, metadata, a marker of 16 bytes) and blocks (number of records, size, records, the marker
again). After damage, reading goes on behind the next marker. Blocks are compressed in any of the ways that Avro names,
each up to a limit.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from everview.cdc.codec.contract import RECORD_BYTES_MAX, Bad, Partial

MAGIC = b"Obj\x01"
MARKER_BYTES = 16
_HEADER_BYTES_MAX = 4 << 20
_LEVEL = 1  # which takes a tenth of the time of the usual one, for some percent of the size


@dataclass(frozen=True, slots=True)
class Header:
    """What a container says about itself."""

    schema: Any
    compression: str
    marker: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Block:
    """Some records, encoded one after the other."""

    position: int
    records: int
    data: bytes


class CutOff(Exception):
    """The bytes end before what they hold does."""


def read_header(file: pa.NativeFile) -> Header:
    """The header at the start of a file; raises CutOff or ValueError."""
    data = io.BytesIO(file.read(_HEADER_BYTES_MAX))
    magic = data.read(len(MAGIC))
    if magic != MAGIC[: len(magic)]:
        raise ValueError("not an Avro container file")
    if len(magic) < len(MAGIC):
        raise CutOff
    metadata: dict[str, bytes] = {}
    while number := _long(data):
        if number < 0:
            _long(data)
        for _ in range(abs(number)):
            name = _bytes(data).decode()
            metadata[name] = _bytes(data)
    marker = data.read(MARKER_BYTES)
    if len(marker) < MARKER_BYTES:
        raise CutOff
    if "avro.schema" not in metadata:
        raise ValueError("an Avro container file without a schema")
    compression = metadata.get("avro.codec", b"null").decode()
    return Header(json.loads(metadata["avro.schema"]), compression, marker, data.tell())


def read_blocks(file: pa.NativeFile, header: Header) -> Iterator[Block | Bad | Partial]:
    """The blocks of a file, and in place of damaged ones what is wrong there."""
    file.seek(header.size_bytes)
    position = header.size_bytes
    size = file.size()
    while position < size:
        try:
            block, position = _block(file, header, position)
            yield block
        except CutOff:
            found = _next_marker(file, header.marker, position)
            file.seek(position)
            if found is None:
                yield Partial(position, file.read(min(size - position, RECORD_BYTES_MAX)))
                return
            yield Bad(position, file.read(found - position), "a block has no end")
            position = found
        except ValueError as error:
            found = _next_marker(file, header.marker, position)
            end = size if found is None else found
            file.seek(position)
            yield Bad(position, file.read(min(end - position, RECORD_BYTES_MAX)), str(error))
            position = end
        file.seek(position)


def _block(file: pa.NativeFile, header: Header, position: int) -> tuple[Block, int]:
    records, size = _long(file), _long(file)
    if records < 0 or not 0 <= size <= RECORD_BYTES_MAX:
        raise ValueError("not the start of a block")
    data, marker = file.read(size), file.read(MARKER_BYTES)
    if len(data) < size or len(marker) < MARKER_BYTES:
        raise CutOff
    if marker != header.marker:
        raise ValueError("a block does not end with the file's marker")
    return Block(position, records, decompressed(data, header.compression)), file.tell()


def _next_marker(file: pa.NativeFile, marker: bytes, position: int) -> int | None:
    file.seek(position)
    kept, at = b"", position
    while piece := file.read(1 << 20):
        window = kept + piece
        found = int(window.find(marker))
        if found >= 0:
            return at - len(kept) + found + MARKER_BYTES
        at += len(piece)
        kept = window[-(MARKER_BYTES - 1) :]
    return None


def header_bytes(schema: Any, marker: bytes) -> bytes:
    """The start of a file whose blocks are deflated."""
    metadata = {"avro.schema": json.dumps(schema).encode(), "avro.codec": b"deflate"}
    pairs = b"".join(_sized(name.encode()) + _sized(value) for name, value in metadata.items())
    return b"".join([MAGIC, long_bytes(len(metadata)), pairs, long_bytes(0), marker])


def block_bytes(records: list[bytes], marker: bytes) -> bytes:
    """A block of encoded records."""
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    data = deflate.compress(b"".join(records)) + deflate.flush()
    return b"".join([long_bytes(len(records)), _sized(data), marker])


def long_bytes(number: int) -> bytes:
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    result = bytearray()
    while rest > 0x7F:
        result.append(rest & 0x7F | 0x80)
        rest >>= 7
    result.append(rest)
    return bytes(result)


def _sized(data: bytes) -> bytes:
    return long_bytes(len(data)) + data


def _long(file: Any) -> int:
    result = shift = 0
    while shift < 70:
        byte: bytes = file.read(1)
        if not byte:
            raise CutOff
        result |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return (result >> 1) ^ -(result & 1)
        shift += 7
    raise ValueError("a number without an end")


def _bytes(file: Any) -> bytes:
    size = _long(file)
    if not 0 <= size <= _HEADER_BYTES_MAX:
        raise ValueError("not the header of an Avro container file")
    data: bytes = file.read(size)
    if len(data) < size:
        raise CutOff
    return data


_CHECKSUM_BYTES = 4


def decompressed(data: bytes, compression: str) -> bytes:
    """Decompress a block. Raises ValueError."""
    if compression == "null":
        return data
    if compression not in _READERS:
        raise ValueError(f"blocks are compressed with {compression}, which is not supported")
    try:
        found = _READERS[compression](data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:  # Arrow's are OSError and ValueError
        raise ValueError(f"a block is not compressed with {compression}: {error}") from error
    if len(found) > RECORD_BYTES_MAX:
        raise ValueError(f"a block has more than {RECORD_BYTES_MAX} bytes")
    return found


def _zstandard(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read(RECORD_BYTES_MAX + 1))


def _snappy(data: bytes) -> bytes:
    """Snappy as Avro frames it: a checksum of the content follows."""
    packed, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    size = _size(packed)
    found = bytes(pa.Codec("snappy").decompress(packed, size, asbytes=True)) if size else b""
    if zlib.crc32(found).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise ValueError("the checksum of a block is wrong")
    return found


def _size(packed: bytes) -> int:
    """The size of the content, which Snappy states first."""
    size = shift = 0
    for byte in packed[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if size > RECORD_BYTES_MAX:
        raise ValueError(f"a block has more than {RECORD_BYTES_MAX} bytes")
    return size


_READERS: dict[str, Callable[[bytes], bytes]] = {
    "deflate": lambda data: zlib.decompressobj(-15).decompress(data, RECORD_BYTES_MAX + 1),
    "bzip2": lambda data: bz2.BZ2Decompressor().decompress(data, RECORD_BYTES_MAX + 1),
    "xz": lambda data: lzma.LZMADecompressor().decompress(data, RECORD_BYTES_MAX + 1),
    "zstandard": _zstandard,
    "snappy": _snappy,
}
