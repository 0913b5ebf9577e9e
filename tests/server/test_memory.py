"""Looking for garbage does not hold up others, and memory does not grow with the threads that come and go."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from everview.server.memory import GROWN_OLD_MAX, GROWN_OLD_QUIET, QUIET_S_MAX, give_back, is_due
from everview.server.run import Running


def test_all_objects_are_looked_at_in_quiet_moments() -> None:
    assert not is_due(GROWN_OLD_QUIET - 1, 0.0, QUIET_S_MAX), "nothing to find"
    assert is_due(GROWN_OLD_QUIET, 0.01, 1.0)
    assert not is_due(GROWN_OLD_QUIET, 0.9, 1.0), "it would hold up whoever computes"
    assert is_due(GROWN_OLD_QUIET, 0.9, QUIET_S_MAX) and is_due(GROWN_OLD_MAX, 0.9, 1.0)


def test_a_statement_of_many_rows_does_not_have_all_objects_looked_at(serve: Callable[..., Running]) -> None:
    before = gc.get_threshold()
    seen: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and threading.current_thread() is threading.main_thread():
            seen.append(info["generation"])

    running = serve()
    gc.callbacks.append(look)
    try:
        rows = {(number, (number,)): [number] for number in range(300_000)}
    finally:
        gc.callbacks.remove(look)
    assert len(rows) == 300_000 and len(seen) > 10 and 2 not in seen
    running.close()
    running.close()
    assert gc.get_threshold() == before
    give_back()
