"""How long history is kept: RETAIN HISTORY FOR a duration, or 'infinity'."""

from __future__ import annotations

from everview.adapter.catalog.items import Collection
from everview.adapter.errors import INVALID_PARAMETER_VALUE
from everview.adapter.history import HISTORY_LAG_MS
from everview.compute.functions.datetime_input import duration_ms
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Follow
from everview.storage.environment import Environment
from everview.timely.lattice import TIME_MAX

FOR_EVER_MS = TIME_MAX  # no time is further away from another
_FOR_EVER = "infinity"


def retain_ms(text: str, option: str = "RETAIN HISTORY") -> int:
    """A time for which history is kept."""
    if text.strip().lower() == _FOR_EVER:
        return FOR_EVER_MS
    try:
        return duration_ms(text, most_ms=FOR_EVER_MS - 1)
    except ValueError as error:
        hint = f"a duration, such as '30 days', or '{_FOR_EVER}'"
        message = f'invalid {option}: "{text}"'
        raise SqlError(INVALID_PARAMETER_VALUE, message, detail=str(error), hint=hint) from error


def shown_retention(milliseconds: int) -> str:
    """A time for which history is kept, as it is written."""
    return _FOR_EVER if milliseconds >= FOR_EVER_MS else f"{milliseconds} ms"


def lag_ms(retain: int | None) -> int:
    """How far behind the end of history a reader stays that is to keep so much of the past."""
    return 0 if retain is None else max(0, retain - HISTORY_LAG_MS)


def follow_history(environment: Environment, item: Collection, retain: int | None) -> Follow:
    """What lets the collection of an item keep so much of the past."""
    assert item.reader is not None
    reader = environment.present(item.id, item.reader)
    assert reader.clock is not None
    return Follow(reader, reader.clock, lag_ms(retain))
