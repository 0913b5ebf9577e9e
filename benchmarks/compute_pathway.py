"""The same view in Pathway: a virtual environment of its own, the same tables and the same delta, rows per second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from everview.timely.consolidate import DIFF
from tests.tpch.refresh import Changes

VERSION = "0.33.0"
COLUMNS = {
    "customer": ("c_custkey", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_extendedprice", "l_discount", "l_shipdate"),
}
INSTALL_SECONDS_MAX, RUN_SECONDS_MAX = 900, 1800


class Unavailable(Exception):
    """Pathway cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run of Pathway gave; revenue is in hundredths of a cent."""

    seconds: float
    rows: int
    revenue: int


def python_with_pathway(cache: Path) -> Path:
    """The interpreter of an environment that has Pathway, made once; raises Unavailable."""
    folder = cache / f"pathway-{VERSION}-py{sys.version_info.major}{sys.version_info.minor}"
    interpreter = folder / "bin" / "python"
    done = folder / "complete"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        command = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            subprocess.run(
                [*command, f"pathway=={VERSION}"],
                check=True,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS_MAX,
            )
        except subprocess.CalledProcessError as error:
            last = error.stderr.strip().splitlines()[-1:] or ["pip said nothing"]
            raise Unavailable(f"pip cannot install pathway {VERSION}: {last[0]}") from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"pip did not install pathway {VERSION} in {INSTALL_SECONDS_MAX} s") from error
        done.touch()
    return interpreter


def hand_over(folder: Path, tables: Changes, batches: Sequence[Changes]) -> None:
    """Write what Pathway is to read; of the tables only rows that pass the filters, for others leave no state."""
    cutoff = pa.scalar(9204, pa.int32())
    for name, columns in COLUMNS.items():
        table = plain(tables[name].select(columns))
        if name == "customer":
            table = table.filter(pc.equal(table["c_mktsegment"], "BUILDING"))
        elif name == "orders":
            table = table.filter(pc.less(table["o_orderdate"], cutoff))
        else:
            table = table.filter(pc.greater(table["l_shipdate"], cutoff))
        parquet.write_table(table, folder / f"{name}.parquet")
        changes = [
            plain(batch[name].select(columns))
            .append_column("batch", pa.repeat(pa.scalar(number, pa.int64()), batch[name].num_rows))
            .append_column("diff", batch[name][DIFF])
            for number, batch in enumerate(batches)
            if name in batch
        ]
        if changes:
            parquet.write_table(pa.concat_tables(changes), folder / f"{name}.delta.parquet")


def plain(table: pa.Table) -> pa.Table:
    """Dates as days and money in cents: Pathway then computes in integers, which is quickest, and exactly."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_date(column.type):
            columns[name] = column.cast(pa.int32())
        elif pa.types.is_decimal(column.type):
            columns[name] = pc.multiply(column, pa.scalar(100, pa.decimal128(3, 0))).cast(pa.int64())
        else:
            columns[name] = column
    return pa.table(columns)


def run(interpreter: Path, folder: Path, threads: int) -> Measured:
    """One run; raises Unavailable if it fails."""
    script = Path(__file__).with_name("compute_pathway_alone.py")
    environment = {**os.environ, "PATHWAY_THREADS": str(threads), "PYTHONPATH": ""}
    try:
        done = subprocess.run(
            [str(interpreter), str(script), str(folder)],
            capture_output=True,
            text=True,
            check=True,
            timeout=RUN_SECONDS_MAX,
            env=environment,
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise Unavailable(f"pathway fails here: {last[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"pathway took more than {RUN_SECONDS_MAX} s") from error
    return Measured(**json.loads(done.stdout.strip().splitlines()[-1]))
