"""One tick: a program run over the changes of its inputs and what it finds in its arrangements.

The driver looks up by hashes of keys, the engine computes, one statement a stage. Tables that are empty are left out
of the statement, and with them whatever needs them: inputs that did not change cost nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.delta.first_rows import needed_of, sorts_of, that_may_matter
from everview.compute.delta.program import (
    BEFORE,
    BUCKET_BITS,
    TICK_END,
    Arrangement,
    First,
    Lookup,
    Source,
    TickProgram,
    reads_all,
)
from everview.compute.delta.prune import prune
from everview.compute.engine.contract import Engine
from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, Steps, types
from everview.compute.ir.scalar import Column
from everview.compute.ir.types import INT8, SqlType, arrow_type
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow
from everview.timely.consolidate import DIFF, TIME, consolidate
from everview.timely.hashing import I64, hash_rows
from everview.timely.ordering import Sort

KEYS_FROM_ALL_MAX = 5_000  # of rows that were all looked up: from more, no further keys are taken
# Where the first rows of keys would do: with more than this, and more than so many a key, only these are looked up.
WHOLE_ROWS_MAX, WHOLE_ROWS_A_KEY_MAX = 10_000, 50
NETTED_ROWS_MIN = 1_000
_PRUNED_MAX = 256  # sets of empty tables for which it is remembered what is left to compute


class TooMuch(Exception):
    """Too much would be looked up; a program that goes stepwise computes first what changed, and then needs less."""


class TickState(Protocol):
    """The state of a program as it was before the tick; rows as columns c0, ... and _diff."""

    def look_up(self, arrangement: Arrangement, hashes: I64 | None) -> pa.Table:
        """The rows of an arrangement, of these hashes, or all of them."""
        ...

    def look_up_first(
        self, arrangement: Arrangement, hashes: I64 | None, sorts: Sequence[Sort], counts: I64
    ) -> pa.Table:
        """The first rows of each of the ascending hashes, `counts` at least, or of all rows; more rows do no harm.

        Of rows that are equal in the order either all are there or none.
        """
        ...

    def rows_max(self, arrangement: Arrangement, hashes: I64) -> int:
        """No more rows of these hashes than this would be found."""
        ...

    def due(self, arrangement: Arrangement, upper: int) -> pa.Table:
        """The pending updates at times before `upper`: the rows of the arrangement without their buckets."""
        ...


@dataclass
class TickResult:
    """The changes that a tick makes."""

    output: pa.Table  # c0 is the time
    states: dict[str, pa.Table]  # by the names of arrangements, without times
    failing: dict[str, pa.Table] = field(default_factory=dict)  # by the names of steps
    statements: int = 0
    looked_up: int = 0


class Ticker:
    """Runs one program, and keeps what remains of it for each set of empty tables.

    If it is not `patient` it raises TooMuch, before anything was computed, where look-ups become too many.
    """

    def __init__(self, program: TickProgram, *, separated: bool = False, patient: bool = True) -> None:
        self.program = program
        self._separated = separated
        keyed = {each.name for each in program.arrangements if each.key}
        lookups = [each for stage in program.stages for each in stage.lookups]
        self._followed = {source.table for each in lookups for source in each.sources}
        self._all = {each.name for each in lookups if reads_all(each, keyed)} & self._followed
        self._patient = patient
        self._relations = dict(program.steps)
        self._arrangements = {each.name: each for each in program.arrangements}
        self._pending = any(each.pending for each in program.arrangements)
        self._pruned: OrderedDict[tuple[int, frozenset[str]], tuple[Steps, frozenset[str]]] = OrderedDict()
        self._always_empty: dict[tuple[int, frozenset[str]], frozenset[str]] = {}

    def run(self, engine: Engine, deltas: Mapping[str, pa.Table], state: TickState, upper: int) -> TickResult:
        """The changes before `upper` that follow from the changes of the inputs and from pending updates."""
        tables: dict[str, pa.Table] = dict(deltas)
        if self._pending:
            tables[TICK_END] = rows_to_arrow({(upper,): 1}, (INT8,))
        found: dict[str, pa.Table] = {}
        statements = 0
        for number, stage in enumerate(self.program.stages):
            for lookup in stage.lookups:
                found[lookup.name] = self._find(lookup, {**tables, **found}, state, upper)
                if not self._patient and lookup.name in self._all and found[lookup.name].num_rows > KEYS_FROM_ALL_MAX:
                    raise TooMuch
            tables |= self._readings(number, found)
            empty = frozenset(name for name, table in tables.items() if table.num_rows == 0)
            if not self._steps(number, empty)[1].issuperset(stage.outputs):  # there is something to compute
                empty = self._lasting(number, empty, deltas)
            steps, nothing = self._steps(number, empty)
            tables |= {name: empty_table(types(self._relations[name])) for name in nothing}
            outputs = [name for name in stage.outputs if name not in nothing]
            if outputs:
                read = {each.id for _, step in steps for each in ir.walk(step) if isinstance(each, ir.Get)}
                inputs = {name: table for name, table in tables.items() if name in read}
                results = engine.run_steps(steps, outputs, inputs, separated=self._separated)
                # What cancels out would be looked up in vain.
                tables |= {name: _netted(each) if name in self._followed else each for name, each in results.items()}
                statements += 1
        return self._result(tables, statements, sum(table.num_rows for table in found.values()), upper)

    def check(self, engine: Engine) -> None:
        """Raise NotSupported if the engine cannot run the program."""
        for number, stage in enumerate(self.program.stages):
            steps, nothing = self._steps(number, frozenset())
            engine.check(steps, [name for name in stage.outputs if name not in nothing], separated=self._separated)

    def _find(self, lookup: Lookup, tables: Mapping[str, pa.Table], state: TickState, upper: int) -> pa.Table:
        arrangement = self._arrangements[lookup.arrangement]
        if lookup.due:
            return state.due(arrangement, upper)
        sources = [each for each in lookup.sources if tables[each.table].num_rows]
        if lookup.first is not None:
            if not sources:
                return empty_table((INT8, *arrangement.schema))
            return self._first(lookup.first, arrangement, tables[sources[0].table], state)
        if not sources:
            return empty_table(arrangement.schema)
        if not arrangement.key:
            return state.look_up(arrangement, None)
        hashes = np.unique(np.concatenate([self._hashes(each, tables[each.table]) for each in sources]))
        if lookup.yields and not self._patient:
            few = max(WHOLE_ROWS_MAX, WHOLE_ROWS_A_KEY_MAX * len(hashes))
            if state.rows_max(arrangement, hashes) > few:
                raise TooMuch
        return state.look_up(arrangement, hashes)

    def _first(self, first: First, arrangement: Arrangement, changes: pa.Table, state: TickState) -> pa.Table:
        """The rows and changes that may be among the first."""
        of_changes = hash_rows([changes.column(f"c{index + 1}") for index in arrangement.key], changes.num_rows)
        hashes, sorts = np.unique(of_changes), sorts_of(first.order)
        counts = needed_of(hashes, of_changes, changes, first.count)
        rows = state.look_up_first(arrangement, hashes if arrangement.key else None, sorts, counts)
        return that_may_matter(rows, changes, arrangement.key, first.order, first.count, unchanged=first.unchanged)

    def _hashes(self, source: Source, table: pa.Table) -> I64:
        if all(isinstance(each, Column) for each in source.key):
            columns = [table.column(f"c{each.index}") for each in source.key if isinstance(each, Column)]
            return hash_rows(columns, table.num_rows)
        schema = self._schema_of(source.table)
        get = ir.Get(source.table, schema)
        width = len(schema)
        mapped = ir.Project(ir.Map(get, source.key), tuple(range(width, width + len(source.key))))
        # A row that is there once for every update: those of a key that cancel out are changes of it all the same. One
        # whose key can't be evaluated has none.
        present = table.set_column(table.num_columns - 1, DIFF, pa.array(np.ones(table.num_rows, dtype=np.int64)))
        keys = evaluate(mapped, {source.table: rows_from_arrow(present, schema)}).rows
        keyed = rows_to_arrow(keys, types(mapped))
        return hash_rows([keyed.column(index) for index in range(len(source.key))], keyed.num_rows)

    def _schema_of(self, table: str) -> tuple[SqlType, ...]:
        if table in self._relations:
            return types(self._relations[table])
        for stage in self.program.stages:
            for lookup in stage.lookups:
                if lookup.name == table:
                    schema = self._arrangements[lookup.arrangement].schema
                    if lookup.first is not None:
                        return (INT8, *schema)
                    return schema[1:] if lookup.due else schema
        gets = (each for _, step in self.program.steps for each in ir.walk(step) if isinstance(each, ir.Get))
        return next(each.schema for each in gets if each.id == table)

    def _readings(self, number: int, found: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables that the look-ups of a stage fill; look-ups of several stages may fill one table."""
        pieces: dict[str, list[pa.Table]] = {}
        for lookup in (each for stage in self.program.stages[: number + 1] for each in stage.lookups):
            rows = found[lookup.name]
            pieces.setdefault(lookup.reading, []).append(rows if lookup.tag is None else _tagged(rows, lookup.tag))
        return {name: pa.concat_tables(each).combine_chunks() for name, each in pieces.items()}

    def _lasting(self, number: int, empty: frozenset[str], deltas: Mapping[str, pa.Table]) -> frozenset[str]:
        """The empty tables of a stage to leave out: inputs without changes, and tables that were never anything else.

        A statement for every set of tables that happen to be empty would be one that is new again and again, and to
        plan one costs more than to run one that finds some of its tables empty.
        """
        quiet = frozenset(name for name in empty if name in deltas)
        self._always_empty[number, quiet] = lasting = self._always_empty.get((number, quiet), empty) & empty
        if len(self._always_empty) > _PRUNED_MAX:
            self._always_empty = {(number, quiet): lasting}
        return lasting

    def _steps(self, number: int, empty: frozenset[str]) -> tuple[Steps, frozenset[str]]:
        """The steps that remain in a stage, and the steps that are empty."""
        known = self._pruned.pop((number, empty), None) or self._prune(number, empty)
        self._pruned[number, empty] = known
        if len(self._pruned) > _PRUNED_MAX:
            self._pruned.popitem(last=False)
        return known

    def _prune(self, number: int, empty: frozenset[str]) -> tuple[Steps, frozenset[str]]:
        stage = self.program.stages[number]
        given = {name for earlier in self.program.stages[:number] for name in earlier.outputs}
        kept, nothing = prune([(name, step) for name, step in self.program.steps if name not in given], empty)
        needed = set(stage.outputs) - nothing
        steps: list[tuple[str, Relation]] = []
        for name, step in reversed(kept):
            if name in needed:
                steps.append((name, step))
                needed |= {each.id for each in ir.walk(step) if isinstance(each, ir.Get)}
        return steps[::-1], frozenset(name for name in stage.outputs if name in nothing)

    def _result(self, tables: Mapping[str, pa.Table], statements: int, looked_up: int, upper: int) -> TickResult:
        program = self.program
        lookups = [lookup for stage in program.stages for lookup in stage.lookups]
        come = {lookup.arrangement: tables[lookup.reading] for lookup in lookups if lookup.due}
        output = tables[program.output]
        return TickResult(
            updates_of_moments(output) if program.moments else output,
            {
                each.name: put_off(tables[each.source], come[each.name], upper)
                if each.pending
                else _state_change(each, tables[each.source])
                for each in program.kept
            },
            {each.step: tables[each.step] for each in program.failing},
            statements,
            looked_up,
        )


