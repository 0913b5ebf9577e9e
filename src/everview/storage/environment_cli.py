"""`everview env`: make, check, copy, back up and restore environments, and let a standby take over."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from everview.storage.blob.contract import Blob as BlobStore
from everview.storage.cli import DATA, Blob, Consensus, Data
from everview.storage.codec import BEAT, EPOCH, FORMAT
from everview.storage.consensus.contract import Consensus as ConsensusStore
from everview.storage.consensus.contract import entry_at
from everview.storage.copying import Copied, Progress, copy_environment, parts_of
from everview.storage.environment import Environment
from everview.storage.errors import BlobMissing, Corruption, InvalidUsage
from everview.storage.opening import check_format, ids, open_stores, take_epoch
from everview.storage.parts import check_part
from everview.storage.process_identity import has_ended, process_text
from everview.storage.rendering import Cell, Count, Printer, Size, size_text
from everview.storage.sealed import SealedConsensus
from everview.storage.standby import PROMOTE_S_MAX, promote
from everview.storage.stores import IN_FOLDER, StoreAddresses
from everview.storage.urls import without_secrets

SHOWN_MAX = 20
Stores = tuple[ConsensusStore, BlobStore]

app = typer.Typer(
    name="env",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make, check, copy, back up and restore environments, and let a standby take over.",
)


ToData = Annotated[Path | None, typer.Option("--to-data", metavar="DIR", help="The folder to copy to.")]
ToConsensus = Annotated[
    str | None, typer.Option("--to-consensus", metavar="URL", help="The store to copy the metadata to.")
]
ToBlob = Annotated[str | None, typer.Option("--to-blob", metavar="URL", help="The store to copy the data to.")]


@app.command("init")
def init(data: Data = DATA, consensus: Consensus = None, blob: Blob = None) -> None:
    """Make an environment, or say that there is one. `serve` and the others make one by themselves.

    **Examples**

    * `everview env init --consensus postgresql://host/database --blob s3://bucket/prefix`
    """
    addresses = StoreAddresses(consensus, blob)
    with _opened(data, addresses) as (metadata, _):
        there = EPOCH in metadata.get([EPOCH])
    if there:
        typer.echo(f"There is an environment {_place(data, addresses)} already.")
        return
    with TemporaryDirectory(prefix="everview-init-") as scratch:
        stores = open_stores(data, consensus, blob)
        Environment(*stores, Path(scratch), background=False, shared=addresses.shared).close()
    typer.echo(f"Made an environment {_place(data, addresses)}.")


@app.command("check")
def check(
    *,
    full: Annotated[bool, typer.Option("--full", help="Read every object and compare its checksum.")] = False,
    data: Data = DATA,
    consensus: Consensus = None,
    blob: Blob = None,
) -> None:
    """Check that all metadata are sound and all objects are there. Changes nothing; a server may be running.

    The exit code is 1 if anything is missing or damaged.

    **Examples**

    * `everview env check --data DIR`

    * `everview env check --full --consensus postgresql://host/database --blob s3://bucket/prefix`
    """
    with _opened(data, StoreAddresses(consensus, blob), read_only=True) as (metadata, objects):
        found = _Findings.of(SealedConsensus(metadata), objects, full)
    printer = Printer()
    printer.fields(found.fields)
    if found.problems:
        printer.table(["problem"], [[each] for each in found.problems[:SHOWN_MAX]])
        more = len(found.problems) - SHOWN_MAX
        printer.note(f"{more} more" if more > 0 else "restore what is damaged from a backup: everview env restore")
        raise typer.Exit(1)


@app.command("copy")
def copy(
    *,
    data: Data = DATA,
    consensus: Consensus = None,
    blob: Blob = None,
    to_data: ToData = None,
    to_consensus: ToConsensus = None,
    to_blob: ToBlob = None,
) -> None:
    """Copy an environment to other stores, while no server has it open. The source stays as it is.

    The target must be empty. If the copy is interrupted, the same command goes on where it was.

    **Examples**

    * `everview env copy --data DIR --to-consensus postgresql://host/database --to-blob s3://bucket/prefix`
    """
    target = _chosen_target(to_data, to_consensus, to_blob)
    with _opened(data, StoreAddresses(consensus, blob)) as stores:
        entry = entry_at(SealedConsensus(stores[0]), EPOCH)
        owner = {} if entry is None else json.loads(entry.value)
        if entry is not None and not owner.get("closed") and not has_ended(owner):
            raise InvalidUsage(
                f"{process_text(owner)} has the environment open",
                hint="stop it first, or copy the present state beside it with: everview env backup",
            )
        if entry is not None:
            take_epoch(SealedConsensus(stores[0]))  # whoever was thought to have ended can write nothing from here on
        copied = _copied(stores, target)
    typer.echo(f"Copied {copied}.")


@app.command("backup")
def backup(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="An empty folder for the backup; created if missing.")],
    *,
    data: Data = DATA,
    consensus: Consensus = None,
    blob: Blob = None,
) -> None:
    """Back an environment up into a folder, as it is at one instant; a server may be running.

    Frontiers, history, definitions and the checkpoints of sinks are included. The folder is an environment that
    `everview shard` and `everview env check` can look at. Keep it from others: it has all data and passwords.

    **Examples**

    * `everview env backup /backups/2026-11-19 --data DIR`

    * `everview env backup DIR --consensus postgresql://host/database --blob s3://bucket/prefix`
    """
    with _opened(data, StoreAddresses(consensus, blob), read_only=True) as stores:
        copied = _copied(stores, (to, IN_FOLDER))
    typer.echo(f"Backed up {copied}.")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the backup.")],
    *,
    data: Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The folder to restore to.")] = None,
    consensus: Consensus = None,
    blob: Blob = None,
) -> None:
    """Restore a backup into an empty folder or empty stores.

    What was written after the backup is missing. A sink whose destination is ahead of the backup says so, and
    `ALTER SINK … BACKFILL` delivers everything anew.

    **Examples**

    * `everview env restore /backups/2026-11-19 --data DIR`

    * `everview env restore DIR --consensus postgresql://host/database --blob s3://bucket/prefix`
    """
    target = _chosen_target(data, consensus, blob, prefix="--")
    with _opened(source, IN_FOLDER, read_only=True) as stores:
        copied = _copied(stores, target)
    typer.echo(f"Restored {copied}.")


@app.command("promote")
def promote_standby(
    *,
    wait_s: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for a standby.")
    ] = PROMOTE_S_MAX,
    data: Data = DATA,
    consensus: Consensus = None,
    blob: Blob = None,
) -> None:
    """Let a server that runs with `--standby` take over now, and say which one did.

    The present server stops answering at once and ends. Nothing that it acknowledged is lost.

    **Examples**

    * `everview env promote --consensus postgresql://host/database`
    """
    with _opened(data, StoreAddresses(consensus, blob)) as (metadata, _):
        typer.echo(f"{promote(metadata, wait_s=wait_s)} has taken over.")


class _Findings:
    """What a check found."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, Cell]] = []
        self.problems: list[str] = []

    @classmethod
    def of(cls, metadata: ConsensusStore, blob: BlobStore, full: bool) -> _Findings:
        check_format(metadata)
        entries = dict(metadata.scan(""))
        if EPOCH not in entries:
            raise InvalidUsage("there is no environment here", hint="name its folder with --data, or its stores")
        found = cls()
        for key, entry in list(entries.items()):
            try:
                _ = entry.value
            except Corruption as error:
                found.problems.append(error.message)
                del entries[key]
        parts = []
        for key in [key for key in entries if key.startswith("run/")]:
            try:
                parts += list(parts_of({key: entries[key]}))
            except Corruption as error:
                found.problems.append(error.message)
        sizes = {info.key: info.size_bytes for info in blob.list("parts/")}
        with _bar("checking", shown=full) as report:
            for number, part in enumerate(parts, 1):
                if part.key not in sizes:
                    found.problems.append(f"object {part.key} is missing")
                elif full:
                    try:
                        with blob.open(part.key) as file:
                            check_part(file, part, f"object {part.key}")
                    except (Corruption, BlobMissing) as error:
                        found.problems.append(error.message)
                elif sizes[part.key] != part.size_bytes:
                    found.problems.append(f"object {part.key} has {sizes[part.key]} bytes, not {part.size_bytes}")
                report(Progress(number, len(parts), number, len(parts)))
        owner = json.loads(entries[EPOCH].value) if EPOCH in entries else {}
        found.fields = [
            ("format", entries[FORMAT].value.decode()),
            ("owner", _state_of(owner, BEAT in entries)),
            ("collections", Count(len(ids(metadata)))),
            ("entries", Count(len(entries))),
            ("objects", Count(len(parts))),
            ("their size", Size(sum(part.size_bytes for part in parts))),
            ("problems", Count(len(found.problems))),
        ]
        return found


