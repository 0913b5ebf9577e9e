"""Durations as users write them, in milliseconds."""

from __future__ import annotations

from decimal import Decimal

from everview.compute.functions.contract import Failure
from everview.compute.functions.datetime_input import read_interval

TIMEOUT_MS_MAX = 2**31 - 1
_UNITS = {
    **{"us": Decimal("0.001"), "ms": Decimal(1), "s": Decimal(1_000), "min": Decimal(60_000)},
    **{"h": Decimal(3_600_000), "d": Decimal(86_400_000)},
}


def duration_ms(text: str, most_ms: int = TIMEOUT_MS_MAX) -> int:
    """Parse a duration: a number of milliseconds, a number with a unit, or an interval; `most_ms` at most."""
    stripped = text.strip().lower()
    for unit, factor in sorted(_UNITS.items(), key=lambda pair: -len(pair[0])):
        number = stripped.removesuffix(unit).strip()
        if stripped.endswith(unit) and number.replace(".", "", 1).isdigit():
            return _checked(Decimal(number) * factor, most_ms)
    if stripped.isdigit():
        return _checked(Decimal(stripped), most_ms)
    try:
        interval = read_interval(text)
    except Failure as failure:
        raise ValueError("a duration is required, such as 500ms or 5s") from failure
    if interval.months:
        raise ValueError("months have no fixed length")
    return _checked(interval.days * 86_400_000 + Decimal(interval.micros) / 1_000, most_ms)


def _checked(milliseconds: Decimal, most_ms: int) -> int:
    if not 0 <= milliseconds <= most_ms:
        raise ValueError(f"must be between 0 and {most_ms} ms")
    return int(milliseconds)
