"""Figures of sources and sinks for Prometheus."""

from __future__ import annotations

import json
import re
from pathlib import Path

from everview.adapter.coordinator import Coordinator
from everview.serve.stream_figures import add_stream_figures
from everview.server.metrics import Metrics
from tests.adapter.conftest import Clock
from tests.adapter.delivery import delivered, ok
from tests.adapter.scripts import SessionClient
from tests.adapter.test_cdc_sources import read_so_far


def test_what_sources_and_sinks_have_done_and_cannot_do(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    with Coordinator.open(tmp_path / "data", clock=Clock(), ticking=False) as coordinator:
        sql, metrics = SessionClient(coordinator), Metrics()
        add_stream_figures(metrics, coordinator)
        ok(sql, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2)")
        ok(sql, f"CREATE SINK s FROM t INTO CDC FILES '{stream}' WITH (INTERVAL_MS 0)")
        delivered(coordinator, "s")
        ok(sql, f"CREATE SOURCE c FROM CDC FILES '{stream}'", "CREATE SOURCE g FROM LOAD GENERATOR COUNTER")
        read_so_far(coordinator, "c")
        shown = metrics.render().decode()
        assert 'everview_source_updates_total{source="public.c"} 2.0' in shown and "public.g" not in shown
        assert 'everview_source_failing{source="public.c"} 0.0' in shown
        assert 'everview_sink_rows_total{sink="public.s"} 2.0' in shown
        assert 'everview_sink_lag_seconds{sink="public.s"} 0.0' in shown
        assert re.search(r'everview_sink_transactions_total\{sink="public.s"\} [1-9]', shown)
        (stream / "z.jsonl").write_text(f"{json.dumps({'updates': 5})}\n")
        read_so_far(coordinator, "c")
        shown = metrics.render().decode()
        assert 'everview_source_failing{source="public.c"} 1.0' in shown
        assert 'everview_source_bad_records{source="public.c"} 1.0' in shown
