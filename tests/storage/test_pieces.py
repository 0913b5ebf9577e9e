"""Updates that come in pieces: one batch of them all, inline if they are few, in parts if they are many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from everview.storage import staging
from everview.storage.blob.memory import MemoryBlob
from everview.storage.consensus.memory import MemoryConsensus
from everview.storage.contract import UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain
from everview.timely.consolidate import DIFF, TIME


def piece(first: int, rows: int, diff: int = 1) -> pa.Table:
    return pa.table(
        {"c0": pa.array(range(first, first + rows)), TIME: pa.array([5] * rows), DIFF: pa.array([diff] * rows)}
    )


@pytest.mark.parametrize("size", [1 << 10, 32 << 20])
def test_pieces_are_one_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(staging, "_PIECES_BYTES", size)
    blob = MemoryBlob()
    with Environment(MemoryConsensus(), blob, tmp_path, background=False) as environment:
        _, writer = environment.create("u1", pa.schema([("c0", pa.int64())]))
        pieces = [piece(0, 100), piece(100, 0), piece(50, 100), piece(0, 50, -1)]
        staged = environment.stage_pieces("u1", iter(pieces))
        assert staged.batch is not None and staged.batch.inline == (size > 1 << 20)
        environment.commit(UpdateAndDowngrade(writer, staged, Antichain(6)))
        with environment.contents("u1", 5) as selection:
            found = selection.contents()
        rows = zip(found.column("c0").to_pylist(), found.column(DIFF).to_pylist(), strict=True)
        assert sorted(rows) == [(n, 2 if n < 100 else 1) for n in range(50, 150)]
        assert environment.stage_pieces("u1", iter([piece(0, 0)])).batch is None


def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_PIECES_BYTES", 1 << 10)
    blob = MemoryBlob()

    def pieces() -> Iterator[pa.Table]:
        yield piece(0, 1000)
        raise OSError("upstream is gone")

    with Environment(MemoryConsensus(), blob, tmp_path, background=False) as environment:
        environment.create("u1", pa.schema([("c0", pa.int64())]))
        with pytest.raises(OSError, match="upstream is gone"):
            environment.stage_pieces("u1", pieces())
        assert not list(blob.list("parts/"))
