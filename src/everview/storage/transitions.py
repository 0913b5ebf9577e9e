"""Commands as pure transitions over a draft of what is stored.

A `Draft` collects the changes of a commit: shards, clocks and values as they will be. Running a command against it
changes only the draft, so a command that turns out invalid leaves nothing behind, and several commits can be drafted
one after the other and made durable together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from everview.storage import contract
from everview.storage import shard as transition
from everview.storage.batch import Batch
from everview.storage.contract import GlobalId
from everview.storage.errors import IdReused, InvalidUsage, TimesOutOfRange, UnknownId, UpperMismatch
from everview.storage.shard import FOREVER, READ, WRITE, Held, Shard, Spec, from_frontier, present, to_frontier
from everview.storage.staging import Staged, checked_schema, extended_spec
from everview.timely.lattice import TIME_MAX

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
META_VALUE_BYTES_MAX = 16 << 20

Result = Any  # what a command gives back: a capability, a pair of them, an id, or None


@dataclass(frozen=True, slots=True)
class Expire:
    """Remove capabilities on `id` whose leases have run out."""

    id: GlobalId


@dataclass(frozen=True, slots=True)
class Substitute:
    """Replace batches of `id` by an equivalent one; gives whether all of them were still there."""

    id: GlobalId
    inputs: tuple[int, ...]
    output: Batch | None


AnyCommand = contract.Command | Expire | Substitute


@dataclass
class Draft:
    """The changes of a commit: shards, clocks and values as they will be."""

    read_shard: Callable[[GlobalId], Shard | None]
    read_clocks: Mapping[str, int]
    read_next_id: int
    draw_number: Callable[[], int]  # of an id, that was never drawn
    now_ms: int
    new_token: Callable[[str], str]
    shards: dict[GlobalId, Shard] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    clocks_before: dict[str, int | None] = field(default_factory=dict)
    puts: dict[str, bytes | None] = field(default_factory=dict)
    next_id: int | None = None

    def branch(self) -> Draft:
        """A draft on top of this one, to `adopt` or to throw away."""
        return Draft(
            lambda id: self.shards.get(id) or self.read_shard(id),
            {**self.read_clocks, **self.clocks},
            self.read_next_id if self.next_id is None else self.next_id,
            self.draw_number,
            self.now_ms,
            self.new_token,
        )

    def adopt(self, branch: Draft) -> None:
        """Take over the changes of a branch."""
        self.shards.update(branch.shards)
        self.clocks.update(branch.clocks)
        self.puts.update(branch.puts)
        if branch.next_id is not None:
            self.next_id = branch.next_id

    @property
    def now_clocks(self) -> Mapping[str, int]:
        """The clocks after this draft."""
        return {**self.read_clocks, **self.clocks} if self.clocks else self.read_clocks

    def shard(self, id: GlobalId) -> Shard:
        """The shard; raises if it is gone."""
        shard = self.shards.get(id) or self.read_shard(id)
        if shard is None or shard.gone:
            raise UnknownId(f"collection {id} does not exist", detail=None if shard is None else "it was dropped")
        return shard

    def run(self, commands: tuple[AnyCommand, ...]) -> list[Result]:
        """Run the commands in order, clocks first: the other commands see the clocks as the commit leaves them."""
        for command in commands:
            if isinstance(command, contract.AdvanceClock):
                self._advance_clock(command)
        return [_RUN[type(command)](self, command) for command in commands]

    def _advance_clock(self, command: contract.AdvanceClock) -> None:
        current = self.now_clocks.get(command.clock)
        if current != command.since_time:
            raise UpperMismatch(
                f"clock {command.clock} is not where it was said to be",
                to_frontier(current or 0),
                detail=f"stated at {command.since_time}, is at {current}",
            )
        if not _NAME.match(command.clock):
            raise InvalidUsage(f"not a name for a clock: {command.clock!r}")
        if command.to > TIME_MAX or command.to < (current or 0):
            raise TimesOutOfRange(f"clock {command.clock} cannot go from {current} to {command.to}")
        self.clocks_before.setdefault(command.clock, current)
        self.clocks[command.clock] = command.to


def _create(draft: Draft, command: contract.Create) -> tuple[contract.ReadCapability, contract.WriteCapability]:
    if not _NAME.match(command.id):
        raise InvalidUsage(f"not a collection id: {command.id!r}", hint="use letters, digits, . _ and -")
    if _was_used(draft, command.id):
        raise IdReused(f"collection id {command.id} was used before", hint="allocate a new id")
    key = tuple(command.schema.names if command.key is None else command.key)
    checked_schema(command.schema, key)
    if not 0 <= command.at <= TIME_MAX:
        raise TimesOutOfRange(f"{command.at} is not a time", detail=f"times lie between 0 and {TIME_MAX}")
    shard = transition.create(command.id, Spec(command.schema.remove_metadata(), key, command.at))
    return _grant_both(draft, shard, command.lease_ms)


def _acquire(draft: Draft, command: contract.Acquire) -> tuple[contract.ReadCapability, contract.WriteCapability]:
    shard = draft.shards.get(command.id) or draft.read_shard(command.id)
    if shard is None:
        raise UnknownId(f"collection {command.id} does not exist")
    return _grant_both(draft, shard, command.lease_ms)


def _grant_both(
    draft: Draft, shard: Shard, lease_ms: int | None
) -> tuple[contract.ReadCapability, contract.WriteCapability]:
    """New capabilities at the shard's frontiers. One on an empty frontier is useless and not stored."""
    clocks = draft.now_clocks
    tokens = draft.new_token(READ), draft.new_token(WRITE)
    for token, kind, frontier in zip(tokens, (READ, WRITE), (shard.since(clocks), shard.upper(clocks)), strict=True):
        if frontier != FOREVER:
            shard = transition.grant(shard, token, _leased(Held(kind, frontier), lease_ms, draft.now_ms))
    draft.shards[shard.id] = shard
    read, write = (present(shard, token, clocks) for token in tokens)
    assert isinstance(read, contract.ReadCapability) and isinstance(write, contract.WriteCapability)
    return read, write


