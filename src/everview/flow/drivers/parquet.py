"""A folder of Parquet files: the recovery log is authoritative, and a file that was staged is moved into place after.

A transaction is one file for each binding and range, written to `_staged` and made durable before the commit, and
renamed into the folder once the recovery log has it. A rename happens once, however often it is asked for. What a
folder knows of those who deliver there is a file beside what is staged. It names a transaction before its files are
moved, so of one that it names, a staged file that is gone was moved; of a new one, it was removed by others. The files
are delta updates: with a key, the reader takes the row with the greatest `_transaction` for each key, unless it is
`_deleted`; without one, every row counts.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import urllib.parse
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import DELETE, EXISTS, Binding, Spec
from everview.flow.drivers.contract import CONFINED, Option, Transactor, Validated, plain_constraints
from everview.flow.drivers.staged import Ledger, StagedDriver, StagedTransactor
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.lineage import Owner, taken_over
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
            # A mark of nobody: who has it open is told, and who delivers anew passes it over.
            nobody = Checkpoint.at(WHOLE, START).by(secrets.token_hex(6))
            with _Ledgers(folder / STAGED, spec.name).changing() as ledgers:
                ledgers.write(nobody)

    def open(self, spec: Spec, range: KeyRange, state: DriverState, owner: Owner | None = None) -> Transactor:
        folders = [self._folder(each) for each in spec.bindings]
        return ParquetTransactor(folders, spec, range, state, owner, confined=self.config[CONFINED.name])

    def forget(self, spec: Spec, owner: Owner | None = None) -> None:
        ledgers = [_Ledgers(self._folder(each) / STAGED, spec.name).read() for each in spec.bindings]
        for each in ledgers:
            if owner is not None:
                owner.check(each.mark)
        for each in ledgers:
            each.remove()

    def _folder(self, binding: Binding) -> Path:
        folder = Path(self.config["path"]) / str(binding.resource.get("folder", "."))
        self._check(folder, folder / STAGED)
        return folder

    def _check(self, *paths: Path) -> None:
        if self.config[CONFINED.name]:
            for path in paths:
                check_inside(path)


class _Ledgers:
    """A file beside staged ones: who delivered last, and of each range the last number and who put it in place."""

    def __init__(self, folder: Path, name: str) -> None:
        safe = urllib.parse.quote(name, safe="")
        self._path, self._lock = folder / f"{safe}.json", folder / f"{safe}.lock"
        self.mark: Checkpoint | None = None
        self.numbers: dict[str, tuple[int, str | None]] = {}

    def read(self) -> _Ledgers:
        try:
            said = json.loads(self._path.read_text())
        except FileNotFoundError:
            said = {}
        except ValueError as error:
            raise DriverFailed(f"{self._path} is damaged", detail=str(error)) from None
        self.mark = Checkpoint.decode(said["mark"]) if said.get("mark") else None
        self.numbers = {range: (int(number), by) for range, (number, by) in said.get("numbers", {}).items()}
        return self

    def of_range(self, range: str) -> Ledger:
        return Ledger(self.mark, *self.numbers.get(range, (0, None)))

    @contextmanager
    def changing(self) -> Iterator[_Ledgers]:
        """Within the block, nobody else changes it."""
        lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.read()
        finally:
            os.close(lock)

    def write(self, mark: Checkpoint | None) -> None:
        """Make it durable, with this mark."""
        self.mark = mark
        said = {"mark": None if mark is None else mark.encode(), "numbers": self.numbers}
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with new.open("x") as file:
            file.write(json.dumps(said))
        _sync(new)
        os.replace(new, self._path)
        _sync(self._path.parent)

    def remove(self) -> None:
        for path in (self._path, self._lock):
            path.unlink(missing_ok=True)


class ParquetTransactor(StagedTransactor):
    """One range of keys in folders of Parquet files."""

    def __init__(
        self,
        folders: list[Path],
        spec: Spec,
        range: KeyRange,
        state: DriverState,
        owner: Owner | None = None,
        *,
        confined: bool = False,
    ) -> None:
        super().__init__(range, state, owner)
        self._confined, self._folders, self._spec = confined, folders, spec
        self._writers: dict[int, tuple[Path, pq.ParquetWriter]] = {}
        ledgers = [_Ledgers(folder / STAGED, spec.name).read() for folder in folders]
        if owner is not None:
            for each in ledgers:
                owner.check(each.mark)
        self.number = max([self.number, *(each.of_range(str(range)).number for each in ledgers)])
        # What a transaction of this range has staged and never committed is left over, unless a copy has staged it.
        wanted = {staged for each in state.values() for _, staged, _ in each.get("files") or ()}
        known = {""} if owner is None else {"", *owner.known}
        for folder in folders:
            for path in (folder / STAGED).glob(f"{range}-*.parquet"):
                if path.name not in wanted and path.stem.partition(".")[2] in known:
                    path.unlink(missing_ok=True)

    def _check(self, *paths: Path) -> None:
        if self._confined:
            for path in paths:
                check_inside(path)

    def put_in_place(self, range: str, number: int, files: Any, signed: Checkpoint | None) -> None:
        for at, folder in enumerate(self._folders):
            moves = [(folder / STAGED / staged, folder / name) for of, staged, name in files or () if of == at]
            if moves or (signed is not None and not self._signed):
                self._check(folder, folder / STAGED, *(staged for staged, _ in moves))
                with _Ledgers(folder / STAGED, self._spec.name).changing() as ledgers:
                    self._move(ledgers, range, number, moves, signed)

    def _move(
        self, ledgers: _Ledgers, range: str, number: int, moves: list[tuple[Path, Path]], signed: Checkpoint | None
    ) -> None:
        found = ledgers.of_range(range)
        ledger = found.to_note(self._spec.name, self._owner, number, signed, files=bool(moves))
        if ledger is not None:
            # A version that kept no ledger may have moved its files already.
            gone = [staged for staged, name in moves if signed is not None and not staged.exists()]
            if gone:
                raise taken_over(self._spec.name, f"{gone[0].name} was staged, and others have removed it")
            ledgers.numbers[range] = ledger.number, ledger.lineage
            ledgers.write(ledger.mark)
        for staged, name in moves:
            if staged.exists():
                os.replace(staged, name)

    def all_in_place(self) -> None:
        for folder in self._folders:
            _sync(folder)

    def store(self, binding: int, documents: pa.Table) -> None:
        spec = self._spec.bindings[binding]
        if binding not in self._writers:
            lineage = "" if self._owner is None else f".{self._owner.lineage}"
            path = self._folders[binding] / STAGED / f"{self._range}-{uuid.uuid4().hex}{lineage}.parquet"
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
