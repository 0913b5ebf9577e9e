"""Dataflows: `MaintainView`, a view kept up to date over stored collections.

A dataflow's output, its arrangements and its errors are shards. A tick takes the output from its upper l to a u that
all inputs have reached. It reads the inputs' changes in [l, u), looks up in the arrangements the rows of the keys that
changed, runs the program on an engine, and commits, in one atomic step, the changes of the output, the arrangements and
the errors, and how far it no longer needs the inputs' past. So whoever comes after a crash goes on from the last
commit: nothing is computed twice, nothing is forgotten, and nothing has to be read again from the beginning.

A large view is hydrated in two steps, where nothing in it can fail: its result first, which can then be read, and its
arrangements, for following the inputs' changes, after it. Until then the dataflow *owes* these: they stand where they
were made, and the inputs are held at that time.

Reading capabilities on inputs stay at or before the output's `since`, and the output's upper never passes the inputs'.
The errors of an input are errors of the view. Where nothing can fail, the collection of errors sleeps: it stands where
it was made, means that there are none, and costs nothing. It wakes with the first tick that could bring an error; so an
input that cannot fail today may be defined otherwise tomorrow, and those above it learn of its errors.

Arrangements that are shared (`shared_arrangements.py`) are dataflows of their own. A tick looks them up as of just
before its lower end, so it waits until they are complete that far, and they stay readable from there on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from everview.compute.arranged import Reading
from everview.compute.cancel import check_wanted
from everview.compute.capabilities import (
    Tokens,
    drop_held,
    errors_id,
    held_by,
    is_awake,
    is_errors_id,
    note_of,
    starting_time,
)
from everview.compute.commit_rounds import commit_together
from everview.compute.delta.program import Arrangement, delta_of
from everview.compute.engine.contract import Engine, LargeEngine, RunFailed
from everview.compute.engine.run_phases import recording
from everview.compute.hydration import can_hydrate
from everview.compute.input_changes import InputChanges
from everview.compute.ir.relation import Relation, types
from everview.compute.large_tick import LargeTick
from everview.compute.pending_updates import Pending, state_id
from everview.compute.stored_state import StoredState, is_foreign, make_collections
from everview.compute.tick_output import TickReport, Updates, row_count, writing
from everview.compute.timed_batches import (
    advanced,
    before,
    end_of_times,
    error_updates,
    shard_updates,
    state_updates,
    untimed_rows,
)
from everview.compute.view import FORM, TickChanges, View, inputs_of
from everview.storage import contract
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import CapabilityInvalid, Corruption, UnknownId
from everview.storage.staging import Staged
from everview.timely.antichain import Antichain
from everview.timely.lattice import TIME_MAX

# A tick over more rows than this runs where the data are, if the engine can: the driver would hold all of them.
LARGE_ROWS_MIN = 200_000
SHARED_S_MAX = 60.0  # that shared arrangements are waited for, where a tick cannot come later
CLONES_MAX = 10  # tries to make a dataflow beside one whose ticks move what it is to read


@dataclass(frozen=True, slots=True)
class Step:
    """A tick over one time that is computed and not committed: updates of the output and of the errors at that time.

    `commands` write the arrangements and let go of the inputs' past; `kept` says what to note once all is committed.
    """

    output: pa.Table | None
    errors: pa.Table | None
    commands: tuple[contract.Command, ...]
    kept: Callable[[], None]


def maintain_view(
    environment: Environment,
    id: GlobalId,
    plan: Relation,
    inputs: Sequence[contract.ReadCapability],
    engine: Engine,
    *,
    readings: Mapping[str, Reading] | None = None,
) -> tuple[Dataflow, contract.ReadCapability]:
    """Install the view `plan` as collection `id` over the inputs; gives the dataflow and a capability to read `id`.

    It starts at the latest of the inputs' frontiers. The capabilities that are offered stay the caller's. `readings`
    are of its arrangements that are shared. Raises NotSupported, and nothing has happened, if the engine has no way to
    compute it.
    """
    readings = readings or {}
    view = View.of(plan, shared=readings)
    view.check(engine)
    for attempt in range(CLONES_MAX):
        try:
            wanted, results = make_collections(environment, id, types(plan), view, inputs)
            break
        except CapabilityInvalid:  # an input's own dataflow moved its errors on between the look and the commit
            if attempt + 1 == CLONES_MAX:
                raise
    start = starting_time(wanted)
    clones, created = results[: len(wanted)], results[len(wanted) :]
    # The capability to read the output is the caller's alone: what nobody reads any more holds nothing back.
    outputs = {read.id: (read.token if read.id != id else None, write.token) for read, write in created}
    shared = {name: each.id for name, each in readings.items()}
    held = Tokens({clone.id: clone.token for clone in clones}, outputs, form=FORM, shared=shared)
    at_start = [contract.Downgrade(clone, Antichain(start)) for clone in clones if clone.frontier.only < start]
    environment.commit(*at_start, contract.Put(note_of(id), held.encoded()))
    return Dataflow(environment, id, view, held, engine, readings=readings), created[0][0]


def resume(
    environment: Environment,
    id: GlobalId,
    plan: Relation,
    engine: Engine,
    readings: Callable[[View, Tokens], Mapping[str, Reading]] | None = None,
) -> Dataflow:
    """The dataflow of an installed view, as its last tick left it; `readings` tell how it reads what is shared."""
    held = held_by(environment, id)
    for each in (*held.inputs, *held.outputs):
        try:
            environment.frontiers(each)
        except UnknownId as error:
            raise Corruption(f"collection {each}, which {id} is maintained with, is missing") from error
    view = View.of(plan, held.form, held.shared)
    found = {} if readings is None else readings(view, held)
    return Dataflow(environment, id, view, held, engine, readings=found)


class Dataflow:
    """One maintained view."""

    def __init__(
        self,
        environment: Environment,
        id: GlobalId,
        view: View,
        held: Tokens,
        engine: Engine,
        *,
        readings: Mapping[str, Reading] | None = None,
    ) -> None:
        self._environment, self._engine = environment, engine
        self.readings: Mapping[str, Reading] = readings or {}
        self.id, self.view = id, view
        self._held = held
        self._errors = errors_id(id) if errors_id(id) in held.outputs else None
        self._state = held.state or id
        self._changes = InputChanges(environment, view)
        self._pending = Pending(environment, self._state, view.program.kept)
        self.limit: int | None = None  # it goes no further than this, while another is to catch up
        self._ticking = False
        self._owes_nothing = False  # as far as is known

    @property
    def plan(self) -> Relation:
        return self.view.plan

    @property
    def foreign(self) -> bool:
        """Whether the stored state belongs to another program, as after a change of how views are kept."""
        readable = {each.name for each in self.view.program.arrangements if each.shared} == self.readings.keys()
        return not readable or is_foreign(self._environment, self._state, self.view.program, self._held)

    @property
    def held(self) -> Tokens:
        return self._held

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def tokens(self) -> set[str]:
        """The tokens of all capabilities that it lives by."""
        return {token for _, token in self.held_tokens()}

    @property
    def inputs(self) -> list[GlobalId]:
        """The collections that it follows, errors among them."""
        return list(self._held.inputs)

    @property
    def upper(self) -> int:
        """How far the output is complete."""
        return self._environment.frontiers(self.id).upper.only

    @property
    def complete(self) -> bool:
        """Whether the output is final: nothing that the view reads can change any more."""
        upper = self._environment.frontiers(self.id).upper
        return upper.empty or upper.only >= TIME_MAX

    @property
    def ready(self) -> int:
        """How far the inputs are complete, and so the output could be."""
        environment = self._environment
        # Errors come last: those of an input that wake do so as its upper moves, and must not be overlooked then.
        uppers = [environment.frontiers(each).upper for each in self._held.inputs if not is_errors_id(each)]
        uppers += [environment.frontiers(each).upper for each in self._followed() if is_errors_id(each)]
        # Where no input can change any more, all that will ever come and go can be told at once.
        ready = min((upper.only for upper in uppers if not upper.empty), default=TIME_MAX)
        return ready if self.limit is None else min(ready, self.limit)

    @property
    def waits(self) -> bool:
        """Whether a shared arrangement is behind the output, so that no tick can look it up."""
        if not self.readings or not self.hydrated:
            return False
        lower = self.upper
        uppers = [self._environment.frontiers(each.id).upper for each in self.readings.values()]
        return any(not upper.empty and upper.only < lower for upper in uppers)

    def _followed(self) -> list[GlobalId]:
        """The inputs, without collections of errors that sleep."""
        return [each for each in self._held.inputs if not is_errors_id(each) or is_awake(self._environment, each)]

    @property
    def hydrated(self) -> bool:
        """Whether the contents of the inputs at the start have been taken in."""
        return self.upper > self._start

    @property
    def owes(self) -> list[Arrangement]:
        """The arrangements that have to be written before the next tick, though the output is there."""
        if self._owes_nothing or not self.hydrated:
            return []
        owed = [each for each in self.view.program.kept if self._is_owed(state_id(self._state, each))]
        self._owes_nothing = not owed
        return owed

    def _is_owed(self, id: GlobalId) -> bool:
        return self._environment.frontiers(id).upper.only == self._environment.shard(id).spec.initial

    @property
    def large(self) -> bool:
        """Whether the next tick runs where the data are."""
        return isinstance(self._engine, LargeEngine) and self._rows_max(self.upper, self.ready) > LARGE_ROWS_MIN

    @property
    def next_due(self) -> int | None:
        """The first time at which the output changes although no input does. None if no time is known.

        It may turn out that nothing changes then. What a tick that runs now will leave to come is not known yet.
        """
        return self._pending.next_due()

    @property
    def timeless(self) -> bool:
        """Whether the output changes only when the inputs do."""
        return not self._pending.possible

    def settled(self, time: int) -> bool:
        """Whether the output at `time` is what it was before, if the inputs change no more than they have."""
        if not self._pending.possible:
            return True
        if self._ticking or self.limit is not None or self.upper < self.ready:
            return False
        due = self.next_due
        # A tick may have begun meanwhile, and what it leaves to come be unknown.
        return (due is None or due > time) and not self._ticking

    def tick(self, until: int | None = None) -> TickReport | None:
        """Advance as far as the inputs allow, or `until` at most; None if there was nowhere to go."""
        self._ticking = True
        try:
            return self._tick(until)
        finally:
            self._ticking = False

    def _tick(self, until: int | None) -> TickReport | None:
        self._pay()
        lower = self.upper
        upper = self.ready if until is None else min(self.ready, until)
        if upper <= lower or self.waits:
            return None
        if isinstance(self._engine, LargeEngine) and self._rows_max(lower, upper) > LARGE_ROWS_MIN:
            return self._large_tick(self._engine, lower, upper)
        began = time.perf_counter()
        first = lower == self._start
        deltas = {each: self._changes.of(each, lower, upper, first=first) for each in self._followed()}
        floor = self._readable_from(lower, upper)
        if floor > lower:
            deltas = {each: advanced(table, floor) for each, table in deltas.items()}
        if self.view.times_max is not None:
            upper = end_of_times(deltas.values(), upper, self.view.times_max)  # the rest comes with the next tick
            deltas = {each: before(table, upper) for each, table in deltas.items()}
        rows_in = sum(table.num_rows for table in deltas.values())
        read = time.perf_counter()
        changes, looking_s = None, 0.0
        with recording() as spark_s:
            if rows_in or first or self._pending.any_due(upper):
                state = self._stored_state(lower, first=first)
                changes = self._changes_of(deltas, state, (lower, upper), first=first)
                looking_s = state.looking_s
        computed = time.perf_counter()
        rows_out = self._commit(changes, deltas, lower, upper)
        if changes is not None:
            self._pending.changed(changes.states, upper)
        committed = time.perf_counter()
        looked_up, statements, careful = (
            (changes.looked_up, changes.statements, changes.careful) if changes else (0, 0, False)
        )
        phases = {
            "read": read - began,
            "look_up": looking_s,
            "compute": computed - read - looking_s - sum(spark_s.values()),
            **{f"spark_{phase}": seconds for phase, seconds in spark_s.items()},
            "commit": committed - computed,
        }
        return TickReport(lower, upper, rows_in, rows_out, looked_up, statements, careful, phases_s=phases)

    def step(self, given: Mapping[GlobalId, pa.Table | None]) -> Step:
        """Compute the tick over the time at which the output stands.

        `given` are updates at that time of inputs, or of their errors, which the commit at hand is still to write.
        """
        self._pay()
        if not self._environment.wait(lambda: not self.waits, SHARED_S_MAX):
            raise RunFailed(f"what {self.id} shares is not complete", hint="see why these arrangements are behind")
        lower = self.upper
        within = (lower, lower + 1)
        # A collection of errors is followed if it is awake, or wakes with the commit at hand.
        asleep = {each for each in self._held.inputs if is_errors_id(each) and not is_awake(self._environment, each)}
        followed = [each for each in self._held.inputs if each not in asleep or given.get(each) is not None]
        deltas = {
            each: self._changes.given(each, given[each])
            if each in given
            else self._changes.of(each, *within, first=False)
            for each in followed
        }
        changes = None
        if any(table.num_rows for table in deltas.values()) or self._pending.any_due(lower + 1):
            changes = self._changes_of(deltas, self._stored_state(lower, first=False), within, first=False)
        output, states, errors = self._updates(changes, deltas, lower)
        commands = [*self._state_commands(states, lower + 1), *self._input_commands(followed, lower + 1)]

        def kept() -> None:
            if changes is not None:
                self._pending.changed(changes.states, lower + 1)

        return Step(output, shard_updates(pa.concat_tables(errors)) if errors else None, tuple(commands), kept)

    def _stored_state(self, lower: int, *, first: bool) -> StoredState:
        return StoredState(self._environment, self._state, lower, self._pending, self.readings, first=first)

    def _changes_of(
        self, deltas: Mapping[GlobalId, pa.Table], state: StoredState, within: tuple[int, int], *, first: bool
    ) -> TickChanges:
        """The changes of a small tick."""
        named = {delta_of(each): table for each, table in deltas.items()}
        return self.view.tick(self._engine, named, state, within, first=first)

    def step_commands(self, step: Step) -> list[contract.Command]:
        """The commands that commit a step of this dataflow."""
        to = Antichain(self.upper + 1)
        commands: list[contract.Command] = [contract.UpdateAndDowngrade(self._writer(self.id), step.output, to)]
        errors = self._errors
        if errors is not None and (step.errors is not None or self._may_fail(self._followed())):
            commands.append(contract.UpdateAndDowngrade(self._writer(errors), step.errors, to))
        return [*commands, *step.commands]

    def idle_step(self) -> tuple[TickReport, list[contract.Command]] | None:
        """The commands that advance the view as far as its inputs allow, if nothing has changed; else None."""
        lower, upper = self.upper, self.ready
        if upper <= lower or lower == self._start or self._pending.any_due(upper) or self._rows_max(lower, upper):
            return None
        if self.owes:
            return None
        return TickReport(lower, upper), self._commands(None, {}, [], upper)

    def _rows_max(self, lower: int, upper: int) -> int:
        """No more rows than this have changed."""
        rows, environment = 0, self._environment
        for id in self._followed():
            first = lower == self._start
            with environment.contents(id, upper - 1) if first else environment.changes(id, lower, upper) as selection:
                rows += selection.rows_max
        return rows

    def _large_tick(self, engine: LargeEngine, lower: int, upper: int) -> TickReport:
        began = time.perf_counter()
        first = lower == self._start
        hydrates = first and can_hydrate(self.view.program)
        if hydrates:
            upper = lower + 1  # the contents at the start, which is simpler than that and what came after
        tick = self._large(lower, upper, first=first)
        committed_s, careful = 0.0, False
        if hydrates and self.view.program.kept and not self.view.failing:
            rows: list[int] = []

            def result(output: Staged | pa.Table | None) -> None:
                with writing(self._environment, [output]):
                    self._commit_large(output, {}, self.view.no_errors, (lower, upper), owing=True)
                rows.append(row_count(output))

            self._commit_owed(tick.hydrate_result_first(engine, result), lower)
            rows_out = rows[0]
        else:
            changes = tick.run(engine)
            computed = time.perf_counter()
            output = changes.staged.get(self.id)
            with writing(self._environment, changes.staged.values()):
                self._commit_large(output, changes.staged, changes.errors, (lower, upper))
            committed_s, careful, rows_out = time.perf_counter() - computed, changes.careful, row_count(output)
        self._pending.changed(None, upper)
        phases = {"compute": time.perf_counter() - began - committed_s, "commit": committed_s}
        rows_in = self._rows_max(lower, upper)
        return TickReport(lower, upper, rows_in, rows_out, careful=careful, large=True, phases_s=phases)

    def _large(self, lower: int, upper: int, *, first: bool) -> LargeTick:
        states = {each.name: state_id(self._state, each) for each in self.view.program.kept}
        inputs = inputs_of(self.plan)
        return LargeTick(self._environment, self.view, self.id, states, self.readings, inputs, lower, upper, first)

    def _commit_large(
        self,
        output: Updates,
        states: Mapping[GlobalId, Updates],
        errors: pa.Table,
        within: tuple[int, int],
        *,
        owing: bool = False,
    ) -> None:
        lower, upper = within
        first = lower == self._start
        theirs = [self._changes.of(id, lower, upper, first=first) for id in self._followed() if is_errors_id(id)]
        together = [errors, *map(error_updates, theirs)]
        self._make_durable(self._commands(output, states, together, upper, owing=owing), upper)

    def _pay(self) -> None:
        """Write the arrangements that are owed, as of the time at which the output was hydrated."""
        owed = {state_id(self._state, each): each for each in self.owes}
        if not owed:
            return
        at = self._environment.shard(next(iter(owed))).spec.initial
        if isinstance(self._engine, LargeEngine):
            self._commit_owed(self._large(at, at + 1, first=True).hydrate_state(self._engine), at)
            return
        inputs = {id: untimed_rows(self._changes.of(id, at, at + 1, first=True)) for id in inputs_of(self.plan)}
        found = {id: (each, self._engine.run(_contents(each), inputs)) for id, each in owed.items()}
        self._commit_owed({id: state_updates(table, at, each) for id, (each, table) in found.items()}, at)

    def _commit_owed(self, states: Mapping[GlobalId, Updates], at: int) -> None:
        ids = [state_id(self._state, each) for each in self.view.program.kept]
        to = Antichain(at + 1)
        with writing(self._environment, states.values()):
            self._environment.commit(*(contract.UpdateAndDowngrade(self._writer(id), states.get(id), to) for id in ids))

    def drop(self, others: Sequence[Dataflow] = (), *more: contract.Command) -> None:
        """Let go of everything that the dataflow holds; its collections go with the last capability on them.

        What `others` hold goes in the same commit, which has more commands.
        """
        together = (self, *others)
        tokens = [pair for each in together for pair in each.held_tokens()]
        notes = [contract.Put(note_of(each.id), None) for each in together]
        drop_held(self._environment, lambda: tokens, *notes, *more)

    def held_tokens(self) -> list[tuple[GlobalId, str]]:
        """All capabilities that it lives by: of which collection, and the token."""
        outputs = [(id, each) for id, pair in self._held.outputs.items() for each in pair if each is not None]
        return [*self._held.inputs.items(), *outputs]

    @property
    def _start(self) -> int:
        return self._environment.shard(self.id).spec.initial

    def _readable_from(self, lower: int, upper: int) -> int:
        """The first time in the tick at which somebody may read the output; times before it count as one.

        A view that fell behind catches up in one step that way, whatever number of times it missed.
        """
        since = self._environment.frontiers(self.id).since
        return upper - 1 if since.empty else max(lower, min(since.only, upper - 1))

    def _commit(self, changes: TickChanges | None, deltas: Mapping[GlobalId, pa.Table], lower: int, upper: int) -> int:
        """The changes of a small tick; gives how many of the output there are."""
        output, states, errors = self._updates(changes, deltas, lower)
        check_wanted()
        self._make_durable(self._commands(output, states, errors, upper), upper)
        return 0 if output is None else output.num_rows

    def _make_durable(self, commands: Sequence[contract.Command], upper: int) -> None:
        """Commit a tick that takes the output to `upper`."""
        commit_together(self._environment, commands)

    def _updates(
        self, changes: TickChanges | None, deltas: Mapping[GlobalId, pa.Table], lower: int
    ) -> tuple[pa.Table | None, dict[GlobalId, Updates], list[pa.Table]]:
        """The updates of a small tick: of the output, the arrangements and the errors."""
        if changes is None:
            return None, {}, []
        states: dict[GlobalId, Updates] = {
            state_id(self._state, each): state_updates(changes.states[each.name], lower, each)
            for each in self.view.program.kept
        }
        theirs = [error_updates(table) for id, table in deltas.items() if is_errors_id(id)]
        return shard_updates(changes.output), states, [changes.errors, *theirs]

    def _commands(
        self,
        output: Updates,
        states: Mapping[GlobalId, Updates],
        errors: Sequence[pa.Table],
        upper: int,
        *,
        owing: bool = False,
    ) -> list[contract.Command]:
        """All changes of the tick in one atomic step, with the past of the inputs let go.

        Arrangements in which nothing changes stay where they are: what they held then, they hold now. So do all that
        are written later, if it is `owing` them.
        """
        to = Antichain(upper)
        commands: list[contract.Command] = [contract.UpdateAndDowngrade(self._writer(self.id), output, to)]
        commands += self._state_commands(states, upper, owing=owing)
        found = shard_updates(pa.concat_tables(errors)) if errors else None
        followed = self._followed()
        if self._errors is not None and self._may_fail(followed):
            commands.append(contract.UpdateAndDowngrade(self._writer(self._errors), found, to))
            commands += self._downgraded(self._reader(self._errors), self._needed(upper))
        else:
            assert found is None, "only a plan that can fail fails"
        return [*commands, *self._input_commands(followed, upper)]

    def _state_commands(
        self, states: Mapping[GlobalId, Updates], upper: int, *, owing: bool = False
    ) -> list[contract.Command]:
        commands: list[contract.Command] = []
        for each in self.view.program.kept:
            id = state_id(self._state, each)
            if (states.get(id) is not None or not self.hydrated) and not owing:
                commands.append(contract.UpdateAndDowngrade(self._writer(id), states.get(id), Antichain(upper)))
                commands.append(contract.Downgrade(self._reader(id), Antichain(upper - 1)))
        return commands

    def _input_commands(self, followed: Sequence[GlobalId], upper: int) -> list[contract.Command]:
        commands: list[contract.Command] = []
        for id in followed:
            capability = self._environment.present(id, self._held.inputs[id])
            assert isinstance(capability, contract.ReadCapability)
            commands += self._downgraded(capability, self._needed(upper))
        return commands

    def _needed(self, upper: int) -> Antichain[int]:
        """From when on the past of inputs and errors is needed once the output stands at `upper`."""
        since = self._environment.frontiers(self.id).since
        return Antichain(upper - 1 if since.empty else min(upper - 1, since.only))

    def _may_fail(self, followed: Sequence[GlobalId]) -> bool:
        """Whether the errors are kept: they can come from the plan or from an input, or could before."""
        if self.view.failing or any(map(is_errors_id, followed)):
            return True
        return self._errors is not None and is_awake(self._environment, self._errors)

    def _downgraded(self, capability: contract.ReadCapability, to: Antichain[int]) -> list[contract.Command]:
        return [contract.Downgrade(capability, to)] if capability.frontier.only < to.only else []

    def _writer(self, id: GlobalId) -> contract.WriteCapability:
        capability = self._environment.present(id, self._held.outputs[id][1])
        assert isinstance(capability, contract.WriteCapability)
        return capability

    def _reader(self, id: GlobalId) -> contract.ReadCapability:
        token = self._held.outputs[id][0]
        assert token is not None
        capability = self._environment.present(id, token)
        assert isinstance(capability, contract.ReadCapability)
        return capability


def _contents(arrangement: Arrangement) -> Relation:
    assert arrangement.contents is not None
    return arrangement.contents
