"""Columns of numerics: their digits in groups of four, from which both the text and the binary form are made."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.ir.types import NUMERIC_PRECISION, WORD_PRECISION, SqlType
from everview.server.pgwire.columns.cells import Cells, Mask, block_of, picked

Groups = npt.NDArray[np.int64]  # a row for each value, a column for each four digits
_BASE, _GROUP = 10_000, 4
_DIGITS = np.frombuffer(b"".join(b"%04d" % each for each in range(_BASE)), dtype=np.uint8).reshape(_BASE, _GROUP)
_ZERO, _POINT, _MINUS = b"0"[0], b"."[0], b"-"[0]
_NEGATIVE = 0x4000
_HEADER_BYTES = 8


class Numbers:
    """The numbers of a column: which are negative, and their digits in front of the point and behind it."""

    def __init__(self, column: pa.Array) -> None:
        self.scale: int = column.type.scale
        words = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
        low, high = words[0::2], words[1::2]
        if column.null_count:
            there = pc.is_valid(column).to_numpy(zero_copy_only=False)
            low, high = np.where(there, low, 0), np.where(there, high, 0)
        self.negative: Mask = high < 0
        one_word = self.scale <= WORD_PRECISION and bool(((low >> 63) == high).all())
        least = one_word and len(low) and int(low.min()) == -(2**63)
        self.whole, self.fraction = self._of_words(np.abs(low)) if one_word and not least else self._of_text(column)

    def _of_words(self, values: Groups) -> tuple[Groups, Groups]:
        unit = 10**self.scale
        whole, rest = (values, None) if self.scale == 0 else np.divmod(values, unit)
        largest = int(whole.max()) if len(whole) else 0
        groups = [whole]
        while largest >= _BASE:
            groups[:1] = np.divmod(groups[0], _BASE)
            largest //= _BASE
        behind = []
        left = self.scale
        while left > 0:
            assert rest is not None
            if left >= _GROUP:
                group, rest = np.divmod(rest, 10 ** (left - _GROUP))
            else:
                group = rest * 10 ** (_GROUP - left)
            behind.append(group)
            left -= _GROUP
        return np.stack(groups, axis=1), np.stack(behind, axis=1) if behind else np.zeros(
            (len(values), 0), dtype=np.int64
        )

    def _of_text(self, column: pa.Array) -> tuple[Groups, Groups]:
        """Of numbers that take more than a word: Arrow writes down their digits."""
        plain = pa.decimal128(NUMERIC_PRECISION, 0)
        unscaled = pa.Array.from_buffers(plain, len(column), column.buffers(), offset=column.offset)
        texts = pc.fill_null(pc.abs(unscaled), pa.scalar(0, plain)).cast(pa.string())
        width = NUMERIC_PRECISION + 2
        data = pc.ascii_lpad(texts, width, "0").buffers()[2]
        digits = np.frombuffer(data, np.uint8, width * len(column)).reshape(len(column), width) - _ZERO
        return _grouped(digits[:, : width - self.scale], left=True), _grouped(digits[:, width - self.scale :])


def _grouped(digits: npt.NDArray[np.uint8], *, left: bool = False) -> Groups:
    """Digits in groups of four, filled up with zeros at one side."""
    rows, width = digits.shape
    missing = -width % _GROUP
    filled = np.pad(digits, ((0, 0), (missing, 0) if left else (0, missing)))
    return np.asarray(filled.reshape(rows, -1, _GROUP).astype(np.int64) @ np.array([1000, 100, 10, 1]), dtype=np.int64)


def text(column: pa.Array, to: SqlType) -> Cells:
    """The text form: all digits of a declared scale, else no trailing zeros."""
    found = Numbers(column)
    rows, scale = len(column), found.scale
    whole = _DIGITS[found.whole].reshape(rows, -1)
    shown = np.logical_or.accumulate(whole != _ZERO, axis=1)
    shown[:, -1:] = True
    parts = [np.full((rows, 1), _MINUS, dtype=np.uint8), whole]
    kept = [found.negative[:, None], shown]
    if scale:
        fraction = _DIGITS[found.fraction].reshape(rows, -1)[:, :scale]
        behind = _shown_behind(fraction, to)
        parts += [np.full((rows, 1), _POINT, dtype=np.uint8), fraction]
        kept += [behind[:, :1], behind]
    return picked(np.concatenate(parts, axis=1), np.concatenate(kept, axis=1), column)


def _shown_behind(fraction: npt.NDArray[np.uint8], to: SqlType) -> Mask:
    """Which digits behind the point are shown."""
    if to.constrained:
        return np.ones(fraction.shape, dtype=bool)
    return np.logical_or.accumulate((fraction != _ZERO)[:, ::-1], axis=1)[:, ::-1]


def binary(column: pa.Array, to: SqlType) -> Cells:
    """The binary form: how many groups, the weight of the first, sign, digits behind the point, then the groups."""
    found = Numbers(column)
    rows, scale = len(column), found.scale
    groups = np.concatenate((found.whole, found.fraction), axis=1)
    begun = np.logical_or.accumulate(groups != 0, axis=1)
    kept = begun & np.logical_or.accumulate((groups != 0)[:, ::-1], axis=1)[:, ::-1]
    count = kept.sum(axis=1)
    header = np.zeros((rows, 4), dtype=">u2")
    header[:, 0] = count
    weight = found.whole.shape[1] - 1 - (~begun).sum(axis=1)
    header[:, 1] = np.where(count > 0, weight, 0).astype(np.int16).view(np.uint16)
    header[:, 2] = np.where(found.negative & (count > 0), _NEGATIVE, 0)
    if scale:
        header[:, 3] = _shown_behind(_DIGITS[found.fraction].reshape(rows, -1)[:, :scale], to).sum(axis=1)
    block = np.concatenate((block_of(header.reshape(-1)).reshape(rows, -1), _wide(groups)), axis=1)
    keep = np.concatenate((np.ones((rows, _HEADER_BYTES), dtype=bool), np.repeat(kept, 2, axis=1)), axis=1)
    return picked(block, keep, column)


def _wide(groups: Groups) -> npt.NDArray[np.uint8]:
    rows = len(groups)
    return np.ascontiguousarray(groups.astype(">u2")).view(np.uint8).reshape(rows, -1)
