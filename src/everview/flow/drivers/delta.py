"""Delta Lake: the recovery log is authoritative, and what was staged becomes one commit of the table, exactly once.

New documents are written as data files of the table that its log does not know yet, updates and deletes as files
beside it. Once the recovery log has the transaction, one commit adds the files, or merges them, and carries the
transaction's number as Delta's own application transaction: a number that the table has is never applied again, and of
two that try at once one loses and looks again. Beside the number, application transactions tell who delivered last: a
commit of another copy of the environment in between makes ours fail, and what it wrote is found.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pyarrow.parquet as pq

from everview.compute.ir.infinite import has_infinities
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import DELETE, EXISTS, Binding, Spec
from everview.flow.drivers.contract import Keys, Option, Transactor, Validated, library, plain_constraints
from everview.flow.drivers.staged import Ledger, StagedDriver, StagedTransactor
from everview.flow.errors import Drifted, DriverFailed, InvalidMaterialization, Retracted
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.lineage import Owner, signature
from everview.flow.protocol import DriverState
from everview.quoting import identifier, literal
from everview.reach.addresses import check_endpoints

STAGED = "_everview"  # readers of a table pass over folders that start so
GROUP_ROWS, GROUP_BYTES = 1 << 19, 64 << 20  # of a row group, whichever comes first
LOOKUP_KEYS = 5000  # keys in one query
COMMITS_MAX = 20  # tries against others who write the table at the same time
LINEAGE_BITS = 48  # so a lineage can be the version of an application transaction
NOBODY = -1

_turns: dict[str, threading.Lock] = {}  # merges of one process take turns on a table instead of racing


class DeltaDriver(StagedDriver):
    """Delta tables, in a folder or an object store."""

    name = "delta"
    keys = Keys.CHECKED
    options = (Option("storage_options", "a JSON object for the object store", secret=True),)
    resource_options = (Option("path", "the table's folder or URL", required=True),)

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        library("deltalake", "deltalake", "delta")
        given = self.config.get("storage_options")
        try:
            self._storage = json.loads(given) if given else None
        except ValueError:
            raise InvalidMaterialization("storage_options of delta is not a JSON object") from None
        if isinstance(self._storage, dict):
            check_endpoints(self._storage)

    def validate(self, spec: Spec) -> list[Validated]:
        result = []
        for binding in spec.bindings:
            path = str(binding.resource["path"])
            if _is_table(path, self._storage):
                table = _table(path, self._storage)
                if table.metadata().partition_columns or "deletionVectors" in (table.protocol().reader_features or ()):
                    raise InvalidMaterialization(
                        f"the Delta table {path} exists, with partitions or deletion vectors",
                        hint="choose another path",
                    )
                found = pa.schema(table.schema())
                if [(f.name, f.type) for f in found] != [(f.name, f.type) for f in binding.schema]:
                    raise InvalidMaterialization(
                        f"the Delta table {path} exists and cannot hold the sink",
                        detail=f"it has {_columns(found)}; the sink has {_columns(binding.schema)}",
                        hint="choose another path",
                    )
            result.append(Validated(plain_constraints(binding), (path,), binding.delta_updates))
        return result

    def apply(self, spec: Spec) -> str:
        from deltalake import DeltaTable

        for binding in spec.bindings:
            path = str(binding.resource["path"])
            if not _is_table(path, self._storage):
                DeltaTable.create(path, binding.schema, mode="ignore", storage_options=self._storage)
        return "tables are there"

    def reset(self, spec: Spec) -> None:
        self.apply(spec)
        for binding in spec.bindings:
            table = _Table(self._storage, binding)
            with table.turn:
                table.open().delete()
                # A mark of nobody: who has it open is told, and who delivers anew passes it over.
                nobody = Checkpoint.at(WHOLE, START).by(_lineage_text(secrets.randbits(LINEAGE_BITS)))
                _sign(table.open(), _marking(spec, nobody))

    def open(self, spec: Spec, range: KeyRange, state: DriverState, owner: Owner | None = None) -> Transactor:
        tables = [_Table(self._storage, each) for each in spec.bindings]
        return DeltaTransactor(tables, spec, range, state, owner)

    def forget(self, spec: Spec, owner: Owner | None = None) -> None:
        paths = [(str(each.resource["path"]), each) for each in spec.bindings]
        tables = [_Table(self._storage, each) for path, each in paths if _is_table(path, self._storage)]
        for table in tables:
            if owner is not None:
                owner.check(_ledger(table.open(), spec, str(WHOLE)).mark)
        for table in tables:
            with table.turn:
                _sign(table.open(), {_by(spec): NOBODY})


class _Table:
    """One table, and the files that are staged for it."""

    def __init__(self, storage: dict[str, str] | None, binding: Binding) -> None:
        self._storage, self.binding = storage, binding
        self.path = str(binding.resource["path"])
        self.turn = _turns.setdefault(self.path, threading.Lock())

    def open(self) -> Any:
        return _table(self.path, self._storage)

    def rows(self, condition: str) -> pa.Table:
        """The rows that satisfy a condition."""
        from deltalake import QueryBuilder

        columns = ", ".join(map(identifier, self.binding.names))
        query = QueryBuilder().register("t", self.open()).execute(f"SELECT {columns} FROM t WHERE {condition}")
        return pa.table(query.read_all()).cast(self.binding.schema)

    def files(self) -> pa.fs.FileSystem:
        from deltalake.fs import DeltaStorageHandler

        return pa.fs.PyFileSystem(DeltaStorageHandler.from_table(self.open()._table, self._storage))


class _Staging:
    """The files of one transaction for one table: rows to add, and rows to merge."""

    def __init__(self, table: _Table, range: KeyRange) -> None:
        self._table, self._range = table, range
        self._files = table.files()
        self._open: dict[str, tuple[str, pq.ParquetWriter]] = {}
        self._held: dict[str, list[pa.Table]] = {}
        self._rows = {"add": 0, "merge": 0}
        self._known = 0  # rows to merge that the table must have

    def write(self, documents: pa.Table) -> None:
        binding = self._table.binding
        delete = documents.column(DELETE)
        for name in documents.column_names:
            if has_infinities(documents.column(name)):
                raise DriverFailed(
                    f'field "{name}" of collection {binding.collection} is infinite, and Delta Lake has no such dates',
                    hint=f"leave such rows out, as with isfinite({name}), or write NULL for them",
                )
        if binding.delta_updates:
            if pc.any(delete).as_py():
                raise Retracted(
                    f"a key of collection {binding.collection} was deleted, and a table of delta updates can only grow"
                )
            self._append("add", documents.drop_columns([EXISTS, DELETE]))
            return
        known = pc.or_(documents.column(EXISTS), delete)
        if not pc.any(known).as_py():
            self._append("add", documents.drop_columns([EXISTS, DELETE]))
            return
        self._known += int(pc.sum(documents.column(EXISTS)).as_py() or 0)
        rows = documents.drop_columns([EXISTS])
        for kind, chosen in (
            ("merge", rows.filter(known)),
            ("add", rows.filter(pc.invert(known)).drop_columns([DELETE])),
        ):
            if chosen.num_rows:
                self._append(kind, chosen)

    def _append(self, kind: str, rows: pa.Table) -> None:
        """Rows are held until they make a large row group: those take less to write, and to read."""
        held = self._held.setdefault(kind, [])
        held.append(rows)
        self._rows[kind] += rows.num_rows
        if sum(each.num_rows for each in held) >= GROUP_ROWS or sum(each.nbytes for each in held) >= GROUP_BYTES:
            self._write(kind)

    def _write(self, kind: str) -> None:
        rows = pa.concat_tables(self._held.pop(kind))
        if kind not in self._open:
            name = f"{self._range}-{uuid.uuid4().hex}.parquet"
            path = f"part-{name}" if kind == "add" else f"{STAGED}/{name}"
            texts = [field.name for field in rows.schema if pa.types.is_string(field.type)]  # what may well repeat
            writer = pq.ParquetWriter(
                path, rows.schema, filesystem=self._files, compression="snappy", use_dictionary=texts or False
            )
            self._open[kind] = path, writer
        self._open[kind][1].write_table(rows, row_group_size=GROUP_ROWS)

    def finish(self) -> dict[str, Any]:
        """Make the files durable; gives what there is to apply."""
        for kind in list(self._held):
            self._write(kind)
        found = {}
        for kind, (path, writer) in self._open.items():
            writer.close()
            found[kind] = [path, self._rows[kind], self._files.get_file_info(path).size]
            if kind == "merge":
                found[kind].append(self._known)
        return found

    def discard(self) -> None:
        for path, writer in self._open.values():
            writer.close()
            self._files.delete_file(path)


class DeltaTransactor(StagedTransactor):
    """One range of keys in Delta tables."""

    def __init__(
        self, tables: list[_Table], spec: Spec, range: KeyRange, state: DriverState, owner: Owner | None = None
    ) -> None:
        super().__init__(range, state, owner)
        self._tables, self._spec = tables, spec
        ledgers = [_ledger(table.open(), spec, str(range)) for table in tables]
        if owner is not None:
            for each in ledgers:
                owner.check(each.mark)
        self.number = max([self.number, *(each.number for each in ledgers)])
        self._staging: dict[int, _Staging] = {}

    def put_in_place(self, range: str, number: int, files: Any, signed: Checkpoint | None) -> None:
        for at, table in enumerate(self._tables):
            of_table = (files or {}).get(str(at)) or {}
            if of_table or (signed is not None and not self._signed):
                self._apply(table, range, number, of_table, signed)

    def _apply(
        self, table: _Table, of_range: str, number: int, files: Mapping[str, Any], signed: Checkpoint | None
    ) -> None:
        """One commit of the table, unless it has the number."""
        from deltalake.exceptions import CommitFailedError

        app = _app(self._spec, of_range)
        for attempt in range(COMMITS_MAX):
            with table.turn:
                delta = table.open()
                found = _ledger(delta, self._spec, of_range)
                ledger = found.to_note(self._spec.name, self._owner, number, signed, files=bool(files))
                if ledger is None:
                    break
                versions = _noting(self._spec, of_range, ledger)
                try:
                    if not files:
                        _sign(delta, versions)
                        break
                    touched = _commit(delta, table, files, _properties(versions))
                    if table.open().transaction_version(app) != number:  # a merge that changes nothing is no commit
                        _sign(delta, versions)
                    self.drift = _drift(table, files, touched) or self.drift
                    break
                except CommitFailedError as error:
                    failure = error
            time.sleep(min(2.0, 0.05 * 2**attempt))
        else:
            raise DriverFailed(f"the Delta table {table.path} is written too often by others", detail=str(failure))
        if "merge" in files:
            there = table.files()
            for path, *_ in files.values():  # with a merge, rows to add were merged as well
                if there.get_file_info(path).type != pa.fs.FileType.NotFound:
                    there.delete_file(path)

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        table = self._tables[binding]
        return pa.concat_tables(
            [_found(table, keys.slice(start, LOOKUP_KEYS)) for start in range(0, keys.num_rows, LOOKUP_KEYS)]
        )

    def store(self, binding: int, documents: pa.Table) -> None:
        if binding not in self._staging:
            self._staging[binding] = _Staging(self._tables[binding], self._range)
        self._staging[binding].write(documents)

    def staged_files(self) -> Any:
        files = {str(at): staging.finish() for at, staging in self._staging.items()}
        self._staging = {}
        return files

    def close(self) -> None:
        for staging in self._staging.values():
            staging.discard()


def _app(spec: Spec, range: str) -> str:
    return f"everview/{spec.name}/{range}"


def _by(spec: Spec) -> str:
    return f"everview/{spec.name}/by"


def _ledger(delta: Any, spec: Spec, range: str) -> Ledger:
    """What application transactions say of a range, and of who delivered last."""
    app, by = _app(spec, range), _by(spec)
    said = [delta.transaction_version(each) for each in (app, f"{app}/by", by, f"{by}/generation", f"{by}/frontier")]
    number, of_number, lineage, generation, frontier = said
    mark = None
    if lineage is not None and lineage != NOBODY:
        mark = Checkpoint.at(WHOLE, frontier or START).by(signature(_lineage_text(lineage), generation or 0))
    return Ledger(mark, number or 0, None if of_number in (None, NOBODY) else _lineage_text(of_number))


def _noting(spec: Spec, range: str, ledger: Ledger) -> dict[str, int]:
    """The versions of application transactions that say what a ledger does."""
    app = _app(spec, range)
    noted = {app: ledger.number, f"{app}/by": int(ledger.lineage, 16) if ledger.lineage else NOBODY}
    return noted if ledger.mark is None else {**noted, **_marking(spec, ledger.mark)}


def _marking(spec: Spec, mark: Checkpoint) -> dict[str, int]:
    lineage, _, generation = min(mark.lineages).partition(".")
    by = _by(spec)
    return {by: int(lineage, 16), f"{by}/generation": int(generation or 0), f"{by}/frontier": mark.highest}


def _lineage_text(lineage: int) -> str:
    return f"{lineage:0{LINEAGE_BITS // 4}x}"


def _properties(versions: Mapping[str, int]) -> Any:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(app, version) for app, version in versions.items()])


def _sign(delta: Any, versions: Mapping[str, int]) -> None:
    """A commit that changes no rows."""
    delta.create_write_transaction([], "append", delta.schema(), commit_properties=_properties(versions))


def _drift(table: _Table, files: Mapping[str, Any], touched: int) -> str | None:
    """What to tell if a merge met other rows than those that were delivered. It has put right those that it met."""
    wanted = files.get("merge", [])[3:]  # staged by an earlier version, it does not say
    if not wanted or wanted[0] == touched:
        return None
    return str(
        Drifted(
            f"{wanted[0]} rows of collection {table.binding.collection} were changed, and {touched} of them were there",
            detail="others have changed what was delivered; these rows are right again, but others may not be",
            hint="deliver everything anew with ALTER SINK … BACKFILL",
        )
    )


def _commit(delta: Any, table: _Table, files: Mapping[str, Any], properties: Any) -> int:
    """Commit what is staged; gives how many rows were there that it updated or deleted."""
    from deltalake.transaction import AddAction

    names = table.binding.names
    if "merge" not in files:
        now_ms = int(time.time() * 1000)
        actions = [
            AddAction(path, size, {}, now_ms, True, json.dumps({"numRecords": rows}))
            for path, rows, size in files.values()
        ]
        delta.create_write_transaction(actions, "append", delta.schema(), commit_properties=properties)
        return 0
    source = pq.read_table(files["merge"][0], filesystem=table.files())
    if "add" in files:
        added = pq.read_table(files["add"][0], filesystem=table.files())
        source = pa.concat_tables([source, added.append_column(DELETE, pa.array([False] * added.num_rows))])
    values = {identifier(name): f"s.{identifier(name)}" for name in names}
    match = " AND ".join(f"t.{identifier(name)} = s.{identifier(name)}" for name in table.binding.key)
    merge = delta.merge(source, match, source_alias="s", target_alias="t", commit_properties=properties)
    merge = merge.when_matched_delete(f"s.{DELETE}").when_matched_update(values)
    done = merge.when_not_matched_insert(values, predicate=f"NOT s.{DELETE}").execute()
    return int(done["num_target_rows_updated"]) + int(done["num_target_rows_deleted"])


def _found(table: _Table, keys: pa.Table) -> pa.Table:
    """The rows with these keys: with each part of the key among those wanted, then with just the keys that are."""
    names = table.binding.key
    wanted = list(zip(*(keys.column(name).to_pylist() for name in names), strict=True))
    conditions = [
        f"{identifier(name)} IN ({', '.join(sorted({_literal(key[at]) for key in wanted}))})"
        for at, name in enumerate(names)
    ]
    found, keep = table.rows(" AND ".join(conditions)), set(wanted)
    have = zip(*(found.column(name).to_pylist() for name in names), strict=True)
    return found.filter(pa.array([each in keep for each in have], pa.bool_()))


def _literal(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, Decimal | float):
        return f"'{value}'"
    return literal(str(value))


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _is_table(path: str, storage: dict[str, str] | None) -> bool:
    from deltalake import DeltaTable

    return bool(_guarded(lambda: DeltaTable.is_deltatable(path, storage)))


def _table(path: str, storage: dict[str, str] | None) -> Any:
    from deltalake import DeltaTable

    return _guarded(lambda: DeltaTable(path, storage_options=storage))


def _guarded(work: Callable[[], Any]) -> Any:
    from deltalake.exceptions import DeltaError

    try:
        return work()
    except (DeltaError, OSError) as error:
        raise DriverFailed("the Delta table cannot be opened", detail=str(error)) from None
