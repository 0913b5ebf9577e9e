"""Dataflows: `MaintainView`, a tick program kept running over stored collections.

A dataflow's output and its arrangements are shards. A tick takes the output from its upper l to a u that all inputs
have reached. It reads the inputs' changes in [l, u), looks up in the arrangements the rows of the keys that changed,
runs the program's steps on an engine, and commits, in one atomic step, the changes of the output and the arrangements
and how far it no longer needs the inputs' past. So whoever comes after a crash goes on from the last commit: nothing
is computed twice, nothing is forgotten, and nothing has to be read again from the beginning.

Reading capabilities on inputs stay at or before the output's `since`, and the output's upper never passes the inputs'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from everview.compute.delta.differentiate import differentiate
from everview.compute.delta.program import Arrangement, TickProgram, delta_of
from everview.compute.engine.contract import Engine
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Scalar, shift
from everview.compute.ir.types import INT8, SqlType, arrow_type
from everview.storage.contract import (
    Clone,
    Create,
    Downgrade,
    GlobalId,
    Put,
    ReadCapability,
    UpdateAndDowngrade,
    WriteCapability,
)
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME
from everview.timely.hashing import I64, hash_rows


@dataclass(frozen=True, slots=True)
class Held:
    """The tokens of the capabilities that a dataflow lives by; kept with its state."""

    inputs: Mapping[GlobalId, str]
    outputs: Mapping[GlobalId, tuple[str, str]]  # the output and the arrangements: reading, writing


def maintain_view(
    environment: Environment, id: GlobalId, plan: Relation, inputs: Sequence[ReadCapability], engine: Engine
) -> tuple[Dataflow, ReadCapability]:
    """Install the view `plan` as collection `id` over the inputs; gives the dataflow and a capability to read `id`.

    It starts at the latest of the inputs' frontiers. The capabilities that are offered stay the caller's.
    """
    program = differentiate(plan)
    start = max((capability.frontier.only for capability in inputs), default=0)
    schemas = {id: ir.types(plan), **{_state_id(id, each): _arranged(each) for each in program.arrangements}}
    creates = [Create(id, _schema(schemas[id]), at=start)]
    for each in program.arrangements:
        keys = [f"c{index}" for index in range(len(each.key))]
        creates.append(Create(_state_id(id, each), _schema(_arranged(each)), key=keys, at=start))
    results = environment.commit(*(Clone(capability) for capability in inputs), *creates)
    clones, created = results[: len(inputs)], results[len(inputs) :]
    outputs = {read.id: (read.token, write.token) for read, write in created}
    held = Held({clone.id: clone.token for clone in clones}, outputs)
    at_start = [Downgrade(clone, Antichain(start)) for clone in clones]
    note = json.dumps([dict(held.inputs), {name: list(pair) for name, pair in held.outputs.items()}]).encode()
    *_, reader, _ = environment.commit(*at_start, Clone(created[0][0]), Put(_note(id), note))
    return Dataflow(environment, id, plan, program=program, held=held, engine=engine), reader


def resume(environment: Environment, id: GlobalId, plan: Relation, engine: Engine) -> Dataflow:
    """The dataflow of an installed view, as its last tick left it."""
    note = environment.get(_note(id))
    assert note is not None, f"no dataflow maintains {id}"
    inputs, outputs = json.loads(note)
    held = Held(inputs, {name: (read, write) for name, (read, write) in outputs.items()})
    return Dataflow(environment, id, plan, program=differentiate(plan), held=held, engine=engine)


class Dataflow:
    """One maintained view."""

    def __init__(
        self,
        environment: Environment,
        id: GlobalId,
        plan: Relation,
        *,
        program: TickProgram,
        held: Held,
        engine: Engine,
    ) -> None:
        self._environment, self._engine = environment, engine
        self.id, self.plan, self.program = id, plan, program
        self._held = held
        self._schemas = {each.id: each.schema for each in ir.walk(plan) if isinstance(each, ir.Get)}

    @property
    def upper(self) -> int:
        """How far the output is complete."""
        return self._environment.frontiers(self.id).upper.only

    @property
    def ready(self) -> int:
        """How far the inputs are complete, and so the output could be."""
        uppers = [self._environment.frontiers(each).upper for each in self._held.inputs]
        return min((upper.only for upper in uppers if not upper.empty), default=self.upper + 1)

    def tick(self, until: int | None = None) -> bool:
        """Advance as far as the inputs allow, or `until` at most; false if there was nowhere to go."""
        lower = self.upper
        upper = self.ready if until is None else min(self.ready, until)
        if upper <= lower:
            return False
        first = self._start == lower
        changes = {delta_of(each): self._input(each, lower, upper, first=first) for each in self._held.inputs}
        for name, constant in self.program.constants:
            rows = [(row, count) for row, count in constant.rows] if first else []
            changes[delta_of(name)] = _timed_constant(rows, constant.schema, lower)
        quiet = not any(table.num_rows for table in changes.values())
        results = {} if quiet else self._run(changes, lower)
        self._commit(results, lower, upper)
        return True

    @property
    def _start(self) -> int:
        return self._environment.shard(self.id).spec.initial

    def _input(self, id: GlobalId, lower: int, upper: int, *, first: bool) -> pa.Table:
        """The changes of an input as a timed batch; at the start these are its contents, all at that time."""
        tables = []
        if first:
            with self._environment.contents(id, lower) as selection:
                contents = selection.contents()
            tables.append(_timed(contents, np.full(contents.num_rows, lower)))
        if not first or lower + 1 < upper:
            with self._environment.changes(id, lower + 1 if first else lower, upper) as selection:
                updates = selection.changes()
            tables.append(_timed(updates, updates.column(TIME).to_numpy()))
        return pa.concat_tables(tables)

    def _run(self, changes: Mapping[str, pa.Table], lower: int) -> dict[str, pa.Table]:
        """The results of all steps."""
        scope = dict(changes)
        for name, step in self.program.steps:
            read = {each.id for each in ir.walk(step) if isinstance(each, ir.Get)}
            for arrangement in self.program.arrangements:
                if arrangement.name in read:
                    scope[arrangement.name] = self._restricted(arrangement, scope, lower)
            scope[name] = self._engine.run(step, {each: scope[each] for each in read})
        return scope

    def _restricted(self, arrangement: Arrangement, scope: Mapping[str, pa.Table], lower: int) -> pa.Table:
        """The remembered rows of the keys that some step so far asks for, as they were before the tick."""
        schema = pa.schema([(f"c{i}", arrow_type(each)) for i, each in enumerate(arrangement.schema)])
        empty = schema.append(pa.field(DIFF, pa.int64())).empty_table()
        id = _state_id(self.id, arrangement)
        if lower == self._start:
            return empty
        asked = [
            self._hashes(scope[lookup.source], lookup.source, lookup.key)
            for lookup in self.program.lookups
            if lookup.state == arrangement.name and lookup.source in scope
        ]
        hashes = np.unique(np.concatenate(asked)) if asked else np.zeros(0, dtype=np.int64)
        if len(hashes) == 0:
            return empty
        with self._environment.contents(id, lower - 1, hashes) as selection:
            found = selection.contents()
        skipped = len(arrangement.key)
        columns = [found.column(f"c{skipped + index}") for index in range(len(arrangement.schema))]
        return pa.table([*columns, found.column(DIFF)], names=empty.schema.names)

    def _hashes(self, table: pa.Table, step: str, key: tuple[Scalar, ...]) -> I64:
        """The hashes of the keys that occur in a step's result, also of those whose updates cancel out in the end."""
        ones = pa.array(np.ones(table.num_rows, dtype=np.int64))
        present = table.set_column(table.schema.get_field_index(DIFF), DIFF, ones)
        keyed = self._mapped(present, step, key, ())
        return hash_rows([keyed.column(index) for index in range(len(key))], keyed.num_rows)

    def _mapped(self, table: pa.Table, step: str, key: tuple[Scalar, ...], kept: tuple[int, ...]) -> pa.Table:
        """The values of `key` over a step's result, then some of its columns."""
        schema = ir.types(dict(self.program.steps)[step])
        width = len(schema)
        mapped = ir.Map(ir.Get(step, schema), tuple(shift(each, 1) for each in key))
        return self._engine.run(ir.Project(mapped, (*range(width, width + len(key)), *kept)), {step: table})

    def _commit(self, results: Mapping[str, pa.Table], lower: int, upper: int) -> None:
        """All changes of the tick, and what is no longer needed of the past, in one atomic step."""
        environment, to = self._environment, Antichain(upper)
        commands: list[UpdateAndDowngrade | Downgrade] = []
        output = results.get(self.program.output)
        commands.append(UpdateAndDowngrade(self._writer(self.id), _updates(output), to))
        for each in self.program.arrangements:
            id = _state_id(self.id, each)
            changed = self._remembered(each, results[each.source], lower) if results else None
            commands.append(UpdateAndDowngrade(self._writer(id), changed, to))
            commands.append(Downgrade(self._reader(id), Antichain(upper - 1)))
        since = environment.frontiers(self.id).since
        needed = upper - 1 if since.empty else min(upper - 1, since.only)
        for id, token in self._held.inputs.items():
            capability = environment.present(id, token)
            if capability.frontier.only < needed:
                commands.append(Downgrade(capability, Antichain(needed)))
        environment.commit(*commands)

    def _remembered(self, arrangement: Arrangement, table: pa.Table, lower: int) -> pa.Table:
        """What a tick adds to an arrangement: key and row, at one time, for nobody reads the times in between."""
        kept = tuple(range(1, len(arrangement.schema) + 1))
        arranged = self._mapped(table, arrangement.source, arrangement.key, kept)
        times = pa.array(np.full(arranged.num_rows, lower))
        return arranged.append_column(pa.field(TIME, pa.int64(), nullable=False), times)

    def _writer(self, id: GlobalId) -> WriteCapability:
        capability = self._environment.present(id, self._held.outputs[id][1])
        assert isinstance(capability, WriteCapability)
        return capability

    def _reader(self, id: GlobalId) -> ReadCapability:
        capability = self._environment.present(id, self._held.outputs[id][0])
        assert isinstance(capability, ReadCapability)
        return capability


