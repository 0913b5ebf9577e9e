"""Compact collection `u1` of the environment in a folder; print peak memory in MiB, seconds, and rows left."""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

from everview.storage.environment import Environment

with Environment.open(sys.argv[1], background=False) as environment:
    started = time.perf_counter()
    environment.maintenance.compact("u1")
    took_s = time.perf_counter() - started
    left = sum(batch.rows for batch in environment.shard("u1").batches.values())
status = Path("/proc/self/status")
if status.exists():  # getrusage would give the peak of the process that started this one, if that is higher
    (peak_kib,) = (int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
# Memory-mapped input counts here too, as long as the system leaves it in memory: this is an upper bound.
print(peak_kib / 1024, took_s, left)
