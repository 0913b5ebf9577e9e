"""Endpoints without transactions across their files: what is staged is put in place after the recovery log has it.

The recovery log is authoritative. A transaction makes files durable where no reader looks, and its state names them and
has the transaction's number. Once the log has that, they are put in place. A crash may have whoever has the keys then
ask for it again, so it is done only once, however often it is asked for.

Each place has a mark, which says who delivered last, and the last number of each range with who put it there. Both
change with what is delivered. So a number that is there already is a repeat only if the same process has staged it; and
a process finds what another copy of the environment has delivered, also between two transactions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everview.flow.checkpoint import Checkpoint
from everview.flow.contract import Spec
from everview.flow.drivers.contract import Driver, Guarantee, Pattern, Started, Transactor
from everview.flow.keyrange import KeyRange
from everview.flow.lineage import Owner, mark_after, taken_over
from everview.flow.protocol import DriverState, Open, StateUpdate


class StagedDriver(Driver):
    """An endpoint that files are staged for."""

    pattern = Pattern.IDEMPOTENT_APPLY
    guarantee = Guarantee.EXACTLY_ONCE
    interval_ms = 1000

    @abstractmethod
    def open(self, spec: Spec, range: KeyRange, state: DriverState, owner: Owner | None = None) -> Transactor: ...

    def opened(self, request: Open) -> Transactor:
        return self.open(request.spec, request.range, request.state, request.owner)


@dataclass(frozen=True)
class Ledger:
    """What a place knows of those who deliver there: the mark, and of a range the last number and its lineage."""

    mark: Checkpoint | None = None
    number: int = 0
    lineage: str | None = None  # None if it was put there by a version that noted none

    def to_note(
        self, name: str, owner: Owner | None, number: int, signed: Checkpoint | None, *, files: bool
    ) -> Ledger | None:
        """The ledger once a transaction is in place, with or without files; None if there is nothing to do.

        TakenOver if another copy of the environment has delivered here.
        """
        if not files and signed is not None and self.mark is not None and self.mark.lineages == signed.lineages:
            return None
        lineage = None if signed is None else min(signed.lineages, default="").partition(".")[0]
        if self.number == number and (None in (lineage, self.lineage) or lineage == self.lineage):
            return None
        if self.number >= number:
            by = f" by {self.lineage}" if self.lineage else ""
            raise taken_over(name, f"transaction {self.number} is in place{by}, and {number} is due")
        if owner is not None:
            owner.check(self.mark)
        return Ledger(self.mark if signed is None else mark_after(self.mark, signed), number, lineage)


class StagedTransactor(Transactor):
    """One range of keys."""

    def __init__(self, range: KeyRange, state: DriverState, owner: Owner | None = None) -> None:
        super().__init__()
        self._range, self._owner = range, owner
        self._signing = self._signed = False  # whether this conversation signs a transaction, and whether it has
        # By range: also by those that this one came from. Their numbers live on in this one's.
        self._pending: dict[str, Mapping[str, Any]] = dict(state)
        self.number = max((int(each["number"]) for each in state.values()), default=0)  # of the last transaction

    @abstractmethod
    def staged_files(self) -> Any:
        """Make the files of transaction `number` durable; gives what to know of them, empty if there are none."""

    @abstractmethod
    def put_in_place(self, range: str, number: int, files: Any, signed: Checkpoint | None) -> None:
        """Let readers see the files of a transaction, if there are any, unless they do already, and sign it."""

    def all_in_place(self) -> None:
        """All files are in place: make that durable."""

    def start_commit(self, checkpoint: str) -> Started:
        self.number += 1
        mine: dict[str, Any] = {"number": self.number, "files": self.staged_files()}
        if self._owner is not None and (mine["files"] or not self._signed):
            mine["by"] = checkpoint
            self._signing = True
        # What was pending before is in place by now: Acknowledge came before this transaction's flush.
        self._pending = {str(self._range): mine}
        return Started(StateUpdate(self._pending, merge_patch=False))

    def acknowledge(self) -> StateUpdate | None:
        due = {range: each for range, each in self._pending.items() if each.get("files") or each.get("by")}
        if not due:
            return None
        mine = str(self._range)
        for range, each in due.items():
            signed = None if each.get("by") is None else Checkpoint.decode(each["by"])
            self.put_in_place(range, int(each["number"]), each.get("files"), signed)
        self.all_in_place()
        self._signed = self._signing
        done: dict[str, Any] = {range: None for range in self._pending if range != mine}
        self._pending = {mine: {"number": self.number}}
        return StateUpdate({**done, mine: {"number": self.number, "files": None, "by": None}})
