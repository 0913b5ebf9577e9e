"""What `everview doctor` finds out about a PostgreSQL server: its clock, and whether the role may write metadata."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import parse_qsl

from everview.storage.stores import SCHEMA_PARAMETER, conninfo
from everview.storage.urls import split

_READ_ONLY = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
_PRIVILEGES = """
SELECT to_regclass(%(table)s) IS NOT NULL, to_regnamespace(%(schema)s) IS NOT NULL,
    has_database_privilege(current_database(), 'CREATE'), current_user::text, current_database()::text
"""
_ON_SCHEMA = "SELECT has_schema_privilege(%(schema)s::regnamespace, 'CREATE')"
_ON_TABLE = """
SELECT privilege FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS given (privilege)
WHERE NOT has_table_privilege(%(table)s::regclass, privilege)
"""


@dataclass(frozen=True, slots=True)
class DatabaseServer:
    """The clocks of the server and of this machine at one moment; and why metadata cannot be written, if so."""

    clock: float
    our_clock: float
    lacking: str | None = None
    hint: str | None = None


def look_at(url: str) -> DatabaseServer:
    """Ask the server of the metadata."""
    import psycopg
    from psycopg import sql

    schema = dict(parse_qsl(split(url).query, keep_blank_values=True)).get(SCHEMA_PARAMETER, "everview")
    names = {
        "schema": sql.Identifier(schema).as_string(None),
        "table": sql.Identifier(schema, "entries").as_string(None),
    }
    with psycopg.connect(conninfo(url), connect_timeout=5) as connection:
        before = time.time()
        (clock,) = connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone() or (before,)
        clocks = float(clock), (before + time.time()) / 2
        standby, read_only = connection.execute(_READ_ONLY).fetchone() or (False, False)
        if standby or read_only:
            why = "the server is a standby" if standby else "transactions are read-only"
            return DatabaseServer(*clocks, why, "name the server that takes writes")
        there, has_schema, may_create, role, database = connection.execute(_PRIVILEGES, names).fetchone() or ()
        if there:
            lacking = ", ".join(privilege for (privilege,) in connection.execute(_ON_TABLE, names))
            what, grant = f"{lacking} on its table", f"GRANT {lacking} ON {names['table']} TO {role}"
        elif has_schema:
            (allowed,) = connection.execute(_ON_SCHEMA, names).fetchone() or (False,)
            lacking, what = "" if allowed else "CREATE", f"CREATE in the schema {schema}"
            grant = f"GRANT USAGE, CREATE ON SCHEMA {names['schema']} TO {role}"
        else:
            lacking, what = "" if may_create else "CREATE", f"CREATE in the database {database}"
            grant = f"GRANT CREATE ON DATABASE {sql.Identifier(database).as_string(None)} TO {role}"
    return DatabaseServer(*clocks, f"the role {role} lacks {what}", grant) if lacking else DatabaseServer(*clocks)
