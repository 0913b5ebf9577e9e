"""A whole environment with metadata in PostgreSQL and data in an object store, as several machines would share it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from everview.storage.environment import Environment
from everview.storage.errors import Fenced
from everview.storage.observer import Observer
from everview.storage.stores import open_blob
from everview.timely.antichain import Antichain
from tests.storage.rows import SCHEMA, contents, updates

ROWS = 40_000


def many(time: int, first: int = 0, diff: int = 1) -> pa.Table:
    numbers = np.arange(first, first + ROWS)
    columns = {"n": numbers, "word": pa.array([f"word {n}" for n in numbers])}
    return pa.table({"_time": np.full(ROWS, time), "_diff": np.full(ROWS, diff), **columns})


def test_an_environment_in_postgres_and_an_object_store(
    tmp_path: Path, postgres_url: str, s3_url: Callable[[str], str]
) -> None:
    name = uuid.uuid4().hex
    separator = "&" if "?" in postgres_url else "?"
    places = {"consensus": f"{postgres_url}{separator}everview_schema=e{name}", "blob": s3_url(name)}
    with Environment.open(tmp_path / "first", background=False, **places) as first:
        read, write = first.create("u1", SCHEMA)
        write = first.append(write, updates((1, "a", 0, +1)), Antichain(1))
        write = first.append(write, many(1), Antichain(2))
        write = first.append(write, many(3, diff=-1), Antichain(5))
        assert len(contents(first, "u1", 2)) == ROWS + 1
        # Another machine takes over: it has the same data, and the first one can no longer write.
        with Environment.open(tmp_path / "second", background=False, **places) as second:
            assert len(contents(second, "u1", 2)) == ROWS + 1
            hashes = second.key_hashes("u1", pa.table({"n": [7], "word": ["word 7"]}))
            with second.contents("u1", 2, hashes) as selection:
                assert selection.contents().to_pylist() == [{"_diff": 1, "n": 7, "word": "word 7"}]
            with pytest.raises(Fenced):
                first.append(write, updates((2, "b", 6, +1)), Antichain(7))
            second.downgrade(read, Antichain(4))
            second.maintenance.compact("u1")
            assert contents(second, "u1", 4) == {(1, "a"): 1}
            second.maintenance.run()
            blob = open_blob(places["blob"])
            assert list(blob.list("parts/")) == []
            blob.close()
    observer = Observer.open(tmp_path / "none", **places)
    assert observer.collections()["u1"].upper == Antichain(5)
    observer.close()
