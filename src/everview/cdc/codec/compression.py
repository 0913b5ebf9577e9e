"""How blocks of Avro's container files are compressed: all that its specification names, each to a limit."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable

import pyarrow as pa

from everview.cdc.codec.contract import RECORD_BYTES_MAX

_CHECKSUM_BYTES = 4


def decompressed(data: bytes, compression: str) -> bytes:
    """The bytes of a block; raises ValueError."""
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


def _deflate(data: bytes) -> bytes:
    return zlib.decompressobj(-15).decompress(data, RECORD_BYTES_MAX + 1)


def _bzip2(data: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(data, RECORD_BYTES_MAX + 1)


def _xz(data: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(data, RECORD_BYTES_MAX + 1)


def _zstandard(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return bytes(stream.read(RECORD_BYTES_MAX + 1))


def _snappy(data: bytes) -> bytes:
    """Snappy as Avro has it: with the checksum of the bytes behind them."""
    packed, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    size = _size(packed)
    found = bytes(pa.Codec("snappy").decompress(packed, size, asbytes=True)) if size else b""
    if zlib.crc32(found).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise ValueError("the checksum of a block is wrong")
    return found


def _size(packed: bytes) -> int:
    """How many bytes there are, as Snappy says first."""
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
    "deflate": _deflate,
    "bzip2": _bzip2,
    "xz": _xz,
    "zstandard": _zstandard,
    "snappy": _snappy,
}
