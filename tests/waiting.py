"""Wait for a condition: `eventually` is the one way in which tests wait for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

WAIT_S_MAX = 60.0  # a machine may be slow: a test that fails takes this long, and no other does


def eventually(condition: Callable[[], Any], seconds: float = WAIT_S_MAX) -> bool:
    """Wait until the condition holds; an error if it does not come about in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited for {seconds:.0f} s in vain"
        time.sleep(0.005)
    return True
