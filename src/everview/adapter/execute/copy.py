"""COPY: rows in and out in bulk; how they are written down is the carrier's work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from everview.adapter.bound_statement import BoundQuery
from everview.adapter.catalog.items import Table
from everview.adapter.contract import Column, CopyFormat, CopyOut, Result, Row, Rows
from everview.adapter.errors import INVALID_PARAMETER_VALUE, WRONG_OBJECT_TYPE, as_sql_errors
from everview.adapter.execute.context import Context
from everview.adapter.execute.queries import run_query
from everview.adapter.execute.subscriptions import run_subscribe
from everview.adapter.execute.writes import run_modify
from everview.adapter.statements import nodes
from everview.adapter.statements.options import boolean
from everview.adapter.tables import changes, check_table
from everview.compute.functions.input import limited
from everview.compute.functions.precision import PRECISE, rounded
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.arrow import rows_from_arrow
from everview.compute.rows.collection import rows_of
from everview.compute.sql.errors import UNDEFINED_COLUMN, SqlError, did_you_mean, unsupported
from everview.storage.contract import GlobalId
from everview.timely.consolidate import DIFF

_OPTIONS = ("format", "delimiter", "null", "header", "quote", "escape", "force_quote", "encoding")


def run_copy(context: Context, statement: nodes.Copy) -> Result:
    if statement.into:
        assert statement.table is not None
        context.transaction.check_may_write()
        item = context.around.relation(statement.table)
        if not isinstance(item, Table):
            raise SqlError(WRONG_OBJECT_TYPE, f'cannot copy to {item.kind} "{item.name}"', hint="only tables can be")
        places = _places(item, statement.columns)
        columns = tuple(Column(item.columns[place].name, _unlimited(item.columns[place].type)) for place in places)
        return CopyTarget(context, item, places, columns, copy_format(statement.options, columns))
    return _copy_out(context, statement)


def _copy_out(context: Context, statement: nodes.Copy) -> Result:
    rows: Rows
    match statement.source:
        case nodes.Query() as query:
            rows = run_query(context, query)
        case nodes.Subscribe() as subscribe:
            rows = run_subscribe(context, subscribe)
        case nodes.Modify() as modify:
            found = run_modify(context, modify)
            if not hasattr(found, "batches"):
                raise SqlError("0A000", "COPY query must have a RETURNING clause")
            rows = found  # type: ignore[assignment]
        case _:
            raise unsupported("COPY of this statement")
    return CopyOut(_Copied(rows), copy_format(statement.options, rows.columns))


class _Copied:
    """Rows whose tag says COPY."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.columns = rows.columns
        self.tables: Callable[[], Iterator[pa.Table]] | None = getattr(rows, "tables", None)

    def batches(self) -> Iterator[Sequence[Row]]:
        return self._rows.batches()

    def tag(self, rows: int) -> str:
        return f"COPY {rows}"

    def close(self) -> None:
        self._rows.close()


def copy_format(options: Mapping[str, str], columns: Sequence[Column]) -> CopyFormat:
    unknown = set(options) - set(_OPTIONS)
    if unknown:
        hint = did_you_mean(min(unknown), _OPTIONS)
        raise SqlError("42601", f'option "{min(unknown)}" not recognized', hint=hint)
    encoding = options.get("encoding", "utf8").lower().replace("-", "")
    if encoding not in ("utf8", "unicode"):
        raise unsupported(f'the encoding "{encoding}"', hint="data are UTF8")
    kind = options.get("format", "text").lower()
    if kind not in _FORMATS:
        hint = "text, csv and binary are supported"
        raise SqlError(INVALID_PARAMETER_VALUE, f'COPY format "{kind}" not recognized', hint=hint)
    return _FORMATS[kind](options, columns)


def _text(options: Mapping[str, str], columns: Sequence[Column]) -> CopyFormat:
    if {"quote", "escape", "force_quote"} & set(options):
        raise SqlError("0A000", "QUOTE, ESCAPE and FORCE_QUOTE need CSV mode")
    return _lines(CopyFormat(), options)


