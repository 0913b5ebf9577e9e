"""Tables in databases with transactions: the database is authoritative, tables and checkpoint change together.

`SqlDriver` and `SqlTransactor` are all that such databases have in common: a table of fences and checkpoints, tables
that are made or held against what is wanted, documents that are kept back until the commit, and rows that are inserted,
updated and deleted. A driver adds how its database is reached, what its types are called, and how it takes many rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar

import pyarrow as pa

from everview.compute.functions.input import from_text
from everview.compute.functions.output import to_text
from everview.compute.ir.infinite import as_numbers, to_python
from everview.compute.ir.types import Interval, Kind, SqlType, arrow_type
from everview.flow.checkpoint import START, Checkpoint
from everview.flow.contract import DELETE, EXISTS, Binding, Field, Spec
from everview.flow.drivers import contract
from everview.flow.errors import Drifted, DuplicateKey, FencedOff, InvalidMaterialization, Retracted
from everview.flow.fencing import OwnedRange, carve
from everview.flow.keyrange import WHOLE, KeyRange
from everview.flow.lineage import Owner
from everview.flow.protocol import DriverState
from everview.quoting import identifier

CHECKPOINTS = "everview_checkpoints"
BUFFER_BYTES_MAX = 32 << 20  # documents kept back until the commit, so that a stalled one holds no locks

Rows = list[tuple[Any, ...]]


class SqlDriver(contract.Driver):
    """Tables in a database."""

    pattern = contract.Pattern.AUTHORITATIVE
    guarantee = contract.Guarantee.EXACTLY_ONCE
    keys = contract.Keys.ENFORCED
    parameter: ClassVar[str]  # what stands for a parameter in a statement
    checkpoint_columns: ClassVar[str]  # of the table of checkpoints: materialization, key_begin, key_end and so on
    locking: ClassVar[str] = ""  # what makes a query wait for rows that others are changing
    no_keys: ClassVar[frozenset[Kind]]  # types that cannot be part of a key
    duplicate_errors: tuple[type[Exception], ...]  # what the database raises over a second row under a key

    # What a driver adds. A connection has `execute`, which gives a cursor.

    @abstractmethod
    def connected(self, name: str) -> AbstractContextManager[Any]:
        """A connection for as long as the block is, for a materialization."""

    @abstractmethod
    def connect_for_good(self, name: str) -> Any:
        """A connection that whoever asked for it closes."""

    @abstractmethod
    def transaction(self, db: Any, lock: str) -> AbstractContextManager[Any]:
        """Within the block, a transaction of which only one runs at a time under the name of the lock."""

    @abstractmethod
    def snapshot(self, db: Any) -> AbstractContextManager[Any]:
        """Within the block, all is read at one moment, and not for longer than `CENSUS_S`."""

    @abstractmethod
    def table_columns(self, db: Any, table: str) -> tuple[list[tuple[str, str]], list[str]]:
        """The columns of a table with their types, and those of its primary key; none if it is not there."""

    @abstractmethod
    def type_name(self, sql_type: SqlType) -> str:
        """What a type is called."""

    def failures(self) -> AbstractContextManager[Any]:
        """Within the block, failures of the database are told as ours."""
        return nullcontext()

    def duplicate_detail(self, error: Exception) -> str:
        """What the database says of a second row under a key."""
        return str(error)

    def exists(self) -> bool:
        """Whether there is a database yet."""
        return True

    # What all have in common

    def validate(self, spec: Spec) -> list[contract.Validated]:
        if self.exists():
            with self.connected(spec.name) as db:
                for binding in spec.bindings:
                    self._check_existing(db, binding)
                    if binding.key and not binding.delta_updates and self._is_filled(db, spec, binding):
                        raise InvalidMaterialization(
                            f"table {_table(binding)} exists and is not empty",
                            detail="its rows may have the keys of rows to come",
                            hint="empty it, or choose another table",
                        )
        return [
            contract.Validated(self._constraints(each), tuple(_table(each).split(".")), each.delta_updates)
            for each in spec.bindings
        ]

    def _constraints(self, binding: Binding) -> dict[str, contract.FieldConstraint]:
        """Fields of the key are required, and must be of a type that can be one."""
        result = {}
        for each in binding.fields:
            constraint = contract.FieldConstraint(contract.Constraint.RECOMMENDED)
            if each.name in binding.key:
                constraint = contract.FieldConstraint(contract.Constraint.REQUIRED, "it is part of the key")
                if each.type.kind in self.no_keys:
                    constraint = contract.FieldConstraint(
                        contract.Constraint.INCOMPATIBLE, f"a key cannot be of type {each.type}"
                    )
            result[each.name] = constraint
        return result

    def _is_filled(self, db: Any, spec: Spec, binding: Binding) -> bool:
        """Whether the table has rows of others: there is no checkpoint of ours."""
        if not self.table_columns(db, _table(binding))[0]:
            return False
        if self.table_columns(db, CHECKPOINTS)[0] and self._checkpoints(db, spec):
            return False
        return db.execute(f"SELECT 1 FROM {table_name(binding)} LIMIT 1").fetchone() is not None

    def _checkpoints(self, db: Any, spec: Spec) -> list[Checkpoint]:
        query = f"SELECT checkpoint FROM {CHECKPOINTS} WHERE materialization = {self.parameter}"
        return [Checkpoint.decode(text) for (text,) in db.execute(query, [spec.name]).fetchall()]

    def _check_existing(self, db: Any, binding: Binding) -> None:
        """An error unless an existing table has the columns, types and key that are wanted; says all that differs."""
        table_name(binding)  # an error if it is not a name
        found, found_key = self.table_columns(db, _table(binding))
        if not found:
            return
        have, want = dict(found), {each.name: self.type_name(each.type) for each in binding.fields}
        key = [] if binding.delta_updates else list(binding.key)
        wrong = [f'column "{name}" is missing' for name in want if name not in have]
        wrong += [
            f'column "{name}" is {have[name]}, and must be {type_}'
            for name, type_ in want.items()
            if name in have and have[name].lower() != type_.lower()
        ]
        wrong += [f'column "{name}" is not in the sink' for name in have if name not in want]
        if key != found_key:
            wrong.append(f"its primary key is {', '.join(found_key) or 'none'}, and must be {', '.join(key) or 'none'}")
        if wrong:
            raise InvalidMaterialization(
                f"table {_table(binding)} exists and cannot hold the sink",
                detail="; ".join(wrong),
                hint="choose another table",
            )

    def apply(self, spec: Spec) -> str:
        with self.connected(spec.name) as db, self.transaction(db, CHECKPOINTS):
            db.execute(f"CREATE TABLE IF NOT EXISTS {CHECKPOINTS} {self.checkpoint_columns}")
            for binding in spec.bindings:
                self._check_existing(db, binding)
                columns = self.declared(binding.fields)
                if binding.key and not binding.delta_updates:
                    columns += f", PRIMARY KEY ({columns_of(binding.key)})"
                db.execute(f"CREATE TABLE IF NOT EXISTS {table_name(binding)} ({columns})")
        return f"tables {', '.join(map(_table, spec.bindings))} are there"

    def declared(self, fields: Iterable[Field]) -> str:
        """Fields as columns of a table that is made."""
        return ", ".join(f"{quoted(each.name)} {self.type_name(each.type)}" for each in fields)

    @abstractmethod
    def open(self, spec: Spec, range: KeyRange, state: DriverState) -> SqlTransactor: ...

    def reset(self, spec: Spec) -> None:
        self.apply(spec)
        transactor = self.open(spec, WHOLE, {})
        try:
            transactor.clear()
            transactor.commit(Checkpoint.at(WHOLE, START).encode())
        finally:
            transactor.close()

    def census(self, spec: Spec) -> contract.Census | None:
        with self.connected(spec.name) as db, self.snapshot(db):
            checkpoints, rows = self._checkpoints(db, spec), []
            for binding in spec.bindings:
                there = self.table_columns(db, _table(binding))[0]
                count = f"SELECT count(*) FROM {table_name(binding)}"
                rows.append(db.execute(count).fetchone()[0] if there else None)
        return contract.Census(Checkpoint.merged(checkpoints), tuple(rows)) if checkpoints else None

    def forget(self, spec: Spec, owner: Owner | None = None) -> None:
        with self.connected(spec.name) as db, self.transaction(db, spec.name):
            if owner is not None and self.table_columns(db, CHECKPOINTS)[0]:
                for each in self._checkpoints(db, spec):
                    owner.check(each)
            db.execute(f"DELETE FROM {CHECKPOINTS} WHERE materialization = {self.parameter}", [spec.name])


class SqlTransactor(contract.Transactor):
    """One range of keys in the tables of a database."""

    def __init__(self, driver: SqlDriver, spec: Spec, range: KeyRange) -> None:
        super().__init__()
        self._driver, self._spec = driver, spec
        self._held: list[tuple[int, pa.Table]] = []  # documents of the transaction that are not written yet
        self._held_bytes = 0
        self._db = driver.connect_for_good(spec.name)
        mark = driver.parameter
        self._of_range = f"materialization = {mark} AND key_begin = {mark} AND key_end = {mark}"
        try:
            with driver.failures(), driver.transaction(self._db, spec.name):
                self._row = self._take_over(range)
        except BaseException:
            self._db.close()
            raise
        self.checkpoint = self._row.checkpoint.encode()

    # What a driver adds

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction unless one is under way."""

    @abstractmethod
    def rows_with(self, binding: Binding, keys: pa.Table) -> pa.Table:
        """The rows with these keys."""

    @abstractmethod
    def insert(self, binding: Binding, rows: pa.Table) -> None:
        """Add rows."""

    @abstractmethod
    def update(self, binding: Binding, rows: pa.Table) -> int:
        """Change rows; gives how many there were."""

    @abstractmethod
    def delete(self, binding: Binding, rows: pa.Table) -> int:
        """Remove the rows with the keys of these; gives how many there were."""

    # What all have in common

    def _take_over(self, range: KeyRange) -> OwnedRange:
        db, name, mark = self._db, self._spec.name, self._driver.parameter
        # A row that is being committed is waited for, so its checkpoint is the one that was committed.
        query = f"SELECT key_begin, key_end, fence, checkpoint FROM {CHECKPOINTS} WHERE materialization = {mark}"
        found = db.execute(f"{query}{self._driver.locking}", [name]).fetchall()
        rows = [
            OwnedRange(KeyRange(int(b), int(e)), int(fence), Checkpoint.decode(text)) for b, e, fence, text in found
        ]
        carved = carve(rows, range)
        for each in carved.removed:
            db.execute(f"DELETE FROM {CHECKPOINTS} WHERE {self._of_range}", [name, each.begin, each.end])
        for row in carved.written:
            values = [name, row.range.begin, row.range.end, row.fence, row.checkpoint.encode()]
            db.execute(f"INSERT INTO {CHECKPOINTS} VALUES ({', '.join([mark] * len(values))})", values)
        return carved.mine

    def find(self, binding: int, keys: pa.Table) -> pa.Table:
        with self._driver.failures():
            return self.rows_with(self._spec.bindings[binding], keys)

    def store(self, binding: int, documents: pa.Table) -> None:
        self._held.append((binding, documents))
        self._held_bytes += documents.nbytes
        if self._held_bytes > BUFFER_BYTES_MAX:
            self._write()

    def _write(self) -> None:
        """Write what is held, small pieces of a binding as one."""
        with self._driver.failures():
            self.begin()
            held, self._held, self._held_bytes = self._held, [], 0
            for at, pieces in groupby(held, itemgetter(0)):
                self._write_binding(self._spec.bindings[at], pa.concat_tables([each for _, each in pieces]))

    def _write_binding(self, binding: Binding, documents: pa.Table) -> None:
        inserted, updated, deleted = parted(binding, documents)
        if binding.delta_updates:
            inserted, updated = pa.concat_tables([inserted, updated]), updated.slice(0, 0)
        if deleted.num_rows:
            self._check_written(binding, "deleted", deleted.num_rows, self.delete(binding, deleted))
        if updated.num_rows:
            self._check_written(binding, "updated", updated.num_rows, self.update(binding, updated))
        if inserted.num_rows:
            if binding.key and not binding.delta_updates:
                # A table's index takes rows in the order of their keys much faster than in the order of hashes.
                inserted = inserted.sort_by([(name, "ascending") for name in binding.key])
            try:
                self.insert(binding, inserted)
            except self._driver.duplicate_errors as error:
                self._roll_back()
                raise DuplicateKey(
                    f"more than one row of collection {binding.collection} under one key of the sink",
                    detail=self._driver.duplicate_detail(error),
                    hint="give the sink a KEY that is unique, or say with REDUCE how rows become one",
                ) from None

    def _check_written(self, binding: Binding, done: str, wanted: int, found: int) -> None:
        """An error if rows to update or delete were not there: somebody else has removed them."""
        if found != wanted:
            self._roll_back()
            raise Drifted(
                f"{wanted - found} of {wanted} rows of collection {binding.collection} to be {done} are not there",
                detail="others have changed what was delivered",
                hint="put the rows back, or deliver everything anew with ALTER SINK … BACKFILL",
            )

    def _roll_back(self) -> None:
        """Undo the transaction; FencedOff if the keys were taken over, for then nobody else is at fault."""
        self._db.execute("ROLLBACK")
        self.check_fence()

    @property
    def _mine(self) -> list[Any]:
        return [self._spec.name, self._row.range.begin, self._row.range.end]

    def check_fence(self) -> None:
        """FencedOff unless the range is still ours."""
        query = f"SELECT fence FROM {CHECKPOINTS} WHERE {self._of_range}"
        if self._db.execute(query, self._mine).fetchone() != (self._row.fence,):
            raise self._fenced_off()

    def _fenced_off(self) -> FencedOff:
        return FencedOff(f"the keys {self._row.range} of {self._spec.name} were taken over")

    def clear(self) -> None:
        """Remove all rows, in the transaction that is to be committed."""
        self._write()
        with self._driver.failures():
            for binding in self._spec.bindings:
                self._db.execute(f"DELETE FROM {table_name(binding)}")

    def start_commit(self, checkpoint: str) -> contract.Started:
        self._write()
        return contract.Started(commit=lambda: self.commit(checkpoint))

    def commit(self, checkpoint: str) -> None:
        """Commit with this checkpoint, if the range is still ours."""
        mark = self._driver.parameter
        change = f"UPDATE {CHECKPOINTS} SET checkpoint = {mark} WHERE {self._of_range} AND fence = {mark}"
        with self._driver.failures():
            if self._db.execute(change, [checkpoint, *self._mine, self._row.fence]).rowcount != 1:
                self._db.execute("ROLLBACK")
                raise self._fenced_off()
            self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