def _note(id: GlobalId) -> str:
    return f"dataflow/{id}"


def _state_id(id: GlobalId, arrangement: Arrangement) -> GlobalId:
    return f"{id}.{arrangement.name}"


def _arranged(arrangement: Arrangement) -> tuple[SqlType, ...]:
    """The columns of an arrangement at rest: the key, then the row."""
    return tuple(each.type for each in arrangement.key) + arrangement.schema


def _schema(types: Sequence[SqlType]) -> pa.Schema:
    return pa.schema([(f"c{index}", arrow_type(each)) for index, each in enumerate(types)])


def _timed(table: pa.Table, times: I64) -> pa.Table:
    """Rows of a shard as a timed batch: the time is column 0."""
    names = [name for name in table.column_names if not name.startswith("_")]
    columns = [pa.array(times, pa.int64()), *(table.column(name) for name in names), table.column(DIFF)]
    return pa.table(columns, names=[*(f"c{index}" for index in range(len(names) + 1)), DIFF])


def _timed_constant(rows: list[tuple[tuple[object, ...], int]], schema: Sequence[SqlType], time: int) -> pa.Table:
    from everview.compute.engine.local.arrow import rows_to_arrow
    from everview.compute.engine.local.collection import rows_of

    timed = [((time, *row), count) for row, count in rows]
    return rows_to_arrow(rows_of(timed, (INT8, *schema)), (INT8, *schema))


def _updates(table: pa.Table | None) -> pa.Table | None:
    """A timed batch as updates of a shard."""
    if table is None:
        return None
    data = [table.column(index) for index in range(1, table.num_columns - 1)]
    names = [TIME, DIFF, *(f"c{index}" for index in range(len(data)))]
    return pa.table([table.column(0), table.column(DIFF), *data], names=names)
