"""Shared arrangements as values: what one holds, and how a view reads from it the rows that it would keep itself.

Much of the state of views is rows of one collection, found by some of its columns. Whoever keeps it, it is the same: so
it is kept once, and each view takes the rows that pass its filter, in its columns, from whatever it finds there. The
identity of a shared arrangement is the collection, the columns that are hashed, in their order, and the columns kept.
It has no filter. A filter that most rows pass is left to the readers; where few rows pass one, a view keeps those few
itself, for it would look at many more.

What readers do here is exact, and the same as what an engine would have computed: columns are taken as they are, and of
functions only those are called that cannot fail and have no last digit that differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from everview.compute.delta.program import Arrangement, TickProgram
from everview.compute.functions import lookup
from everview.compute.functions.lookup import can_fail
from everview.compute.functions.mathematics import ROUGH
from everview.compute.interpreter.scalars import compile_scalar
from everview.compute.ir.relation import Filter, Get, Map, Project, Relation
from everview.compute.ir.scalar import Call, Column, Literal, Or, Scalar, columns_of, remap, walk
from everview.compute.ir.types import Kind, SqlType
from everview.compute.optimize.row_by_row import fused
from everview.compute.rows.arrow import values_from_arrow, values_to_arrow
from everview.storage.contract import GlobalId
from everview.timely.consolidate import DIFF
from everview.timely.ordering import Sort

KEPT_SHARE_MIN = 0.5  # of the rows that are tried: where fewer pass a filter, they are kept by themselves
TRIED_ROWS, TRIED_ROWS_MIN = 2_000, 50


@dataclass(frozen=True, slots=True)
class Arranged:
    """Some columns of a collection, found by the hash of some of these."""

    collection: GlobalId
    key: tuple[int, ...]  # columns of the collection, in the order in which they are hashed
    columns: tuple[int, ...]  # of the collection, ascending; the key is among them
    schema: tuple[SqlType, ...]  # of the collection, as far as the columns reach

    @property
    def plan(self) -> Relation:
        """What it holds."""
        return Project(Get(self.collection, self.schema), self.columns)

    @property
    def key_names(self) -> list[str]:
        """The columns of its own that are hashed."""
        return [f"c{self.columns.index(each)}" for each in self.key]

    def encoded(self, history: str | None) -> bytes:
        """The note of it, with the token of the capability that keeps its past as long as the collection's."""
        types = [_encoded_type(each) for each in self.schema]
        return json.dumps([self.collection, self.key, self.columns, types, history]).encode()

    @staticmethod
    def decoded(note: bytes) -> tuple[Arranged, str | None]:
        collection, key, columns, types, history = json.loads(note)
        return Arranged(collection, tuple(key), tuple(columns), tuple(map(_decoded_type, types))), history


@dataclass(frozen=True, slots=True)
class Wanted:
    """An arrangement of a program as rows of one collection that pass predicates, in these columns and literals."""

    collection: GlobalId
    schema: tuple[SqlType, ...]
    key: tuple[int, ...]
    outputs: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...]

    @property
    def columns(self) -> set[int]:
        """The columns of the collection that it speaks of."""
        return set(self.key).union(*map(columns_of, self.outputs + self.predicates))

    @property
    def tried(self) -> set[int]:
        """The columns of the collection that its filter speaks of."""
        return set[int]().union(*map(columns_of, self.predicates))

    def arranged(self, more: set[int]) -> Arranged:
        """An arrangement from which it can be read, with more columns if they are asked for."""
        columns = tuple(sorted(self.columns | {each for each in more if each < len(self.schema)}))
        return Arranged(self.collection, self.key, columns, self.schema[: columns[-1] + 1])

    def reading(self, id: GlobalId, arranged: Arranged) -> Reading | None:
        """How to read it from a shared arrangement; None if that does not hold it."""
        if (arranged.collection, arranged.key) != (self.collection, self.key):
            return None
        places = {column: place for place, column in enumerate(arranged.columns)}
        if not self.columns <= places.keys() or any(arranged.schema[c] != self.schema[c] for c in self.columns):
            return None
        schema = tuple(arranged.schema[column] for column in arranged.columns)
        outputs, predicates = (
            tuple(remap(each, places.__getitem__) for each in part) for part in (self.outputs, self.predicates)
        )
        return Reading(id, schema, outputs, predicates)

    def looks_selective(self) -> bool:
        """Whether few rows seem to pass, as far as the form of the filter tells."""
        return any(_is_selective(each) for each in self.predicates)

    def share_of(self, rows: pa.Table) -> float | None:
        """How many of some rows, the columns that are tried, pass; None if they are too few to tell."""
        if rows.num_rows < TRIED_ROWS_MIN:
            return None
        tried = rows.slice(0, TRIED_ROWS)
        share: float = sum(_passing(tried, self.schema, self.predicates)) / tried.num_rows
        return share


