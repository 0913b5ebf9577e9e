"""Milliseconds since the epoch as timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of(milliseconds: int) -> datetime:
    """The moment as a timestamp; those that no timestamp can say are the last that one can."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
