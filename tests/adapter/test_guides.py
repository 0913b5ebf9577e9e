"""The guides: what a reader pastes works, each page as a whole, in one session, without a pause."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from everview.adapter.coordinator import Coordinator
from everview.compute.sql.lexer import split
from tests.adapter.delivery import delivered
from tests.adapter.scripts import SessionClient
from tests.adapter.test_subscribe import Subscriber
from tests.flow.conftest import STRICT
from tests.postgres.server import Upstream

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SERVER = "HOST 'db.example.com', PORT 5432"
POSTGRES, CONNECTOR = "postgresql://user:password@host/db", "/opt/connectors/materialize-postgres"
PAGES = sorted(str(path.relative_to(ROOT)) for path in [*DOCS.glob("*.md"), ROOT / "README.md"])
# What a page takes for granted: tables of the reader's own.
TPCH = "CREATE SOURCE tpch FROM LOAD GENERATOR TPCH (SCALE FACTOR 0.0001, TICK INTERVAL '1h');"
SHOP = """
SET search_path = public, bench;
CREATE TABLE accounts (account int NOT NULL, amount int);
CREATE MATERIALIZED VIEW account_totals AS SELECT account, sum(amount) AS total FROM accounts GROUP BY account;
CREATE TABLE orders (id int NOT NULL, name text);
CREATE TABLE order_lines (order_id int NOT NULL, number int NOT NULL, item text);
CREATE TABLE audit (line text);
CREATE MATERIALIZED VIEW orders_view AS SELECT id, name FROM orders;
CREATE TABLE files (id int, name text, _deleted boolean, _transaction bigint);
INSERT INTO accounts VALUES (1, 10), (1, 20), (2, 5);
INSERT INTO orders VALUES (1, 'ann'), (2, 'bob');
INSERT INTO order_lines VALUES (1, 1, 'kite'), (2, 1, 'atlas');
INSERT INTO audit VALUES ('opened');
"""
BEFORE = {
    "docs/connections.md": "CREATE TABLE totals (id int NOT NULL, total int);",
    "docs/cdc.md": "CREATE TABLE bids (id bigint, auction bigint, amount int);",
    "docs/sinks.md": f"CREATE SCHEMA bench; SET search_path = bench; {TPCH} {SHOP}",
    "docs/temporal-filters.md": TPCH,
}


def shop(request: pytest.FixtureRequest) -> dict[str, str]:
    """The server that pages speak of: it has a database `shop`, a role `everview` and a publication."""
    server: Upstream = request.getfixturevalue("upstream")
    with server.connect() as db:
        drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
        db.execute(f"{drop} AND database = 'shop'")
        db.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
        db.execute("CREATE DATABASE shop")
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'everview'").fetchone() is None:
            db.execute("CREATE ROLE everview LOGIN SUPERUSER")
    with server.connect("shop") as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount int)")
        db.execute("CREATE PUBLICATION everview FOR ALL TABLES")
    return {"host": server.folder, "port": "5432"}


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Puts places of this machine in place of those that a page names: each statement is run, none only parsed."""

    def replaced(text: str) -> str:
        text = text.replace("/shared/", f"{tmp_path}/").replace("s3://bucket/", f"{tmp_path}/")
        if POSTGRES in text:
            url = urlsplit(request.getfixturevalue("postgres_url"))
            with psycopg.connect(url.geturl(), autocommit=True) as connection:
                connection.execute("DROP DATABASE IF EXISTS guides")
                connection.execute("CREATE DATABASE guides")
            text = text.replace(POSTGRES, url._replace(path="/guides").geturl())
        if SERVER in text:
            text = text.replace(SERVER, "HOST '{host}', PORT {port}".format(**shop(request)))
        if CONNECTOR in text:
            program = tmp_path / "materialize-strict"
            program.write_text(f"#!/bin/sh\nexec {sys.executable} -S {STRICT}\n")
            program.chmod(0o755)
            config = json.dumps({"path": f"{tmp_path}/connector.db", "hardDelete": True})
            text = re.sub(r"CONFIG '.*?'", lambda _: f"CONFIG '{config}'", text.replace(CONNECTOR, str(program)))
        return text

    return replaced


