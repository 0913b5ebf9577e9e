"""Compute: hydration, ticks beside recomputation, over small and large state, bulk deltas beside Pathway, phases.

The view is TPC-H Q3 at scale 1, over the benchmark's own refresh stream; `BENCH_SCALE` shrinks the data, not the delta
of 1,000 rows. Both sides of a comparison run in this process, on the same Spark, one after the other.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import compute_pathway as pathway
from benchmarks.compute_setup import (
    Loaded,
    cache,
    engine_of,
    loaded,
    recompute,
    relation_of,
    run_in_turn,
    run_ticks,
    spark,
)
from benchmarks.report import Figure, Report, seconds
from everview.compute.dataflow import Dataflow
from everview.compute.engine.spark.session import Spark
from everview.compute.ir.relation import types
from tests.tpch.queries import QUERIES
from tests.tpch.recomputed import difference, use_snapshot
from tests.tpch.refresh import Changes
from tests.tpch.schema import TABLES
from tests.tpch.stored import advance, contents_of, install

Q3 = QUERIES[3]
Q3_ALL = Q3[: Q3.index("order by")]  # without ORDER BY and LIMIT, which Pathway has no operator for
LARGE_GROUPS = {
    "greatest and least of a group": """
        select l_returnflag, max(l_extendedprice) as highest, min(l_shipdate) as earliest, count(*) as lines
        from lineitem group by l_returnflag""",
    # Rounded, for Spark adds floats up in any order.
    "sums of floats of a group": """
        select l_returnflag, cast(sum(cast(l_extendedprice as double)) as numeric(20, 0)) as total,
            cast(avg(cast(l_quantity as double)) as numeric(20, 6)) as mean
        from lineitem group by l_returnflag""",
    "the first three of a group": """
        select l_shipmode, l_orderkey, l_linenumber, l_extendedprice from (
            select *, row_number() over (
                partition by l_shipmode order by l_extendedprice desc, l_orderkey, l_linenumber) as place
            from lineitem) as placed
        where place <= 3""",
}
DELTA_ROWS, TICKS = 1000, 20
BULK_ROWS, BATCHES, BULK_WARM_UPS, BULK_TICKS = 100_000, 20, 5, 5


def run(report: Report, scale: float) -> None:
    """All of them, on one Spark."""
    with folder() as scratch, spark(scratch) as started:
        report.title(f"TPC-H Q3 at scale {scale:g}: hydration, then a tick of {DELTA_ROWS:,} rows of RF1 and RF2")
        with folder() as place, loaded(scale, place / "data") as data:
            flow = hydration(report, started, data, place)
            with loaded(scale / 10, place / "a tenth") as tenth:
                small_deltas(report, started, (data, flow), tenth, place)
                phases(report, started, data, flow)
                flow.drop()
                report.title(f"three groups of all lineitems at scale {scale:g}, and the first three of seven groups")
                for name, query in LARGE_GROUPS.items():
                    large_groups(report, started, (data, tenth), (name, query), place)
        rows = max(DELTA_ROWS, int(BULK_ROWS * min(1, scale)))
        report.title(f"Q3 without LIMIT at scale {scale:g}: {rows:,} rows of RF1 and RF2 in {BATCHES} batches")
        with folder() as place, loaded(scale, place / "data") as data:
            bulk_deltas(report, started, data, rows, place)
        if os.environ.get("BENCH_LONG") == "1":
            report.title(f"all 22 queries at scale {scale:g}, maintained over {DELTA_ROWS:,}-row ticks")
            with folder() as place, loaded(scale, place / "data", tuple(TABLES)) as data:
                all_queries(report, started, data, place)


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="everview-bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def hydration(report: Report, spark: Spark, data: Loaded, place: Path) -> Dataflow:
    """The first tick, which builds all state, beside one evaluation by Spark that writes its result as Parquet."""
    snapshot = data.snapshot(place / "at first")
    use_snapshot(spark.bulk, snapshot)

    def evaluate() -> None:
        spark.bulk.sql(Q3).write.mode("overwrite").parquet(str(place / "result"))

    theirs = seconds(evaluate, 3)
    first = install(data.stored, "first", relation_of(Q3), engine_of(spark))
    advance(first, data.next)  # Java has not compiled yet what is measured: neither side pays for that
    first.drop()
    flow = install(data.stored, "q3", relation_of(Q3), engine_of(spark))
    ours = hydrate(data, flow)
    check(report, spark, data, flow, snapshot=snapshot, query=Q3)
    beside = f"Spark evaluates it once and writes the result, {theirs:.2f} s"
    for until, took_s in ours.items():
        report.add(Figure(f"hydration of Q3, until {until}", f"{took_s:.2f} s", beside, took_s / theirs, 1.5))
    return flow


def hydrate(data: Loaded, flow: Dataflow) -> dict[str, float]:
    """Seconds until the result is there, and until all state is: the former is committed first."""
    environment, started, readable = data.environment, time.perf_counter(), []

    def watch() -> None:
        environment.wait(lambda: flow.hydrated, None)
        readable.append(time.perf_counter() - started)

    watching = threading.Thread(target=watch)
    watching.start()
    advance(flow, data.next)
    took_s = time.perf_counter() - started
    watching.join()
    return {"it can be read": readable[0], "it follows changes": took_s}


def small_deltas(report: Report, spark: Spark, large: tuple[Loaded, Dataflow], tenth: Loaded, place: Path) -> None:
    """A tick of a thousand rows beside recomputation, and beside the same tick over a tenth of the state."""
    data, flow = large
    other = install(tenth.stored, "q3", relation_of(Q3), engine_of(spark))
    advance(other, tenth.next)
    ticks, theirs = run_in_turn([large, (tenth, other)], DELTA_ROWS, TICKS)
    snapshot = data.snapshot(place / "after ticks")
    recomputed_s = seconds(lambda: recompute(spark, snapshot, Q3), 3)
    check(report, spark, data, flow, snapshot=snapshot, query=Q3)
    what = f"a tick of {ticks.rows:,} rows, median of {TICKS}"
    beside = f"Spark recomputes, {recomputed_s * 1000:,.0f} ms"
    report.add(Figure(what, str(ticks), beside, ticks.median_s / recomputed_s, 0.1))
    what = f"the tick over ten times the state, {ticks.rows:,} rows"
    beside = f"scale {tenth.scale:g}, in turn, {theirs}"
    report.add(Figure(what, f"{ticks.median_s * 1000:,.0f} ms", beside, ticks.median_s / theirs.median_s, 1.3))


def large_groups(
    report: Report, spark: Spark, sides: tuple[Loaded, Loaded], query: tuple[str, str], place: Path
) -> None:
    """A tick that changes groups of millions of rows, beside recomputation and groups of a tenth of the size."""
    name, text = query
    id = name.replace(" ", "-")
    flows = [install(each.stored, id, relation_of(text), engine_of(spark)) for each in sides]
    for each, flow in zip(sides, flows, strict=True):
        advance(flow, each.next)
    ticks, tenth = run_in_turn(list(zip(sides, flows, strict=True)), DELTA_ROWS, TICKS)
    data, snapshot = sides[0], sides[0].snapshot(place / id)
    recomputed_s = seconds(lambda: recompute(spark, snapshot, text), 3)
    check(report, spark, data, flows[0], snapshot=snapshot, query=text)
    rows = f"a tick of {ticks.rows:,} rows, {name}"
    beside = f"Spark recomputes, {recomputed_s * 1000:,.0f} ms"
    report.add(Figure(rows, str(ticks), beside, ticks.median_s / recomputed_s, 0.5))
    ours, theirs = f"{ticks.median_s * 1000:,.0f} ms", f"groups of a tenth, in turn, {tenth}"
    report.add(Figure(f"{name}, by size", ours, theirs, ticks.median_s / tenth.median_s, 1.3))
    for flow in flows:
        flow.drop()


def check(report: Report, spark: Spark, data: Loaded, flow: Dataflow, *, snapshot: Path, query: str) -> None:
    """The view is what Spark finds over the contents now: a figure of something else would mean nothing."""
    wrong = difference(
        contents_of(data.environment, flow, data.next - 1), types(flow.plan), recompute(spark, snapshot, query)
    )
    assert not wrong, f"{flow.id}: {wrong}"
    report.note(f"{flow.id} at time {data.next - 1} equals recomputation")


def phases(report: Report, spark: Spark, data: Loaded, flow: Dataflow) -> None:
    """Milliseconds of a tick by phase, as ticks tell them, and Spark's jobs."""
    spent: Counter[str] = Counter()
    took_ms, count, statements = 0.0, 10, 0
    before = jobs_so_far(spark)
    for _ in range(count):
        data.write(data.stream.rows(DELTA_ROWS))
        began = time.perf_counter()
        ticked = advance(flow, data.next)
        took_ms += (time.perf_counter() - began) * 1000
        for each in ticked:
            statements += each.statements
            for phase, phase_s in each.phases_s.items():
                spent[phase] += round(phase_s * 1e6)
    jobs = jobs_so_far(spark) - before
    report.note(f"a tick of {DELTA_ROWS:,} rows, mean of {count}: {took_ms / count:,.1f} ms")
    for phase, spent_us in spent.items():
        report.note(f"    {phase.replace('_', ' '):<34}{spent_us / 1000 / count:>8.1f} ms")
    report.note(f"    {'between phases':<34}{took_ms / count - spent.total() / 1000 / count:>8.1f} ms")
    report.note(f"    {statements / count:.1f} statements")
    report.add(Figure("Spark jobs a tick", f"{jobs / count:.1f}", "one statement, one job", jobs / count, 1, ""))


