"""Failpoints: named points at which a process can be made to die.

`EVERVIEW_FAILPOINT="blob.put.linked:3"` kills the process at the third hit of that point, as a power cut
would; tests in one process arm a point to raise `Crash` instead. An unarmed point costs one look at an
empty dictionary.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from everview.storage.errors import InvalidUsage

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
        _armed[name] = _Arming(int(hit or 1), lambda _: os.kill(os.getpid(), signal.SIGKILL))


arm_from(os.environ)
