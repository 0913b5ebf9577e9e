"""A folder of Parquet files: the recovery log is authoritative, and a file that was staged is moved into place after.

A transaction is one file for each binding and range, written to `_staged` and made durable before the commit, and
renamed into the folder once the recovery log has it. A rename happens once, however often it is asked for: a staged
file that is gone was moved. The files are delta updates: with a key, the reader takes the row with the greatest
`_transaction` for each key, unless it is `_deleted`; without one, every row counts.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from everview.flow.contract import DELETE, EXISTS, Binding, Spec
from everview.flow.drivers.contract import CONFINED, Option, Transactor, Validated, plain_constraints
from everview.flow.drivers.staged import StagedDriver, StagedTransactor
from everview.flow.errors import InvalidMaterialization
from everview.flow.keyrange import KeyRange
from everview.flow.protocol import DriverState
from everview.reach.files import check_inside

STAGED = "_staged"
DELETED, TRANSACTION = "_deleted", "_transaction"


class ParquetDriver(StagedDriver):
    """Folders of Parquet files."""

    name = "parquet"
    delta_only = True
    options = (Option("path", "the folder for all of the sink's files", required=True, place=True), CONFINED)
    resource_options = (Option("folder", "a folder inside it", default="."),)

    def validate(self, spec: Spec) -> list[Validated]:
        result = []
        for binding in spec.bindings:
            folder = self._folder(binding)
            files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
            if files:
                self._check(files[0])
                found, wanted = pq.read_schema(files[0]).remove_metadata(), file_schema(binding)
                if found != wanted:
                    raise InvalidMaterialization(
                        f"folder {folder} holds files of another schema",
                        detail=f"found {', '.join(map(str, found))}; wanted {', '.join(map(str, wanted))}".replace(
                            "\n", " "
                        ),
                        hint="choose another folder",
                    )
            result.append(Validated(plain_constraints(binding), (str(folder),), delta_updates=True))
        return result

    def apply(self, spec: Spec) -> str:
        for binding in spec.bindings:
            (self._folder(binding) / STAGED).mkdir(parents=True, exist_ok=True)
        return "folders are there"

    def reset(self, spec: Spec) -> None:
        self.apply(spec)
        for binding in spec.bindings:
            folder = self._folder(binding)
            for file in (*folder.glob("*.parquet"), *(folder / STAGED).glob("*.parquet")):
                file.unlink(missing_ok=True)

    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> Transactor:
        folders = [self._folder(each) for each in spec.bindings]
        return ParquetTransactor(folders, spec, range, state, confined=self.config[CONFINED.name])

    def _folder(self, binding: Binding) -> Path:
        folder = Path(self.config["path"]) / str(binding.resource.get("folder", "."))
        self._check(folder, folder / STAGED)
        return folder

    def _check(self, *paths: Path) -> None:
        if self.config[CONFINED.name]:
            for path in paths:
                check_inside(path)


class ParquetTransactor(StagedTransactor):
    """One range of keys in folders of Parquet files."""

    def __init__(
        self, folders: list[Path], spec: Spec, range: KeyRange, state: DriverState, *, confined: bool = False
    ) -> None:
        super().__init__(range, state)
        self._confined, self._folders, self._spec = confined, folders, spec
        self._writers: dict[int, tuple[Path, pq.ParquetWriter]] = {}
        # What a transaction of this range has staged and never committed is left over.
        wanted = {staged for each in state.values() for _, staged, _ in each.get("files") or ()}
        for folder in folders:
            for path in (folder / STAGED).glob(f"{range}-*.parquet"):
                if path.name not in wanted:
                    path.unlink(missing_ok=True)

    def _check(self, *paths: Path) -> None:
        if self._confined:
            for path in paths:
                check_inside(path)

    def put_in_place(self, range: str, number: int, files: Any) -> None:
        for at, staged, name in files:
            folder = self._folders[at]
            if (folder / STAGED / staged).exists():
                self._check(folder / STAGED / staged, folder)
                os.replace(folder / STAGED / staged, folder / name)

    def all_in_place(self) -> None:
        for folder in self._folders:
            _sync(folder)

    def store(self, binding: int, documents: pa.Table) -> None:
        spec = self._spec.bindings[binding]
        if binding not in self._writers:
            path = self._folders[binding] / STAGED / f"{self._range}-{uuid.uuid4().hex}.parquet"
            self._check(path)
            self._writers[binding] = path, pq.ParquetWriter(path, file_schema(spec), compression="zstd")
            self._check(path)
        rows = documents.drop_columns([EXISTS, DELETE])
        if spec.key:
            number = pa.array([self.number + 1] * rows.num_rows, pa.int64())
            rows = rows.append_column(DELETED, documents.column(DELETE)).append_column(TRANSACTION, number)
        self._writers[binding][1].write_table(rows)

    def staged_files(self) -> Any:
        files = []
        for at, (path, writer) in self._writers.items():
            writer.close()
            _sync(path)
            _sync(path.parent)
            files.append([at, path.name, f"{self.number:012d}-{path.name}"])
        self._writers = {}
        return files

    def close(self) -> None:
        for path, writer in self._writers.values():
            writer.close()
            path.unlink(missing_ok=True)


def file_schema(binding: Binding) -> pa.Schema:
    if not binding.key:
        return binding.schema
    return binding.schema.append(pa.field(DELETED, pa.bool_())).append(pa.field(TRANSACTION, pa.int64()))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
