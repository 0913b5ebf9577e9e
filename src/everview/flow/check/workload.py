"""The workload of the suite: a ledger whose every slip shows, and what an endpoint must hold after it.

`events` is append-only, and delivered twice: summed per account, where an event that counts twice or not at all makes
the sum wrong, and row by row. `accounts` is a view with inserts, updates and deletes of keys. What is expected is
added up from the stored collections, with nothing of the runtime's own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from everview.compute.ir.types import INT8, TEXT
from everview.flow.contract import Binding, Field
from everview.flow.drivers.contract import Driver
from everview.flow.reduction import Reduction
from everview.storage.contract import UpdateAndDowngrade
from everview.storage.environment import Environment
from everview.timely.antichain import Antichain

EVENTS, ACCOUNTS = "events", "accounts"
ACCOUNT_NAMES = [f"account-{number}" for number in range(12)]

_EVENT = pa.schema([("c0", pa.int64()), ("c1", pa.string()), ("c2", pa.int64())])
_ACCOUNT = pa.schema([("c0", pa.string()), ("c1", pa.int64()), ("c2", pa.string())])

Document = dict[str, Any]


class Workload:
    """Two collections and a writer."""

    def __init__(self, environment: Environment, seed: int | str) -> None:
        self._environment = environment
        self._rng = random.Random(f"workload {seed}")
        _, self._events = environment.create(EVENTS, _EVENT)
        _, self._accounts = environment.create(ACCOUNTS, _ACCOUNT)
        self._now: dict[str, tuple[str, int, str]] = {}
        self._next_id = 1
        self.time = 0

    def write(self, transactions: int = 1) -> None:
        """Add transactions, each at a time of its own."""
        for _ in range(transactions):
            events = [self._event() for _ in range(self._rng.randint(2, 6))]
            changes = self._changes()
            to = Antichain(self.time + 1)
            self._events, self._accounts = self._environment.commit(
                UpdateAndDowngrade(self._events, self._updates(_EVENT, [(1, row) for row in events]), to),
                UpdateAndDowngrade(self._accounts, self._updates(_ACCOUNT, changes), to),
            )
            self.time += 1

    def _event(self) -> tuple[Any, ...]:
        self._next_id += 1
        return self._next_id, self._rng.choice(ACCOUNT_NAMES), self._rng.randint(-50, 100)

    def _changes(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Inserts, updates and deletes of a few accounts."""
        changes: list[tuple[int, tuple[Any, ...]]] = []
        for name in self._rng.sample(ACCOUNT_NAMES, 4):
            old = self._now.pop(name, None)
            if old is not None:
                changes.append((-1, old))
            if old is None or self._rng.random() < 0.6:
                new = (name, self._rng.randint(0, 10**12), self._rng.choice(["a b", "", 'quote "q"', "ünïcode,;\n"]))
                if new != old:
                    self._now[name] = new
                    changes.append((1, new))
        return changes

    def _updates(self, schema: pa.Schema, rows: list[tuple[int, tuple[Any, ...]]]) -> pa.Table:
        columns: dict[str, Any] = {
            "_time": pa.array([self.time] * len(rows), pa.int64()),
            "_diff": pa.array([diff for diff, _ in rows], pa.int64()),
        }
        for at, field in enumerate(schema):
            columns[field.name] = pa.array([row[at] for _, row in rows], field.type)
        return pa.table(columns)

    def expected(self, binding: str) -> Any:
        """What the endpoint must hold of a binding at the last time, added up from the collection."""
        collection = ACCOUNTS if binding == "view" else EVENTS
        with self._environment.contents(collection, self.time - 1) as selection:
            rows = selection.contents().to_pylist()
        if binding == "view":
            return {row["c0"]: (row["c1"], row["c2"]) for row in rows}
        if binding == "log":
            return Counter({(row["c0"], row["c1"], row["c2"]): row["_diff"] for row in rows})
        totals: dict[str, tuple[int, int]] = {}
        for row in rows:
            amount, last = totals.get(row["c1"], (0, 0))
            totals[row["c1"]] = (amount + row["c2"] * row["_diff"], max(last, row["c0"]))
        return totals


def bindings(driver: Driver, resources: Mapping[str, Mapping[str, Any]]) -> tuple[Binding, ...]:
    """The bindings of the workload that an endpoint has resources for, in order."""
    event_id, account, amount = Field("id", INT8), Field("account", TEXT), Field("amount", INT8)
    summed = (Field("id", INT8, Reduction.parse("maximize")), account, Field("amount", INT8, Reduction.parse("sum")))
    holder = (Field("name", TEXT), Field("balance", INT8), Field("note", TEXT))
    found = {
        "totals": Binding(EVENTS, summed, ("account",), delta_updates=driver.delta_only),
        "view": Binding(ACCOUNTS, holder, ("name",), delta_updates=driver.delta_only),
        "log": Binding(EVENTS, (event_id, account, amount), (), delta_updates=True),
    }
    return tuple(
        Binding(made.collection, made.fields, made.key, dict(resources[name]), made.delta_updates)
        for name, made in found.items()
        if name in resources
    )


def summary(name: str, rows: list[tuple[Document, bool]], *, deltas: bool) -> Any:
    """What delivered rows amount to, in the form of `expected`; `deltas` if they are changes, in order of delivery."""
    if name == "log":
        return Counter((row["id"], row["account"], row["amount"]) for row, _ in rows)
    key = "account" if name == "totals" else "name"
    if not deltas and len({row[key] for row, _ in rows}) < len(rows):
        return {"a key is there twice": sorted(row[key] for row, _ in rows)}
    result: dict[str, tuple[Any, ...]] = {}
    for row, deleted in rows:
        if deleted:
            result.pop(row[key], None)
        elif name == "totals":
            amount, last = result.get(row[key], (0, 0))
            result[row[key]] = (amount + row["amount"], max(last, row["id"]))
        else:
            result[row[key]] = (row["balance"], row["note"])
    return result


def without_repeats(found: Any) -> Any:
    """`found` without repetitions, which endpoints that are at least once may have."""
    return Counter(set(found)) if isinstance(found, Counter) else found
