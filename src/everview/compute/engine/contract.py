"""An engine runs a plan over named inputs and gives the collection that the plan means.

A collection travels as a batch: data columns `c0, c1, ...` in the Arrow types of `ir.types`, and `_diff`, the
multiplicity, as int64. A small batch is an Arrow table in this process; a large one is a list of Parquet parts that
the engine reads itself. A batch may say the same row many times, and multiplicities add up; a result says each row
once, and none with multiplicity zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from everview.compute.ir.relation import Relation, Steps
from everview.errors import EverviewError
from everview.storage.landing import Landing
from everview.storage.selection import Selection
from everview.storage.staging import Staged


@dataclass(frozen=True, slots=True)
class Parts:
    """A batch in Parquet files, by address; the engine, and its executors if it has any, must be able to reach them."""

    uris: tuple[str, ...]
    schema: pa.Schema | None = None  # of the data columns, if it may be another than that of the types


Batch: TypeAlias = pa.Table | Parts


class Engine(Protocol):
    """Runs plans. Any number of threads may do so at once.

    An expression that fails for some row fails the run (`EvaluationFailed`), for a collection with a row left out is
    not the one that was asked for. Plans whose failures have been separated have none left.
    """

    def run(self, plan: Relation, inputs: Mapping[str, Batch]) -> pa.Table:
        """The collection that the plan means over the inputs, consolidated; raises EngineError."""
        ...

    def run_steps(
        self, steps: Steps, outputs: Sequence[str], inputs: Mapping[str, Batch], *, separated: bool = False
    ) -> dict[str, pa.Table]:
        """The collections of some of the steps, not consolidated; each step may read the inputs and those before it.

        `separated` says that no evaluation is left that fails for a row that it sees.
        """
        ...

    def check(self, steps: Steps, outputs: Sequence[str], *, separated: bool = False) -> None:
        """Raise NotSupported if the engine has no way to compute these steps; nothing is run."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Updates that storage selected, with the time in front, or else the rows that they add up to."""

    selection: Selection
    timed: bool
    width: int


@dataclass
class Early:
    """Outputs that are written before the others, and whom they are handed to as soon as they are, at most once."""

    names: Sequence[str]
    then: Callable[[dict[str, Staged | pa.Table]], None]
    done: bool = False

    def hand_over(self, written: dict[str, Staged | pa.Table]) -> None:
        """From here on they are not ours."""
        self.done = True
        self.then(written)


@runtime_checkable
class LargeEngine(Engine, Protocol):
    """An engine that also reads and writes stored collections by itself, however large they are."""

    def run_large(
        self,
        steps: Steps,
        inputs: Mapping[str, Stored],
        outputs: Mapping[str, Landing],
        collected: Sequence[str],
        *,
        separated: bool = False,
        early: Early | None = None,
    ) -> tuple[dict[str, Staged | pa.Table], dict[str, pa.Table]]:
        """Write timed steps to where they are to land, and give some others as tables; if it fails, nothing is left.

        An output that turns out small is given as a table of updates instead. What is handed over early is not given.
        """
        ...


class EngineError(EverviewError):
    """An engine could not give the result."""


class NotSupported(EngineError):
    """The engine has no way to compute this: trying again, or with other data, does not help."""


class TooComplex(NotSupported):
    """What the engine would be told is longer than there is room for."""


class PlanRefused(EngineError):
    """The engine does not accept what we made of the plan: a defect of ours."""


class EvaluationFailed(EngineError):
    """An expression of the plan failed for some row. Which one, and how, is known if `sqlstate` is."""

    def __init__(self, message: str = "an evaluation failed", *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class RunFailed(EngineError):
    """The engine accepted the plan and failed to run it; it changed nothing, and may be tried again."""


class ValueRefused(RunFailed):
    """A value among the data ended the run, though it should not: trying again does not help, another engine may."""