def empty_table(schema: tuple[SqlType, ...]) -> pa.Table:
    fields = [pa.field(f"c{index}", arrow_type(each)) for index, each in enumerate(schema)]
    return pa.schema([*fields, pa.field(DIFF, pa.int64())]).empty_table()


def _tagged(rows: pa.Table, tag: int) -> pa.Table:
    tags = pa.array(np.full(rows.num_rows, tag, dtype=np.int64))
    columns = [tags, *rows.columns]
    return pa.table(columns, names=[*(f"c{index}" for index in range(len(columns) - 1)), DIFF])


def _netted(table: pa.Table) -> pa.Table:
    """The updates, summed if there are many of them."""
    if table.num_rows < NETTED_ROWS_MIN or table.num_columns == 1:
        return table
    at_once = table.append_column(TIME, pa.array(np.zeros(table.num_rows, dtype=np.int64)))
    return consolidate(at_once).select(table.column_names)


def updates_of_moments(moments: pa.Table) -> pa.Table:
    """A relation of moments as updates: see `delta.program`."""
    names = [*(f"c{index}" for index in range(moments.num_columns - 2)), DIFF]
    gained = moments.filter(pc.greater_equal(moments.column(0), 0))
    lost = moments.filter(pc.is_valid(moments.column(1)))
    data = range(2, moments.num_columns - 1)
    plus = pa.table([gained.column(0), *(gained.column(i) for i in data), gained.column(DIFF)], names=names)
    negated = pc.negate(lost.column(DIFF))
    minus = pa.table([lost.column(1), *(lost.column(i) for i in data), negated], names=names)
    return pa.concat_tables([plus, minus])


