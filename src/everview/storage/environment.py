"""An environment: one Consensus and one Blob, opened by one process at a time, and the collections in them.

Opening takes a new epoch, which fences whoever had the environment open before. Everything that changes goes through
`commit`; everything that reads gets a `Selection` or a `Subscription`; the rest is done in the background.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.background import Backoff, Loop
from everview.closing import Closing
from everview.storage import contract, opening
from everview.storage.applier import Applier
from everview.storage.blob.contract import Blob
from everview.storage.codec import meta_key
from everview.storage.consensus.contract import Consensus, entry_at
from everview.storage.contract import GlobalId
from everview.storage.disk import make_private
from everview.storage.errors import Canceled, Corruption, Fenced, Indeterminate, InvalidUsage, UnknownId
from everview.storage.gc import Pins
from everview.storage.hotcopy import HotCopies
from everview.storage.landing import BlobFolder, Landing
from everview.storage.lease import await_former
from everview.storage.maintenance import Maintenance
from everview.storage.parts import PartReader
from everview.storage.sealed import SealedConsensus
from everview.storage.selection import (
    InlineUpdates,
    Selection,
    check_changes_readable,
    check_contents_readable,
    check_not_gone,
)
from everview.storage.shard import FOREVER, Shard, Spec, lookup, present, to_frontier
from everview.storage.staging import Staged, Stager, extended_spec
from everview.storage.subscribe import Subscription
from everview.timely.hashing import I64, hash_rows

HOT_BYTES_MAX = 16 << 30
BEAT_S = 1.0


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Environment(Closing):
    """The storage of one Everview; see `contract` for what it promises."""

    def __init__(
        self,
        consensus: Consensus,
        blob: Blob,
        folder: Path,
        *,
        now_ms: Callable[[], int] = wall_clock_ms,
        background: bool = True,
        hot_bytes_max: int = HOT_BYTES_MAX,
        shared: bool = False,
        taken_from: int | None = None,
    ) -> None:
        """Open the environment in `consensus` and `blob`; `folder` is for scratch files and copies.

        `shared` means that processes on other machines may stand by. With `taken_from` it is opened only if the
        owner's entry still has this version (`opening.take_epoch`).
        """
        consensus = SealedConsensus(consensus)
        self._consensus, self._blob, self.folder = consensus, blob, folder
        taken = opening.take_epoch(consensus, beats=shared, taken_from=taken_from)
        await_former(taken.former)
        if shared:
            opening.match_blob(consensus, blob, taken)
        self.epoch = taken.epoch
        scratch = folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        make_private(scratch)
        self._now_ms = now_ms
        # Pins last no longer than the process, so a clock that never jumps will do.
        self._pins = Pins((lambda: time.monotonic_ns() // 1_000_000) if now_ms is wall_clock_ms else now_ms)
        self._inline_cache = InlineUpdates()
        self._reader = PartReader(blob)
        self._hot = HotCopies(folder / "hot", self._reader, hot_bytes_max)
        self._stager = Stager(blob, scratch, self.epoch)
        self._closed = False
        self._applier = Applier(
            consensus,
            taken=taken,
            now_ms=now_ms,
            new_token=lambda kind: f"{kind}-{secrets.token_hex(8)}",
            published=self._published,
        )
        self.maintenance = Maintenance(
            self._applier,
            consensus=consensus,
            blob=blob,
            epoch=self.epoch,
            stager=self._stager,
            reader=self._reader,
            hot=self._hot,
            pins=self._pins,
            now_ms=now_ms,
        )
        self._beats = Loop("everview-beat", self._beat, backoff=Backoff(BEAT_S, BEAT_S), ends=(Fenced,))
        if shared:
            self._beats.start()
        if background:
            self.maintenance.start()

    @classmethod
    def open(
        cls, data: str | os.PathLike[str], *, consensus: str | None = None, blob: str | None = None, **options: Any
    ) -> Environment:
        """Open the environment in folder `data`, which is made if need be. The URLs place its stores elsewhere."""
        stores = opening.open_stores(Path(data), consensus, blob)
        return cls(*stores, Path(data), **options)

    # Commands

    def commit(self, *commands: contract.Command) -> list[Any]:
        """Make all of the commands durable in one atomic step. Gives the result of each."""
        self._check_open()
        if any(isinstance(c, contract.UpdateAndDowngrade) and not isinstance(c.updates, Staged) for c in commands):
            return self._commit_staging(commands)
        for command in commands:
            if isinstance(command, contract.UpdateAndDowngrade):
                staged: Any = command.updates
                if staged.used:
                    raise InvalidUsage(f"staged updates to {staged.id} were committed before", hint="stage them again")
                staged.used = True
        results = self._applier.commit(commands)
        self.maintenance.lend_a_hand()
        return results

    def _commit_staging(self, commands: tuple[contract.Command, ...]) -> list[Any]:
        """Commit commands that carry tables: stage these first, and remove what was staged if the commit fails."""
        staged: list[Staged] = []
        extended: dict[GlobalId, Spec] = {}  # as earlier commands of this commit leave them
        try:
            ready: list[contract.Command] = []
            for command in commands:
                if isinstance(command, contract.Extend):
                    id = command.capability.id
                    extended[id] = extended_spec(id, extended.get(id) or self.shard(id).spec, command.schema)
                if isinstance(command, contract.UpdateAndDowngrade) and not isinstance(command.updates, Staged):
                    id = command.capability.id
                    spec = extended.get(id) or self.shard(id).spec
                    staged.append(self._stager.stage(id, spec, command.updates))
                    ready.append(contract.UpdateAndDowngrade(command.capability, staged[-1], command.to))
                else:
                    ready.append(command)
            return self.commit(*ready)
        except Indeterminate:
            raise  # it may be committed, so nothing may be removed; the next process finds out
        except Exception:
            for each in staged:
                self._stager.discard(each)
            raise

    def stage(self, id: GlobalId, updates: pa.Table | pa.RecordBatch | None) -> Staged:
        """Do the heavy part of appending `updates` to `id`, outside of any commit."""
        self._check_open()
        return self._stager.stage(id, self.shard(id).spec, updates)

    def stage_pieces(self, id: GlobalId, pieces: Iterable[pa.Table]) -> Staged:
        """The same for updates that are too many to be in memory at once."""
        self._check_open()
        return self._stager.stage_pieces(id, self.shard(id).spec, pieces)

    def unstage(self, staged: Staged) -> None:
        """Remove staged updates that will not be committed."""
        if not self._closed:
            self._stager.discard(staged)

    def landing(self, id: GlobalId) -> Landing:
        """A folder into which an engine's executors write parts of `id`; they are staged from there."""
        self._check_open()
        return Landing(self._blob, self._stager.new_folder(id), lambda: self.shard(id), self._pins.retire)

    def blob_folder(self) -> BlobFolder:
        """A folder of the blob store that belongs to no collection, to test who can reach the store."""
        self._check_open()
        return BlobFolder(self._blob, self._stager.new_folder("reach"))

    def create(
        self, id: GlobalId, schema: pa.Schema, **options: Any
    ) -> tuple[contract.ReadCapability, contract.WriteCapability]:
        (capabilities,) = self.commit(contract.Create(id, schema, **options))
        return capabilities  # type: ignore[no-any-return]

    def acquire(
        self, id: GlobalId, lease_ms: int | None = None
    ) -> tuple[contract.ReadCapability, contract.WriteCapability]:
        (capabilities,) = self.commit(contract.Acquire(id, lease_ms))
        return capabilities  # type: ignore[no-any-return]

    def append(
        self, capability: contract.WriteCapability, updates: pa.Table | Staged | None, to: contract.Frontier
    ) -> contract.WriteCapability:
        (capability,) = self.commit(contract.UpdateAndDowngrade(capability, updates, to))
        return capability

    def downgrade(self, capability: contract.ReadCapability, to: contract.Frontier) -> contract.ReadCapability:
        (capability,) = self.commit(contract.Downgrade(capability, to))
        return capability

    def drop(self, *capabilities: contract.Capability) -> None:
        self.commit(*(contract.Drop(capability) for capability in capabilities))

    # Reading

    def ids(self) -> list[GlobalId]:
        """The collections that can be read or written, in order of name."""
        return opening.ids(self._consensus, self._applier.damaged)

    def inspect(self) -> Mapping[GlobalId, Corruption]:
        """Read the states of all collections and give the damaged ones, which `ids` leaves out from then on."""
        self._check_open()
        return self._applier.inspect()

    @property
    def damaged(self) -> Mapping[GlobalId, Corruption]:
        return self._applier.damaged

    def abandon(self, id: GlobalId) -> None:
        """Drop a collection that is too damaged to drop its capabilities. Its id is never used again."""
        self._check_open()
        self._applier.abandon(id)

    def shard(self, id: GlobalId) -> Shard:
        """The state of one shard."""
        shard = self._applier.shard(id)
        if shard is None or shard.gone:
            detail = None if shard is None else "it was dropped"
            raise UnknownId(f"collection {id} does not exist", detail=detail)
        return shard

    def present(self, id: GlobalId, token: str) -> contract.ReadCapability | contract.WriteCapability:
        """The capability with this token."""
        return present(self.shard(id), token, self._applier.clocks)

    def frontiers(self, id: GlobalId) -> contract.Frontiers:
        """The frontiers of the collection; a dropped one has two empty frontiers."""
        shard = self._applier.shard(id)
        if shard is None:
            raise UnknownId(f"collection {id} does not exist")
        clocks = self._applier.clocks
        return contract.Frontiers(to_frontier(shard.since(clocks)), to_frontier(shard.upper(clocks)))

    def standing(self, id: GlobalId) -> tuple[Shard, int] | None:
        """The shard as it is in memory, with an upper up to which it is complete; None if it would have to be read.

        This never waits. The clocks are read first, because a commit publishes its shards before its clocks.
        """
        clocks = self._applier.clocks
        shard = self._applier.cached(id)
        return None if shard is None else (shard, shard.upper(clocks))

    def clock(self, name: str) -> int | None:
        """The time of a clock; None if there is no clock of this name."""
        return self._applier.clocks.get(name)

    def contents(self, id: GlobalId, as_of: int, hashes: I64 | None = None) -> Selection:
        """The contents at `as_of`, a time in `[since, upper)`, of all keys or of those with the given hashes."""
        check = partial(check_contents_readable, as_of=as_of)
        return self._select(id, 0, as_of + 1, hashes, check)

    def everything(self, id: GlobalId, hashes: I64 | None = None) -> Selection:
        """All updates so far: the contents just before `upper`.

        They can be read even where `since` has passed `upper`, so that no single time can be.
        """
        return self._select(id, 0, FOREVER, hashes, check_not_gone)

    def changes(self, id: GlobalId, lower: int, upper: int, hashes: I64 | None = None) -> Selection:
        """The changes at times in `[lower, upper)`; `since` may be as late as just before `lower`."""
        check = partial(check_changes_readable, lower=lower, upper=upper)
        return self._select(id, lower, upper, hashes, check)

    def key_hashes(self, id: GlobalId, keys: pa.Table) -> I64:
        """The hashes of rows with these values in the key columns."""
        spec = self.shard(id).spec
        return hash_rows([keys.column(name).cast(spec.schema.field(name).type) for name in spec.key], keys.num_rows)

    def subscribe(
        self,
        capability: contract.ReadCapability,
        *,
        snapshot: bool = True,
        where: pc.Expression | None = None,
        columns: Sequence[str] | None = None,
    ) -> Subscription:
        """`SubscribeAt`: the contents at the capability's frontier, then all changes; see `subscribe`."""
        return Subscription(self, capability, snapshot=snapshot, where=where, columns=columns)

    def wait(self, ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Block until `ready` holds, looking after each commit; False when the time is over."""
        result = self._applier.changed.wait(lambda: self._closed or ready(), timeout_s)
        self._check_open()
        return result

    def wake(self) -> None:
        """Let all waiters look again."""
        self._applier.changed.tell()

    def get(self, key: str) -> bytes | None:
        """A value stored by `Put`."""
        entry = entry_at(self._consensus, meta_key(key))
        return None if entry is None else entry.value

    def keys(self, prefix: str) -> list[str]:
        """The keys with this prefix that `Put` stored, also those whose values are damaged."""
        return [key.removeprefix(meta_key("")) for key, _ in self._consensus.scan(meta_key(prefix))]

    def scan_sound(self, prefix: str) -> tuple[dict[str, bytes], dict[str, Exception]]:
        """The sound values that `Put` stored under keys with this prefix; and the errors of damaged ones."""
        sound: dict[str, bytes] = {}
        wrong: dict[str, Exception] = {}
        for key, entry in self._consensus.scan(meta_key(prefix)):
            try:
                sound[key.removeprefix(meta_key(""))] = entry.value
            except Corruption as error:
                wrong[key.removeprefix(meta_key(""))] = error
        return sound, wrong

    def scan(self, prefix: str) -> dict[str, bytes]:
        """The values that `Put` stored under keys with this prefix."""
        entries = self._consensus.scan(meta_key(prefix))
        return {key.removeprefix(meta_key("")): entry.value for key, entry in entries}

    def check(self, capability: contract.ReadCapability) -> None:
        """Raise unless the capability is held as stated."""
        lookup(self.shard(capability.id), capability, self._applier.clocks, self._now_ms())

    def check_held(self, id: GlobalId, token: str) -> None:
        """Raise unless a capability with this token is held, at whatever frontier."""
        shard = self.shard(id)
        lookup(shard, present(shard, token, self._applier.clocks), self._applier.clocks, self._now_ms())

    def confirm(self) -> None:
        """Raise `Fenced` if another process has taken the environment over. Call it before answering a read."""
        self._check_open()
        self._applier.lease.confirm()

    def renew(self) -> None:
        """Check the epoch again if the last check was a while ago; `Fenced` if another process took over."""
        self._applier.lease.renew()

    @property
    def owned(self) -> bool:
        """Whether reads may be answered at once, without `confirm`."""
        return self._applier.lease.valid

    @property
    def fenced(self) -> Fenced | None:
        """The error to raise once another process has taken over; None before."""
        return self._applier.lease.fenced

    def draw_id(self, prefix: str = "u") -> GlobalId:
        """Draw an id that was never drawn or given. A commit with `TakeId` gives it; until then nothing is written."""
        return self._applier.draw_id(prefix)

    @property
    def next_id(self) -> int:
        return self._applier.next_id

    @property
    def commits(self) -> int:
        return self._applier.commits

    def close(self) -> None:
        """Stop background work, wake all waiters and close the stores."""
        if self._closed:
            return
        self._closed = True
        self._beats.stop()
        self.maintenance.stop()
        self.wake()
        self._applier.close()
        self._consensus.close()
        self._blob.close()

    # Inside

    def _beat(self) -> float:
        self._applier.beat()
        return BEAT_S

    def _select(
        self, id: GlobalId, lower: int, upper: int, hashes: I64 | None, check: Callable[..., None]
    ) -> Selection:
        self._check_open()
        while True:
            self.shard(id)
            with self._pins.lock:
                # The state is read under the lock that collection takes: what it refers to is still there.
                shard = self._applier.cached(id)
                if shard is None:
                    continue
                check(shard, clocks=self._applier.clocks)
                release = self._pins.pin_locked(part for batch in shard.batches.values() for part in batch.parts)
            return Selection(
                shard,
                (lower, upper),
                hashes,
                reader=self._reader,
                hot=self._hot,
                inline_cache=self._inline_cache,
                release=release,
            )

    def _published(self, changes: list[tuple[Shard | None, Shard]]) -> None:
        for before, after in changes:
            old = before.batches if before is not None else {}
            if old is not after.batches:
                if gone := old.keys() - after.batches.keys():
                    self._pins.retire(part.key for number in gone for part in old[number].parts)
                self.maintenance.consider(after)
        self.maintenance.note_leases(after for _, after in changes)

    def _check_open(self) -> None:
        if self._closed:
            raise Canceled("the environment is closed")
