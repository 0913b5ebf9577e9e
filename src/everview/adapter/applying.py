"""Applying a replacement: waiting until that is possible, then one step in which everything changes.

Applying lets the dataflow of the replacement go on with the target's collection (`compute.handover`), in the same
commit that changes the catalog: a crash leaves everything as before, or as after.

The target is held up only for the last part: it stays at its frontier u until the replacement has passed u, which it
has, or will have with its next tick. Before that both go on, and the larger part of their difference is computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from everview.adapter.catalog.items import Item
from everview.adapter.errors import OBJECT_NOT_READY, UNDEFINED_OBJECT, sql_error
from everview.adapter.interrupts import Interrupts
from everview.adapter.versions import history
from everview.compute.handover import Handover, handover_time
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Command, Drop
from everview.storage.errors import StorageError

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator


class Applying:
    """One APPLY under way."""

    def __init__(
        self,
        coordinator: Coordinator,
        target: Item,
        item: Item,
        interrupts: Interrupts,
        timeout_s: float | None,
        *,
        forward: bool,
    ) -> None:
        self._coordinator, self._environment = coordinator, coordinator.environment
        self._target, self._item = target, item
        self._interrupts = interrupts
        self._forward = forward
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def run(self, user: str) -> int:
        """Wait, and apply; gives the time from which on the new definition holds."""
        self._coordinator.timeline.advance(self._coordinator.timeline.upper)  # nobody may be writing
        self._wait(lambda: self._upper(self._item) > self._environment.shard(self._item.id).spec.initial)
        mark = self._upper(self._target)  # the target may be ahead, but for no more than a tick of the replacement
        self._wait(lambda: self._upper(self._item) >= mark)
        timeline = self._coordinator.timeline
        hold = timeline.hold(timeline.history)  # what both can be read at now, they can until this is over
        try:
            self._compare()
            while True:
                self._let_pass()
                with self._coordinator.catalog.lock:
                    self._check_there()
                    at = self._cut_over(user)
                    if at is not None:
                        return at
        except StorageError:
            self._check_there()  # dropped while it was read
            raise
        finally:
            self._coordinator.maintenance.limit(self._target.id, None)
            hold.release()

    def _compare(self) -> None:
        """The larger part of the difference, while both go on."""
        latest = min(self._upper(self._target), self._upper(self._item)) - 1
        sinces = [self._environment.frontiers(each.id).since.only for each in (self._target, self._item)]
        if latest >= max(sinces):
            self._coordinator.replacements.difference(self._item).at(latest)

    def _let_pass(self) -> None:
        """Hold the target where it is until the replacement has passed it."""
        coordinator, old = self._coordinator, self._target.id
        self._wait(lambda: self._time() is not None or self._is_stuck())
        if self._time() is None:
            raise self._stuck()
        coordinator.maintenance.limit(old, self._upper(self._target))
        self._wait(lambda: coordinator.maintenance.idle(old))
        at = self._time()  # later than before, if a tick of the target was under way
        if at is not None:  # else one of them is being dropped
            self._pass(at)

    def _pass(self, at: int) -> None:
        """Let the replacement go beyond where the target stays."""
        coordinator = self._coordinator
        # Nobody may be writing: then it is for us to move the time on. Who reads from here on reads at u or later.
        coordinator.timeline.advance(at)
        catalog = coordinator.catalog.state
        for root in catalog.roots(self._item.id) if self._item.id in catalog.items else ():
            coordinator.ask_source(root)
        self._wait(lambda: self._upper(self._item) > at)

    def _time(self) -> int | None:
        """From when on the new definition would hold."""
        return handover_time(self._environment, self._target.id, self._item.id, forward=self._forward)

    def _is_stuck(self) -> bool:
        return self._coordinator.maintenance.error(self._target.id) is not None

    def _stuck(self) -> SqlError:
        name = self._target.name
        error = self._coordinator.maintenance.error(self._target.id)
        return SqlError(
            OBJECT_NOT_READY,
            f'replacement "{self._item.name}" begins after the time at which "{name}" has stopped',
            detail=f"the view is complete up to {self._upper(self._target)}, and goes on no further: {error}",
            hint="WITH (FORWARD TIME) lets the view go on later; the times between then read as an error",
        )

    def _cut_over(self, user: str) -> int | None:
        """The one step; None if the two do not stand as they should, because of another who applies."""
        coordinator, old, new = self._coordinator, self._target.id, self._item.id
        items = coordinator.catalog.state.items
        target, item = items[old], items[new]
        coordinator.replacements.check_columns(target, item.name, item.columns)  # who uses which may have changed
        coordinator.maintenance.stop(old)
        coordinator.maintenance.stop(new)
        applied: list[int] = []

        def commit(handover: Handover) -> None:
            change = coordinator.catalog.change(user)
            change.drop_item(item)
            version = target.version + 1
            after = replace(
                target,
                query=item.query,
                depends=item.depends,
                pins=item.pins,
                columns=item.columns,
                version=version,
                current=new,
                history=history(coordinator.catalog.state, target),
            )
            details = {"rows_added": str(handover.rows_added), "rows_removed": str(handover.rows_removed)}
            details |= {"replacement": item.name, "replacement_id": new, "version": str(version)}
            change.put_item(after, "alter", applied_at=str(handover.at), **details)
            coordinator.catalog.commit(change, *handover.commands, *self._released(item))
            applied.append(handover.at)

        try:
            at = self._time()
            if at is not None and at < self._upper(item):
                difference = coordinator.replacements.difference(item)
                coordinator.maintenance.hand_over(old, new, difference, at, commit)
        finally:
            if not applied:
                coordinator.maintenance.restore(old)
                coordinator.maintenance.restore(new)
        if not applied:
            return None
        coordinator.replacements.gone(new)
        if item.types != target.types:
            coordinator.serve_again(coordinator.catalog.state.items[old])
        self._environment.wake()
        return applied[0]

    def _released(self, item: Item) -> list[Command]:
        assert item.reader is not None
        return [Drop(self._environment.present(item.id, item.reader))]

    # Waiting

    def _wait(self, ready: Callable[[], bool]) -> None:
        """Until `ready` holds; raises if it never will, or not in time."""
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        over = self._interrupts.wait(lambda: self._in_vain() is not None or ready(), left)
        self._check_there()
        error = self._in_vain()
        if error is not None and not ready():
            raise error
        if not over:
            raise SqlError(
                OBJECT_NOT_READY,
                f'replacement "{self._item.name}" could not be applied to "{self._target.name}"'
                f" within {self._timeout_s:g} s",
                detail=f"it is complete up to {self._upper(self._item)}, the view up to {self._upper(self._target)}",
                hint="mz_internal.mz_replacements shows how far it is; nothing has changed",
            )

    def _upper(self, item: Item) -> int:
        upper = self._environment.frontiers(item.id).upper
        return 0 if upper.empty else upper.only

    def _in_vain(self) -> SqlError | None:
        """Why waiting is in vain, if it is."""
        items = self._coordinator.catalog.state.items
        for each in (self._target, self._item):
            if each.id not in items:
                return self._dropped(each)
        error = self._coordinator.maintenance.error(self._item.id)
        return None if error is None else sql_error(error)

    def _check_there(self) -> None:
        items = self._coordinator.catalog.state.items
        for each in (self._target, self._item):
            if each.id not in items:
                raise self._dropped(each)

    def _dropped(self, gone: Item) -> SqlError:
        what = "replacement" if gone is self._item else "view"
        return SqlError(
            UNDEFINED_OBJECT,
            f'replacement "{self._item.name}" cannot be applied to "{self._target.name}" any more',
            detail=f'{what} "{gone.name}" was dropped, or another statement applied the replacement',
        )