def fenced(page: str, language: str) -> list[str]:
    """The blocks of a page that are in this language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [text for named, text in found if named == language]


def paste(sql: SessionClient, text: str) -> None:
    for statement in split(text):
        answer = sql(statement)
        assert not (answer and answer[0].startswith("!")), (statement, answer)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_pasted_as_a_whole(sql: SessionClient, places: Callable[[str], str], page: str) -> None:
    paste(sql, BEFORE.get(page, "") + places("\n".join(fenced(page, "sql"))))


def test_the_sinks_of_the_guide_deliver(
    coordinator: Coordinator, sql: SessionClient, places: Callable[[str], str], tmp_path: Path, postgres_url: str
) -> None:
    paste(sql, BEFORE["docs/sinks.md"] + places("\n".join(fenced("docs/sinks.md", "sql"))))
    paste(sql, "ALTER SINK lines SET (SPARK false, SPLITS 1);")  # there is no Spark here
    for sink in ("totals", "shop", "orders_copy", "lines"):
        delivered(coordinator, sink)
    with psycopg.connect(urlsplit(postgres_url)._replace(path="/guides").geturl()) as connection:
        found = {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
            for table in ("totals", "orders", "lines", "audit")
        }
    assert found == {
        "totals": [(1, 30), (2, 5)],
        "orders": [(1, "ann"), (2, "bob")],
        "lines": [(1, 1, "kite"), (2, 1, "atlas")],
        "audit": [("opened",)],
    }
    with closing(sqlite3.connect(tmp_path / "connector.db")) as file:
        assert file.execute("SELECT id, name FROM public__orders ORDER BY id").fetchall() == [(1, "ann"), (2, "bob")]
    lines = DeltaTable(str(tmp_path / "lines")).to_pyarrow_table()
    assert sql("SELECT count(*) AS n FROM lineitem") == ["n", str(lines.num_rows)] and lines.num_rows > 0


def test_files_of_parquet_are_read_as_the_guide_says(
    coordinator: Coordinator, sql: SessionClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sinks into files that the text names, and the query over what Parquet holds."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/sinks.md").read_text()
    sqlite, parquet = (re.findall(rf"`(INTO {name} \(.*?\))`", page)[0] for name in ("SQLITE", "PARQUET"))
    paste(sql, SHOP)
    paste(sql, f"CREATE SINK one FROM orders {sqlite} KEY (id);")
    paste(sql, f"CREATE SINK two FROM orders {parquet} KEY (id) DELTA UPDATES WITH (INTERVAL_MS 0);")
    for change in ("SELECT 1", "UPDATE orders SET name = 'eve' WHERE id = 1", "DELETE FROM orders WHERE id = 2"):
        paste(sql, change)
        delivered(coordinator, "one")
        delivered(coordinator, "two")
    with closing(sqlite3.connect("file.db")) as file:
        assert file.execute("SELECT id, name FROM name").fetchall() == [(1, "eve")]
    written = [row for file in Path("folder").rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert len(written) == 4
    for row in written:
        name = "NULL" if row["name"] is None else f"'{row['name']}'"
        paste(sql, f"INSERT INTO files VALUES ({row['id']}, {name}, {row['_deleted']}, {row['_transaction']})")
    (query,) = (text for text in fenced("docs/sinks.md", "sql") if "FROM files" in text)
    assert [line.split("|")[:2] for line in sql(query)[1:]] == [["1", "eve"]]


def test_the_pages_have_statements() -> None:
    counts = {page: len(split("\n".join(fenced(page, "sql")))) for page in PAGES}
    assert sum(counts.values()) > 40, counts


def test_the_delete_of_the_guide_deletes(sql: SessionClient) -> None:
    (block,) = (text for text in fenced("docs/temporal-filters.md", "sql") if "DELETE FROM cache" in text)
    answers = {statement.split()[0]: sql(statement) for statement in split(block)}
    assert (answers["INSERT"], answers["DELETE"]) == (["INSERT 0 2"], ["DELETE 1"])
    assert sql("SELECT key FROM cache") == sql("SELECT key FROM live") == ["key", "b"]


def test_the_difference_that_the_guide_shows(sql: SessionClient) -> None:
    first, second, *_ = fenced("docs/replacing-views.md", "sql")
    for statement in sql.session.split(first + second):
        sql(statement)
    (shown,) = fenced("docs/replacing-views.md", "")
    rows = ["|".join(cell.strip() for cell in line.split("|")) for line in shown.splitlines() if "---" not in line]
    assert sql("SHOW REPLACEMENT DIFF totals_new") == rows


def shown_rows(text: str) -> list[str]:
    """A table as psql or the shell prints it, as lines of an answer."""
    lines = [line.replace("│", "|") for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r"^[-+─┬]+$|^\(\d+ rows?\)$", line)]
    return ["|".join(cell.strip() for cell in line.split("|")) for line in lines]


def test_the_rows_that_the_readme_shows(coordinator: Coordinator, sql: SessionClient) -> None:
    (pasted,) = fenced("README.md", "sql")
    answers = [sql(statement) for statement in sql.session.split(pasted)]
    shown = next(text for text in fenced("README.md", "") if text.lstrip().startswith("name  | sold"))
    assert answers[-1] == shown_rows(shown)


def test_the_sessions_that_the_readme_shows(coordinator: Coordinator, sql: SessionClient) -> None:
    """What was typed after `everview=>` is run, and answered as printed, but for times, which are today's."""
    paste(sql, *fenced("README.md", "sql"))
    past, explained = (text for text in fenced("README.md", "") if text.startswith("everview=> "))
    typed = re.findall(r"^everview=> ([^\n]*;)\n(.*?)(?=^everview=> |\Z)", past, re.MULTILINE | re.DOTALL)
    assert len(typed) == 4
    (_, shown_time), *others = typed
    time, now = shown_rows(shown_time)[1], sql(typed[0][0])[1]
    for statement, shown in others:
        assert sql(statement.replace(time, now)) == shown_rows(shown), statement

    subscriber = Subscriber(coordinator, "SUBSCRIBE TO revenue")
    found = [[*subscriber.take()]]
    paste(sql, "INSERT INTO sales VALUES (2, 1)")
    found.append(subscriber.take())
    subscriber.rows.close()
    (streamed,) = (text for text in fenced("README.md", "") if "everview sql -c 'SUBSCRIBE" in text)
    printed = [line.split("|")[1:] for line in shown_rows(streamed)[2:]]
    told = [[str(value) for value in row[1:]] for batch in found for row in sorted(batch, key=lambda row: row[2])]
    assert told == printed

    ((statement, plan),) = re.findall(r"^everview=> ([^\n]*;)\n(.*)", explained, re.DOTALL)
    lines = [line.strip(" +") for line in plan.splitlines()[2:]]
    answer = [line.strip() for line in "\n".join(sql(statement)[1:]).splitlines()]
    assert [re.sub(r"\d{13}|u\d+", "…", line) for line in answer] == [
        re.sub(r"\d{13}|u\d+", "…", line) for line in lines
    ]


