"""What views with temporal filters keep: below joins too, no row that cannot be seen any more; in the end nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from everview.compute.explain import explain_view
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.types import (
    DATE,
    INT4,
    INT8,
    INTERVAL,
    MZ_TIMESTAMP,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Interval,
    SqlType,
    numeric,
)
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from everview.compute.view import View
from tests.compute.delta.history import Maintained, Updates, contents
from tests.compute.temporal import at_time

DAY_MS = 86_400_000
NUMERIC = numeric(20, 2)
SCHEMAS: dict[str, dict[str, SqlType]] = {
    "o": {"k": INT8, "name": TEXT},
    "l": {
        **{"k": INT8, "ms": INT8, "small": INT4, "number": NUMERIC, "time": MZ_TIMESTAMP, "day": DATE},
        **{"ts": TIMESTAMP, "tz": TIMESTAMPTZ, "span": INTERVAL},
    },
}
# Each is true until day five, or shortly before, for a row that says so; and never again.
FORMS = {
    "bigint": "mz_now() < ms",
    "integer": "mz_now() < small",
    "numeric": "mz_now() <= number",
    "time": "mz_now() < time",
    "date": "day > mz_now()",
    "timestamp": "mz_now() < ts",
    "timestamptz": "tz >= mz_now()",
    "sum": "mz_now() < ms + 5000",
    "product": "mz_now() < 1000 * (ms / 1000) + 1000",
    "moved": "mz_now() - 5000 < ms",
    "moved by an interval": "mz_now() - INTERVAL '5 seconds' < tz",
    "plus interval": "mz_now() < tz + INTERVAL '1 second'",
    "plus month": "mz_now() < tz - INTERVAL '1 month' + INTERVAL '31 days'",
    "months": "mz_now() + INTERVAL '1 month' < tz + INTERVAL '31 days'",
    "span": "mz_now() - span < tz",
    "difference": "mz_now() - tz < INTERVAL '1 second'",
    "falling": "ms - mz_now() > 0",
    "cast": "mz_now()::timestamp < ts",
    "cast to numeric": "mz_now()::numeric < number",
    "cast to date": "mz_now()::timestamptz::date < day",
    "epoch": "extract(epoch FROM mz_now()) < ms / 1000",
    "between": "mz_now() BETWEEN ms - 100000 AND ms",
    "either": "(mz_now() < ms OR mz_now() < tz)",
    "not": "NOT (mz_now() >= ms)",
    "test": "(mz_now() < ms) IS TRUE",
    "in": "mz_now() IN (ms, ms - 7)",
    "both": "mz_now() < ms AND mz_now() >= ms - 1000 AND mz_now() < day",
    "months last": "mz_now() + INTERVAL '1 day' + INTERVAL '1 month' < tz + INTERVAL '32 days'",
    "span twice": "mz_now() - span - span < tz",
    "days": "mz_now()::timestamp::date - day < 1",
    "days left": "day - mz_now()::date > 0",
    "month": "date_trunc('month', mz_now()::timestamp) < date_trunc('month', ts)",
    "week": "date_trunc('week', mz_now()::timestamp) < date_trunc('week', ts - INTERVAL '3 days')",
    "bin": "date_bin('1 hour', mz_now()::timestamp, ts) < ts",
    "zone": "mz_now()::timestamptz AT TIME ZONE 'Europe/Berlin' < ts",
    "whole seconds": "mz_now()::timestamp(0) < ts",
    "seconds since": "extract(epoch FROM mz_now() - tz) < 60",
    "year": "extract(year FROM mz_now()::timestamp) < extract(year FROM ts - INTERVAL '1 day')",
    "greatest": "GREATEST(mz_now(), ms - 5) < time",
    "least": "LEAST(mz_now(), 1000 * ms) < time",
    "coalesced": "COALESCE(mz_now() - span, tz) < tz",
    "divided": "mz_now()::numeric / 1000 < number / 1000",
    "by a fraction": "mz_now()::bigint / 2.5 < ms / 2.5",
    "negative": "-mz_now()::bigint > -ms",
    "apart": "abs(ms - mz_now()::bigint) < 10",
    "any": "mz_now() < ANY (array_append(NULL, ms))",
    "all": "mz_now() < ALL (array_append('{}', ms))",
    "row first": "CASE WHEN l.k > 3 THEN mz_now() < ms ELSE mz_now() < day END",
}
JOINS = {
    "join": "SELECT o.name, l.ms FROM o JOIN l ON o.k = l.k WHERE {}",
    "three": "SELECT o.name, l.ms FROM o JOIN l ON o.k = l.k JOIN o AS p ON p.k = l.k WHERE {}",
    "count": "SELECT o.name, count(*) FROM o JOIN l ON o.k = l.k WHERE {} GROUP BY o.name",
    "exists": "SELECT name FROM o WHERE EXISTS (SELECT FROM l WHERE l.k = o.k AND {})",
    "left": "SELECT o.name, l.ms FROM o LEFT JOIN l ON o.k = l.k AND {}",
    "top": "SELECT o.name, l.ms FROM o JOIN l ON o.k = l.k WHERE {} ORDER BY l.ms LIMIT 2",
    "distinct": "SELECT DISTINCT o.name FROM o JOIN l ON o.k = l.k WHERE {}",
    "left, then": "SELECT o.name, l.ms FROM o LEFT JOIN l ON o.k = l.k WHERE {}",
    "full, then": "SELECT o.name, l.ms FROM o FULL JOIN l ON o.k = l.k WHERE {}",
    "series": "SELECT l.ms, g FROM l, generate_series(3, l.k) AS g WHERE {}",
    "elements": "SELECT o.name, g FROM o JOIN l ON o.k = l.k, unnest(ARRAY[l.k, 7]) AS g WHERE {}",
    "lateral": "SELECT l.ms, x.name FROM l, LATERAL (SELECT name FROM o WHERE o.k = l.k ORDER BY name LIMIT 2) AS x"
    " WHERE {}",
    "lateral totals": "SELECT l.ms, x.n FROM l LEFT JOIN LATERAL (SELECT count(*) AS n FROM o WHERE o.k = l.k) AS x"
    " ON true WHERE {}",
}


class Names:
    """The collections by name."""

    def find(self, path: Sequence[str]) -> Collection | None:
        columns = SCHEMAS.get(path[-1])
        return None if columns is None else Collection(path[-1], tuple(columns), tuple(columns.values()))

    def names(self) -> list[str]:
        return list(SCHEMAS)


def line(key: int, ms: int) -> tuple[Any, ...]:
    """A row of `l` whose columns all speak of one time."""
    moment = datetime(1970, 1, 1) + timedelta(milliseconds=ms)
    small, number = min(ms, 2**31 - 1), Decimal(ms).quantize(Decimal("0.01"))
    day = date(1970, 1, 1) + timedelta(days=ms // DAY_MS)
    return (key, ms, small, number, ms, day, moment, moment.replace(tzinfo=UTC), Interval(0, 0, 3_000_000))


def rows_kept(view: Maintained, *, of: int) -> dict[str, int]:
    """How many rows of so many columns or more each arrangement has."""
    kept = {each.name: view.states[each.name] for each in view.view.program.arrangements if len(each.schema) >= of}
    return {name: len(rows) for name, rows in kept.items()}


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("form", FORMS)
def test_a_join_keeps_only_what_can_still_be_seen(form: str, join: str) -> None:
    written = plan(JOINS[join].format(FORMS[form]), Names()).relation
    view = Maintained(optimize(written))
    alive = [line(key, 5 * DAY_MS) for key in range(5)]
    over = [line(key % 5, DAY_MS + 1000 * key) for key in range(60)]
    history: dict[str, Updates] = {
        "o": [((key, f"n{key}"), 0, 1) for key in range(5)],
        "l": [*((row, 2 * DAY_MS, 1) for row in over), *((row, 2 * DAY_MS, 1) for row in alive)],
    }
    cuts = [0, 2 * DAY_MS, 2 * DAY_MS + 1, 5 * DAY_MS - 1, 5 * DAY_MS, 6 * DAY_MS, 40 * DAY_MS]
    for number, (lower, upper) in enumerate(pairwise(cuts)):
        view.tick(history, lower, upper)
        if number == 1:
            assert max(map(len, view.states.values())) <= 20, "what was over before it came is nowhere"
    for time in cuts[1:]:
        inputs = {name: contents(updates, time - 1) for name, updates in history.items()}
        assert contents(view.output, time - 1) == evaluate(at_time(written, time - 1), inputs).rows, time - 1
    sizes = {each.name: len(view.states[each.name]) for each in view.view.program.arrangements if each.pending}
    assert not any(sizes.values()), f"nothing is to come any more: {sizes}"
    lines = [each for each in view.view.program.arrangements if not each.pending and view.states[each.name]]
    assert all(len(view.states[each.name]) <= 5 for each in lines), "the five rows of o, in what form ever"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.name FROM o JOIN l ON o.k = l.k WHERE mz_now() < 100 / (l.ms - 7)",
        "SELECT o.name FROM o LEFT JOIN l ON o.k = l.k WHERE mz_now() < 100 / (l.ms - 7)",
        "SELECT o.name FROM o JOIN l ON o.k = l.k WHERE mz_now() < LEAST(100 / (l.ms - 7), o.k * 500)",
        "SELECT x.name FROM l, LATERAL (SELECT name FROM o WHERE o.k = l.k ORDER BY name LIMIT 1) AS x"
        " WHERE mz_now() < 100 / (l.ms - 7)",
        "SELECT o.name FROM o JOIN l ON o.k = l.k, generate_series(l.k, l.k) AS g WHERE mz_now() < 100 / (l.ms - 7)",
    ],
)
def test_rows_whose_bound_fails_stay_and_fail_where_they_meet_another(query: str) -> None:
    view = Maintained(optimize(plan(query, Names()).relation))
    fails, lasts = line(1, 7), line(2, 8)
    history: dict[str, Updates] = {
        "o": [((1, "a"), 200, 1), ((1, "a"), 300, -1), ((2, "b"), 0, 1)],
        "l": [(fails, 0, 1), (lasts, 0, 1), (fails, 400, -1)],
    }
    for lower, upper in pairwise((0, 1, 99, 101, 200, 250, 350, 500)):
        view.tick(history, lower, upper)
    for time, rows, failed in ((0, 1, False), (99, 1, False), (100, 0, False), (200, 0, True), (300, 0, False)):
        found = contents(view.output, time), bool(contents(view.errors, time))
        assert (sum(found[0].values()), found[1]) == (rows, failed), time
    assert sum(map(len, view.states.values())) <= 2, "what failed is gone with its row"


@pytest.mark.parametrize(
    "condition",
    [
        "mz_now() < a.ms AND NULL AND mz_now() < b.ms",
        "mz_now() < a.time AND mz_now() > NULL AND mz_now() < b.time",
        "mz_now() < a.ms AND (mz_now() > NULL) IS TRUE AND mz_now() < b.ms",
        "mz_now() < a.ms AND (a.k > 0 AND mz_now() > b.ms AND NULL AND mz_now() < b.ms"
        " OR a.k < 9 AND mz_now() > b.ms - 5 AND (mz_now() > NULL) IS TRUE AND mz_now() < b.ms)",
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, b.ms FROM l AS a JOIN l AS b ON a.k = b.k WHERE {}",
        "SELECT count(*), max(b.ms) FROM l AS a JOIN l AS b ON a.k = b.k WHERE {}",
        "SELECT a.k FROM l AS a WHERE mz_now() < a.ms AND NOT EXISTS (SELECT FROM l AS b WHERE a.k = b.k AND {})",
    ],
)
def test_a_condition_that_is_never_true_keeps_no_rows(query: str, condition: str) -> None:
    """What is written behind it says until when, and is gone, for what is before it may fail."""
    written = plan(query.format(condition), Names()).relation
    view = Maintained(optimize(written))
    history: dict[str, Updates] = {"l": [(line(key % 3, DAY_MS + 1000 * key), 5 + key, 1) for key in range(12)]}
    end = 2 * DAY_MS
    cuts = [0, 9, DAY_MS, DAY_MS + 6_500, end]
    for lower, upper in pairwise(cuts):
        view.tick(history, lower, upper)
    assert not view.errors
    for time in (8, DAY_MS - 1, DAY_MS + 6_499, end - 1):
        expected = evaluate(at_time(written, time), {"l": contents(history["l"], time)})
        assert contents(view.output, time) == expected.rows, time
    kept = {each.name: view.states[each.name] for each in view.view.program.arrangements if len(each.schema) > 1}
    assert not any(kept.values()), kept


def test_what_fails_before_a_condition_that_is_never_true_still_fails() -> None:
    query = (
        "SELECT a.k FROM l AS a JOIN l AS b ON a.k = b.k WHERE mz_now() < a.ms AND 1 / (a.small - b.small) > 2 AND NULL"
    )
    view = Maintained(optimize(plan(f"{query} AND mz_now() < b.ms", Names()).relation))
    history: dict[str, Updates] = {"l": [(line(1, 500), 5, 1), (line(2, 800), 600, 1)]}
    for lower, upper in pairwise((0, 5, 400, 700, 900)):
        view.tick(history, lower, upper)
    failed = {time: bool(contents(view.errors, time)) for time in (4, 5, 499, 500, 600, 799, 800)}
    assert failed == {4: False, 5: True, 499: True, 500: False, 600: True, 799: True, 800: False}
    assert not view.output


def test_explain_tells_until_when() -> None:
    def kept(query: str) -> list[str]:
        text = explain_view(View.of(optimize(plan(query, Names()).relation)))
        section = text.partition("Kept\n")[2].partition("\n\n")[0]
        return sorted(each.partition(", found by ")[2].partition(", ")[2].strip() for each in section.splitlines())

    joined = "SELECT o.name FROM o JOIN l ON o.k = l.k WHERE "
    assert kept(joined + "l.day > mz_now()") == ["for ever", "until l.#5", "until their time"]
    assert kept(joined + "mz_now() < l.ms + 5000") == ["for ever", "until l.#1 + 5000", "until their time"]
    assert kept(joined + "mz_now() - INTERVAL '1 day' < l.tz")[1] == "until l.#7 + 8.64e+07 ms"
    assert kept(joined + "(mz_now() < ms OR mz_now() < tz)")[1] == "until the last of the times by l.#1, l.#7"
    assert kept(joined + "l.k > 5") == ["for ever", "for ever"]
    assert kept("SELECT k, count(*) FROM l WHERE mz_now() < ms GROUP BY k") == ["until l.#1", "until their time"]


def test_dates_that_mean_never_stay(rng: random.Random) -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999)
    for condition in (
        "mz_now() - INTERVAL '1 day' < tz",
        "mz_now() - INTERVAL '1 month' < tz",
        "mz_now() - tz < INTERVAL '1 day'",
        "mz_now()::timestamp - INTERVAL '1000 years' < ts",
        "mz_now() < day",
    ):
        written = plan(f"SELECT k FROM l WHERE {condition}", Names()).relation
        view = Maintained(optimize(written))
        row = (1, 0, 0, Decimal("0.00"), 0, date(9999, 12, 31), last, last.replace(tzinfo=UTC), Interval(0, 0, 0))
        history: dict[str, Updates] = {"l": [(row, 0, 1)]}
        view.tick(history, 0, 10)
        assert contents(view.output, 9) == {(1,): 1} and not view.errors, condition
        assert evaluate(at_time(written, 9), {"l": {row: 1}}).rows == {(1,): 1}
