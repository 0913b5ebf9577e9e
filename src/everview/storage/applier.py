"""The applier: the one place where drafts become durable.

It holds what is stored in memory (this process is the only writer, by its epoch), runs commands against drafts, and
commits. Commits that come while another is under way share the next durable write, each drafted on top of the ones
before, each failing alone if its commands are invalid.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from everview.errors import EverviewError
from everview.storage import codec
from everview.storage.consensus.contract import Conflict, Consensus, Entry, entry_at
from everview.storage.contract import GlobalId
from everview.storage.errors import Canceled, Corruption, Determinate, Fenced, Indeterminate, StorageError
from everview.storage.faults import failpoint
from everview.storage.group_commit import Queue, Waiting
from everview.storage.lease import Lease
from everview.storage.opening import Taken
from everview.storage.process_identity import process_text
from everview.storage.shard import FOREVER, Shard, Spec
from everview.storage.signal import Signal
from everview.storage.transitions import AnyCommand, Draft, Result, check_prefix

QUEUE_MAX = 10_000
OPENING_COMMITS = 2  # of `opening.match_blob`: their versions are not used again
GROUP_MAX = 256  # commits in one durable write
ABSENT_MAX = 100_000  # ids that are known not to be in use

Published = Callable[[list[tuple[Shard | None, Shard]]], None]


@dataclass(slots=True, eq=False, kw_only=True)
class _Request(Waiting):
    """A commit that is queued."""

    commands: tuple[AnyCommand, ...]
    results: list[Result] = field(default_factory=list)
    error: BaseException | None = None


class Applier:
    """Serializes commits; `changed` is notified after each."""

    def __init__(
        self,
        consensus: Consensus,
        *,
        taken: Taken,
        now_ms: Callable[[], int],
        new_token: Callable[[str], str],
        published: Published,
    ) -> None:
        self._consensus = consensus
        self._owner, self._epoch_version = taken.owner, taken.version
        self._versions = taken.version + OPENING_COMMITS
        self.lease = Lease(self._check_epoch, taken.owner["token"])
        self._now_ms = now_ms
        self._new_token = new_token
        self._published = published
        self._shards: dict[GlobalId, tuple[Shard, int]] = {}
        self.damaged: dict[GlobalId, Corruption] = {}  # shards that could not be read
        self._absent: set[GlobalId] = set()  # ids that are not in use; only this process could begin to use them
        self._queue: Queue[_Request, _Request] = Queue(
            QUEUE_MAX, lambda: Determinate(f"{QUEUE_MAX} commits are waiting already", hint="slow down and retry")
        )
        self._commit_lock = threading.RLock()
        self.changed = Signal()
        self.commits = 0
        self._drawn = 1  # ids with lower numbers were drawn, given or not
        self._read_shared()

    def _read_shared(self) -> None:
        """Read what all shards share: the clocks and the next id."""
        self.next_id = 1
        self._next_id_version: int | None = None
        clocks: dict[str, int] = {}
        self._clock_versions: dict[str, int] = {}
        for key, entry in self._consensus.scan(codec.clock_key(""), codec.NEXT_ID):
            with codec.decoding("the environment"):
                if key == codec.NEXT_ID:
                    self.next_id, self._next_id_version = int(json.loads(entry.value)), entry.version
                else:
                    name = key.removeprefix(codec.clock_key(""))
                    clocks[name], self._clock_versions[name] = int(json.loads(entry.value)), entry.version
        self.clocks: Mapping[str, int] = clocks
        self._known = True

    def draw_id(self, prefix: str) -> GlobalId:
        """An id that nobody was ever given, in memory: a commit with `TakeId` makes that durable."""
        check_prefix(prefix)
        with self._commit_lock:
            if not self._known:
                self._read_shared()
            while self.shard(id := f"{prefix}{self._draw_number()}") is not None:
                pass
        return id

    def _draw_number(self) -> int:
        number = max(self._drawn, self.next_id)
        self._drawn = number + 1
        return number

    def shard(self, id: GlobalId) -> Shard | None:
        """The shard as last committed; None if the id was never used."""
        found = self._shards.get(id)
        if found is None and id not in self._absent:
            with self._commit_lock:
                found = self._shards.get(id) or self._load(id)
        return None if found is None else found[0]

    def cached(self, id: GlobalId) -> Shard | None:
        """The shard as last committed, without waiting for anyone; None if it has to be read first."""
        found = self._shards.get(id)
        return None if found is None else found[0]

    def _load(self, id: GlobalId) -> tuple[Shard, int] | None:
        entries = self._consensus.scan(*codec.shard_prefixes(id))
        try:
            shard = codec.decode_shard(id, entries)
        except Corruption as error:
            self.damaged[id] = error
            raise
        self.damaged.pop(id, None)
        if shard is None:
            if len(self._absent) >= ABSENT_MAX:
                self._absent.clear()
            self._absent.add(id)
            return None
        version = next(entry.version for key, entry in entries if key == codec.state_key(id))
        self._shards[id] = (shard, version)
        return self._shards[id]

    def inspect(self) -> Mapping[GlobalId, Corruption]:
        """Read all shards that were not read yet; gives the damaged ones."""
        keys = self._consensus.scan(*(prefix("").rstrip("/") + "/" for prefix in (codec.state_key, codec.spec_key)))
        for id in sorted({key.split("/")[1] for key, _ in keys}):
            with suppress(Corruption):
                self.shard(id)
        return dict(self.damaged)

    def abandon(self, id: GlobalId) -> None:
        """Remove all that is stored of a shard but its name, without looking at it."""
        with self._commit_lock:
            if self.lease.fenced is not None:
                raise self.lease.fenced
            entries = dict(self._consensus.scan(*codec.shard_prefixes(id)))
            gone = Shard(id, Spec(pa.schema([]), (), 0), FOREVER, FOREVER, {}, {})
            writes: dict[str, bytes | None] = dict.fromkeys(entries)
            writes[codec.state_key(id)] = codec.encode_state(gone)
            known = entries.get(codec.state_key(id))
            expected = {codec.EPOCH: self._epoch_version, codec.state_key(id): None if known is None else known.version}
            self._versions += 1
            self._write(expected, writes, self._versions, [id])
            self._forget_shard(id)
            self.damaged.pop(id, None)
        self.changed.tell()

    def commit(self, commands: tuple[AnyCommand, ...]) -> list[Result]:
        """Make the commands durable, all or none, and give back what each of them gives."""
        request = _Request(commands=commands)
        self._queue.commit(request, GROUP_MAX, self._commit_requests)
        if request.error is not None:
            raise request.error
        return request.results

    def _commit_requests(self, group: list[_Request]) -> None:
        try:
            with self._commit_lock:
                self._commit_group(group)
        except BaseException as error:
            for request in group:
                request.error = error if request.error is None or isinstance(error, Fenced) else request.error
            if not isinstance(error, EverviewError):
                raise

    def _commit_group(self, group: list[_Request]) -> None:
        if self.lease.fenced is not None:
            raise self.lease.fenced
        if not self._known:
            self._read_shared()
        draft = Draft(self.shard, self.clocks, self.next_id, self._draw_number, self._now_ms(), self._new_token)
        drafted = []
        for request in group:
            branch = draft.branch()
            try:
                request.results = branch.run(request.commands)
            except (StorageError, OverflowError) as error:
                request.error = error
                continue
            draft.adopt(branch)
            drafted.append(request)
        if len(drafted) < len(group):
            self._check_epoch()  # what looks invalid from here may be the work of a newer process
        if not drafted:
            return
        self._make_durable(draft)

    def _make_durable(self, draft: Draft) -> None:
        before = {id: self._shards.get(id) for id in draft.shards}
        expected: dict[str, int | None] = {codec.EPOCH: self._epoch_version}
        writes: dict[str, bytes | None] = {}
        for id, shard in draft.shards.items():
            known = before[id]
            expected[codec.state_key(id)] = None if known is None else known[1]
            writes.update(codec.writes_between(None if known is None else known[0], shard))
        for name, time in draft.clocks.items():
            expected[codec.clock_key(name)] = self._clock_versions.get(name)
            writes[codec.clock_key(name)] = b"%d" % time
        if draft.next_id is not None:
            expected[codec.NEXT_ID] = self._next_id_version
            writes[codec.NEXT_ID] = b"%d" % draft.next_id
        writes.update((codec.meta_key(key), value) for key, value in draft.puts.items())
        self._versions += 1
        failpoint("commit.before")
        self._write(expected, writes, self._versions, draft.shards)
        failpoint("commit.after")
        self.commits += 1
        try:
            self._publish(draft, {id: None if known is None else known[0] for id, known in before.items()})
        except Exception as error:  # what is durable must not be taken for a commit that failed
            self._forget(draft.shards)
            raise Indeterminate("a commit is durable, and could not be told of", detail=str(error)) from error

    def _write(
        self,
        expected: Mapping[str, int | None],
        writes: Mapping[str, bytes | None],
        version: int,
        touched: Iterable[GlobalId],
    ) -> None:
        began = self.lease.now_ms
        try:
            self._consensus.commit(expected, writes, version)
            self.lease.extend(began)
        except Conflict as conflict:
            current = conflict.current.get(codec.EPOCH)
            if current is None or current.version != self._epoch_version:
                raise self._fenced_by(current) from conflict
            self._forget(touched)
            raise Determinate("stored state is not as this process left it", hint="retry") from conflict
        except Indeterminate:
            # What is stored is no longer known here; it is read again before it is used again.
            self._forget(touched)
            raise

    def _check_epoch(self) -> None:
        current = entry_at(self._consensus, codec.EPOCH)
        if current is None or current.version != self._epoch_version:
            raise self._fenced_by(current)

    def _fenced_by(self, entry: Entry | None) -> StorageError:
        """Another process has taken over: all who wait for something are to know. Or this one has closed it."""
        owner = json.loads(entry.value) if entry is not None else {}
        if owner.get("token") == self._owner["token"]:
            return Canceled("the environment is closed")
        fenced = Fenced(
            "another process has opened this environment",
            detail=f"epoch {owner.get('epoch')}, {process_text(owner)}",
            hint="this process can neither write nor read any more; stop it",
        )
        self.lease.end(fenced)
        self.changed.tell()
        return fenced

    def beat(self) -> None:
        """Show those who stand by that this process lives; `Fenced` if another one has taken over."""
        with self._commit_lock:
            if self.lease.fenced is not None:
                raise self.lease.fenced
            self._versions += 1
            self._write({codec.EPOCH: self._epoch_version}, {codec.BEAT: b"%d" % self._versions}, self._versions, ())

    def close(self) -> None:
        """Let go of the epoch, so that whoever opens the environment next need not wait for the lease to end."""
        owner = json.dumps({**self._owner, "closed": True}).encode()
        with self._commit_lock, suppress(StorageError):
            if self.lease.fenced is None:
                self._consensus.commit({codec.EPOCH: self._epoch_version}, {codec.EPOCH: owner}, self._versions + 1)
        self.lease.lapse()

    def _forget(self, ids: Iterable[GlobalId]) -> None:
        self._known = False
        for id in ids:
            self._forget_shard(id)

    def _forget_shard(self, id: GlobalId) -> None:
        self._shards.pop(id, None)
        self._absent.discard(id)

    def _publish(self, draft: Draft, before: Mapping[GlobalId, Shard | None]) -> None:
        for id, shard in draft.shards.items():
            self._shards[id] = (shard, self._versions)
            self._absent.discard(id)
        if draft.clocks:
            self.clocks = {**self.clocks, **draft.clocks}
            self._clock_versions.update(dict.fromkeys(draft.clocks, self._versions))
        if draft.next_id is not None:
            self.next_id, self._next_id_version = draft.next_id, self._versions
        self._published([(before[id], shard) for id, shard in draft.shards.items()])
        self.changed.tell()
