"""Random values and random expressions of a type, out of the registry.

Values come from small domains, with NULLs and the awkward ones among them, so that rows meet in joins and groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from everview.compute.functions import registry
from everview.compute.functions.casts import WIDENED
from everview.compute.functions.contract import AggregateFunction, Function
from everview.compute.functions.plan_functions import PARAMETER
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar
from everview.compute.ir.types import BOOLEAN, DATE, FLOAT8, INT4, INT8, TEXT, Kind, SqlType, numeric
from tests.compute.choosing import Choose, flip

NUMERIC = numeric(10, 2)
# Numerics of one scale in both representations, and one of another scale: they meet in comparisons and in joins.
NUMERICS = (NUMERIC, numeric(24, 2), numeric(12, 3))
TYPES = (INT4, INT8, TEXT, BOOLEAN, *NUMERICS, FLOAT8, DATE)
KINDS = frozenset(each.kind for each in TYPES)

# Texts that would mean something to Spark, or to what makes statements for it, were they not quoted well.
HOSTILE = ("${env:HOME}", "\\'", "`{0}", "@input0@ everview_python_x_0123456789abcdef")

DOMAINS: dict[Kind, list[Any]] = {
    Kind.INT4: [0, 1, 2, 3, -1, 2**31 - 1],
    Kind.INT8: [0, 1, 2, 3, -2, 2**63 - 1],
    Kind.TEXT: ["", "a", "b", "ab", "A", "é", "10", *HOSTILE],
    Kind.BOOLEAN: [True, False],
    Kind.NUMERIC: [Decimal("0.00"), Decimal("1.00"), Decimal("-1.50"), Decimal("2.25"), Decimal("99999999.99")],
    Kind.FLOAT8: [0.0, 1.0, -2.5, 0.1, math.inf, math.nan],
    Kind.DATE: [date(2020, 1, 31), date(2020, 2, 29), date(2021, 3, 1), *Infinite],
}
COMPARISONS = ("ge", "le", "eq", "ne", "is_distinct_from", "lt", "gt", "is_not_distinct_from")

# What is right but no use here: results that grow without bounds, or that differ from run to run.
# And of the functions for bounds, those that plans call only with a constant above zero, or with sets of times.
OF_BOUNDS = ("the moment rounded up", "the next moment rounded", "the factor from", "the dividend from")
OF_TIMES = ("times outside", "times of all", "times of any")
EXCLUDED_NAMES = frozenset({"repeat", "lpad", "rpad", "random", "gen_random_uuid", "factorial", *OF_BOUNDS, *OF_TIMES})
# Where no match is NULL, the binder sees to it that there is a pattern: without one they fail, though the registry says
# that they do not.
GUARDED = ("regexp_match(", "regexp_substr(", "substring_regex(")
# And the cast that is right only where the types say so, and what stands for a parameter until it has a value.
EXCLUDED_KEYS = frozenset({WIDENED, PARAMETER})


def value_of(choose: Choose, sql_type: SqlType) -> Any:
    """A value of the type, or about once in ten NULL."""
    domain = DOMAINS[sql_type.kind]
    if sql_type.kind is Kind.NUMERIC:
        limit = Decimal(10) ** (sql_type.precision - sql_type.scale)
        domain = [fixed for each in domain if abs(fixed := each.quantize(Decimal(1).scaleb(-sql_type.scale))) < limit]
    return choose.pick([*domain, *domain, None])


def schema_of(choose: Choose, size_max: int = 4) -> tuple[SqlType, ...]:
    """The types of a relation's columns."""
    return tuple(choose.pick(TYPES) for _ in range(choose.integer(1, size_max)))


@cache
def functions_giving(kind: Kind, *, fails: bool) -> list[Function]:
    """The functions of the registry over our types that give this kind; those that can fail only if asked for."""
    return [
        entry
        for entry in registry.FUNCTIONS.values()
        if not entry.volatile
        and entry.name not in EXCLUDED_NAMES
        and entry.key not in EXCLUDED_KEYS
        and not entry.key.startswith(GUARDED)
        and (fails or not entry.fails)
        and all(arg.kind in KINDS for arg in entry.args)
        and _result_kind(entry) is kind
    ]


