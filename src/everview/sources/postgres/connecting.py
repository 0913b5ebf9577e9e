"""Connections to a PostgreSQL server, for statements and for replication, and what a server needs to be a source.

All connections go to addresses that were checked (`reach`). Errors say in one line what is wrong, and in their hint
what to change, with the statement to run on that server where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from everview.reach.conninfo import pinned
from everview.sources.postgres.errors import UpstreamFailed, UpstreamUnfit

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn

CONNECT_S = 20
VERSION_MIN, STANDBY_VERSION_MIN = 140_000, 160_000
SSL_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
# Options of a connection, and libpq's names for them; the last ones are files whose contents are given.
PARAMETERS = {
    "host": "host",
    "port": "port",
    "database": "dbname",
    "user": "user",
    "password": "password",
    "ssl mode": "sslmode",
}
FILES = {"ssl certificate authority": "sslrootcert", "ssl certificate": "sslcert", "ssl key": "sslkey"}
# Values as texts that mean the same wherever they are read.
SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "search_path": "pg_catalog",
    "client_encoding": "UTF8",  # else texts come in the encoding of their database
    "row_security": "off",  # a query that a policy would shorten fails
}
UNKNOWN_ENCODING = "SQL_ASCII"
_HINTS = (
    ("permission denied", "GRANT SELECT ON the tables, and USAGE ON their SCHEMA, to the role of the connection"),
    ("row-level security policy", "let the role of the connection see all rows: ALTER ROLE … BYPASSRLS"),
    ("password authentication failed", "alter the password upstream, or the secret here: ALTER SECRET … AS '…'"),
    ("no password supplied", "give the connection a password: ALTER CONNECTION … SET (PASSWORD SECRET …)"),
    ("no pg_hba.conf entry", "allow this machine in pg_hba.conf upstream, then SELECT pg_reload_conf()"),
    ("does not exist", "DATABASE and USER of the connection are names that exist upstream"),
    ("Connection refused", "is the server running there, and does it listen on this address (listen_addresses)?"),
    ("timeout expired", "is there a firewall between, or another HOST or PORT?"),
    ("Name or service not known", "HOST of the connection is a name that this machine can resolve, or an address"),
    ("SSL", "SSL MODE of the connection says whether TLS is used, and what is checked"),
)


def conninfo(settings: Mapping[str, str], file_of: Callable[[str], str]) -> str:
    """The settings of a connection as libpq wants them; `file_of` gives the path of a file with these contents."""
    from psycopg.conninfo import make_conninfo

    found = {ours: settings[name] for name, ours in PARAMETERS.items() if name in settings}
    found |= {ours: file_of(settings[name]) for name, ours in FILES.items() if name in settings}
    return make_conninfo("", connect_timeout=str(CONNECT_S), **found)


def connect(where: str, name: str = "everview") -> psycopg.Connection[Any]:
    """A connection for statements, each of which is a transaction."""
    import psycopg

    with failures("cannot connect to PostgreSQL"):
        return psycopg.connect(_checked(where), autocommit=True, application_name=name, options=_options())


def connect_replication(where: str, name: str = "everview") -> PGconn:
    """A connection for logical replication."""
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    with failures("cannot connect to PostgreSQL"):
        full = make_conninfo(_checked(where), replication="database", application_name=name, options=_options())
        found = pq.PGconn.connect(full.encode())
    if found.status != pq.ConnStatus.OK:
        text = found.error_message.decode(errors="replace")
        found.finish()
        raise failed("cannot connect to PostgreSQL for replication", text)
    if found.parameter_status(b"server_encoding") == UNKNOWN_ENCODING.encode():
        found.exec_(f"SET client_encoding = {UNKNOWN_ENCODING}".encode())
    return found


def _checked(where: str) -> str:
    try:
        return pinned(where)
    except OSError as error:
        raise failed("cannot connect to PostgreSQL", str(error)) from None


def _options() -> str:
    return " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())


@contextmanager
def failures(message: str) -> Iterator[None]:
    """Within the block, what the library raises is told in our words."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise failed(message, str(error.diag.message_primary or error), error.sqlstate) from None


def failed(message: str, text: str, sqlstate: str | None = None) -> UpstreamFailed:
    """A failure by what the server or the library says of it."""
    lines = list(dict.fromkeys(line.strip() for line in text.strip().splitlines() if line.strip()))
    detail = "; ".join(lines)[:500] or "the connection broke off"
    hint = next((hint for part, hint in _HINTS if part in detail), None)
    return UpstreamFailed(message, detail=detail if sqlstate is None else f"{detail} ({sqlstate})", hint=hint)


def readiness(db: psycopg.Connection[Any]) -> list[UpstreamUnfit]:
    """What keeps this server and role from being a source."""
    with failures("PostgreSQL failed"):
        found = list(_lacks(db))
    return found


def _lacks(db: psycopg.Connection[Any]) -> Iterator[UpstreamUnfit]:
    version = db.info.server_version
    if version < VERSION_MIN:
        yield UpstreamUnfit(
            f"PostgreSQL {version // 10_000} is too old to be a source",
            detail=f"versions from {VERSION_MIN // 10_000} on can be",
        )
    standby = value(db, "SELECT pg_is_in_recovery()")
    if standby and version < STANDBY_VERSION_MIN:
        yield UpstreamUnfit(
            "a read replica of this version cannot be a source",
            detail=f"it is version {version // 10_000}, and logical replication from replicas came with 16",
            hint="connect to the primary",
        )
    level = value(db, "SHOW wal_level")
    if level != "logical":
        yield UpstreamUnfit(
            "the server does not write what logical replication needs",
            detail=f"its wal_level is {level}",
            hint="ALTER SYSTEM SET wal_level = logical; then restart the server",
        )
    user = str(value(db, "SELECT current_user"))
    if not value(db, _MAY_REPLICATE):
        from psycopg import sql

        name = sql.Identifier(user).as_string(db)
        detail = "its role lacks the attribute REPLICATION"
        yield UpstreamUnfit(f'"{user}" may not replicate', detail=detail, hint=f"ALTER ROLE {name} REPLICATION")
    for setting, count in (("max_replication_slots", _SLOTS), ("max_wal_senders", _SENDERS)):
        most, used = int(str(value(db, f"SHOW {setting}"))), int(str(value(db, count)))
        if used >= most:
            yield UpstreamUnfit(
                f"the server has no room for another source: {setting} is {most}",
                detail=f"{used} are in use",
                hint=f"ALTER SYSTEM SET {setting} = {most + 10}; then restart the server; or drop what nobody uses",
            )


_SLOTS = "SELECT count(*) FROM pg_catalog.pg_replication_slots"
_SENDERS = "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'walsender'"
# Managed servers give the right to replicate by membership in a role of their own.
_MAY_REPLICATE = """
    SELECT bool_or(rolsuper OR rolreplication) FROM pg_catalog.pg_roles
    WHERE rolname = current_user
       OR (rolname IN ('rds_replication', 'rds_superuser', 'cloudsqlsuperuser', 'azure_pg_admin')
           AND pg_catalog.pg_has_role(oid, 'member'))
"""


def value(db: psycopg.Connection[Any], query: str, *parameters: Any) -> Any:
    """The only value of the first row; None if there is no row."""
    row = db.execute(query, parameters or None).fetchone()
    return None if row is None else row[0]
