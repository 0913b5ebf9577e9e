"""Random conditions over `mz_now()` in SQL: exact where anything begins or ends, and nothing is kept once all is over.

Conditions are drawn of OR, AND, NOT, IN, <>, BETWEEN, CASE, COALESCE and tests, over comparisons of every form: moved
by milliseconds, intervals, months and what the row says, cast, cut and divided, with dates that mean never. Every input
is bounded besides, so that after the last bound every arrangement of a join, aggregate or subquery has to be empty.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.infinite import INFINITY, MINUS_INFINITY
from everview.compute.ir.types import BOOLEAN, DATE, INT8, INTERVAL, TIMESTAMPTZ, Interval, SqlType, array_of
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from everview.compute.sql.scope import Collection
from tests.compute.delta.history import Maintained, Updates, contents
from tests.compute.temporal import at_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, SqlType] = {
    **{"k": INT8, "flag": BOOLEAN, "ms": INT8, "tz": TIMESTAMPTZ, "day": DATE, "span": INTERVAL, "till": TIMESTAMPTZ},
    "list": array_of(INT8),
}
START = datetime(2023, 1, 27, tzinfo=UTC)
DAY_MS = 86_400_000
LENGTH_DAYS = 70
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SPANS = (Interval(1, 0, 0), Interval(-1, 3, 0), Interval(0, 0, 1500), Interval(2, -1, 7_200_000_000), None)

# What stands on the side of mz_now(), and what it is compared with.
SIDES: tuple[tuple[str, Sequence[str]], ...] = (
    ("mz_now()", ("{t}.ms", "{t}.tz", "{t}.day", "{t}.ms + 86400000", "{t}.till", "NULL")),
    ("mz_now() - 5000", ("{t}.ms", "{t}.tz")),
    ("mz_now() + 7", ("{t}.ms", "{t}.day")),
    ("mz_now() - INTERVAL '1 day'", ("{t}.tz", "{t}.till")),
    ("mz_now() - INTERVAL '1 month'", ("{t}.tz", "{t}.till")),
    ("mz_now() + INTERVAL '1 month -2 days 1 hour'", ("{t}.tz", "{t}.till")),
    ("mz_now() - {t}.span", ("{t}.tz", "{t}.till")),
    ("mz_now() - INTERVAL '9000 years'", ("{t}.tz", "{t}.till")),
    ("mz_now()::timestamp", ("{t}.tz::timestamp", "{t}.day")),
    ("mz_now()::timestamptz::date", ("{t}.day",)),
    ("date_trunc('hour', mz_now()::timestamptz)", ("{t}.tz", "{t}.till")),
    ("mz_now() - {t}.tz", ("INTERVAL '3 days'", "{t}.span")),
    ("{t}.tz - mz_now()", ("INTERVAL '1 hour'", "{t}.span")),
    ("{t}.ms - mz_now()", ("0", "86400000")),
    ("mz_now()::bigint / 3600000", ("{t}.ms / 3600000",)),
    ("100 - 2 * mz_now()::bigint", ("100 - 2 * {t}.ms",)),
    ("mz_now()::numeric", ("{t}.ms + 0.5",)),
    ("extract(epoch FROM mz_now())", ("{t}.ms / 1000", "{t}.ms / 1000.0")),
    ("mz_now() - INTERVAL '1 day' - INTERVAL '1 month'", ("{t}.tz", "{t}.till")),
    ("mz_now() + {t}.span - {t}.span", ("{t}.tz", "{t}.till")),
    ("(mz_now() + 7)::timestamptz + {t}.span", ("{t}.tz", "{t}.till")),
    ("date_trunc('month', mz_now() + {t}.span)", ("{t}.tz", "date_trunc('month', {t}.till)")),
    ("date_trunc('quarter', mz_now()::timestamptz)", ("{t}.tz", "date_trunc('quarter', {t}.till)")),
    ("date_trunc('week', mz_now()::timestamptz)", ("{t}.tz", "date_trunc('week', {t}.till)")),
    ("date_bin('36 hours', mz_now()::timestamptz, {t}.till)", ("{t}.tz", "{t}.till - INTERVAL '36 hours'")),
    ("mz_now()::timestamptz AT TIME ZONE 'UTC'", ("{t}.tz::timestamp", "{t}.day")),
    ("mz_now()::timestamptz AT TIME ZONE 'Europe/Berlin'", ("{t}.tz::timestamp", "{t}.day")),
    ("(mz_now()::timestamp - {t}.span) AT TIME ZONE 'America/New_York'", ("{t}.tz", "{t}.till")),
    ("mz_now()::timestamptz(0)", ("{t}.tz", "date_trunc('second', {t}.till)")),
    ("(mz_now() - {t}.span)::timestamptz(3)", ("{t}.tz", "{t}.till")),
    ("mz_now()::date", ("{t}.day",)),
    ("mz_now()::date + 3", ("{t}.day", "{t}.till")),
    ("mz_now()::timestamp::date - {t}.till::date", ("-1", "0", "12")),
    ("{t}.till::date - mz_now()::timestamp::date", ("-1", "0", "12")),
    ("extract(epoch FROM mz_now() - {t}.tz)", ("0", "86400.0005", "-3600")),
    ("extract(epoch FROM mz_now()::timestamp)", ("{t}.ms / 1000.0",)),
    ("extract(year FROM mz_now() - {t}.span)", ("2022", "2023", "2022.5")),
    ("date_part('century', mz_now()::timestamp)", ("20", "21")),
    ("mz_now() - {t}.till + {t}.span", ("INTERVAL '3 days'", "INTERVAL '1 month'")),
    ("GREATEST(mz_now(), {t}.ms)", ("{t}.tz", "{t}.till", "{t}.ms")),
    ("LEAST(mz_now(), {t}.ms, {t}.day)", ("{t}.tz", "{t}.till")),
    ("GREATEST(mz_now() - {t}.span, {t}.tz)", ("{t}.till", "{t}.tz")),
    ("COALESCE(mz_now() - {t}.span, {t}.tz)", ("{t}.till", "{t}.tz")),
    ("COALESCE({t}.ms, mz_now())", ("{t}.till", "{t}.tz")),
    ("LEAST(mz_now(), {t}.ms) + 1000", ("{t}.till", "{t}.tz")),
    ("CASE WHEN {t}.flag THEN mz_now() ELSE mz_now() - 3600000 END", ("{t}.till", "{t}.ms")),
    ("CASE WHEN {t}.flag THEN mz_now() ELSE mz_now() - {t}.span END", ("{t}.till", "{t}.ms", "{t}.tz")),
    ("mz_now()::numeric / 1000", ("{t}.ms / 1000.0", "{t}.ms / 1000")),
    ("mz_now()::bigint / 2.5", ("{t}.ms / 2.5",)),
    ("mz_now()::bigint * -0.001", ("{t}.ms * -0.001", "-{t}.ms / 1000")),
    ("floor(mz_now()::numeric / 86400000)", ("{t}.ms / 86400000", "floor({t}.ms / 86400000.0)")),
    ("round(mz_now()::numeric / 7, -6)", ("round({t}.ms / 7.0, -6)",)),
    ("(mz_now()::numeric / 86400000)::bigint", ("{t}.ms / 86400000",)),
    ("-mz_now()::bigint", ("-{t}.ms", "5 - {t}.ms")),
    ("abs({t}.ms - mz_now()::bigint)", ("86400000", "0", "-5", "{t}.k * 100000000")),
    ("abs({t}.ms / 2.0 - mz_now()::bigint / 2)", ("43200000.5", "{t}.ms / 100.0")),
)
# Conditions of their own.
WHOLE = (
    "mz_now() = ANY({t}.list)",
    "mz_now() <> ALL({t}.list)",
    "mz_now() < ANY({t}.list)",
    "mz_now() >= ALL({t}.list)",
    "mz_now() < ANY('{1676000000000,1678000000000,NULL}')",
    "(mz_now() - {t}.span) IS NULL",
    "(mz_now() - {t}.span) IS DISTINCT FROM {t}.tz",
    "GREATEST(mz_now() - {t}.span, {t}.tz) IS NOT NULL",
)
OPERATORS = ("<", "<=", "=", ">=", ">", "<>")
TESTS = ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT UNKNOWN")
# {a} and {b} are conditions over the one and the other, each bounded; {both} is one over the two of them.
QUERIES = {
    "one": "SELECT a.k, a.ms FROM a WHERE {a}",
    "join": "SELECT a.k, b.ms FROM a JOIN b ON a.k = b.k WHERE {a} AND {b} AND {both}",
    "left": "SELECT a.k, a.ms, b.ms FROM a LEFT JOIN b ON a.k = b.k AND {b} WHERE {a}",
    "either": "SELECT a.k, b.ms FROM a JOIN b ON a.k = b.k WHERE {a} AND (a.flag AND {b} OR a.k <> 1 AND {b})",
    "full": "SELECT x.k, y.ms FROM (SELECT * FROM a WHERE {a}) x FULL JOIN (SELECT * FROM b WHERE {b}) y ON x.k = y.k",
    "exists": "SELECT a.k FROM a WHERE {a} AND EXISTS (SELECT FROM b WHERE a.k = b.k AND {b})",
    "absent": "SELECT a.k FROM a WHERE {a} AND NOT EXISTS (SELECT FROM b WHERE a.k = b.k AND {b} AND {both})",
    "grouped": "SELECT a.k, count(*), max(b.ms) FROM a JOIN b ON a.k = b.k WHERE {a} AND {b} GROUP BY a.k",
    "distinct": "SELECT DISTINCT a.flag FROM a, b WHERE a.k = b.k AND {a} AND {b}",
    "top": "SELECT a.k, a.ms FROM a WHERE {a} ORDER BY a.ms, a.k LIMIT 2",
    "except": "SELECT a.k FROM a WHERE {a} EXCEPT SELECT b.k FROM b WHERE {b}",
    "left, both after": "SELECT a.k, a.ms, b.ms FROM a LEFT JOIN b ON a.k = b.k WHERE {a} AND {b}",
    "full, both after": "SELECT a.k, b.k FROM a FULL JOIN b ON a.k = b.k AND {both} WHERE {a} AND {b}",
    "three, the last after": "SELECT a.k, c.ms FROM a JOIN b ON a.k = b.k LEFT JOIN a AS c ON b.ms = c.ms"
    " WHERE {a} AND {b} AND mz_now() < c.till",
    "least": "SELECT a.k FROM a JOIN b ON a.k = b.k WHERE {alone} AND {both} AND mz_now() < LEAST(a.till, b.till)",
    "greatest": "SELECT a.k, b.ms FROM a JOIN b ON a.k = b.k"
    " WHERE LEAST(a.till, b.till, a.tz) - INTERVAL '1 day' > mz_now()"
    " AND GREATEST(a.ms, b.ms, a.ms) + 5 <= mz_now() AND NOT GREATEST(a.tz, b.tz) > mz_now()",
    "least after": "SELECT a.k, b.ms FROM a LEFT JOIN b ON a.k = b.k AND {b}"
    " WHERE mz_now() < LEAST(a.till, b.till, b.tz)",
    "series": "SELECT a.k, g FROM a, generate_series(1, a.k) AS g WHERE {a}",
    "unnest": "SELECT a.k, g FROM a, unnest(a.list) AS g JOIN b ON b.k < g WHERE {a} AND {b} AND b.k = a.k",
    "elements": "SELECT a.k, count(*) FROM a, unnest(a.list) AS g"
    " WHERE mz_now() >= g AND mz_now() < g + 99999 GROUP BY a.k",
    "elements or none": "SELECT a.k, g FROM a LEFT JOIN unnest(a.list) AS g ON g > a.ms WHERE {a}",
    "elements after": "SELECT a.k, g FROM a LEFT JOIN unnest(a.list) AS g ON true WHERE mz_now() < g AND {alone}",
    "selected": "SELECT a.k, unnest(a.list) FROM a JOIN b ON a.k = b.k WHERE {a} AND {b}",
    "computed": "SELECT a.k, x.ms, y.l FROM a, LATERAL (SELECT a.ms + 1 AS ms) AS x, unnest(a.list) AS y (l)"
    " WHERE {a} AND x.ms > y.l",
    "lateral": "SELECT a.ms, x.ms FROM a, LATERAL (SELECT b.ms FROM b WHERE b.k = a.k AND {b}) AS x WHERE {a}",
    "lateral top": "SELECT a.ms, x.ms FROM a,"
    " LATERAL (SELECT b.ms FROM b WHERE b.k <= a.k AND {b} ORDER BY b.ms, b.k LIMIT 2) AS x WHERE {a}",
    "lateral of a join": "SELECT c.ms, x.ms, x.g FROM a AS c JOIN b AS d ON c.k = d.k,"
    " LATERAL (SELECT b.ms, g FROM b, generate_series(c.k, 2) AS g WHERE b.k = d.k AND g <> b.k AND {b}) AS x"
    " WHERE mz_now() < c.till AND mz_now() < d.till AND c.ms <> x.ms",
    "lateral totals": "SELECT a.ms, x.n, x.s FROM a,"
    " LATERAL (SELECT count(*) AS n, max(b.ms) AS s FROM b WHERE b.k = a.k AND {b} AND {both}) AS x WHERE {a}",
    "lateral or none": "SELECT a.ms, x.ms FROM a LEFT JOIN"
    " LATERAL (SELECT b.ms FROM b WHERE b.k = a.k AND {b} ORDER BY b.ms LIMIT 1) AS x ON x.ms > a.ms WHERE {a}",
    "lateral twice": "SELECT a.ms, y.ms FROM a, LATERAL (SELECT count(*) AS n FROM b WHERE b.k = a.k AND {b}) AS x,"
    " LATERAL (SELECT b.ms FROM b WHERE b.k = x.n AND {b} UNION SELECT a.ms WHERE x.n > 0) AS y WHERE {a}",
    "lateral of itself": "SELECT a.ms, x.k FROM a, LATERAL ("
    "SELECT DISTINCT c.k FROM a AS c WHERE c.k = a.k AND mz_now() < c.till EXCEPT SELECT b.k FROM b WHERE {b}"
    ") AS x WHERE {a}",
    "answers": "SELECT a.k, (SELECT max(b.ms) FROM b WHERE b.k = a.k AND {b}) FROM a"
    " WHERE NOT EXISTS (SELECT FROM b WHERE b.ms = a.ms AND {b}) AND {a}",
}


class Names:
    """Two tables of the same columns."""

    def find(self, path: Sequence[str]) -> Collection | None:
        return Collection(path[-1], tuple(COLUMNS), tuple(COLUMNS.values())) if path[-1] in ("a", "b") else None

    def names(self) -> list[str]:
        return ["a", "b"]


def millis(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def moment(rng: random.Random) -> datetime:
    """Around the ends of months, on the hour or within a millisecond."""
    moment = START + timedelta(days=rng.randint(-35, LENGTH_DAYS), hours=rng.randint(0, 23))
    return moment + timedelta(microseconds=rng.choice((0, 0, 1, 500, 1000, 3_599_999_999)))


def row(rng: random.Random) -> tuple[Any, ...]:
    stamp: Any = rng.choice((moment(rng), moment(rng), moment(rng), None, INFINITY, MINUS_INFINITY))
    far = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    day: Any = rng.choice((moment(rng).date(), moment(rng).date(), None, INFINITY, date(9999, 12, 31)))
    stamp = far if rng.random() < 0.1 else stamp
    ms = rng.choice((millis(moment(rng)), millis(moment(rng)), None))
    values = (*(millis(moment(rng)) for _ in range(rng.randint(0, 3))), *rng.choice(((), (None,))))
    own = (rng.randint(0, 2), rng.choice((True, False, None)), ms, stamp, day, rng.choice(SPANS), moment(rng))
    return (*own, rng.choice((values, values, None)))


def comparison(rng: random.Random, table: str) -> str:
    if rng.random() < 0.1:
        return f"({rng.choice(WHOLE)})".replace("{t}", table)
    left, others = rng.choice(SIDES)
    right = rng.choice(others)
    match rng.randint(0, 9):
        case 0 if "INTERVAL" not in right and "NULL" not in right:
            text = f"{left} {rng.choice(('', 'NOT '))}IN ({right}, {rng.choice(others)})"
        case 1:
            text = f"{left} BETWEEN {right} AND {rng.choice(others)}"
        case 2:
            operator = rng.choice(OPERATORS)
            text = f"{right} {operator} {left}"
        case _:
            text = f"{left} {rng.choice(OPERATORS)} {right}"
    return f"({text})".replace("{t}", table)


def condition(rng: random.Random, tables: Sequence[str], depth: int = 2) -> str:
    """A condition over rows of these tables."""
    table = rng.choice(tables)
    if depth == 0 or rng.random() < 0.25:
        return comparison(rng, table) if rng.random() < 0.8 else rng.choice((f"{table}.flag", f"({table}.k <> 1)"))
    inner = [condition(rng, tables, depth - 1) for _ in range(3)]
    forms = (
        "({0} OR {1})",
        "({0} OR {1} OR {2})",
        "({0} AND {1})",
        "(NOT {0})",
        f"({{0}} {rng.choice(TESTS)})",
        "(CASE WHEN {0} THEN {1} ELSE {2} END)",
        "COALESCE({0}, {1})",
        "({0} = {1})",
    )
    return rng.choice(forms).format(*inner)


def query(rng: random.Random, name: str) -> str:
    bounded = {each: f"{condition(rng, [each])} AND mz_now() < {each}.till" for each in ("a", "b")}
    others = {"both": condition(rng, ["a", "b"]), "alone": condition(rng, ["a"])}
    return QUERIES[name].format(**bounded, **others)


def lives(rng: random.Random, start: int) -> Updates:
    updates = []
    for _ in range(rng.randint(2, 9)):
        each = row(rng)
        time, alive = start + rng.choice((0, rng.randint(0, LENGTH_DAYS * DAY_MS))), False
        for _ in range(rng.randint(1, 3)):
            updates.append((each, time, -1 if alive else 1))
            alive, time = not alive, time + rng.randint(0, 20 * DAY_MS)
    return updates


def check(rng: random.Random, name: str, engine: Engine, looks: int) -> None:
    check_text(rng, query(rng, name), engine, looks)


def check_text(rng: random.Random, text: str, engine: Engine, looks: int) -> None:
    start = millis(START)
    end = start + 2 * LENGTH_DAYS * DAY_MS
    history = {each: lives(rng, start) for each in ("a", "b")}
    written = plan(text, Names()).relation
    view = Maintained(optimize(written), engine)
    cuts = sorted(rng.sample(range(start + 1, end), rng.randint(0, 4)))
    for lower, upper in pairwise([0, start, *cuts, end]):
        view.tick(history, lower, upper)
    assert not view.errors, text
    edges = {time + by for _, time, _ in view.output for by in (-1, 0, 1)}
    looked = {each for each in (*edges, *(rng.randint(start, end - 1) for _ in range(looks))) if start <= each < end}
    for time in rng.sample(sorted(looked), min(len(looked), 4 * looks)):
        inputs = {each: contents(updates, time) for each, updates in history.items()}
        expected = evaluate(at_time(written, time), inputs)
        assert not expected.errors, text
        assert contents(view.output, time) == expected.rows, f"{text}\nat {time}\n{history}"
    left = {each.name: view.states[each.name] for each in view.view.program.arrangements if view.states[each.name]}
    assert not left, f"{text}\nkeeps {left} when all is over"


@pytest.mark.parametrize("form", [*(left for left, _ in SIDES), *WHOLE])
def test_every_form_is_exact(form: str, rng: random.Random, long_forms: bool) -> None:
    others = dict(SIDES).get(form)
    for _ in range(100 if long_forms else 4):
        text = form if others is None else f"{form} {rng.choice(OPERATORS)} {rng.choice(others)}"
        shape = rng.choice(("({})", "({})", "(NOT ({}))", "(({}) IS FALSE)", "(({}) IS UNKNOWN)"))
        condition = shape.format(text).replace("{t}", "a")
        check_text(rng, f"SELECT a.k, a.ms FROM a WHERE {condition} AND mz_now() < a.till", LocalEngine(), 12)


@pytest.mark.parametrize("name", QUERIES)
def test_exact_and_empty_in_the_end(name: str, rng: random.Random, long_forms: bool) -> None:
    first = rng.randrange(1 << 32)
    for number in range(400 if long_forms else 12):
        try:
            check(random.Random(first + number), name, LocalEngine(), 12)
        except AssertionError as error:
            raise AssertionError(f"seed {first + number} {error}") from error


@pytest.mark.spark
def test_every_form_on_spark(rng: random.Random, spark: SparkSession, long_forms: bool) -> None:
    """All in one condition, so that they are one statement."""
    forms = [f"{left} {rng.choice(OPERATORS)} {rng.choice(others)}" for left, others in SIDES]
    conditions = [f"({each})".replace("{t}", "a") for each in (*forms, *WHOLE)]
    rng.shuffle(conditions)
    size = len(conditions) if long_forms else 16
    for start in range(0, len(conditions) if long_forms else size, size):
        some = " OR ".join(conditions[start : start + size])
        check_text(rng, f"SELECT a.k, a.ms FROM a WHERE ({some}) AND mz_now() < a.till", SparkEngine(spark), 12)


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    ["one", *(pytest.param(name, marks=pytest.mark.long) for name in ("join", "left", "elements", "lateral totals"))],
)
def test_on_spark(name: str, rng: random.Random, spark: SparkSession, long_forms: bool) -> None:
    for _ in range(6 if long_forms else 1):
        check(rng, name, SparkEngine(spark), 12)
