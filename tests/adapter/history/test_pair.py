"""A leader and a standby over PostgreSQL and an S3 server: whatever befalls the leader, the history is in order."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from everview.storage.stores import StoreAddresses
from tests.adapter.history.pair import Pair
from tests.adapter.history.test_history import check_run

FAULTS = (signal.SIGKILL, signal.SIGSTOP)
LONG_FAULTS = (*(signal.SIGKILL,) * 20, *(signal.SIGSTOP,) * 6)


@pytest.mark.timeout(3_600)
def test_no_anomaly_while_leaders_change(
    tmp_path: Path, rng: random.Random, long_forms: bool, postgres_url: str, s3_url: Callable[[str], str]
) -> None:
    name = f"history_{os.getpid()}"
    stores = StoreAddresses(f"{postgres_url}&everview_schema={name}", s3_url(name))
    faults = list(LONG_FAULTS if long_forms else FAULTS)
    rng.shuffle(faults)
    with Pair(stores, tmp_path, rng) as run:
        for fault in faults:
            run.fail(rng.randrange(10, 600 if long_forms else 100), fault)
        run.settle()
        run.check_sink()
        run.stop()
    check_run(run)
