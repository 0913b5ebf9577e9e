"""Whether the role of a connection may read all rows of the columns that are taken, and the statement that lets it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from everview.sources.postgres.connecting import failures, value
from everview.sources.postgres.errors import UpstreamUnfit

if TYPE_CHECKING:
    import psycopg

NAMED_MAX = 10  # of the tables that lack something, how many a message names

_RIGHTS = """
    SELECT n.nspname, c.relname, has_schema_privilege(n.oid, 'USAGE'), row_security_active(c.oid), EXISTS (
        SELECT FROM pg_attribute AS a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
          AND (t.names IS NULL OR a.attname = ANY(string_to_array(t.names, chr(1))))
          AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT'))
    FROM unnest(%s::oid[], %s::text[]) AS t(oid, names)
    JOIN pg_class AS c ON c.oid = t.oid JOIN pg_namespace AS n ON n.oid = c.relnamespace ORDER BY 1, 2
"""


def missing_rights(
    db: psycopg.Connection[Any], tables: Sequence[tuple[int, Sequence[str] | None]]
) -> list[UpstreamUnfit]:
    """What keeps the role from reading columns of tables, which are named by their oids; None means all columns."""
    oids = [oid for oid, _ in tables]
    names = [None if columns is None else "\x01".join(columns) for _, columns in tables]
    with failures("PostgreSQL failed"):
        return list(_missing(db, db.execute(_RIGHTS, [oids, names]).fetchall()))


def unreadable_publications(db: psycopg.Connection[Any]) -> list[UpstreamUnfit]:
    """What keeps the role from reading the tables that the publications of its database have."""
    with failures("PostgreSQL failed"):
        found = db.execute(
            "SELECT DISTINCT p.relid::int8 FROM pg_publication, pg_get_publication_tables(pubname::text) AS p"
        ).fetchall()
    return missing_rights(db, [(int(oid), None) for (oid,) in found])


def _missing(db: psycopg.Connection[Any], rows: Sequence[tuple[str, str, bool, bool, bool]]) -> Iterator[UpstreamUnfit]:
    from psycopg import sql

    user = str(value(db, "SELECT current_user"))
    role = sql.Identifier(user).as_string(db)
    closed = sorted({schema for schema, _, usable, _, _ in rows if not usable})
    if closed:
        quoted = ", ".join(sql.Identifier(each).as_string(db) for each in closed)
        plural = "schemas" if len(closed) > 1 else "schema"
        hint = f"GRANT USAGE ON SCHEMA {quoted} TO {role}"
        yield UpstreamUnfit(f'"{user}" may not use {plural} {_listed(closed)}', hint=hint)
    shut = [(schema, table) for schema, table, _, _, lacks in rows if lacks]
    if shut:
        quoted = ", ".join(sql.Identifier(*each).as_string(db) for each in shut[:NAMED_MAX])
        more = ", …" if len(shut) > NAMED_MAX else ""
        yield UpstreamUnfit(f'"{user}" may not read {_tables(shut)}', hint=f"GRANT SELECT ON {quoted}{more} TO {role}")
    hidden = [(schema, table) for schema, table, _, active, _ in rows if active]
    if hidden:
        yield UpstreamUnfit(
            f'row-level security hides rows from "{user}" in {_tables(hidden)}',
            detail="changes would come for rows that the snapshot lacks",
            hint=f"ALTER ROLE {role} BYPASSRLS",
        )


def _tables(names: Sequence[tuple[str, str]]) -> str:
    return f"{'tables' if len(names) > 1 else 'table'} {_listed(['.'.join(each) for each in names])}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} others" if len(names) > NAMED_MAX else "")
