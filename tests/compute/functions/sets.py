"""Sample groups for every aggregate, and sample calls of every table function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everview.compute.functions.contract import AggregateFunction, Failure
from everview.compute.functions.input import from_text
from everview.compute.functions.list_aggregates import FINISH
from everview.compute.functions.order import sort_key
from everview.compute.functions.resolve import result_type
from everview.compute.functions.table import ORDINALITY, TableFunction
from everview.compute.functions.time_sets import INTERVALS
from everview.compute.ir.types import TEXT, Kind, SqlType, array_of, numeric
from tests.compute.functions.samples import Texts, pool, sql_literal


def in_listing_order(rows: list[tuple[Any, ...]], types: Sequence[SqlType]) -> list[tuple[Any, ...]]:
    """The rows of a group as they are listed where no order is asked for."""
    keys = [sort_key(TEXT if each.kind is Kind.JSONB else each) for each in types]

    def key(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
        pairs = zip(row, keys, strict=True)
        return [(True, None) if value is None else (False, of(value)) for value, of in pairs]

    return sorted(rows, key=key)


@dataclass(frozen=True)
class Group:
    """The rows of a group, and the aggregate over them."""

    aggregate: AggregateFunction
    types: tuple[SqlType, ...]
    rows: tuple[Texts, ...]
    result: SqlType

    @property
    def values(self) -> list[tuple[Any, ...]]:
        """The rows as values."""
        return [
            tuple(None if text is None else from_text(text, each) for text, each in zip(row, self.types, strict=True))
            for row in self.rows
        ]

    def evaluate(self) -> Any:
        """The value, or the Failure."""
        rows = self.values
        if not self.aggregate.takes_nulls:
            rows = [row for row in rows if None not in row]
        if self.aggregate.key in FINISH:
            rows = in_listing_order(rows, self.types)
        try:
            return self.aggregate.evaluate(self.result, rows) if rows else self.aggregate.empty
        except Failure as failure:
            return failure

    def sql(self) -> str:
        """The same in PostgreSQL's SQL."""
        names = [f"x{at}" for at in range(len(self.types))]
        args = ", ".join(names) or "*"
        called = f"{self.aggregate.name}({args})"
        if self.aggregate.key in FINISH:
            args += " ORDER BY " + ", ".join(_order(name, each) for name, each in zip(names, self.types, strict=True))
            called = f"{self.aggregate.name}({args})"
        rows = [
            ", ".join(sql_literal(text, each) for text, each in zip(row, self.types, strict=True)) for row in self.rows
        ]
        values = (
            " UNION ALL ".join(f"SELECT {row}" for row in rows)
            if names
            else " UNION ALL ".join(["SELECT 1"] * len(rows))
        )
        columns = f"({', '.join(names)})" if names else "(x)"
        blank = "SELECT " + ", ".join(sql_literal(None, each) for each in self.types) if names else "SELECT 1"
        source = values if rows else f"{blank} WHERE false"
        if WITHIN in self.aggregate.name:
            name, _, order = self.aggregate.name.partition(WITHIN)
            fraction = FRACTION if len(names) == 2 else ""
            called = f"{name}({fraction}) WITHIN GROUP (ORDER BY {_order(names[-1], self.types[-1])}{order})"
        return f"(SELECT {called} FROM ({source}) AS t{columns})"


WITHIN, FRACTION = " within group", "0.3"


def _order(name: str, sql_type: SqlType) -> str:
    if sql_type.kind is Kind.JSONB:
        return f'{name}::text COLLATE "C"'
    return f'{name} COLLATE "C"' if sql_type.kind is Kind.TEXT or sql_type == array_of(TEXT) else name


def _modified(sql_type: SqlType) -> SqlType:
    if sql_type.kind is Kind.NUMERIC:
        return numeric(14, 3)
    return array_of(numeric(8, 3)) if sql_type == array_of(numeric()) else sql_type


# Sums of these overflow in some orders, or they are equal to another sample and come in any order.
_UNSUITABLE = ("1e308", "3e38", "30 days", '{"1 mon","30 days"}')


# Pairs: those that fit a line and those that hardly do, columns of one value, and values that are no numbers.
_PAIRS: tuple[tuple[Texts, ...], ...] = (
    (("1", "2"), ("2.5", "3"), ("-7", "1"), ("0.1", "0.7"), (None, "5"), ("5", None), ("123.25", "-1e3")),
    (("1", "10"), ("2", "20"), ("3", "30"), ("4", "40")),
    (("1e6", "-3"), ("1000001", "-3.5"), ("1000002", "-3.25"), ("1000002", "-3.25")),
    (("0.1", "1"), ("0.1", "2"), ("0.1", "4")),
    (("1", "0.1"), ("2", "0.1"), ("4", "0.1")),
    (("3", "4"),),
    (("NaN", "4"),),
    (("3", "Infinity"), ("1", "2")),
    (("NaN", "1"), ("1", "2"), ("2", "5")),
    (("-Infinity", "1"), ("1", "1"), ("2", "1")),
    (("1e200", "1"), ("-1e200", "2")),
    ((None, "1"), ("1", None)),
    (),
)