def _csv(options: Mapping[str, str], columns: Sequence[Column]) -> CopyFormat:
    quote = _one(options.get("quote", '"'), "quote")
    return replace(
        _lines(CopyFormat("csv", ",", ""), options),
        quote=quote,
        escape=_one(options.get("escape", quote), "escape"),
        force_quote=_forced(options.get("force_quote"), columns),
    )


def _lines(form: CopyFormat, options: Mapping[str, str]) -> CopyFormat:
    """A format of lines, with the options that all of these have."""
    header = boolean(options.get("header") or "true", "header") if "header" in options else False
    delimiter = _one(options.get("delimiter", form.delimiter), "delimiter")
    return replace(form, delimiter=delimiter, null=options.get("null", form.null), header=header)


def _binary(options: Mapping[str, str], columns: Sequence[Column]) -> CopyFormat:
    refused = set(options) - {"format", "encoding"}
    if refused:
        name = min(refused)
        raise SqlError(
            "42601" if name in ("delimiter", "null") else "0A000", f"cannot specify {name.upper()} in BINARY mode"
        )
    return CopyFormat(kind="binary")


_FORMATS = {"text": _text, "csv": _csv, "binary": _binary}


def _one(text: str, name: str) -> str:
    if len(text) != 1 or text in "\r\n":
        raise SqlError(INVALID_PARAMETER_VALUE, f"COPY {name} must be a single one-byte character")
    return text


def _forced(text: str | None, columns: Sequence[Column]) -> tuple[int, ...]:
    if text is None:
        return ()
    names = [column.name for column in columns]
    wanted = names if text == "*" else text.split(",")
    missing = [name for name in wanted if name not in names]
    if missing:
        raise SqlError(UNDEFINED_COLUMN, f'column "{missing[0]}" does not exist')
    return tuple(names.index(name) for name in wanted)


def _places(item: Table, names: Sequence[str]) -> list[int]:
    if not names:
        return list(range(len(item.columns)))
    for index, name in enumerate(names):
        if name not in item.names:
            message = f'column "{name}" of relation "{item.name}" does not exist'
            raise SqlError(UNDEFINED_COLUMN, message, hint=did_you_mean(name, item.names))
        if name in names[:index]:
            raise SqlError("42701", f'column "{name}" specified more than once')
    return [item.names.index(name) for name in names]


def _unlimited(sql_type: SqlType) -> SqlType:
    """The type without a length: text that is too long is an error here, and not cut while it is read."""
    if sql_type.element is not None:
        return replace(sql_type, element=_unlimited(sql_type.element))
    return replace(sql_type, length=None)


def _has_length(sql_type: SqlType) -> bool:
    return sql_type.length is not None or (sql_type.element is not None and _has_length(sql_type.element))


def _fits(column: pa.ChunkedArray, sql_type: SqlType) -> bool:
    """Whether all texts of a column fit as they are."""
    if sql_type.kind is not Kind.VARCHAR or sql_type.length is None:
        return False
    longest = pc.max(pc.utf8_length(column)).as_py()
    return longest is None or longest <= sql_type.length


def _fitted(value: Any, sql_type: SqlType) -> Any:
    """A value as it is stored: text must fit, and seconds are rounded."""
    if value is None:
        return None
    if sql_type.element is not None:
        return [_fitted(each, sql_type.element) for each in value]
    return rounded(value, sql_type) if sql_type.kind in PRECISE else limited(str(value), sql_type, explicit=False)


