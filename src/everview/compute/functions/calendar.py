"""The calendar in whole numbers: days and microseconds since 1970, months, and the parts of a day.

Python's datetime ends with the year 9999; sums on the way to a result may pass it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from everview.compute.functions.contract import Failure
from everview.compute.functions.numbers import whole
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import Interval, Kind

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
EPOCH = datetime(1970, 1, 1)
EPOCH_DATE = date(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the day so many after the epoch."""
    shifted = days + 719_468  # from 1 March of the year 0: then the leap day is the last of a year
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted_month + 2) // 5 + 1


def days_of(year: int, month: int, day: int) -> int:
    """The inverse of `civil`."""
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year - 719_468


def units(amount: int, size: int) -> int:
    """How many whole units an amount has, rounded towards zero."""
    return abs(amount) // size * (1 if amount >= 0 else -1)


def rest(amount: int, size: int) -> int:
    """The amount without its whole units; it has the sign of the amount."""
    return amount - units(amount, size) * size


def month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def micros_of(value: date | Infinite) -> int:
    """A date or timestamp as microseconds since the epoch; fails for an infinity."""
    if isinstance(value, Infinite):
        raise Failure("22008", f"{value.value} is no date of the calendar")
    if isinstance(value, datetime):
        return (value.replace(tzinfo=None) - EPOCH) // _MICROSECOND
    return (value - EPOCH_DATE).days * DAY


def timestamp(micros: int, kind: Kind) -> datetime:
    """The timestamp or timestamptz at so many microseconds since the epoch."""
    try:
        value = EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise Failure("22008", "timestamp out of range") from None
    return value.replace(tzinfo=UTC) if kind is Kind.TIMESTAMPTZ else value


def day(days: int) -> date:
    """The date so many days after the epoch."""
    try:
        return EPOCH_DATE + timedelta(days=days)
    except OverflowError:
        raise Failure("22008", "date out of range") from None


def add_months(micros: int, months: int) -> int:
    """The same day and time so many months on, or the last day of that month if it has no such day."""
    days, time = divmod(micros, DAY)
    year, month, of_month = civil(days)
    index = year * 12 + month - 1 + months
    year, month = index // 12, index % 12 + 1
    return days_of(year, month, min(of_month, month_length(year, month))) * DAY + time


def add_interval(micros: int, span: Interval, sign: int = 1) -> int:
    """Months first, then days, then the rest."""
    moved = add_months(micros, sign * span.months) if span.months else micros
    return moved + sign * (span.days * DAY + span.micros)


def make_interval(months: int, days: int, micros: int) -> Interval:
    """An interval whose parts are within their ranges."""
    try:
        return Interval(whole(months, Kind.INT4), whole(days, Kind.INT4), whole(micros, Kind.INT8))
    except Failure:
        raise Failure("22008", "interval out of range") from None
