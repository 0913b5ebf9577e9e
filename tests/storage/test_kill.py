"""A process is killed at random and at every failpoint while it commits; whatever it acknowledged is there, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from everview.storage.blob.local import LocalBlob
from everview.storage.environment import Environment
from everview.storage.faults import FAILPOINTS
from tests.storage.kill_child import IDS, inserted

ROUNDS_SHORT, ROUNDS_LONG = 12, 200


def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path, rng: random.Random, long_forms: bool) -> None:
    folder = tmp_path / "data"
    points = sorted(FAILPOINTS)
    rng.shuffle(points)
    upper, since, deaths = 0, 0, Counter[str]()
    rounds = ROUNDS_LONG if long_forms else max(ROUNDS_SHORT, len(points))
    for number in range(rounds):
        point = points[number % len(points)] if number % 3 else None
        how, acknowledged = run_and_kill(folder, point, rng)
        deaths[how] += 1
        upper, since = check(folder, acknowledged, upper, since)
    assert upper > rounds, "the process got nowhere"
    assert deaths["killed"] and deaths.total() == rounds, deaths


def run_and_kill(folder: Path, point: str | None, rng: random.Random) -> tuple[str, int]:
    """Start the child and kill it, or let a failpoint do it; gives how it died and the last time it acknowledged."""
    environment = dict(os.environ)
    if point is not None:
        environment["EVERVIEW_FAILPOINT"] = f"{point}:{rng.randint(1, 30)}"
    arguments = [sys.executable, "-m", "tests.storage.kill_child", str(folder)]
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        last, deadline = -1, None
        while line := child.stdout.readline():
            word, number = line.split()
            last = int(number) if word == "ack" else last
            deadline = deadline or time.monotonic() + rng.uniform(0.0, 0.4)
            if time.monotonic() > deadline:
                child.send_signal(signal.SIGKILL)
        errors = child.stderr.read()
        assert child.wait() == -signal.SIGKILL, errors
    return "killed" if deadline is not None else point or "killed", last


def check(folder: Path, acknowledged: int, upper_before: int, since_before: int) -> tuple[int, int]:
    """Open what the dead process left; gives the frontiers, which no longer move back."""
    with Environment.open(folder, background=False) as environment:
        if not environment.ids():
            assert acknowledged == -1 and upper_before == 0
            return 0, 0
        found = [environment.frontiers(id) for id in IDS]
        assert found[0] == found[1], "the two collections move together"
        upper, since = found[0].upper.only, found[0].since.only
        assert upper >= max(upper_before, acknowledged + 1)
        assert since >= since_before
        times = range(since, upper)
        for id in IDS:
            for as_of in sorted({*times[:2], *times[-2:]}):
                with environment.contents(id, as_of) as selection:
                    rows = {(row["id"], row["text"]): row["_diff"] for row in selection.contents().to_pylist()}
                alive = range(max(0, as_of - 4), as_of + 1)
                assert rows == Counter(row for t in alive for row in inserted(id, t)), (id, as_of)
        environment.maintenance.run()
        shards = [environment.shard(id) for id in IDS]
        wanted = {part.key for shard in shards for batch in shard.batches.values() for part in batch.parts}
    assert {info.key for info in LocalBlob(folder / "blob").list()} == wanted, "no orphans"
    return upper, since