class CopyTarget:
    """COPY … FROM STDIN, waiting for its data."""

    def __init__(
        self, context: Context, item: Table, places: list[int], columns: tuple[Column, ...], format: CopyFormat
    ) -> None:
        self._context, self._item, self._places = context, item, places
        self.columns, self.format = columns, format

    def finish(self, rows: Iterable[Row | pa.Table]) -> str:
        """Store the rows in the transaction that is under way."""
        context, item = self._context, self._item
        try:
            with as_sql_errors():
                defaults = self._bound_defaults()
                timed = defaults is not None and defaults.needs_time
                alone = timed and context.session.alone
                time = context.coordinator.timeline.upper if alone or defaults is None else context.time_for(defaults)
                table = self._table(rows, self._defaults(defaults, time))
                check_table(item, table)
                if alone and defaults is not None:
                    self._write_stamped(table, defaults)
                else:
                    context.transaction.write(item, table)
        except BaseException:
            context.session.fail()
            raise
        return f"COPY {pc.sum(table.column(DIFF)).as_py() or 0}"

    def _table(self, rows: Iterable[Row | pa.Table], template: Row) -> pa.Table:
        """All rows as changes, with defaults in the columns that were not named."""
        types = self._item.types
        read_as = [types[place] for place in self._places]
        limited_at = [index for index, each in enumerate(read_as) if _has_length(each)]
        blocks: list[pa.Table] = []
        single: list[tuple[Row, int]] = []
        for each in rows:
            if not isinstance(each, pa.Table):
                single.append((each, 1))
            elif all(_fits(each.column(index), read_as[index]) for index in limited_at):
                blocks.append(self._full_block(each, template))
            else:
                single += rows_from_arrow(each, read_as).items()
        full = ((row, count) for values, count in single for row in self._full_rows([values], template))
        return pa.concat_tables([changes(rows_of(full, types), types), *blocks])

    def _full_block(self, block: pa.Table, template: Row) -> pa.Table:
        one, size = changes({template: 1}, self._item.types), block.num_rows
        nowhere = pa.array(np.zeros(size, dtype=np.int64))
        columns = [
            block.column(self._places.index(place)) if place in self._places else one.column(place).take(nowhere)
            for place in range(len(template))
        ]
        names = [f"c{place}" for place in range(len(template))]
        return pa.table([*columns, pa.array(np.ones(size, dtype=np.int64))], names=[*names, DIFF])

    def _full_rows(self, rows: Iterable[Row], template: Row) -> Iterator[Row]:
        """The rows with defaults in the columns that were not named, checked for length."""
        item, places = self._item, self._places
        checked = [(index, each) for index, each in enumerate(item.types) if _has_length(each)]
        for row in rows:
            values = list(template)
            for place, value in zip(places, row, strict=True):
                values[place] = value
            for index, each in checked:
                values[index] = _fitted(values[index], each)
            yield tuple(values)

    def _bound_defaults(self) -> BoundQuery | None:
        """What gives the columns that were not named their values, if there are any."""
        item, context = self._item, self._context
        if len(self._places) == len(item.columns):
            return None
        bound = context.coordinator.planner.default_row(context.around.catalog.full_name(item), context.around)
        return replace(bound, uses=bound.uses | {item.id})

    def _defaults(self, bound: BoundQuery | None, time: int) -> Row:
        if bound is None:
            return (None,) * len(self._item.columns)
        peeks, relation = self._context.coordinator.peeks, bound.plan.relation
        return next(iter(peeks.collection(relation, time, self._context.around)))

    def _write_stamped(self, table: pa.Table, defaults: BoundQuery) -> None:
        """Write rows that say at which time they are written: that is filled in once it is known."""
        context, item = self._context, self._item
        nowhere = pa.array(np.zeros(table.num_rows, dtype=np.int64))

        def rows_at(time: int) -> dict[GlobalId, pa.Table]:
            (row,) = self._full_rows([(None,) * len(self._places)], self._defaults(defaults, time))
            one, stamped = changes({row: 1}, item.types), table
            for place in set(range(len(item.columns))) - set(self._places):
                column = one.column(place).combine_chunks().take(nowhere)
                stamped = stamped.set_column(place, stamped.schema.field(place), column)
            return {item.id: stamped}

        interrupts = context.session.interrupts
        context.coordinator.timeline.write(rows_at, {item.id: item.writer or ""}, interrupts.turn())
