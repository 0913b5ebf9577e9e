"""Sinks by the materialization protocol, as materializations that run."""

from __future__ import annotations

from collections.abc import Sequence

from everview.adapter.catalog.items import Item
from everview.adapter.catalog.specs import DriverSink
from everview.adapter.secrets import without_passwords
from everview.adapter.sinks import contract
from everview.adapter.sinks.definition import bindings, named
from everview.errors import EverviewError
from everview.flow.checkpoint import START
from everview.flow.materialization import Materialization, Options, State, let_go
from everview.flow.source import Readable
from everview.flow.spark import SparkWhenThere
from everview.flow.worker import WorkerStatus
from everview.storage.contract import Command
from everview.storage.environment import Environment
from everview.storage.shard import FOREVER

_STATES = {
    State.RUNNING: contract.RUNNING,
    State.STALLED: contract.STALLED,
    State.PAUSED: contract.PAUSED,
    State.FENCED: contract.FENCED,
    State.DRIFTED: contract.DRIFTED,
}


class MaterializedDelivery:
    """A sink that is a materialization."""

    def __init__(self, materialization: Materialization, collections: Sequence[Item]) -> None:
        self.materialization, self._collections = materialization, collections

    @classmethod
    def resume(
        cls,
        environment: Environment,
        spec: DriverSink,
        collections: Sequence[Item],
        readable: Readable,
        spark: SparkWhenThere,
    ) -> MaterializedDelivery:
        """The sink as the catalog and its last commit tell."""
        found = Materialization.resume(
            environment,
            spec.name,
            spec.kind,
            spec.config,
            bindings(environment, spec, collections),
            options=Options(**spec.options),  # type: ignore[arg-type]
            readable=readable,
            spark=spark,
        )
        return cls(found, collections)

    def start(self) -> None:
        self.materialization.start()

    def halt(self) -> None:
        self.materialization.halt()

    def status(self) -> contract.DeliveryStatus:
        found = self.materialization.status()
        state = _STATES.get(found.state, contract.PAUSED)
        if state == contract.RUNNING and found.frontier == START:
            state = contract.STARTING
        error = None if found.error is None else named(found.error, self._collections)
        splits = tuple(self._split(each, found.upper) for each in found.splits)
        frontier, lag_ms = _time(found.frontier), _lag(found.frontier, found.upper)
        return contract.DeliveryStatus(state, frontier, lag_ms, error, splits, found.stored_by)

    def _split(self, worker: WorkerStatus, upper: int) -> contract.SplitStatus:
        return contract.SplitStatus(
            str(worker.range),
            _time(worker.frontier),
            _lag(worker.frontier, upper),
            worker.transactions,
            worker.stored,
            worker.failures,
            None if worker.error is None else named(worker.error, self._collections),
            worker.retry_ms,
        )

    def let_go(self) -> list[Command]:
        return self.materialization.let_go()

    def forget(self) -> str | None:
        try:
            self.materialization.forget()
        except EverviewError as error:
            return without_passwords(f"{error.message}: {error.detail}" if error.detail else error.message)
        return None


class FailedDelivery:
    """A sink that cannot be opened: a library is missing, say. It holds what it held, and can be dropped."""

    def __init__(self, environment: Environment, name: str, error: Exception) -> None:
        self._environment, self._name, self._error = environment, name, without_passwords(str(error))

    def start(self) -> None:
        return None

    def halt(self) -> None:
        return None

    def status(self) -> contract.DeliveryStatus:
        return contract.DeliveryStatus(contract.STALLED, None, None, self._error, ())

    def let_go(self) -> list[Command]:
        return let_go(self._environment, self._name)

    def forget(self) -> str | None:
        return "the destination could not be reached, and may keep the checkpoints of the sink"


def _time(frontier: int) -> int | None:
    """A frontier as it is shown: none before the first commit, and none when there is no end."""
    return None if frontier in (START, FOREVER) else frontier


def _lag(frontier: int, upper: int) -> int | None:
    return None if frontier == START else max(0, upper - frontier)
