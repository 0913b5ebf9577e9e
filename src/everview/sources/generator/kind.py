"""FROM LOAD GENERATOR: sources that make their rows, tick by tick.

Where the collections stand says which ticks have been written, so a generator has no position of its own. One may have
started before its collections: then they begin with what all ticks up to that moment have made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TypeVar

import numpy as np
import pyarrow as pa

from everview.compute.functions.contract import Failure
from everview.compute.functions.datetime_input import duration_ms, read_timestamp
from everview.compute.ir.types import Kind
from everview.compute.rows.arrow import rows_to_arrow
from everview.compute.rows.collection import rows_of
from everview.compute.sql.errors import SqlError, did_you_mean
from everview.quoting import literal
from everview.sources.contract import Feeding, Found, Given, OwnTimeline, SourceKind, Spec, Table
from everview.sources.feeder import IDLE_S, Feeder, News, Position
from everview.sources.generator.auction import Auction
from everview.sources.generator.contract import Generator, Row
from everview.sources.generator.counter import Counter
from everview.sources.generator.tpch import Tpch
from everview.timely.consolidate import TIME, with_column

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "counter": ("tick interval", "start at", "max cardinality"),
    "auction": ("tick interval", "start at", "seed", "bids per tick"),
    "tpch": ("tick interval", "start at", "seed", "scale factor"),
}
TICKS_AT_ONCE_MAX = 1_000  # of one commit, while it catches up
PAST_TICKS_MAX = 100_000
SCALE_MAX = 1.0
_INVALID = "22023"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadGenerator(Spec):
    """A generator with its options; its first tick is at `start_ms`, and its collections begin at `from_ms`."""

    subject: str
    options: Mapping[str, str]
    start_ms: int = 0
    from_ms: int = 0


class LoadGeneratorKind(SourceKind[LoadGenerator]):
    """FROM LOAD GENERATOR name (option value, …)."""

    name = "load generator"
    has_subject = True

    def look(self, given: Given, pause: Callable[[float], object]) -> Found[LoadGenerator]:
        spec = LoadGenerator(given.kind, given.subject, given.arguments)
        generator, _ = generator_of(spec)
        return Found(spec, generator.tables)

    def begun(self, spec: LoadGenerator, now_ms: int) -> LoadGenerator:
        start = _option(spec.options, "start at", str(now_ms), _milliseconds)
        past_ticks = (now_ms - start) // generator_of(spec)[1]
        if past_ticks > PAST_TICKS_MAX:
            detail = f"that is {past_ticks} ticks ago, and {PAST_TICKS_MAX} are the most"
            raise SqlError(_INVALID, "START AT is too long ago", detail=detail)
        return replace(spec, start_ms=start, from_ms=now_ms)

    def feeder(self, feeding: Feeding[LoadGenerator]) -> Feeder:
        generator, interval_ms = generator_of(feeding.spec)
        return Feeder(feeding, Ticks(generator, feeding.spec.start_ms, interval_ms, feeding.spec.from_ms))

    def to_json(self, spec: LoadGenerator) -> dict[str, str]:
        return {"argument": spec.subject, **spec.options, "start": str(spec.start_ms), "from": str(spec.from_ms)}

    def from_json(self, kind: str, said: Mapping[str, str], timeline: OwnTimeline | None) -> LoadGenerator:
        options = {name: value for name, value in said.items() if name not in ("kind", "argument", "start", "from")}
        start = int(said["start"])  # before START AT, a generator started when it was made
        return LoadGenerator(kind, said["argument"], options, start, int(said.get("from", start)))

    def shown(self, spec: LoadGenerator, name_of: Callable[[str], str]) -> tuple[str, list[str]]:
        options = ", ".join(f"{name.upper()} {literal(value)}" for name, value in spec.options.items())
        return f"LOAD GENERATOR {spec.subject.upper()}{f' ({options})' if options else ''}", []


def generator_of(spec: LoadGenerator) -> tuple[Generator, int]:
    """The generator that a source is defined by, and its interval in milliseconds."""
    subject, given = spec.subject, spec.options
    if subject not in OPTIONS:
        known = f"{', '.join(each.upper() for each in OPTIONS)} exist"
        message = f"there is no load generator {subject.upper()}"
        raise SqlError(_INVALID, message, hint=did_you_mean(subject, OPTIONS) or known)
    if unknown := set(given) - set(OPTIONS[subject]):
        hint = did_you_mean(min(unknown), OPTIONS[subject])
        raise SqlError(_INVALID, f"unknown option {min(unknown).upper()}", hint=hint)
    interval = _option(given, "tick interval", "1s", duration_ms)
    if interval < 1:
        raise SqlError(_INVALID, "TICK INTERVAL must be at least a millisecond")
    seed = _option(given, "seed", "0", int)
    match subject:
        case "counter":
            return Counter(_option(given, "max cardinality", "0", int) or None), interval
        case "auction":
            return Auction(seed, spec.start_ms, interval, _option(given, "bids per tick", "10", int)), interval
        case _:
            scale = _option(given, "scale factor", "0.001", float)
            if not 0 < scale <= SCALE_MAX:
                raise SqlError(_INVALID, f"SCALE FACTOR must be above 0 and at most {SCALE_MAX}")
            return Tpch(seed, scale), interval


def _milliseconds(text: str) -> int:
    """A time of the timeline, as a number or as a timestamp, in UTC unless it names a zone."""
    if text.isdigit():
        return int(text)
    try:
        found = read_timestamp(text, Kind.TIMESTAMPTZ)
    except Failure as failure:
        raise ValueError(failure.message) from failure
    if not isinstance(found, datetime) or found.timestamp() < 0:
        raise ValueError("a moment from 1970 on is required")
    return int(found.timestamp() * 1000)


def _option(given: Mapping[str, str], name: str, default: str, read: Callable[[str], T]) -> T:
    text = given.get(name, default)
    try:
        return read(text)
    except ValueError as error:
        raise SqlError(_INVALID, f'invalid value for {name.upper()}: "{text}"', detail=str(error)) from error


class Ticks:
    """Reads a generator: the ticks that are due."""

    def __init__(self, generator: Generator, start_ms: int, interval_ms: int, from_ms: int) -> None:
        self._generator, self._start_ms, self._interval_ms, self._from_ms = generator, start_ms, interval_ms, from_ms
        self._tables: dict[str, Table] = {table.name: table for table in generator.tables}

    def news(self, position: Position, lower: int, end: int) -> News:
        ticks, upper = self._due(lower, end), end
        past = len(self._due(0, self._from_ms + 1)) if lower == self._from_ms else 0  # all of them belong together
        more = len(ticks) > past + TICKS_AT_ONCE_MAX
        if more:
            ticks = ticks[: past + TICKS_AT_ONCE_MAX]
            upper = self._time(ticks[-1]) + 1
        following = max(0, (end - 1 - self._start_ms) // self._interval_ms + 1)
        pause_s = min(IDLE_S, max(0.001, (self._time(following) + 1 - end) / 1000))
        return News(self._changes(ticks), upper, more=more, pause_s=pause_s)

    def close(self) -> None:
        return None

    def _time(self, tick: int) -> int:
        return self._start_ms + tick * self._interval_ms

    def _due(self, lower: int, upper: int) -> range:
        """The ticks at times from `lower` on and before `upper`; from the beginning, all before it as well."""
        first = 0 if lower == self._from_ms else max(0, -((self._start_ms - lower) // self._interval_ms))
        last = (upper - 1 - self._start_ms) // self._interval_ms
        return range(first, last + 1)

    def _changes(self, ticks: range) -> dict[str, pa.Table]:
        parts: dict[str, list[pa.Table]] = {}
        for at, some in groupby(ticks, lambda tick: max(self._time(tick), self._from_ms)):
            together: dict[str, list[tuple[Row, int]]] = {}
            for tick in some:
                for name, rows in self._generator.changes(tick).items():
                    together.setdefault(name, []).extend(rows)
            for name, changed in together.items():
                if changed:
                    types = self._tables[name].types
                    table = rows_to_arrow(rows_of(changed, types), types)
                    times = np.full(table.num_rows, at, dtype=np.int64)
                    parts.setdefault(name, []).append(with_column(table, TIME, times))
        return {name: pa.concat_tables(tables) for name, tables in parts.items()}
