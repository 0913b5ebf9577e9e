"""The kinds of connections: one line for each."""

from __future__ import annotations

from collections.abc import Mapping

from everview.cdc.kafka_connection import KafkaConnection
from everview.compute.sql.errors import unsupported
from everview.reach.connections import ConnectionKind
from everview.sources.postgres.connection import PostgresConnection

_KINDS: tuple[ConnectionKind, ...] = (PostgresConnection(), KafkaConnection())
CONNECTIONS: Mapping[str, ConnectionKind] = {each.name: each for each in _KINDS}


def connection_kind(name: str) -> ConnectionKind:
    """The kind of this name; raises if there is none."""
    if name not in CONNECTIONS:
        hint = f"connections to {' and '.join(each.upper() for each in CONNECTIONS)} exist"
        raise unsupported(f"a connection to {name.upper()}", hint=hint)
    return CONNECTIONS[name]
