"""The idioms of docs/temporal-filters.md: at every change, each view is what its query gives when asked then."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute.sql.lexer import split
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber
from tests.adapter.test_writes import RestlessClock

DOCUMENT = Path(__file__).parents[2] / "docs" / "temporal-filters.md"
START = 1_700_000_000_000
BLOCKS = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
VIEWS = {
    found[1]: (found[2].strip(), block)
    for block in BLOCKS
    for found in [re.search(r"CREATE MATERIALIZED VIEW (\w+) AS\n(.*?);", block, re.DOTALL)]
    if found is not None
}
EVENTS = next(block for block in BLOCKS if "CREATE TABLE events" in block)


@pytest.fixture
def clock(request: pytest.FixtureRequest, rng: random.Random) -> Clock | RestlessClock:
    """It moves on whenever it is looked at: by a millisecond, or as it likes where a test asks for that."""
    return RestlessClock(rng.randrange(2**32)) if hasattr(request, "param") else Clock(START)


def set_up(sql: SessionClient, block: str) -> None:
    """What stands before the view, with a history to ask about."""
    for text in (EVENTS, block):
        for table in re.findall(r"CREATE TABLE (\w+) \(.*\);", text):
            statement = next(line for line in text.splitlines() if line.startswith(f"CREATE TABLE {table}"))
            retained = statement.removesuffix(";") + " WITH (RETAIN HISTORY FOR '20d')"
            assert sql(retained) == ["CREATE TABLE"]


def write(sql: SessionClient, name: str, clock: RestlessClock, rng: random.Random) -> None:
    """Some rows, around the present."""
    now = clock.now_ms
    for _ in range(rng.randint(1, 3)):
        if name == "live":
            sql(f"INSERT INTO cache (key, value) VALUES ('{rng.choice('ab')}', '{rng.randint(0, 9)}')")
        elif name == "final":
            measured = now - rng.choice([0, 10, 4_000, 16_000, 40_000])
            sql(f"INSERT INTO readings (sensor, value, measured_ts) VALUES ('{rng.choice('ab')}', 7, {measured})")
        elif name == "shown":
            times = [now + rng.choice([-700, 0, 1, 2_500, 9_000]) for _ in range(3)]
            starts, ends, hidden = (f"to_timestamp({time} / 1000.0)" for time in times)
            hidden = rng.choice(["NULL", hidden])
            sql(f"INSERT INTO offers VALUES ('{rng.choice('ab')}', false, {starts}, {ends}, {hidden})")
        else:
            at = now + rng.choice([-700, 0, 0, 1, 2_500])
            sql(f"INSERT INTO events VALUES ('{rng.choice('ab')}', {at}, {at + rng.choice([-5, 0, 800, 5_000])})")


def asked(sql: SessionClient, query: str, time: int) -> list[str]:
    """The answer to the query at a time, sorted."""
    return sorted(sql(f"SELECT * FROM ({query}) AS q AS OF {time}")[1:])


@pytest.mark.parametrize("clock", ["restless"], indirect=True)
@pytest.mark.parametrize("name", [name for name in VIEWS if name != "q3"])
def test_is_what_its_query_gives_at_every_change(
    coordinator: Coordinator, sql: SessionClient, clock: RestlessClock, name: str, rng: random.Random
) -> None:
    query, block = VIEWS[name]
    set_up(sql, block)
    assert sql(f"CREATE MATERIALIZED VIEW {name} WITH (RETAIN HISTORY FOR '20d') AS {query}")[0].startswith("CREATE")
    subscriber = Subscriber(coordinator, f"SUBSCRIBE TO {name} WITH (PROGRESS)")
    times: set[int] = set()
    steps = [*(rng.choice([1, 30, 900, 7_000, 33_000]) for _ in range(8)), 40_000, 3_700_000, 90_000_000]
    for number, step in enumerate(steps):
        if number < 8:
            write(sql, name, clock, rng)
        clock.now_ms += step
        present, reached = clock.now_ms, 0
        coordinator.timeline.advance(present)
        while reached <= present:
            for when, progressed, *_ in subscriber.take():
                reached = int(when)
                if not progressed:
                    times.add(int(when))
    assert len(times) > 1, "something came and went"
    for time in sorted({*times, *(each - 1 for each in times)}):
        if time >= START:
            assert sorted(sql(f"SELECT * FROM {name} AS OF {time}")[1:]) == asked(sql, query, time), (
                f"at {time - START}"
            )
    assert sql(f"SELECT count(*) FROM {name}") == ["count", "0"], "in the end nothing is left"
    subscriber.rows.close()


def test_only_a_condition_in_having_keeps_rows_for_ever(sql: SessionClient) -> None:
    for block in dict.fromkeys((EVENTS, *(block for _, block in VIEWS.values()))):
        for text in split(block):
            if text.startswith("CREATE TABLE"):
                assert sql(text) == ["CREATE TABLE"]
    kept = {name: "\n".join(sql(f"EXPLAIN MAINTAINED PLAN FOR {VIEWS[name][0]}")) for name in VIEWS if name != "q3"}
    assert all("until" in text for text in kept.values())
    assert [name for name, text in kept.items() if "for ever" in text] == ["active"]


def test_what_is_expired_can_be_deleted(sql: SessionClient, clock: Clock) -> None:
    _, block = VIEWS["live"]
    table, view, _, delete, *_ = split(block)
    for statement in (table, view):
        assert sql(statement)[0].startswith("CREATE")
    sql("INSERT INTO cache (key, value) VALUES ('a', '1')")
    clock.now_ms += 1_000
    sql("INSERT INTO cache (key, value) VALUES ('b', '2')")
    clock.now_ms += 59_500
    assert sql("SELECT key FROM live") == ["key", "b"]
    assert sql(delete) == ["DELETE 1"]
    assert sql("SELECT key FROM cache") == ["key", "b"]


def test_q3_is_the_one_that_moves_through_years() -> None:
    from tests.tpch.test_as_of_now import Q3_NOW

    assert VIEWS["q3"][0].split() == Q3_NOW.split()
