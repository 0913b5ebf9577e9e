"""Settings of a session: which there are, what values they take, and how they come and go with transactions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everview.adapter.errors import INVALID_PARAMETER_VALUE
from everview.adapter.session_binding import SERVER_VERSION
from everview.adapter.statements.options import check_cluster
from everview.adapter.statements.words import Words
from everview.compute.allowance import memory_share
from everview.compute.functions.datetime_input import duration_ms
from everview.compute.functions.input import FALSE, TRUE
from everview.compute.sql.errors import UNDEFINED_OBJECT, SqlError, did_you_mean

STRICT, SERIALIZABLE = "strict serializable", "serializable"
PEEK_ENGINE, LOCAL_MEMORY = "everview_peek_engine", "everview_local_memory"
LOCAL_MEMORY_DEFAULT = 256 << 20
LOCAL_MEMORY_MIN = 1 << 20
IS_SUPERUSER = "is_superuser"
RECENCY, RECENCY_TIMEOUT = "real_time_recency", "real_time_recency_timeout"
AUTO, LOCAL, SPARK = "auto", "local", "spark"
VALUE_LENGTH_MAX = 4_096  # others are told of it, and what it means is kept
MESSAGES = ("debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; `read` checks a value and gives it as it is kept. A fixed one cannot be set.

    Each setting has a meaning here, or takes its one true value only, or is `harmless`: drivers and tools send it, and
    this says why nothing follows from any of its values.
    """

    name: str
    default: str
    read: Callable[[str], str]
    description: str = ""
    told: bool = False  # clients are told when it changes
    fixed: bool = False
    harmless: str = ""


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


def _off(text: str) -> str:
    if _boolean(text) == "on":
        raise ValueError("only off is supported")
    return "off"


def local_memory_max() -> int:
    """The most that one statement may be allowed: a quarter of the machine's memory."""
    return max(LOCAL_MEMORY_DEFAULT, memory_share())


def _memory(text: str) -> str:
    """Bytes, or a number with a unit, as in `512MB`."""
    match = re.fullmatch(r"\s*(\d{1,15})\s*(B|kB|MB|GB)?\s*", text, re.IGNORECASE)
    if match is None:
        raise ValueError("a number of bytes, or one with the unit kB, MB or GB, is required")
    size = int(match[1]) << {"b": 0, "kb": 10, "mb": 20, "gb": 30}[(match[2] or "B").lower()]
    if not LOCAL_MEMORY_MIN <= size <= local_memory_max():
        raise ValueError(f"{LOCAL_MEMORY_MIN} to {local_memory_max()} bytes are possible")
    return str(size)


def _duration(text: str) -> str:
    """Milliseconds, or a number with a unit, as in `5s`."""
    return str(duration_ms(text))


