"""Wait for a condition: `eventually` is the one way in which tests wait for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

WAIT_S_MAX = 60.0  # a machine may be slow: a test that fails takes this long, and no other does


def eventually(
    condition: Callable[[], T], seconds: float = WAIT_S_MAX, *, shown: Callable[[], object] = lambda: ""
) -> T:
    """Wait until the condition holds, and give its value. If that takes too long, the error says what is `shown`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited for {seconds:.0f} s in vain {shown()}".rstrip()
        time.sleep(0.005)
    return found
