"""Who delivered last: lineages of processes, and what another copy of the environment has written.

A lineage names a process, a signature names it with how often everything was delivered anew. Checkpoints carry
signatures. An endpoint that keeps checkpoints has them with its rows; at one that does not, drivers keep a `mark`
beside what they deliver: the signature of the last transaction and how far that process has come. An `Owner` is what a
process knows of itself and of those before it, and judges marks and checkpoints by that.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.flow.checkpoint import Checkpoint
from everview.flow.errors import TakenOver
from everview.flow.keyrange import WHOLE


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that delivers a materialization."""

    name: str
    lineage: str
    generation: int  # how often everything was delivered anew
    known: frozenset[str]  # lineages of this environment that may have written last
    reached: int  # how far the collections, or what was delivered of them, were when this process began

    def check(self, found: Checkpoint | None) -> None:
        """TakenOver if another copy of the environment wrote this checkpoint or mark."""
        if found is None or is_void(found, self.generation):
            return
        lineages = {each.partition(".")[0] for each in found.lineages}
        strangers = sorted(lineages - self.known)
        ours = lineages and lineages <= {self.lineage}
        if not strangers and (ours or found.highest <= self.reached):
            return
        why = f"its checkpoint was written by {', '.join(strangers)}, which is not known here"
        if not strangers:
            why = f"it is at {found.highest}, and the collections were at {self.reached} when this process began"
        raise taken_over(self.name, why)

    def begins(self, found: Checkpoint | None) -> bool:
        """Whether this process has not signed yet."""
        return found is None or found.lineages != {signature(self.lineage, self.generation)}


def taken_over(name: str, why: str) -> TakenOver:
    return TakenOver(
        f"another copy of the environment has delivered {name} since",
        detail=why,
        hint="drop one of the two sinks, or deliver everything anew with ALTER SINK … BACKFILL",
    )


def mark_after(before: Checkpoint | None, signed: Checkpoint) -> Checkpoint:
    """The mark of an endpoint after a transaction, which a process signed. Other ranges may be further."""
    same = before is not None and before.lineages == signed.lineages
    highest = max(before.highest, signed.highest) if same and before is not None else signed.highest
    return Checkpoint(((WHOLE, highest),), signed.lineages)


def signature(lineage: str, generation: int) -> str:
    """A lineage with its generation, which is left out if it is the first."""
    return f"{lineage}.{generation}" if generation and lineage else lineage


def is_void(found: Checkpoint, generation: int) -> bool:
    """Whether a checkpoint was written before everything was delivered anew."""
    return generation > 0 and not all(
        int(each.partition(".")[2] or 0) >= generation for each in found.lineages or ("",)
    )
