"""When memory is looked through and given back, so that neither holds up those who wait for an answer.

Most objects are let go of by counting who uses them. Those that use one another in a circle are found by looking at
all objects of an age, which holds the interpreter's lock until it is done: tenths of a second where a statement holds
a million rows, again and again while it makes them. So young objects are looked at often and in small numbers, what
was there before anyone was served is never looked at, and all the rest is when the process has little to do.

What is free goes back to the system once a minute, and earlier if the process has grown: small pieces that stay lie
among larger ones that come and go, so a heap has holes that it does not give back by itself. There are few pools of
memory: by default threads get more of them over time, each of which keeps what it once had. And whatever is large is a
piece of its own, which goes back at once: by default the bound of what is large rises to the size of the largest piece
that was ever freed, and then pieces of all sizes lie among one another, with more and more holes that fit nothing.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
import time
from typing import Any

from everview.background import Backoff, Loop

YOUNG_OBJECTS = 5_000  # new ones, until these are looked at: about a millisecond
YOUNG_TIMES = 8  # that often, until those that have stayed are looked at once more
NEVER = 1 << 30
CHECK_S = 1.0
QUIET_SHARE = 0.1  # of a core: a process that computes less than this is quiet
# So many times objects have grown old since all were looked at: worth a look when it is quiet, and in any case.
GROWN_OLD_QUIET, GROWN_OLD_MAX = 5, 500
QUIET_S_MAX = 300.0  # after so long without a quiet moment, what is worth a look is looked at
GIVE_BACK_S, GIVE_BACK_S_MIN = 60.0, 5.0
GROWN_BYTES = 24 << 20  # since memory was given back last: then it is time again
LARGE_BYTES = 256 << 10
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # as malloc.h has them


class MemoryKeeper:
    """Sees to the memory of this process from `start` until `stop`."""

    def __init__(self) -> None:
        self._loop = Loop("everview-memory", self._check, backoff=Backoff(CHECK_S, GIVE_BACK_S))
        self._thresholds = gc.get_threshold()
        self._looked = self._given_back = time.monotonic()
        self._computed_s = 0.0
        self._resident = 0  # bytes, when memory had been given back

    def start(self) -> None:
        """From now on."""
        gc.freeze()
        gc.set_threshold(YOUNG_OBJECTS, YOUNG_TIMES, NEVER)
        if (option := _library("mallopt")) is not None:
            option(_M_ARENA_MAX, max(2, os.cpu_count() or 2))
            option(_M_MMAP_THRESHOLD, LARGE_BYTES)
        self._loop.start(CHECK_S)

    def stop(self) -> None:
        """Leave it to Python again."""
        self._loop.stop()
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def _check(self) -> float:
        before_s, self._computed_s = self._computed_s, time.process_time()
        now = time.monotonic()
        if is_due(gc.get_count()[2], (self._computed_s - before_s) / CHECK_S, now - self._looked):
            gc.collect()
            self._looked = time.monotonic()
        if gives_back(now - self._given_back, resident_bytes() - self._resident):
            give_back()
            self._given_back, self._resident = now, resident_bytes()
        return CHECK_S


def is_due(grown_old: int, share: float, waited_s: float) -> bool:
    """Whether to look at all objects, by how often some grew old, what the process computes, and the last look."""
    if grown_old < GROWN_OLD_QUIET:
        return False
    return share < QUIET_SHARE or grown_old >= GROWN_OLD_MAX or waited_s >= QUIET_S_MAX


def gives_back(waited_s: float, grown: int) -> bool:
    """Whether to give memory back, by when that was done last and by how many bytes the process has grown since."""
    return waited_s >= (GIVE_BACK_S_MIN if grown >= GROWN_BYTES else GIVE_BACK_S)


def resident_bytes() -> int:
    """What this process has of the machine's memory; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def give_back() -> None:
    """Give memory that is free to the system, where its library can do that; others go on meanwhile."""
    if (trim := _library("malloc_trim")) is not None:
        trim(0)


def _library(name: str) -> Any:
    """A function of the system's library, if it has it."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
