"""The state of one shard, and the pure functions that change it: no I/O, no clock of their own.

Inside storage a frontier is one integer, the least time beyond it, and `FOREVER` is the empty frontier: the order
of integers is then the order of frontiers, and meet and join are min and max.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from everview.storage import errors
from everview.storage.batch import SUM_MAX, UNCOMPACTED, Batch, part_schema, update_schema
from everview.storage.contract import Capability, Frontier, GlobalId, ReadCapability, WriteCapability
from everview.timely.antichain import Antichain
from everview.timely.lattice import TIME_MAX

FOREVER = 2**63 - 1
READ, WRITE = "r", "w"
HELD_MAX = 10_000  # capabilities on one shard; more is a leak, and says so

Clocks = Mapping[str, int]


def to_frontier(time: int) -> Frontier:
    """Our integer as a frontier of the contract."""
    return Antichain() if time == FOREVER else Antichain(time)


def from_frontier(frontier: Frontier) -> int:
    """A frontier of the contract as our integer."""
    if frontier.empty:
        return FOREVER
    if len(frontier) > 1 or not isinstance(frontier.only, int):
        raise errors.InvalidUsage(f"{frontier} is not a frontier of the SQL timeline", hint="give one integer, or none")
    if not 0 <= frontier.only <= TIME_MAX:
        raise errors.TimesOutOfRange(f"{frontier.only} is not a time", detail=f"times lie between 0 and {TIME_MAX}")
    return frontier.only


@dataclass(frozen=True, slots=True)
class Spec:
    """The columns of a shard. They change in one way only: new columns are added behind the others."""

    schema: pa.Schema  # of the data columns
    key: tuple[str, ...]
    initial: int
    created: int = 0  # the number of columns at first, which every update has; 0: all of these
    at_rest: pa.Schema = field(init=False, compare=False)  # of updates in inline batches
    in_parts: pa.Schema = field(init=False, compare=False)  # of updates in parts
    required: tuple[int, ...] = field(init=False, compare=False)  # those of its columns that have no NULLs

    def __post_init__(self) -> None:
        at_rest = update_schema(self.schema)
        object.__setattr__(self, "created", self.created or len(self.schema))
        object.__setattr__(self, "at_rest", at_rest)
        object.__setattr__(self, "in_parts", part_schema(self.schema))
        object.__setattr__(self, "required", tuple(i for i, column in enumerate(at_rest) if not column.nullable))

    @property
    def keyed(self) -> bool:
        """Whether rows are ordered by the hash of only some of their columns."""
        return self.key != tuple(self.schema.names)

    def extended(self, schema: pa.Schema) -> Spec:
        """The spec with more columns. NULLs do not change hashes: rows keep theirs even if all columns are the key."""
        return Spec(schema, self.key if self.keyed else tuple(schema.names), self.initial, self.created)


@dataclass(frozen=True, slots=True)
class Held:
    """A capability as its shard remembers it."""

    kind: str
    frontier: int
    clock: str | None = None
    lag_ms: int = 0
    lease_ms: int | None = None
    deadline_ms: int | None = None

    def at(self, clocks: Clocks) -> int:
        if self.clock is None:
            return self.frontier
        return max(self.frontier, clocks[self.clock] - self.lag_ms)


@dataclass(frozen=True, slots=True)
class Shard:
    """The state of a shard. The two floors are its frontiers where no capability holds them."""

    id: GlobalId
    spec: Spec
    since_floor: int
    upper_floor: int
    held: Mapping[str, Held]
    batches: Mapping[int, Batch]
    next_batch: int = 0
    # The least frontier of each kind that follows no clock, and those that do: frontiers are asked for far more often
    # than they move, and a table that many views read has as many capabilities.
    _still: Mapping[str, int] = field(init=False, compare=False, repr=False)
    _following: tuple[Held, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        still: dict[str, int] = {}
        following = []
        for each in self.held.values():
            if each.clock is not None:
                following.append(each)
            elif each.frontier < still.get(each.kind, FOREVER + 1):
                still[each.kind] = each.frontier
        object.__setattr__(self, "_still", still)
        object.__setattr__(self, "_following", tuple(following))

    def since(self, clocks: Clocks) -> int:
        return self._frontier(READ, clocks, self.since_floor)

    def upper(self, clocks: Clocks) -> int:
        return self._frontier(WRITE, clocks, self.upper_floor)

    def _frontier(self, kind: str, clocks: Clocks, floor: int) -> int:
        """The least frontier held, or `floor` where none is held."""
        least = self._still.get(kind)
        for each in self._following:
            if each.kind == kind and (least is None or each.at(clocks) < least):
                least = each.at(clocks)
        return floor if least is None else max(least, floor)

    @property
    def gone(self) -> bool:
        """Whether nobody can read or write it any more. Only its id is remembered then."""
        return self.since_floor == FOREVER and self.upper_floor == FOREVER and not self.held


def create(id: GlobalId, spec: Spec) -> Shard:
    """A new shard, empty, without capabilities."""
    return Shard(id, spec, spec.initial, spec.initial, {}, {})


def grant(shard: Shard, token: str, held: Held) -> Shard:
    """The shard with one more capability."""
    if len(shard.held) >= HELD_MAX:
        raise errors.InvalidUsage(
            f"collection {shard.id} has {HELD_MAX} capabilities already",
            hint="drop capabilities that are no longer used, or give them leases",
        )
    return replace(shard, held={**shard.held, token: held})


def lookup(shard: Shard, capability: Capability, clocks: Clocks, now_ms: int) -> Held:
    """The state of a capability; raises unless it is held exactly as presented."""
    held = shard.held.get(capability.token)
    kind = READ if isinstance(capability, ReadCapability) else WRITE
    if held is None or held.kind != kind or capability.id != shard.id:
        raise errors.CapabilityInvalid(
            f"capability {capability.token} on {capability.id} is not held",
            detail="it was dropped, expired and removed, or never given",
            hint="acquire capabilities anew",
        )
    if held.deadline_ms is not None and held.deadline_ms < now_ms:
        raise errors.CapabilityExpired(
            f"the lease of capability {capability.token} on {shard.id} expired {now_ms - held.deadline_ms} ms ago",
            hint="acquire capabilities anew, and renew leases in time",
        )
    if held.clock != capability.clock or (held.clock is None and to_frontier(held.frontier) != capability.frontier):
        message = f"capability {capability.token} on {shard.id} is not held as stated"
        detail = f"stated at {capability.frontier}, held at {to_frontier(held.at(clocks))}"
        if kind == WRITE:
            raise errors.UpperMismatch(message, to_frontier(held.at(clocks)), detail=detail)
        raise errors.CapabilityInvalid(
            message, detail=detail, hint="use the capability that the last command gave back"
        )
    return held


def move(shard: Shard, token: str, to: int, clocks: Clocks) -> Shard:
    """Downgrade one capability to `to`."""
    held = shard.held[token]
    if held.clock is not None:
        raise errors.InvalidUsage(
            f"capability {token} on {shard.id} follows clock {held.clock}", hint="advance the clock instead"
        )
    if to < held.frontier:
        raise errors.TimesOutOfRange(
            f"a capability on {shard.id} cannot move back", detail=f"from {held.frontier} to {to_frontier(to)}"
        )
    if to == FOREVER:
        return release(shard, token, clocks)
    moved = Held(held.kind, to, None, 0, held.lease_ms, held.deadline_ms)
    return _settle(shard, {**shard.held, token: moved}, clocks)


def release(shard: Shard, token: str, clocks: Clocks) -> Shard:
    """Drop one capability; without another of its kind the frontier goes to the empty one."""
    kind = shard.held[token].kind
    rest = {t: h for t, h in shard.held.items() if t != token}
    shard = _settle(shard, rest, clocks)
    if any(h.kind == kind for h in rest.values()):
        return shard
    if kind == READ:
        return replace(shard, since_floor=FOREVER, batches={})
    return replace(shard, upper_floor=FOREVER)


def expire(shard: Shard, clocks: Clocks, now_ms: int) -> Shard:
    """Remove capabilities whose lease has run out. A frontier that nobody holds any more stays where it is."""
    rest = {t: h for t, h in shard.held.items() if h.deadline_ms is None or h.deadline_ms >= now_ms}
    return shard if len(rest) == len(shard.held) else _settle(shard, rest, clocks)


def follow(shard: Shard, token: str, clock: str, lag_ms: int, clocks: Clocks) -> Shard:
    """Bind one capability to a clock; its frontier continues from where it is."""
    held = shard.held[token]
    if held.kind == WRITE and (lag_ms or held.at(clocks) > clocks[clock]):
        raise errors.TimesOutOfRange(
            f"a write capability on {shard.id} at {held.at(clocks)} cannot follow clock {clock} at {clocks[clock]}",
            hint="it must not be beyond the clock, and has no lag",
        )
    bound = replace(held, frontier=held.at(clocks), clock=clock, lag_ms=lag_ms)
    return _settle(shard, {**shard.held, token: bound}, clocks)


def append(shard: Shard, batch: Batch | None, lower: int, upper: int) -> Shard:
    """The shard with one more batch, written for `[lower, upper)`. A batch that nobody can read is not kept."""
    if batch is None:
        return shard
    if batch.time_min < lower or batch.time_max >= upper:
        raise errors.TimesOutOfRange(
            f"updates to {shard.id} lie outside the interval of the write",
            detail=f"times from {batch.time_min} to {batch.time_max}, interval from {lower} to {to_frontier(upper)}",
        )
    _check_sums(shard, batch)
    return _add(shard, batch, lower, upper, UNCOMPACTED)


def _check_sums(shard: Shard, batch: Batch) -> None:
    """Raise if some row's diffs might no longer sum to 64 bits, at any time.

    The sum of a row lies between the sums of all negative and of all positive diffs of the collection. Each batch knows
    its two sums, so no row is read. Compaction cancels diffs, which makes both sums smaller again.
    """
    added, removed = batch.sums
    for each in shard.batches.values():
        more, less = each.sums
        added, removed = added + more, removed + less
    if max(added, removed) >= SUM_MAX:
        raise errors.DiffOverflow(
            f"the diffs of a row of {shard.id} might no longer sum to 64 bits",
            detail=f"its positive diffs would sum to {added}, its negative ones to {-removed}",
            hint="write rows with smaller diffs, or when compaction has canceled updates that cancel",
        )


def _add(shard: Shard, batch: Batch, lower: int, upper: int, since: int) -> Shard:
    if shard.since_floor == FOREVER:
        return shard
    number = shard.next_batch
    batches = {**shard.batches, number: replace(batch, number=number, lower=lower, upper=upper, since=since)}
    floors = shard.since_floor, shard.upper_floor
    return Shard(shard.id, shard.spec, *floors, shard.held, batches, number + 1)


def substitute(shard: Shard, inputs: tuple[int, ...], output: Batch | None) -> Shard | None:
    """The shard with some batches replaced by an equivalent one; None if some of them are gone."""
    if any(number not in shard.batches for number in inputs):
        return None
    kept = {number: batch for number, batch in shard.batches.items() if number not in inputs}
    shard = replace(shard, batches=kept)
    return shard if output is None else _add(shard, output, output.lower, output.upper, output.since)


def _settle(shard: Shard, held: Mapping[str, Held], clocks: Clocks) -> Shard:
    """Replace the held capabilities, and raise the floors so that no frontier moves back."""
    settled = Shard(
        shard.id, shard.spec, shard.since(clocks), shard.upper(clocks), held, shard.batches, shard.next_batch
    )
    return replace(settled, since_floor=settled.since(clocks), upper_floor=settled.upper(clocks))


def present(shard: Shard, token: str, clocks: Clocks) -> ReadCapability | WriteCapability:
    """The capability to hand out for what is held under `token`."""
    held = shard.held.get(token)
    kind = ReadCapability if token.startswith(READ) else WriteCapability
    if held is None:
        return kind(token, shard.id, Antichain())
    return kind(token, shard.id, to_frontier(held.at(clocks)), held.clock)
