"""Blob and Consensus that fail on purpose: wrappers around the real ones, which fail as a plan says."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TypeAlias, TypeVar

import pyarrow as pa

from everview.storage.blob.contract import Blob, BlobInfo
from everview.storage.consensus.contract import Consensus, Entry
from everview.storage.errors import Determinate, Indeterminate, StorageFull

T = TypeVar("T")


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
