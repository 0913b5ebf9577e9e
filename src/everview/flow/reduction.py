"""Reductions: how the values that a key's documents have for a field become one value.

`Reducer.apply(left, value, diff, full)` adds `diff` times `value` to what there is. Reductions know two modes: *full*,
where `left` is all that came before, and *associative*, where it is what came before in this transaction only, and the
result will be reduced into a base that nobody has loaded. Only a sum can be taken back; the last value written stays
the last one when it is taken away; everything else refuses rows that are retracted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from everview.compute.functions.json_value import dump, parse
from everview.compute.functions.numbers import EXACT, RANGES
from everview.compute.ir.types import NUMERIC_PRECISION, Kind, SqlType
from everview.flow import json_reductions
from everview.flow.errors import InvalidMaterialization, ReductionFailed, Retracted

MISSING: Any = object()
REPEATS_MAX = 100_000  # copies of one row that a reduction will look at one by one

_NUMBERS = {Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC}
_OF_VALUES = ("lastWriteWins", "firstWriteWins", "sum", "minimize", "maximize")
STRATEGIES = (*_OF_VALUES, "merge", "append", "set", "jsonSchemaMerge")
_SPELLED = {name.lower(): name for name in STRATEGIES}
_SPELLED |= {"min": "minimize", "max": "maximize", "last": "lastWriteWins", "first": "firstWriteWins"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """A strategy; `key` are JSON pointers into its documents, for those that compare or match by parts of them.

    `delete`: where the reduced value is true, the document goes. `associative=False`: not to be reduced without what
    was there before, so not for delta updates.
    """

    strategy: str = "lastWriteWins"
    key: tuple[str, ...] = ()
    delete: bool = False
    associative: bool = True

    @classmethod
    def parse(cls, given: str | Mapping[str, Any] | Reduction) -> Reduction:
        """Read a name, or an object with `strategy` and its arguments."""
        if isinstance(given, Reduction):
            return given
        options = {"strategy": given} if isinstance(given, str) else dict(given)
        strategy = _SPELLED.get(str(options.pop("strategy", "")).lower())
        unknown = set(options) - {"key", "delete", "associative"}
        if strategy is None or unknown:
            hint = f"one of {', '.join(sorted(STRATEGIES))}, with key, delete and associative"
            raise InvalidMaterialization(f"unknown reduction: {given}", hint=hint)
        key = options.get("key", ())
        flags = bool(options.get("delete", False)), bool(options.get("associative", True))
        return cls(strategy, (key,) if isinstance(key, str) else tuple(key), *flags)

    def __str__(self) -> str:
        return self.strategy + (f" by {', '.join(self.key)}" if self.key else "")

    def to_json(self) -> dict[str, Any]:
        """The object that `parse` reads."""
        more = {"key": list(self.key), "delete": self.delete, "associative": self.associative}
        return {"strategy": self.strategy, **{name: value for name, value in more.items() if value != _PLAIN[name]}}


_PLAIN: dict[str, Any] = {"key": [], "delete": False, "associative": True}
LAST_WRITE_WINS = Reduction()


def check_type(name: str, sql_type: SqlType, reduction: Reduction) -> None:
    """An error if values of the type cannot be reduced this way."""
    kind, strategy = sql_type.kind, reduction.strategy
    wanted = None
    if strategy == "sum" and kind not in _NUMBERS:
        wanted = "a number"
    elif strategy == "append" and kind not in {Kind.ARRAY, Kind.JSONB}:
        wanted = "an array or jsonb"
    elif strategy in {"merge", "set", "jsonSchemaMerge"} and kind is not Kind.JSONB:
        wanted = "jsonb"
    elif reduction.key and kind is not Kind.JSONB:
        wanted = "jsonb, to be compared by a part of it"
    elif reduction.key and strategy not in {"minimize", "maximize", "merge", "set"}:
        raise InvalidMaterialization(f'the reduction {strategy} of field "{name}" takes no key')
    elif reduction.delete and kind is not Kind.BOOLEAN:
        wanted = "boolean, to say when a document goes"
    if wanted is not None:
        raise InvalidMaterialization(
            f'field "{name}" of type {sql_type} cannot be reduced by {strategy}', detail=f"it must be {wanted}"
        )


class Reducer:
    """The reduction of one field, over the Python values of its type."""

    def __init__(self, name: str, sql_type: SqlType, reduction: Reduction) -> None:
        check_type(name, sql_type, reduction)
        self._name, self._type, self._reduction = name, sql_type, reduction
        self._json = sql_type.kind is Kind.JSONB and reduction.strategy not in {"lastWriteWins", "firstWriteWins"}
        self._step = getattr(self, "_" + re.sub("[A-Z]", lambda at: f"_{at[0].lower()}", reduction.strategy))

    def load(self, value: Any) -> Any:
        """A value of the type in the form that is reduced."""
        return parse(value) if self._json and value is not None else value

    def dump(self, value: Any) -> Any:
        """A reduced value as a value of the type."""
        if value is MISSING or value is None:
            return None
        return dump(value) if self._json else value

    def apply(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        """The state after `diff` more of `value`. `left` is the state before, or MISSING."""
        try:
            return self._step(left, value, diff, full)
        except json_reductions.Irreducible as error:
            raise self._failed(str(error)) from None

    def _last_write_wins(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        return value if diff > 0 else (None if left is MISSING else left)

    def _first_write_wins(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        self._only_added(diff)
        return value if left is MISSING else left

    def _sum(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        if value is None:
            return None if left is MISSING else left
        before = 0 if left is MISSING or left is None else left
        kind = self._type.kind
        if kind is Kind.NUMERIC:
            total = EXACT.add(EXACT.multiply(value, Decimal(diff)), Decimal(before))
        else:
            total = value * diff + before
        if kind in RANGES:
            low, high, name = RANGES[kind]
            if not low <= total <= high:
                raise self._failed(f"the sum {total} is out of range for type {name}")
        elif (
            kind is Kind.NUMERIC
            and isinstance(total, Decimal)
            and total.adjusted() >= NUMERIC_PRECISION - self._type.scale
        ):
            raise self._failed(f"the sum {total} does not fit {self._type}")
        elif kind is Kind.FLOAT4 and math.isfinite(total) and abs(total) > 3.4028235e38:
            raise self._failed(f"the sum {total} is out of range for type real")
        return total

    def _minimize(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        return self._extreme(left, value, diff, lambda order: order < 0)

    def _maximize(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        return self._extreme(left, value, diff, lambda order: order > 0)

    def _extreme(self, left: Any, value: Any, diff: int, better: Callable[[int], bool]) -> Any:
        def choose(one: Any, other: Any) -> Any:
            if self._json:
                order = json_reductions.compare_by(other, one, self._reduction.key)
            else:
                order = (other > one) - (other < one)
                if isinstance(other, float) and (math.isnan(other) or math.isnan(one)):  # NaN is the greatest
                    order = math.isnan(other) - math.isnan(one)
            return other if better(order) else one

        return self._joined(left, value, diff, choose)

    def _joined(self, left: Any, value: Any, diff: int, join: Callable[[Any, Any], Any]) -> Any:
        """What `join` makes of two values; where only one of them is there, that one."""
        self._only_added(diff)
        if left is MISSING or left is None or value is None:
            return left if value is None and left is not MISSING else value
        return join(left, value)

    def _merge(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        return self._joined(
            left, value, diff, lambda one, other: json_reductions.merge(one, other, self._reduction.key)
        )

    def _append(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        self._only_added(diff)
        if diff > REPEATS_MAX:
            raise self._failed(f"a row is there {diff} times")
        added = [] if value is None else value
        if not isinstance(added, list):
            raise self._failed("append needs arrays")
        return ([] if left is MISSING or left is None else left) + added * diff

    def _set(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        self._only_added(diff)
        if value is None:
            return None if left is MISSING else left
        return json_reductions.set_operation(
            {} if left is MISSING or left is None else left, value, self._reduction.key, full
        )

    def _json_schema_merge(self, left: Any, value: Any, diff: int, full: bool) -> Any:
        return self._joined(left, value, diff, json_reductions.merge_schemas)

    def _only_added(self, diff: int) -> None:
        if diff < 0:
            raise Retracted(
                f'a row was taken away, which field "{self._name}" reduced by {self._reduction.strategy} cannot undo',
                hint="only sums and the last value written can follow deletes and updates; aggregate in a view instead",
            )

    def _failed(self, why: str) -> ReductionFailed:
        return ReductionFailed(f'field "{self._name}" cannot be reduced by {self._reduction.strategy}', detail=why)
