"""All sessions together take a bounded amount of memory: statements that run, and results that nobody has read yet."""

from __future__ import annotations

import gc

import pytest

from everview.adapter import results
from everview.compute import allowance
from everview.compute.allowance import ROW_BYTES, Allowance, Budget, Exhausted
from tests.adapter.scripts import SessionClient

SERIES = "SELECT i, i + 1 FROM generate_series(1, 50000) AS s(i)"


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> Budget:
    made = Budget(64 << 20)
    monkeypatch.setattr(allowance, "EVERYONE", made)
    monkeypatch.setattr(results, "EVERYONE", made)
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