def test_the_statements_in_the_text_of_the_readme(coordinator: Coordinator, sql: SessionClient) -> None:
    paste(sql, *fenced("README.md", "sql"))
    text = " ".join((ROOT / "README.md").read_text().split())
    for begins in ("CREATE INDEX", "CREATE SOURCE", "EXPLAIN MATERIALIZED VIEW", "ALTER ROLE", "COPY (SUBSCRIBE"):
        (statement,) = {found for found in re.findall(r"`([^`]*)`", text) if found.startswith(begins)}
        if begins == "COPY (SUBSCRIBE":  # it has no end
            subscriber = Subscriber(coordinator, statement)
            assert len(subscriber.take()) == 3
            subscriber.rows.close()
        else:
            paste(sql, statement)
    assert sql("SELECT * FROM revenu") == ['! 42P01 relation "revenu" does not exist']


# Each form of the reference, as someone would write it. Those that go on for ever end because they say UP TO.
SUBSCRIBES = [
    "SUBSCRIBE t UP TO {now} + 1",
    "SUBSCRIBE TO t UP TO {now} + 1",
    "SUBSCRIBE (SELECT k FROM t WHERE k > 1) UP TO {now} + 1",
    "SUBSCRIBE TO (SELECT k, count(*) AS n FROM t GROUP BY k) WITH (PROGRESS) AS OF {now} UP TO {now} + 1",
    "SUBSCRIBE TO t ENVELOPE UPSERT (KEY (k)) UP TO {now} + 1",
    "SUBSCRIBE TO t ENVELOPE DEBEZIUM (KEY (k, v)) WITH (PROGRESS) AS OF AT LEAST {then} UP TO {now} + 1",
    "SUBSCRIBE TO t ENVELOPE UPSERT (KEY (k)) WITH (SNAPSHOT = false) AS OF {then} UP TO {now} + 1",
    "SUBSCRIBE TO t WITHIN TIMESTAMP ORDER BY k DESC, v UP TO {now} + 1",
    "SUBSCRIBE TO t WITHIN TIMESTAMP ORDER BY k WITH (SNAPSHOT = false, PROGRESS) AS OF {then} UP TO {now} + 1",
    "SUBSCRIBE TO t RESUME FROM {then} UP TO {now} + 1",
    "SUBSCRIBE TO s UP TO {now} + 1",
    "SUBSCRIBE t RESUME s UP TO {now} + 1",
    "SUBSCRIBE (SELECT k FROM t) RESUME s UP TO {now} + 1",
    "SUBSCRIBE TO s WITH (ACKNOWLEDGE = NONE) UP TO {now} + 1",
    "COPY (SUBSCRIBE TO t UP TO {now} + 1) TO STDOUT",
    "BEGIN; DECLARE c CURSOR FOR SUBSCRIBE TO t; FETCH ALL c WITH (timeout = '1s'); COMMIT",
    "BEGIN; DECLARE c CURSOR FOR SUBSCRIBE TO s WITH (ACKNOWLEDGE = COMMIT); FETCH 2 c; COMMIT",
]
SUBSCRIPTIONS = [
    "CREATE SUBSCRIPTION IF NOT EXISTS s FOR t WITH (HOLD FOR '1 day', SNAPSHOT = false)",
    "CREATE SUBSCRIPTION other FOR t",
    "ALTER SUBSCRIPTION s ACKNOWLEDGE {then}",
    "ALTER SUBSCRIPTION s ACKNOWLEDGE BEFORE {then}",
    "ALTER SUBSCRIPTION s ACKNOWLEDGE THROUGH {then}",
    "ALTER SUBSCRIPTION s RESTART",
    "ALTER SUBSCRIPTION s SET (HOLD FOR '2 days')",
    "ALTER SUBSCRIPTION s OWNER TO everview",
    "ALTER SUBSCRIPTION other RENAME TO another",
    "DROP SUBSCRIPTION other",
]


