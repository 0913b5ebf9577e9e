"""Indexes: rows in memory by key, which follow their collection and answer look-ups at a time.

An index reads the changes of its collection from storage when it is used, and once a second. It knows the contents from
the time at which it was loaded to the time up to which it has read; for other times the collection itself is read. A
look-up gives at least the rows of the keys asked for, and the condition of the plan selects among them.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import pyarrow.compute as pc

from everview.compute.functions.contract import Failure
from everview.compute.interpreter.scalars import compile_row
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Literal, Or, Scalar
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import Row, Rows, add, canonical
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment
from everview.storage.errors import NotReadable, StorageError
from everview.storage.shard import Shard, from_frontier
from everview.storage.subscribe import following
from everview.timely.consolidate import TIME

KEYS_MAX = 1_000  # of one look-up; beyond, reading the collection is no worse
_INTEGERS = (Kind.INT2, Kind.INT4, Kind.INT8)
_FAILING: Row = (object(),)  # where rows stand for which the key cannot be computed
LOOKUP_ROWS_MAX = 100  # that are worth giving from wherever one is
Entry = dict[Row, list[tuple[int, int]]]  # rows, with times and multiplicities
_NOTHING: Entry = {}


class ServedIndex:
    def __init__(
        self, environment: Environment, id: GlobalId, keys: Sequence[Scalar], types: Sequence[SqlType]
    ) -> None:
        self.id, self.keys = id, tuple(keys)
        self._environment, self._types = environment, tuple(types)
        self._key_of = compile_row(self.keys)
        self._canonical = [canonical(each.type) for each in self.keys]
        self._entries: dict[Row, Entry] = {}
        self._compactable: deque[tuple[int, Row, Row]] = deque()  # times, keys and rows that have changed
        self._since: int | None = None  # contents are known from this time on
        self._upper = 0  # and before this one
        self._batches: object = None  # the collection's batches then, if they hold no later updates
        self._lock = threading.Lock()
        self.rows = 0

    def lookup(self, keys: Iterable[Row], time: int, own: Rows | None = None) -> Rows | None:
        """The rows of these keys at a time, plus `own` changes; None if the index does not know the time."""
        wanted = {*keys, _FAILING}
        with self._lock:
            if not self._reach(time):
                return None
            found: Rows = {}
            for key in wanted:
                for row, changes in self._entries.get(key, {}).items():
                    count = sum(diff for at, diff in changes if at <= time)
                    if count:
                        found[row] = count
        for row, count in (own or {}).items():
            if self._kept_under(row) in wanted:
                add(found, row, count)
        return found

    def rows_at(self, key: Row, time: int) -> list[Row] | None:
        """The rows of a key at a time, each as often as it occurs; None if that takes waiting, reading or many rows."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._since is None or time < self._since or _FAILING in self._entries:
                return None
            if self._upper <= time and not (self._nothing_new() and time < self._upper):
                return None
            found: list[Row] = []
            for row, changes in self._entries.get(key, _NOTHING).items():
                count = sum([diff for at, diff in changes if at <= time])
                if count < 0 or len(found) + count > LOOKUP_ROWS_MAX:
                    return None
                found += (row,) * count
            return found
        finally:
            self._lock.release()

    @property
    def width(self) -> int:
        """The number of columns of its rows."""
        return len(self._types)

    def key(self, values: Sequence[object]) -> Row:
        """The key of these values, in canonical form."""
        settled = zip(self._canonical, values, strict=True)
        return tuple(value if settle is None else settle(value) for settle, value in settled)

    def refresh(self, history: int) -> None:
        """Read new changes, if the index is in use; changes before `history` may be merged."""
        with self._lock:
            if self._since is None:
                return
            if not self._nothing_new():
                self._read_on()
            self._since = max(self._since, min(history, self._upper - 1))
            self._forget(self._since)

    def _reach(self, time: int) -> bool:
        if self._since is None:
            self._load(time)
        elif self._upper <= time and not self._nothing_new():
            self._read_on()
        return self._since is not None and self._since <= time < self._upper

    def _nothing_new(self) -> bool:
        """Whether nothing was written since the index has read. Then it is as complete as the collection."""
        standing = self._environment.standing(self.id)
        if standing is None or standing[0].batches is not self._batches:
            return False
        self._upper = max(self._upper, standing[1])
        return True

    def _read_on(self) -> None:
        """Read up to the upper of the collection."""
        standing = self._environment.standing(self.id)
        upper = from_frontier(self._environment.frontiers(self.id).upper)
        if upper > self._upper:
            self._read_to(upper)
        self._note(standing)

    def _note(self, standing: tuple[Shard, int] | None) -> None:
        """Remember the batches from before reading began, unless they hold updates that are yet to be read."""
        batches = None if standing is None else standing[0].batches
        later = batches is None or any(batch.time_max >= self._upper for batch in batches.values())
        self._batches = None if later else batches

    def _load(self, time: int) -> None:
        standing = self._environment.standing(self.id)
        ((_, contents),) = self._read(time, time + 1, snapshot=True)
        self._entries, self.rows = {}, 0
        self._compactable.clear()
        for row, diff in contents.items():
            self._add(row, time, diff)
        self._since, self._upper = time, time + 1
        self._note(standing)

    def _read_to(self, upper: int) -> None:
        try:
            changes = self._read(self._upper, upper, snapshot=False)
        except NotReadable:  # the past was forgotten before it was read
            self._load(upper - 1)
            return
        for time, rows in changes:
            for row, diff in rows.items():
                self._add(row, time, diff)
        self._upper = upper

    def _read(self, lower: int, upper: int, *, snapshot: bool) -> list[tuple[int, Rows]]:
        """The changes that the index does not have yet, by time."""
        found = []
        for selection, at in following(self._environment, self.id, lower, upper, snapshot=snapshot):
            columns = selection.first_columns(len(self._types))
            if at is not None:
                found.append((at, rows_from_arrow(selection.contents(columns), self._types)))
                continue
            changes = selection.changes(columns)
            for time in sorted(set(changes.column(TIME).to_pylist())):
                found.append((time, rows_from_arrow(changes.filter(pc.equal(changes.column(TIME), time)), self._types)))
        return found

    def _add(self, row: Row, time: int, diff: int) -> None:
        key = self._kept_under(row)
        entry = self._entries.setdefault(key, {})
        changes = entry.setdefault(row, [])
        if not changes:
            self.rows += 1
        changes.append((time, diff))
        if len(changes) > 1 or diff < 0:
            self._compactable.append((time, key, row))

    def _kept_under(self, row: Row) -> Row:
        try:
            return self._key_of(row)
        except Failure:
            return _FAILING

    def _forget(self, since: int) -> None:
        """Merge changes up to this time, which no reader can tell apart any more."""
        while self._compactable and self._compactable[0][0] <= since:
            _, key, row = self._compactable.popleft()
            entry = self._entries.get(key, _NOTHING)
            if row in entry:
                old = sum(diff for time, diff in entry[row] if time <= since)
                rest = [(time, diff) for time, diff in entry[row] if time > since]
                entry[row] = [(since, old), *rest] if old else rest
                if not entry[row]:
                    del entry[row]
                    self.rows -= 1
                    if not entry:
                        del self._entries[key]


