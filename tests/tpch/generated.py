"""TPC-H data at a scale, made by the `tpchgen-cli` of this environment and read as Arrow."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from everview.compute.ir.types import Kind, SqlType, arrow_type
from tests.tpch.schema import TABLES


def generate_files(scale: float, folder: Path) -> Path:
    """A folder with one Parquet file for each table; made once."""
    done = folder / "complete"
    if not done.exists():
        command = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
        arguments = ["parquet", "--scale-factor", str(scale), "--output-dir", str(folder), "--overwrite", "--quiet"]
        subprocess.run([str(command), *arguments], check=True)
        done.touch()
    return folder


def read_tables(folder: Path, names: list[str] | None = None) -> dict[str, pa.Table]:
    """The tables, with their own names for the columns and their declared types."""
    return {
        name: parquet.read_table(folder / f"{name}.parquet").cast(declared(TABLES[name])).combine_chunks()
        for name in names or TABLES
    }


def declared(columns: dict[str, SqlType]) -> pa.Schema:
    """The Arrow schema of a table outside of Everview, where a numeric has its declared precision."""
    return pa.schema(
        [
            (name, pa.decimal128(each.precision, each.scale) if each.kind is Kind.NUMERIC else arrow_type(each))
            for name, each in columns.items()
        ]
    )
