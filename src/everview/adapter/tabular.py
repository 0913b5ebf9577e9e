"""Large results as tables, never as Python values.

Rows of a stored collection, in no order, are read as they are taken: a result takes the memory of a piece, however
long it is. What was computed is held: its bytes count among those that all results share.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from everview.adapter.errors import as_sql_errors
from everview.compute.allowance import EVERYONE
from everview.compute.ir.relation import Get, Map, Project, Relation
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.rows.tables import expanded
from everview.storage.contract import GlobalId
from everview.storage.selection import Selection
from everview.timely.consolidate import DIFF, data_names

TABLE_ROWS_MIN = 500  # smaller collections are read quicker as rows


class Tables:
    """A result as tables whose columns are in the representation of their types. Close it when done."""

    def __init__(self, pieces: Iterator[pa.Table], release: Callable[[], None] = lambda: None, held_bytes: int = 0):
        self.pieces = pieces
        self._release = release
        if held_bytes:
            EVERYONE.take(held_bytes)
            weakref.finalize(self, EVERYONE.give_back, held_bytes)

    def close(self) -> None:
        """Take no more."""
        self.pieces = iter(())
        self._release()


@dataclass(frozen=True, slots=True)
class Picked:
    """Columns of a stored collection: which, and how many the plan knows."""

    id: GlobalId
    columns: tuple[int, ...]
    width: int


def picked_columns(plan: Relation) -> Picked | None:
    """The collection whose rows a plan leaves as they are, but for the choice of columns. None for other plans."""
    match plan:
        case Get(id, schema):
            return Picked(id, tuple(range(len(schema))), len(schema))
        case Project(input, columns):
            below = picked_columns(input)
            return below and Picked(below.id, tuple(below.columns[each] for each in columns), below.width)
        case Map(input, scalars):
            found = picked_columns(input)
            for each in scalars:
                if found is None or not isinstance(each, Column):
                    return None
                found = replace(found, columns=(*found.columns, found.columns[each.index]))
            return found
        case _:
            return None


def stored_tables(selection: Selection, picked: Picked, types: Sequence[SqlType], width: int) -> Tables:
    """The contents of a selection as a result, read as they are taken; the selection is closed with the result."""

    def pieces() -> Iterator[pa.Table]:
        with as_sql_errors():
            for chunk in selection.chunks(selection.time_range[1] - 1, selection.first_columns(picked.width)):
                yield from expanded(_chosen(chunk, picked, types[:width]))

    return Tables(pieces(), selection.close)


def _chosen(table: pa.Table, picked: Picked, types: Sequence[SqlType]) -> pa.Table:
    """The shown columns of a plan, in the representation of their types, and `_diff`."""
    names = data_names(table)
    columns = [table.column(names[at]) for at in picked.columns[: len(types)]]
    cast = [each.cast(arrow_type(to)) for each, to in zip(columns, types, strict=True)]
    return pa.table([*cast, table.column(DIFF)], names=[*(f"c{index}" for index in range(len(types))), DIFF])


def held_tables(columns: Sequence[pa.Array]) -> Tables:
    """Columns that were computed as a result."""
    table = pa.table(list(columns), names=[f"c{index}" for index in range(len(columns))])
    return Tables(iter([table]), held_bytes=table.nbytes)
