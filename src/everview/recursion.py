"""The depth of recursion: the stack size of threads, and the number of nested calls that fits into it.

Syntax trees, plans and values are walked recursively, and Python allows 1,000 nested calls, which 50 nested parentheses
use up. So threads get a large stack, of which only the touched part takes memory, and the limit of nested calls is what
fits into it: beyond, RecursionError is raised, which clients see as 54001, statement too complex.
"""

from __future__ import annotations

import resource
import sys
import threading

# A nested call that goes through C code, as `tuple(f(x) for x in xs)` does, takes at most about 700 bytes of stack.
STACK_BYTES = 64 << 20
CALLS_MAX = 50_000


def deepen() -> None:
    """Let the main thread, and all threads that start from now on, recurse deeply. Safe more than once."""
    if threading.stack_size() < STACK_BYTES:
        threading.stack_size(STACK_BYTES)
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < STACK_BYTES:
        room = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (room, hard))  # the main thread's stack grows up to this
    sys.setrecursionlimit(max(CALLS_MAX, sys.getrecursionlimit()))
