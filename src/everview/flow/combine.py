"""From updates to documents: what one transaction loads and stores of a binding.

A combiner takes the updates of an interval. It says which keys to load, takes what was loaded, and gives the documents
to store, each key once. Keys are matched by their 64-bit hashes, vectorised, and compared by value wherever hashes are
equal; the rare case in which hashes lie falls back to a dictionary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from everview.compute.ir.infinite import as_numbers, to_python
from everview.flow.contract import DELETE, EXISTS, Binding
from everview.flow.drivers.contract import Keys
from everview.flow.errors import DuplicateKey, FlowError, NullKey, Retracted
from everview.flow.keyrange import hashes_of
from everview.flow.reduction import MISSING, Reducer
from everview.timely.consolidate import DIFF, HASH, TIME, consolidate, int_column, with_column
from everview.timely.equality import rows_equal
from everview.timely.hashing import I64

BATCH_ROWS = 1 << 16
COPIES_MAX = 1_000_000  # of one row, in an append-only binding

Positions = npt.NDArray[np.intp]
Key = tuple[Any, ...]


class Combiner(ABC):
    """The changes of one binding in one transaction."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether there is nothing to do."""

    def loads(self) -> Iterator[pa.Table]:
        """Keys to load, each once."""
        return iter(())

    def loaded(self, documents: pa.Table) -> None:
        raise AssertionError("nothing was loaded")

    @abstractmethod
    def stores(self) -> Iterator[pa.Table]:
        """Documents to store, once everything is loaded."""


def holds_rows(binding: Binding, keys: Keys) -> bool:
    """Whether a binding's updates must be held between loading and storing; else they can go through in passes."""
    return not binding.delta_updates and (binding.reduces or keys in (Keys.CHECKED, Keys.LOADED))


def combine(binding: Binding, updates: pa.Table, keys: Keys, first: bool) -> Combiner:
    """The combiner of an interval; `first` if nothing was ever delivered to the keys."""
    if not binding.key:
        return Appended(binding, updates)
    if binding.reduces:
        return Reduced(binding, updates)
    return View(binding, updates, Keys.TRUSTED if binding.delta_updates else keys, first)


class Appended(Combiner):
    """Rows without a key: each is delivered as often as it was added."""

    def __init__(self, binding: Binding, updates: pa.Table) -> None:
        self._binding = binding
        net = _net(updates)
        diffs = int_column(net, DIFF)
        if len(diffs) and diffs.min() < 0:
            raise Retracted(
                f"a row was taken away from collection {binding.collection}, and the sink can only add",
                hint="give the sink a KEY, so that rows can be updated and deleted",
            )
        if len(diffs) and diffs.max() > COPIES_MAX:
            raise FlowError(f"a row is there {diffs.max()} times", detail=f"at most {COPIES_MAX}")
        self._rows, self._diffs = net, diffs

    @property
    def empty(self) -> bool:
        return not self._rows.num_rows

    def stores(self) -> Iterator[pa.Table]:
        rows = self._rows
        if len(self._diffs) and self._diffs.max() > 1:
            rows = rows.take(pa.array(np.repeat(np.arange(len(self._diffs)), self._diffs)))
        yield from _batches(_flagged(rows.select(self._binding.names), False, False))