@pytest.mark.parametrize("form", [*SUBSCRIBES, *SUBSCRIPTIONS])
def test_a_form_of_subscribe(sql: SessionClient, form: str) -> None:
    paste(
        sql, "CREATE TABLE t (k int, v text) WITH (RETAIN HISTORY FOR '1h'); INSERT INTO t VALUES (1, 'a'), (2, 'b');"
    )
    if not form.startswith("CREATE"):
        paste(sql, "CREATE SUBSCRIPTION s FOR t; CREATE SUBSCRIPTION other FOR t")
    then = sql("SELECT mz_now() FROM t LIMIT 1")[1]
    paste(sql, "INSERT INTO t VALUES (3, 'c')")
    now = sql("SELECT mz_now() FROM t LIMIT 1")[1]
    answer = sql(form.format(then=then, now=now))
    assert answer and not answer[0].startswith("!"), answer
    if "SUBSCRIBE" in form:
        assert any(row.split("|")[-1] in ("3", "c") or "|3|" in row for row in answer) or "FETCH 2" in form, answer


def test_every_word_of_the_syntax_is_tried() -> None:
    syntax = [text for text in fenced("docs/sql.md", "") if "SUBSCRI" in text]
    assert len(syntax) == 2
    words = set(re.findall(r"\b[A-Z]{2,}\b", re.sub(r"--.*", "", "\n".join(syntax))))
    tried = set(re.findall(r"\b[A-Z]{2,}\b", "\n".join([*SUBSCRIBES, *SUBSCRIPTIONS])))
    assert words <= tried, words - tried
