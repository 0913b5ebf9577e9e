"""A query as published, evaluated by Spark itself over Parquet files, and how its answer is compared with a view.

Neither our front end nor our rendering has a part in it, so a mistake of theirs shows as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.collection import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_snapshot(folder: Path, tables: Iterable[tuple[str, pa.Table]]) -> Path:
    """The contents of tables as Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables:
        parquet.write_table(table, folder / f"{name}.parquet")
    return folder


def use_snapshot(session: SparkSession, folder: Path) -> None:
    """Let the session's statements read these files by the names of the tables."""
    for file in folder.glob("*.parquet"):
        session.read.parquet(str(file)).createOrReplaceTempView(file.stem)


def difference(found: Rows, schema: Sequence[SqlType], expected: pa.Table) -> str | None:
    """What a view and Spark's answer disagree on.

    Spark keeps fewer digits of averages and quotients: such columns may differ by one in the last digit of both. All
    others are equal.
    """
    digits = {place: _digits(each, expected.schema.field(place).type) for place, each in enumerate(schema)}
    coarse = [place for place, kept in digits.items() if kept is not None]
    ours: dict[Any, list[Any]] = defaultdict(list)
    theirs: dict[Any, list[Any]] = defaultdict(list)
    for row, count in found.items():
        if count < 0:
            return f"{row} is there {count} times"
        ours[_exact(row, coarse)] += [tuple(row[place] for place in coarse)] * count
    for row in zip(*(column.to_pylist() for column in expected.columns), strict=True):
        theirs[_exact(row, coarse)].append(tuple(row[place] for place in coarse))
    tolerances = [Decimal(1).scaleb(-(digits[place] or 0)) for place in coarse]
    wrong = [
        f"{key}: maintained {ours.get(key)}, recomputed {theirs.get(key)}"
        for key in sorted({*ours, *theirs}, key=str)
        if not _close(ours.get(key, []), theirs.get(key, []), tolerances)
    ]
    return "\n".join([f"{len(wrong)} of {len({*ours, *theirs})} rows", *wrong[:10]]) if wrong else None


def _digits(ours: SqlType, theirs: pa.DataType) -> int | None:
    """How many digits behind the point are comparable, where the scales differ."""
    if ours.kind is not Kind.NUMERIC or not pa.types.is_decimal(theirs) or ours.scale == theirs.scale:
        return None
    return min(ours.scale, theirs.scale)


def _exact(row: Sequence[Any], coarse: Sequence[int]) -> tuple[Any, ...]:
    return tuple(value for place, value in enumerate(row) if place not in coarse)


def _close(ours: list[Any], theirs: list[Any], tolerances: Sequence[Decimal]) -> bool:
    if len(ours) != len(theirs):
        return False
    return all(
        (one is None) == (other is None) and (one is None or abs(one - other) <= tolerance)
        for row, answer in zip(sorted(ours, key=repr), sorted(theirs, key=repr), strict=True)
        for one, other, tolerance in zip(row, answer, tolerances, strict=True)
    )