class View(Combiner):
    """At most one row under each key: what came, what went, and what replaced what, over the whole interval."""

    def __init__(self, binding: Binding, updates: pa.Table, keys: Keys, first: bool) -> None:
        self._binding, self._keys = binding, keys
        self._ask = keys is Keys.LOADED or (keys is Keys.CHECKED and not first)
        self._known: set[Key] = set()
        hashes = hashes_of(updates, binding.key)
        if (int_column(updates, DIFF) == 1).all() and not _repeats(hashes):
            # Only rows that came, each under a key of its own: there is nothing to add up.
            _check_keys(binding, updates)
            self._net, self._came = updates, np.arange(updates.num_rows)
            self._exists, self._gone = np.zeros(updates.num_rows, dtype=bool), np.zeros(0, dtype=np.intp)
            return
        self._net = net = _net(updates)
        _check_keys(binding, net)
        diffs = int_column(net, DIFF)
        if len(diffs) and (diffs.max() > 1 or diffs.min() < -1):
            at = int(np.argmax(np.abs(diffs)))
            raise self._duplicate(self._key(at), f"the same row is there {abs(int(diffs[at]))} times")
        came, went = np.flatnonzero(diffs > 0), np.flatnonzero(diffs < 0)
        hashes = hashes_of(net, binding.key)
        if any(_repeats(hashes[side]) for side in (came, went)) or not self._matched(came, went, hashes):
            self._came, self._exists, self._gone = self._exactly(came, went)
        else:
            self._came, self._exists = came, _among(hashes[came], hashes[went])
            self._gone = went[~_among(hashes[went], hashes[came])]

    @property
    def empty(self) -> bool:
        return not self._net.num_rows

    def loads(self) -> Iterator[pa.Table]:
        if self._ask:
            chosen = self._came[~self._exists]
            if self._keys is Keys.LOADED:
                chosen = np.concatenate((self._came, self._gone))
            keys = self._net.select(list(self._binding.key)).take(pa.array(chosen))
            yield from _batches(keys)

    def loaded(self, documents: pa.Table) -> None:
        keys = _tuples(documents, self._binding.key)
        if self._keys is Keys.CHECKED and keys:
            raise self._duplicate(keys[0], "the endpoint has a document with this key already")
        self._known.update(keys)

    def stores(self) -> Iterator[pa.Table]:
        rows = self._net.select(self._binding.names)
        exists = self._exists
        if self._keys is Keys.LOADED:
            keys = _tuples(rows.take(pa.array(self._came)), self._binding.key)
            exists = np.fromiter((key in self._known for key in keys), dtype=bool, count=len(keys))
        # What goes comes first: it may hold a value that what comes must be the only one to have.
        yield from _batches(_flagged(rows.take(pa.array(self._gone)), True, True))
        if not exists.any() and len(self._came) == rows.num_rows:
            yield from _batches(_flagged(rows, False, False))
            return
        for flag in (True, False):
            chosen = self._came[exists == flag]
            yield from _batches(_flagged(rows.take(pa.array(chosen)), flag, False))

    def _matched(self, came: Positions, went: Positions, hashes: I64) -> bool:
        """Whether keys with the same hash on the two sides are the same keys."""
        if not len(came) or not len(went):
            return True
        order = went[np.argsort(hashes[went], kind="stable")]
        places = np.minimum(np.searchsorted(hashes[order], hashes[came]), len(order) - 1)
        pairs = hashes[order][places] == hashes[came]
        columns = [self._net.column(name) for name in self._binding.key]
        return bool(rows_equal(columns, came[pairs], order[places[pairs]]).all())

    def _exactly(self, came: Positions, went: Positions) -> tuple[Positions, npt.NDArray[np.bool_], Positions]:
        """As above, with a dictionary: exact whatever the hashes are. An error if a key occurs twice on one side."""
        sides: list[dict[Key, int]] = []
        for side in (came, went):
            found: dict[Key, int] = {}
            for at in side.tolist():
                key = self._key(at)
                if key in found:
                    raise self._duplicate(key, "two rows of the collection have it")
                found[key] = at
            sides.append(found)
        new, old = sides
        exists = np.fromiter((key in old for key in new), dtype=bool, count=len(new))
        gone = np.fromiter((at for key, at in old.items() if key not in new), dtype=np.intp)
        return np.fromiter(new.values(), dtype=np.intp, count=len(new)), exists, gone

    def _key(self, at: int) -> Key:
        return tuple(to_python(self._net.column(name).slice(at, 1))[0] for name in self._binding.key)

    def _duplicate(self, key: Key, why: str) -> DuplicateKey:
        shown = ", ".join(f"{name} = {value!r}" for name, value in zip(self._binding.key, key, strict=True))
        return DuplicateKey(
            f"more than one row of collection {self._binding.collection} under one key of the sink",
            detail=f"{shown}: {why}",
            hint="give the sink a KEY that is unique, or say with REDUCE how rows become one",
        )


