"""By what it is noticed that tables and their publication have changed upstream.

What a source keeps exact depends on definitions upstream: the publication, which tables it has, their columns, replica
identities, generated values and enums. The stream tells of none of these when it changes. So the definitions are looked
at before each commit, behind all that the commit holds: if they are as they were, they were so for all of it. What was
altered and altered back between two looks has other oids or was written by other transactions (`xmin`).

A table that is written anew is told by its file (`rewrites`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everview.sources.postgres.connecting import failures, value
from everview.sources.postgres.errors import SourceLost
from everview.sources.postgres.rewrites import File, was_rewritten
from everview.sources.postgres.tables import UpstreamTable, columns_of

if TYPE_CHECKING:
    import psycopg

_FORM = 2  # of what is remembered
_GONE = "gone"
FIRST_CUSTOM_OID = 16_384  # types from here on are made by users

# What is the same for all tables where a publication is for all of them.
_NO_WAYS = "ways AS (SELECT NULL::oid AS oid, false AS named, NULL::text AS seen WHERE false)"
# How a table comes to be in another publication: by name, by its schema, or by the table that it is a partition of.
_WAYS = """
    routes AS (
        SELECT oid, oid AS relid FROM told UNION
        SELECT t.oid, a.relid FROM told AS t JOIN pg_class AS c ON c.oid = t.oid AND c.relispartition,
             LATERAL pg_partition_ancestors(t.oid) AS a(relid)
    ),
    pieces(oid, piece, named) AS (
        SELECT r.oid, 'r:' || p.oid, r.relid = r.oid FROM routes AS r
        JOIN pg_publication_rel AS p ON p.prrelid = r.relid AND p.prpubid = %(publication)s
        UNION ALL
        SELECT r.oid, concat_ws(':', 'i', i.inhparent, i.xmin), false FROM routes AS r
        JOIN pg_inherits AS i ON i.inhrelid = r.relid WHERE i.inhparent IN (SELECT relid FROM routes)
        {by_schema}
    ),
    ways AS (
        SELECT oid, bool_or(named) AS named, CASE WHEN bool_or(named)
               THEN string_agg(piece, ',' ORDER BY piece) FILTER (WHERE named)
               ELSE string_agg(piece, ',' ORDER BY piece) END AS seen
        FROM pieces GROUP BY oid
    )
"""
_BY_SCHEMA = """
    UNION ALL
    SELECT r.oid, concat_ws(':', 's', s.oid, d.xmin), false FROM routes AS r JOIN pg_class AS c ON c.oid = r.relid
    JOIN pg_publication_namespace AS s ON s.pnnspid = c.relnamespace AND s.pnpubid = %(publication)s
    JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = 0
         AND d.refclassid = 'pg_namespace'::regclass
"""
_WATCHED = """
    WITH told AS (SELECT * FROM unnest(%(oids)s::oid[], %(columns)s::text[]) AS t(oid, names)),
    published AS MATERIALIZED (SELECT * FROM pg_get_publication_tables(%(name)s::text)),
    {ways},
    taken AS (
        SELECT a.attrelid, bool_and({listed}) AS listed,
               left(md5(string_agg(a.xmin::text, ',' ORDER BY a.attnum)), 8) AS written,
               string_agg(concat_ws(':', a.attname, a.attnum, a.atttypid, a.atttypmod, d.oid), ','
                   ORDER BY a.attnum) AS seen
        FROM told AS t JOIN pg_attribute AS a ON a.attrelid = t.oid LEFT JOIN published AS p ON p.relid = t.oid
        LEFT JOIN pg_attrdef AS d ON a.attgenerated <> '' AND d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname = ANY(string_to_array(t.names, chr(1)))
        GROUP BY a.attrelid
    )
    SELECT t.oid::int8, left(md5(concat_ws('|', c.relreplident, c.relpersistence, c.relkind, p.relid, {where},
           a.listed, a.seen, w.seen,
           (SELECT string_agg(concat_ws(':', i.indexrelid, i.indkey, i.indisvalid, i.indimmediate), ',' ORDER BY 1)
            FROM pg_index AS i WHERE i.indrelid = t.oid AND (i.indisreplident OR i.indisprimary)))), 16),
           c.relfilenode::int8, c.reltoastrelid::int8, a.written, coalesce(w.named, false), c.relispartition
    FROM told AS t JOIN pg_class AS c ON c.oid = t.oid
    LEFT JOIN published AS p ON p.relid = t.oid LEFT JOIN taken AS a ON a.attrelid = t.oid
    LEFT JOIN ways AS w ON w.oid = t.oid