@dataclass(frozen=True)
class Reading:
    """The rows of a shared arrangement that pass, in these columns and literals."""

    id: GlobalId
    schema: tuple[SqlType, ...]  # of the shared arrangement
    outputs: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...]

    @cached_property
    def names(self) -> list[str]:
        return [f"c{each}" for each in sorted(set().union(*map(columns_of, self.outputs + self.predicates)))]

    def rows(self, found: pa.Table) -> pa.Table:
        """What a view would have found, of what is found in the shared arrangement."""
        if self.predicates and found.num_rows:
            found = found.filter(pa.array(_passing(found, self.schema, self.predicates), pa.bool_()))
        columns = [
            found.column(f"c{each.index}") if isinstance(each, Column) else _repeated(each, found.num_rows)
            for each in self.outputs
        ]
        return pa.table([*columns, found.column(DIFF)], names=[*(f"c{n}" for n in range(len(columns))), DIFF])

    def sorts(self, sorts: Sequence[Sort]) -> list[Sort]:
        """An order of the view's columns as an order of the shared arrangement's."""
        places = {f"c{n}": f"c{each.index}" for n, each in enumerate(self.outputs) if isinstance(each, Column)}
        return [replace(each, column=places[each.column]) for each in sorts if each.column in places]

    def relation(self, rows: Relation) -> Relation:
        """The same, of all its rows, as a plan."""
        passing = Filter(rows, self.predicates) if self.predicates else rows
        width = len(self.schema)
        literals = tuple(each for each in self.outputs if isinstance(each, Literal))
        places = iter(range(width, width + len(literals)))
        columns = tuple(each.index if isinstance(each, Column) else next(places) for each in self.outputs)
        return Project(Map(passing, literals) if literals else passing, columns)


def wanted_of(program: TickProgram, careful: TickProgram) -> Iterator[tuple[Arrangement, Wanted]]:
    """The arrangements of a program that can be read from shared ones."""
    ordered = {each.arrangement for stage in program.stages for each in stage.lookups if each.first is not None}
    for each, other in zip(program.arrangements, careful.arrangements, strict=True):
        wanted = _wanted(each)
        # The first rows of a key are not the first of those that pass.
        if wanted is not None and each.contents == other.contents and not (each.name in ordered and wanted.predicates):
            yield each, wanted


def _wanted(arrangement: Arrangement) -> Wanted | None:
    if arrangement.totals or arrangement.pending or arrangement.contents is None or not arrangement.key:
        return None
    rows = fused(arrangement.contents)
    if not isinstance(rows.input, Get):
        return None
    key = [rows.outputs[place] for place in arrangement.key]
    columns = [each.index for each in key if isinstance(each, Column)]
    plain = all(isinstance(each, Column | Literal) for each in rows.outputs)
    if not plain or len(columns) < len(key) or any(can_fail(each) or _is_rough(each) for each in rows.predicates):
        return None
    return Wanted(rows.input.id, rows.input.schema, tuple(columns), rows.outputs, rows.predicates)


def _is_rough(scalar: Scalar) -> bool:
    return any(isinstance(each, Call) and lookup.function(each.function).name in ROUGH for each in walk(scalar))


def _is_selective(predicate: Scalar) -> bool:
    """Whether a predicate wants one of some values in a column."""
    if isinstance(predicate, Or):
        return all(map(_is_selective, predicate.args))
    if not isinstance(predicate, Call):
        return False
    name = lookup.function(predicate.function).name
    return name == "is null" or (name == "=" and any(isinstance(each, Literal) for each in predicate.args))


def _passing(table: pa.Table, schema: Sequence[SqlType], predicates: Sequence[Scalar]) -> list[bool]:
    """Which rows pass, whose columns have these types."""
    read = sorted(set().union(*map(columns_of, predicates)))
    places = {column: place for place, column in enumerate(read)}
    tests = [compile_scalar(remap(each, places.__getitem__)) for each in predicates]
    values = [values_from_arrow(table.column(f"c{each}"), schema[each]) for each in read]
    rows = zip(*values, strict=True) if values else iter([()] * table.num_rows)
    return [all(test(row) is True for test in tests) for row in rows]


def _repeated(scalar: Scalar, count: int) -> pa.Array:
    assert isinstance(scalar, Literal)
    return values_to_arrow([scalar.value] * count, scalar.type)


def _encoded_type(each: SqlType) -> list[object]:
    element = None if each.element is None else _encoded_type(each.element)
    return [each.kind.value, each.scale, each.precision, each.length, element, each.constrained]


def _decoded_type(said: list[object]) -> SqlType:
    kind, scale, precision, length, element, constrained = said
    inner = None if element is None else _decoded_type(element)  # type: ignore[arg-type]
    return SqlType(Kind(kind), scale, precision, length, inner, constrained)  # type: ignore[arg-type]