def _leased(held: Held, lease_ms: int | None, now_ms: int) -> Held:
    if lease_ms is not None and lease_ms <= 0:
        raise InvalidUsage(f"a lease of {lease_ms} ms", hint="leases last at least a millisecond; None is for ever")
    return replace(held, lease_ms=lease_ms, deadline_ms=None if lease_ms is None else now_ms + lease_ms)


def _find(draft: Draft, capability: contract.Capability) -> tuple[Shard, Held]:
    shard = draft.shard(capability.id)
    return shard, transition.lookup(shard, capability, draft.now_clocks, draft.now_ms)


def _extend(draft: Draft, command: contract.Extend) -> None:
    shard, _ = _find(draft, command.capability)
    spec = extended_spec(shard.id, shard.spec, command.schema)
    if spec is not shard.spec:
        draft.shards[shard.id] = replace(shard, spec=spec)


def _update(draft: Draft, command: contract.UpdateAndDowngrade) -> contract.WriteCapability:
    token = command.capability.token
    shard, held = _find(draft, command.capability)
    to = from_frontier(command.to)
    staged = command.updates
    assert isinstance(staged, Staged), "updates are staged before they are drafted"
    if held.clock is None:
        lower = held.frontier
        if to < lower:
            detail = f"from {lower} to {command.to}"
            raise TimesOutOfRange(f"the write frontier of {shard.id} cannot move back", detail=detail)
        shard = transition.append(shard, staged.batch, lower, to)
        shard = transition.move(shard, token, to, draft.now_clocks)
    else:
        before = draft.clocks_before.get(held.clock)
        if before is None or to != draft.clocks[held.clock]:
            raise InvalidUsage(
                f"the write capability on {shard.id} follows clock {held.clock}",
                hint="advance the clock to the same time in the same commit",
            )
        shard = transition.append(shard, staged.batch, max(before, held.frontier), to)
    draft.shards[shard.id] = shard
    result = present(shard, token, draft.now_clocks)
    assert isinstance(result, contract.WriteCapability)
    return result


def _downgrade(draft: Draft, command: contract.Downgrade) -> contract.Capability:
    shard, _ = _find(draft, command.capability)
    shard = transition.move(shard, command.capability.token, from_frontier(command.to), draft.now_clocks)
    draft.shards[shard.id] = shard
    return present(shard, command.capability.token, draft.now_clocks)


