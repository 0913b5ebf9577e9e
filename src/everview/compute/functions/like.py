"""LIKE patterns, matched in time that a hostile pattern does not stretch.

A pattern is segments between `%`. The first is at the beginning of the text, the last at its end, and each of the
others is taken where it first occurs behind the one before: a later place never helps. Python's search for a text takes
linear time. A segment with `_` is looked for by its longest literal part; if that occurs in too many wrong places, all
places are tried at once, as the bits of an integer. Long searches go in slices, between which a statement can be
canceled and others have their turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from everview.compute.allowance import ROW_BYTES, take
from everview.compute.cancel import check_wanted
from everview.compute.functions.contract import Failure

_SLICE = 1 << 20  # characters that are searched at once
_CHECK_EVERY = 1 << 12  # steps of some tenths of a microsecond
_WRONG_PARTS_MAX = 4_000  # literal parts that were looked at in wrong places: beyond, bits are faster
_WINDOW_MIN = 1 << 16  # places that are tried at once
_FEW_PLACES = 4
_CACHED_MAX = 4_096  # characters of a pattern that is worth to be remembered


@dataclass(frozen=True, slots=True)
class Segment:
    """The part of a pattern between two `%`: literal parts with their offsets, and `_` elsewhere."""

    length: int
    parts: tuple[tuple[int, str], ...]
    longest: tuple[int, str]  # of the parts

    @property
    def literal(self) -> str | None:
        """The text that the segment is; None if it has a `_`."""
        text = self.longest[1]
        return text if len(text) == self.length else None

    def is_at(self, text: str, place: int) -> bool:
        """Whether the text has this segment at a place."""
        if place < 0 or place + self.length > len(text):
            return False
        for count, (offset, part) in enumerate(self.parts, 1):
            if not text.startswith(part, place + offset):
                return False
            if count % _CHECK_EVERY == 0:
                check_wanted()
        return True

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from `start` on where the segment fits before `end`. -1 if it fits nowhere."""
        if not self.parts:
            return start if start + self.length <= end else -1
        offset, part = self.longest
        last = end - self.length + offset + len(part)  # where the part ends at the last place
        wrong = 0
        while (found := _find(text, part, start + offset, last)) >= 0:
            start = found - offset
            if len(self.parts) == 1 or self.is_at(text, start):
                return start
            start += 1
            wrong += len(self.parts)
            if wrong > _WRONG_PARTS_MAX:
                return self._find_by_bits(text, start, end)
        return -1

    def _find_by_bits(self, text: str, start: int, end: int) -> int:
        """The first place, found by bits: bit n stands for place n, and stays 1 as long as all characters match."""
        window = max(_WINDOW_MIN, 2 * self.length)
        for first in range(start, end - self.length + 1, window):
            stretch = _Stretch(text[first : min(end, first + window + self.length - 1)])
            places = (1 << (stretch.length - self.length + 1)) - 1
            for count, (offset, character) in enumerate(self._characters(), 1):
                places &= stretch.occurrences(character) >> offset
                if count % 16 == 0:
                    check_wanted()
                    if places.bit_count() <= _FEW_PLACES:
                        break
            while places:
                lowest = places & -places
                if self.is_at(text, first + lowest.bit_length() - 1):
                    return first + lowest.bit_length() - 1
                places ^= lowest
        return -1

    def _characters(self) -> Iterator[tuple[int, str]]:
        for offset, part in self.parts:
            yield from enumerate(part, offset)


class _Stretch:
    """A part of a text that knows where each character occurs in it."""

    def __init__(self, text: str) -> None:
        self._codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        self._known: dict[str, int] = {}
        self.length = len(text)

    def occurrences(self, character: str) -> int:
        """An integer whose bit n is 1 where the character is at n."""
        if character not in self._known:
            bits = np.packbits(self._codes == ord(character), bitorder="little")
            self._known[character] = int.from_bytes(bits.tobytes(), "little")
        return self._known[character]


