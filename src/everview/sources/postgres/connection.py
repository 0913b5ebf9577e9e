"""CREATE CONNECTION … TO POSTGRES."""

from __future__ import annotations

from typing import ClassVar

from everview.errors import EverviewError
from everview.reach.connections import ConnectionKind, ConnectionOption, FileOf, Settings
from everview.sources.postgres import connecting
from everview.sources.postgres.rights import unreadable_publications


class PostgresConnection(ConnectionKind):
    """A PostgreSQL server and a database there."""

    name = "postgres"
    options: ClassVar = {
        "host": ConnectionOption(required=True),
        "port": ConnectionOption(number=True),
        "database": ConnectionOption(required=True),
        "user": ConnectionOption(required=True),
        "password": ConnectionOption(secret=True),
        "ssl mode": ConnectionOption(choices=connecting.SSL_MODES),
        "ssl certificate authority": ConnectionOption(),
        "ssl certificate": ConnectionOption(),
        "ssl key": ConnectionOption(secret=True),
    }
    sink_settings = frozenset(("connection",))

    def check(self, settings: Settings, file_of: FileOf) -> list[EverviewError]:
        with connecting.connect(connecting.conninfo(settings, file_of), "everview validates") as db:
            return [*connecting.readiness(db), *unreadable_publications(db)]

    def for_sink(self, settings: Settings, file_of: FileOf) -> dict[str, str]:
        return {"connection": connecting.conninfo(settings, file_of)}

    def for_source(self, settings: Settings, file_of: FileOf) -> str:
        return connecting.conninfo(settings, file_of)
