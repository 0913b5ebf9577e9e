"""Many views over the same tables: until a row is in all of them, and how long it takes to make one more.

The views are joins, counts, sums and extremes over an orders and a customers table. Time is counted from the INSERT's
answer to the moment at which the last of the views is complete beyond it, as a strict read of all of them sees it.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.database_setup import Connection, connect, served
from benchmarks.report import Figure, Report

ORDERS, CUSTOMERS = 200_000, 10_000
FLEETS = (1, 10, 50, 200)
AIMS = {10: 4.0, 50: 4.0, 200: 10.0}
CHANGES, CHANGES_WARM_UP = 12, 4
SETTLE_S = 3.0

QUERIES = (
    "SELECT customer, count(*) AS n FROM orders WHERE quantity > {k} GROUP BY customer",
    "SELECT region, sum(price) AS total FROM orders JOIN customers ON customer = customers.id WHERE quantity <> {k}"
    " GROUP BY region",
    "SELECT customer, max(price) AS dearest FROM orders WHERE quantity <> {k} GROUP BY customer",
    "SELECT orders.id, price, region FROM orders JOIN customers ON customer = customers.id WHERE quantity = {k}",
    "SELECT region, count(*) AS n, sum(quantity) AS q FROM orders JOIN customers ON customer = customers.id"
    " WHERE orders.id % 10 <> {k} GROUP BY region",
)


def run(report: Report, scale: float) -> None:
    """Fleets of growing size on one server."""
    orders, customers = max(2_000, int(ORDERS * scale)), max(100, int(CUSTOMERS * scale))
    fleets = [each for each in FLEETS if each <= max(10, FLEETS[-1] * scale)]
    report.title(f"1 to {fleets[-1]} views over {orders:,} orders and {customers:,} customers")
    with served() as server, connect(server.url) as connection:
        _fill(connection, orders, customers)
        alone_s, made_s = 0.0, []
        for fleet in fleets:
            while len(made_s) < fleet:
                made_s.append(_made_s(connection, len(made_s)))
            time.sleep(SETTLE_S)
            for _ in range(CHANGES_WARM_UP):
                _until_in_all_s(connection, fleet)
            used_s = server.cpu_s()
            took = [_until_in_all_s(connection, fleet) for _ in range(CHANGES)]
            used_s = server.cpu_s() - used_s
            median, worst = statistics.median(took), max(took)
            report.note(
                f"{fleet} views: a row is in all of them after {median * 1000:.0f} ms, {worst * 1000:.0f} at most,"
                f" with {used_s / CHANGES * 1000:.0f} ms of the processors; {server.stored_bytes() / 1e6:.0f} MB stored"
            )
            if fleet == 1:
                alone_s = median
            else:
                ours, beside = f"{median * 1000:.0f} ms", f"{alone_s * 1000:.0f} ms in one view"
                report.add(Figure(f"a row in all of {fleet} views", ours, beside, median / alone_s, AIMS[fleet]))
        first, last = statistics.median(made_s[: len(QUERIES)]), statistics.median(made_s[-len(QUERIES) :])
        beside = f"{first:.2f} s for the first ones"
        report.add(Figure("making one more view", f"{last:.2f} s", beside, last / first, 0.25))


def _fill(connection: Connection, orders: int, customers: int) -> None:
    connection.execute("CREATE TABLE customers (id int NOT NULL, region int NOT NULL)")
    connection.execute(
        "CREATE TABLE orders"
        " (id int NOT NULL, customer int NOT NULL, quantity int NOT NULL, price numeric(12,2) NOT NULL)"
    )
    with connection.cursor().copy("COPY customers FROM STDIN") as copy:
        for number in range(customers):
            copy.write_row((number, number % 25))
    with connection.cursor().copy("COPY orders FROM STDIN") as copy:
        for number in range(orders):
            copy.write_row((number, number * 7919 % customers, number % 50, f"{number % 9973}.25"))


def _made_s(connection: Connection, number: int) -> float:
    """Make one more view, and wait until it can be read."""
    query = QUERIES[number % len(QUERIES)].format(k=number // len(QUERIES))
    began = time.perf_counter()
    connection.execute(f"CREATE MATERIALIZED VIEW view_{number} AS {query}")
    connection.execute(f"SELECT count(*) FROM view_{number}").fetchall()
    return time.perf_counter() - began


def _until_in_all_s(connection: Connection, fleet: int) -> float:
    number = time.time_ns() % 1_000_000_000
    connection.execute(f"INSERT INTO orders VALUES ({number}, {number % 100}, {number % 50}, {number % 1000}.5)")
    began = time.perf_counter()
    together = " UNION ALL ".join(f"(SELECT 1 FROM view_{each} LIMIT 0)" for each in range(fleet))
    connection.execute(together).fetchall()
    return time.perf_counter() - began
