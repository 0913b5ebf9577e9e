"""What compute promises: a plan over stored collections is itself a stored collection, kept exact as they change.

`install` is `MaintainView` of the formalism. It is given a plan and capabilities to read its inputs at some time, and
makes the collection `id` from that time on. The promise is of exactness: at every time from its start up to its upper,
the collection holds what the plan means over the inputs at that time, and where some row cannot be computed, the
collection of errors beside it says so at exactly those times. The output, all state and how far the inputs were taken
in are committed together, so a process that ends at any moment goes on, by `resume`, as if it had not.

Cost follows what changes. What is larger than a process can hold is computed by an engine that reads and writes stored
collections itself: see `engine/contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from everview.compute.difference import Difference
from everview.compute.engine.progress import Hydration
from everview.compute.handover import Handovers
from everview.compute.ir.relation import Relation
from everview.compute.shared_arrangements import SharedStatus
from everview.errors import EverviewError
from everview.storage.contract import Command, GlobalId, ReadCapability


class Maintenance(Protocol):
    """Maintains views."""

    def install(self, id: GlobalId, plan: Relation, inputs: Sequence[ReadCapability]) -> ReadCapability:
        """Make the collection `id` and begin to keep it; the capability is the caller's, the inputs stay theirs."""
        ...

    def resume(self, id: GlobalId, plan: Relation) -> None:
        """Go on keeping a view that was installed before this process began."""
        ...

    def stop(self, id: GlobalId) -> None:
        """Keep a view no longer: when this returns, nothing of it moves any more."""
        ...

    def abandon(self, id: GlobalId) -> None:
        """Keep a view no longer that is about to be released: what runs is ended, and not waited for."""
        ...

    def restore(self, id: GlobalId) -> None:
        """Go on keeping a view that was stopped."""
        ...

    def release(self, id: GlobalId) -> None:
        """Drop everything that a stopped or abandoned view held; nothing of it is committed from here on."""
        ...

    def limit(self, id: GlobalId, upper: int | None) -> None:
        """Let a view go no further than this for a while; None: as far as it can."""
        ...

    def idle(self, id: GlobalId) -> bool:
        """Whether nothing of the view is being computed."""
        ...

    def owes(self, id: GlobalId) -> bool:
        """Whether state of the view is still being written, which may take long, though its rows are there."""
        ...

    def inputs(self, id: GlobalId) -> Sequence[GlobalId]:
        """The collections that a view reads; none if it is not maintained."""
        ...

    def hand_over(
        self,
        differences: Sequence[Difference],
        between: Sequence[GlobalId],
        at: int,
        commit: Callable[[Handovers], object],
    ) -> None:
        """Let what keeps one view of each difference go on keeping the other, from time `at`.

        `between` are the views by which one of the set reads another. All were stopped, and still are if this fails.
        """
        ...

    def keepers(self) -> Mapping[GlobalId, GlobalId]:
        """The ids under which the state of handed-over views is kept, and the views that they belong to."""
        ...

    def tokens(self) -> set[str]:
        """The tokens of all capabilities that the views live by."""
        ...

    def leftovers(self) -> Sequence[Command]:
        """The commands that forget what no view needs, once all views have been resumed."""
        ...

    def unread(self, ids: Sequence[GlobalId]) -> Sequence[GlobalId]:
        """Which of these collections are shared arrangements that no view reads any more."""
        ...

    def shared(self) -> Sequence[SharedStatus]:
        """The arrangements that views share, and the views that read them."""
        ...

    def error(self, id: GlobalId) -> EverviewError | None:
        """Why the view cannot go on, if it cannot."""
        ...

    def dues(self) -> Mapping[GlobalId, int]:
        """For each view in which rows come and go by themselves: when that is next."""
        ...

    def settled(self, id: GlobalId, time: int) -> bool:
        """Whether nothing of the view comes or goes by itself up to and including `time`."""
        ...

    def timeless(self, id: GlobalId) -> bool:
        """Whether rows of the view never come or go by themselves; false as well if it is not being kept now."""
        ...

    def hydration(self, id: GlobalId) -> Hydration | None:
        """How far the hydration of a view is; None if the view is not hydrating."""
        ...

    def explain(self, id: GlobalId) -> str | None:
        """How a view is maintained, with the sizes of its state; None if nothing maintains it."""
        ...

    @property
    def changes(self) -> int:
        """A number that grows whenever `dues` may have changed."""
        ...

    def close(self) -> None:
        """Stop."""
        ...
