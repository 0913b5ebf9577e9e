"""Several outputs of one statement, each row of a step read once for all of them.

Spark computes a common table expression anew wherever it is mentioned. An output that is but a pass over the rows of
another step, such as the changes of a view that follow from the new totals of its groups, would so have the whole
step computed twice. Therefore an output is taken apart into branches, passes over the rows of a step or of an input
(`optimize.branches`). All branches over the same rows are one SELECT, with a struct for each, which is NULL where the
branch has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.engine.spark.scalar import columns
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.relation import Relation, types
from everview.compute.ir.scalar import Scalar
from everview.compute.ir.types import SqlType, arrow_type
from everview.compute.optimize.branches import Branch, branches_of
from everview.timely.consolidate import DIFF


@dataclass(frozen=True, slots=True)
class Layout:
    """Where in the result of a statement each output is: the numbers of its structs, and which of them count back."""

    branches: tuple[Branch, ...]
    places: Mapping[str, tuple[int, ...]]
    schemas: Mapping[str, tuple[SqlType, ...]]

    def bases(self) -> list[str]:
        """The steps and inputs whose rows are read."""
        return list(dict.fromkeys(branch.base for branch in self.branches))

    def select(self, sources: Mapping[str, str], scalar: Callable[[Scalar], str]) -> str:
        """The statement, over what each base is called in SQL."""
        if len(self.branches) == 1:
            return self._plain(self.branches[0], sources, scalar)
        return "\nUNION ALL\n".join(self._over(base, sources[base], scalar) for base in self.bases())

    def _plain(self, branch: Branch, sources: Mapping[str, str], scalar: Callable[[Scalar], str]) -> str:
        """Without structs, for there is nothing to tell apart."""
        names = columns(len(branch.outputs))
        items = [f"{scalar(each)} AS {name}" for name, each in zip(names, branch.outputs, strict=True)]
        items.append(f"-{DIFF} AS {DIFF}" if branch.negated else DIFF)
        where = " WHERE " + " AND ".join(map(scalar, branch.predicates)) if branch.predicates else ""
        return f"SELECT {', '.join(items)} FROM {sources[branch.base]} AS s{where}"

    def _over(self, base: str, source: str, scalar: Callable[[Scalar], str]) -> str:
        mine = [place for place, branch in enumerate(self.branches) if branch.base == base]
        conditions = {place: " AND ".join(map(scalar, self.branches[place].predicates)) for place in mine}
        items = []
        for place, branch in enumerate(self.branches):
            if branch.base != base:
                items.append(f"cast(NULL as {_struct_type(branch)}) AS o{place}")
                continue
            names = columns(len(branch.outputs))
            struct = ", ".join(f"'{name}', {scalar(each)}" for name, each in zip(names, branch.outputs, strict=True))
            row = f"named_struct({struct})"
            if len(mine) > 1 and conditions[place]:
                # The cast says that fields may be NULL: where the struct is, Arrow's are.
                row = f"cast(CASE WHEN {conditions[place]} THEN {row} END as {_struct_type(branch)})"
            items.append(f"{row} AS o{place}")
        where = f" WHERE {' OR '.join(f'({each})' for each in conditions.values())}" if all(conditions.values()) else ""
        # With a name of its own: `FROM t WHERE (c0)` would call the table WHERE, and its column c0.
        return f"SELECT {', '.join([*items, DIFF])} FROM {source} AS s{where}"

    def split(self, table: pa.Table) -> dict[str, pa.Table]:
        """The outputs out of the result."""
        if len(self.branches) == 1:
            return {name: with_types(table, self.schemas[name]) for name in self.places}
        return {name: self._output(table, name) for name in self.places}

    def _output(self, table: pa.Table, name: str) -> pa.Table:
        schema = self.schemas[name]
        tables = [self._rows(table, place, len(schema)) for place in self.places[name]]
        return pa.concat_tables(with_types(each, schema) for each in tables)

    def _rows(self, table: pa.Table, place: int, width: int) -> pa.Table:
        structs = table.column(f"o{place}")
        there = pc.is_valid(structs)
        chunks = structs.filter(there).chunks
        rows = pa.concat_arrays(chunks) if chunks else pa.array([], structs.type)
        diffs = table.column(DIFF).filter(there)
        diffs = pc.negate(diffs) if self.branches[place].negated else diffs
        return pa.table([*rows.flatten(), diffs], names=[*columns(width), DIFF])


def layout(steps: Sequence[tuple[str, Relation]], outputs: Sequence[str]) -> Layout:
    """How the outputs are computed together."""
    relations = dict(steps)
    branches: list[Branch] = []
    places: dict[str, tuple[int, ...]] = {}
    for name, own in branches_of(outputs, relations).items():
        places[name] = tuple(range(len(branches), len(branches) + len(own)))
        branches += own
    return Layout(tuple(branches), places, {name: types(relations[name]) for name in outputs})


def with_types(table: pa.Table, schema: tuple[SqlType, ...]) -> pa.Table:
    """The table in the Arrow types that the columns have everywhere."""
    fields = [pa.field(f"c{place}", arrow_type(each)) for place, each in enumerate(schema)]
    return table.cast(pa.schema([*fields, pa.field(DIFF, pa.int64())]))


def _struct_type(branch: Branch) -> str:
    names = columns(len(branch.outputs))
    fields = (f"{name}: {spark_type(each.type)}" for name, each in zip(names, branch.outputs, strict=True))
    return f"struct<{', '.join(fields)}>"
