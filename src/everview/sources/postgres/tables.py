"""The tables of a publication as a source takes them: columns, types, and how their rows are identified."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.compute.ir.types import TEXT, SqlType
from everview.sources.contract import Column, Table
from everview.sources.postgres.connecting import failures, value
from everview.sources.postgres.errors import UpstreamUnfit
from everview.sources.postgres.rights import NAMED_MAX, missing_rights
from everview.sources.postgres.types import type_of

if TYPE_CHECKING:
    import psycopg

TABLES_MAX = 1_000
GENERATED_VERSION = 180_000  # from which on stored generated columns can be published

Name = tuple[str, str]  # schema and table


@dataclass(frozen=True, slots=True)
class UpstreamColumn:
    """A column that is taken: its name and number upstream, and what it is here."""

    name: str
    number: int
    type_oid: int
    modifier: int
    type: SqlType


@dataclass(frozen=True, slots=True)
class UpstreamTable:
    """A table that is taken: `key` are the places of the columns by which rows are found, none for whole rows."""

    oid: int
    schema: str
    name: str
    columns: tuple[UpstreamColumn, ...]
    key: tuple[int, ...] = ()
    where: str | None = None  # which rows are published

    @property
    def shown(self) -> str:
        """Its name upstream."""
        return f"{self.schema}.{self.name}"

    def local(self, name: str) -> Table:
        """What is made of it here."""
        columns = tuple(
            Column(each.name, each.type, nullable=place not in self.key) for place, each in enumerate(self.columns)
        )
        return Table(name, columns, tuple(columns[place].name for place in self.key))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tables of a publication a source takes, and how: columns are named by schema, table and column."""

    publication: str
    schemas: tuple[str, ...] | None = None  # None: all
    tables: tuple[tuple[tuple[str, ...], str | None], ...] | None = None  # paths, with the names to have here
    text_columns: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[tuple[str, ...], ...] = ()


def look(db: psycopg.Connection[Any], wanted: Wanted) -> dict[str, UpstreamTable]:
    """The tables that a source takes, by the names that they have here; an error if one cannot be kept exact."""
    with failures("PostgreSQL failed"):
        _check_publication(db, wanted.publication)
        found = _published(db, wanted.publication)
        named = _chosen(wanted, found, functools.partial(_partitions, db))
        columns = columns_of(db, [int(each["oid"]) for each in named.values()])
        _check_columns_named(wanted, named, columns)
        tables = {name: _table(db, wanted, each, columns[int(each["oid"])]) for name, each in named.items()}
    taken = [(each.oid, [column.name for column in each.columns]) for each in tables.values()]
    for lack in missing_rights(db, taken):
        raise lack
    return tables


def _check_publication(db: psycopg.Connection[Any], name: str) -> None:
    whole = "pubinsert AND pubupdate AND pubdelete AND pubtruncate"
    row = db.execute(f"SELECT {whole}, pubviaroot FROM pg_publication WHERE pubname = %s", [name]).fetchone()
    quoted = _quoted(db, name)
    if row is None:
        known = [each for (each,) in db.execute("SELECT pubname FROM pg_publication ORDER BY 1 LIMIT 20").fetchall()]
        raise UpstreamUnfit(
            f'publication "{name}" does not exist in the database',
            detail=f"there are {', '.join(known)}" if known else "there is no publication",
            hint=f"CREATE PUBLICATION {quoted} FOR ALL TABLES",
        )
    complete, via_root = row
    if not complete:
        raise UpstreamUnfit(
            f'publication "{name}" does not publish all changes',
            detail="what it leaves out would be missing here",
            hint=f"ALTER PUBLICATION {quoted} SET (publish = 'insert, update, delete, truncate')",
        )
    if via_root and value(db, _HAS_ROOTS, name):
        raise UpstreamUnfit(
            f'publication "{name}" tells of partitioned tables as wholes',
            detail="then PostgreSQL does not tell when a partition is truncated or detached",
            hint=f"ALTER PUBLICATION {quoted} SET (publish_via_partition_root = false): each partition is a table then",
        )


_HAS_ROOTS = """
    SELECT bool_or(c.relkind = 'p') FROM pg_get_publication_tables(%s::text) AS p JOIN pg_class AS c ON c.oid = p.relid
"""


