"""Applying replacements: waiting until that is possible, then one step in which everything changes.

Applying lets the dataflow of a replacement go on with the target's collection (`compute.handover`), in the same commit
that changes the catalog: a crash leaves everything as before, or as after. Several are applied at one time, in one
commit.

The targets are held up only for the last part. They stay at one frontier u until every replacement has passed u, which
it has, or will have with its next tick. Before that all go on, and the larger part of their differences is computed. A
replacement that reads a target of the set, directly or by views between, comes to u and no further, for what it reads
stands there. Its tick over u is part of the commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from everview.adapter.catalog.items import Item, MaterializedView
from everview.adapter.dependency_cycles import check_acyclic
from everview.adapter.errors import OBJECT_NOT_READY, UNDEFINED_OBJECT, sql_error
from everview.adapter.interrupts import Interrupts
from everview.adapter.replacement_guards import Guards, check, check_errors, check_rows
from everview.adapter.retention import follow_history
from everview.adapter.versions import history
from everview.compute.difference import counts
from everview.compute.handover import Handover, Handovers, handover_time, is_met, read_through
from everview.compute.sql.errors import SqlError
from everview.storage.contract import Command, Drop, GlobalId
from everview.storage.errors import StorageError

if TYPE_CHECKING:
    from everview.adapter.catalog.store import Change
    from everview.adapter.coordinator import Coordinator


@dataclass(frozen=True, slots=True)
class Pair:
    """A view, and the replacement that is to be applied to it."""

    target: MaterializedView
    item: MaterializedView
    guards: Guards = field(default_factory=Guards)

    def now(self, items: Mapping[GlobalId, Item]) -> Pair:
        target, item = items[self.target.id], items[self.item.id]
        assert isinstance(target, MaterializedView) and isinstance(item, MaterializedView)
        return replace(self, target=target, item=item)


class Cutover:
    """One APPLY under way, of one replacement or of several in one step."""

    def __init__(
        self, coordinator: Coordinator, pairs: Sequence[Pair], interrupts: Interrupts, timeout_s: float | None
    ) -> None:
        self._coordinator, self._environment = coordinator, coordinator.environment
        self._pairs = tuple(pairs)
        self._interrupts = interrupts
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._checked = -1  # the version of the catalog in which there was no cycle

    def run(self, user: str) -> int:
        """Wait, and apply; gives the time from which on the new definitions hold."""
        self._check()
        timeline = self._coordinator.timelines.of([self._pairs[0].target.id])
        self._close(self._coordinator.timeline.upper)
        for each in self._pairs:
            self._wait_for_hydration(each)
        chained, between = self._chains()
        own = {id for each in self._pairs for id in (each.target.id, each.item.id)}
        hold = timeline.hold(timeline.history, own | between)  # what can be read of these now, can until this is over
        try:
            for each in self._pairs:
                self._compare(each, guarded=each.item.id not in chained)
            while True:
                at = self._hold_up()
                with self._coordinator.catalog.lock:
                    self._check()
                    if self._cut_over(user, at):
                        return at
        except StorageError:
            self._check_locked()  # dropped while it was read
            raise
        finally:
            for each in self._pairs:
                self._coordinator.maintenance.limit(each.target.id, None)
            hold.release()

    # Before anything is held up

    def _wait_for_hydration(self, pair: Pair) -> None:
        """Until the replacement is about where its target is."""
        name = pair.item.name
        initial = self._environment.shard(pair.item.id).spec.initial
        self._wait(lambda: self._upper(pair.item.id) > initial, lambda: f'replacement "{name}" is not hydrated yet')
        mark = self._upper(pair.target.id)  # the target may be ahead, but for no more than a tick of the replacement
        self._wait(lambda: self._upper(pair.item.id) >= mark, lambda: self._behind([pair.item.id], mark))

    def _chains(self) -> tuple[set[GlobalId], set[GlobalId]]:
        """The replacements that read a target of the set, and the views between by which they do."""
        targets = {each.target.id for each in self._pairs}
        return read_through(targets, [each.item.id for each in self._pairs], self._coordinator.maintenance.inputs)

    def _compare(self, pair: Pair, *, guarded: bool) -> None:
        """Compute the larger part of the difference while both go on, and look at it.

        What a replacement of a chain is and changes is known at the end only: it reads another of the set.
        """
        latest = min(self._upper(pair.target.id), self._upper(pair.item.id)) - 1
        names = pair.item.name, pair.target.name
        if guarded:
            check_errors(pair.guards, *names, self._coordinator.replacements.failure(pair.item.id))
        sinces = [self._environment.frontiers(each.id).since for each in (pair.target, pair.item)]
        if any(each.empty for each in sinces):
            self._check_locked()
        elif latest >= max(each.only for each in sinces):
            table = self._coordinator.replacements.difference(pair.item).at(latest)
            if guarded:
                check_rows(pair.guards, *names, *counts(table))

    # Holding the targets up

    def _hold_up(self) -> int:
        """Hold all targets at one time until the replacements have passed it; gives the time."""
        maintenance = self._coordinator.maintenance
        self._wait(
            lambda: all(self._time(each) is not None or self._is_stuck(each) for each in self._pairs),
            lambda: "\n".join(self._gap(each) for each in self._pairs if self._time(each) is None),
        )
        at = 0
        while at < (later := self._common_time()):  # later than before, if a tick of a target was under way
            at = later
            for each in self._pairs:
                maintenance.limit(each.target.id, at)
            # Who reads from here on reads at u or later.
            self._close(at)
            self._ask_sources()
            self._wait(
                lambda: all(self._in_place(each, later) or self._is_stuck(each) for each in self._pairs),
                lambda: self._behind([each.target.id for each in self._pairs], later),
            )
            for each in self._pairs:
                if not self._in_place(each, later):
                    raise self._stuck(each)
        chained, between = self._chains()
        needed = dict.fromkeys(between, at)
        needed |= {each.item.id: at + (each.item.id not in chained) for each in self._pairs}
        # The targets stand still meanwhile, so what goes on no further is not waited for.
        self._wait(
            lambda: (
                self._failing(needed) is not None
                or (
                    all(self._upper(id) >= bound for id, bound in needed.items())
                    # Here, for a tick that writes state is long, and the lock of the catalog is everybody's.
                    and not any(maintenance.owes(each.item.id) for each in self._pairs)
                )
            ),
            lambda: self._behind(list(needed), at),
        )
        failing = self._failing(needed)
        if failing is not None:
            names = " and ".join(f'"{each.item.name}"' for each in self._pairs)
            raise SqlError(
                OBJECT_NOT_READY,
                f"{names} cannot be applied because {self._shown(failing)} goes on no further",
                detail=f"it is complete up to {self._upper(failing)}: {maintenance.error(failing)}",
                hint="nothing has changed",
            )
        return at

    def _failing(self, needed: Mapping[GlobalId, int]) -> GlobalId | None:
        """What fails of all that has to come to a time, and of what it is made from."""
        maintenance, seen, waiting = self._coordinator.maintenance, set[GlobalId](), list(needed.items())
        while waiting:
            id, bound = waiting.pop()
            if id in seen or self._upper(id) >= bound:
                continue
            if maintenance.error(id) is not None:
                return id
            seen.add(id)
            waiting += [(each, bound) for each in maintenance.inputs(id)]
        return None

    def _close(self, at: int) -> None:
        """Move the time on beyond `at`, for nobody may be writing; a change stream is waited for."""
        own = self._coordinator.timeline
        if self._coordinator.timelines.of([self._pairs[0].target.id]) is own:
            own.advance(at)

    def _common_time(self) -> int:
        """From when on all new definitions could hold."""
        times = [self._time(each) for each in self._pairs]
        for pair, found in zip(self._pairs, times, strict=True):
            if found is None:
                self._check_locked()
                if self._is_stuck(pair):
                    raise self._stuck(pair)
        return max((each for each in times if each is not None), default=0)

    def _in_place(self, pair: Pair, at: int) -> bool:
        """Whether the target stands where it is to be handed over, and nothing of it is under way."""
        if not self._coordinator.maintenance.idle(pair.target.id):
            return False
        return self._upper(pair.target.id) >= at or self._may_leave_out(pair, at)

    def _may_leave_out(self, pair: Pair, at: int) -> bool:
        """Whether the times from where the target stands to `at` need not be known."""
        if is_met(self._environment, pair.target.id, at):
            return True
        alone = handover_time(self._environment, pair.target.id, pair.item.id, forward=False)
        return pair.guards.forward and (alone is None or self._is_stuck(pair))

    def _ask_sources(self) -> None:
        catalog = self._coordinator.catalog.state
        known = [each.id for pair in self._pairs for each in (pair.target, pair.item) if each.id in catalog.items]
        for root in {root for id in known for root in catalog.roots(id)}:
            self._coordinator.ask_source(root)

    def _time(self, pair: Pair) -> int | None:
        """From when on the new definition could hold, were it alone."""
        return handover_time(self._environment, pair.target.id, pair.item.id, forward=pair.guards.forward)

    def _is_stuck(self, pair: Pair) -> bool:
        return self._holding_up(pair) is not None

    def _holding_up(self, pair: Pair) -> GlobalId | None:
        """The target, or what it is made from, if that goes on no further."""
        return self._failing({pair.target.id: self._upper(pair.target.id) + 1})

    def _stuck(self, pair: Pair) -> SqlError:
        name, failing = pair.target.name, self._holding_up(pair)
        why = "" if failing is None else f": {self._coordinator.maintenance.error(failing)}"
        if failing is not None and failing != pair.target.id:
            why = f": {self._shown(failing)} fails{why}"
        return SqlError(
            OBJECT_NOT_READY,
            f'replacement "{pair.item.name}" begins after the time at which "{name}" has stopped',
            detail=f"the view is complete up to {self._upper(pair.target.id)}, and goes on no further{why}",
            hint="WITH (FORWARD TIME) lets the view go on later; the times between then read as an error",
        )

    # The one step

    def _cut_over(self, user: str, at: int) -> bool:
        """The one step; false if they do not stand as they should, because of another who applies."""
        coordinator, maintenance = self._coordinator, self._coordinator.maintenance
        items = coordinator.catalog.state.items
        pairs = [each.now(items) for each in self._pairs]
        for each in pairs:  # who uses which columns may have changed
            coordinator.replacements.check_columns(each.target, each.item.name, each.item.columns)
        chained, between = self._chains()
        stopped = [id for each in pairs for id in (each.target.id, each.item.id)] + sorted(between)
        for id in stopped:
            maintenance.stop(id)
        done = False

        def commit(handovers: Handovers) -> None:
            nonlocal done
            by_target = {each.dataflow.id: each for each in handovers.moved}
            change = coordinator.catalog.change(user)
            commands: list[Command] = list(handovers.commands)
            retained = False
            for each in pairs:
                handover = by_target[each.target.id]
                check(each.guards, each.item.name, each.target.name, handover)
                self._change(change, each, handover)
                assert each.item.reader is not None
                commands.append(Drop(self._environment.present(each.item.id, each.item.reader)))
                retained = retained or each.item.retain_ms is not None
            timeline = coordinator.timelines.of([pairs[0].target.id])
            with timeline.still() if retained else nullcontext():
                for each in pairs:
                    if each.item.retain_ms is not None:
                        commands.append(follow_history(self._environment, each.target, each.item.retain_ms))
                coordinator.catalog.commit(change, *commands)
            done = True

        try:
            if self._stand_right(pairs, between, chained, at):
                differences = [coordinator.replacements.difference(each.item) for each in pairs]
                maintenance.hand_over(differences, sorted(between), at, commit)
        finally:
            if not done:
                for id in stopped:
                    maintenance.restore(id)
        if done:
            for each in pairs:
                coordinator.replacements.gone(each.item.id)
                if (each.item.types, each.item.places) != (each.target.types, each.target.places):
                    coordinator.serve_again(coordinator.catalog.state.items[each.target.id])
            self._environment.wake()
        return done

    def _stand_right(self, pairs: Sequence[Pair], between: set[GlobalId], chained: set[GlobalId], at: int) -> bool:
        """Whether all stand where the step expects them."""
        for each in pairs:
            upper = self._upper(each.target.id)
            if upper > at or (upper < at and not self._may_leave_out(each, at)):
                return False
        if any(self._environment.frontiers(each.item.id).since.only > at for each in pairs):
            return False
        news = [each.item.id for each in pairs]
        return all(self._upper(id) == at if id in chained else self._upper(id) > at for id in news) and all(
            self._upper(id) == at for id in between
        )

    def _change(self, change: Change, pair: Pair, handover: Handover) -> None:
        """Enter the new definition in the catalog."""
        target, item = pair.target, pair.item
        version = target.version + 1
        after = replace(
            target,
            query=item.query,
            depends=item.depends,
            pins=item.pins,
            columns=item.columns,
            layout=item.layout,
            version=version,
            current=item.id,
            history=history(self._coordinator.catalog.state, target),
            retain_ms=target.retain_ms if item.retain_ms is None else item.retain_ms,
        )
        details = {"rows_added": str(handover.rows_added), "rows_removed": str(handover.rows_removed)}
        details |= {"replacement": item.name, "replacement_id": item.id, "version": str(version)}
        others = [each.item.name for each in self._pairs if each.item.id != item.id]
        details |= {"together_with": ", ".join(others)} if others else {}
        details |= {"error": handover.error[1]} if handover.error is not None else {}
        change.drop_item(item)
        change.alter(after, applied_at=str(handover.at), **details)

    # Waiting

    def _wait(self, ready: Callable[[], bool], waiting_for: Callable[[], str]) -> None:
        """Until `ready` holds; raises if it never will, or not in time."""
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        over = self._interrupts.wait(lambda: self._in_vain() is not None or ready(), left)
        self._check()
        error = self._in_vain()
        if error is not None and not ready():
            raise error
        if not over:
            names = ", ".join(f'"{each.item.name}"' for each in self._pairs)
            one = f'replacement {names} could not be applied to "{self._pairs[0].target.name}"'
            raise SqlError(
                OBJECT_NOT_READY,
                f"{one if len(self._pairs) == 1 else f'replacements {names} could not be applied'}"
                f" within {self._timeout_s:g} s",
                detail=waiting_for(),
                hint="nothing has changed; mz_internal.mz_frontiers shows how far all are",
            )

    def _upper(self, id: GlobalId) -> int:
        upper = self._environment.frontiers(id).upper
        return 0 if upper.empty else upper.only

    def _behind(self, ids: Sequence[GlobalId], at: int) -> str:
        """Which of these are not beyond a time, and what they wait for in turn."""
        lines = []
        for id in ids:
            if self._upper(id) > at:
                continue
            line = f"{self._shown(id)} is complete up to {self._upper(id)} and has to come to {at}"
            if self._coordinator.maintenance.error(id) is not None:
                line += f": {self._coordinator.maintenance.error(id)}"
            elif late := [each for each in self._coordinator.maintenance.inputs(id) if self._upper(each) <= at]:
                line += ", and waits for " + ", ".join(f"{self._shown(each)} at {self._upper(each)}" for each in late)
            elif not self._coordinator.maintenance.idle(id):
                line += ", which is being computed"
            lines.append(line)
        return "\n".join(lines) or "another statement applies a replacement"

    def _gap(self, pair: Pair) -> str:
        since = self._environment.frontiers(pair.item.id).since
        begins = "" if since.empty else f", and replacement {self._shown(pair.item.id)} begins at {since.only}"
        return f"{self._shown(pair.target.id)} is complete up to {self._upper(pair.target.id)}{begins}"

    def _shown(self, id: GlobalId) -> str:
        item = self._coordinator.catalog.state.items.get(id)
        return id if item is None else f'{item.kind} "{item.name}"'

    def _in_vain(self) -> SqlError | None:
        """Why waiting is in vain, if it is."""
        try:
            self._check()  # another who applies may have closed a cycle
        except SqlError as refused:
            return refused
        for pair in self._pairs:
            error = self._coordinator.maintenance.error(pair.item.id)
            if error is not None:
                return sql_error(error)
            if self._environment.frontiers(pair.target.id).upper.empty:
                message = f'replacement "{pair.item.name}" cannot be applied to "{pair.target.name}" any more'
                return SqlError(OBJECT_NOT_READY, message, detail="what the view is made from has ended")
        return None

    def _check(self) -> None:
        """Raise if something is no longer there, or if there would be a cycle by now."""
        catalog = self._coordinator.catalog.state
        for pair in self._pairs:
            for gone in (each for each in (pair.target, pair.item) if each.id not in catalog.items):
                what = "replacement" if gone is pair.item else "view"
                raise SqlError(
                    UNDEFINED_OBJECT,
                    f'replacement "{pair.item.name}" cannot be applied to "{pair.target.name}" any more',
                    detail=f'{what} "{gone.name}" was dropped, or another statement applied the replacement',
                )
        if catalog.version != self._checked:
            check_acyclic(catalog, {each.target.id: catalog.items[each.item.id] for each in self._pairs})
            self._checked = catalog.version

    def _check_locked(self) -> None:
        """The same after whoever has just applied or dropped something, and is about to say so in the catalog."""
        with self._coordinator.catalog.lock:
            self._check()
