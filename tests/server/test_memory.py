"""Looking for garbage does not hold up others, and memory does not grow with the threads that come and go."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from everview.server.memory import (
    GIVE_BACK_S,
    GIVE_BACK_S_MIN,
    GROWN_BYTES,
    GROWN_OLD_MAX,
    GROWN_OLD_QUIET,
    QUIET_S_MAX,
    give_back,
    gives_back,
    is_due,
    resident_bytes,
)
from everview.server.run import Running


def test_all_objects_are_looked_at_in_quiet_moments() -> None:
    assert not is_due(GROWN_OLD_QUIET - 1, 0.0, QUIET_S_MAX), "nothing to find"
    assert is_due(GROWN_OLD_QUIET, 0.01, 1.0)
    assert not is_due(GROWN_OLD_QUIET, 0.9, 1.0), "it would hold up whoever computes"
    assert is_due(GROWN_OLD_QUIET, 0.9, QUIET_S_MAX) and is_due(GROWN_OLD_MAX, 0.9, 1.0)


def test_memory_is_given_back_when_the_process_has_grown() -> None:
    assert gives_back(GIVE_BACK_S, 0)
    assert not gives_back(GIVE_BACK_S - 1, GROWN_BYTES - 1)
    assert gives_back(GIVE_BACK_S_MIN, GROWN_BYTES)
    assert not gives_back(GIVE_BACK_S_MIN - 1, GROWN_BYTES), "what is really needed stays, and is not looked for often"


def test_holes_in_the_heap_go_back() -> None:
    if not resident_bytes():
        return  # the system does not tell
    pieces = [bytearray(50_000) for _ in range(2_000)]
    full = resident_bytes()
    stay = pieces[::20]  # between these are holes
    pieces.clear()
    give_back()
    assert full - resident_bytes() > 80 << 20
    assert len(stay) == 100


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
