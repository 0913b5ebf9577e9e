"""FROM POSTGRES: tables of a publication in a PostgreSQL database, kept as they are there."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping

from everview.compute.ir.types import INT8, TEXT
from everview.compute.sql.references import quoted
from everview.quoting import literal
from everview.sources.contract import Column, Feeding, Found, Given, OwnTimeline, SourceKind, Table
from everview.sources.feeder import POSITION, Feeder
from everview.sources.postgres import connecting, spec
from everview.sources.postgres.errors import UpstreamUnfit
from everview.sources.postgres.reader import PostgresReader
from everview.sources.postgres.spec import PostgresSource
from everview.sources.postgres.tables import Wanted, look
from everview.storage.contract import GlobalId, Put
from everview.storage.environment import Environment

_ARGUMENTS = ("publication",)


class PostgresKind(SourceKind[PostgresSource]):
    """FROM POSTGRES CONNECTION name (PUBLICATION 'name', …) FOR …"""

    name = "postgres"
    connects = True
    usage = "FROM POSTGRES CONNECTION name (PUBLICATION 'name') FOR ALL TABLES"

    def look(self, given: Given, pause: Callable[[float], object]) -> Found[PostgresSource]:
        if unknown := given.arguments.keys() - {*_ARGUMENTS}:
            message = f"a source from POSTGRES has no option {min(unknown).upper()}"
            raise UpstreamUnfit(message, hint="PUBLICATION, TEXT COLUMNS and EXCLUDE COLUMNS can be given")
        publication, upstream = given.arguments.get("publication"), given.upstream
        if not publication or upstream is None:
            raise UpstreamUnfit("a source from POSTGRES needs a PUBLICATION", hint="CREATE PUBLICATION … upstream")
        wanted = Wanted(publication, upstream.schemas, upstream.tables, upstream.text_columns, upstream.excluded)
        with connecting.connect(upstream.way(), "everview looks") as db:
            for lack in connecting.readiness(db):
                raise lack
            tables = look(db, wanted)
        progress = f"{given.name}_progress"
        if taken := tables.keys() & {given.name, progress}:
            hint = "FOR TABLES (… AS …) gives it another name, or give the source another one"
            raise UpstreamUnfit(f'table "{min(taken)}" would have a name that the source needs', hint=hint)
        slot = f"everview_{secrets.token_hex(8)}"
        found = PostgresSource(
            given.kind,
            upstream.connection,
            publication,
            slot,
            tables,
            progress,
            upstream.text_columns,
            upstream.excluded,
        )
        local = [each.local(name) for name, each in tables.items()]
        position = Table(progress, (Column("lsn", TEXT), Column("position", INT8)))
        return Found(found, (*local, position))

    def feeder(self, feeding: Feeding[PostgresSource]) -> Feeder:
        return Feeder(feeding, PostgresReader(feeding))

    def connection(self, spec: PostgresSource) -> GlobalId:
        return spec.connection

    def remembered(self, environment: Environment) -> list[GlobalId]:
        found = environment.scan(POSITION)
        return [key.removeprefix(POSITION) for key, value in found.items() if "slot" in _object(value)]

    def forget(self, environment: Environment, id: GlobalId) -> None:
        environment.commit(Put(POSITION + id, None))

    def to_json(self, spec_: PostgresSource) -> dict[str, str]:
        return spec.to_json(spec_)

    def from_json(self, kind: str, said: Mapping[str, str], timeline: OwnTimeline | None) -> PostgresSource:
        return spec.from_json(kind, said, timeline)

    def shown(self, spec_: PostgresSource, name_of: Callable[[GlobalId], str]) -> tuple[str, list[str]]:
        return f"POSTGRES CONNECTION {name_of(spec_.connection)} {_shown_tables(spec_)}", []


def _shown_tables(source: PostgresSource) -> str:
    """What stands behind the connection in the statement that would make a source."""
    tables = ", ".join(
        f"{quoted(each.schema)}.{quoted(each.name)} AS {quoted(name)}" for name, each in source.tables.items()
    )
    options = [f"PUBLICATION {literal(source.publication)}"]
    for option, paths in (("TEXT COLUMNS", source.text_columns), ("EXCLUDE COLUMNS", source.excluded)):
        if paths:
            options.append(f"{option} ({', '.join('.'.join(map(quoted, path)) for path in paths)})")
    return f"({', '.join(options)}) FOR TABLES ({tables})"


def _object(value: bytes) -> Mapping[str, object]:
    found = json.loads(value)
    return found if isinstance(found, dict) else {}
