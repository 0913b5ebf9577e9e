"""What storage promises to the layers above it.

A *shard* is the durable home of one time-varying collection, named by a `GlobalId` that is never used again.
It holds updates `(row, time, diff)` and two frontiers, and the one equation everything rests on is:

    for every time t with since <= t and not upper <= t, the contents of the collection at t are exactly the
    sum of diff per row over the updates with time <= t, and a row whose sum is 0 is absent.

Frontiers only move forward, and only as far as *capabilities* let them: `since` is the meet of the read
capabilities' frontiers, `upper` of the write capabilities'. Dropping the last capability of a kind lets its
frontier go to the empty one: nobody can read (or write) the collection ever again, and its data are removed.
An expired lease only takes away the right: the frontier stays where it is, for `Acquire` to pick up.

A capability may *follow a clock*: a durable time that many shards share. Its frontier is then the clock's
(for a reader, at a fixed distance behind), so moving a thousand idle collections on is one small write.

Commands are values. `Environment.commit` takes any number of them, for any number of shards, validates all, and
makes all of them durable in one atomic step before it returns, or none of them and raises a `StorageError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from everview.timely.antichain import Antichain

if TYPE_CHECKING:
    from everview.storage.staging import Staged

GlobalId: TypeAlias = str
Frontier: TypeAlias = Antichain[int]


@dataclass(frozen=True, slots=True)
class Capability:
    """A right that the system keeps under `token`; whoever presents the token has it."""

    token: str
    id: GlobalId
    frontier: Frontier
    clock: str | None = None


@dataclass(frozen=True, slots=True)
class ReadCapability(Capability):
    """Holds `since` of `id` at or before `frontier`."""


@dataclass(frozen=True, slots=True)
class WriteCapability(Capability):
    """Holds `upper` of `id` at or before `frontier`."""


@dataclass(frozen=True, slots=True)
class Create:
    """Bind `id` to a new, empty collection; gives `(ReadCapability, WriteCapability)`.

    `since` and `upper` both start at `at`. Rows are kept in the order of the hash of the columns named by `key`
    (default: all of them), and can be looked up by that hash.
    """

    id: GlobalId
    schema: pa.Schema
    key: Sequence[str] | None = None
    at: int = 0
    lease_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Extend:
    """Add columns to the collection of the capability: `schema` is the present one, followed by new nullable columns.

    The new columns are NULL in earlier updates, and in updates that leave them out. Readers that name their columns
    notice nothing. Later commands of the same commit know the new columns.
    """

    capability: WriteCapability
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class UpdateAndDowngrade:
    """Append updates at times in `[frontier, to)` and downgrade the capability to `to`; gives the new one.

    `updates` is an Arrow table of the data columns with `_time` and `_diff`, or what `Environment.stage` made of one.
    A capability that follows a clock writes in the interval by which an `AdvanceClock` of the same commit moves it.
    """

    capability: WriteCapability
    updates: pa.Table | Staged | None
    to: Frontier


@dataclass(frozen=True, slots=True)
class Downgrade:
    """Move the capability's frontier forward; gives the new capability."""

    capability: Capability
    to: Frontier


@dataclass(frozen=True, slots=True)
class Clone:
    """Make a second capability with the same rights and frontier; it has a lease only if `lease_ms` says so."""

    capability: Capability
    lease_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Renew:
    """Start the capability's lease anew."""

    capability: Capability


@dataclass(frozen=True, slots=True)
class Drop:
    """Give the capability up. The last one of its kind releases the frontier for good."""

    capability: Capability


@dataclass(frozen=True, slots=True)
class Acquire:
    """Give capabilities at the current `since` and `upper`. A capability on an empty frontier is of no use."""

    id: GlobalId
    lease_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """Let the capability follow `clock`, a reader `lag_ms` behind it; gives the new capability."""

    capability: Capability
    clock: str
    lag_ms: int = 0


@dataclass(frozen=True, slots=True)
class AdvanceClock:
    """Move `clock` from `since_time` to the later `to`; None makes it. All that follows it moves with it."""

    clock: str
    since_time: int | None
    to: int


@dataclass(frozen=True, slots=True)
class AllocateId:
    """Give a GlobalId that was never given before, such as `u7`."""

    prefix: str = "u"


@dataclass(frozen=True, slots=True)
class TakeId:
    """Give an id for good that `Environment.draw_id` drew: nobody is given it again, whoever opens it next."""

    id: GlobalId


@dataclass(frozen=True, slots=True)
class Put:
    """Keep a small value for a layer above, in the same atomic step; None removes it."""

    key: str
    value: bytes | None


Command: TypeAlias = (
    Create
    | Extend
    | UpdateAndDowngrade
    | Downgrade
    | Clone
    | Renew
    | Drop
    | Acquire
    | Follow
    | AdvanceClock
    | AllocateId
    | TakeId
    | Put
)


@dataclass(frozen=True, slots=True)
class Frontiers:
    """`since` and `upper` of a shard at one instant."""

    since: Frontier
    upper: Frontier


@dataclass(frozen=True, slots=True)
class Updates:
    """Part of a subscription: updates at exactly their times. More at the same times may follow."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class Progress:
    """Part of a subscription: every update at a time not beyond `frontier` has been delivered."""

    frontier: Frontier