def quoted(name: str) -> str:
    """A name as an SQL identifier; dots separate nothing."""
    if not name or "\0" in name:
        raise InvalidMaterialization(f"not a name: {name!r}")
    return identifier(name)


def _table(binding: Binding) -> str:
    return str(binding.resource["table"])


def table_name(binding: Binding) -> str:
    """A binding's table by its name, or by schema and name with a dot between."""
    parts = _table(binding).split(".")
    if len(parts) > 2:
        raise InvalidMaterialization(f"not a table: {_table(binding)}", hint="write table or schema.table")
    return ".".join(map(quoted, parts))


def columns_of(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def text_values(column: pa.ChunkedArray, sql_type: SqlType) -> list[str | None]:
    """Values in PostgreSQL's text form."""
    values = to_python(column)
    if sql_type.kind is Kind.INTERVAL:
        values = [None if each is None else Interval(each["months"], each["days"], each["micros"]) for each in values]
    return [None if value is None else to_text(value, sql_type) for value in values]


def from_texts(values: Iterable[Any], sql_type: SqlType) -> list[Any]:
    """Values from their text form."""
    read = [None if value is None else from_text(str(value), sql_type) for value in values]
    if sql_type.kind is Kind.INTERVAL:
        return [None if value is None else value._asdict() for value in read]
    return list(as_numbers(read, arrow_type(sql_type)))


def table_of(binding: Binding, rows: Rows, decode: Callable[[Iterable[Any], SqlType], list[Any]]) -> pa.Table:
    """Rows of a database with all fields of a binding; `decode` gives the values of a column."""
    columns = list(zip(*rows, strict=True)) or [()] * len(binding.fields)
    arrays = [
        pa.array(decode(values, each.type), field.type)
        for values, each, field in zip(columns, binding.fields, binding.schema, strict=True)
    ]
    return pa.table(arrays, schema=binding.schema)


def parted(binding: Binding, documents: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Documents to insert, to update and to delete."""
    flags = documents.select([EXISTS, DELETE])
    rows = documents.drop_columns([EXISTS, DELETE])
    exists, delete = (flags.column(name).to_numpy() for name in (EXISTS, DELETE))
    if binding.delta_updates and delete.any():
        raise Retracted(
            f"a key of collection {binding.collection} was deleted, and a table of delta updates can only grow",
            hint="leave DELTA UPDATES out, so that the table holds the view itself",
        )
    if not delete.any() and (exists.all() or not exists.any()):
        nothing = rows.slice(0, 0)
        return (nothing, rows, nothing) if len(exists) and exists[0] else (rows, nothing, nothing)
    kinds = (~exists & ~delete, exists & ~delete, exists & delete)
    inserted, updated, deleted = (rows.filter(pa.array(kind)) for kind in kinds)
    return inserted, updated, deleted