def groups(aggregate: AggregateFunction) -> Iterator[Group]:
    """Groups of many rows, of one, of NULL only and of none; of a numeric with and without a declared scale."""
    declared = tuple(TEXT if each.kind is Kind.UNKNOWN else each for each in aggregate.args)
    for types in dict.fromkeys((declared, tuple(map(_modified, declared)))):
        if types == declared and numeric() in [each.element for each in types]:
            continue
        if not types:
            rows: list[Texts] = [(), (), ()]
        elif len(types) == 1:
            rows = [(text,) for text in pool(types[0]) if text not in _UNSUITABLE]
        elif WITHIN in aggregate.name:
            rows = [(FRACTION, text) for text in pool(types[1]) if text not in _UNSUITABLE]
        elif aggregate.name.startswith(("corr", "covar", "regr")):
            yield from (Group(aggregate, types, each, result_type(aggregate.result, types)) for each in _PAIRS)
            return
        else:
            second = pool(types[1])
            rows = [(text, second[at % len(second)]) for at, text in enumerate(pool(types[0])) if text is not None]
        group = Group(aggregate, types, tuple(rows), result_type(aggregate.result, types))
        yield group
        yield replace(group, rows=tuple(rows[:3]))
        yield replace(group, rows=tuple(rows[1:2]))
        yield replace(group, rows=tuple(rows[-1:]))
        yield replace(group, rows=())


_SERIES: dict[str, list[Texts]] = {
    "int4": [("1", "5"), ("5", "1"), ("1", "1"), (None, "1"), ("1", "10", "3"), ("10", "1", "-4"), ("1", "2", "0")],
    "numeric": [("1", "3.5"), ("1", "2", "0.25"), ("2", "1", "-0.5"), ("1", "2", "0"), (None, "2")],
    "timestamp": [
        ("2024-01-31", "2024-06-01", "1 month"),
        ("2024-01-01", "2024-01-02", "6 hours"),
        ("2024-01-02", "2024-01-01", "-6 hours"),
        ("2024-01-01", "2024-01-02", "0"),
        ("2024-01-02", "2024-01-01", "1 day"),
        (None, "2024-01-01", "1 day"),
        ("2024-03-31", "2023-10-01", "-1 month"),
        ("infinity", "2024-01-01", "1 day"),
        ("2024-01-01", "infinity", "-1 month"),
    ],
}
_SERIES["int8"] = [*_SERIES["int4"], ("9223372036854775806", "9223372036854775807")]
_SERIES["timestamptz"] = _SERIES["timestamp"]
_REGEX: list[Texts] = [
    ("foobar", "o(b)(a)"),
    ("foobar", "o"),
    ("foobar", "x"),
    ("foobar", "o", "g"),
    ("a1b22", "([0-9])", "g"),
    ("aXbxc", "x", "i"),
    ("k=v, a=b", "(\\w+)=(\\w+)", "g"),
    ("aab", "(a|b)(c)?", "g"),
]


@dataclass(frozen=True)
class TableCall:
    """A call of a table function."""

    function: TableFunction
    types: tuple[SqlType, ...]
    texts: Texts

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments as values."""
        return tuple(
            None if text is None else from_text(text, each) for text, each in zip(self.texts, self.types, strict=True)
        )

    @property
    def columns(self) -> tuple[SqlType, ...]:
        """The types of the columns."""
        return self.function.columns_of(self.types)

    def evaluate(self) -> Any:
        """The rows, or the Failure."""
        if self.function.strict and None in self.values:
            return []
        try:
            return list(self.function.evaluate(self.columns, *self.values))
        except Failure as failure:
            return failure

    def sql(self) -> str:
        """The same in PostgreSQL's SQL: an array of the rows' texts."""
        args = ", ".join(sql_literal(text, each) for text, each in zip(self.texts, self.types, strict=True))
        counted = self.function.key.endswith(ORDINALITY)
        names = [f"c{at}" for at in range(len(self.columns) - counted)] + ["n"] * counted
        row = " || '|' || ".join(
            f"CASE WHEN {name} IS NULL THEN '<NULL>' ELSE format('%s', {name}) END" for name in names
        )
        named = ", ".join(names if counted else [*names, "n"])
        return (
            f"(SELECT coalesce(array_to_json(array_agg({row} ORDER BY n))::text, '[]')"
            f" FROM {self.function.name}({args}) WITH ORDINALITY AS t({named}))"
        )


def table_calls(function: TableFunction) -> Iterator[TableCall]:
    """Calls of a table function."""
    from everview.compute.functions.naming import short_name

    types = tuple(map(_modified, function.args))
    rows: Sequence[tuple[str | None, ...]]
    if function.name == INTERVALS:  # for which SQL has no name
        rows = []
    elif function.name == "generate_series":
        rows = _SERIES[short_name(types[0])]
    elif function.name.startswith("regexp"):
        rows = _REGEX
    elif function.name == "string_to_table":
        rows = [("a,b,,c", ","), ("", ","), ("abc", None), (None, ","), ("a,b,,c", ",", ""), ("a,b", ",", None)]
    elif function.name == "generate_subscripts":
        rows = [(text, *more) for text in pool(types[0]) for more in (("1",), ("2",), ("1", "true"), ("1", "false"))]
    else:
        rows = [(text,) for text in pool(types[0])]
    yield from (TableCall(function, types, row) for row in rows if len(row) == len(types))