def jobs_so_far(spark: Spark) -> int:
    """How many jobs this Spark has run."""
    return int(spark.small.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def bulk_deltas(report: Report, spark: Spark, data: Loaded, rows: int, place: Path) -> None:
    """A large delta, as one tick of many times and as many ticks, beside the same batches in Pathway."""
    engine, relation = engine_of(spark), relation_of(Q3_ALL)
    flow = install(data.stored, "q3", relation, engine)
    advance(flow, data.next)
    run_ticks(data, flow, rows // BATCHES, 3, warm_up=0)
    at_first: Changes = {}
    batches: list[Changes] = []
    took: list[float] = []
    for _ in range(BULK_WARM_UPS + BULK_TICKS):  # Java compiles what is run for so many rows, as it did for ticks
        at_first = {name: data.stream.contents(name) for name in data.stored.schemas}
        batches = [data.stream.rows(rows // BATCHES) for _ in range(BATCHES)]
        count = sum(data.write(batch) for batch in batches)
        took.append(seconds(lambda: advance(flow, data.next)))
    ours: dict[str, float] = {"one tick": statistics.median(took[BULK_WARM_UPS:])}
    check(report, spark, data, flow, snapshot=data.snapshot(place / "after"), query=Q3_ALL)
    found = contents_of(data.environment, flow, data.next - 1)
    ticks = run_ticks(data, flow, rows // BATCHES, BATCHES, warm_up=10)
    ours[f"{BATCHES} ticks"] = sum(ticks.seconds)
    theirs = beside_pathway(report, place, at_first, batches)
    for form, took_s in ours.items():
        rate = (count if form == "one tick" else ticks.rows * BATCHES) / took_s
        if theirs is None:
            report.note(f"{form}: {rate:,.0f} rows/s")
            continue
        assert (theirs.rows, theirs.revenue) == (len(found), sum(int(row[1] * 10_000) for row in found)), (
            "the same view"
        )
        reference = count / theirs.seconds
        beside = f"Pathway {pathway.VERSION}, {reference:,.0f} rows/s"
        report.add(Figure(f"{count:,} rows, {form}", f"{rate:,.0f} rows/s", beside, reference / rate, 1.0))


def beside_pathway(report: Report, place: Path, tables: Changes, batches: list[Changes]) -> pathway.Measured | None:
    """The better of one thread and one for each core; none, and a line that says why, if it cannot be had."""
    given = place / "pathway"
    given.mkdir()
    pathway.hand_over(given, tables, batches)
    try:
        interpreter = pathway.python_with_pathway(cache())
        runs = {threads: pathway.run(interpreter, given, threads) for threads in sorted({1, os.cpu_count() or 1})}
    except pathway.Unavailable as reason:
        report.note(f"skipped: the comparison with Pathway ({reason})")
        return None
    for threads, measured in runs.items():
        report.note(f"Pathway with {threads} thread{'s' * (threads > 1)}: {measured.seconds:.2f} s")
    return min(runs.values(), key=lambda measured: measured.seconds)


def all_queries(report: Report, spark: Spark, data: Loaded, place: Path) -> None:
    """Every query hydrated, ticked over inserts, deletes and updates, and compared with recomputation."""
    engine = engine_of(spark)
    flows, hydrated_s = {}, {}
    for number, query in QUERIES.items():
        flows[number] = install(data.stored, f"q{number}", relation_of(query), engine)
        hydrated_s[number] = seconds(lambda number=number: advance(flows[number], data.next))
    ticks_s: dict[int, list[float]] = {number: [] for number in QUERIES}
    for _ in range(3):
        data.write(data.stream.step(DELTA_ROWS // 10, DELTA_ROWS // 10, 10, 10))
        for number, flow in flows.items():
            ticks_s[number].append(seconds(lambda flow=flow: advance(flow, data.next)))
    snapshot = data.snapshot(place / "after")
    for number, query in QUERIES.items():
        theirs = seconds(lambda query=query: recompute(spark, snapshot, query), 2)
        check(report, spark, data, flows[number], snapshot=snapshot, query=query)
        best = min(ticks_s[number])
        ours = f"{best * 1000:,.0f} ms, hydrated in {hydrated_s[number]:.1f} s"
        report.add(Figure(f"Q{number}, a tick", ours, f"Spark recomputes, {theirs * 1000:,.0f} ms", best / theirs, 1.0))
