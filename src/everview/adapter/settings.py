"""Settings of a session: which there are, what values they take, and how they come and go with transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everview.adapter.errors import INVALID_PARAMETER_VALUE
from everview.adapter.host import SERVER_VERSION
from everview.adapter.statements.words import Words
from everview.compute.functions.contract import Failure
from everview.compute.functions.datetime_input import read_interval
from everview.compute.functions.input import FALSE, TRUE
from everview.compute.sql.errors import UNDEFINED_OBJECT, SqlError, did_you_mean

STRICT, SERIALIZABLE = "strict serializable", "serializable"
PEEK_ENGINE = "everview_peek_engine"
AUTO, LOCAL, SPARK = "auto", "local", "spark"
TIMEOUT_MS_MAX = 2**31 - 1
_UNITS = {"us": 0.001, "ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; `read` checks a value and gives it as it is kept. A fixed one cannot be set."""

    name: str
    default: str
    read: Callable[[str], str]
    description: str = ""
    told: bool = False  # clients are told when it changes
    fixed: bool = False


def _any(text: str) -> str:
    return text


def _encoding(text: str) -> str:
    if text.upper().replace("-", "").replace("_", "") not in ("UTF8", "UNICODE"):
        raise ValueError("only UTF8 is supported")
    return "UTF8"


def _isolation(text: str) -> str:
    level = " ".join(text.lower().replace("_", " ").split())
    if level == STRICT:
        return STRICT
    if level in (SERIALIZABLE, "repeatable read", "read committed", "read uncommitted"):
        return SERIALIZABLE
    raise ValueError(f"{STRICT} and {SERIALIZABLE} exist")


def _zone(text: str) -> str:
    if text.upper() in ("UTC", "GMT", "Z", "ZULU", "+00", "+00:00", "0"):
        return "UTC"
    try:
        name = ZoneInfo(text).key
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("no such time zone") from error
    # Were it taken, times would have to be read and shown in it everywhere, also by views that others share.
    raise ValueError(f"sessions are in UTC; write a time in another zone as t AT TIME ZONE '{name}'")


def _boolean(text: str) -> str:
    if text.lower() in TRUE:
        return "on"
    if text.lower() in FALSE:
        return "off"
    raise ValueError("a boolean is required")


def _duration(text: str) -> str:
    """Milliseconds, or a number with a unit, as in `5s`."""
    return str(duration_ms(text))


def duration_ms(text: str) -> int:
    """A duration in milliseconds: a number of them, a number with a unit, or an interval."""
    stripped = text.strip().lower()
    for unit, factor in sorted(_UNITS.items(), key=lambda pair: -len(pair[0])):
        number = stripped.removesuffix(unit).strip()
        if stripped.endswith(unit) and number.replace(".", "", 1).isdigit():
            return _checked(float(number) * factor)
    if stripped.isdigit():
        return _checked(float(stripped))
    try:
        interval = read_interval(text)
    except Failure as failure:
        raise ValueError("a duration is required, such as 500ms or 5s") from failure
    if interval.months:
        raise ValueError("months have no fixed length")
    return _checked(interval.days * 86_400_000 + interval.micros / 1_000)


def _checked(milliseconds: float) -> int:
    if not 0 <= milliseconds <= TIMEOUT_MS_MAX:
        raise ValueError(f"must be between 0 and {TIMEOUT_MS_MAX} ms")
    return int(milliseconds)


