"""Restarts and crashes: what was acknowledged is there, nothing is half there, and views go on where they were."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.compute.capabilities import Tokens, note_of
from everview.storage.contract import Put
from everview.storage.environment import Environment
from everview.storage.faults import Crash, armed
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient

STATEMENTS = (
    "CREATE TABLE a (x int)",
    "INSERT INTO a VALUES (1)",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(x) AS s FROM a",
    "CREATE TABLE b (y int)",
    "INSERT INTO a VALUES (2), (3)",
    "CREATE VIEW v AS SELECT x + 1 AS z FROM a",
    "CREATE INDEX i ON v (z)",
    "BEGIN; INSERT INTO a VALUES (4); INSERT INTO b VALUES (40); COMMIT",
    "UPDATE a SET x = x * 10 WHERE x = 1",
    "ALTER TABLE b RENAME TO c",
    "BEGIN; CREATE TABLE d (z int); CREATE VIEW w AS SELECT z FROM d; CREATE INDEX j ON d (z); COMMIT",
    "BEGIN; CREATE TABLE e (z int); INSERT INTO e VALUES (5); INSERT INTO a VALUES (5); UPDATE c SET y = 41; COMMIT",
    "DROP VIEW v",
    "COMMENT ON TABLE a IS 'said'",
)
POINTS = ("commit.before", "commit.after", "consensus.commit.applied", "consensus.commit.done")


def open_at(path: Path, clock: Clock) -> Coordinator:
    return Coordinator.open(path, clock=clock, ticking=False)


def state(coordinator: Coordinator) -> list[str]:
    """All that can be seen, in a form in which two environments can be compared."""
    sql = SessionClient(coordinator)
    found = sorted(sql("SELECT name, type FROM mz_objects WHERE id LIKE 'u%'"))
    for name in ("a", "b", "c", "e", "m", "v"):
        found += [f"{name}: {line}" for line in sorted(sql(f"SELECT * FROM {name}"))]
    return found + sql("SELECT comment FROM mz_internal.mz_comments")


def states(path: Path, clock: Clock) -> list[list[str]]:
    """What is seen after each of the statements, when nothing goes wrong."""
    with open_at(path, clock) as coordinator:
        sql = SessionClient(coordinator)
        seen = [state(coordinator)]
        for statement in STATEMENTS:
            assert not any(line.startswith("!") for line in sql(statement)), statement
            seen.append(state(coordinator))
        return seen


@pytest.fixture(scope="module")
def seen_states(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    return states(tmp_path_factory.mktemp("whole"), Clock())


def test_a_restart_changes_nothing(tmp_path: Path, clock: Clock) -> None:
    seen = states(tmp_path, clock)
    with open_at(tmp_path, clock) as coordinator:
        assert state(coordinator) == seen[-1]


def test_views_go_on_without_starting_over(tmp_path: Path, clock: Clock) -> None:
    states(tmp_path, clock)
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        item = next(each for each in coordinator.catalog.state.items.values() if each.name == "m")
        upper = coordinator.environment.frontiers(item.id).upper.only
        assert upper > coordinator.environment.shard(item.id).spec.initial
        sql("INSERT INTO a VALUES (1000)")
        assert sql("SELECT n FROM m") == ["n", "6"]


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_anywhere(
    tmp_path: Path, point: str, long_forms: bool, seen_states: list[list[str]], rng: random.Random
) -> None:
    """The process dies at some commit: afterwards things are as after the last statement, or as before it."""
    seen, clock = seen_states, Clock()
    hits = list(range(1, 60)) if long_forms else sorted(rng.sample(range(1, 45), 5))
    for hit in hits:
        folder = tmp_path / f"crash {hit}"
        coordinator = open_at(folder, clock)
        sql = SessionClient(coordinator)
        done, crashed = 0, False
        with armed(point, hit, thread=threading.main_thread()):
            for statement in STATEMENTS:
                try:
                    answer = sql(statement)
                except Crash:
                    crashed = True
                    break
                if any(line.startswith("!") for line in answer):
                    crashed = True  # the write was interrupted
                    break
                done += 1
        abandon(coordinator)
        with open_at(folder, clock) as reopened:
            found = state(reopened)
            assert found in (seen[done : done + 2] if crashed else [seen[done]]), f"{point} {hit} after {done}"
            known = {item.id for item in reopened.catalog.state.items.values()}
            known |= {each.id for each in reopened.maintenance.shared() if each.users}
            stray = [id for id in reopened.environment.ids() if id.partition(".")[0] not in known]
            assert not stray, f"{point} {hit}: left over {stray}"
            events = [event.number for event in reopened.catalog.events()]
            assert events == list(range(len(events)))
        if not crashed:
            break  # there are no more commits than that


def abandon(coordinator: Coordinator) -> None:
    """Leave a coordinator as a dead process would: what it holds is not let go properly."""
    with suppress(Crash):  # it may be dying at that very commit
        coordinator.maintenance.close()
    with suppress(Crash):
        coordinator.environment.close()


@pytest.mark.parametrize(
    "anew",
    [
        "DROP MATERIALIZED VIEW m; CREATE MATERIALIZED VIEW m AS SELECT x, count(*) AS n FROM a GROUP BY x",
        "CREATE REPLACEMENT MATERIALIZED VIEW r FOR m AS SELECT x, count(*) AS n FROM a GROUP BY x;"
        "ALTER MATERIALIZED VIEW m APPLY REPLACEMENT r",
    ],
)
def test_state_of_another_version_is_not_taken_for_ours(tmp_path: Path, clock: Clock, anew: str) -> None:
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE a (x int)")
        sql("CREATE MATERIALIZED VIEW m AS SELECT x, count(*) AS n FROM a GROUP BY x")
        sql("CREATE MATERIALIZED VIEW other AS SELECT x + 1 AS y FROM a")
        sql("INSERT INTO a VALUES (1), (1)")
        assert sql("SELECT * FROM m") == ["x|n", "1|2"]
        item = next(each for each in coordinator.catalog.state.items.values() if each.name == "m")
    with Environment.open(tmp_path, background=False) as environment:  # as another version might have left it
        held = Tokens.decoded(environment.get(note_of(item.id)) or b"")
        kept = next(id for id in held.outputs if ".s" in id)
        outputs = {id: pair for id, pair in held.outputs.items() if id != kept}
        environment.commit(Put(note_of(item.id), replace(held, outputs=outputs).encoded()))
    with open_at(tmp_path, clock) as coordinator:
        sql = SessionClient(coordinator)
        sql("INSERT INTO a VALUES (5)")
        assert sql("SELECT y FROM other ORDER BY 1") == ["y", "2", "2", "6"]
        assert "made by another version" in sql("SELECT * FROM m")[0]
        for statement in anew.split(";"):
            assert not sql(statement)[0].startswith("!")
        assert sql("SELECT * FROM m ORDER BY 1") == ["x|n", "1|2", "5|1"]
    with open_at(tmp_path, clock) as coordinator:
        assert SessionClient(coordinator)("SELECT * FROM m ORDER BY 1") == ["x|n", "1|2", "5|1"]
