"""A small adapter in memory that keeps the contract: tables, transactions, COPY, subscriptions, cancel.

It understands a handful of statements, enough for the server to be driven by real clients through all of its parts.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import pyarrow as pa

from everview.adapter.contract import (
    Carried,
    Column,
    CopyFormat,
    CopyOut,
    Done,
    Notice,
    Prepared,
    Result,
    Row,
    Status,
    Value,
)
from everview.adapter.passwords import make_verifier
from everview.compute.functions.contract import Failure
from everview.compute.functions.input import from_text
from everview.compute.ir import types as t
from everview.compute.ir.types import SqlType
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.sql.errors import SqlError
from everview.storage.errors import Indeterminate, StorageFull
from tests.server import fake_sql

BATCH_ROWS = 500
POLL_S = 0.01


@dataclass
class Table:
    columns: tuple[Column, ...]
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """The adapter's own part of a prepared statement: what to do with the values."""

    run: Callable[[Sequence[Value]], Result]
    ends_block: bool = False


class FakeRows:
    """Rows of a generator."""

    def __init__(self, columns: tuple[Column, ...], make: Callable[[], Iterator[Sequence[Row]]], verb: str) -> None:
        self.columns = columns
        self._make = make
        self._verb = verb
        self.closed = False

    def batches(self) -> Iterator[Sequence[Row]]:
        for batch in self._make():
            if self.closed:
                return
            yield batch

    def tag(self, rows: int) -> str:
        return f"{self._verb} {rows}"

    def close(self) -> None:
        self.closed = True


class FakeCopyIn:
    """COPY into a table: nothing is stored unless all rows come."""

    def __init__(self, session: FakeSession, name: str, form: CopyFormat) -> None:
        self._session = session
        self._name = name
        self.columns = session.table(name).columns
        self.format = form

    def finish(self, rows: Iterable[Row | pa.Table]) -> str:
        taken: list[Row] = []
        for each in rows:
            found = rows_from_arrow(each, [c.type for c in self.columns]) if isinstance(each, pa.Table) else {each: 1}
            taken += [row for row, count in found.items() for _ in range(count)]
        self._session.write(self._name, taken)
        return f"COPY {len(taken)}"


