"""Compact collection `u1` of the environment in the folder given, and print peak memory in MiB, seconds and rows left."""

from __future__ import annotations

import resource
import sys
import time

from everview.storage.environment import Environment

with Environment.open(sys.argv[1], background=False) as environment:
    started = time.perf_counter()
    environment.maintenance.compact("u1")
    took_s = time.perf_counter() - started
    left = sum(batch.rows for batch in environment.shard("u1").batches.values())
# Memory-mapped input counts here too, as long as the system leaves it in memory: this is an upper bound.
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, took_s, left)
