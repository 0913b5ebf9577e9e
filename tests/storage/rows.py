"""Small tables for tests: rows of a number and a word."""

from __future__ import annotations

import pyarrow as pa

from everview.storage.environment import Environment

SCHEMA = pa.schema([("n", pa.int64()), ("word", pa.string())])


def updates(*rows: tuple[int, str | None, int, int]) -> pa.Table:
    """Updates from `(n, word, time, diff)`."""
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    return pa.table(
        {
            "_time": pa.array(columns[2], pa.int64()),
            "_diff": pa.array(columns[3], pa.int64()),
            "n": pa.array(columns[0], pa.int64()),
            "word": pa.array(columns[1], pa.string()),
        }
    )


def contents(environment: Environment, id: str, as_of: int) -> dict[tuple[int, str | None], int]:
    """Rows and their multiplicities at a time."""
    with environment.contents(id, as_of) as selection:
        return {(row["n"], row["word"]): row["_diff"] for row in selection.contents().to_pylist()}