def put_off(updates: pa.Table, come: pa.Table, upper: int) -> pa.Table:
    """The changes of pending updates: updates beyond the tick are added, updates that are due are removed."""
    later = updates.filter(pc.greater_equal(updates.column(0), upper))
    gone = come.set_column(come.num_columns - 1, DIFF, pc.negate(come.column(DIFF)))
    both = pa.concat_tables([later, gone.cast(later.schema)])
    buckets = pa.array(both.column(0).to_numpy() >> BUCKET_BITS, pa.int64())
    columns = [buckets, *both.columns]
    return pa.table(columns, names=[*(f"c{index}" for index in range(len(columns) - 1)), DIFF])


def _state_change(arrangement: Arrangement, step: pa.Table) -> pa.Table:
    """The changes of an arrangement, without times, for nobody reads the times in between."""
    names = [*(f"c{index}" for index in range(len(arrangement.schema))), DIFF]
    if not arrangement.totals:
        return step.drop_columns(["c0"]).rename_columns(names)
    before, last = pc.equal(step.column(0), BEFORE), pc.is_null(step.column(1))
    counted = pc.not_equal(step.column(2 + len(arrangement.key)), 0)
    old = step.filter(pc.and_(before, pc.invert(last)))
    new = step.filter(pc.and_(pc.and_(last, pc.invert(before)), counted))
    minus = old.set_column(old.num_columns - 1, DIFF, pc.negate(old.column(DIFF)))
    return pa.concat_tables([new, minus]).drop_columns(["c0", "c1"]).rename_columns(names)
