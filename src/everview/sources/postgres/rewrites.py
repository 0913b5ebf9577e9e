"""Whether a table upstream was written anew by ALTER TABLE, of which the stream tells nothing.

TRUNCATE is told, and VACUUM FULL and CLUSTER keep all rows as they are. But ALTER … TYPE … USING gives rows other
values, and between SET UNLOGGED and SET LOGGED changes are not told. All of these give a table another file. They
differ in this:

* A publication that names the table itself keeps PostgreSQL from making it unlogged.
* ALTER … TYPE writes the column's row in pg_attribute.
* ALTER TABLE gives a table with long values (TOAST) another TOAST table; the others keep it.
* ALTER TABLE writes all rows as one transaction, with pg_class after them. So a row that is older than the last look
  shows that there was none, and a row of the transaction that wrote pg_class, at or before it, that there was one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from everview.sources.postgres.connecting import failures
from everview.sources.postgres.tables import UpstreamTable

if TYPE_CHECKING:
    import psycopg

ROWS_MAX = 100_000  # that are looked at
_WRAP = 1 << 31  # transactions further apart than this cannot be put in order

_OLDER = """
    SELECT EXISTS (
        SELECT FROM (SELECT xmin AS x FROM ONLY {table} LIMIT {rows}) AS r,
                    (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8 AS top) AS s
        WHERE s.top - %(since)s < {wrap} AND (s.top - r.x::text::int8) & 4294967295 > s.top - %(since)s)
"""
# Of indexes too, which are written anew with their table: pg_class may have been written again since. `cmin` of a row
# that was to be deleted (`xmax`) says something else.
_WRITTEN_ANEW = """
    WITH written AS (
        SELECT xmin AS x, cmin::text::int8 AS c FROM pg_class WHERE oid = %(oid)s UNION ALL
        SELECT c.xmin, c.cmin::text::int8 FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE i.indrelid = %(oid)s AND i.xmin <> c.xmin
    )
    SELECT EXISTS (
        SELECT FROM (SELECT xmin AS x, cmin::text::int8 AS c, xmax FROM ONLY {table} LIMIT {rows}) AS r, written AS w
        WHERE r.x = w.x AND r.c <= w.c AND r.xmax::text = '0')
"""


class File(NamedTuple):
    """What tells of rewrites: the table's file, its TOAST table or 0, who wrote the rows of its columns in
    pg_attribute, and whether its publication names it.
    """

    file: int
    toast: int
    columns: str
    named: bool


def was_rewritten(db: psycopg.Connection[Any], table: UpstreamTable, before: File, now: File, since: int) -> bool:
    """Whether rows may be others than the stream has told.

    All transactions before `since` had ended at the last look, when the table was `before`.
    """
    if now.file == before.file or (now.named and now.columns == before.columns):
        return False
    if before.toast:
        return now.toast != before.toast
    return not _has(db, _OLDER, table, since=since) and (
        now.columns != before.columns or _has(db, _WRITTEN_ANEW, table, oid=table.oid)
    )


def _has(db: psycopg.Connection[Any], query: str, table: UpstreamTable, **given: int) -> bool:
    from psycopg import sql

    name = sql.Identifier(table.schema, table.name)
    whole = sql.SQL(query).format(table=name, rows=sql.Literal(ROWS_MAX), wrap=sql.Literal(_WRAP))
    with failures(f"table {table.shown} cannot be read"):
        return bool(db.execute(whole, given).fetchone() == (True,))