class FakeSession:
    """One client's session."""

    def __init__(self, adapter: FakeAdapter, user: str, settings: Mapping[str, str]) -> None:
        self._adapter = adapter
        self._user = user
        self._parameters = {
            "server_version": "18.0",
            "server_encoding": "UTF8",
            "client_encoding": "UTF8",
            "application_name": "",
            "DateStyle": "ISO, MDY",
            "IntervalStyle": "postgres",
            "TimeZone": "UTC",
            "integer_datetimes": "on",
            "standard_conforming_strings": "on",
        }
        for name, value in settings.items():
            self._set(name, value)
        self._block = False
        self._failed = False
        self._pending: list[tuple[str, list[Row]]] = []
        self._notices: list[Notice] = []
        self._canceled = threading.Event()
        self.carried: Callable[[str], Carried | None] = lambda name: None
        self.together = False
        self.idle_limit = None
        self.closed = False
        self.sleeps = 0  # how often it has started to wait
        self.deaf: threading.Event | None = None  # if set, it waits for this alone, and cannot be canceled

    # The contract.

    @property
    def status(self) -> Status:
        return ("E" if self._failed else "T") if self._block else "I"

    @property
    def parameters(self) -> Mapping[str, str]:
        return self._parameters

    def split(self, text: str) -> list[str]:
        return fake_sql.split(text)

    def prepare(self, text: str, types: Sequence[SqlType | None] = ()) -> Prepared:
        for pattern, handler in _STATEMENTS:
            match = pattern.fullmatch(text)
            if match is not None:
                return handler(self, text, match, list(types))
        word = re.search(r"\S+", text)
        assert word is not None
        raise SqlError("42601", f'syntax error at or near "{word[0]}"', position=word.start() + 1)

    def reading(self, prepared: Prepared) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, prepared: Prepared, values: Sequence[Value] = ()) -> Result:
        plan = prepared.statement
        assert isinstance(plan, Plan)
        self._canceled.clear()
        if self._failed and not plan.ends_block:
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        return plan.run(values)

    @contextmanager
    def sending(self, *, resumed: bool = False) -> Iterator[Callable[[], None]]:
        yield lambda: None

    def sync(self) -> None:
        if not self._block:
            failed, self._failed = self._failed, False
            self._end(commit=not failed)

    def fail(self) -> None:
        self._failed = True

    def lookup(self, prepared: Prepared) -> None:
        """Everything has to be run."""

    def known(self, text: str, types: Sequence[SqlType | None] = ()) -> None:
        """Nothing is kept."""

    def recognize(self, text: str) -> None:
        """No text is known."""

    def notices(self) -> list[Notice]:
        notices, self._notices = self._notices, []
        return notices

    def cancel(self) -> None:
        self._canceled.set()

    def close(self) -> None:
        self._pending.clear()
        self.closed = True

    # What statements use.

    def table(self, name: str) -> Table:
        try:
            return self._adapter.tables[name]
        except KeyError:
            raise SqlError("42P01", f'relation "{name}" does not exist') from None

    def write(self, name: str, rows: list[Row]) -> None:
        self._pending.append((name, rows))

    def check(self) -> None:
        if self._canceled.is_set():
            raise SqlError("57014", "canceling statement due to user request")

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        if self.deaf is not None:
            self.deaf.wait(seconds)
        elif self._canceled.wait(seconds):
            self.check()

    def _end(self, *, commit: bool) -> None:
        pending, self._pending = self._pending, []
        if commit and self._adapter.commit_failure is not None and pending:
            raise self._adapter.commit_failure
        if commit:
            with self._adapter.lock:
                for name, rows in pending:
                    self.table(name).rows.extend(rows)

    def _set(self, name: str, value: str) -> None:
        known = {each.lower(): each for each in self._parameters}
        if name.lower() not in known:
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        self._parameters[known[name.lower()]] = value

    # Statements.

    def _select(self, text: str, match: re.Match[str], types: list[SqlType | None]) -> Prepared:
        items = fake_sql.items(match["items"], match.start("items"))
        columns = tuple(Column(each.name, _type_of(each, types)) for each in items)

        def run(values: Sequence[Value]) -> Result:
            row = tuple(_value(item, column.type, values) for item, column in zip(items, columns, strict=True))
            return FakeRows(columns, lambda: iter([[row]]), "SELECT")

        return Prepared(text, _parameters(items, types), columns, Plan(run))

    def _series(self, text: str, match: re.Match[str], types: list[SqlType | None]) -> Prepared:
        low, high, width = int(match["low"]), int(match["high"]), int(match["width"] or 0)
        columns = (Column("g", t.INT8), *([Column("pad", t.TEXT)] if width else []))

        def batches() -> Iterator[Sequence[Row]]:
            for start in range(low, high + 1, BATCH_ROWS):
                self.check()
                numbers = range(start, min(start + BATCH_ROWS, high + 1))
                self._adapter.produced += len(numbers)
                yield [(g, "x" * width) if width else (g,) for g in numbers]

        return Prepared(text, (), columns, Plan(lambda _: FakeRows(columns, batches, "SELECT")))

    def _scan(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        table = self.table(match["table"])

        def batches() -> Iterator[Sequence[Row]]:
            own = [row for name, rows in self._pending if name == match["table"] for row in rows]
            rows = table.rows + own
            for at in range(0, len(rows), BATCH_ROWS):
                yield rows[at : at + BATCH_ROWS]

        return Prepared(text, (), table.columns, Plan(lambda _: FakeRows(table.columns, batches, "SELECT")))

    def _subscribe(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        table = self.table(match["table"])
        columns = (Column("mz_timestamp", t.MZ_TIMESTAMP), Column("mz_diff", t.INT8), *table.columns)

        def batches() -> Iterator[Sequence[Row]]:
            sent = 0
            while True:
                rows = table.rows[sent : sent + BATCH_ROWS]
                sent += len(rows)
                yield [(int(time.time() * 1000), 1, *row) for row in rows]
                if not rows:
                    self.sleep(POLL_S)

        return Prepared(text, (), columns, Plan(lambda _: FakeRows(columns, batches, "SUBSCRIBE")))

    def _sleep(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        columns = (Column("pg_sleep", t.TEXT),)

        def batches() -> Iterator[Sequence[Row]]:
            self.sleep(float(match["seconds"]))
            yield [("",)]

        return Prepared(text, (), columns, Plan(lambda _: FakeRows(columns, batches, "SELECT")))

    def _insert(self, text: str, match: re.Match[str], types: list[SqlType | None]) -> Prepared:
        table = self.table(match["table"])
        items = fake_sql.items(match["items"], match.start("items"))
        targets = [column.type for column in table.columns]
        hints = list(types) + [None] * len(items)
        for item, target in zip(items, targets, strict=True):
            if item.parameter is not None and hints[item.parameter - 1] is None:
                hints[item.parameter - 1] = item.type or target

        def run(values: Sequence[Value]) -> Result:
            self.write(match["table"], [tuple(map(lambda i, to: _value(i, to, values), items, targets))])
            return Done("INSERT 0 1")

        return Prepared(text, _parameters(items, hints), None, Plan(run))

    def _create(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        parts = re.findall(r"\s*(\w+)\s+(\w+(?:\([\d, ]*\))?(?:\[\])?)\s*(?:,|$)", match["columns"])
        columns = tuple(Column(name, fake_sql.type_named(kind)) for name, kind in parts)

        def run(_: Sequence[Value]) -> Result:
            self._adapter.tables[match["table"]] = Table(columns)
            return Done("CREATE TABLE")

        return Prepared(text, (), None, Plan(run))

    def _copy(self, text: str, match: re.Match[str], types: list[SqlType | None]) -> Prepared:
        options = fake_sql.copy_options(match["options"])
        if match["direction"].lower() == "from":
            form = options.format([column.name for column in self.table(match["table"]).columns])
            return Prepared(text, (), None, Plan(lambda _: FakeCopyIn(self, match["table"], form)))
        inner = self.prepare(match["query"] or f"SELECT * FROM {match['table']}", types)
        assert inner.columns is not None
        form = options.format([column.name for column in inner.columns])

        def run(values: Sequence[Value]) -> Result:
            rows = self.run(inner, values)
            assert isinstance(rows, FakeRows)
            return CopyOut(rows, form)

        return Prepared(text, inner.parameters, None, Plan(run))

    def _transaction(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        verb = match["verb"].upper()

        def run(_: Sequence[Value]) -> Result:
            if verb == "BEGIN":
                if self._block:
                    self._notices.append(Notice("WARNING", "25001", "there is already a transaction in progress"))
                self._block = True
                return Done("BEGIN")
            if not self._block:
                self._notices.append(Notice("WARNING", "25P01", "there is no transaction in progress"))
            commit = verb == "COMMIT" and not self._failed
            self._block = self._failed = False
            self._end(commit=commit)
            return Done("COMMIT" if commit else "ROLLBACK")

        return Prepared(text, (), None, Plan(run, ends_block=verb != "BEGIN"))

    def _setting(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        def run(_: Sequence[Value]) -> Result:
            self._set(match["name"], match["value"].strip("'"))
            return Done("SET")

        return Prepared(text, (), None, Plan(run))

    def _show(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        columns = (Column(match["name"], t.TEXT),)
        row = (self._parameters.get(match["name"], self._user),)
        return Prepared(text, (), columns, Plan(lambda _: FakeRows(columns, lambda: iter([[row]]), "SHOW")))

    def _odd(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        def run(_: Sequence[Value]) -> Result:
            what = match["what"].lower()
            if what == "notice":
                self._notices.append(Notice("NOTICE", "00000", "take note", detail="of this", hint="or not"))
                return Done("NOTICE")
            raise {
                "full": StorageFull("no space is left", hint="make room"),
                "unknown": Indeterminate("the connection to the metadata was lost"),
                "defect": ZeroDivisionError("a defect"),
                "explain": SqlError("22023", "it is wrong", detail="this", hint="that", position=7),
            }[what]

        return Prepared(text, (), None, Plan(run))

    def _empty(self, text: str, match: re.Match[str], _: list[SqlType | None]) -> Prepared:
        return Prepared(text, (), None, Plan(lambda _: Done(None)))


class FakeAdapter:
    """Where the sessions come from."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tables: dict[str, Table] = {}
        self.passwords: dict[str, str] = {}
        self.sessions: list[FakeSession] = []
        self.commit_failure: Exception | None = None
        self.produced = 0  # rows that series have given
        self.told: list[str] = []
        self.is_ready = True

    def connect(self, user: str, database: str, settings: Mapping[str, str]) -> FakeSession:
        if user == "nobody":
            raise SqlError("28000", f'role "{user}" does not exist')
        if database == "nowhere":
            raise SqlError("3D000", f'database "{database}" does not exist')
        session = FakeSession(self, user, settings)
        self.sessions.append(session)
        return session

    def secret(self, user: str) -> str | None:
        return self.passwords.get(user)

    def is_superuser(self, user: str) -> bool:
        return user == "everview"

    def set_password(self, user: str, password: str) -> None:
        self.passwords[user] = make_verifier(password)

    def ready(self) -> bool:
        return self.is_ready

    def warnings(self) -> list[str]:
        return self.told

    def close(self) -> None:
        for session in self.sessions:
            session.close()

    @property
    def sleeps(self) -> int:
        return sum(session.sleeps for session in self.sessions)

    @property
    def open_sessions(self) -> int:
        return sum(not session.closed for session in self.sessions)


def _type_of(item: fake_sql.Item, types: Sequence[SqlType | None]) -> SqlType:
    if item.type is not None:
        return item.type
    assert item.parameter is not None
    declared = types[item.parameter - 1] if item.parameter <= len(types) else None
    return declared or t.TEXT


def _parameters(items: Sequence[fake_sql.Item], types: Sequence[SqlType | None]) -> tuple[SqlType, ...]:
    count = max((item.parameter or 0 for item in items), default=0)
    found: list[SqlType] = [t.TEXT] * count
    for item in items:
        if item.parameter is not None:
            declared = types[item.parameter - 1] if item.parameter <= len(types) else None
            found[item.parameter - 1] = declared or item.type or t.TEXT
    return tuple(found)


def _value(item: fake_sql.Item, to: SqlType, values: Sequence[Value]) -> Value:
    if item.fails:
        raise SqlError("22012", "division by zero")
    if item.parameter is not None:
        return values[item.parameter - 1]
    try:
        return None if item.text is None else from_text(item.text, to)
    except Failure as failure:
        raise SqlError(failure.sqlstate, failure.message) from failure


_Handler = Callable[[FakeSession, str, "re.Match[str]", list[SqlType | None]], Prepared]
_STATEMENTS: list[tuple[re.Pattern[str], _Handler]] = [
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), handler)
    for pattern, handler in (
        (r"[\s;]*", FakeSession._empty),
        (r"\s*(?P<verb>begin|commit|rollback)(?:\s+\w+)*\s*;?\s*", FakeSession._transaction),
        (r"\s*select\s+pg_sleep\((?P<seconds>[\d.]+)\)\s*;?\s*", FakeSession._sleep),
        (
            r"\s*select\s+\*\s+from\s+generate_series\((?P<low>\d+),\s*(?P<high>\d+)(?:,\s*(?P<width>\d+))?\)\s*;?\s*",
            FakeSession._series,
        ),
        (r"\s*select\s+\*\s+from\s+(?P<table>\w+)\s*;?\s*", FakeSession._scan),
        (r"\s*subscribe\s+(?:to\s+)?(?P<table>\w+)\s*;?\s*", FakeSession._subscribe),
        (r"\s*select\s+(?P<items>[^;]*?);?\s*", FakeSession._select),
        (r"\s*insert\s+into\s+(?P<table>\w+)\s+values\s*\((?P<items>.*)\)\s*;?\s*", FakeSession._insert),
        (r"\s*create\s+table\s+(?P<table>\w+)\s*\((?P<columns>.*)\)\s*;?\s*", FakeSession._create),
        (
            r"\s*copy\s+(?:(?P<table>\w+)|\((?P<query>.*?)\))\s+(?P<direction>from|to)\s+std(?:in|out)"
            r"(?:\s+(?:with\s*)?\((?P<options>.*)\))?\s*;?\s*",
            FakeSession._copy,
        ),
        (r"\s*set\s+(?P<name>\w+)\s*(?:=|to)\s*(?P<value>'[^']*'|\w+)\s*;?\s*", FakeSession._setting),
        (r"\s*show\s+(?P<name>\w+)\s*;?\s*", FakeSession._show),
        (r"\s*fail\s+(?P<what>notice|full|unknown|defect|explain)\s*;?\s*", FakeSession._odd),
    )
]