def _published(db: psycopg.Connection[Any], publication: str) -> list[dict[str, Any]]:
    """The tables of a publication."""
    modern = db.info.server_version >= 150_000
    rows = db.execute(
        f"""
        SELECT c.oid, p.schemaname, p.tablename, c.relreplident, c.relkind, c.relpersistence,
               {"p.attnames::text[]" if modern else "NULL::text[]"}, {"p.rowfilter" if modern else "NULL"}
        FROM pg_publication_tables AS p
        JOIN pg_namespace AS n ON n.nspname = p.schemaname
        JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = p.tablename
        WHERE p.pubname = %s ORDER BY 2, 3
        """,
        [publication],
    ).fetchall()
    names = ("oid", "schema", "name", "identity", "kind", "persistence", "columns", "where")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _partitions(db: psycopg.Connection[Any], path: tuple[str, ...]) -> list[str]:
    """The partitions of a partitioned table; none if it is not one."""
    query = """
        SELECT l.nspname || '.' || c.relname FROM pg_class AS t JOIN pg_namespace AS n ON n.oid = t.relnamespace,
               LATERAL pg_partition_tree(t.oid) AS p
        JOIN pg_class AS c ON c.oid = p.relid JOIN pg_namespace AS l ON l.oid = c.relnamespace
        WHERE t.relkind = 'p' AND p.isleaf AND t.relname = %s AND (%s::text IS NULL OR n.nspname = %s) ORDER BY 1
    """
    schema = path[-2] if len(path) > 1 else None
    return [str(name) for (name,) in db.execute(query, [path[-1], schema, schema]).fetchall()]


def _chosen(
    wanted: Wanted, found: Sequence[Mapping[str, Any]], partitions: Callable[[tuple[str, ...]], Sequence[str]]
) -> dict[str, Mapping[str, Any]]:
    """The tables that are wanted, by their names here."""
    chosen: list[tuple[str, Mapping[str, Any]]] = []
    if wanted.tables is not None:
        for path, alias in wanted.tables:
            fitting = [each for each in found if (each["schema"], each["name"])[-len(path) :] == path]
            if len(fitting) != 1:
                shown = ".".join(path)
                if not fitting and (parts := partitions(path)):
                    message = f'"{shown}" is a partitioned table, and each of its partitions is a table here'
                    more = ", …" if parts[NAMED_MAX:] else ""
                    raise UpstreamUnfit(message, hint=f"FOR TABLES ({', '.join(parts[:NAMED_MAX])}{more})")
                detail = None if not fitting else f"it is in {' and '.join(str(each['schema']) for each in fitting)}"
                message = f'table "{shown}" is not in publication "{wanted.publication}"'
                if fitting:
                    message = f'there are several tables "{shown}" in publication "{wanted.publication}"'
                hint = "name its schema" if fitting else f"ALTER PUBLICATION {wanted.publication} ADD TABLE {shown}"
                raise UpstreamUnfit(message, detail=detail, hint=hint)
            chosen.append((alias or str(fitting[0]["name"]), fitting[0]))
    else:
        schemas = wanted.schemas
        chosen = [(str(each["name"]), each) for each in found if schemas is None or each["schema"] in schemas]
        for schema in schemas or ():
            if not any(each["schema"] == schema for each in found):
                message = f'publication "{wanted.publication}" has no table in schema "{schema}"'
                raise UpstreamUnfit(message)
    if not chosen:
        hint = f"ALTER PUBLICATION {wanted.publication} ADD TABLE …"
        raise UpstreamUnfit(f'publication "{wanted.publication}" has no tables', hint=hint)
    if len(chosen) > TABLES_MAX:
        raise UpstreamUnfit(f"a source has at most {TABLES_MAX} tables, and these are {len(chosen)}")
    names: dict[str, Mapping[str, Any]] = {}
    for name, each in chosen:
        if name in names:
            message = f'two tables would be called "{name}"'
            raise UpstreamUnfit(
                message, hint=f"FOR TABLES ({each['schema']}.{each['name']} AS …) gives one another name"
            )
        names[name] = each
    return names


