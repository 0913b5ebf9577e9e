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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from everview.compute.dataflow import Dataflow, Held, errors_id, is_awake, note_of
from everview.compute.difference import Difference, at_time, counts, negated, subtracted
from everview.storage.batch import as_declared
from everview.storage.contract import Command, Drop, Extend, GlobalId, Put, UpdateAndDowngrade, WriteCapability
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME, consolidate, data_names

MASKED = ("55000", "no contents are known at this time: the view was replaced WITH (FORWARD TIME)")


@dataclass(frozen=True, slots=True)
class Handover:
    """What is to be committed in one step, and the dataflow that goes on after it."""

    commands: tuple[Command, ...]
    dataflow: Dataflow
    at: int  # from this time on the new definition holds
    upper: int
    rows_added: int
    rows_removed: int


def handover_time(environment: Environment, old: GlobalId, new: GlobalId, *, forward: bool) -> int | None:
    """From which time on the new definition would hold; None if it has to wait for the old one to come that far.

    With `forward` it never has to.
    """
    mine, theirs = environment.frontiers(old), environment.frontiers(new)
    if mine.upper.empty or mine.since.empty or theirs.since.empty:
        return None
    at = max(mine.upper.only, theirs.since.only)
    meet = at == mine.upper.only or at <= mine.since.only  # else someone could read a time of neither
    return at if meet or forward else None


def hand_over(environment: Environment, old: Dataflow, new: Dataflow, difference: Difference, at: int) -> Handover:
    """Prepare it; neither dataflow may tick from here until the commands are committed.

    `difference` is of new's output and old's, the more recent the less is left to do here.
    """
    upper = new.upper
    assert old.upper <= at < upper, "the new dataflow is ahead"
    output, added, removed = _output(environment, old, new, difference, at)
    writer = _writer(environment, old, old.id)
    commands: list[Command] = _extension(environment, writer, new)
    commands.append(UpdateAndDowngrade(writer, output, Antichain(upper)))
    commands += _errors(environment, old, new, at)
    kept = {id: pair for id, pair in old.held.outputs.items() if id in (old.id, errors_id(old.id))}
    state = {id: pair for id, pair in new.held.outputs.items() if id not in (new.id, errors_id(new.id))}
    commands += _drops(environment, old.held.inputs.items())
    commands += _drops(environment, _tokens(old.held, [id for id in old.held.outputs if id not in kept]))
    commands += _drops(environment, _tokens(new.held, [id for id in new.held.outputs if id not in state]))
    held = Held(new.held.inputs, {**kept, **state}, new.held.state or new.id)
    commands += [Put(note_of(new.id), None), Put(note_of(old.id), held.encoded())]
    dataflow = Dataflow(environment, old.id, new.view, held, new.engine)
    return Handover(tuple(commands), dataflow, at, upper, added, removed)


def _extension(environment: Environment, writer: WriteCapability, new: Dataflow) -> list[Command]:
    """What gives the output the columns of the new definition, if it lacks some."""
    wanted, has = (list(environment.shard(id).spec.schema) for id in (new.id, writer.id))
    return [Extend(writer, pa.schema([*has, *wanted[len(has) :]]))] if len(has) < len(wanted) else []


def _output(
    environment: Environment, old: Dataflow, new: Dataflow, difference: Difference, at: int
) -> tuple[pa.Table | None, int, int]:
    """The updates of the output, and how many rows the difference adds and removes."""
    upper = new.upper
    sinces = [environment.frontiers(each.id).since.only for each in (old, new)]
    if at == old.upper and max(sinces) < at:
        first, lower = difference.at(at - 1), at
    else:
        with environment.contents(new.id, at) as one, environment.everything(old.id) as other:
            first, lower = subtracted(one, other), at + 1
    pieces = [at_time(first, at)]
    if lower < upper:
        with environment.changes(new.id, lower, upper) as selection:
            pieces.append(selection.updates())
    return _together(pieces), *counts(first)


def _errors(environment: Environment, old: Dataflow, new: Dataflow, at: int) -> list[Command]:
    """The same for the errors, unless there never were any; and those of the times between the two eras."""
    mine, theirs = errors_id(old.id), errors_id(new.id)
    had, has = is_awake(environment, mine), is_awake(environment, theirs)
    masked = old.upper < at and environment.frontiers(old.id).since.only < at
    if not (had or has or masked):
        return []
    pieces: list[pa.Table] = []
    if has:
        with environment.contents(theirs, at) as selection:
            pieces.append(at_time(selection.contents(), at))
        if at + 1 < new.upper:
            with environment.changes(theirs, at + 1, new.upper) as selection:
                pieces.append(selection.updates())
    if had:
        with environment.everything(mine) as selection:
            pieces += negated(iter([at_time(selection.updates(), at)]))
    if masked:
        mask = _mask(environment, mine)
        pieces += [at_time(mask, old.upper), *negated(iter([at_time(mask, at)]))]
    return [UpdateAndDowngrade(_writer(environment, old, mine), _together(pieces), Antichain(new.upper))]


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


def _tokens(held: Held, ids: Iterable[GlobalId]) -> list[tuple[GlobalId, str]]:
    return [(id, token) for id in ids for token in held.outputs[id] if token is not None]


def _drops(environment: Environment, tokens: Iterable[tuple[GlobalId, str]]) -> list[Command]:
    return [Drop(environment.present(id, token)) for id, token in tokens]
