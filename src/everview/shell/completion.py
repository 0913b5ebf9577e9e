"""Completion by Tab: words of SQL, and the names of relations, schemas and columns that the server knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

if TYPE_CHECKING:
    from prompt_toolkit.document import Document

_WORDS = """
    ALL ALTER AND AS ASC BEGIN BETWEEN BY CASCADE CASE CAST CLOSE COLUMN COMMENT COMMIT COPY CREATE CROSS CSV CURSOR
    DATABASE DEBEZIUM DECLARE DEFAULT DELETE DESC DISTINCT DROP ELSE END ENVELOPE EXCEPT EXISTS EXPLAIN FALSE FETCH FOR
    FROM FULL GENERATOR GROUP HAVING HISTORY IF IN INDEX INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LATERAL LEFT
    LIKE LIMIT LOAD MATERIALIZED NOT NULL OFFSET ON OR ORDER OUTER PARTITION PROGRESS RENAME REPLACE RESET RETAIN
    RETURNING RIGHT ROLE ROLLBACK SCHEMA SELECT SET SHOW SINK SNAPSHOT SOURCE SUBSCRIBE SUBSCRIPTION TABLE THEN
    TIMESTAMP TO TRUE UNION UP UPDATE UPSERT USING VALUES VIEW WHEN WHERE WITH WITHIN
"""
WORDS = tuple(_WORDS.split())
NAMES = """
    SELECT relname FROM pg_catalog.pg_class
    UNION SELECT nspname FROM pg_catalog.pg_namespace
    UNION SELECT column_name FROM information_schema.columns WHERE table_schema NOT LIKE 'pg%'
"""


class Words(Completer):
    """Completes the word before the cursor; `names` are the names that the server knows."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        begun = document.get_word_before_cursor(WORD=True).rpartition("(")[2].rpartition(",")[2].rpartition(".")[2]
        if not begun:
            return
        low = begun.lower()
        for name in self.names:
            if name.lower().startswith(low):
                yield Completion(name, -len(begun))
        for word in WORDS:
            if word.lower().startswith(low):
                yield Completion(word if begun.isupper() else word.lower(), -len(begun))