def _state_of(owner: dict[str, Any], beats: bool) -> str:
    who = process_text(owner)
    if owner.get("closed"):
        return f"none; {who} has closed it"
    if has_ended(owner):
        return f"none; {who} has ended"
    return who + ("" if beats else ", if it still runs")


def _place(data: Path, addresses: StoreAddresses) -> str:
    metadata = without_secrets(addresses.consensus) if addresses.consensus else data
    objects = without_secrets(addresses.blob) if addresses.blob else data
    return f"in {data}" if metadata is objects else f"with its metadata at {metadata} and its data at {objects}"


def _chosen_target(
    data: Path | None, consensus: str | None, blob: str | None, prefix: str = "--to-"
) -> tuple[Path, StoreAddresses]:
    if data is None and (consensus is None or blob is None):
        raise InvalidUsage(
            "no target is named", hint=f"give {prefix}data DIR, or both {prefix}consensus URL and {prefix}blob URL"
        )
    return data or Path(), StoreAddresses(consensus, blob)


def _copied(source: Stores, target: tuple[Path, StoreAddresses]) -> str:
    folder, addresses = target
    with TemporaryDirectory(prefix="everview-copy-") as scratch:
        local = Path(scratch) if addresses.consensus and addresses.blob else folder
        with _opened(local, addresses, as_target=True) as stores, _bar("copying") as report:
            copied: Copied = copy_environment(source, stores, report)
    where = _place(folder, addresses)
    size = size_text(copied.size_bytes)
    return f"{copied.entries:,} entries and {copied.objects:,} objects of {size}: the environment is {where}"


@contextmanager
def _opened(
    data: Path, addresses: StoreAddresses, *, read_only: bool = False, as_target: bool = False
) -> Iterator[Stores]:
    stores = open_stores(data, addresses.consensus, addresses.blob, read_only=read_only, as_target=as_target)
    try:
        yield stores
    finally:
        for store in stores:
            store.close()


@contextmanager
def _bar(what: str, shown: bool = True) -> Iterator[Callable[[Progress], None]]:
    """A progress bar, where standard error is a terminal."""
    if not shown or not sys.stderr.isatty():
        yield lambda progress: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), DownloadColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda now: bars.update(task, completed=now.bytes, total=now.bytes_total)