class IndexLookups:
    """All indexes of an environment, and look-ups of plans in them."""

    def __init__(self) -> None:
        self._by_item: dict[GlobalId, ServedIndex] = {}
        self._by_collection: dict[GlobalId, list[ServedIndex]] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def add(self, item: GlobalId, index: ServedIndex) -> None:
        with self._lock:
            self._by_item[item] = index
            # Indexes with more keys come first: they give fewer rows that are not asked for.
            several = sorted([*self.of(index.id), index], key=lambda each: -len(each.keys))
            self._by_collection = {**self._by_collection, index.id: several}

    def remove(self, item: GlobalId) -> None:
        with self._lock:
            index = self._by_item.pop(item, None)
            if index is not None:
                rest = [each for each in self.of(index.id) if each is not index]
                self._by_collection = {**self._by_collection, index.id: rest}

    def refresh(self, history: Callable[[GlobalId], int]) -> None:
        """Let all indexes read new changes; `history` is how far the past of a collection may be forgotten."""
        for index in list(self._by_item.values()):
            try:
                index.refresh(history(index.id))
            except StorageError:
                continue  # its collection was dropped a moment ago

    def key_types(self, item: GlobalId) -> tuple[SqlType, ...]:
        """The types of an index's keys; empty if it is no longer served."""
        index = self._by_item.get(item)
        return () if index is None else tuple(key.type for key in index.keys)

    def sizes(self) -> Mapping[GlobalId, int]:
        """The number of rows in memory of each index."""
        return {item: index.rows for item, index in list(self._by_item.items())}

    def rewrite(
        self, plan: Relation, time: int, own: Mapping[GlobalId, Rows] = MappingProxyType({})
    ) -> tuple[Relation, Mapping[str, Rows]]:
        """Use look-ups for relations of which the plan reads a few keys; gives the plan, and the rows found.

        `own` are uncommitted changes, which the statement has to see.
        """
        found: dict[str, Rows] = {}
        if not self._by_item:
            return plan, found

        def look(part: Relation) -> Relation:
            match part:
                case ir.Filter(ir.Get(id, schema), predicates):
                    rows = self._lookup(id, len(schema), predicates, time, own.get(id))
                    if rows is None:
                        return part
                    name = f"{id} look-up {next(self._numbers)}"
                    found[name] = rows
                    return ir.Filter(ir.Get(name, schema), predicates)
                case _:
                    return part

        return ir.transform(plan, look), found

    def using(self, plan: Relation) -> list[GlobalId]:
        used = []
        for part in ir.walk(plan):
            match part:
                case ir.Filter(ir.Get(id, schema), predicates):
                    wide = [each for each in self.of(id) if each.width >= len(schema)]
                    index = next((each for each in wide if _wanted(each, predicates) is not None), None)
                    used += [item for item, each in self._by_item.items() if each is index]
                case _:
                    pass
        return used

    def of(self, id: GlobalId) -> list[ServedIndex]:
        return self._by_collection.get(id, [])

    def _lookup(
        self, id: GlobalId, width: int, predicates: Sequence[Scalar], time: int, own: Rows | None
    ) -> Rows | None:
        """The rows of a look-up. A view may have got more columns since the plan, or the index, was made."""
        for index in self.of(id):
            keys = _wanted(index, predicates) if index.width >= width else None
            if keys is not None:
                rows = index.lookup([index.key(values) for values in keys], time, own)
                if rows is not None:
                    return rows if index.width == width else _narrowed(rows, width)
        return None


