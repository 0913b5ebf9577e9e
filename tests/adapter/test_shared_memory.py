"""All sessions together take a bounded amount of memory: statements that run, and results that nobody has read yet."""

from __future__ import annotations

import gc

import pytest

from everview.adapter import contract, results
from everview.compute import allowance
from everview.compute.allowance import ROW_BYTES, Allowance, Budget, Exhausted
from tests.adapter.scripts import SessionClient

SERIES = "SELECT i, i + 1 FROM generate_series(1, 50000) AS s(i)"


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Budget:
    made = Budget(64 << 20)
    monkeypatch.setattr(allowance, "EVERYONE", made)
    monkeypatch.setattr(results, "EVERYONE", made)
    monkeypatch.setattr(contract, "EVERYONE", made)
    return made


def test_results_that_are_kept_count_until_they_are_closed(sql: SessionClient, budget: Budget) -> None:
    """A client opened cursor after cursor, each with all its rows in the server's memory."""
    sql("BEGIN")
    told = []
    for number in range(10):
        sql("SAVEPOINT before")
        told.append(sql(f"DECLARE c{number} CURSOR FOR {SERIES}")[0])
        if told[-1].startswith("!"):
            sql("ROLLBACK TO before")
    assert told[:2] == ["DECLARE CURSOR"] * 2 and told[-1].startswith("! 53200"), told
    assert sql("FETCH 1 FROM c0")[1:] == ["1|2"]
    sql("ROLLBACK")
    gc.collect()
    assert budget._left == budget._total
    assert len(sql(SERIES)) == 50_001
    gc.collect()
    assert budget._left == budget._total


def test_evaluations_at_once_share_what_there_is(budget: Budget) -> None:
    held = [Allowance(memory_bytes=256 << 20) for _ in range(3)]
    for each in held[:2]:
        each.count((30 << 20) // ROW_BYTES)
        each.take(1 << 20)
    with pytest.raises(Exhausted, match="out of memory"):
        for _ in range(10):
            held[2].count((10 << 20) // ROW_BYTES)
    held[0].close()
    held[0].close()
    held[2].count((10 << 20) // ROW_BYTES)
    for each in held:
        each.close()
    assert budget._left == budget._total


def test_prepared_statements_count_as_long_as_a_session_keeps_them(
    sql: SessionClient, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of a thousand sessions might keep as many as one may."""
    monkeypatch.setattr(contract, "ALL_HEAVY_MAX", 1 << 40)
    long = "x" * 10_000_000
    told = [sql(f"PREPARE p{number} AS SELECT '{long}', {number}")[0] for number in range(8)]
    assert told[0] == "PREPARE" and told[-1].startswith("! 53200"), told
    assert sql("DEALLOCATE ALL") == ["DEALLOCATE ALL"]
    gc.collect()
    assert budget._left == budget._total
    for _ in range(3):  # the same from the cache, which all sessions share, takes no more
        assert sql("PREPARE q AS SELECT 1, 2, 3") == ["PREPARE"]
        assert sql("DEALLOCATE q") == ["DEALLOCATE"]
    gc.collect()
    assert budget._total - budget._left < 10_000


def test_garbage_that_gives_back_its_part_while_another_takes_does_not_wait(budget: Budget) -> None:
    """The collector runs in the thread that holds the lock."""
    with budget._lock:
        budget.give_back(0)
