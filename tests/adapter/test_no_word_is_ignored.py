"""No word of a statement is passed over: with one more word in it, a statement is refused or says something else."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from everview.adapter.statements import nodes
from everview.adapter.statements.parse import parse
from everview.compute.sql.errors import SqlError
from everview.compute.sql.lexer import tokens
from tests.adapter.scripts import FOLDER
from tests.adapter.scripts import parse as steps_of

EACH_KIND_MAX = 40
WORD = "nonsense"
MORE = (
    "ALTER CONNECTION IF EXISTS c SET (HOST 'a', PASSWORD SECRET p.s) WITH (VALIDATE = false)",
    "ALTER CONNECTION c RESET (SSL MODE, PORT)",
    "ALTER SECRET IF EXISTS s AS 'text'",
    "ALTER MATERIALIZED VIEW a, b APPLY REPLACEMENT ra, rb WITH (MAX ROWS 5, ALLOW ERRORS)",
    "ALTER MATERIALIZED VIEW m ROLLBACK REPLACEMENT TO VERSION 3",
    "ALTER ROLE r WITH PASSWORD 'secret'",
    "ALTER SINK s PAUSE",
    "ALTER SINK s SET (batch = '5')",
    "ALTER SOURCE IF EXISTS s PAUSE",
    "ALTER SOURCE s RESET",
    "ALTER SOURCE s RESUME",
    "ALTER SUBSCRIPTION s ACKNOWLEDGE THROUGH 5",
    "ALTER SUBSCRIPTION s RESTART",
    "ALTER SUBSCRIPTION s SET (HOLD FOR '1 day')",
    "ALTER TABLE t OWNER TO r",
    "ALTER TABLE t RESET (RETAIN HISTORY)",
    "ALTER TABLE t SET (RETAIN HISTORY FOR '1 day')",
    "ALTER TABLE t SET (TTL '7 days' ON ts)",
    "COMMENT ON COLUMN t.a IS 'text'",
    "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', FORCE_QUOTE (a))",
    "COPY t FROM STDIN CSV HEADER DELIMITER AS ';'",
    "COPY (SELECT a FROM t) TO STDOUT WITH (FORMAT text)",
    "CREATE CONNECTION IF NOT EXISTS c TO POSTGRES (HOST 'a', SSL MODE = require, PASSWORD SECRET s) WITH (VALIDATE)",
    "CREATE SECRET IF NOT EXISTS s AS 'text'",
    "CREATE SECRET s FROM ENVIRONMENT 'NAME'",
    "CREATE SECRET s FROM FILE '/path'",
    "CREATE SINK s FROM t INTO postgres CONNECTION c (table 'x') KEY (a)",
    "CREATE DEFAULT INDEX IN CLUSTER default ON t",
    "CREATE MATERIALIZED VIEW m (a) IN CLUSTER default WITH (RETAIN HISTORY FOR '1h') AS SELECT 1",
    "CREATE MATERIALIZED VIEW r REPLACING m AS SELECT 1",
    "CREATE REPLACEMENT MATERIALIZED VIEW r FOR m WITH (APPLY WHEN HYDRATED) AS SELECT 1",
    "CREATE ROLE r WITH LOGIN SUPERUSER PASSWORD 'secret'",
    "CREATE SCHEMA IF NOT EXISTS s AUTHORIZATION r",
    "CREATE SINK s FROM t (topic 'a') KEY (a) DELTA UPDATES REDUCE (b BY sum) INTO kafka (topic 'x') WITH (size = 5)",
    "CREATE SOURCE s (a int) FROM CDC FILES '/data' (name = 'x') FORMAT json WITH (TIMELINE 'x')",
    "CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s', MAX CARDINALITY 5)",
    "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION 'pub', TEXT COLUMNS (t.a, s.t.b), EXCLUDE COLUMNS (t.c))"
    " FOR TABLES (t, s.u AS v) WITH (RETAIN HISTORY FOR '1h')",
    "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION pub) FOR ALL TABLES",
    "CREATE SOURCE p FROM POSTGRES CONNECTION c (PUBLICATION pub) FOR SCHEMAS (a, b)",
    "CREATE SUBSCRIPTION IF NOT EXISTS s FOR t WITH (HOLD FOR '1 day', SNAPSHOT = false)",
    "CREATE TABLE t (a int NOT NULL DEFAULT 1 + 2, b varchar(5) COLLATE \"C\") WITH (RETAIN HISTORY FOR '1h')",
    "DEALLOCATE PREPARE p",
    "DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1",
    "DISCARD ALL",
    "DROP MATERIALIZED VIEW IF EXISTS a, s.b CASCADE",
    "EXPLAIN (FORMAT text, VERBOSE) SELECT 1",
    "EXPLAIN TIMESTAMP AS JSON FOR SELECT a FROM t AS OF 5 ORDER BY a",
    "FETCH FORWARD 5 FROM c WITH (TIMEOUT = '1s')",
    "SET LOCAL search_path TO a, b",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
    "SHOW INDEXES FROM s ON t LIKE 'a%' WHERE name = 'x'",
    "SHOW REPLACEMENT DIFF FOR r LIMIT 5",
    "START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ WRITE NOT DEFERRABLE",
    "SUBSCRIBE TO (SELECT a FROM t) ENVELOPE UPSERT (KEY (a)) WITH (PROGRESS, SNAPSHOT = false) UP TO 7",
    "SUBSCRIBE t WITHIN TIMESTAMP ORDER BY mz_diff AS OF AT LEAST 5",
    "SUBSCRIBE t RESUME FROM 5 + 1",
    "SUBSCRIBE t RESUME s WITH (ACKNOWLEDGE = commit)",
    "TRUNCATE TABLE a, b RESTRICT",
    "UNLISTEN *",
    "VALIDATE CONNECTION a.b",
)


def statements() -> list[str]:
    """Statements of the scripts, of each kind and of each first words some."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for path in sorted(FOLDER.glob("*.sql")):
        for step in steps_of(path.read_text()):
            try:
                kind = type(parse(step.statement)).__name__
            except SqlError:
                continue
            if len(step.statement) < 400 and "--" not in step.statement:
                found[kind].setdefault(step.statement)
    return [*MORE, *(text for texts in found.values() for text in list(texts)[:EACH_KIND_MAX])]


def comparable(node: Any) -> Any:
    """A statement without the places where things stand."""
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = [each.name for each in dataclasses.fields(node) if each.name != "position"]
        return (type(node).__name__, *(comparable(getattr(node, name)) for name in fields))
    if isinstance(node, tuple | list):
        return tuple(map(comparable, node))
    if isinstance(node, str):
        return " ".join(node.split())
    return node


def with_one_more_word(text: str) -> Iterator[str]:
    for token in tokens(text):
        if token.start:
            yield f"{text[: token.start]} {WORD} {text[token.start :]}"


def test_there_are_statements_of_every_kind() -> None:
    kinds = {type(parse(text)) for text in statements()}
    known = {each for each in vars(nodes).values() if isinstance(each, type) and dataclasses.is_dataclass(each)}
    parts = {
        nodes.SourceTables,
        nodes.AsOf,
        nodes.Named,
        nodes.ColumnDefinition,
        nodes.Place,
        nodes.SinkCollection,
        nodes.Empty,
    }
    assert not known - parts - kinds, sorted(each.__name__ for each in known - parts - kinds)


@pytest.mark.parametrize("text", statements())
def test_no_word_is_passed_over(text: str) -> None:
    before = comparable(parse(text))
    for changed in with_one_more_word(text):
        try:
            after = comparable(parse(changed))
        except SqlError:
            continue
        assert after != before, changed
