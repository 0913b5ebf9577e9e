"""Shared arrangements: kept once, each by a dataflow of its own, as long as a view reads them.

A shared arrangement is a collection like the output of a view: it follows its collection, has frontiers of its own, and
holds at every time what the collection does. Which views read it is noted with these views, in the commits that make,
replace and drop them, and nowhere else; so no count can be wrong after a crash. Whoever makes a view takes an
arrangement that holds all that the view reads, from its first time on, or makes one. Who drops the last view that reads
one drops it, in the same commit, and what is left after a crash goes when the environment is opened.

An arrangement is readable from just before the least upper of the views that read it, and as far back as its
collection was when it was made, so that a new view can start where it would have started with state of its own.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa

from everview.compute.arranged import KEPT_SHARE_MIN, Arranged, Reading, Wanted, wanted_of
from everview.compute.capabilities import Tokens, held_by, held_of, note_of, starting_time, with_errors
from everview.compute.commit_rounds import leave_round
from everview.compute.dataflow import Dataflow
from everview.compute.engine.contract import Engine
from everview.compute.stored_state import StoredState, schema_of
from everview.compute.view import TickChanges, View
from everview.errors import EverviewError
from everview.storage import contract
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import Corruption, NotReadable, UnknownId
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF

PREFIX = "a"  # of the ids of shared arrangements
_NOTES = "arrangement/"
_SHARED = re.compile(PREFIX + "[0-9]+")


class ArrangementFlow(Dataflow):
    """The dataflow of a shared arrangement: some columns of a collection, as they are."""

    def __init__(
        self,
        environment: Environment,
        id: GlobalId,
        arranged: Arranged,
        held: Tokens,
        engine: Engine,
        *,
        history: str | None,
        durable: Callable[[ArrangementFlow, Sequence[contract.Command], int], None],
    ) -> None:
        """`history` is the token of what keeps its past; `durable` commits a tick, and lets go of what nobody reads."""
        super().__init__(environment, id, View.of(arranged.plan), held, engine)
        self.arranged, self.history, self._durable = arranged, history, durable

    def _changes_of(
        self, deltas: Mapping[GlobalId, pa.Table], state: StoredState, within: tuple[int, int], *, first: bool
    ) -> TickChanges:
        """Columns are taken as they are, which no engine is needed for."""
        table = deltas[self.arranged.collection]
        taken = table.select([0, *(column + 1 for column in self.arranged.columns), table.num_columns - 1])
        names = [*(f"c{place}" for place in range(len(self.arranged.columns) + 1)), DIFF]
        return TickChanges(taken.rename_columns(names), {})

    def _make_durable(self, commands: Sequence[contract.Command], upper: int) -> None:
        self._durable(self, commands, upper)

    def _needed(self, upper: int) -> Antichain[int]:
        """It is made from changes alone, so the past of the collection is not needed for what can be read of it."""
        return Antichain(upper - 1)

    def let_go(self, to: int) -> list[contract.Command]:
        """The commands that let go of times before `to`."""
        return self._downgraded(self._reader(self.id), Antichain(max(0, to)))

    def hold(self, held: Tokens) -> None:
        """Live by these capabilities from now on: another one keeps what its users read."""
        self._held = held

    def held_tokens(self) -> list[tuple[GlobalId, str]]:
        return [*super().held_tokens(), *([] if self.history is None else [(self.id, self.history)])]


@dataclass
class _Shared:
    """A shared arrangement and its users: for each the dataflow, or the time at which it will start."""

    flow: ArrangementFlow
    users: dict[GlobalId, Dataflow | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SharedStatus:
    """What a shared arrangement holds, and which views read it."""

    id: GlobalId
    arranged: Arranged
    users: tuple[GlobalId, ...]
    records: int  # updates
    size_bytes: int


class SharedArrangements:
    """The shared arrangements of one environment."""

    def __init__(
        self,
        environment: Environment,
        engine: Engine,
        keep: Callable[[ArrangementFlow], None],
        end: Callable[[GlobalId], object],
        pause: Callable[[GlobalId], object],
    ) -> None:
        """`keep` keeps a dataflow ticking, `end` asks it to end, and `pause` returns when it does not tick.

        The last two give it if it was kept.
        """
        self._environment, self._engine = environment, engine
        self._keep, self._end, self._pause = keep, end, pause
        self._known: dict[GlobalId, _Shared] = {}
        self._unseen: set[GlobalId] = set()  # users that are noted, and have not gone on yet
        self._lock = threading.RLock()

    @contextmanager
    def serving(
        self, id: GlobalId, view: View, inputs: Sequence[contract.ReadCapability]
    ) -> Iterator[tuple[dict[str, Reading], Callable[[Dataflow], None]]]:
        """How a view that is being made reads what is shared; what it takes stays readable while inside.

        Inside, whoever has made the dataflow says so; otherwise it reads nothing of it afterwards.
        """
        readings: dict[str, Reading] = {}
        made: list[Dataflow] = []
        try:
            with self._lock:
                start = starting_time(with_errors(self._environment, inputs))
                readers = {each.id: each for each in inputs}
                for arrangement, wanted in wanted_of(view.program, view.careful_program):
                    if wanted.collection in readers:
                        found = self._serving(id, wanted, readers[wanted.collection], start)
                        if found is not None:
                            readings[arrangement.name] = found
            yield readings, made.append
        finally:
            if made:
                self.used_by(made[0])
            else:
                self.leave(id)

    def _serving(self, user: GlobalId, wanted: Wanted, reader: contract.ReadCapability, start: int) -> Reading | None:
        """How to read what is wanted from `start` on; None if it is better kept by itself."""
        if wanted.predicates and not self._most_pass(wanted, start):
            return None
        alike = [
            each
            for each in self._known.values()
            if (each.flow.arranged.collection, each.flow.arranged.key) == (wanted.collection, wanted.key)
        ]
        for each in sorted(alike, key=lambda shared: len(shared.flow.arranged.columns)):
            reading = wanted.reading(each.flow.id, each.flow.arranged)
            if reading is not None and self._reserve(each, user, start):
                return reading
        more = set[int]().union(*(each.flow.arranged.columns for each in alike))
        made = self._make(wanted.arranged(more), reader, start, user)
        return wanted.reading(made.flow.id, made.flow.arranged)

    def _reserve(self, shared: _Shared, user: GlobalId, start: int) -> bool:
        """Keep it readable from `start` on, if it is; no tick of it is being committed meanwhile."""
        since = self._environment.frontiers(shared.flow.id).since
        if since.empty or since.only > start or not self._reach_back(shared.flow, start):
            return False
        shared.users.setdefault(user, start)
        return True

    def _reach_back(self, flow: ArrangementFlow, start: int) -> bool:
        """Hold the arrangement for its users from `start` on.

        Its past may have been there only because that of the collection is, which moves on by itself.
        """
        environment, (token, writer) = self._environment, flow.held.outputs[flow.id]
        assert token is not None
        keeper = environment.present(flow.id, token)
        if keeper.frontier.only <= start:
            return True
        if flow.history is None:
            return False
        (clone,) = environment.commit(contract.Clone(environment.present(flow.id, flow.history)))
        if clone.frontier.only > start:
            environment.drop(clone)
            return False
        held = replace(flow.held, outputs={flow.id: (clone.token, writer)})
        environment.commit(contract.Put(note_of(flow.id), held.encoded()), contract.Drop(keeper))
        flow.hold(held)
        return True

    def _most_pass(self, wanted: Wanted, at: int) -> bool:
        """Whether so many rows pass the filter that it need not be kept."""
        try:
            with self._environment.contents(wanted.collection, at) as selection:
                names = {f"c{column}": selection.spec.schema.names[column] for column in sorted(wanted.tried)}
                share = wanted.share_of(selection.some(list(names.values())).rename_columns(list(names)))
        except NotReadable:  # not complete yet
            share = None
        return not wanted.looks_selective() if share is None else share >= KEPT_SHARE_MIN

    def _make(self, arranged: Arranged, reader: contract.ReadCapability, start: int, user: GlobalId) -> _Shared:
        environment = self._environment
        (id,) = environment.commit(contract.AllocateId(PREFIX))
        schema = schema_of([arranged.schema[column] for column in arranged.columns])
        input, (read, write) = environment.commit(
            contract.Clone(reader), contract.Create(id, schema, arranged.key_names, at=start)
        )
        (history,) = environment.commit(contract.Clone(read)) if reader.clock is not None else (None,)
        held = Tokens({arranged.collection: input.token}, {id: (read.token, write.token)})
        commands: list[contract.Command] = [
            contract.Put(note_of(id), held.encoded()),
            contract.Put(f"{_NOTES}{id}", arranged.encoded(None if history is None else history.token)),
        ]
        if input.frontier.only < start:
            commands.append(contract.Downgrade(input, Antichain(start)))
        if history is not None and reader.clock is not None:
            lag_ms = environment.shard(arranged.collection).held[reader.token].lag_ms
            commands.append(contract.Follow(history, reader.clock, lag_ms))
        environment.commit(*commands)
        return self._take_up(id, arranged, held, None if history is None else history.token, {user: start})

    def _take_up(
        self, id: GlobalId, arranged: Arranged, held: Tokens, history: str | None, users: dict[GlobalId, Dataflow | int]
    ) -> _Shared:
        flow = ArrangementFlow(
            self._environment, id, arranged, held, self._engine, history=history, durable=self._commit_tick
        )
        self._known[id] = shared = _Shared(flow, users)
        if not self._environment.frontiers(id).upper.empty:
            self._keep(flow)
        return shared

    def _commit_tick(self, flow: ArrangementFlow, commands: Sequence[contract.Command], upper: int) -> None:
        leave_round()  # for what it lets go of must be so when it is committed
        with self._lock:
            shared = self._known.get(flow.id)
            needed = upper - 1 if shared is None else min([upper - 1, *self._needed_by(shared)])
            self._environment.commit(*commands, *flow.let_go(needed))

    def _needed_by(self, shared: _Shared) -> Iterator[int]:
        """For each view that reads it, a time from which on it does."""
        for each in shared.users.values():
            if isinstance(each, int):
                yield each
                continue
            try:
                upper = self._environment.frontiers(each.id).upper
            except UnknownId:
                continue  # dropped a moment ago
            if not upper.empty:
                yield upper.only - 1

    def readings(self, id: GlobalId, view: View, held: Tokens) -> dict[str, Reading]:
        """How a resumed view reads what is shared, without arrangements that are not what its note says."""
        found = {}
        wanted = {each.name: wanted for each, wanted in wanted_of(view.program, view.careful_program)}
        with self._lock:
            for name, shared in held.shared.items():
                arranged = self._resumed(shared).flow.arranged
                reading = wanted[name].reading(shared, arranged) if name in wanted else None
                if reading is not None:
                    found[name] = reading
        return found

    def _resumed(self, id: GlobalId) -> _Shared:
        if id not in self._known:
            note = self._environment.get(f"{_NOTES}{id}")
            if note is None:
                raise Corruption(f"the note of what shared arrangement {id} holds is missing")
            try:
                self._environment.frontiers(id)
            except UnknownId as error:
                raise Corruption(f"shared arrangement {id} is missing") from error
            arranged, history = Arranged.decoded(note)
            users = self._noted_users(id)  # it ticks from here on, and nothing that one of them reads may go
            self._take_up(id, arranged, held_by(self._environment, id), history, users)
        return self._known[id]

    def _noted_users(self, id: GlobalId) -> dict[GlobalId, Dataflow | int]:
        sound, _ = self._environment.scan_sound(note_of(""))
        noted = [
            key.removeprefix(note_of("")) for key, note in sound.items() if id in Tokens.decoded(note).shared.values()
        ]
        self._unseen.update(noted)
        return dict.fromkeys(noted, 0)

    def used_by(self, flow: Dataflow) -> None:
        """A view that goes on reads what its note says."""
        with self._lock:
            self._unseen.discard(flow.id)
            for each in set(flow.held.shared.values()):
                if each in self._known:
                    self._known[each].users[flow.id] = flow

    def kept_for(self, id: GlobalId) -> None:
        """A view that cannot go on now is to find what it reads when it can."""
        with self._lock, suppress(EverviewError):
            self._unseen.discard(id)
            for each in set(held_by(self._environment, id).shared.values()):
                with suppress(EverviewError):
                    self._resumed(each).users[id] = 0

    def leave(self, id: GlobalId) -> None:
        """A view reads nothing any more. What nobody else reads is dropped."""
        with self._lock:
            left = {each for each, shared in self._known.items() if shared.users.pop(id, None) is not None}
            self._drop_unused(left)

    def drop(self, flow: Dataflow) -> None:
        """Drop a view's dataflow, with the arrangements that nobody else reads, in one commit."""
        with self._lock:
            unused = [
                shared.flow
                for each in set(flow.held.shared.values())
                if (shared := self._known.get(each)) is not None and shared.users.keys() <= {flow.id}
            ]
            ticking = [each for each in unused if self._end(each.id)]
            try:
                flow.drop(unused, *(contract.Put(f"{_NOTES}{each.id}", None) for each in unused))
            except BaseException:
                for each in ticking:
                    self._keep(each)
                raise
            for each in unused:
                del self._known[each.id]
            for shared in self._known.values():
                shared.users.pop(flow.id, None)

    @contextmanager
    def handing_over(self, moves: Sequence[tuple[Dataflow, Dataflow]]) -> Iterator[list[contract.Command]]:
        """Views whose collections others go on with, and these others: gives the commands to commit with that.

        They let go of the arrangements that only the former read.
        """
        paused = self._read_before(moves)
        ticking = [flow for flow in paused if self._pause(flow.id)]  # without the lock: a tick may wait for that
        with self._lock:
            # From here on nobody finds them. The commit takes other locks, and so is not under this one.
            unused = {each.id: self._known.pop(each.id) for each in self._read_before(moves) if each in paused}
            commands = [command for shared in unused.values() for command in self._drops(shared.flow)]
            added = [(old.id, id) for old, new in moves for id in set(new.held.shared.values())]
            before = {(user, id): self._known[id].users.get(user) for user, id in added}
            for user, id in added:
                self._known[id].users[user] = 0  # until the dataflow that goes on says so itself
        try:
            yield commands
        except BaseException:
            with self._lock:
                self._known |= unused
                for (user, id), earlier in before.items():
                    self._known[id].users.pop(user)
                    if earlier is not None:
                        self._known[id].users[user] = earlier
            unused = {}
            raise
        finally:
            for flow in ticking:
                if flow.id not in unused:
                    self._keep(flow)
        with self._lock:
            for shared in self._known.values():
                for old, new in moves:
                    shared.users.pop(new.id, None)
                    if (old.id, shared.flow.id) not in before:
                        shared.users.pop(old.id, None)

    def _read_before(self, moves: Sequence[tuple[Dataflow, Dataflow]]) -> list[ArrangementFlow]:
        """The arrangements that nobody reads once collections are handed over."""
        gone = {each.id for pair in moves for each in pair}
        left = {id for old, _ in moves for id in old.held.shared.values()}
        taken = {id for _, new in moves for id in new.held.shared.values()}
        with self._lock:
            found = [self._known[id] for id in sorted(left - taken) if id in self._known]
            return [each.flow for each in found if each.users.keys() <= gone]

    def _drops(self, flow: ArrangementFlow) -> list[contract.Command]:
        held = {token for id in (flow.id, *flow.held.inputs) for token in held_of(self._environment, id)}
        drops = [
            contract.Drop(self._environment.present(id, token)) for id, token in flow.held_tokens() if token in held
        ]
        return [*drops, contract.Put(note_of(flow.id), None), contract.Put(f"{_NOTES}{flow.id}", None)]

    def _drop_unused(self, ids: set[GlobalId]) -> None:
        """Drop the arrangements that nobody reads, as after a view could not be made."""
        for id in ids:
            shared = self._known[id]
            if not shared.users:
                self._end(id)
                shared.flow.drop((), contract.Put(f"{_NOTES}{id}", None))
                del self._known[id]

    def leftovers(self) -> list[contract.Command]:
        """The commands that forget arrangements that no view reads, after all views have gone on."""
        with self._lock:
            for id in self._unseen:
                self.leave(id)
            notes = [key.removeprefix(_NOTES) for key in self._environment.keys(_NOTES)]
            lost = [id for id in notes if id not in self._known]
            forgotten = [contract.Put(note_of(id), None) for id in sorted(self._unseen)]
            self._unseen.clear()
            return [*forgotten, *(contract.Put(key, None) for id in lost for key in (f"{_NOTES}{id}", note_of(id)))]

    def unread(self, ids: Sequence[GlobalId]) -> list[GlobalId]:
        """Which of these collections are shared arrangements that no view reads any more."""
        sound, damaged = self._environment.scan_sound(note_of(""))
        if damaged:
            return []  # they may speak of any
        read = {shared for note in sound.values() for shared in Tokens.decoded(note).shared.values()}
        return [id for id in ids if _SHARED.fullmatch(id) and id not in read]

    def finish(self, flow: ArrangementFlow) -> None:
        """Nothing will ever be written to it."""
        held = {**flow.held.inputs, flow.id: flow.held.outputs[flow.id][1]}
        self._environment.drop(*(self._environment.present(id, token) for id, token in held.items()))

    def flows(self) -> list[ArrangementFlow]:
        with self._lock:
            return [each.flow for each in self._known.values()]

    def statuses(self) -> list[SharedStatus]:
        """What they hold and which views read them."""
        with self._lock:
            return [self._status(id, each) for id, each in self._known.items()]

    def _status(self, id: GlobalId, shared: _Shared) -> SharedStatus:
        batches = self._environment.shard(id).batches.values()
        sizes = sum(each.rows for each in batches), sum(each.size_bytes for each in batches)
        return SharedStatus(id, shared.flow.arranged, tuple(sorted(shared.users)), *sizes)
