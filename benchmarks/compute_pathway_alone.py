"""Q3 without its LIMIT in Pathway, in a process and an environment of its own: a delta in batches over loaded tables.

Reads `customer`, `orders` and `lineitem` as they are at first and `<table>.delta`, all of them Parquet, from the folder
that the first argument names. Prints the seconds that the delta took and, of the final answer, the number of rows and
the sum of revenue in hundredths of a cent. A row that only says so goes with the last rows of each phase: when it is
in the answer, all before it is as well.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pathway as pw
import pyarrow.parquet as pq

FOLDER = Path(sys.argv[1])
LOADED, DONE = -1, -2  # keys of what marks the end of a phase
LATE, EARLY = 99_999, 0  # days that pass the filters
CUTOFF = 9204  # 1995-03-15 in days since 1970

ready, finished = threading.Event(), threading.Event()
moments: dict[str, float] = {}
answer: dict[Any, int] = {}


class Customer(pw.Schema):
    c_custkey: int = pw.column_definition(primary_key=True)
    c_mktsegment: str


class Orders(pw.Schema):
    o_orderkey: int = pw.column_definition(primary_key=True)
    o_custkey: int
    o_orderdate: int
    o_shippriority: int


class Lineitem(pw.Schema):
    l_orderkey: int = pw.column_definition(primary_key=True)
    l_linenumber: int = pw.column_definition(primary_key=True)
    l_extendedprice: int
    l_discount: int
    l_shipdate: int


def rows(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file, as they are handed over."""
    for batch in pq.ParquetFile(FOLDER / f"{name}.parquet").iter_batches(50_000):
        yield from batch.to_pylist()


class Table(pw.io.python.ConnectorSubject):
    """What is there at first, in one commit; then, when all of that is in the answer, the delta, batch by batch."""

    def __init__(self, name: str, marks: tuple[dict[str, Any], dict[str, Any]]) -> None:
        super().__init__()
        self.name, self.marks = name, marks
        changes = FOLDER / f"{name}.delta.parquet"
        self.batches: dict[int, list[tuple[int, dict[str, Any]]]] = {}
        for row in rows(f"{name}.delta") if changes.exists() else ():
            self.batches.setdefault(row.pop("batch"), []).append((row.pop("diff"), row))

    def run(self) -> None:
        for row in rows(self.name):
            self.next(**row)
        self.next(**self.marks[0])
        self.commit()
        ready.wait()
        last = max(self.batches, default=None)
        for number, batch in sorted(self.batches.items()):
            self._disable_commits()  # a batch is one commit, however long its rows take to hand over
            for diff, row in batch:
                (self.next if diff > 0 else self.delete)(**row)
            if number == last:
                self.next(**self.marks[1])
            self._enable_commits()
            self.commit()
        if last is None:
            self.next(**self.marks[1])
            self.commit()
        finished.wait()

    @property
    def _deletions_enabled(self) -> bool:
        return True


def read(name: str, schema: type[pw.Schema], *marks: dict[str, Any]) -> pw.Table:
    # Without automatic commits now and then, a table that is quiet would hold up the others.
    return pw.io.python.read(Table(name, (marks[0], marks[1])), schema=schema, autocommit_duration_ms=10)


def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
    order = row["l_orderkey"]
    if is_addition:
        answer[key] = row["revenue"]
    else:
        answer.pop(key, None)
    if order == LOADED and is_addition:
        moments["loaded"] = clock()
        ready.set()
    elif order == DONE and is_addition:
        moments["done"] = clock()
        finished.set()


def clock() -> float:
    return time.perf_counter()


keys = (LOADED, DONE)
customer = read("customer", Customer, *({"c_custkey": key, "c_mktsegment": "BUILDING"} for key in keys))
orders = read(
    "orders",
    Orders,
    *({"o_orderkey": key, "o_custkey": key, "o_orderdate": EARLY, "o_shippriority": 0} for key in keys),
)
lineitem = read(
    "lineitem",
    Lineitem,
    *(
        {"l_orderkey": key, "l_linenumber": 1, "l_extendedprice": 0, "l_discount": 0, "l_shipdate": LATE}
        for key in keys
    ),
)
building = customer.filter(pw.this.c_mktsegment == "BUILDING")
early = orders.filter(pw.this.o_orderdate < CUTOFF)
late = lineitem.filter(pw.this.l_shipdate > CUTOFF)
placed = early.join(building, pw.left.o_custkey == pw.right.c_custkey).select(
    pw.left.o_orderkey, pw.left.o_orderdate, pw.left.o_shippriority
)
sold = late.join(placed, pw.left.l_orderkey == pw.right.o_orderkey).select(
    pw.left.l_orderkey,
    pw.right.o_orderdate,
    pw.right.o_shippriority,
    amount=pw.left.l_extendedprice * (100 - pw.left.l_discount),
)
result = sold.groupby(pw.this.l_orderkey, pw.this.o_orderdate, pw.this.o_shippriority).reduce(
    pw.this.l_orderkey, pw.this.o_orderdate, pw.this.o_shippriority, revenue=pw.reducers.sum(pw.this.amount)
)
pw.io.subscribe(result, on_change=on_change)
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
print(
    json.dumps(
        {
            "seconds": moments["done"] - moments["loaded"],
            "rows": len(answer) - len(keys),
            "revenue": sum(answer.values()),
        }
    )
)
