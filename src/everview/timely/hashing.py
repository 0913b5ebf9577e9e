"""The 64-bit hash that orders rows everywhere: Spark's `xxhash64`, vectorised over Arrow columns with numpy.

Executors and the driver both sort, prune and search by it, so the two must agree to the bit: `hash_rows(columns)`
equals Spark's `xxhash64(c0, c1, ...)` for every supported type. Each column's hash seeds the next one's; a NULL
leaves the hash as it was; arrays and structs fold over their elements; -0.0 and 0.0 hash alike, as do all NaNs.
So rows that differ only in where their NULLs are may well share a hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from xxhash import xxh64_intdigest

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bytes = bytes | memoryview

SPARK_SEED = 42
_SLICE_ROWS = 1 << 15  # working arrays of a slice stay in the processor's cache
_FEW = 64  # up to so many values, or unfinished lists, hashing one by one is faster than vectorised
_LONG_BYTES = 1 << 10  # strings of this length or more are hashed one by one as well

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)

# Types by what their values hash as.
_INT32 = frozenset(each.id for each in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.date32()))
_INT64 = frozenset((pa.int64().id, pa.timestamp("us").id))
_FLOATS = frozenset((pa.float32().id, pa.float64().id))
_BYTES = frozenset(each.id for each in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()))

_WORD_PAIR = np.dtype((np.uint64, 2))  # a decimal, the low word first
_SIXTEEN_BYTES = np.dtype((np.uint8, 16))


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> I64:
    """The hash of each of `rows` rows over `columns`, in that order, as signed 64-bit integers."""
    result = np.empty(rows, dtype=np.uint64)
    for start in range(0, rows, _SLICE_ROWS):
        stop = min(start + _SLICE_ROWS, rows)
        seeds = np.full(stop - start, SPARK_SEED, dtype=np.uint64)
        for column in columns:
            seeds = _fold(one_chunk(column.slice(start, stop - start)), seeds)
        result[start:stop] = seeds
    return result.view(np.int64)


def hashable(dtype: pa.DataType) -> bool:
    """Whether columns of this type hash as Spark hashes them."""
    if pa.types.is_list(dtype):
        return hashable(dtype.value_type)
    if pa.types.is_struct(dtype):
        return all(hashable(dtype.field(i).type) for i in range(dtype.num_fields))
    if pa.types.is_timestamp(dtype):
        return bool(dtype.unit == "us" and dtype.tz in (None, "UTC"))
    return dtype.id in _INT32 | _INT64 | _BYTES | _FLOATS or bool(pa.types.is_decimal128(dtype))


def _is_big(dtype: pa.DataType) -> bool:
    """Whether values are decimals too large for a word, which hash by their bytes."""
    return bool(pa.types.is_decimal128(dtype) and dtype.precision > 18)


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values of a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _fold(column: pa.Array, seeds: U64) -> U64:
    """The hashes after `column`, given the hashes before it."""
    if len(column) <= _FEW:
        return np.fromiter(map(_chain, _pieces(column), seeds.tolist()), dtype=np.uint64, count=len(column))
    dtype = column.type
    if pa.types.is_struct(dtype):
        hashes = seeds
        for index in range(dtype.num_fields):
            hashes = _fold(column.field(index), hashes)
    elif pa.types.is_list(dtype):
        hashes = _fold_lists(column, seeds)
    elif dtype.id in _BYTES or _is_big(dtype):
        hashes = _hash_strings(*_byte_ranges(column), seeds)
    else:
        words = _words(column)
        hashes = _hash_long(words, seeds) if words.itemsize == 8 else _hash_int(words.astype(np.uint64), seeds)
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        hashes = np.where(valid, hashes, seeds)
    return hashes


def _fold_lists(column: pa.Array, seeds: U64) -> U64:
    """Fold all first elements at once, then all second ones, and so on while many lists are unfinished."""
    starts, lengths = list_bounds(column)
    hashes = seeds.copy()
    live = np.flatnonzero(lengths)
    position = 0
    while len(live) > _FEW:
        hashes[live] = _fold(column.values.take(pa.array(starts[live] + position)), hashes[live])
        position += 1
        live = live[lengths[live] > position]
    for row in live:
        rest = column.values.slice(starts[row] + position, lengths[row] - position)
        hashes[row] = _chain(chain.from_iterable(_pieces(rest)), int(hashes[row]))
    return hashes


def _chain(pieces: Iterable[Bytes], seed: int) -> int:
    """The hash of byte strings in turn, each seeded with the one before."""
    for piece in pieces:
        seed = xxh64_intdigest(piece, seed)
    return seed


def _pieces(column: pa.Array) -> list[Sequence[Bytes]]:
    """For each value, the byte strings to chain; a NULL has none, and a number hashes as its 4 or 8 bytes do."""
    dtype = column.type
    pieces: list[Sequence[Bytes]]
    if pa.types.is_struct(dtype):
        fields = [_pieces(column.field(index)) for index in range(dtype.num_fields)]
        pieces = [list(chain.from_iterable(field[row] for field in fields)) for row in range(len(column))]
    elif pa.types.is_list(dtype):
        starts, lengths = list_bounds(column)
        low, high = (int(starts[0]), int(starts[-1] + lengths[-1])) if len(column) else (0, 0)
        items = _pieces(column.values.slice(low, high - low))
        bounds = zip((starts - low).tolist(), (starts + lengths - low).tolist(), strict=True)
        pieces = [list(chain.from_iterable(items[start:stop])) for start, stop in bounds]
    elif dtype.id in _BYTES or _is_big(dtype):
        data, starts, lengths = _byte_ranges(column)
        pieces = [(piece,) for piece in _cut(data, starts, lengths)]
    else:
        words = _words(column)
        raw, width = words.tobytes(), words.itemsize
        pieces = [(raw[start : start + width],) for start in range(0, len(raw), width)]
    if column.null_count:
        pieces = [value if there else () for value, there in zip(pieces, column.is_valid().to_pylist(), strict=True)]
    return pieces


def _cut(data: npt.NDArray[np.uint8], starts: I64, lengths: I64) -> Iterator[memoryview]:
    for start, stop in zip(starts.tolist(), (starts + lengths).tolist(), strict=True):
        yield data.data[start:stop]


def _words(column: pa.Array) -> npt.NDArray[Any]:
    """A column of numbers as words of 4 or 8 bytes, the same word for the same number."""
    dtype = column.type
    if dtype.id in _INT64:
        return fixed_width(column, np.uint64)
    if dtype.id in _FLOATS:
        values = fixed_width(column, np.float32 if pa.types.is_float32(dtype) else np.float64)
        # Adding zero turns -0.0 into 0.0; assigning one NaN makes every NaN the canonical one.
        with np.errstate(invalid="ignore"):
            values = values + 0
        values[np.isnan(values)] = np.nan
        return values.view(np.dtype(f"u{values.itemsize}"))
    if pa.types.is_boolean(dtype):
        bits = column.fill_null(False) if column.null_count else column
        return bits.to_numpy(zero_copy_only=False).astype(np.uint32)  # type: ignore[no-any-return]
    if pa.types.is_decimal128(dtype):
        return np.ascontiguousarray(fixed_width(column, _WORD_PAIR)[:, 0])
    if dtype.id not in _INT32:
        raise TypeError(f"values of type {dtype} have no hash")
    return fixed_width(column, f"i{dtype.bit_width // 8}").astype(np.int32).view(np.uint32)


def fixed_width(column: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a fixed-width column without copying; under a NULL they are arbitrary."""
    buffer = column.buffers()[1]
    width = np.dtype(dtype)
    if buffer is None or len(column) == 0:
        return np.zeros(len(column), dtype=width)
    return np.frombuffer(buffer, dtype=width, count=len(column), offset=column.offset * width.itemsize)