def _narrowed(rows: Rows, width: int) -> Rows:
    found: Rows = {}
    for row, count in rows.items():
        add(found, row[:width], count)
    return found


def _wanted(index: ServedIndex, predicates: Sequence[Scalar]) -> list[tuple[object, ...]] | None:
    """The keys that the conditions ask for; None if they do not list them."""
    options: list[list[object]] = []
    for key in index.keys:
        values = next((found for each in predicates if (found := _values(each, key)) is not None), None)
        if values is None:
            return None
        options.append(values)
    count = 1
    for values in options:
        count *= len(values)
    return list(itertools.product(*options)) if count <= KEYS_MAX else None


def _values(predicate: Scalar, key: Scalar) -> list[object] | None:
    """The values that a condition allows for a key expression, if it lists them."""
    if isinstance(predicate, Or):
        parts = [_values(each, key) for each in predicate.args]
        if any(part is None for part in parts):
            return None
        return list(dict.fromkeys(value for part in parts if part for value in part))
    other = key_side(predicate, key)
    if isinstance(other, Literal):
        return [] if other.value is None else [other.value]
    return None


def key_side(predicate: Scalar, key: Scalar) -> Scalar | None:
    """The other side of a condition that compares a key expression for equality, else None."""
    if not isinstance(predicate, Call) or not predicate.function.startswith("eq(") or len(predicate.args) != 2:
        return None
    for one, other in (predicate.args, predicate.args[::-1]):
        if _same(one, key):
            return other
    return None


def _same(scalar: Scalar, key: Scalar) -> bool:
    """Whether a scalar has the value of the key; casts between integer types do not change it."""
    if scalar == key:
        return True
    return (
        isinstance(scalar, Call)
        and scalar.function.startswith("cast(int")
        and scalar.type.kind in _INTEGERS
        and scalar.args == (key,)
    )