def columns_of(db: psycopg.Connection[Any], oids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """The columns of tables, with their types."""
    rows = db.execute(
        """
        SELECT a.attrelid, a.attname, a.attnum, a.atttypid, a.atttypmod, a.attgenerated, t.typname, t.typtype,
               CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN e.typname END,
               format_type(a.atttypid, a.atttypmod)
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid LEFT JOIN pg_type AS e ON e.oid = t.typelem
        WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum
        """,
        [list(oids)],
    ).fetchall()
    names = ("oid", "name", "number", "type_oid", "modifier", "generated", "type", "kind", "element", "shown")
    found: dict[int, list[dict[str, Any]]] = {oid: [] for oid in oids}
    for row in rows:
        found[row[0]].append(dict(zip(names, row, strict=True)))
    return found


def _table(
    db: psycopg.Connection[Any], wanted: Wanted, found: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]
) -> UpstreamTable:
    schema, name, publication = str(found["schema"]), str(found["name"]), _quoted(db, wanted.publication)
    shown = f"{schema}.{name}"
    taken: list[UpstreamColumn] = []
    for each in columns:
        path = (schema, name, str(each["name"]))
        if _names(wanted.excluded, path):
            continue
        full = f"{shown}.{each['name']}"
        listed = found["columns"] is None or each["name"] in found["columns"]
        if each["generated"] and (not listed or db.info.server_version < GENERATED_VERSION):
            can = each["generated"] == "s" and db.info.server_version >= GENERATED_VERSION
            publish = f"ALTER PUBLICATION {publication} SET (publish_generated_columns = stored), or " if can else ""
            raise UpstreamUnfit(f"generated column {full} is not published", hint=f"{publish}EXCLUDE COLUMNS ({full})")
        if not listed:
            message = f"column {full} is not in the column list of the publication"
            raise UpstreamUnfit(message, hint=f"EXCLUDE COLUMNS ({full})")
        ours = type_of(str(each["type"]), str(each["kind"]), int(each["modifier"]), each["element"])
        if _names(wanted.text_columns, path):
            ours = TEXT
        if ours is None:
            hint = f"TEXT COLUMNS ({full}) takes the texts of its values, EXCLUDE COLUMNS ({full}) leaves it out"
            raise UpstreamUnfit(f"column {full} has a type that is not known here: {each['shown']}", hint=hint)
        number, oid, modifier = int(each["number"]), int(each["type_oid"]), int(each["modifier"])
        taken.append(UpstreamColumn(str(each["name"]), number, oid, modifier, ours))
    if not taken:
        raise UpstreamUnfit(f"table {shown} has no columns to take", hint="name others in FOR TABLES (…)")
    if found["persistence"] != "p":
        raise UpstreamUnfit(f"table {shown} is not logged", hint=f"ALTER TABLE {shown} SET LOGGED")
    key = _key(db, found, taken, shown)
    return UpstreamTable(int(found["oid"]), schema, name, tuple(taken), key, found["where"])


def _key(
    db: psycopg.Connection[Any], found: Mapping[str, Any], taken: Sequence[UpstreamColumn], shown: str
) -> tuple[int, ...]:
    """The places of the columns by which changes name rows; none if they bring whole rows."""
    if found["identity"] == "f":
        return ()
    which = "indisreplident" if found["identity"] == "i" else "indisprimary AND indimmediate"
    rows = db.execute(
        f"SELECT unnest(indkey::int2[]) FROM pg_index WHERE indrelid = %s AND indisvalid AND {which}",
        [found["oid"]],
    ).fetchall()
    numbers = {int(number) for (number,) in rows}
    if found["identity"] == "n" or not numbers:
        raise UpstreamUnfit(
            f"rows of table {shown} cannot be told apart",
            detail="it has no primary key, and its changes do not bring whole rows",
            hint=f"ALTER TABLE {shown} REPLICA IDENTITY FULL, or ADD PRIMARY KEY (…)",
        )
    places = tuple(place for place, each in enumerate(taken) if each.number in numbers)
    if len(places) < len(numbers):
        raise UpstreamUnfit(
            f"a column of the key of table {shown} is left out",
            hint=f"do not exclude it, or ALTER TABLE {shown} REPLICA IDENTITY FULL",
        )
    return places


def _names(given: Sequence[tuple[str, ...]], path: tuple[str, str, str]) -> bool:
    return any(path[-len(each) :] == each for each in given)


def _check_columns_named(
    wanted: Wanted, chosen: Mapping[str, Mapping[str, Any]], columns: Mapping[int, Sequence[Mapping[str, Any]]]
) -> None:
    """Raise if an option names a column that no table has, or only its own name, which says of no table that it has."""
    paths = [
        (str(table["schema"]), str(table["name"]), str(each["name"]))
        for table in chosen.values()
        for each in columns[int(table["oid"])]
    ]
    for option, given in (("TEXT COLUMNS", wanted.text_columns), ("EXCLUDE COLUMNS", wanted.excluded)):
        for each in given:
            if len(each) < 2:
                raise UpstreamUnfit(f"{option} names columns with their tables", hint=f"table.{each[-1]}")
            if not any(path[-len(each) :] == each for path in paths):
                raise UpstreamUnfit(f"no table of the source has the column {'.'.join(each)}, which {option} names")


def _quoted(db: psycopg.Connection[Any], name: str) -> str:
    from psycopg import sql

    return sql.Identifier(name).as_string(db)