def _one_of(*options: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        for option in options:
            if option.lower() == text.lower():
                return option
        raise ValueError(f"one of {', '.join(options)}")

    return read


def _integer(low: int, high: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(f"must be between {low} and {high}")
        return str(number)

    return read


def _date_style(text: str) -> str:
    if not text.lower().startswith(("iso", "mdy", "ymd", "dmy")):
        raise ValueError("only ISO is supported")
    return "ISO, MDY"


def _search_path(text: str) -> str:
    names = search_path(text)
    return ", ".join(f'"{name}"' if name != name.lower() or not name.isidentifier() else name for name in names)


@lru_cache(1_000)  # every statement asks
def search_path(text: str) -> tuple[str, ...]:
    """The schemas that a search path lists."""
    words = Words(text.replace("$user", "user_").replace('""', ""))
    names = []
    while not words.done:
        token = words.take()
        if token.kind in ("word", "quoted", "string"):
            names.append(token.value)
        elif not token.is_symbol(","):
            raise ValueError("a list of schemas is required")
    return tuple(name for name in names if name != "user_")


_LIST = (
    Setting("application_name", "", _any, "the name that the client gives itself", told=True),
    Setting("client_encoding", "UTF8", _encoding, "the encoding of texts sent and received", told=True),
    Setting("DateStyle", "ISO, MDY", _date_style, "how dates are written", told=True),
    Setting("IntervalStyle", "postgres", _one_of("postgres"), "how intervals are written", told=True),
    Setting("TimeZone", "UTC", _zone, "the time zone of sessions; see `AT TIME ZONE` for others", told=True),
    Setting("integer_datetimes", "on", _boolean, "datetimes are kept as integers", told=True, fixed=True),
    Setting("server_encoding", "UTF8", _encoding, "the encoding of texts at rest", told=True, fixed=True),
    Setting("server_version", SERVER_VERSION, _any, "the version that clients may count on", told=True, fixed=True),
    Setting("server_version_num", "160004", _any, "the same as a number", fixed=True),
    Setting("standard_conforming_strings", "on", _one_of("on"), "backslashes in strings are plain", told=True),
    Setting("is_superuser", "on", _boolean, "whether the role is a superuser", told=True, fixed=True),
    Setting("search_path", "public", _search_path, "where names without a schema are looked up"),
    Setting("transaction_isolation", STRICT, _isolation, "the isolation level of transactions"),
    Setting("default_transaction_isolation", STRICT, _isolation, "the same"),
    Setting("transaction_read_only", "off", _boolean, "whether the transaction only reads"),
    Setting("default_transaction_read_only", "off", _boolean, "whether transactions only read"),
    Setting("statement_timeout", "0", _duration, "how long a statement may take, in milliseconds; 0 is no limit"),
    Setting("lock_timeout", "0", _duration, "accepted for compatibility"),
    Setting("idle_in_transaction_session_timeout", "0", _duration, "accepted for compatibility"),
    Setting("extra_float_digits", "1", _integer(-15, 3), "accepted for compatibility"),
    Setting("client_min_messages", "notice", _any, "accepted for compatibility"),
    Setting("bytea_output", "hex", _one_of("hex"), "how bytea values are written"),
    Setting("max_identifier_length", "255", _any, "how long names may be", fixed=True),
    Setting("row_security", "on", _boolean, "accepted for compatibility"),
    Setting("default_table_access_method", "heap", _any, "accepted for compatibility"),
    Setting("jit", "off", _boolean, "accepted for compatibility"),
    Setting("cluster", "default", _any, "there is one cluster"),
    Setting(
        PEEK_ENGINE, AUTO, _one_of(AUTO, LOCAL, SPARK), "where reads are computed: by their size, here, or on Spark"
    ),
)
SETTINGS: Mapping[str, Setting] = {each.name.lower(): each for each in _LIST}
_TOLD = {each.name.lower(): each.name for each in _LIST if each.told}


Mark: TypeAlias = tuple[Mapping[str, str], Mapping[str, str]]  # values, and LOCAL ones


class Settings:
    """The values of one session. Changes inside a transaction are undone if it fails; LOCAL ones end with it."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._initial = {name: setting.default for name, setting in SETTINGS.items()}
        for name, value in given.items():
            if name.lower() == "timezone":
                continue  # drivers ask for the zone of their machine; they are told what it is, and go by that
            self._initial[self._known(name).name.lower()] = self._read(self._known(name), value)
        self._values = dict(self._initial)
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}

    def get(self, name: str) -> str:
        """The value of a setting."""
        key = self._known(name).name.lower()
        return self._local[key] if key in self._local else self._values[key]

    @property
    def all(self) -> Mapping[str, str]:
        """All values, by names in lower case."""
        return {**self._values, **self._local} if self._local else self._values

    @property
    def told(self) -> Mapping[str, str]:
        """What clients are told of."""
        values = self.all
        return {shown: values[name] for name, shown in _TOLD.items()}

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Set a value; None is the one that the session began with."""
        setting = self._known(name)
        key = setting.name.lower()
        if setting.fixed:
            raise SqlError("55P02", f'parameter "{setting.name}" cannot be changed')
        new = self._initial[key] if value is None else self._read(setting, value)
        for each in _same(key):
            if local:
                self._local[each] = new
            else:
                self._values = {**self._values, each: new}  # a copy: whoever was given the values keeps those
                self._local.pop(each, None)

    def reset(self) -> None:
        """All values as the session began with."""
        self._values, self._local = dict(self._initial), {}

    def begin(self) -> None:
        """A transaction begins."""
        if self._before is None:
            self._before = self._values

    def end(self, *, commit: bool) -> None:
        """A transaction ends."""
        if self._before is not None and not commit:
            self._values = self._before
        self._before, self._local = None, {}

    def mark(self) -> Mark:
        """The values as they are, to go back to."""
        return dict(self._values), dict(self._local)

    def back_to(self, mark: Mark) -> None:
        """The values as they were."""
        self._values, self._local = dict(mark[0]), dict(mark[1])

    @staticmethod
    def _known(name: str) -> Setting:
        found = SETTINGS.get(name.lower())
        if found is None:
            hint = did_you_mean(name.lower(), SETTINGS)
            raise SqlError(UNDEFINED_OBJECT, f'unrecognized configuration parameter "{name}"', hint=hint)
        return found

    @staticmethod
    def _read(setting: Setting, value: str) -> str:
        try:
            return setting.read(value)
        except ValueError as error:
            message = f'invalid value for parameter "{setting.name}": "{value}"'
            raise SqlError(INVALID_PARAMETER_VALUE, message, detail=str(error)) from error


def _same(key: str) -> tuple[str, ...]:
    """Settings that are one under two names."""
    pair = ("transaction_isolation", "default_transaction_isolation")
    return pair if key in pair else (key,)
