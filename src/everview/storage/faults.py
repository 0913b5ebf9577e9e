"""Failure on purpose: stores that fail as a plan says, and named points at which a process can be made to die.

`EVERVIEW_FAILPOINT="blob.put.linked:3"` kills the process at the third hit of that point, as a power cut
would; tests in one process arm a point to raise `Crash` instead. An unarmed point costs one look at an
empty dictionary.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TypeAlias, TypeVar

import pyarrow as pa

from everview.storage.blob.contract import Blob, BlobInfo
from everview.storage.consensus.contract import Consensus, Entry
from everview.storage.errors import Determinate, Indeterminate, InvalidUsage, StorageFull

T = TypeVar("T")

FAILPOINTS = {
    "part.written": "a part is durable, and no commit refers to it yet",
    "commit.before": "a commit is drafted, and nothing of it is durable",
    "commit.after": "a commit is durable, and its callers have not been told",
    "compaction.written": "the merged batch is durable, and its inputs are still in place",
    "gc.before_delete": "a part is about to be removed",
    "blob.put.written": "the bytes are durable under a temporary name",
    "blob.put.linked": "the blob has its name, which is not durable yet",
    "blob.delete.unlinked": "the blob's name is gone, not durably yet",
    "consensus.commit.applied": "all writes are made in a transaction that is still open",
    "consensus.commit.done": "the commit is durable, and its caller does not know",
}


class Crash(BaseException):
    """Raised by an armed failpoint. Not an `Exception`, so that no handler takes it for a failure that it knows."""


@dataclass(eq=False)
class _Arming:
    """An armed point: `act` runs at the last of the hits that are `left`; only hits of `thread` count, if it is set."""

    left: int
    act: Callable[[str], None]
    thread: threading.Thread | None = None
    for_good: bool = False


_armed: dict[str, _Arming] = {}
_arming = threading.Lock()


def failpoint(name: str) -> None:
    """Run the action of this point if it is armed for this hit."""
    if _armed:
        _hit(name)


def _hit(name: str) -> None:
    _check_known(name)
    with _arming:
        arming = _armed.get(name)
        if arming is None or arming.thread not in (None, threading.current_thread()):
            return
        if arming.left > 1:
            arming.left -= 1
            return
        del _armed[name]
        if arming.for_good:
            _armed["commit.before"] = arming
    arming.act(name)


def _check_known(name: str) -> None:
    if name not in FAILPOINTS:
        raise InvalidUsage(f"unknown failpoint {name!r}", hint=f"one of {', '.join(sorted(FAILPOINTS))}")


def _kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _crash(name: str) -> None:
    raise Crash(name)


@contextmanager
def armed(
    name: str,
    hit: int = 1,
    act: Callable[[str], None] = _crash,
    *,
    thread: threading.Thread | None = None,
    for_good: bool = False,
) -> Iterator[None]:
    """Within the block, the `hit`-th time that `failpoint(name)` is reached does `act`: by default raises `Crash`.

    With `thread`, only what that thread does counts. With `for_good`, nothing becomes durable after that hit until
    the block ends, whichever thread tries: the process has died, though its threads go on.
    """
    _check_known(name)
    arming = _Arming(hit, act, thread, for_good)
    with _arming:
        _armed[name] = arming
    try:
        yield
    finally:
        with _arming:
            for point in [point for point, each in _armed.items() if each is arming]:
                del _armed[point]


def arm_from(environment: Mapping[str, str]) -> None:
    """Arm the point that `EVERVIEW_FAILPOINT` names, if any, to kill the process."""
    if wanted := environment.get("EVERVIEW_FAILPOINT"):
        name, _, hit = wanted.partition(":")
        _check_known(name)
        if hit and not (hit.isdigit() and int(hit) > 0):
            raise InvalidUsage(f"not a number of hits: {hit!r}", hint='write EVERVIEW_FAILPOINT="name:3"')
        _armed[name] = _Arming(int(hit or 1), _kill)


arm_from(os.environ)


class Fault(Enum):
    """What happens to one call."""

    FINE = "fine"
    BEFORE = "fails before it has any effect"
    AFTER = "has its effect, then fails as if that were not known"
    LOST = "has no effect, then fails as if that were not known"
    FULL = "finds no space"
    DELAY = "is slow"
    CORRUPT = "opens a blob with one bit flipped"
    TRUNCATE = "opens a blob with its end missing"


Plan: TypeAlias = Callable[[str], Fault]
"""Decides what happens to each call, by the name of its method."""


def scripted(*faults: Fault, only: Collection[str] = ()) -> Plan:
    """These faults in turn, for calls of the methods in `only` (by default all), then none."""
    rest = iter(faults)
    lock = threading.Lock()

    def plan(call: str) -> Fault:
        with lock:
            return next(rest, Fault.FINE) if call in only or not only else Fault.FINE

    return plan


def random_faults(seed: int | str, rates: Mapping[Fault, float]) -> Plan:
    """Each fault with its probability; the same ones for the same seed and sequence of calls."""
    rng = random.Random(seed)
    lock = threading.Lock()

    def plan(_: str) -> Fault:
        with lock:
            drawn = rng.random()
        for fault, rate in rates.items():
            drawn -= rate
            if drawn < 0:
                return fault
        return Fault.FINE

    return plan


class _Faulty:
    """Makes calls under a plan: what both wrappers share."""

    def __init__(self, plan: Plan, sleep: Callable[[float], None], delay_s: float) -> None:
        self._plan = plan
        self._sleep = sleep
        self._delay_s = delay_s

    def _call(self, name: str, work: Callable[[], T], *, reads: bool = False) -> tuple[T, Fault]:
        fault = self._plan(name)
        doubt = fault in {Fault.AFTER, Fault.LOST}
        if fault is Fault.BEFORE or (doubt and reads):
            raise Determinate(f"injected: {name} failed", hint="try again")
        if fault is Fault.FULL and not reads:
            raise StorageFull(f"injected: no space left for {name}")
        if fault is Fault.DELAY:
            self._sleep(self._delay_s)
        if fault is not Fault.LOST:
            result = work()
        if doubt:
            raise Indeterminate(f"injected: {name} may have happened", hint="look before trying again")
        return result, fault


class FaultyBlob(_Faulty):
    """A Blob whose calls fail as `plan` says."""

    def __init__(
        self, inner: Blob, plan: Plan, *, sleep: Callable[[float], None] = time.sleep, delay_s: float = 0.005
    ) -> None:
        super().__init__(plan, sleep, delay_s)
        self._inner = inner
        self._opened = 0

    def put(self, key: str, data: bytes | memoryview | pa.Buffer) -> None:
        self._call("put", lambda: self._inner.put(key, data))

    def put_file(self, key: str, path: Path) -> None:
        self._call("put_file", lambda: self._inner.put_file(key, path))

    def seal(self, key: str) -> None:
        self._call("seal", lambda: self._inner.seal(key))

    def open(self, key: str) -> pa.NativeFile:
        file, fault = self._call("open", lambda: self._inner.open(key), reads=True)
        if fault in {Fault.CORRUPT, Fault.TRUNCATE} and file.size() > 0:
            self._opened += 1
            at = random.Random(f"{key} {self._opened}").randrange(file.size())
            data = bytearray(file.read())
            if fault is Fault.TRUNCATE:
                return pa.BufferReader(bytes(data[:at]))
            data[at] ^= 1 << (self._opened % 8)
            return pa.BufferReader(bytes(data))
        return file

    def delete(self, key: str) -> bool:
        return self._call("delete", lambda: self._inner.delete(key))[0]

    def list(self, prefix: str = "") -> Iterator[BlobInfo]:
        return self._call("list", lambda: self._inner.list(prefix), reads=True)[0]

    def uri(self, key: str) -> str:
        return self._inner.uri(key)

    def close(self) -> None:
        self._inner.close()


class FaultyConsensus(_Faulty):
    """A Consensus whose calls fail as `plan` says."""

    def __init__(
        self, inner: Consensus, plan: Plan, *, sleep: Callable[[float], None] = time.sleep, delay_s: float = 0.005
    ) -> None:
        super().__init__(plan, sleep, delay_s)
        self._inner = inner

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        return self._call("get", lambda: self._inner.get(keys), reads=True)[0]

    def scan(self, *prefixes: str) -> list[tuple[str, Entry]]:
        return self._call("scan", lambda: self._inner.scan(*prefixes), reads=True)[0]

    def commit(self, expected: Mapping[str, int | None], writes: Mapping[str, bytes | None], version: int) -> None:
        self._call("commit", lambda: self._inner.commit(expected, writes, version))

    def close(self) -> None:
        self._inner.close()
