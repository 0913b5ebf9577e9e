"""What the SQL drivers share: names, values in PostgreSQL's text forms, buffered stores, and the table of fences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from everview.compute.functions.input import from_text
from everview.compute.functions.output import to_text
from everview.compute.ir.infinite import as_numbers, to_python
from everview.compute.ir.types import Interval, Kind, SqlType, arrow_type
from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import DELETE, EXISTS, Binding
from everview.flow.drivers.contract import Constraint, FieldConstraint
from everview.flow.errors import Drifted, DuplicateKey, InvalidMaterialization, Retracted
from everview.flow.fencing import Row
from everview.flow.keyrange import KeyRange
from everview.quoting import identifier

CHECKPOINTS = "everview_checkpoints"
BUFFER_BYTES_MAX = 32 << 20  # documents kept back until the commit, so that a stalled one holds no locks

Rows = list[tuple[Any, ...]]


def quoted(name: str) -> str:
    """A name as an SQL identifier; dots separate nothing."""
    if not name or "\0" in name:
        raise InvalidMaterialization(f"not a name: {name!r}")
    return identifier(name)


def table_name(resource: Any) -> str:
    """A table by its name, or by schema and name with a dot between."""
    parts = str(resource).split(".")
    if len(parts) > 2:
        raise InvalidMaterialization(f"not a table: {resource}", hint="write table or schema.table")
    return ".".join(map(quoted, parts))


def columns_of(names: Iterable[str]) -> str:
    """Names as a list of columns."""
    return ", ".join(map(quoted, names))


def text_values(column: pa.ChunkedArray, sql_type: SqlType) -> list[str | None]:
    """Values in PostgreSQL's text form."""
    return [None if value is None else to_text(_value(value, sql_type), sql_type) for value in to_python(column)]


def _value(value: Any, sql_type: SqlType) -> Any:
    return Interval(value["months"], value["days"], value["micros"]) if sql_type.kind is Kind.INTERVAL else value


def from_texts(values: Iterable[Any], sql_type: SqlType) -> list[Any]:
    """Values from their text form."""
    read = [None if value is None else from_text(str(value), sql_type) for value in values]
    if sql_type.kind is Kind.INTERVAL:
        return [None if value is None else value._asdict() for value in read]
    return list(as_numbers(read, arrow_type(sql_type)))


def key_types_checked(binding: Binding, usable: Callable[[SqlType], bool]) -> dict[str, FieldConstraint]:
    """Constraints of a table: fields of the key are required and must be of a type that can be one."""
    result = {}
    for each in binding.fields:
        constraint = FieldConstraint(Constraint.RECOMMENDED)
        if each.name in binding.key:
            constraint = FieldConstraint(Constraint.REQUIRED, "it is part of the key")
            if not usable(each.type):
                constraint = FieldConstraint(Constraint.INCOMPATIBLE, f"a key cannot be of type {each.type}")
        result[each.name] = constraint
    return result


def parted(binding: Binding, documents: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Documents to insert, to update and to delete."""
    flags = documents.select([EXISTS, DELETE])
    rows = documents.drop_columns([EXISTS, DELETE])
    exists, delete = (flags.column(name).to_numpy() for name in (EXISTS, DELETE))
    if binding.delta_updates and delete.any():
        raise Retracted(
            f"a key of collection {binding.collection} was deleted, and a table of delta updates can only grow",
            hint="leave DELTA UPDATES out, so that the table holds the view itself",
        )
    if not delete.any() and (exists.all() or not exists.any()):
        nothing = rows.slice(0, 0)
        return (nothing, rows, nothing) if len(exists) and exists[0] else (rows, nothing, nothing)
    kinds = (~exists & ~delete, exists & ~delete, exists & delete)
    inserted, updated, deleted = (rows.filter(pa.array(kind)) for kind in kinds)
    return inserted, updated, deleted


class Buffer:
    """Documents of the transaction, kept until there are too many or it commits."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, pa.Table]] = []
        self._bytes = 0

    def add(self, binding: int, documents: pa.Table) -> bool:
        """Keep some more; true if it is time to write."""
        self._kept.append((binding, documents))
        self._bytes += documents.nbytes
        return self._bytes > BUFFER_BYTES_MAX

    def take(self) -> list[tuple[int, pa.Table]]:
        """All that is kept, small pieces of a binding as one."""
        kept, self._kept, self._bytes = self._kept, [], 0
        joined: list[tuple[int, pa.Table]] = []
        for binding, documents in kept:
            if joined and joined[-1][0] == binding:
                joined[-1] = (binding, pa.concat_tables([joined[-1][1], documents]))
            else:
                joined.append((binding, documents))
        return joined


def in_key_order(binding: Binding, rows: pa.Table) -> pa.Table:
    """New rows in the order of their keys: a table's index takes them much faster so than in the order of hashes."""
    if not binding.key or binding.delta_updates:
        return rows
    return rows.sort_by([(name, "ascending") for name in binding.key])


def fence_row(begin: Any, end: Any, fence: Any, checkpoint: str) -> Row:
    """A row of the table of fences."""
    return Row(KeyRange(int(begin), int(end)), int(fence), Checkpoint.decode(checkpoint))


def duplicate(binding: Binding, detail: str) -> DuplicateKey:
    """What a table's primary key says of a second row."""
    return DuplicateKey(
        f"more than one row of collection {binding.collection} under one key of the sink",
        detail=detail,
        hint="give the sink a KEY that is unique, or say with REDUCE how rows become one",
    )


def check_written(binding: Binding, done: str, wanted: int, found: int) -> None:
    """An error if rows to update or delete were not there: somebody else has removed them."""
    if found != wanted:
        raise Drifted(
            f"{wanted - found} of {wanted} rows of collection {binding.collection} to be {done} are not there",
            detail="others have changed what was delivered",
            hint="put the rows back, or deliver everything anew with ALTER SINK … BACKFILL",
        )


def check_empty(table: str, *, filled: bool) -> None:
    """An error if a table that is to hold one row for each key has rows that this materialization did not deliver."""
    if filled:
        raise InvalidMaterialization(
            f"table {table} exists and is not empty",
            detail="its rows may have the keys of rows to come",
            hint="empty it, or choose another table",
        )


def check_existing(
    table: str,
    wanted: Sequence[tuple[str, str]],
    found: Sequence[tuple[str, str]],
    key: Sequence[str],
    found_key: Sequence[str],
) -> None:
    """An error unless an existing table has the columns, types and key that are wanted; says all that differs."""
    have, want = dict(found), dict(wanted)
    wrong = [f'column "{name}" is missing' for name in want if name not in have]
    wrong += [
        f'column "{name}" is {have[name]}, and must be {type_}'
        for name, type_ in want.items()
        if name in have and have[name].lower() != type_.lower()
    ]
    wrong += [f'column "{name}" is not in the sink' for name in have if name not in want]
    if list(key) != list(found_key):
        shown = ", ".join(found_key) or "none"
        wrong.append(f"its primary key is {shown}, and must be {', '.join(key) or 'none'}")
    if wrong:
        raise InvalidMaterialization(
            f"table {table} exists and cannot hold the sink", detail="; ".join(wrong), hint="choose another table"
        )
