"""`everview cdc`: reading, checking and mangling change streams from the shell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from everview.cdc.codec.values import JsonColumn
from everview.cdc.compaction import Compacted, forget, merge
from everview.cdc.contract import Frontier, Progress, Update, Updates
from everview.cdc.errors import CdcError, InvalidUse
from everview.cdc.files import Folder
from everview.cdc.inspect import JUDGED_MAX, Stats, Stream, TopicStream, examine, judged, mangle_copy, open_stream
from everview.cdc.reader import Reader
from everview.cdc.rows import Row
from everview.cdc.schema import StreamSchema, stream_schema
from everview.cdc.times import bound_of, to_wire
from everview.storage.rendering import Cell, Count, Printer, Size, utc_text
from everview.storage.rendering import Time as TimeCell
from everview.storage.row_text import value_text
from everview.storage.shard import FOREVER
from everview.timely.lattice import Time

LIMIT = 100
_UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(
    r"(\d+) ?(ms|s|min|h|d|w)(?:(?<=s)ec(?:ond)?s?|(?<=min)(?:ute)?s?|(?<=h)(?:ou)?rs?|(?<=d)ays?|(?<=w)eeks?)?"
)
FLAWS_SHOWN = 20
NOT_JUDGED = (
    f"with more than {JUDGED_MAX:,} updates, nobody looked for rows that occur fewer than zero times or too often;"
    " 'everview cdc verify' does"
)

app = typer.Typer(
    name="cdc",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Read, check, compact and mangle change streams in folders, object stores and topics.",
)


class Format(StrEnum):
    table = "table"
    json = "json"


class Files(StrEnum):
    jsonl = "jsonl"
    avro = "avro"


Dir = Annotated[
    str, typer.Argument(metavar="DIR", help="A folder, or a URL such as s3://bucket/prefix or kafka://host:9092/topic.")
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE", help="The schema, if the files do not say it.")
]


def _schema(file: Path | None) -> StreamSchema | None:
    if file is None:
        return None
    try:
        described = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise InvalidUse(f"no schema can be read from {file}", detail=str(error)) from error
    return stream_schema(described["schema"] if isinstance(described, dict) and "schema" in described else described)


@app.command("cat")
def cat(
    dir: Dir,
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Updates at most; 0 for all.")] = LIMIT,
    format: Annotated[Format, typer.Option("--format", help="How to write them.")] = Format.table,
    messages: Annotated[bool, typer.Option("--messages", help="The messages as they are, file by file.")] = False,
    schema: SchemaFile = None,
) -> None:
    """Show the history that a stream tells: every update at closed times, once, in the order of time.

    What is open yet is not shown, nor are times at which a row would occur fewer than zero times; `everview cdc verify`
    says more of both. Into a pipe, a table is tab-separated.

    **Examples**

    * `everview cdc cat stream`: the first updates

    * `everview cdc cat stream --format json --limit 0 > history.jsonl`

    * `everview cdc cat stream --messages`: which file says what, in what order and how often
    """
    stream = open_stream(dir, _schema(schema))
    printer = Printer()
    if messages:
        _show_messages(printer, stream, limit or None)
        return
    reader: Reader[Row] = Reader(stream.start)
    updates, offences = judged(stream.closed(reader))
    shown = islice(updates, limit or None)
    if format is Format.json:
        for line in _json_lines(shown, stream.schema):
            print(line)
    else:
        if not limit:
            raise InvalidUse("a table of all updates", hint="use --format json, or say how many with --limit")
        _show_updates(printer, stream, list(shown))
    left = sum(1 for _ in updates)
    if left:
        printer.note(f"… {left:,} more; --limit says how many to show")
    if offences is None:
        printer.note(NOT_JUDGED)
    for each in [*(offences or ()), *reader.stalls()][:1]:
        printer.note(f"time {each.time} is open: {each.reason}; 'everview cdc verify' says more")


def _show_updates(printer: Printer, stream: Stream, updates: list[Update[Row]]) -> None:
    names = [value_text(name) for name in stream.schema.data.names]
    rows: list[list[Cell]] = []
    utc = printer.pretty and any(isinstance(time, int) and utc_text(time) for _, time, _ in updates)
    for row, time, diff in updates:
        when: list[Cell] = [utc_text(time) if isinstance(time, int) else None] if utc else []
        rows.append([*when, _time_text(time), f"{diff:+d}", *(value_text(_plain(value)) for value in row)])
    head = [*(["UTC"] if utc else []), "time", "diff"]
    printer.table([*head, *(name or "" for name in names)], rows, right=["time", "diff"])
    if not rows:
        printer.note("no closed updates")


def _json_lines(updates: Iterator[Update[Row]], schema: StreamSchema) -> Iterator[str]:
    columns = [JsonColumn(field) for field in schema.data]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for row, time, diff in updates:
        data = {each.name: each.encode([value])[0] for each, value in zip(columns, row, strict=True)}
        yield encode({"data": data, "time": to_wire(time), "diff": diff})


def _show_messages(printer: Printer, stream: Stream, limit: int | None) -> None:
    rows: list[list[Cell]] = []
    items = stream.items()
    for file, item in islice(items, limit):
        match item:
            case Updates():
                times = list(dict.fromkeys(_time_text(time) for _, time, _ in item.updates))
                some = ", ".join(times[:5]) + (" …" if len(times) > 5 else "")
                rows.append([file, "updates", Count(len(item.updates)), f"at {some}" if times else ""])
            case Progress():
                counts = ", ".join(f"{_time_text(time)}: {number}" for time, number in item.counts[:5])
                more = " …" if len(item.counts) > 5 else ""
                text = f"[{_frontier_text(item.lower)}, {_frontier_text(item.upper)}) {counts}{more}"
                rows.append([file, "progress", Count(len(item.counts)), text.rstrip()])
            case _:
                rows.append(
                    [file, "undecodable", Size(len(item.raw)), value_text(item.raw[:40].decode(errors="replace"))]
                )
    printer.table(["file", "message", "size", "about"], rows, right=["size"])
    if left := sum(1 for _ in items):
        printer.note(f"… {left:,} more messages; --limit says how many to show")


@app.command("verify")
def verify(dir: Dir, *, schema: SchemaFile = None) -> None:
    """Check that a stream is well formed and complete: every record decodes, nothing is missing or contradicts itself.

    The whole stream is held in memory while it is checked. Leaves with 1 if anything is wrong.

    **Examples**

    * `everview cdc verify stream`

    * `everview cdc verify "s3://bucket/prefix?region=eu-central-1" && echo sound`
    """
    stats = examine(open_stream(dir, _schema(schema)), thoroughly=True)
    printer = Printer()
    _show_findings(printer, stats)
    if not stats.sound:
        numbers = {
            "undecodable records": len(stats.flaws),
            "files cut off": len(stats.partial),
            "stalls": len(stats.stalls),
            "open updates": stats.open_updates,
        }
        found = ", ".join(f"{what}: {number:,}" for what, number in numbers.items() if number)
        raise CdcError(f"the stream in {dir} is not sound", detail=found)
    printer.note(f"sound: {stats.distinct:,} updates at {stats.times:,} times, up to {_frontier_text(stats.frontier)}")


def _show_findings(printer: Printer, stats: Stats) -> None:
    flaws = [*stats.flaws, *stats.partial]
    if flaws:
        rows: list[list[Cell]] = [[flaw.file, str(flaw.position), flaw.reason] for flaw in flaws[:FLAWS_SHOWN]]
        printer.title("records that cannot be decoded")
        printer.table(["file", "position", "reason"], rows, right=["position"])
        if len(flaws) > FLAWS_SHOWN:
            printer.note(f"… {len(flaws) - FLAWS_SHOWN:,} more")
    if stats.stalls:
        rows = []
        for stall in stats.stalls[:FLAWS_SHOWN]:
            expected, arrived = (None if n is None else Count(n) for n in (stall.expected, stall.arrived))
            rows.append([_time_text(stall.time), stall.reason, expected, arrived, value_text(stall.detail)])
        printer.title("times that are open")
        printer.table(["time", "reason", "expected", "arrived", "detail"], rows, right=["time", "expected", "arrived"])
        if len(stats.stalls) > FLAWS_SHOWN:
            printer.note(f"… {len(stats.stalls) - FLAWS_SHOWN:,} more")
    elif stats.open_updates:
        printer.note(f"no progress statement reaches {stats.open_updates:,} updates")


@app.command("stats")
def stats(dir: Dir, *, schema: SchemaFile = None) -> None:
    """Say how much is in a stream, how far it reaches and what is open.

    **Examples**

    * `everview cdc stats stream`
    """
    stream = open_stream(dir, _schema(schema))
    found = examine(stream)
    printer = Printer()
    repeated = found.updates - found.distinct
    fields: list[tuple[str, Cell]] = [
        ("files", Count(found.files)),
        ("size", Size(found.size_bytes)),
        ("messages", Count(found.messages)),
        ("progress statements", Count(found.statements)),
        ("updates", Count(found.distinct)),
        ("repeated updates", Count(repeated)),
        ("times with updates", Count(found.times)),
        ("first time", _time_cell(found.first)),
        ("last time", _time_cell(found.last)),
        ("closed before", _frontier_cell(found.frontier)),
        ("covered before", _frontier_cell(found.covered)),
        ("open updates", Count(found.open_updates)),
        ("statements waiting", Count(found.statements_waiting)),
        ("undecodable records", Count(len(found.flaws))),
        ("files cut off", Count(len(found.partial))),
    ]
    printer.fields(fields)
    columns: list[list[Cell]] = [
        [value_text(column.name), str(column.type), "yes" if column.nullable else "no"] for column in stream.schema.data
    ]
    printer.table(["column", "type", "NULLs"], columns)
    _show_findings(printer, found)
    if not found.judged:
        printer.note(NOT_JUDGED)


@app.command("compact")
def compact(
    dir: Dir,
    *,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="DURATION", help="Forget what is older, such as '7 days'.")
    ] = None,
    before: Annotated[
        int | None, typer.Option("--before", metavar="TIME", min=1, help="Forget the history before this time.")
    ] = None,
    schema: SchemaFile = None,
) -> None:
    """Write many small files as few larger ones; with a time, let the stream begin with its contents there.

    Readers notice nothing: the stream says the same at every moment, and those that are far behind take the contents
    over. Others may write the stream meanwhile. Files that no sink of Everview has written stay as they are.

    **Examples**

    * `everview cdc compact stream`: the same stream in fewer files

    * `everview cdc compact stream --keep '7 days'`: without what is older than a week
    """
    if keep is not None and before is not None:
        raise InvalidUse("--keep and --before both say what to forget", hint="give one of them")
    described = _schema(schema)
    stream = open_stream(dir, described)
    if isinstance(stream, TopicStream):
        raise InvalidUse("a topic is not compacted here", hint="what it keeps is a setting of the topic")
    folder, printer = Folder(dir), Printer()
    if keep is not None:
        before = _covered(stream) - _duration_ms(keep)
    done = Compacted()
    if before is not None:
        done = forget(folder, stream.schema, before)
        if done.base is not None:
            printer.note(f"the stream begins with its contents at {done.base}")
    merged = merge(folder, stream.schema, at_least=2)
    written, removed = done.written + merged.written, done.removed + merged.removed
    printer.note(f"wrote {written:,} files, removed {removed:,}")


def _covered(stream: Stream) -> int:
    reader: Reader[Row] = Reader(stream.start)
    last = 0
    for closed in stream.closed(reader):
        last = max([last, *(time for _, time, _ in closed.updates if isinstance(time, int))])
    frontier = bound_of(reader.frontier)
    return last + 1 if frontier is None else frontier


def _duration_ms(text: str) -> int:
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidUse(f'invalid duration: "{text}"', hint="such as '90 s', '12 hours' or '7 days'")
    return int(found[1]) * _UNITS_MS[found[2]]


@app.command("mangle")
def mangle(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The folder or URL of a stream.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="A new folder.")],
    *,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Where all randomness comes from.")] = 1,
    files: Annotated[Files, typer.Option("--files", help="How to write them.")] = Files.jsonl,
    schema: SchemaFile = None,
) -> None:
    """Make a mangled copy of a stream: repeated, reordered, rebatched, overlapping, with parts that come late.

    The copy says the same as the original, so every reader must read the same history from both.

    **Examples**

    * `everview cdc mangle stream mangled --seed 7`

    * `everview cdc verify mangled`
    """
    number = mangle_copy(open_stream(source, _schema(schema)), target, seed, f".{files.value}")
    Printer().note(f"wrote {number:,} files to {target}")


def _time_text(time: Time) -> str:
    return str(time) if isinstance(time, int) else json.dumps(to_wire(time))


def _time_cell(time: Time | None) -> Cell:
    return None if time is None else TimeCell(time) if isinstance(time, int) else _time_text(time)


def _frontier_text(frontier: Frontier) -> str:
    return ", ".join(map(_time_text, frontier)) or "∅"


def _frontier_cell(frontier: Frontier) -> Cell:
    if frontier.empty:
        return TimeCell(FOREVER)
    return _time_cell(frontier.elements[0]) if len(frontier) == 1 else _frontier_text(frontier)


def _plain(value: Any) -> Any:
    """Lists instead of tuples, for lists have a text form."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