def list_bounds(column: pa.Array) -> tuple[I64, I64]:
    """First child index and length of every list (or byte string); a NULL has length 0."""
    large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    width = np.dtype(np.int64 if large else np.int32)
    if len(column) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    offset = column.offset * width.itemsize
    offsets = np.frombuffer(column.buffers()[1], dtype=width, count=len(column) + 1, offset=offset)
    starts = offsets[:-1].astype(np.int64)
    lengths = offsets[1:].astype(np.int64) - starts
    if column.null_count:
        lengths[~column.is_valid().to_numpy(zero_copy_only=False)] = 0
    return starts, lengths


def _byte_ranges(column: pa.Array) -> tuple[npt.NDArray[np.uint8], I64, I64]:
    """Bytes, and where in them each string or big decimal starts and how long it is."""
    if _is_big(column.type):
        # Java's BigInteger bytes: big-endian two's complement without redundant leading bytes.
        big = np.ascontiguousarray(fixed_width(column, _SIXTEEN_BYTES)[:, ::-1])
        sign = np.where(big[:, 0] >= 128, 255, 0).astype(np.uint8)
        redundant = (big[:, :15] == sign[:, None]) & ((big[:, 1:] >= 128) == (sign[:, None] == 255))
        skipped = np.cumprod(redundant, axis=1, dtype=np.int64).sum(axis=1)
        return big.ravel(), np.arange(len(column), dtype=np.int64) * 16 + skipped, 16 - skipped
    starts, lengths = list_bounds(column)
    data = column.buffers()[2]
    return np.frombuffer(data if data is not None else b"", dtype=np.uint8), starts, lengths


