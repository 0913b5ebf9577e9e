"""What keeps materialized views up to date, as the adapter sees it: dataflows under the scheduler of compute.

Installing a view makes its collection and all the state that it needs. Whoever waits for a view waits for its upper in
storage; if the view cannot go on, the wait ends with the reason. A view over constants is computed once, here, and is
complete for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from everview.compute.dataflow import Dataflow, maintain_view, resume
from everview.compute.engine.contract import Engine
from everview.compute.engine.local.engine import LocalEngine
from everview.compute.ir.relation import Relation
from everview.compute.scheduler import Scheduler
from everview.errors import EverviewError
from everview.storage.contract import GlobalId, ReadCapability
from everview.storage.environment import Environment

# A tick that fails once may have been unlucky; one that fails again is what readers are told of.
FAILURES_TOLD = 2


class Maintenance(Protocol):
    """Keeps views."""

    def install(self, id: GlobalId, plan: Relation, inputs: Sequence[ReadCapability]) -> ReadCapability:
        """Make the collection `id` and begin to keep it; the capability is the caller's, the inputs stay theirs."""
        ...

    def resume(self, id: GlobalId, plan: Relation) -> None:
        """Go on keeping a view that was installed before this process began."""
        ...

    def stop(self, id: GlobalId) -> None:
        """Keep a view no longer: when this returns, nothing of it moves any more."""
        ...

    def restore(self, id: GlobalId) -> None:
        """Go on keeping a view that was stopped."""
        ...

    def release(self, id: GlobalId) -> None:
        """Let go of all that a view held that was stopped."""
        ...

    def tokens(self) -> set[str]:
        """The tokens of all capabilities that the views live by."""
        ...

    def error(self, id: GlobalId) -> EverviewError | None:
        """Why the view cannot go on, if it cannot."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class ScheduledDataflows:
    """Keeps views as dataflows that a scheduler ticks."""

    def __init__(self, environment: Environment, engine: Engine) -> None:
        self._environment, self._engine = environment, engine
        self._scheduler = Scheduler(environment)
        self._stopped: dict[GlobalId, Dataflow] = {}

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
        if self._environment.frontiers(id).upper.empty:
            return  # complete
        flow = resume(self._environment, id, plan, self._engine)
        if flow.inputs:
            self._scheduler.add(flow)
        else:
            flow.tick()
            self._finish(flow)

    def stop(self, id: GlobalId) -> None:
        """Keep a view no longer."""
        flow = self._scheduler.remove(id)
        if flow is not None:
            self._stopped[id] = flow

    def restore(self, id: GlobalId) -> None:
        """Go on keeping a view."""
        flow = self._stopped.pop(id, None)
        if flow is not None:
            self._scheduler.add(flow)

    def release(self, id: GlobalId) -> None:
        """Let go of all that the view held."""
        flow = self._stopped.pop(id, None)
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
        found: set[str] = set()
        for flow in self._scheduler.dataflows():
            found |= set(flow._held.inputs.values())
            found |= {token for pair in flow._held.outputs.values() for token in pair if token is not None}
        return found

    def error(self, id: GlobalId) -> EverviewError | None:
        """Why the view cannot go on."""
        status = self._scheduler.status(id)
        return None if status is None or status.failures < FAILURES_TOLD else status.error

    def close(self) -> None:
        """Stop."""
        self._scheduler.close()

    def _finish(self, flow: Dataflow) -> None:
        """Nothing will ever be written to a view over constants, nor to its errors; its state is not needed again."""
        writers = [self._environment.present(id, pair[1]) for id, pair in flow._held.outputs.items()]
        self._environment.drop(*writers)
