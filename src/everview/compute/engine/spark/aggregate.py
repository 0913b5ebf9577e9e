"""Aggregates in Spark SQL over rows with multiplicities.

Counts and exact sums are sums of what each row adds times its multiplicity, so they need no consolidated input;
extremes and distinct aggregates need to know which rows there are, and all others want every copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from everview.compute.engine.spark.ordering import sort_terms, tie_terms
from everview.compute.functions import lookup
from everview.compute.functions.aggregates import COUNT, SUM
from everview.compute.functions.contract import Algebra, Extreme, OneRow
from everview.compute.functions.list_aggregates import FINISH
from everview.compute.functions.naming import as_numeric
from everview.compute.functions.numbers import EXACT_KINDS
from everview.compute.functions.spark_sql import render, spark_type
from everview.compute.ir.relation import Order
from everview.compute.ir.types import Kind, SqlType


class Needs(IntEnum):
    """What an aggregate needs of its input."""

    SUMS = 0  # any rows that add up to the collection
    ROWS = 1  # each row once, with its multiplicity
    COPIES = 2  # each row as often as it occurs


@dataclass(frozen=True, slots=True)
class Use:
    """An aggregate over columns: where its arguments and sort keys are, and which rows take part (None: all).

    The arguments of rows that do not take part are NULL.
    """

    function: str
    args: tuple[str, ...]
    types: tuple[SqlType, ...]
    result: SqlType
    distinct: bool = False
    takes: str | None = None
    order: tuple[Order, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def algebra(self) -> Algebra | None:
        """How the value follows from changes of the rows."""
        return lookup.aggregate(self.function).algebra

    @property
    def idempotent(self) -> bool:
        """Whether a row more or less of the same does not matter."""
        return isinstance(self.algebra, Extreme)

    @property
    def needs(self) -> Needs:
        """What must be done to the input first."""
        if self.idempotent or self.distinct or isinstance(self.algebra, OneRow):
            return Needs.ROWS
        exact = self.algebra == COUNT or (self.algebra == SUM and self.types[0].kind in EXACT_KINDS)
        return Needs.SUMS if exact else Needs.COPIES


def over_sums(use: Use) -> str:
    """A count or a sum of rows with multiplicities."""
    takes = " AND ".join(f"{arg} IS NOT NULL" for arg in use.args) or use.takes
    count = f"coalesce(sum(CASE WHEN {takes} THEN _diff END), 0L)" if takes else "sum(_diff)"
    if use.algebra == COUNT:
        return count
    return f"CASE WHEN {count} > 0 THEN try_sum({_weighted(use.args[0], use.types[0])}) END"


def _weighted(arg: str, sql_type: SqlType) -> str:
    if sql_type.kind in (Kind.INT2, Kind.INT4):
        return f"cast({arg} as bigint) * _diff"
    exact = spark_type(replace(as_numeric(sql_type), precision=38))
    return f"try_multiply(cast({arg} as {exact}), cast(_diff as decimal(19,0)))"


def over_rows(use: Use) -> str:
    """The aggregate over consolidated rows; a distinct one is given each value once."""
    if use.algebra == OneRow(enforced=True):
        return f"CASE WHEN sum(_diff) = 1 THEN first({use.args[0]}) END"
    return over_copies(use)


def over_copies(use: Use) -> str:
    """The aggregate over rows that each count once; raises NotOnSpark."""
    if use.function in FINISH:
        return FINISH[use.function](_listed(use), use.types)
    if use.algebra == COUNT and not use.args:
        return f"count(CASE WHEN {use.takes} THEN 1 END)" if use.takes else "count(*)"
    return render(lookup.aggregate(use.function), use.args, use.types, use.result)


def _listed(use: Use) -> str:
    """The arguments as structs a, b, ... in the order asked for, ties in the order of the arguments."""
    fields: list[str] = []
    signs: list[int] = []

    def add(is_null: str, term: str, descending: bool = False) -> None:
        fields.extend((f"'n{len(signs)}', {is_null}", f"'k{len(signs)}', {term}"))
        signs.append(-1 if descending else 1)

    for each, key in zip(use.order, use.keys, strict=True):
        is_null = f"{key} IS NOT NULL" if each.nulls_first else f"{key} IS NULL"
        for term in sort_terms(each.scalar.type, key):
            add(is_null, term, each.descending)
    for arg, sql_type in zip(use.args, use.types, strict=True):
        for term in tie_terms(sql_type, arg):
            add(f"{arg} IS NULL", term)
    fields.extend(f"'{letter}', {arg}" for letter, arg in zip("ab", use.args, strict=False))
    item = f"named_struct({', '.join(fields)})"
    items = f"collect_list({f'CASE WHEN {use.takes} THEN {item} END' if use.takes else item})"
    return f"array_sort({items}, {_comparator(signs)})" if -1 in signs else f"array_sort({items})"


def _comparator(signs: Sequence[int]) -> str:
    whens = " ".join(
        f"WHEN l.n{at} < r.n{at} THEN -1 WHEN l.n{at} > r.n{at} THEN 1"
        f" WHEN l.k{at} < r.k{at} THEN {-sign} WHEN l.k{at} > r.k{at} THEN {sign}"
        for at, sign in enumerate(signs)
    )
    return f"(l, r) -> CASE {whens} ELSE 0 END"
