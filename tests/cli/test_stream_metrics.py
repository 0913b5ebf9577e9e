"""Figures of sources and sinks for Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.cdc.source import Source
from everview.errors import EverviewError
from everview.serve.stream_metrics import add_stream_metrics
from everview.server.metrics import Metrics
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, ok
from tests.adapter.scripts import SessionClient
from tests.adapter.test_cdc_sources import read_so_far
from tests.waiting import eventually


def test_what_sources_and_sinks_have_done_and_cannot_do(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    with Coordinator.open(tmp_path / "data", clock=Clock(), ticking=False) as coordinator:
        sql, metrics = SessionClient(coordinator), Metrics()
        add_stream_metrics(metrics, coordinator)
        ok(sql, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2)")
        ok(sql, f"CREATE SINK s FROM t INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0)")
        delivered(coordinator, "s")
        ok(sql, f"CREATE SOURCE c FROM CDC FILES '{stream}'", "CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
        read_so_far(coordinator, "c")
        shown = metrics.render().decode()
        assert 'everview_source_updates_total{source="public.c"} 2.0' in shown
        assert 'everview_source_failing{source="public.g"} 0.0' in shown
        assert 'everview_source_failing{source="public.c"} 0.0' in shown
        assert 'everview_source_failures_total{source="public.c"} 0.0' in shown
        assert re.search(r'everview_source_frontier\{source="public.c"\} 1\.7', shown)
        assert 'everview_sink_rows_total{sink="public.s"} 2.0' in shown
        assert 'everview_sink_lag_seconds{sink="public.s"} 0.0' in shown
        assert re.search(r'everview_sink_transactions_total\{sink="public.s"\} [1-9]', shown)
        (stream / "z.jsonl").write_text(f"{json.dumps({'updates': 5})}\n")
        read_so_far(coordinator, "c")
        shown = metrics.render().decode()
        assert 'everview_source_failing{source="public.c"} 1.0' in shown
        assert 'everview_source_bad_records{source="public.c"} 1.0' in shown
        assert ok(sql, "SELECT retry_at FROM mz_internal.mz_source_statuses WHERE name = 'c'")[1:] == ["NULL"]


def test_a_generator_tells_what_it_has_made_and_how_far_it_is_behind(tmp_path: Path) -> None:
    clock = Clock()
    with Coordinator.open(tmp_path / "data", clock=clock, ticking=False) as coordinator:
        sql, metrics = SessionClient(coordinator), Metrics()
        add_stream_metrics(metrics, coordinator)
        ok(sql, "CREATE SOURCE g FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s')")

        def figure(name: str) -> float:
            found = re.search(rf'^everview_source_{name}{{source="public.g"}} (\S+)$', metrics.render().decode(), re.M)
            return -1.0 if found is None else float(found[1])

        clock.now_ms += 3_000
        eventually(lambda: figure("updates_total") >= 3 and figure("bytes_total") > 0)
        assert figure("lag_seconds") >= 0 and figure("lag_bytes") == -1.0
        assert int(ok(sql, "SELECT rows FROM mz_internal.mz_source_statistics")[1]) >= 3


def test_a_source_that_cannot_be_read_says_when_it_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = tmp_path / "stream"
    stream.mkdir()
    (stream / "a.jsonl").write_bytes(b'{"updates": \0\xff}\n')
    with Coordinator.open(tmp_path / "data", clock=Clock(), ticking=False) as coordinator:
        sql, metrics = SessionClient(coordinator), Metrics()
        add_stream_metrics(metrics, coordinator)
        ok(sql, f"CREATE SOURCE c (id int) FROM CDC FILES '{stream}'")
        read_so_far(coordinator, "c")
        assert ok(sql, "SELECT raw FROM mz_internal.mz_source_bad_records")[1:] == ['{"updates": \\x00\\xff}']

        def fail(*_: object) -> bool:
            raise EverviewError("the store cannot be reached")

        monkeypatch.setattr(Source, "poll", fail)
        status = "SELECT retry_at > '2020-01-01', error IS NOT NULL FROM mz_internal.mz_source_statuses"
        eventually(lambda: ok(sql, status)[1:] == ["t|t"])
        assert re.search(r'everview_source_failures_total\{source="public.c"\} [1-9]', metrics.render().decode())
