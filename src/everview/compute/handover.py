"""Handing a collection over from the dataflow that writes it to another, which goes on with another definition.

Let `old` have written its output up to u, let `new` be readable from s on and have come to w, with max(u, s) < w. Then,
from the time at = max(u, s), in one step

    the output gets, at time `at`, contents(new, at) - contents(old, u - 1), and from there to w the changes of new;
    its upper goes from u to w, and the same is done with the errors;
    if new has columns at the end that the output has not, the output has them from now on;
    old lets go of its inputs and arrangements, and new of its own output and errors;
    the note of the output's dataflow says from now on what new lives by.

So at every time before u the collection is what the old definition says, from `at` on it is what the new one says, and
who reads it sees ordinary changes, in the columns that it knows. Where the output has columns that new has not, because
an earlier definition had them, they are NULL. Tokens of all capabilities exist before, which is why it can be one step.

Usually s <= u, and the two eras meet. Where they do not, the collection says of the times between that it fails: that
takes an explicit wish, unless nobody can read these times anyway.

Several collections are handed over in one commit, at one time. Where a new dataflow reads another collection of the
set, directly or by views between, it cannot be beyond `at` before that one is written. It stands at `at` then, and its
tick over `at` is computed here, from what the commit at hand writes at `at` to its inputs (`Dataflow.step`). So are the
ticks of the views between. What is written is what they would have computed after the commit, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from everview.compute.capabilities import Tokens, errors_id, is_awake, note_of
from everview.compute.dataflow import Dataflow, Step
from everview.compute.difference import Difference, at_time, counts, negated, subtracted
from everview.storage.batch import as_declared
from everview.storage.contract import Command, Drop, Extend, GlobalId, Put, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME, consolidate, data_names

MASKED = ("55000", "no contents are known at this time: the view was replaced WITH (FORWARD TIME)")


@dataclass(frozen=True, slots=True)
class Move:
    """A dataflow that is to go on with the collection of another; `difference` is of their outputs.

    The more recent the difference is, the less is left to do.
    """

    old: Dataflow
    new: Dataflow
    difference: Difference


@dataclass(frozen=True, slots=True)
class Handover:
    """One collection that is handed over, and the dataflow that goes on after it."""

    dataflow: Dataflow
    replacement: GlobalId
    at: int  # from this time on the new definition holds
    rows_added: int
    rows_removed: int
    error: tuple[str, str] | None  # SQLSTATE and message, if the collection fails from then on


@dataclass(frozen=True, slots=True)
class Handovers:
    """The commands of one step; `kept` is called once they are committed."""

    moved: tuple[Handover, ...]
    commands: tuple[Command, ...]
    kept: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Written:
    """The updates that the commit writes to one collection, and how."""

    commands: tuple[Command, ...]
    output: pa.Table | None
    errors: pa.Table | None
    handover: Handover | None = None
    step: Step | None = None


def handover_time(environment: Environment, old: GlobalId, new: GlobalId, *, forward: bool) -> int | None:
    """The time from which the new definition would hold; None if it waits for the old dataflow to reach it.

    With `forward` it never has to.
    """
    mine, theirs = environment.frontiers(old), environment.frontiers(new)
    if mine.upper.empty or mine.since.empty or theirs.since.empty:
        return None
    at = max(mine.upper.only, theirs.since.only)
    return at if forward or is_met(environment, old, at) else None


def is_met(environment: Environment, old: GlobalId, at: int) -> bool:
    """Whether nobody could read a time of a collection before `at` that nobody wrote."""
    mine = environment.frontiers(old)
    if mine.upper.empty or mine.since.empty:
        return False
    return at == mine.upper.only or at <= mine.since.only


def read_through(
    targets: Collection[GlobalId], news: Iterable[GlobalId], inputs: Callable[[GlobalId], Iterable[GlobalId]]
) -> tuple[set[GlobalId], set[GlobalId]]:
    """Which of the new views read a collection that is handed over, and the views between by which they do.

    `inputs` are the collections that a view is made from.
    """
    known: dict[GlobalId, bool] = {}

    def reads(id: GlobalId) -> bool:
        if id not in known:
            known[id] = False
            below = [each for each in inputs(id) if each not in targets]
            known[id] = any(list(map(reads, below))) or any(each in targets for each in inputs(id))
        return known[id]

    found = {id for id in news if reads(id)}
    return found, {id for id, does in known.items() if does} - found


def hand_over(environment: Environment, moves: Sequence[Move], between: Sequence[Dataflow], at: int) -> Handovers:
    """Prepare the handover; no dataflow of the set may tick until the commands are committed.

    `between` are those that read a collection of the set, and that a new dataflow of the set reads.
    """
    written: dict[GlobalId, _Written] = {}
    for each in _in_order(moves, between):
        flow = each.new if isinstance(each, Move) else each
        given = {id: done.output for id, done in written.items() if id in flow.held.inputs}
        given |= {errors_id(id): done.errors for id, done in written.items() if errors_id(id) in flow.held.inputs}
        step = flow.step({id: _only_at(table, at) for id, table in given.items()}) if given else None
        if isinstance(each, Move):
            written[each.old.id] = _moved(environment, each, at, step)
        else:
            assert step is not None and flow.upper == at, "it reads what is handed over, and has come that far"
            written[flow.id] = _Written(tuple(flow.step_commands(step)), step.output, step.errors, step=step)
    moved = tuple(each.handover for each in written.values() if each.handover is not None)
    steps = [each.step for each in written.values() if each.handover is None and each.step is not None]

    def kept() -> None:
        for step in steps:
            step.kept()

    return Handovers(moved, tuple(command for each in written.values() for command in each.commands), kept)


def _in_order(moves: Sequence[Move], between: Sequence[Dataflow]) -> list[Move | Dataflow]:
    """The dataflows in an order in which inputs come before what reads them."""
    left: dict[GlobalId, Move | Dataflow] = {each.old.id: each for each in moves}
    left |= {each.id: each for each in between}
    order: list[Move | Dataflow] = []
    while left:
        free = [
            id
            for id, each in left.items()
            if not any(input in left for input in (each.new if isinstance(each, Move) else each).held.inputs)
        ]
        assert free, "the definitions have no cycle"
        order += [left.pop(id) for id in free]
    return order


def _moved(environment: Environment, move: Move, at: int, step: Step | None) -> _Written:
    """One collection of the set; with a `step` the new dataflow stands at `at`, else it is beyond."""
    old, new = move.old, move.new
    upper = new.upper if step is None else new.upper + 1
    assert old.upper <= at < upper, "the new dataflow is ahead"
    output, added, removed = _output(environment, move, at, step)
    writer = _writer(environment, old, old.id)
    commands: list[Command] = _extension(environment, writer, new)
    commands.append(UpdateAndDowngrade(writer, output, Antichain(upper)))
    errors, wakes, error = _errors(environment, move, at, step)
    if wakes:
        commands.append(UpdateAndDowngrade(_writer(environment, old, errors_id(old.id)), errors, Antichain(upper)))
    if step is not None:
        commands += step.commands
    kept = {id: pair for id, pair in old.held.outputs.items() if id in (old.id, errors_id(old.id))}
    state = {id: pair for id, pair in new.held.outputs.items() if id not in (new.id, errors_id(new.id))}
    commands += _drops(environment, old.held.inputs.items())
    commands += _drops(environment, _tokens(old.held, [id for id in old.held.outputs if id not in kept]))
    commands += _drops(environment, _tokens(new.held, [id for id in new.held.outputs if id not in state]))
    held = Tokens(new.held.inputs, {**kept, **state}, new.held.state or new.id, new.held.form, new.held.shared)
    commands += [Put(note_of(new.id), None), Put(note_of(old.id), held.encoded())]
    dataflow = Dataflow(environment, old.id, new.view, held, new.engine, readings=new.readings)
    handover = Handover(dataflow, new.id, at, added, removed, error)
    return _Written(tuple(commands), output, errors, handover)


def _only_at(table: pa.Table | None, at: int) -> pa.Table | None:
    """The updates at one time."""
    found = None if table is None else table.filter(pc.equal(table.column(TIME), at))
    return found if found is not None and found.num_rows else None


def _extension(environment: Environment, writer: WriteCapability, new: Dataflow) -> list[Command]:
    """The command that adds the columns of the new definition to the output, if it lacks some."""
    wanted, has = (list(environment.shard(id).spec.schema) for id in (new.id, writer.id))
    return [Extend(writer, pa.schema([*has, *wanted[len(has) :]]))] if len(has) < len(wanted) else []


def _output(environment: Environment, move: Move, at: int, step: Step | None) -> tuple[pa.Table | None, int, int]:
    """The updates of the output, and how many rows the difference adds and removes."""
    old, new = move.old, move.new
    sinces = [environment.frontiers(each.id).since.only for each in (old, new)]
    if at == old.upper and max(sinces) < at:
        first, lower = move.difference.at(at - 1), at
    else:
        known = at if step is None else at - 1
        with environment.contents(new.id, known) as one, environment.everything(old.id) as other:
            first, lower = subtracted(one, other), at + 1
    pieces = [at_time(first, at)]
    if step is not None:
        pieces += [] if step.output is None else [step.output]
        together = _together(pieces)
        return together, *((0, 0) if together is None else counts(together))
    if lower < new.upper:
        with environment.changes(new.id, lower, new.upper) as selection:
            pieces.append(selection.updates())
    return _together(pieces), *counts(first)


def _errors(
    environment: Environment, move: Move, at: int, step: Step | None
) -> tuple[pa.Table | None, bool, tuple[str, str] | None]:
    """Hand over the collection of errors, unless it was never written, with the times between the two eras.

    Gives the updates, whether the collection of errors is written at all, and an error that there is from `at` on.
    """
    old, new = move.old, move.new
    mine, theirs = errors_id(old.id), errors_id(new.id)
    had, has = is_awake(environment, mine), is_awake(environment, theirs)
    masked = old.upper < at and environment.frontiers(old.id).since.only < at
    pieces: list[pa.Table] = []
    if has:
        with environment.contents(theirs, at if step is None else at - 1) as selection:
            pieces.append(at_time(selection.contents(), at))
    if step is not None and step.errors is not None:
        pieces.append(step.errors)
    error = _first(pieces)
    if has and step is None and at + 1 < new.upper:
        with environment.changes(theirs, at + 1, new.upper) as selection:
            pieces.append(selection.updates())
        error = error or _first([at_time(each, at) for each in pieces])
    if had:
        with environment.everything(mine) as selection:
            pieces += negated(iter([at_time(selection.updates(), at)]))
    if masked:
        mask = _mask(environment, mine)
        pieces += [at_time(mask, old.upper), *negated(iter([at_time(mask, at)]))]
    return _together(pieces), bool(had or has or masked or pieces), error


def _first(pieces: list[pa.Table]) -> tuple[str, str] | None:
    """One of the errors that updates, all at one time, come to."""
    found = _together(pieces)
    if found is None:
        return None
    rows = found.select(data_names(found)).to_pylist()
    state, message = min(tuple(row.values()) for row in rows)
    return state, message


def _mask(environment: Environment, errors: GlobalId) -> pa.Table:
    schema = environment.shard(errors).spec.at_rest
    row = {TIME: 0, DIFF: 1, **dict(zip(environment.shard(errors).spec.schema.names, MASKED, strict=True))}
    return pa.Table.from_pylist([row], schema=pa.schema([schema.field(name) for name in row]))


def _together(pieces: list[pa.Table]) -> pa.Table | None:
    tables = [each.select([TIME, DIFF, *data_names(each)]) for each in pieces if each.num_rows]
    if not tables:
        return None
    schema = max((each.schema for each in tables), key=len)
    table = consolidate(pa.concat_tables([as_declared(each, schema) for each in tables]))
    return table.select([TIME, DIFF, *data_names(table)]) if table.num_rows else None


def _writer(environment: Environment, dataflow: Dataflow, id: GlobalId) -> WriteCapability:
    capability = environment.present(id, dataflow.held.outputs[id][1])
    assert isinstance(capability, WriteCapability)
    return capability


def _tokens(held: Tokens, ids: Iterable[GlobalId]) -> list[tuple[GlobalId, str]]:
    return [(id, token) for id in ids for token in held.outputs[id] if token is not None]


def _drops(environment: Environment, tokens: Iterable[tuple[GlobalId, str]]) -> list[Command]:
    return [Drop(environment.present(id, token)) for id, token in tokens]
