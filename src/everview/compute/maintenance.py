"""Maintains materialized views: dataflows under the scheduler.

Installing a view makes its collection and all the state that it needs. Whoever waits for a view waits for its upper in
storage; if the view cannot go on, the wait ends with the reason. A view over constants, and over what has ended, is
complete for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from everview.compute.capabilities import Tokens, drop_held, errors_id, held_of, is_errors_id, note_of
from everview.compute.dataflow import Dataflow, maintain_view, resume
from everview.compute.difference import Difference
from everview.compute.engine.contract import Engine
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.progress import Hydration
from everview.compute.explain import explain_view
from everview.compute.handover import Handovers, Move, hand_over
from everview.compute.ir.relation import Relation
from everview.compute.scheduler import Scheduler, Status
from everview.compute.shared_arrangements import ArrangementFlow, SharedArrangements, SharedStatus
from everview.compute.view import View
from everview.errors import EverviewError
from everview.storage.contract import Command, Drop, GlobalId, Put, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import CapabilityInvalid, StorageError

# A tick that fails once may have been unlucky; one that fails again is what readers are told of.
FAILURES_TOLD = 2
HYDRATION_TOLD_S = 1.0  # after which EXPLAIN speaks of one of which nothing else is known


class ScheduledDataflows:
    """Keeps views as dataflows that a scheduler ticks."""

    def __init__(self, environment: Environment, engine: Engine) -> None:
        self._environment, self._engine = environment, engine
        self._scheduler = Scheduler(environment)
        self._stopped: dict[GlobalId, Dataflow] = {}
        self._refused: dict[GlobalId, Dataflow] = {}  # those whose state another version of this program keeps
        self._complete: set[str] = set()  # tokens of what is read of views that are complete
        scheduler = self._scheduler
        self._shared = SharedArrangements(environment, engine, self._keep_shared, scheduler.remove, scheduler.pause)

    def install(self, id: GlobalId, plan: Relation, inputs: Sequence[ReadCapability]) -> ReadCapability:
        """Make the collection and begin to keep it."""
        engine = self._engine if inputs else LocalEngine()
        with self._shared.serving(id, View.of(plan), inputs) as (readings, made):
            flow, reader = maintain_view(self._environment, id, plan, inputs, engine, readings=readings)
            made(flow)
        self._keep(flow)
        return reader

    def resume(self, id: GlobalId, plan: Relation) -> None:
        """Go on keeping a view."""
        if self._environment.frontiers(id).upper.empty:  # complete
            note = self._environment.get(note_of(id))
            read = None if note is None else Tokens.decoded(note).outputs.get(errors_id(id), (None, ""))[0]
            self._complete |= {read} if read is not None else set()
            return
        try:
            flow = resume(
                self._environment, id, plan, self._engine, lambda view, held: self._shared.readings(id, view, held)
            )
        except BaseException:
            self._shared.kept_for(id)
            raise
        self._shared.used_by(flow)
        if flow.foreign:
            self._refused[id] = flow
        else:
            self._keep(flow)

    def _keep(self, flow: Dataflow) -> None:
        self._scheduler.add(flow, lambda: self._finish(flow))

    def _keep_shared(self, flow: ArrangementFlow) -> None:
        self._scheduler.add(flow, lambda: self._shared.finish(flow))

    def statuses(self) -> dict[GlobalId, Status]:
        """The status of each running dataflow."""
        found = {flow.id: self._scheduler.status(flow.id) for flow in self._scheduler.dataflows()}
        return {id: status for id, status in found.items() if status is not None}

    def stop(self, id: GlobalId) -> None:
        """Keep a view no longer; when this returns, nothing of it moves any more."""
        flow = self._scheduler.pause(id) or self._refused.get(id)
        if flow is not None:
            self._stopped[id] = flow

    def abandon(self, id: GlobalId) -> None:
        """Keep a view no longer that is about to be released; what runs is ended, and not waited for."""
        flow = self._scheduler.remove(id) or self._refused.get(id)
        if flow is not None:
            self._stopped[id] = flow

    def restore(self, id: GlobalId) -> None:
        """Go on keeping a view."""
        flow = self._stopped.pop(id, None)
        if flow is not None and id not in self._refused:
            self._keep(flow)

    def release(self, id: GlobalId) -> None:
        """Let go of all that the view held."""
        flow = self._stopped.pop(id, None)
        self._refused.pop(id, None)
        if flow is not None:
            self._shared.drop(flow)
        else:
            self._shared.leave(id)
            self._environment.commit(Put(note_of(id), None))
        while True:
            try:
                return self._drop_all(id)
            except CapabilityInvalid:
                continue  # a reader has let go of one meanwhile

    def _drop_all(self, id: GlobalId) -> None:
        environment = self._environment
        mine = [shard for shard in environment.ids() if shard == id or shard.startswith(f"{id}.")]
        if mine:
            drop_held(environment, lambda: [(each, token) for each in mine for token in held_of(environment, each)])

    def tokens(self) -> set[str]:
        """The tokens of all capabilities that the views live by."""
        return self._complete.union(*(flow.tokens for flow in (*self._flows(), *self._shared.flows())))

    def leftovers(self) -> Sequence[Command]:
        """The commands that forget what no view needs, once all views have been resumed."""
        return self._shared.leftovers()

    def unread(self, ids: Sequence[GlobalId]) -> Sequence[GlobalId]:
        """Which of these collections are shared arrangements that no view reads any more."""
        return self._shared.unread(ids)

    def shared(self) -> Sequence[SharedStatus]:
        """The shared arrangements, and the views that read them."""
        return self._shared.statuses()

    def limit(self, id: GlobalId, upper: int | None) -> None:
        """Let a view go no further than this for a while."""
        for flow in self._scheduler.dataflows():
            if flow.id == id:
                flow.limit = upper
        self._environment.wake()

    def idle(self, id: GlobalId) -> bool:
        """Whether nothing of the view is being computed."""
        status = self._scheduler.status(id)
        return status is None or status.running_since is None

    def owes(self, id: GlobalId) -> bool:
        """Whether state of the view is still being written though its rows are there."""
        flow = self._scheduler.dataflow(id)
        try:
            return flow is not None and (bool(flow.owes) or flow.waits)
        except (StorageError, ValueError):
            return False  # dropped a moment ago

    def inputs(self, id: GlobalId) -> Sequence[GlobalId]:
        """The collections that the view is made from."""
        flow = self._scheduler.dataflow(id) or self._stopped.get(id)
        return [] if flow is None else [each for each in flow.inputs if not is_errors_id(each)]

    def hand_over(
        self,
        differences: Sequence[Difference],
        between: Sequence[GlobalId],
        at: int,
        commit: Callable[[Handovers], object],
    ) -> None:
        """Let what keeps one view of each difference go on keeping the other."""
        stopped = self._stopped
        moves = [Move(stopped[each.other], stopped[each.one], each) for each in differences]
        handovers = hand_over(self._environment, moves, [stopped[each] for each in between], at)
        with self._shared.handing_over([(each.old, each.new) for each in moves]) as commands:
            commit(replace(handovers, commands=(*handovers.commands, *commands)))
        handovers.kept()
        for handover in handovers.moved:
            self._shared.used_by(handover.dataflow)
            id = handover.dataflow.id
            del stopped[id], stopped[handover.replacement]
            self._refused.pop(id, None)
            self._keep(handover.dataflow)
        for id in between:
            self.restore(id)

    def keepers(self) -> Mapping[GlobalId, GlobalId]:
        """The ids under which the state of handed-over views is kept, and the views that they belong to."""
        return {flow.held.state: flow.id for flow in self._flows() if flow.held.state is not None}

    def error(self, id: GlobalId) -> EverviewError | None:
        """Why the view cannot go on."""
        if id in self._refused:
            return EverviewError(
                "the state of this view was made by another version",
                hint="make the view anew: replace it by itself, or drop and create it",
            )
        flow = self._scheduler.dataflow(id)
        shared = () if flow is None else flow.held.shared.values()
        for each in (id, *shared):
            status = self._scheduler.status(each)
            if status is not None and status.failures >= FAILURES_TOLD:
                return status.error
        return None

    def dues(self) -> Mapping[GlobalId, int]:
        """For each view in which rows come and go by themselves: when that is next."""
        found = {}
        for flow in self._scheduler.dataflows():
            try:
                due = flow.next_due
            except StorageError:
                continue  # dropped a moment ago
            if due is not None:
                found[flow.id] = due
        return found

    def settled(self, id: GlobalId, time: int) -> bool:
        """Whether nothing of the view comes or goes by itself up to and including `time`."""
        flow = self._scheduler.dataflow(id)
        try:
            return id not in self._stopped if flow is None else flow.settled(time)
        except (StorageError, ValueError):
            return True  # dropped a moment ago: there is no such collection, or its frontier is empty

    def timeless(self, id: GlobalId) -> bool:
        """Whether rows of the view never come or go by themselves; false as well if it is not being kept now."""
        flow = self._scheduler.dataflow(id)
        return flow is not None and flow.timeless

    def hydration(self, id: GlobalId) -> Hydration | None:
        """How far a view is in being computed for the first time."""
        return self._scheduler.hydration(id)

    def explain(self, id: GlobalId) -> str | None:
        """How a view is maintained, with the sizes of its state, and how far its hydration is."""
        flow, hydration = self._scheduler.dataflow(id), self.hydration(id)
        if flow is None:
            return None
        statuses = {each.id: each for each in self._shared.statuses()}
        shared = {name: statuses[each] for name, each in flow.held.shared.items() if each in statuses}
        text = explain_view(flow.view, flow.held.state or id, self._environment, shared)
        told = hydration is not None and (hydration.rows_read is not None or hydration.running_s >= HYDRATION_TOLD_S)
        return f"Hydrating\n  {hydration}\n\n{text}" if told else text

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        return self._scheduler.changes

    def close(self) -> None:
        self._scheduler.close()

    def _flows(self) -> list[Dataflow]:
        return [*self._scheduler.dataflows(), *self._refused.values()]

    def _finish(self, flow: Dataflow) -> None:
        """Nothing will ever be written to the view and its errors; its inputs and its state are not needed again."""
        self._complete |= {read for read, _ in flow.held.outputs.values() if read is not None}
        held = {**flow.held.inputs, **{id: pair[1] for id, pair in flow.held.outputs.items()}}
        drops = [Drop(self._environment.present(id, token)) for id, token in held.items()]
        note = Put(note_of(flow.id), replace(flow.held, shared={}).encoded())
        self._environment.commit(*drops, *([note] if flow.held.shared else []))
        self._shared.leave(flow.id)