def _clone(draft: Draft, command: contract.Clone) -> contract.Capability:
    shard, held = _find(draft, command.capability)
    token = draft.new_token(held.kind)
    copy = Held(held.kind, held.at(draft.now_clocks))
    draft.shards[shard.id] = transition.grant(shard, token, _leased(copy, command.lease_ms, draft.now_ms))
    return present(draft.shards[shard.id], token, draft.now_clocks)


def _renew(draft: Draft, command: contract.Renew) -> contract.Capability:
    shard, held = _find(draft, command.capability)
    renewed = _leased(held, held.lease_ms, draft.now_ms)
    draft.shards[shard.id] = replace(shard, held={**shard.held, command.capability.token: renewed})
    return command.capability


def _drop(draft: Draft, command: contract.Drop) -> None:
    shard, _ = _find(draft, command.capability)
    draft.shards[shard.id] = transition.release(shard, command.capability.token, draft.now_clocks)


def _follow(draft: Draft, command: contract.Follow) -> contract.Capability:
    shard, _ = _find(draft, command.capability)
    if command.clock not in draft.now_clocks:
        raise InvalidUsage(f"clock {command.clock} does not exist", hint="make it with AdvanceClock(name, None, time)")
    if command.lag_ms < 0:
        raise InvalidUsage(f"a lag of {command.lag_ms} ms", hint="a reader follows at a distance of 0 ms or more")
    token = command.capability.token
    shard = transition.follow(shard, token, command.clock, command.lag_ms, draft.now_clocks)
    draft.shards[shard.id] = shard
    return present(shard, token, draft.now_clocks)


def _allocate(draft: Draft, command: contract.AllocateId) -> GlobalId:
    check_prefix(command.prefix)
    while _was_used(draft, id := f"{command.prefix}{draft.draw_number()}"):  # `Create` takes any id
        pass
    _take(draft, contract.TakeId(id))
    return id


def check_prefix(prefix: str) -> None:
    """Raise unless ids can begin like this."""
    if not re.fullmatch(r"[a-z]{1,8}", prefix):
        raise InvalidUsage(f"not a prefix for ids: {prefix!r}", hint="use a few lower-case letters")


def _take(draft: Draft, command: contract.TakeId) -> None:
    found = re.fullmatch(r"[a-z]{1,8}([0-9]+)", command.id)
    if found is None:
        raise InvalidUsage(f"not an id that was drawn: {command.id!r}")
    next_id = draft.read_next_id if draft.next_id is None else draft.next_id
    draft.next_id = max(next_id, int(found[1]) + 1)


def _was_used(draft: Draft, id: GlobalId) -> bool:
    return (draft.shards.get(id) or draft.read_shard(id)) is not None


def _put(draft: Draft, command: contract.Put) -> None:
    if command.value is not None and len(command.value) > META_VALUE_BYTES_MAX:
        raise InvalidUsage(
            f"value {command.key} has {len(command.value)} bytes", detail=f"at most {META_VALUE_BYTES_MAX}"
        )
    draft.puts[command.key] = command.value


def _expire(draft: Draft, command: Expire) -> None:
    shard = draft.shards.get(command.id) or draft.read_shard(command.id)
    if shard is not None:
        draft.shards[shard.id] = transition.expire(shard, draft.now_clocks, draft.now_ms)


def _substitute(draft: Draft, command: Substitute) -> bool:
    shard = draft.shards.get(command.id) or draft.read_shard(command.id)
    changed = None if shard is None else transition.substitute(shard, command.inputs, command.output)
    if changed is None:
        return False
    draft.shards[command.id] = changed
    return True


_RUN: dict[type, Callable[[Draft, Any], Result]] = {
    contract.Create: _create,
    contract.Acquire: _acquire,
    contract.Extend: _extend,
    contract.UpdateAndDowngrade: _update,
    contract.Downgrade: _downgrade,
    contract.Clone: _clone,
    contract.Renew: _renew,
    contract.Drop: _drop,
    contract.Follow: _follow,
    contract.AdvanceClock: lambda draft, command: None,
    contract.AllocateId: _allocate,
    contract.TakeId: _take,
    contract.Put: _put,
    Expire: _expire,
    Substitute: _substitute,
}