def _one_of(*options: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        for option in options:
            if option.lower() == text.lower():
                return option
        raise ValueError(f"one of {', '.join(options)}")

    return read


def _date_style(text: str) -> str:
    if not {part.strip().lower() for part in text.split(",")} <= {"iso", "mdy", "us"}:
        raise ValueError("dates are written as ISO, and read as ISO or with the month first (MDY)")
    return "ISO, MDY"


def _float_digits(text: str) -> str:
    if not 1 <= int(text) <= 3:
        raise ValueError("floats are always written exactly, in the fewest digits, which is what 1 to 3 mean")
    return str(int(text))


def _cluster(text: str) -> str:
    check_cluster(text)
    return text


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
    Setting(IS_SUPERUSER, "off", _boolean, "whether the role is a superuser", told=True, fixed=True),
    Setting("search_path", "public", _search_path, "where names without a schema are looked up"),
    Setting("transaction_isolation", STRICT, _isolation, "the isolation level of transactions"),
    Setting("default_transaction_isolation", STRICT, _isolation, "the same"),
    Setting("transaction_read_only", "off", _boolean, "whether the transaction only reads"),
    Setting("default_transaction_read_only", "off", _boolean, "whether transactions only read"),
    Setting("statement_timeout", "0", _duration, "how long a statement may take, in milliseconds; 0 is no limit"),
    Setting(
        RECENCY,
        "off",
        _boolean,
        "whether reads of sources first wait until all is in that is committed upstream when they begin",
    ),
    Setting(RECENCY_TIMEOUT, "10000", _duration, "how long they wait for that, in milliseconds; 0 is no limit"),
    Setting("lock_timeout", "0", _duration, "how long to wait for one's turn to write, in milliseconds; 0 is no limit"),
    Setting(
        "idle_in_transaction_session_timeout",
        "0",
        _duration,
        "how long a client may stay silent in a transaction, in milliseconds; 0 is no limit",
    ),
    Setting(
        "idle_session_timeout",
        "0",
        _duration,
        "how long a client may stay silent outside of transactions, in milliseconds; 0 is no limit",
    ),
    Setting("extra_float_digits", "1", _float_digits, "floats are written exactly, in the fewest digits: 1 to 3"),
    Setting("client_min_messages", "notice", _one_of(*MESSAGES), "the least severe messages that clients are told"),
    Setting("bytea_output", "hex", _one_of("hex"), "how bytea values are written"),
    Setting("password_encryption", "scram-sha-256", _one_of("scram-sha-256"), "how passwords are stored"),
    Setting("max_identifier_length", "255", _any, "how long names may be", fixed=True),
    Setting(
        "row_security", "on", _boolean, "whether policies of rows are applied", harmless="there are no such policies"
    ),
    Setting("default_table_access_method", "heap", _one_of("heap"), "how tables are kept: there is one way"),
    Setting("jit", "off", _off, "PostgreSQL's compiler of queries, which is not here"),
    Setting("cluster", "default", _cluster, "there is one cluster"),
    Setting(
        LOCAL_MEMORY,
        str(LOCAL_MEMORY_DEFAULT),
        _memory,
        "how much memory a statement may take in the server itself, in bytes, up to a quarter of the machine's",
    ),
    Setting(
        PEEK_ENGINE, AUTO, _one_of(AUTO, LOCAL, SPARK), "where reads are computed: by their size, here, or on Spark"
    ),
)
SETTINGS: Mapping[str, Setting] = {each.name.lower(): each for each in _LIST}
_TOLD = {each.name.lower(): each.name for each in _LIST if each.told}


Mark: TypeAlias = tuple[Mapping[str, str], Mapping[str, str]]  # values, and LOCAL ones


class Settings:
    """The values of one session. Changes inside a transaction are undone if it fails; LOCAL ones end with it.

    `given` is what the client asks for as it connects, `superuser` whether its role is one.
    """

    def __init__(self, given: Mapping[str, str], *, superuser: bool = False) -> None:
        self._initial = {name: setting.default for name, setting in SETTINGS.items()}
        self._initial[IS_SUPERUSER] = "on" if superuser else "off"
        for name, value in given.items():
            if name.lower() == "timezone":
                continue  # drivers ask for the zone of their machine; they are told what it is, and go by that
            setting = self._known(name)
            key = setting.name.lower()
            new = self._read(setting, value)
            if setting.fixed and new != self._initial[key]:
                raise _unchangeable(setting)
            self._initial[key] = new
        self._values = dict(self._initial)
        self._before: dict[str, str] | None = None
        self._local: dict[str, str] = {}

    def get(self, name: str) -> str:
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
        """Set a value. None sets the value that the session began with."""
        setting = self._known(name)
        key = setting.name.lower()
        if setting.fixed:
            raise _unchangeable(setting)
        new = self._initial[key] if value is None else self._read(setting, value)
        pair = ("transaction_isolation", "default_transaction_isolation")
        for each in pair if key in pair else (key,):
            if local:
                self._local[each] = new
            else:
                self._values = {**self._values, each: new}  # a copy: whoever was given the values keeps those
                self._local.pop(each, None)

    def reset(self) -> None:
        """All values as the session began with."""
        self._values, self._local = dict(self._initial), {}

    def begin(self) -> None:
        if self._before is None:
            self._before = self._values

    def end(self, *, commit: bool) -> None:
        if self._before is not None and not commit:
            self._values = self._before
        self._before, self._local = None, {}

    def mark(self) -> Mark:
        """The values as they are, to go back to."""
        return dict(self._values), dict(self._local)

    def back_to(self, mark: Mark) -> None:
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
        if len(value) > VALUE_LENGTH_MAX:
            message = f'invalid value for parameter "{setting.name}"'
            detail = f"it has {len(value):,} characters, and at most {VALUE_LENGTH_MAX:,} are possible"
            raise SqlError(INVALID_PARAMETER_VALUE, message, detail=detail)
        try:
            return setting.read(value)
        except ValueError as error:
            message = f'invalid value for parameter "{setting.name}": "{value}"'
            raise SqlError(INVALID_PARAMETER_VALUE, message, detail=str(error)) from error


def _unchangeable(setting: Setting) -> SqlError:
    return SqlError("55P02", f'parameter "{setting.name}" cannot be changed')
