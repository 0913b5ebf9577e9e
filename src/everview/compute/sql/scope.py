"""Names in force: the columns that a query's expressions can speak of, its own and the outer queries'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from everview.compute.ir.relation import Order
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import SqlType
from everview.compute.sql import hir
from everview.compute.sql.errors import AMBIGUOUS_COLUMN, UNDEFINED_COLUMN, UNDEFINED_TABLE, SqlError, did_you_mean


@dataclass(frozen=True, slots=True)
class Collection:
    """A stored collection as SQL sees it.

    If not all that is stored is seen, or not in this order, `stored` has the types of what is, and `places` says which
    of it the columns are. Where a column holds nothing, what it had may be in `earlier` places. `path` is the name in
    full, which a column may be written with.
    """

    id: str
    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    oid: int | None = None  # what `tableoid` says
    stored: tuple[SqlType, ...] = ()
    places: tuple[int, ...] = ()
    earlier: tuple[tuple[int, ...], ...] = ()
    path: tuple[str, ...] = ()


class Catalog(Protocol):
    """A catalog, as the binder needs it."""

    def find(self, path: Sequence[str]) -> Collection | None:
        """Find a collection by its name, qualified or not. None if it does not exist."""
        ...

    def names(self) -> Iterable[str]:
        """Names that exist, for hints."""
        ...


class BindQuery(Protocol):
    """A function that binds a subquery."""

    def __call__(self, tree: Any, scope: Scope, order: list[Order] | None = None) -> tuple[hir.Query, list[str]]:
        """The query and the names of its columns; with a list for its order, sort keys are columns behind these."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """One column in scope. A `hidden` one is found by its qualified name and left out of `*`, as after USING.

    What USING has merged `is_of` the table whose column it always is, if it is: then both are one and the same.
    `schema` is the table's schema, behind its database. An alias has none.
    """

    table: str | None
    name: str
    type: SqlType
    hidden: bool = False
    is_of: str | None = None
    schema: tuple[str, ...] = ()

    def stands_in(self, table: str | None, schema: tuple[str, ...]) -> bool:
        """Whether the column is found under the name of a table, which may be written with its schema."""
        return self.table == table and (not schema or self.schema[-len(schema) :] == schema)


@dataclass(frozen=True, slots=True)
class Cte:
    """A WITH query: where its rows are, what they are called, and how many queries are around where that was said."""

    query: hir.Query
    names: tuple[str, ...]
    depth: int = 0


@dataclass(frozen=True)
class Scope:
    """The columns of the rows at hand, and the scope of the query around."""

    columns: tuple[Named, ...] = ()
    around: Scope | None = None
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    calls: Any = None  # where the aggregates of this query are listed, for those that stand in a query inside
    clause: str = "FROM clause of their own query level"  # in which the query inside stands

    def inner(self, columns: tuple[Named, ...] = ()) -> Scope:
        """The scope of a query inside this one."""
        return Scope(columns, self, self.ctes)

    def with_columns(self, columns: tuple[Named, ...]) -> Scope:
        """The same scope with other rows at hand."""
        return Scope(columns, self.around, self.ctes)

    @property
    def depth(self) -> int:
        """How many queries are around this one."""
        return 0 if self.around is None else self.around.depth + 1

    def find(self, table: str | None, name: str, position: int | None, schema: tuple[str, ...] = ()) -> hir.HScalar:
        """The column of that name, here or in the nearest query around that has it."""
        level, scope = 0, self
        while True:
            index = scope._index(table, name, position, schema)
            if index is not None:
                index = scope.original(index)
                found = scope.columns[index]
                return Column(index, found.type) if level == 0 else hir.Outer(level, index, found.type)
            # A table hides those of the same name around, with all their columns.
            hides = table is not None and any(each.stands_in(table, schema) for each in scope.columns)
            if scope.around is None or hides:
                raise self._unknown(table, name, position, schema)
            level, scope = level + 1, scope.around

    def original(self, index: int) -> int:
        """The column that this one is, if it is another one."""
        column = self.columns[index]
        if column.is_of is None:
            return index
        own = [
            place for place, each in enumerate(self.columns) if (each.table, each.name) == (column.is_of, column.name)
        ]
        return own[0] if len(own) == 1 else index

    def has(self, table: str | None, name: str) -> bool:
        return self._index(table, name, None) is not None

    def _index(self, table: str | None, name: str, position: int | None, schema: tuple[str, ...] = ()) -> int | None:
        places = [
            index
            for index, column in enumerate(self.columns)
            if column.name == name and (not column.hidden if table is None else column.stands_in(table, schema))
        ]
        if len(places) > 1:
            raise SqlError(AMBIGUOUS_COLUMN, f'column reference "{name}" is ambiguous', position=position)
        return places[0] if places else None

    def tables(self) -> set[str]:
        """The tables in scope, here and around."""
        own = {column.table for column in self.columns if column.table is not None}
        return own | (self.around.tables() if self.around is not None else set())

    def no_table(self, table: str, position: int | None, schema: tuple[str, ...] = ()) -> SqlError | None:
        """The error for a table that no FROM has. None if one has it, here or around."""
        tables = self.tables()
        if table not in tables:
            message = f'missing FROM-clause entry for table "{table}"'
            return SqlError(UNDEFINED_TABLE, message, hint=did_you_mean(table, tables), position=position)
        found: set[tuple[str, ...]] = set()
        scope: Scope | None = self
        while scope is not None:
            if any(each.stands_in(table, schema) for each in scope.columns):
                return None
            found |= {each.schema for each in scope.columns if each.table == table}
            scope = scope.around
        message = f'invalid reference to FROM-clause entry for table "{table}"'
        shown, here = ".".join((*schema, table)), ", ".join(".".join((*each, table)) for each in sorted(found) if each)
        detail = f'the query reads {here}, and not "{shown}"' if here else f'"{table}" is an alias, which has no schema'
        hint = f'write "{table}" without a schema'
        return SqlError(UNDEFINED_TABLE, message, detail=detail, hint=hint, position=position)

    def _unknown(self, table: str | None, name: str, position: int | None, schema: tuple[str, ...]) -> SqlError:
        missing = None if table is None else self.no_table(table, position, schema)
        if missing is not None:
            return missing
        scope: Scope | None = self
        known: list[str] = []
        while scope is not None:
            known += [column.name for column in scope.columns if table in (None, column.table)]
            scope = scope.around
        shown = f"{table}.{name}" if table is not None else f'"{name}"'
        hint = did_you_mean(name, known)
        return SqlError(UNDEFINED_COLUMN, f"column {shown} does not exist", hint=hint, position=position)
