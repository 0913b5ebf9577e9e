"""Rows on their way into tables: checked against the table's columns, then changes as storage takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.adapter.catalog.items import Item
from everview.adapter.errors import NOT_NULL_VIOLATION
from everview.compute.functions.output import to_text
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.compute.rows.collection import Row, Rows, add
from everview.compute.sql.errors import SqlError

FAILING_ROW_CHARACTERS_MAX = 200

Part: TypeAlias = Rows | pa.Table  # changes of a table: rows with multiplicities, or a table with `_diff`


def shard_schema(types: Sequence[SqlType]) -> pa.Schema:
    """The columns of a collection in storage; names belong to the catalog."""
    return pa.schema([(f"c{index}", arrow_type(each)) for index, each in enumerate(types)])


def changes(rows: Mapping[Row, int], types: Sequence[SqlType]) -> pa.Table:
    """Rows with their multiplicities as changes of a collection."""
    return rows_to_arrow(dict(rows), types)


def as_changes(parts: Iterable[Part], types: Sequence[SqlType]) -> pa.Table:
    """Several sets of changes as one; a row may be in it more than once."""
    parts = list(parts)
    rows = [part for part in parts if isinstance(part, dict)]
    tables = [part for part in parts if isinstance(part, pa.Table)]
    return pa.concat_tables([*([changes(merged(rows), types)] if rows or not tables else []), *tables])


def size_of(part: Part) -> int:
    """How many rows a set of changes has."""
    return part.num_rows if isinstance(part, pa.Table) else len(part)


def check_table(item: Item, table: pa.Table) -> None:
    """Raise unless each row of a table has a value where the item wants one."""
    for index, column in enumerate(item.columns):
        if not column.nullable and table.column(index).null_count:
            bad = pc.index(table.column(index).is_null(), True).as_py()
            check_rows(item, rows_from_arrow(table.slice(bad, 1), item.types))


def check_rows(item: Item, rows: Iterable[Row]) -> None:
    """Raise unless each row has a value where the table wants one."""
    required = [index for index, column in enumerate(item.columns) if not column.nullable]
    if not required:
        return
    for row in rows:
        for index in required:
            if row[index] is None:
                name = item.columns[index].name
                message = f'null value in column "{name}" of relation "{item.name}" violates not-null constraint'
                raise SqlError(NOT_NULL_VIOLATION, message, detail=f"failing row contains {_shown(item, row)}")


def _shown(item: Item, row: Row) -> str:
    values = ["null" if value is None else to_text(value, each) for value, each in zip(row, item.types, strict=True)]
    text = f"({', '.join(values)})"
    return text if len(text) <= FAILING_ROW_CHARACTERS_MAX else text[:FAILING_ROW_CHARACTERS_MAX] + "…"


def merged(parts: Iterable[Mapping[Row, int]]) -> Rows:
    """Several sets of changes as one."""
    total: Rows = {}
    for part in parts:
        for row, multiplicity in part.items():
            add(total, row, multiplicity)
    return total
