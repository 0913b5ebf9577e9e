"""Table functions: rows from arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal, localcontext
from typing import Any

from everview.compute.functions import jsonb_spark, patterns
from everview.compute.functions.arrays import split, split_sql
from everview.compute.functions.calendar import add_interval, micros_of, timestamp
from everview.compute.functions.contract import Failure
from everview.compute.functions.dates import add_interval_sql
from everview.compute.functions.json_value import dump, key_order, parse
from everview.compute.functions.jsonb import as_text
from everview.compute.functions.naming import ELEMENTS, key_of, wider_numeric
from everview.compute.functions.numbers import EXACT, fit
from everview.compute.functions.order import interval_micros, spark_interval_micros
from everview.compute.functions.signatures import Types, signatures
from everview.compute.functions.spark_sql import is_infinite, let, spark_type
from everview.compute.functions.spark_sql import micros_of as micros_sql
from everview.compute.ir.infinite import Infinite
from everview.compute.ir.types import INT8, TEXT, TIMESTAMP, TIMESTAMPTZ, Interval, SqlType, element_of

ROWS_MAX = 10_000_000  # of one call: more is a mistake, and would take the engine down


@dataclass(frozen=True, slots=True)
class TableFunction:
    """One overload of a table function: rows of `columns` for a row of arguments.

    `evaluate` is given the types of the columns, then the arguments; a strict one gives no rows for a NULL. `spark`
    renders an array of structs c0, c1, ... to explode. One that fails gives NULL on Spark, where otherwise there is an
    array, an empty one for no rows. Where it cannot be rendered, the scalar function `as_array` may give an array, from
    Python, that `unfolded` makes the structs of.
    """

    key: str
    name: str
    args: tuple[SqlType, ...]
    columns: Sequence[SqlType] | Callable[[Sequence[SqlType]], Sequence[SqlType]]
    evaluate: Callable[..., Iterable[tuple[Any, ...]]]
    spark: Callable[[Sequence[str], Sequence[SqlType], Sequence[SqlType]], str]
    names: tuple[str, ...] = ()
    strict: bool = True
    fails: bool = False
    volatile: bool = False  # it looks into a catalog, and means something only in a session
    as_array: str | None = None
    unfolded: Callable[[str], str] = lambda array: f"transform({array}, e -> named_struct('c0', e))"

    def columns_of(self, args: Sequence[SqlType]) -> tuple[SqlType, ...]:
        return tuple(self.columns(args) if callable(self.columns) else self.columns)


ORDINALITY = " with ordinality"


def with_ordinality(function: TableFunction) -> TableFunction:
    """The function with one more column, which counts the rows from 1 on."""

    def columns(args: Sequence[SqlType]) -> Sequence[SqlType]:
        return (*function.columns_of(args), INT8)

    def evaluate(columns: Sequence[SqlType], *args: Any) -> Iterator[tuple[Any, ...]]:
        return ((*row, number) for number, row in enumerate(function.evaluate(columns[:-1], *args), 1))

    def spark(args: Sequence[str], types: Sequence[SqlType], columns: Sequence[SqlType]) -> str:
        return numbered(function.spark(args, types, columns[:-1]), len(columns))

    def numbered(array: str, width: int) -> str:
        fields = [f"'c{at}', e.c{at}" for at in range(width - 1)]
        fields.append(f"'c{width - 1}', cast(i + 1 as bigint)")
        return f"transform({array}, (e, i) -> named_struct({', '.join(fields)}))"

    return replace(
        function,
        key=function.key + ORDINALITY,
        columns=columns,
        evaluate=evaluate,
        spark=spark,
        names=(),
        unfolded=lambda array: numbered(function.unfolded(array), 2),
    )


Schema = Sequence[SqlType]


class Tables(list[TableFunction]):
    def define(
        self,
        signature: str,
        evaluate: Callable[..., Iterable[tuple[Any, ...]]],
        spark: Callable[[Sequence[str], Schema, Schema], str],
        *,
        columns: Schema | Callable[[Schema], Schema] = (),
        T: Types = (),
        **more: Any,
    ) -> None:
        """Add the overloads of a signature, which gives the types of the columns; `more` are fields of the class."""
        for each in signatures(signature, T):
            given: Any = columns or each.results
            flags = {"names": (each.name,)} | more
            self.append(TableFunction(each.key, each.name, each.args, given, evaluate, spark, **flags))


TABLES = Tables()
define = TABLES.define


def _rows(array: str) -> str:
    """An array of values as an array of structs; NULL as an empty one."""
    return f"coalesce(transform({array}, e -> named_struct('c0', e)), array())"


def _limit(count: float) -> None:
    if count > ROWS_MAX:
        raise Failure("54000", f"a table function gives no more than {ROWS_MAX} rows")


def _integers(_columns: Schema, start: int, stop: int, step: int = 1) -> Iterator[tuple[int]]:
    if step == 0:
        raise Failure("22023", "step size cannot equal zero")
    _limit((stop - start) / step)
    return ((value,) for value in range(start, stop + (1 if step > 0 else -1), step))


def _series_sql(args: Sequence[str], _types: Schema, columns: Schema) -> str:
    """Integers in the wider type, so that the end does not overflow, and back."""
    series = f"transform(sequence(v.a, v.b, v.c), e -> named_struct('c0', cast(e as {spark_type(columns[0])})))"
    return _numbers_sql(args, columns, "bigint", f"abs((v.b - v.a) / v.c) <= {ROWS_MAX}", series)


def _numbers_sql(args: Sequence[str], columns: Schema, wide: str, inside: str, series: str) -> str:
    none = f"cast(array() as array<struct<c0: {spark_type(columns[0])}>>)"
    body = (
        f"CASE WHEN v.a IS NULL OR v.b IS NULL OR v.c IS NULL THEN {none} WHEN v.c = 0 THEN NULL"
        f" WHEN (v.c > 0 AND v.a > v.b) OR (v.c < 0 AND v.a < v.b) THEN {none} WHEN {inside} THEN {series} END"
    )
    return let(body, *(f"cast({each} as {wide})" for each in (*args, "1")[:3]))


def _decimals(columns: Schema, start: Decimal, stop: Decimal, step: Decimal = Decimal(1)) -> Iterator[tuple[Decimal]]:
    if step == 0:
        raise Failure("22023", "step size cannot equal zero")
    with localcontext(EXACT):
        count = int((stop - start) / step) if (stop - start) / step >= 0 else -1
        _limit(count)
        return iter([(fit(start + step * place, columns[0]),) for place in range(count + 1)])


def _decimals_sql(args: Sequence[str], _types: Schema, columns: Schema) -> str:
    ratio = "(v.b - v.a) / v.c"
    value = f"cast(v.a + v.c * cast(e as decimal(18,0)) as {spark_type(columns[0])})"
    series = f"transform(sequence(0L, cast(floor({ratio}) as bigint)), e -> named_struct('c0', {value}))"
    # With all digits that there can be: quotients of fewer have fewer in front of the point.
    return _numbers_sql(args, columns, f"decimal(38,{columns[0].scale})", f"{ratio} <= {ROWS_MAX}", series)


def _timestamps(of: SqlType) -> Callable[..., Iterable[tuple[datetime]]]:
    def evaluate(_columns: Schema, start: datetime, stop: datetime, step: Interval) -> list[tuple[datetime]]:
        sign = interval_micros(step)
        if sign == 0:
            raise Failure("22023", "step size cannot equal zero")
        if not (start <= stop if sign > 0 else start >= stop):
            return []
        if isinstance(start, Infinite) or isinstance(stop, Infinite):
            raise Failure("22023", "generate_series has no end where its start or stop value is infinite")
        rows, current, last = [], micros_of(start), micros_of(stop)
        _limit((last - current) / sign)
        while current <= last if sign > 0 else current >= last:
            rows.append((timestamp(current, of.kind),))
            current = add_interval(current, step)
        return rows

    return evaluate


def _timestamps_sql(args: Sequence[str], types: Schema, columns: Schema) -> str:
    """Step by step, for a month is added to what the month before it came to."""
    to = spark_type(columns[0])
    none = f"cast(array() as array<{to}>)"
    span = "v.c.months * 30L * 86400000000 + v.c.days * 86400000000L + v.c.micros"
    count = f"cast(({micros_sql('v.b', types[1])} - {micros_sql('v.a', types[0])}) / ({span}) * 1.2 + 3 as int)"
    inside = "CASE WHEN w.a > 0 THEN v.a <= v.b ELSE v.a >= v.b END"
    step = add_interval_sql("element_at(s, -1)", "v.c", columns[0])
    found = "CASE WHEN CASE WHEN w.a > 0 THEN n.a <= v.b ELSE n.a >= v.b END THEN concat(s, array(n.a)) ELSE s END"
    more = let(found, step, name="n")
    series = f"aggregate(sequence(1, {count}), array(v.a), (s, e) -> {more})"
    first, last = micros_sql("v.a", types[0]), micros_sql("v.b", types[1])
    regular = (
        f"transform(sequence(0L, cast(({last} - {first}) div w.a as bigint)),"
        f" e -> cast(timestamp_micros({first} + e * cast(w.a as bigint)) as {to}))"
    )
    body = (
        f"CASE WHEN w.a = 0 THEN NULL WHEN NOT ({inside}) THEN {none}"
        f" WHEN {is_infinite('v.a', types[0])} OR {is_infinite('v.b', types[1])} THEN NULL"
        f" WHEN v.c.months = 0 THEN {regular} ELSE {series} END"
    )
    whole = let(body, spark_interval_micros("v.c"), name="w")
    given = f"CASE WHEN v.a IS NULL OR v.b IS NULL OR v.c IS NULL THEN {none} ELSE {whole} END"
    return f"transform({let(given, *args)}, e -> named_struct('c0', e))"


def _subscripts(_columns: Schema, values: list[Any], dimension: int, backwards: bool = False) -> list[tuple[int]]:
    places = [(place,) for place in range(1, len(values) + 1)] if dimension == 1 else []
    return places[::-1] if backwards else places


def _subscripts_sql(args: Sequence[str], _types: Schema, _columns: Schema) -> str:
    places = f"CASE WHEN {args[1]} = 1 AND size({args[0]}) > 0 THEN sequence(1, size({args[0]})) END"
    return _rows(
        f"CASE WHEN {args[2]} THEN reverse({places}) WHEN NOT {args[2]} THEN {places} END" if len(args) == 3 else places
    )


def _object(json: str, name: str) -> list[tuple[str, Any]]:
    value = parse(json)
    if not isinstance(value, dict):
        raise Failure("22023", f"cannot call {name} on a {'array' if isinstance(value, list) else 'scalar'}")
    return sorted(value.items(), key=lambda pair: key_order(pair[0]))


def _array(json: str) -> list[Any]:
    value = parse(json)
    if isinstance(value, list):
        return value
    raise Failure("22023", f"cannot extract elements from {'an object' if isinstance(value, dict) else 'a scalar'}")


def _unfolding(test: Callable[[str], str], array: str, fields: str) -> Callable[[Sequence[str], Schema, Schema], str]:
    """The parts of an object or array x.a as an array of structs. NULL if the argument is neither."""
    structs = f"transform({array}, e -> named_struct({fields}))"
    body = f"CASE WHEN x.a IS NULL THEN array() WHEN {test('x.a')} THEN {structs} END"
    return lambda args, types, columns: let(body, args[0], name="x")


_PAIRS = f"arrays_zip({jsonb_spark.keys('x.a')}, {jsonb_spark.values('x.a')})"
_keys_sql = _unfolding(jsonb_spark.is_object, jsonb_spark.keys("x.a"), f"'c0', {jsonb_spark.unquote('e')}")


def _unfolded(array: str) -> str:
    """Rows of an array of all groups of all matches, in front of which is the number of groups."""
    width = "cast(m.a[0] as int)"
    places = f"sequence(0, (size(m.a) - 1) div {width} - 1)"
    rows = f"transform({places}, i -> slice(m.a, cast(2 + i * {width} as int), {width}))"
    body = f"CASE WHEN size(m.a) > 1 THEN {rows} WHEN m.a IS NOT NULL THEN array() END"
    return f"transform({let(body, array, name='m')}, e -> named_struct('c0', e))"


def _matches_sql(args: Sequence[str], _types: Schema, _columns: Schema) -> str:
    flags = patterns.flags_of(args, 2)
    count, pattern = patterns.captures(args[1]), patterns.java_pattern(args[1], flags.replace("g", ""))
    all_of = [f"regexp_extract_all({args[0]}, {pattern}, {group})" for group in (range(1, count + 1) if count else [0])]
    places = "sequence(0, size(m.a) - 1)" if "g" in flags else "array(0)"
    row = ", ".join(f"m.{letter}[i]" for letter, _ in zip("abcdefghij", all_of, strict=False))
    body = f"transform({places}, i -> named_struct('c0', array({row})))"
    return let(f"CASE WHEN size(m.a) > 0 THEN {body} ELSE array() END", *all_of, name="m")


def _split_sql(args: Sequence[str], _types: Schema, _columns: Schema) -> str:
    refused = "g" in patterns.flags_of(args, 2)
    return "cast(NULL as array<struct<c0: string>>)" if refused else _rows(patterns.split_sql(args))


define("generate_series(T, T [, T]) -> T", _integers, _series_sql, fails=True, T="int4 int8")
_numbers = lambda types: (wider_numeric(types),)
define("generate_series(numeric, numeric [, numeric])", _decimals, _decimals_sql, columns=_numbers, fails=True)
for _of in (TIMESTAMP, TIMESTAMPTZ):
    define("generate_series(T, T, interval) -> T", _timestamps(_of), _timestamps_sql, fails=True, T=_of)
define(
    "unnest(T[])",
    lambda _, values: [(each,) for each in values],
    lambda args, types, columns: _rows(args[0]),
    columns=lambda types: (element_of(types[0]),),
    T=ELEMENTS,
)
define("generate_subscripts(T[], int4 [, bool]) -> int4", _subscripts, _subscripts_sql, T=ELEMENTS)
define(
    "string_to_table(text, text [, text]) -> text",
    lambda _, *args: [(each,) for each in split(*args) or ()],
    lambda args, types, columns: _rows(split_sql(args)),
    strict=False,
)
for _suffix, _column, _shown, _sql in (("", "jsonb", dump, str), ("_text", "text", as_text, jsonb_spark.as_text)):
    _elements = lambda _, json, shown=_shown: [(shown(each),) for each in _array(json)]
    _elements_sql = _unfolding(jsonb_spark.is_array, jsonb_spark.elements("x.a"), f"'c0', {_sql('e')}")
    define(f"jsonb_array_elements{_suffix}(jsonb) -> {_column}", _elements, _elements_sql, names=("value",), fails=True)

    def _each(_columns: Schema, json: str, shown: Any = _shown, name: str = f"jsonb_each{_suffix}") -> list[Any]:
        return [(key, shown(value)) for key, value in _object(json, name)]

    _fields = f"'c0', {jsonb_spark.unquote('e.`0`')}, 'c1', {_sql('e.`1`')}"
    _each_sql = _unfolding(jsonb_spark.is_object, _PAIRS, _fields)
    define(f"jsonb_each{_suffix}(jsonb) -> (text, {_column})", _each, _each_sql, names=("key", "value"), fails=True)
_object_keys = lambda _, json: [(key,) for key, _value in _object(json, "jsonb_object_keys")]
define("jsonb_object_keys(jsonb) -> text", _object_keys, _keys_sql, fails=True)

_split_rows = lambda _, *args: [(each,) for each in patterns.split(*args)]
_matches = lambda _columns, *args: [(each,) for each in patterns.all_captured(*args)]
for _args, _types in (("text, text", (TEXT, TEXT)), ("text, text, text", (TEXT, TEXT, TEXT))):
    _as_array = key_of(patterns.ALL_CAPTURED, _types)
    _more: dict[str, Any] = {"fails": True, "as_array": _as_array, "unfolded": _unfolded}
    define(f"regexp_matches({_args}) -> text[]", _matches, _matches_sql, **_more)
    _more = {"fails": True, "as_array": key_of("regexp_split_to_array", _types)}
    define(f"regexp_split_to_table({_args}) -> text", _split_rows, _split_sql, **_more)
