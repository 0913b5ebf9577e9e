"""EXPLAIN of a view that is kept: how, and how much it holds."""

from __future__ import annotations

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient


def test_a_kept_view_tells_its_sizes(coordinator: Coordinator) -> None:
    client = SessionClient(coordinator)
    client("CREATE TABLE people (id int, name text)")
    client("CREATE TABLE visits (person int, pages int)")
    client(
        "CREATE MATERIALIZED VIEW busy AS SELECT name, sum(pages) AS pages FROM people"
        " JOIN visits ON person = id GROUP BY name"
    )
    client("INSERT INTO people VALUES (1, 'ann'), (2, 'bob')")
    client("INSERT INTO visits VALUES (1, 3), (2, 4), (1, 5)")
    assert client("SELECT * FROM busy ORDER BY 1") == ["name|pages", "ann|8", "bob|4"]

    for text in ("EXPLAIN MATERIALIZED VIEW busy", "EXPLAIN PHYSICAL PLAN FOR MATERIALIZED VIEW busy"):
        explained = client(text)[1]
        titles = [line for line in explained.splitlines() if line and not line.startswith(" ")]
        assert titles == ["Plan", "Kept", "Recomputed per key", "Tick", "Spark SQL"]
        sizes = [line.rpartition("(")[2] for line in explained.splitlines() if " bytes)" in line]
        assert any(size.startswith("2 updates, ") for size in sizes), explained  # the people
        assert any(size.startswith("3 updates, ") for size in sizes), explained  # the visits
        assert "Get everview.public.people" in explained

    plan = client("EXPLAIN OPTIMIZED PLAN FOR MATERIALIZED VIEW busy")[1]
    assert "Kept" not in plan


def test_a_view_of_constants_is_explained(coordinator: Coordinator) -> None:
    client = SessionClient(coordinator)
    client("CREATE MATERIALIZED VIEW one AS SELECT 1 AS a")
    explained = client("EXPLAIN MATERIALIZED VIEW one")[1]
    assert explained.startswith("Plan")


def test_what_is_recomputed_says_from_which_rows(coordinator: Coordinator) -> None:
    client = SessionClient(coordinator)
    client("CREATE TABLE t (k int, v int)")
    for query, said in (
        (
            "SELECT k, v FROM t ORDER BY v LIMIT 3 OFFSET 2",
            "those of all rows, and of their changes, that may be among the first 5",
        ),
        (
            "SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, v",
            "equal in #0, and of their changes, that may be among the",
        ),
        ("SELECT k, max(v) AS m FROM t GROUP BY k", "equal in #0, and of their changes, that may decide; from all of"),
        ("SELECT k, max(v) AS m, count(*) AS n FROM t GROUP BY k", "that may decide, and totals;"),
        ("SELECT max(v) AS m FROM t", "those of all rows, and of their changes, that may decide"),
        ("SELECT k, array_agg(v) AS a FROM t GROUP BY k", "aggregates: from the rows that are equal in #0"),
        ("SELECT array_agg(v) AS a FROM t", "all rows, for there is no key"),
        ("SELECT k, sum(v) AS s FROM t GROUP BY k", "nothing"),
    ):
        client("DROP MATERIALIZED VIEW IF EXISTS shown")
        client(f"CREATE MATERIALIZED VIEW shown AS {query}")
        explained = client("EXPLAIN MATERIALIZED VIEW shown")[1]
        part = explained.partition("Recomputed per key\n")[2].partition("\n\n")[0]
        assert said in part, explained


def test_statements_are_no_wider_than_a_screen(coordinator: Coordinator) -> None:
    client = SessionClient(coordinator)
    client("CREATE TABLE paid (account int, amount double precision, note text)")
    client(
        "CREATE MATERIALIZED VIEW balances AS SELECT account, sum(amount) AS total FROM paid"
        " WHERE note <> 'of two  words' GROUP BY account"
    )
    explained = client("EXPLAIN MATERIALIZED VIEW balances")[1]
    statements = explained[explained.index("Spark SQL") :]
    assert max(map(len, statements.splitlines())) < 200
    assert "'of two  words'" in statements, "what is quoted stays as it is"
