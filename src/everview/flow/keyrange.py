"""Ranges of key hashes: how a materialization is split among workers.

A key's place is the upper half of its 64-bit hash, as an unsigned number of 32 bits. A range holds the places from
`begin` to `end`, both included, and the ranges of a materialization's splits partition all places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.flow.errors import InvalidMaterialization
from everview.timely.hashing import I64, hash_rows

PLACE_MAX = 2**32 - 1
SPLITS_MAX = 256

Places = npt.NDArray[np.int64]
_TEXT = re.compile(r"([0-9a-f]{8})-([0-9a-f]{8})")


@dataclass(frozen=True, slots=True, order=True)
class KeyRange:
    """The places from `begin` to `end`, both included."""

    begin: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.begin <= self.end <= PLACE_MAX:
            raise InvalidMaterialization(f"not a range of key hashes: {self.begin} to {self.end}")

    @classmethod
    def parse(cls, text: str) -> KeyRange:
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidMaterialization(f"not a range of key hashes: {text!r}", hint="write 00000000-ffffffff")
        return cls(int(match[1], 16), int(match[2], 16))

    def __str__(self) -> str:
        return f"{self.begin:08x}-{self.end:08x}"

    def overlaps(self, other: KeyRange) -> bool:
        """Whether some place is in both."""
        return self.begin <= other.end and other.begin <= self.end

    def meet(self, other: KeyRange) -> KeyRange | None:
        """The places in both."""
        begin, end = max(self.begin, other.begin), min(self.end, other.end)
        return KeyRange(begin, end) if begin <= end else None

    def minus(self, other: KeyRange) -> list[KeyRange]:
        """The places in this one only: nothing, or one or two ranges."""
        rest = []
        if self.begin < other.begin:
            rest.append(KeyRange(self.begin, min(self.end, other.begin - 1)))
        if other.end < self.end:
            rest.append(KeyRange(max(self.begin, other.end + 1), self.end))
        return rest

    def split(self, count: int) -> list[KeyRange]:
        """This range in `count` parts of equal size, give or take one place."""
        size = self.end - self.begin + 1
        if not 1 <= count <= min(size, SPLITS_MAX):
            raise InvalidMaterialization(f"a range cannot be split into {count}", detail=f"at most {SPLITS_MAX}")
        edges = [self.begin + size * n // count for n in range(count + 1)]
        return [KeyRange(low, high - 1) for low, high in pairwise(edges)]

    def holds(self, places: Places) -> npt.NDArray[np.bool_]:
        """For each place, whether it is in the range."""
        return (places >= self.begin) & (places <= self.end)


WHOLE = KeyRange(0, PLACE_MAX)


def check_partition(ranges: Iterable[KeyRange]) -> list[KeyRange]:
    """The ranges in order; an error unless they hold every place exactly once."""
    ordered = sorted(ranges)
    begin = 0
    for each in ordered:
        if each.begin != begin:
            raise InvalidMaterialization(
                "the splits of a materialization must hold every key once", detail=f"wrong at {begin:08x}: {each}"
            )
        begin = each.end + 1
    if begin != PLACE_MAX + 1:
        raise InvalidMaterialization("the splits of a materialization must hold every key", detail=f"up to {begin:08x}")
    return ordered


def hashes_of(table: pa.Table, key: Sequence[str]) -> I64:
    return hash_rows([table.column(name) for name in key], table.num_rows)


def places_of(hashes: I64) -> Places:
    """The place of each hash."""
    return (hashes >> 32) + 2**31
