"""Endpoints without transactions across their files: what is staged is put in place after the recovery log has it.

The recovery log is authoritative. A transaction makes files durable where no reader looks, and its state names them and
has the transaction's number. Once the log has that, they are put in place. A crash may have whoever has the keys then
ask for it again, so it is done only once, however often it is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from everview.flow.drivers.contract import Driver, Guarantee, Pattern, Started, Transactor
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import DriverState, StateUpdate


class StagedDriver(Driver):
    """An endpoint that files are staged for."""

    pattern = Pattern.IDEMPOTENT_APPLY
    guarantee = Guarantee.EXACTLY_ONCE
    interval_ms = 1000


class StagedTransactor(Transactor):
    """One range of keys."""

    def __init__(self, range: KeyRange, state: DriverState) -> None:
        super().__init__()
        self._range = range
        # By range: also by those that this one came from. Their numbers live on in this one's.
        self._pending: dict[str, Mapping[str, Any]] = dict(state)
        self.number = max((int(each["number"]) for each in state.values()), default=0)  # of the last transaction

    @abstractmethod
    def staged_files(self) -> Any:
        """Make the files of transaction `number` durable; gives what to know of them, empty if there are none."""

    @abstractmethod
    def put_in_place(self, range: str, number: int, files: Any) -> None:
        """Let readers see the files of a transaction, unless they do already."""

    def all_in_place(self) -> None:
        """All files are in place: make that durable."""

    def start_commit(self, checkpoint: str) -> Started:
        self.number += 1
        # What was pending before is in place by now: Acknowledge came before this transaction's flush.
        self._pending = {str(self._range): {"number": self.number, "files": self.staged_files()}}
        return Started(StateUpdate(self._pending, merge_patch=False))

    def acknowledge(self) -> StateUpdate | None:
        due = {range: each for range, each in self._pending.items() if each.get("files")}
        if not due:
            return None
        for range, each in due.items():
            self.put_in_place(range, int(each["number"]), each["files"])
        self.all_in_place()
        mine = str(self._range)
        done: dict[str, Any] = {range: None for range in self._pending if range != mine}
        self._pending = {mine: {"number": self.number}}
        return StateUpdate({**done, mine: {"number": self.number, "files": None}})
