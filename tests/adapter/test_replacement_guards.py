"""Guards of APPLY: cycles, definitions that fail, too many rows; and what a replacement brings along."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from everview.adapter.catalog.items import Table
from everview.adapter.coordinator import Coordinator
from everview.adapter.retention import FOR_EVER_MS
from everview.adapter.statements.parse import parse
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient
from tests.adapter.test_replacements import failure, item_id
from tests.adapter.test_restart import open_at
from tests.waiting import eventually

ALTERED = ["ALTER MATERIALIZED VIEW"]
CREATED = ["CREATE MATERIALIZED VIEW"]


@pytest.fixture
def pair(sql: SessionClient) -> SessionClient:
    """Two views of a table: a, and b."""
    sql("CREATE TABLE t (k int, v int) WITH (RETAIN HISTORY FOR '1h')")
    sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 0)")
    for name in ("a", "b"):
        sql(f"CREATE MATERIALIZED VIEW {name} WITH (RETAIN HISTORY FOR '1h') AS SELECT k, v FROM t")
    return sql


# Cycles


def test_two_staged_replacements_that_become_a_cycle(coordinator: Coordinator, pair: SessionClient) -> None:
    """Each is fine by itself; after one is applied, the other would close a cycle: it waits for nothing, and fails."""
    assert pair("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k, v + 1 AS v FROM b") == CREATED
    assert pair("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, v + 1 AS v FROM a") == CREATED
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra") == ALTERED
    found = failure(pair, "ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb")
    assert found.sqlstate == "42P19"
    assert found.message == 'cannot apply replacement "rb" because "b" and "a" would depend on themselves'
    assert found.detail == '"b" would read "a", by its replacement "rb"\n"a" reads "b"'
    pair("INSERT INTO t VALUES (4, 40)")
    assert sorted(pair("SELECT * FROM b")[1:]) == ["1|10", "2|20", "3|0", "4|40"]  # it goes on
    assert sorted(pair("SELECT * FROM a")[1:]) == ["1|11", "2|21", "3|1", "4|41"]
    found = failure(pair, "SHOW REPLACEMENT DIFF nobody")
    assert pair("DROP MATERIALIZED VIEW rb") == ["DROP MATERIALIZED VIEW"]


def test_a_cycle_by_a_view_between_and_one_by_a_rollback(pair: SessionClient) -> None:
    pair("CREATE VIEW plain AS SELECT k, v FROM a")
    pair("CREATE MATERIALIZED VIEW middle AS SELECT k, v FROM plain")
    pair("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, v FROM middle")
    pair("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k, v * 2 AS v FROM b")
    found = failure(pair, "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb")
    assert found.sqlstate == "42P19"
    assert (found.detail or "").splitlines() == [
        '"a" would read "b", by its replacement "ra"',
        '"b" would read "middle", by its replacement "rb"',
        '"middle" reads "plain"',
        '"plain" reads "a"',
    ]
    # b was made from a once; going back there while a is made from b is a cycle too
    assert pair("ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb") == ALTERED
    pair("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, v FROM t")
    assert pair("ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb") == ALTERED
    assert pair("ALTER MATERIALIZED VIEW b ROLLBACK REPLACEMENT") == ALTERED
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra") == ALTERED
    assert failure(pair, "ALTER MATERIALIZED VIEW b APPLY REPLACEMENT b_rollback").sqlstate == "42P19"


def test_who_waits_learns_of_a_cycle(coordinator: Coordinator, pair: SessionClient) -> None:
    """One waits, with nothing held up yet, while another applies what closes the cycle."""
    pair("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k, v + 1 AS v FROM b")
    pair("SELECT * FROM ra")
    pair("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, v + 1 AS v FROM a")
    pair("SELECT * FROM rb")
    id = item_id(coordinator, "rb")
    upper = coordinator.environment.frontiers(id).upper.only
    coordinator.maintenance.limit(id, upper)  # it goes no further
    pair("INSERT INTO t VALUES (4, 4)")
    pair("SELECT * FROM b")
    answers: list[list[str]] = []
    waiting = SessionClient(coordinator)
    statement = "ALTER MATERIALIZED VIEW b APPLY REPLACEMENT rb"
    thread = threading.Thread(target=lambda: answers.append(waiting(statement)))
    thread.start()
    eventually(lambda: waiting.session.info.running is not None)
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra WITH (TIMEOUT '20s')") == ALTERED
    thread.join(20)
    assert [each[0].split(" because")[0] for each in answers] == ['! 42P19 cannot apply replacement "rb"']
    pair("INSERT INTO t VALUES (9, 9)")
    assert "9|10" in pair("SELECT * FROM a")


def test_a_cycle_of_one_that_applies_itself_is_told(pair: SessionClient) -> None:
    pair("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k, v + 1 AS v FROM b")
    pair("CREATE MATERIALIZED VIEW rb REPLACING b AS SELECT k, v + 1 AS v FROM a")
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra") == ALTERED
    pair("DROP MATERIALIZED VIEW rb")
    pair("CREATE MATERIALIZED VIEW ra REPLACING a AS SELECT k, v FROM t")
    # With the replacement of a it is no cycle, so it can be staged; alone it is one.
    create = "CREATE MATERIALIZED VIEW rb REPLACING b WITH (APPLY WHEN HYDRATED) AS SELECT k, v + 1 AS v FROM a"
    assert pair(create) == CREATED
    status = "SELECT status, error FROM mz_internal.mz_replacements WHERE apply_when_hydrated"
    eventually(lambda: pair(status)[1].startswith("refused|"))
    assert '"b" and "a" would depend on themselves' in pair(status)[1]
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT ra") == ALTERED
    eventually(lambda: pair(status)[1:] == [])  # then it is none any more
    assert sorted(pair("SELECT * FROM b")[1:]) == ["1|11", "2|21", "3|1"]


# Definitions that fail

FAILING = "SELECT k, 60 / v AS v FROM t"


def test_one_that_fails_is_refused(pair: SessionClient) -> None:
    pair(f"CREATE MATERIALIZED VIEW r REPLACING a AS {FAILING}")
    found = failure(pair, "ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r")
    assert found.sqlstate == "55000"
    assert found.message == 'replacement "r" cannot be applied to "a" because it fails: division by zero'
    assert "22012" in (found.detail or "") and "ALLOW ERRORS" in (found.hint or "")
    shown = "SELECT status, error, target_error FROM mz_internal.mz_replacements"
    assert pair(shown)[1:] == ["failing|division by zero|NULL"]
    found = failure(pair, "SHOW REPLACEMENT DIFF r")
    assert found.sqlstate == "22012"
    assert found.message == ('the difference of "r" and "a" is not known: replacement "r" fails: division by zero')
    assert sorted(pair("SELECT * FROM a")[1:]) == ["1|10", "2|20", "3|0"]
    pair("DELETE FROM t WHERE v = 0")
    assert pair("SELECT * FROM r WHERE k = 1") == ["k|v", "1|6"]
    assert pair(shown)[1:] == ["ready|NULL|NULL"]
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r") == ALTERED


def test_one_that_fails_is_applied_if_that_is_wanted_and_one_that_heals_always(pair: SessionClient) -> None:
    pair(f"CREATE MATERIALIZED VIEW r REPLACING a AS {FAILING}")
    assert (
        pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r WITH (ALLOW ERRORS = false, TIMEOUT '20s')")[0][:2] == "! "
    )
    found = failure(pair, "ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r WITH (ALLOW ERRORS = perhaps)")
    assert (found.sqlstate, found.hint) == ("22023", "ALLOW ERRORS is true or false")
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r WITH (ALLOW ERRORS = true, TIMEOUT '20s')") == ALTERED
    assert pair("SELECT * FROM a") == ["! 22012 division by zero"]
    assert pair("SELECT details->>'error' FROM mz_audit_events ORDER BY id DESC LIMIT 1")[1:] == ["division by zero"]
    assert pair("ALTER MATERIALIZED VIEW a ROLLBACK REPLACEMENT") == ALTERED
    shown = "SELECT status, error, target_error FROM mz_internal.mz_replacements"
    pair("SELECT * FROM a_rollback")
    assert pair(shown)[1:] == ["ready|NULL|division by zero"]
    found = failure(pair, "SHOW REPLACEMENT DIFF a_rollback")
    assert found.message.endswith('is not known: materialized view "a" fails: division by zero')
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT a_rollback") == ALTERED
    assert sorted(pair("SELECT * FROM a")[1:]) == ["1|10", "2|20", "3|0"]


def test_one_that_applies_itself_waits_until_it_heals(tmp_path: Path, clock: Clock) -> None:
    status = "SELECT status, error FROM mz_internal.mz_replacements"
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        sql("CREATE TABLE t (k int, v int)")
        sql("INSERT INTO t VALUES (1, 10), (2, 0)")
        sql("CREATE MATERIALIZED VIEW a AS SELECT k, v FROM t")
        sql(f"CREATE MATERIALIZED VIEW r REPLACING a WITH (APPLY WHEN HYDRATED) AS {FAILING}")
        eventually(lambda: sql(status)[1:] == ["failing|division by zero"])
        assert sorted(sql("SELECT * FROM a")[1:]) == ["1|10", "2|0"]
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        assert sql(status)[1:] == ["failing|division by zero"]
        sql("DELETE FROM t WHERE v = 0")
        eventually(lambda: sql("SELECT * FROM a") == ["k|v", "1|6"])


# How many rows change


def test_no_more_rows_than_allowed(pair: SessionClient) -> None:
    pair("CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v + 1 AS v FROM t WHERE k < 3")
    found = failure(pair, "ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r WITH (MAX ROWS 4)")
    assert found.sqlstate == "55000"
    assert found.message == ('replacement "r" cannot be applied to "a" because it changes 5 rows, more than MAX ROWS 4')
    assert found.detail == "it adds 2 rows and removes 3"
    assert sorted(pair("SELECT * FROM a")[1:]) == ["1|10", "2|20", "3|0"]
    statement = "ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r WITH (MAX ROWS = 5, ALLOW ERRORS, TIMEOUT '20s')"
    assert pair(statement) == ALTERED
    for value, error in (("-1", '22023 invalid MAX ROWS: "-1"'), ("many", '22023 invalid MAX ROWS: "many"')):
        pair("CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v FROM t")
        assert pair(f"ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r WITH (MAX ROWS {value})") == [f"! {error}"]


def test_no_more_rows_than_allowed_of_one_that_applies_itself(pair: SessionClient) -> None:
    create = "CREATE MATERIALIZED VIEW r REPLACING a WITH (APPLY WHEN HYDRATED, MAX ROWS 2) AS SELECT k, v FROM t"
    assert pair(f"{create} WHERE v > 5 AND k < 2") == CREATED
    eventually(lambda: pair("SELECT * FROM mz_internal.mz_replacements")[1:] == [])
    assert pair("SELECT * FROM a") == ["k|v", "1|10"]
    assert pair(f"{create.replace('2)', '0)')}") == CREATED
    shown = "SELECT status, error FROM mz_internal.mz_replacements"
    eventually(lambda: pair(shown)[1].startswith("refused|"))
    assert "it changes 2 rows, more than MAX ROWS 0" in pair(shown)[1]
    (created,) = pair("SHOW CREATE MATERIALIZED VIEW r")[1:]
    assert "WITH (APPLY WHEN HYDRATED, MAX ROWS 0) AS" in created and parse(created.partition("|")[2])
    pair("DELETE FROM t WHERE k > 1")
    eventually(lambda: pair("SELECT * FROM mz_internal.mz_replacements")[1:] == [])


def test_guards_are_options_of_applying(pair: SessionClient) -> None:
    for option in ("MAX ROWS 5", "ALLOW ERRORS", "FORWARD TIME"):
        answer = pair(f"CREATE MATERIALIZED VIEW r REPLACING a WITH ({option}) AS SELECT k, v FROM t")
        assert answer == [f"! 22023 {option} is no option of a replacement"]


# RETAIN HISTORY


def test_retain_history_comes_along(coordinator: Coordinator, pair: SessionClient, clock: Clock) -> None:
    def lag() -> int:
        item = coordinator.catalog.state.items[item_id(coordinator, "a")]
        return coordinator.environment.shard(item.id).held[item.reader or ""].lag_ms

    hour = 3_600_000 - 1_000
    assert lag() == hour
    pair("CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v + 1 AS v FROM t")
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r") == ALTERED
    assert lag() == hour  # nothing was said
    pair("CREATE MATERIALIZED VIEW r REPLACING a WITH (RETAIN HISTORY FOR '2h') AS SELECT k, v FROM t")
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r") == ALTERED
    assert lag() == 2 * 3_600_000 - 1_000
    assert "RETAIN HISTORY FOR '7200000 ms'" in pair("SHOW CREATE MATERIALIZED VIEW a")[1]
    pair("CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v + 2 AS v FROM t")
    pair("ALTER MATERIALIZED VIEW r SET (RETAIN HISTORY FOR '60 days')")
    before = coordinator.timeline.upper - 1
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r") == ALTERED
    assert lag() == 60 * 86_400_000 - 1_000
    clock.now_ms += 30 * 86_400_000
    pair("INSERT INTO t VALUES (5, 5)")
    assert sorted(pair(f"SELECT * FROM a AS OF {before}")[1:]) == ["1|10", "2|20", "3|0"]


def test_history_for_ever(tmp_path: Path, clock: Clock) -> None:
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        for text in ("25 days", "365000 days", f"{2**62} ms", "infinity"):
            name = f"t{len(coordinator.catalog.state.items)}"
            assert sql(f"CREATE TABLE {name} (k int) WITH (RETAIN HISTORY FOR '{text}')") == ["CREATE TABLE"], text
        (created,) = sql(f"SHOW CREATE TABLE {name}")[1:]
        assert created.endswith("WITH (RETAIN HISTORY FOR 'infinity')")
        assert next(each for each in coordinator.catalog.state.of(Table) if each.name == name).retain_ms == (
            FOR_EVER_MS
        )
        sql(f"INSERT INTO {name} VALUES (1)")
        then = coordinator.timeline.upper - 1
        sql(f"DELETE FROM {name}")
        assert sql("CREATE TABLE x (k int) WITH (RETAIN HISTORY FOR 'always')")[0].startswith("! 22023")
    clock.now_ms += 200 * 365 * 86_400_000
    with open_at(tmp_path / "data", clock) as coordinator:
        sql = SessionClient(coordinator)
        sql(f"INSERT INTO {name} VALUES (2)")
        coordinator.timeline.advance(clock())
        assert sql(f"SELECT * FROM {name} AS OF {then}") == ["k", "1"]
        sql(f"ALTER TABLE {name} SET (RETAIN HISTORY FOR '1s')")
        sql(f"INSERT INTO {name} VALUES (3)")
        clock.now_ms += 10_000
        sql(f"INSERT INTO {name} VALUES (4)")
        assert sql(f"SELECT * FROM {name} AS OF {then}")[0].startswith("! 55000")


# Going back to a version


def test_back_to_a_version(pair: SessionClient) -> None:
    for number in range(2, 5):
        pair(f"CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v * {number} AS v FROM t")
        assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r") == ALTERED
    assert pair("ALTER MATERIALIZED VIEW a ROLLBACK REPLACEMENT TO VERSION 2") == ALTERED
    assert sorted(pair("SELECT * FROM a_rollback")[1:]) == ["1|20", "2|40", "3|0"]
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT a_rollback") == ALTERED
    assert sorted(pair("SELECT * FROM a")[1:]) == ["1|20", "2|40", "3|0"]
    found = failure(pair, "ALTER MATERIALIZED VIEW a ROLLBACK REPLACEMENT TO VERSION 9")
    assert (found.sqlstate, found.message) == ("42704", 'materialized view "a" has no version 9')
    assert found.detail == "versions 1, 2, 3, 4 can be gone back to; it is at version 5"
    found = failure(pair, "ALTER MATERIALIZED VIEW a ROLLBACK REPLACEMENT TO VERSION 5")
    assert (found.sqlstate, found.message) == ("55000", 'materialized view "a" is at version 5 already')
    assert pair("ALTER MATERIALIZED VIEW a ROLLBACK REPLACEMENT TO VERSION 1") == ALTERED
    assert pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT a_rollback") == ALTERED
    assert sorted(pair("SELECT * FROM a")[1:]) == ["1|10", "2|20", "3|0"]


def test_a_version_whose_inputs_are_gone(pair: SessionClient) -> None:
    pair("CREATE TABLE u (k int, v int)")
    pair("CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v FROM u")
    pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r")
    pair("CREATE MATERIALIZED VIEW r REPLACING a AS SELECT k, v FROM t")
    pair("ALTER MATERIALIZED VIEW a APPLY REPLACEMENT r")
    assert pair("DROP TABLE u") == ["DROP TABLE"]
    pair("CREATE TABLE u (k int, v int)")  # another one
    for statement in ("ROLLBACK REPLACEMENT", "ROLLBACK REPLACEMENT TO VERSION 2"):
        found = failure(pair, f"ALTER MATERIALIZED VIEW a {statement}")
        assert found.sqlstate == "42704"
        assert found.message == 'cannot go back to version 2 of "a": something that it reads was dropped'
