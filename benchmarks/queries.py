"""Queries that nobody prepared for: groups, joins and sorts over 500,000 rows, beside PostgreSQL and warm Spark.

The server computes them by columns. The same queries on its Spark say from which size on that pays.
"""

from __future__ import annotations

import time

from benchmarks.database_setup import Connection, connect, postgres, served
from benchmarks.report import Figure, Report

ROWS, GROUPS, REGIONS = 500_000, 10_000, 10
TIMES = 5  # the best counts, for other work on the machine only adds
AIM = 4.0
TABLES = (
    "CREATE TABLE sold (id int, customer int, amount bigint, price numeric(10,2), note text)",
    "CREATE TABLE customers (customer int, region int)",
)
QUERIES = {
    "count and sum of 10,000 groups": "SELECT customer, count(*), sum(amount) FROM sold GROUP BY customer",
    "average and greatest text of groups": "SELECT customer, avg(price), max(note) FROM sold GROUP BY customer",
    "join and ten groups": (
        "SELECT region, sum(amount) FROM sold JOIN customers USING (customer) WHERE price > 100 GROUP BY region"
    ),
    "first ten in an order": "SELECT id, amount, note FROM sold ORDER BY amount DESC, id LIMIT 10",
    "distinct values": "SELECT count(DISTINCT note), count(DISTINCT amount) FROM sold",
    "filter and arithmetic": "SELECT sum(price * (1 - price) * amount) FROM sold WHERE note LIKE 'note 1%'",
}


def run(report: Report, scale: float) -> None:
    """Each query here, on Spark and in PostgreSQL."""
    rows = max(10_000, int(ROWS * scale))
    report.title(f"queries over {rows:,} rows, by columns, on Spark and in PostgreSQL")
    with served() as server, postgres() as other, connect(server.url) as ours, connect(other) as theirs:
        for connection in (ours, theirs):
            filled(connection, rows)
        theirs.execute("ANALYZE")
        for name, query in QUERIES.items():
            expected, reference = best(theirs, query)
            ours.execute("SET everview_peek_engine = spark")
            on_spark, spark_s = best(ours, query)
            ours.execute("RESET everview_peek_engine")
            found, ours_s = best(ours, query)
            assert sorted(found) == sorted(on_spark), f"{name}: Spark answers something else"
            assert len(found) == len(expected), f"{name}: PostgreSQL answers something else"
            beside = f"PostgreSQL {reference * 1000:,.0f} ms, Spark {spark_s * 1000:,.0f} ms"
            report.add(Figure(name, f"{ours_s * 1000:,.0f} ms", beside, ours_s / reference, AIM))


def filled(connection: Connection, rows: int) -> None:
    """The tables, with the same rows in every database."""
    for table in TABLES:
        connection.execute(table)
    with connection.cursor() as cursor:
        with cursor.copy("COPY sold FROM STDIN") as copy:
            for start in range(0, rows, 10_000):
                copy.write("".join(map(_line, range(start, min(rows, start + 10_000)))))
        with cursor.copy("COPY customers FROM STDIN") as copy:
            copy.write("".join(f"{number}\t{number % REGIONS}\n" for number in range(GROUPS)))


def _line(number: int) -> str:
    amount, price = number * 7_919 % 1_000_003, number * 31 % 100_000 / 100
    return f"{number}\t{number * 13 % GROUPS}\t{amount}\t{price:.2f}\tnote {number % 5_000}\n"


def best(connection: Connection, query: str) -> tuple[list[tuple[object, ...]], float]:
    """The rows, and the least time that they took."""
    took = []
    for _ in range(TIMES):
        began = time.perf_counter()
        rows = connection.execute(query).fetchall()
        took.append(time.perf_counter() - began)
    return list(rows), min(took)