class Reduced(Combiner):
    """Rows under a key are documents, reduced field by field, with what is loaded unless only changes are sent."""

    def __init__(self, binding: Binding, updates: pa.Table) -> None:
        self._binding = binding
        self._full = not binding.delta_updates
        updates = _with_keys(binding, updates)
        order = np.argsort(int_column(updates, TIME), kind="stable")
        rows = consolidate(updates.take(pa.array(order)))
        rows = rows.take(pa.array(np.argsort(int_column(rows, TIME), kind="stable")))
        self._keys = _tuples(rows, binding.key)
        self._fields = binding.value_fields
        self._reducers = [Reducer(each.name, each.type, each.reduction) for each in self._fields]
        columns = [to_python(rows.column(each.name)) for each in self._fields]
        self._values = list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows
        self._diffs: list[int] = rows.column(DIFF).to_pylist()
        self._states: dict[Key, list[Any]] = {}
        self._known: set[Key] = set()

    @property
    def empty(self) -> bool:
        return not self._keys

    def loads(self) -> Iterator[pa.Table]:
        if self._full:
            keys = list(dict.fromkeys(self._keys))
            schema = self._binding.key_schema
            for start in range(0, len(keys), BATCH_ROWS):
                columns = zip(*keys[start : start + BATCH_ROWS], strict=True)
                arrays = [
                    pa.array(as_numbers(values, field.type), field.type)
                    for values, field in zip(columns, schema, strict=True)
                ]
                yield pa.table(arrays, schema=schema)

    def loaded(self, documents: pa.Table) -> None:
        columns = [to_python(documents.column(each.name)) for each in self._fields]
        values = zip(*columns, strict=True) if columns else iter([()] * documents.num_rows)
        for key, document in zip(_tuples(documents, self._binding.key), values, strict=True):
            self._states[key] = [reducer.load(value) for reducer, value in zip(self._reducers, document, strict=True)]
            self._known.add(key)

    def stores(self) -> Iterator[pa.Table]:
        fresh = [MISSING] * len(self._reducers)
        touched = dict.fromkeys(self._keys)
        for key, values, diff in zip(self._keys, self._values, self._diffs, strict=True):
            state = self._states.get(key)
            if state is None:
                state = self._states[key] = list(fresh)
            for at, reducer in enumerate(self._reducers):
                state[at] = reducer.apply(state[at], reducer.load(values[at]), diff, self._full)
        keys = list(touched)
        for start in range(0, len(keys), BATCH_ROWS):
            yield self._documents(keys[start : start + BATCH_ROWS])

    def _documents(self, keys: list[Key]) -> pa.Table:
        states = [self._states[key] for key in keys]
        columns: dict[str, list[Any]] = {
            name: list(values) for name, values in zip(self._binding.key, zip(*keys, strict=True), strict=True)
        }
        delete = [False] * len(keys)
        for at, (each, reducer) in enumerate(zip(self._fields, self._reducers, strict=True)):
            columns[each.name] = [reducer.dump(state[at]) for state in states]
            if each.reduction.delete:
                delete = [gone or value is True for gone, value in zip(delete, columns[each.name], strict=True)]
        columns[EXISTS], columns[DELETE] = [key in self._known for key in keys], delete
        schema = self._binding.store_schema
        return pa.table(
            [pa.array(as_numbers(columns[field.name], field.type), field.type) for field in schema], schema=schema
        )


def _with_keys(binding: Binding, updates: pa.Table) -> pa.Table:
    """The updates of rows that have a key. A row without one must come and go within the interval."""
    whole = np.ones(updates.num_rows, dtype=bool)
    for name in binding.key:
        whole &= ~np.asarray(updates.column(name).is_null())
    if whole.all():
        return updates
    _check_keys(binding, _net(updates.filter(pa.array(~whole))))
    return updates.filter(pa.array(whole))


def _check_keys(binding: Binding, updates: pa.Table) -> None:
    """An error if a key is NULL after netting: a row may come and go within the interval."""
    for name in binding.key:
        if updates.column(name).null_count:
            raise NullKey(
                f'field "{name}" of the key is NULL in a row of collection {binding.collection}',
                hint="filter such rows out in a view, or choose another key",
            )


def _net(updates: pa.Table) -> pa.Table:
    """The difference that the interval makes, whatever the times in between."""
    at_once = with_column(updates, TIME, np.zeros(updates.num_rows, dtype=np.int64))
    return consolidate(at_once).drop_columns([HASH, TIME])


def _repeats(hashes: I64) -> bool:
    ordered = np.sort(hashes)
    return bool((ordered[1:] == ordered[:-1]).any())


def _among(hashes: I64, others: I64) -> npt.NDArray[np.bool_]:
    """For each hash, whether it is among the others."""
    if not len(hashes) or not len(others):
        return np.zeros(len(hashes), dtype=bool)
    ordered = np.sort(others)
    found: npt.NDArray[np.bool_] = ordered[np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)] == hashes
    return found


def _flagged(rows: pa.Table, exists: bool, delete: bool) -> pa.Table:
    for name, flag in ((EXISTS, exists), (DELETE, delete)):
        rows = rows.append_column(pa.field(name, pa.bool_()), pa.array(np.full(rows.num_rows, flag)))
    return rows


def _batches(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, BATCH_ROWS):
        yield table.slice(start, BATCH_ROWS)


def _tuples(table: pa.Table, key: tuple[str, ...]) -> list[Key]:
    return list(zip(*(to_python(table.column(name)) for name in key), strict=True))
