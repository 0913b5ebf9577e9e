"""`python -m benchmarks [name ...]`: run all benchmarks, or those named. `BENCH_SCALE=0.1` makes them smaller."""

from __future__ import annotations

import os
import sys

from benchmarks import (
    bulk,
    cdc,
    compute,
    database,
    fleet,
    flow,
    hydration,
    queries,
    replacement,
    sources,
    storage,
    temporal,
)
from benchmarks.report import Report

SUITES = {
    "flow": flow.run,
    "storage": storage.run,
    "compute": compute.run,
    "cdc": cdc.run,
    "temporal": temporal.run,
    "replacement": replacement.run,
    "hydration": hydration.run,
    "database": database.run,
    "queries": queries.run,
    "fleet": fleet.run,
    "bulk": bulk.run,
    "sources": sources.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"error: no benchmark named {unknown[0]}\nhint: one of {', '.join(SUITES)}", file=sys.stderr)
        return 1
    report = Report()
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    for name in names or SUITES:
        SUITES[name](report, scale)
    report.table()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