@cache
def aggregates_over(kinds: tuple[Kind, ...]) -> list[AggregateFunction]:
    """The aggregates of the registry over arguments of these kinds, with results of our types.

    Not `single`, which fails for all groups but the smallest: it is for subqueries in expressions.
    """
    return [
        entry
        for entry in registry.AGGREGATES.values()
        if entry.name not in ("single", "some")
        and all(arg.kind in kinds or arg.kind is Kind.UNKNOWN for arg in entry.args)
        and _result_kind(entry) in KINDS
    ]


def result_type(entry: Function | AggregateFunction, args: Sequence[SqlType]) -> SqlType:
    """The type of a call with arguments of these types."""
    return entry.result if isinstance(entry.result, SqlType) else entry.result(args)


def _result_kind(entry: Function | AggregateFunction) -> Kind | None:
    return result_type(entry, [INT4 if arg.kind is Kind.UNKNOWN else arg for arg in entry.args]).kind


class Expressions:
    """Draws expressions over columns of given types. With `fails`, functions that can fail take part."""

    def __init__(self, choose: Choose, columns: Sequence[SqlType], *, fails: bool) -> None:
        self.choose, self.columns, self.fails = choose, columns, fails

    def any(self, depth: int = 2) -> Scalar:
        """An expression of any of our types."""
        return self.of_kind(self.choose.pick(TYPES).kind, depth)

    def predicate(self, depth: int = 2) -> Scalar:
        """A condition: more often than not a comparison."""
        if depth == 0 or self.choose.integer(0, 3) == 3:
            return self.of_kind(Kind.BOOLEAN, depth)
        sql_type = self.choose.pick(self.columns or TYPES)
        name = self.choose.pick(COMPARISONS)
        left, right = self.leaf(sql_type), self.of_kind(sql_type.kind, depth - 1)
        if right.type.kind is not sql_type.kind:
            right = self.leaf(sql_type)
        return self.call(comparison(name, sql_type), left, right)

    def equality(self) -> Scalar | None:
        """Two columns of one kind that are equal, if there are two: what joins are made of."""
        pairs = [
            (left, right)
            for left, sql_type in enumerate(self.columns)
            for right in range(left)
            if self.columns[right].kind is sql_type.kind
        ]
        if not pairs:
            return None
        left, right = self.choose.pick(pairs)
        entry = comparison(self.choose.pick(("eq", "is_not_distinct_from")), self.columns[left])
        return self.call(entry, Column(left, self.columns[left]), Column(right, self.columns[right]))

    def call(self, entry: Function, *args: Scalar) -> Call:
        """A call of a function."""
        return Call(entry.key, args, result_type(entry, [arg.type for arg in args]))

    def of_kind(self, kind: Kind, depth: int = 2) -> Scalar:
        """An expression of a type of this kind."""
        if depth > 0:
            choice = self.choose.integer(0, 9)
            if choice < 5 and (entries := functions_giving(kind, fails=self.fails)):
                entry = self.choose.pick(entries)
                args = [self.of_kind(arg.kind, depth - 1) for arg in entry.args]
                return self.call(entry, *args)
            if choice == 5:
                return self.case(kind, depth)
            if choice == 6 and kind is Kind.BOOLEAN:
                forms: list[type[And] | type[Or]] = [And, Or]
                form = self.choose.pick(forms)
                return form(tuple(self.predicate(depth - 1) for _ in range(2)))
        return self.leaf(self.choose.pick([each for each in TYPES if each.kind is kind]))

    def case(self, kind: Kind, depth: int) -> Scalar:
        """A Case or a Coalesce, whose parts must all have one type."""
        first = self.of_kind(kind, depth - 1)
        second = self.of_kind(kind, depth - 1)
        if second.type != first.type:
            second = self.leaf(first.type)
        if flip(self.choose):
            return Coalesce((first, second), first.type)
        return Case(((self.predicate(depth - 1), first),), second, first.type)

    def leaf(self, sql_type: SqlType) -> Scalar:
        """A column of exactly this type, or a literal."""
        places = [index for index, each in enumerate(self.columns) if each == sql_type]
        if places and self.choose.integer(0, 3) < 3:
            return Column(self.choose.pick(places), sql_type)
        return Literal(value_of(self.choose, sql_type), sql_type)


def comparison(name: str, sql_type: SqlType) -> Function:
    """The comparison of two values of the type."""
    base = sql_type.base
    return next(
        entry
        for entry in registry.FUNCTIONS.values()
        if entry.key.startswith(f"{name}(") and entry.args == (base, base)
    )
