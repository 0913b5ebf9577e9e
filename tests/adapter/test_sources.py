"""Load generators begin when they are made, whatever the timeline did before."""

from __future__ import annotations

from typing import Any

import pytest

from everview.adapter.catalog.items import Source
from everview.adapter.coordinator import Coordinator
from tests.adapter.conftest import Clock
from tests.adapter.scripts import SessionClient


@pytest.mark.parametrize("idle_ms", [0, 40_000, 86_400_000])
def test_a_generator_on_an_idle_server_starts_now(
    coordinator: Coordinator, sql: SessionClient, clock: Clock, idle_ms: int
) -> None:
    sql("CREATE TABLE t (a int)")
    clock.now_ms += idle_ms
    made = clock.now_ms
    assert sql("CREATE SOURCE burst FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s')") == ["CREATE SOURCE"]
    _, count = sql("SELECT count(*) FROM burst WHERE mz_now() > 0")
    assert int(count) <= 1 + (clock.now_ms - made) // 1000
    clock.now_ms += 10_000
    _, later = sql("SELECT count(*) FROM burst WHERE mz_now() > 0")
    assert int(count) + 9 <= int(later) <= 1 + (clock.now_ms - made) // 1000
    spec: Any
    (spec,) = (item.spec for item in coordinator.catalog.state.of(Source))
    assert spec.start_ms >= made


def test_a_clock_that_went_back_does_not_matter(coordinator: Coordinator, sql: SessionClient, clock: Clock) -> None:
    sql("CREATE TABLE t (a int)")
    sql("INSERT INTO t VALUES (1)")
    upper = coordinator.timeline.upper
    clock.now_ms -= 3_600_000
    sql("CREATE SOURCE burst FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s')")
    spec: Any
    (spec,) = (item.spec for item in coordinator.catalog.state.of(Source))
    assert spec.start_ms >= upper
