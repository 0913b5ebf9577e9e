"""What keeps materialized views up to date: dataflows under the scheduler.

Installing a view makes its collection and all the state that it needs. Whoever waits for a view waits for its upper in
storage; if the view cannot go on, the wait ends with the reason. A view over constants is computed once, here, and is
complete for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from everview.compute.dataflow import Dataflow, Held, errors_id, maintain_view, note_of, resume
from everview.compute.difference import Difference
from everview.compute.engine.contract import Engine
from everview.compute.engine.local.engine import LocalEngine
from everview.compute.explain import explain_view
from everview.compute.handover import Handover, hand_over
from everview.compute.ir.relation import Relation
from everview.compute.scheduler import Scheduler
from everview.errors import EverviewError
from everview.storage.contract import GlobalId, ReadCapability
from everview.storage.environment import Environment
from everview.storage.errors import StorageError

# A tick that fails once may have been unlucky; one that fails again is what readers are told of.
FAILURES_TOLD = 2


class ScheduledDataflows:
    """Keeps views as dataflows that a scheduler ticks."""

    def __init__(self, environment: Environment, engine: Engine) -> None:
        self._environment, self._engine = environment, engine
        self._scheduler = Scheduler(environment)
        self._stopped: dict[GlobalId, Dataflow] = {}
        self._refused: dict[GlobalId, Dataflow] = {}  # those whose state another version of this program keeps
        self._complete: set[str] = set()  # tokens of what is read of views that are complete

    def install(self, id: GlobalId, plan: Relation, inputs: Sequence[ReadCapability]) -> ReadCapability:
        """Make the collection and begin to keep it."""
        engine = self._engine if inputs else LocalEngine()
        flow, reader = maintain_view(self._environment, id, plan, inputs, engine)
        if inputs:
            self._scheduler.add(flow)
        else:
            flow.tick()
            self._finish(flow)
        return reader

    def resume(self, id: GlobalId, plan: Relation) -> None:
        """Go on keeping a view."""
        if self._environment.frontiers(id).upper.empty:  # complete
            note = self._environment.get(note_of(id))
            read = None if note is None else Held.decoded(note).outputs.get(errors_id(id), (None, ""))[0]
            self._complete |= {read} if read is not None else set()
            return
        flow = resume(self._environment, id, plan, self._engine)
        if flow.foreign:
            self._refused[id] = flow
        elif flow.inputs:
            self._scheduler.add(flow)
        else:
            flow.tick()
            self._finish(flow)

    def stop(self, id: GlobalId) -> None:
        """Keep a view no longer."""
        flow = self._scheduler.remove(id) or self._refused.get(id)
        if flow is not None:
            self._stopped[id] = flow

    def restore(self, id: GlobalId) -> None:
        """Go on keeping a view."""
        flow = self._stopped.pop(id, None)
        if flow is not None and id not in self._refused:
            self._scheduler.add(flow)

    def release(self, id: GlobalId) -> None:
        """Let go of all that the view held."""
        flow = self._stopped.pop(id, None)
        self._refused.pop(id, None)
        if flow is not None:
            flow.drop()
        environment = self._environment
        left = [
            environment.present(shard, token)
            for shard in environment.ids()
            if shard == id or shard.startswith(f"{id}.")
            for token in environment.shard(shard).held
        ]
        if left:
            environment.drop(*left)

    def tokens(self) -> set[str]:
        """The tokens of all capabilities that the views live by."""
        return self._complete.union(*(flow.tokens for flow in self._flows()))

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

    def hand_over(
        self, old: GlobalId, new: GlobalId, difference: Difference, at: int, commit: Callable[[Handover], object]
    ) -> None:
        """Let what keeps the view `new` go on keeping `old`."""
        handover = hand_over(self._environment, self._stopped[old], self._stopped[new], difference, at)
        commit(handover)
        del self._stopped[old], self._stopped[new]
        self._refused.pop(old, None)
        self._scheduler.add(handover.dataflow)

    def keepers(self) -> Mapping[GlobalId, GlobalId]:
        """Under which ids the state of views is kept that were handed over, and whose it is."""
        return {flow.held.state: flow.id for flow in self._flows() if flow.held.state is not None}

    def error(self, id: GlobalId) -> EverviewError | None:
        """Why the view cannot go on."""
        if id in self._refused:
            return EverviewError(
                "the state of this view was made by another version",
                hint="make the view anew: replace it by itself, or drop and create it",
            )
        status = self._scheduler.status(id)
        return None if status is None or status.failures < FAILURES_TOLD else status.error

    def dues(self) -> list[int]:
        """For each view in which rows come and go by themselves: when that is next."""
        found = []
        for flow in self._scheduler.dataflows():
            try:
                due = flow.next_due
            except StorageError:
                continue  # dropped a moment ago
            if due is not None:
                found.append(due)
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

    def explain(self, id: GlobalId) -> str | None:
        """How a view is kept, with the sizes of what it keeps."""
        flow = self._scheduler.dataflow(id)
        return None if flow is None else explain_view(flow.view, flow.held.state or id, self._environment)

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        return self._scheduler.changes

    def close(self) -> None:
        """Stop."""
        self._scheduler.close()

    def _flows(self) -> list[Dataflow]:
        return [*self._scheduler.dataflows(), *self._refused.values()]

    def _finish(self, flow: Dataflow) -> None:
        """Nothing will ever be written to a view over constants, nor to its errors; its state is not needed again."""
        writers = [self._environment.present(id, pair[1]) for id, pair in flow.held.outputs.items()]
        self._environment.drop(*writers)
