"""Statements are bound once: their templates travel from where they are prepared to where they are run."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from everview.adapter import planner
from everview.adapter.coordinator import Coordinator
from everview.adapter.templates import IN_USE_MAX, LATEST_MAX, TEXT_CHARACTERS_MAX, Templates
from everview.compute.sql import query as sql
from tests.adapter.scripts import SessionClient


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often statements are bound, by what does it."""
    counted: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(module, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)

    count(planner, "bind_change")
    count(sql, "plan")
    count(planner, "optimize")
    return counted


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (1, 'one')",
        "INSERT INTO t VALUES " + ", ".join(f"({n}, 'a longer text')" for n in range(TEXT_CHARACTERS_MAX // 10)),
        "INSERT INTO t VALUES (2, 'two') RETURNING k",
        "UPDATE t SET v = 'other' WHERE k = 1",
        "DELETE FROM t WHERE k = 1",
    ],
    ids=["insert", "long insert", "returning", "update", "delete"],
)
def test_a_write_is_bound_once(sql: SessionClient, bindings: Counter[str], statement: str) -> None:
    sql("CREATE TABLE t (k int, v text)")
    bindings.clear()
    assert not sql(statement)[0].startswith("!")
    assert bindings["bind_change"] == 1 and bindings["plan"] == 0


@pytest.mark.parametrize("long", [False, True])
def test_a_read_is_bound_once(sql: SessionClient, bindings: Counter[str], long: bool) -> None:
    sql("CREATE TABLE t (k int, v text)")
    bindings.clear()
    statement = "SELECT k FROM t WHERE v = " + ("'" + "x" * TEXT_CHARACTERS_MAX + "'" if long else "'x'")
    assert sql(statement) == ["k"]
    assert bindings["plan"] == 1 and bindings["optimize"] == 1


def test_what_was_prepared_is_bound_anew_when_names_mean_something_else(
    coordinator: Coordinator, sql: SessionClient
) -> None:
    sql("CREATE TABLE t (k int)")
    sql("CREATE SCHEMA other")
    sql("CREATE TABLE other.t (k int)")
    sql("INSERT INTO t VALUES (1)")
    prepared = sql.session.prepare("INSERT INTO t VALUES (5)")
    sql("SET search_path = other")
    sql.session.run(prepared)
    sql.session.sync()
    assert sql("SELECT k FROM other.t") == ["k", "5"]
    assert sql("SELECT k FROM public.t") == ["k", "1"]
    read = sql.session.prepare("SELECT k FROM t")
    SessionClient(coordinator)("DROP TABLE other.t")
    with pytest.raises(Exception, match="does not exist"):
        sql.session.run(read)


def test_texts_that_come_once_push_nothing_out() -> None:
    templates = Templates()
    for key in range(IN_USE_MAX):
        templates.put(key, None)
        assert templates.get(key) == (True, None)
    for key in range(10 * IN_USE_MAX):
        templates.put(("once", key), None)
    assert all(templates.get(key)[0] for key in range(IN_USE_MAX))
    known = [templates.get(("once", key))[0] for key in range(10 * IN_USE_MAX)]
    assert sum(known) == LATEST_MAX and all(known[-LATEST_MAX:])


def test_a_short_text_that_means_a_long_value_is_not_kept(coordinator: Coordinator, sql: SessionClient) -> None:
    """Hundreds of kept plans of megabytes each would take the memory of everyone."""
    tracemalloc.start()
    try:
        for number in range(40):
            assert sql(f"SELECT length(repeat('x', 5000000)) + {number}")[1:] == [str(5_000_000 + number)]
            assert sql(f"SELECT repeat('x', 5000000) || {number} = ''")[1:] == ["f"]
            assert len(sql(f"SELECT repeat('x', 2000000) || {number}")[1]) > 2_000_000
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 60_000_000
    finally:
        tracemalloc.stop()


def test_prepared_statements_of_a_session_take_a_bounded_amount_of_memory(sql: SessionClient) -> None:
    told = [sql(f"PREPARE p{number} AS SELECT repeat('{number}', 5000000)")[0] for number in range(1, 16)]
    assert told[:5] == ["PREPARE"] * 5
    assert told[-1].startswith("! 53200"), told
    assert sql("PREPARE small AS SELECT 1") == ["PREPARE"]
    assert sql("DEALLOCATE p1") == ["DEALLOCATE"]