def _find(text: str, part: str, start: int, end: int) -> int:
    """`str.find`, in slices."""
    step = max(_SLICE, 4 * len(part))
    while end - start > step + len(part):
        found = text.find(part, start, start + step + len(part) - 1)
        if found >= 0:
            return found
        check_wanted()
        start += step
    return text.find(part, start, end)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A LIKE pattern, as the segments between its `%`."""

    segments: tuple[Segment, ...]
    ignore_case: bool

    def matches(self, text: str) -> bool:
        if self.ignore_case:
            text = _folded(text)
        first, last = self.segments[0], self.segments[-1]
        if len(self.segments) == 1:
            return len(text) == first.length and first.is_at(text, 0)
        place, end = first.length, len(text) - last.length
        if place > end or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        for count, segment in enumerate(self.segments[1:-1], 1):
            place = segment.find(text, place, end)
            if place < 0:
                return False
            place += segment.length
            if count % _CHECK_EVERY == 0:
                check_wanted()
        return True


def like(pattern: str, escape: str = "\\", *, ignore_case: bool = False) -> Pattern:
    if len(escape) > 1:
        raise Failure("22025", "invalid escape string")
    return (_remembered if len(pattern) <= _CACHED_MAX else _pattern)(pattern, escape, ignore_case)


def java(pattern: Pattern) -> str:
    """An equivalent regular expression for Java; one that ignores case matches folded texts.

    What stands between two `%` is taken where it first occurs, for good (an atomic group). The time is the length of
    the text times that of the longest segment.
    """
    first, *others = (_expression(segment) for segment in pattern.segments)
    between = "".join(f"(?>.*?{each})" for each in others[:-1])
    return f"(?s)^{first}{between}" + (f".*{others[-1]}" if others else "") + r"\z"


def _expression(segment: Segment) -> str:
    written, place = [], 0
    for offset, part in segment.parts:
        written += ["." * (offset - place), *map(_plain, part)]
        place = offset + len(part)
    return "".join([*written, "." * (segment.length - place)])


def _plain(character: str) -> str:
    return character if character.isalnum() or ord(character) > 127 else "\\" + character


def _segment(length: int, parts: Sequence[tuple[int, str]]) -> Segment:
    return Segment(length, tuple(parts), max(parts, key=lambda each: len(each[1]), default=(0, "")))


def _pattern(pattern: str, escape: str, ignore_case: bool) -> Pattern:
    segments: list[Segment] = []
    parts: list[tuple[int, str]] = []
    literal: list[str] = []
    length = start = 0  # of the segment, and where the literal at hand begins in it

    def close_literal() -> None:
        nonlocal length, start
        if literal:
            text = "".join(literal)
            parts.append((start, _folded(text) if ignore_case else text))
            literal.clear()
            length = start + len(text)
        start = length

    for count, match in enumerate(_tokens(escape).finditer(pattern), 1):
        token = match[0]
        if escape and token[0] == escape:
            if len(token) == 1:
                raise Failure("22025", "LIKE pattern must not end with escape character")
            literal.append(token[1])
        elif token == "%":
            close_literal()
            if length or not segments:
                segments.append(_segment(length, parts))
            parts.clear()
            length = start = 0
        elif token == "_":
            close_literal()
            length = start = start + 1
        else:
            literal.append(token)
        if count % _CHECK_EVERY == 0:
            check_wanted()
            take(_CHECK_EVERY * ROW_BYTES)
    close_literal()
    return Pattern((*segments, _segment(length, parts)), ignore_case)


_remembered = lru_cache(maxsize=1024)(_pattern)


@lru_cache(maxsize=64)
def _tokens(escape: str) -> re.Pattern[str]:
    """The tokens of a pattern. An escape comes first, for it may be `%` or `_` itself."""
    quoted = re.escape(escape)
    return re.compile(f"{quoted}.|{quoted}|%|_|[^%_{quoted}]+" if escape else "%|_|[^%_]+", re.DOTALL)


def _folded(text: str) -> str:
    """The text in small letters, character by character as in PostgreSQL, so that its length stays the same.

    Left to it, Python would look at what is around a sigma, and make two characters of an I with a dot.
    """
    if len(text) <= _SLICE:
        return text.replace("İ", "i").replace("Σ", "σ").lower()
    slices = []
    for start in range(0, len(text), _SLICE):
        slices.append(_folded(text[start : start + _SLICE]))
        check_wanted()
    return "".join(slices)
