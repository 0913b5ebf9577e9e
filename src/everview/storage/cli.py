"""`everview shard`: look inside an environment from the shell, even one that is running."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from everview.storage.batch import UNCOMPACTED
from everview.storage.errors import Corruption, InvalidUsage, UnknownId
from everview.storage.observer import Observer, Reading, ShardSnapshot
from everview.storage.rendering import Cell, Count, Printer, Size, Time, duration_text, utc_text
from everview.storage.row_text import FirstRows, csv_header, csv_lines, json_lines, row_values, value_text
from everview.storage.shard import FOREVER, READ, Held, from_frontier
from everview.storage.stores import BLOB_VARIABLE, CONSENSUS_VARIABLE
from everview.timely.consolidate import DIFF, TIME
from everview.timely.lattice import TIME_MAX

DATA = Path("everview-data")
LIMIT = 100
TABLE_ROWS_MAX = 10_000  # a table is laid out in memory
BATCHES_SHOWN = 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

app = typer.Typer(
    name="shard",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Look inside an environment, even one that another process has open. Nothing is changed.",
)


class Format(StrEnum):
    table = "table"
    csv = "csv"
    json = "json"


def _time(text: str) -> int:
    try:
        result = int(text)
    except ValueError:
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a number of milliseconds nor a date and time") from None
        result = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - EPOCH) // timedelta(milliseconds=1)
    if not 0 <= result <= TIME_MAX:
        raise typer.BadParameter(f"{text} is not a time: times lie between 0 and {TIME_MAX}")
    return result


def _time_option(name: str, help: str) -> Any:
    return typer.Option(name, metavar="TIME", parser=_time, help=help)


Id = Annotated[str, typer.Argument(metavar="ID", help="The collection, as `shard ls` names it.")]
Data = Annotated[
    Path, typer.Option("--data", metavar="DIR", envvar="EVERVIEW_DATA", help="The folder of the environment.")
]
Consensus = Annotated[
    str | None,
    typer.Option(
        "--consensus",
        metavar="URL",
        envvar=CONSENSUS_VARIABLE,
        help="The store of its metadata, if not in the folder: `postgresql://…`.",
    ),
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over",
        help="With --consensus: if another process has the environment open, fence it off instead of giving up.",
    ),
]
Blob = Annotated[
    str | None,
    typer.Option(
        "--blob",
        metavar="URL",
        envvar=BLOB_VARIABLE,
        help="The store of its data, if not in the folder: `s3://…`, `gs://…`, `az://…` or `file://…`.",
    ),
]


@app.command("ls")
def list_collections(data: Data = DATA, consensus: Consensus = None, blob: Blob = None) -> None:
    """List the collections, with their frontiers and sizes.

    Contents can be read at every time from *since* to just before *upper*. All frontiers are of one instant. *updates*
    counts stored updates: there are more of them than rows if rows have changed.

    **Examples**

    * `everview shard ls --data DIR`

    * `everview shard ls --consensus postgresql://host/database --blob s3://bucket/prefix`
    """
    damage: Corruption | None = None
    rows: list[list[Cell]] = []
    with Observer.open(data, consensus, blob) as observer:
        for id, frontiers in observer.collections().items():
            sizes: list[Cell] = [None, None]
            try:
                batches = observer.look(id).shard.batches.values()
                sizes = [Count(sum(b.rows for b in batches)), Size(sum(b.size_bytes for b in batches))]
            except UnknownId:
                pass  # dropped just now
            except Corruption as error:
                damage, sizes[0] = error, "damaged"
            rows.append([id, *(Time(from_frontier(f)) for f in (frontiers.since, frontiers.upper)), *sizes])
    printer = Printer()
    numbers = ["since", "upper", "updates", "size"]
    printer.table(["collection", *numbers], rows, right=numbers)
    if not rows:
        printer.note("no collections")
    if damage is not None:
        raise damage


@app.command("show")
def show(
    id: Id,
    *,
    all: Annotated[bool, typer.Option("--all", help="Show every batch and its parts.")] = False,
    data: Data = DATA,
    consensus: Consensus = None,
    blob: Blob = None,
) -> None:
    """Describe one collection: its frontiers, columns, capabilities and batches.

    **Examples**

    * `everview shard show u1 --data DIR`

    * `everview shard show u1 --data DIR --all`: also the names of its Parquet files
    """
    with Observer.open(data, consensus, blob) as observer:
        view = observer.look(id)
    printer = Printer()
    printer.title(f"collection {id}")
    _show_summary(printer, view)
    _show_columns(printer, view)
    _show_capabilities(printer, view)
    _show_batches(printer, view, all)


def _show_summary(printer: Printer, view: ShardSnapshot) -> None:
    batches = view.shard.batches.values()
    fields: list[tuple[str, Cell]] = [
        ("since", Time(view.since)),
        ("upper", Time(view.upper)),
        ("updates", Count(sum(batch.rows for batch in batches))),
        ("retractions", Count(sum(batch.retractions for batch in batches))),
        ("size", Size(sum(batch.size_bytes for batch in batches))),
        ("batches", Count(len(batches))),
        ("parts", Count(sum(len(batch.parts) for batch in batches))),
    ]
    printer.fields(fields)


def _show_columns(printer: Printer, view: ShardSnapshot) -> None:
    spec = view.shard.spec
    rows: list[list[Cell]] = []
    for column in spec.schema:
        key = str(spec.key.index(column.name) + 1) if column.name in spec.key else ""
        rows.append([value_text(column.name), str(column.type), "yes" if column.nullable else "no", key])
    printer.table(["column", "type", "NULLs", "key"], rows)


def _show_capabilities(printer: Printer, view: ShardSnapshot) -> None:
    rows = [_capability(token, held, view) for token, held in view.shard.held.items()]
    printer.table(["capability", "kind", "frontier", "follows", "lease"], rows, right=["frontier"])
    if not rows:
        printer.note("no capabilities: the frontiers stay where they are")


def _capability(token: str, held: Held, view: ShardSnapshot) -> list[Cell]:
    follows = lease = None
    if held.clock is not None:
        lag = "for ever" if held.lag_ms > TIME_MAX // 2 else duration_text(held.lag_ms)
        follows = f"clock {held.clock}" + (f", {lag} behind" if held.lag_ms else "")
    if held.lease_ms is not None and held.deadline_ms is not None:
        left_ms = held.deadline_ms - time.time_ns() // 1_000_000
        state = f"{duration_text(left_ms)} left" if left_ms >= 0 else f"expired {duration_text(-left_ms)} ago"
        lease = f"{duration_text(held.lease_ms)}, {state}"
    return [token, "read" if held.kind == READ else "write", Time(held.at(view.clocks), brief=True), follows, lease]


def _show_batches(printer: Printer, view: ShardSnapshot, all: bool) -> None:
    batches = list(view.shard.batches.values())
    shown = batches if all else batches[-BATCHES_SHOWN:]
    rows: list[list[Cell]] = []
    for batch in shown:
        since = None if batch.since == UNCOMPACTED else Time(batch.since, brief=True)
        times = [Time(batch.lower, brief=True), Time(batch.upper, brief=True), since]
        stored = "inline" if batch.inline else f"{len(batch.parts)} part{'s' * (len(batch.parts) > 1)}"
        rows.append([str(batch.number), *times, Count(batch.rows), Size(batch.size_bytes), stored])
        for part in batch.parts if all else ():
            rows.append(["", "", "", "", Count(part.rows), Size(part.size_bytes), part.key])
    numbers = ["batch", "lower", "upper", "since", "updates", "size"]
    printer.table([*numbers, "stored"], rows, right=numbers)
    if len(shown) < len(batches):
        printer.note(f"… {len(batches) - len(shown):,} older batches; --all shows them")


@app.command("read")
def read(
    id: Id,
    *,
    as_of: Annotated[int | None, _time_option("--as-of", "The contents at this time; by default the last one.")] = None,
    changes_from: Annotated[int | None, _time_option("--changes-from", "The changes from this time on.")] = None,
    changes_to: Annotated[int | None, _time_option("--changes-to", "The changes before this time.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="The greatest number of rows; 0 for all.")
    ] = LIMIT,
    format: Annotated[Format, typer.Option("--format", help="The format of the rows.")] = Format.table,
    data: Data = DATA,
    consensus: Consensus = None,
    blob: Blob = None,
) -> None:
    """Read the contents of a collection at a time, or its changes.

    A TIME is a number of milliseconds since 1970, or a date and time such as 2030-01-31T12:00:00Z. Contents come in the
    order of storage. Changes come in the order of time; with `--limit 0`, in the order of storage. A table has a
    column `_diff` if a row occurs more than once; CSV and JSON (one object a line) always have it. Into a pipe, a table
    is tab-separated.

    **Examples**

    * `everview shard read u1 --data DIR`: the first rows of its latest contents

    * `everview shard read u1 --data DIR --as-of 1893456000000 --format csv --limit 0 > u1.csv`

    * `everview shard read u1 --data DIR --changes-from 2030-01-31T12:00:00Z`
    """
    if changes_from is None and changes_to is not None:
        raise InvalidUsage("--changes-to needs --changes-from", hint="say from when on")
    if changes_from is not None and as_of is not None:
        raise InvalidUsage("--as-of reads contents, --changes-from changes", hint="leave one of them out")
    if changes_from is not None and changes_to is not None and changes_to < changes_from:
        raise InvalidUsage(f"--changes-to {changes_to} is before --changes-from {changes_from}")
    if format is Format.table and not 0 < limit <= TABLE_ROWS_MAX:
        hint = "use --format csv or --format json for any number"
        raise InvalidUsage(f"a table shows at most {TABLE_ROWS_MAX} rows", hint=hint)
    with Observer.open(data, consensus, blob) as observer:
        if changes_from is None:
            reading = observer.contents(id, as_of)
        else:
            reading = observer.changes(id, changes_from, changes_to)
        with reading:
            _print_rows(reading, FirstRows(reading, limit, by_time=changes_from is not None), format)


def _print_rows(reading: Reading, rows: FirstRows, format: Format) -> None:
    printer = Printer()
    if format is Format.table:
        _print_table(printer, reading, rows)
    elif format is Format.csv:
        print(csv_header(reading.names))
        for table in rows:
            print("\n".join(csv_lines(table)))
    else:
        for table in rows:
            print("\n".join(json_lines(table)))
    if rows.left_out:
        number = f"{rows.left_out:,}" if rows.counted else f"up to {rows.left_out:,}"
        printer.note(f"… {number} more row{'s' * (rows.left_out != 1)}; --limit says how many to show")


def _print_table(printer: Printer, reading: Reading, first: FirstRows) -> None:
    names, rows = reading.names, [row for table in first for row in row_values(table)]
    low, high = reading.time_range
    id, schema = reading.snapshot.shard.id, reading.snapshot.shard.spec.schema
    right = [TIME, DIFF, *(c.name for c in schema if pa.types.is_integer(c.type) or pa.types.is_floating(c.type))]
    if names[0] == TIME:
        printer.title(f"changes of {id} at times from {low} " + ("on" if high == FOREVER else f"to before {high}"))
        if printer.pretty and any(utc_text(row[0]) for row in rows):
            names, rows = ["UTC", *names], [(utc_text(row[0]), *row) for row in rows]
    else:
        utc = utc_text(high - 1)
        printer.title(f"{id} as of {high - 1}" + (f" ({utc})" if utc else ""))
        if all(row[0] == 1 for row in rows):
            names, rows = names[1:], [row[1:] for row in rows]
    printer.table([value_text(name) or "" for name in names], [list(map(value_text, row)) for row in rows], right=right)
    if not rows:
        printer.note("no rows")