"""
# Of types that users make: the fields of composite ones, which are in their texts, and the labels of enums.
_TYPES = """
    SELECT y.oid::int8, coalesce((
               SELECT string_agg(concat_ws('.', f.attnum, f.atttypid), ',' ORDER BY f.attrelid, f.attnum)
               FROM pg_attribute AS f WHERE f.attrelid IN (y.typrelid, b.typrelid) AND f.attnum > 0), ''),
           (SELECT jsonb_object_agg(e.oid, jsonb_build_array(e.xmin::text, e.enumlabel)) FROM pg_enum AS e
            WHERE e.enumtypid IN (y.oid, b.oid, b.typbasetype, b.typelem))
    FROM pg_type AS y LEFT JOIN pg_type AS b ON b.oid = coalesce(nullif(y.typbasetype, 0), nullif(y.typelem, 0))
    WHERE y.oid = ANY(%(types)s::oid[])
"""


class Watch:
    """Looks whether a publication and tables are what they were."""

    def __init__(self, publication: str, tables: Mapping[str, UpstreamTable]) -> None:
        self._publication, self._tables = publication, dict(tables)
        self.seen: dict[str, list[Any]] = {}  # what is to be remembered: definitions as they have to be, and files
        self.since = 0  # all transactions before this one had ended at the last look
        self._parted = False  # whether a table is a partition
        self.left_out: list[int] = []  # partitions beside those that are taken, which the source was made without

    def begin(self, seen: Mapping[str, Any], since: int, left_out: Sequence[int]) -> None:
        """Compare with what was seen before, by a process that may be gone."""
        if isinstance(seen[""], list) and seen[""][0] == _FORM:
            self.seen, self.since = {name: list(found) for name, found in seen.items()}, since
            self.left_out = list(left_out)

    def look(self, db: psycopg.Connection[Any], besides: Collection[str] = ()) -> dict[str, str]:
        """The tables that cannot be followed, and why; `SourceLost` if the publication is another.

        `besides` are those that are known not to be followed.
        """
        with failures("PostgreSQL failed"):
            ended = int(value(db, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8"))
            now = self._look(db)
        if not self.seen:
            found = {name: self.differs(db, name) for name in self._tables if name not in besides}
            self.seen, self.since = now, ended
            self.left_out = [oid for oid, _ in self._beside(db)]
            return {name: reason for name, reason in found.items() if reason is not None}
        if now[""] != self.seen[""]:
            gone = now[""][1] == _GONE
            raise SourceLost(
                f'publication "{self._publication}" {"was dropped" if gone else "was altered or made anew"} upstream',
                detail="changes may not have been sent since",
                hint="drop the source and create it again",
            )
        changed = {}
        for name in self._tables:
            if name not in besides:
                reason = self._difference(db, name, now[name])
                if reason is None:
                    self.seen[name] = now[name]
                else:
                    changed[name] = reason
        self.since = ended
        return changed

    def new_partitions(self, db: psycopg.Connection[Any]) -> list[str]:
        """Partitions that came beside those that are taken, and are not here."""
        return [name for oid, name in self._beside(db) if oid not in self.left_out]

    def _beside(self, db: psycopg.Connection[Any]) -> list[tuple[int, str]]:
        if not self._parted:
            return []
        given = {"name": self._publication, "oids": [each.oid for each in self._tables.values()]}
        with failures("PostgreSQL failed"):
            return [(int(oid), str(name)) for oid, name in db.execute(_PARTITIONS, given).fetchall()]

    def _difference(self, db: psycopg.Connection[Any], name: str, now: list[Any]) -> str | None:
        (definition, file, labels), before = now, self.seen[name]
        if definition != before[0]:
            other = "its replica identity, its key, an expression or how it is published has changed upstream"
            return self.differs(db, name) or other
        for oid, (_, label) in before[2].items():
            if labels.get(oid) != before[2][oid]:
                return f'value "{label}" of an enum was renamed upstream'
        if was_rewritten(db, self._tables[name], File(*before[1]), File(*file), self.since):
            return "it was written anew upstream by ALTER TABLE, so its rows may be others"
        return None

    def _look(self, db: psycopg.Connection[Any]) -> dict[str, list[Any]]:
        row = db.execute(
            "SELECT oid, concat_ws('|', oid, xmin, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot),"
            " puballtables FROM pg_publication WHERE pubname = %s",
            [self._publication],
        ).fetchone()
        if row is None:
            return {"": [_FORM, _GONE]}
        modern = db.info.server_version >= 150_000
        ways = _NO_WAYS if row[2] else _WAYS.format(by_schema=_BY_SCHEMA if modern else "")
        query = _WATCHED.format(
            where="p.qual::text" if modern else "NULL",
            listed="p.attrs IS NULL OR a.attnum = ANY(p.attrs::int2[])" if modern else "true",
            ways=ways,
        )
        tables = list(self._tables.values())
        given = {
            "oids": [each.oid for each in tables],
            "columns": ["\x01".join(column.name for column in each.columns) for each in tables],
            "publication": row[0],
            "name": self._publication,
        }
        found: dict[int, list[Any]] = {}
        for oid, definition, file, toast, written, named, parted in db.execute(query, given).fetchall():
            found[int(oid)] = [definition, [file, toast, written, named], {}]
            self._parted = self._parted or bool(parted)
        self._look_at_types(db, found)
        gone = [_GONE, [0, 0, "", False], {}]
        whole = {name: found.get(each.oid, gone) for name, each in self._tables.items()}
        return {"": [_FORM, str(row[1])], **whole}

    def _look_at_types(self, db: psycopg.Connection[Any], found: Mapping[int, list[Any]]) -> None:
        """Add what the types of columns are, where users made them."""
        custom = {
            each.oid: sorted({column.type_oid for column in each.columns if column.type_oid >= FIRST_CUSTOM_OID})
            for each in self._tables.values()
        }
        types = sorted(set().union(*custom.values()))
        if not types:
            return
        told = {
            int(oid): (fields, labels or {}) for oid, fields, labels in db.execute(_TYPES, {"types": types}).fetchall()
        }
        for table, oids in custom.items():
            if table in found and oids:
                known = [told[oid] for oid in oids if oid in told]
                fields = ";".join(fields for fields, _ in known).encode()
                found[table][0] += f":{hashlib.sha256(fields).hexdigest()[:16]}"
                found[table][2] = {oid: label for _, labels in known for oid, label in labels.items()}

    def differs(self, db: psycopg.Connection[Any], name: str) -> str | None:
        """How a table differs from what it was when the source was made; None if it does not."""
        table = self._tables[name]
        with failures("PostgreSQL failed"):
            if value(db, "SELECT 1 FROM pg_class WHERE oid = %s", table.oid) is None:
                return "it was dropped upstream"
            if not value(db, _IS_PUBLISHED, table.oid, self._publication):
                return f'it is no longer in publication "{self._publication}"'
            now = {each["number"]: each for each in columns_of(db, [table.oid])[table.oid]}
        for each in table.columns:
            found = now.get(each.number)
            if found is None:
                return f'column "{each.name}" was dropped upstream'
            if found["name"] != each.name:
                return f'column "{each.name}" was renamed to "{found["name"]}" upstream'
            if (found["type_oid"], found["modifier"]) != (each.type_oid, each.modifier):
                return f'column "{each.name}" has another type upstream: {found["shown"]}'
        return None


_PARTITIONS = """
    SELECT c.oid::int8, n.nspname || '.' || c.relname
    FROM pg_get_publication_tables(%(name)s::text) AS p JOIN pg_class AS c ON c.oid = p.relid AND c.relispartition
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid <> ALL(%(oids)s::oid[]) AND pg_partition_root(c.oid) IN (
        SELECT pg_partition_root(t.oid) FROM pg_class AS t WHERE t.oid = ANY(%(oids)s::oid[]) AND t.relispartition)
    ORDER BY 2
"""
_IS_PUBLISHED = "SELECT bool_or(p.relid = %s) FROM pg_get_publication_tables(%s::text) AS p"