def _rotate(values: U64, bits: int) -> U64:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _finish(values: U64) -> U64:
    values = (values ^ (values >> np.uint64(33))) * _P2
    values = (values ^ (values >> np.uint64(29))) * _P3
    return values ^ (values >> np.uint64(32))


def _hash_int(values: U64, seeds: U64) -> U64:
    return _finish(_mix_word32(seeds + (_P5 + np.uint64(4)), values))


def _hash_long(values: U64, seeds: U64) -> U64:
    return _finish(_mix_word64(seeds + (_P5 + np.uint64(8)), values))


def _mix_word32(hashes: U64, words: U64) -> U64:
    return _rotate(hashes ^ (words * _P1), 23) * _P2 + _P3


def _mix_word64(hashes: U64, words: U64) -> U64:
    return _rotate(hashes ^ (_rotate(words * _P2, 31) * _P1), 27) * _P1 + _P4


def _hash_strings(data: npt.NDArray[np.uint8], starts: I64, lengths: I64, seeds: U64) -> U64:
    """XXH64 of many byte strings: the long ones one by one, all others at once."""
    long = np.flatnonzero(lengths >= _LONG_BYTES)
    if len(long) == 0:
        return _hash_bytes(data, starts, lengths, seeds)
    hashes = _hash_bytes(data, starts, np.where(lengths < _LONG_BYTES, lengths, 0), seeds)
    each = map(xxh64_intdigest, _cut(data, starts[long], lengths[long]), seeds[long].tolist())
    hashes[long] = np.fromiter(each, dtype=np.uint64, count=len(long))
    return hashes


def _hash_bytes(data: npt.NDArray[np.uint8], starts: I64, lengths: I64, seeds: U64) -> U64:
    """XXH64 of byte strings at once: each step of the algorithm over all strings that still take part."""
    hashes = seeds + _P5
    long = np.flatnonzero(lengths >= 32)
    if len(long):
        hashes[long] = _hash_stripes(data, starts[long], lengths[long] // 32, seeds[long])
    hashes += lengths.view(np.uint64)
    rest = lengths & 31
    position = starts + (lengths - rest)
    words64 = _unaligned(data, np.dtype("<u8"))
    for step in range(3):
        live = np.flatnonzero(rest >= 8 * (step + 1))
        if len(live) == 0:
            break
        hashes[live] = _mix_word64(hashes[live], words64[position[live] + 8 * step])
    position = position + (rest & 24)
    live = np.flatnonzero(rest & 4)
    if len(live):
        words32 = _unaligned(data, np.dtype("<u4"))
        hashes[live] = _mix_word32(hashes[live], words32[position[live]].astype(np.uint64))
    position = position + (rest & 4)
    for step in range(3):
        live = np.flatnonzero((rest & 3) > step)
        if len(live) == 0:
            break
        tail = data[position[live] + step].astype(np.uint64)
        hashes[live] = _rotate(hashes[live] ^ (tail * _P5), 11) * _P1
    return _finish(hashes)


def _hash_stripes(data: npt.NDArray[np.uint8], starts: I64, stripes: I64, seeds: U64) -> U64:
    """The part of XXH64 that takes 32 bytes at a time in four lanes."""
    words = _unaligned(data, np.dtype("<u8"))
    lanes = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
    for stripe in range(int(stripes.max())):
        live = np.flatnonzero(stripes > stripe)
        for number, lane in enumerate(lanes):
            word = words[starts[live] + (32 * stripe + 8 * number)]
            lane[live] = _rotate(lane[live] + word * _P2, 31) * _P1
    hashes = _rotate(lanes[0], 1) + _rotate(lanes[1], 7) + _rotate(lanes[2], 12) + _rotate(lanes[3], 18)
    for lane in lanes:
        hashes = (hashes ^ (_rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
    return hashes


def _unaligned(data: npt.NDArray[np.uint8], dtype: np.dtype[np.uint64] | np.dtype[np.uint32]) -> npt.NDArray[np.uint64]:
    """A view with one word for every byte offset, so that words can be gathered from anywhere."""
    count = max(0, len(data) - dtype.itemsize + 1)
    if count == 0:
        return np.zeros(0, dtype=dtype)
    return np.ndarray((count,), dtype=dtype, buffer=data.data, strides=(1,))
