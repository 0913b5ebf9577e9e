"""`everview doctor`: is everything here that Everview needs, and what to do where it is not.

Each check is a function that yields findings. A failure that it did not foresee is a finding as well, so one broken
part hides no other. Nothing of an environment is changed, and nobody is fenced off: objects that are written to see
whether that is possible are removed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everview import __version__
from everview.console import HTTP_PORT, LOOPBACK, PG_PORT, spark_log
from everview.errors import EverviewError
from everview.serve.database import DatabaseServer, look_at
from everview.storage.blob.contract import Blob as BlobStore
from everview.storage.cli import Blob, Consensus
from everview.storage.errors import NoEnvironment
from everview.storage.stores import StoreAddresses, open_blob, open_consensus
from everview.storage.urls import without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHONS = ((3, 11), (3, 13))
FREE_BYTES_MIN = 1 << 30
SLOW_S = 0.2  # of one small request to a store: every commit is at least one
SKEW_S_MAX = 2.0
MEMORY_MIN = 2 << 30
NO_ENVIRONMENT = "there is no environment yet; it is made when it is opened"

State = Literal["ok", "note", "bad"]
_SIGNS: dict[State, str] = {"ok": "✓", "note": "!", "bad": "✗"}
_COLORS: dict[State, str] = {"ok": "green", "note": "yellow", "bad": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it is, and what to do if it is not as it should be."""

    subject: str
    state: State
    text: str
    hint: str | None = None


Check = Callable[[], Iterator[Finding]]


def doctor(
    *,
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", envvar="EVERVIEW_DATA", help="The folder of the environment.")
    ] = Path("everview-data"),
    consensus: Consensus = None,
    blob: Blob = None,
    spark: Annotated[
        str, typer.Option("--spark", metavar="ADDRESS", help="The Spark to start or connect to; '' leaves it out.")
    ] = "local[*]",
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="K=V", help="A setting of Spark; may be repeated.")
    ] = None,
) -> None:
    """Check Python, Java, packages, disk, ports, stores, clocks, and whether Spark reaches the data.

    Nothing is changed, and a server may be running. The exit code is 1 if something has to be mended.

    **Examples**

    * `everview doctor`

    * `everview doctor --consensus postgresql://host/database --blob s3://bucket/prefix --spark spark://host:7077`
    """
    from everview.serve.cli import parse_conf

    stores, settings = StoreAddresses(consensus, blob), parse_conf(conf or [])
    checks: dict[str, Check] = {
        "Python": _check_python,
        "packages": _check_packages,
        "machine": _check_machine,
        "folder": lambda: _check_folder(data),
        "ports": _check_ports,
        "metadata": lambda: _check_metadata(data, stores),
        "data": lambda: _check_objects(data, stores),
    }
    if spark:
        checks["Spark"] = lambda: _check_spark(data, stores, spark, settings)
    findings = [_shown(finding) for subject, check in checks.items() for finding in _found(subject, check)]
    bad = sum(finding.state == "bad" for finding in findings)
    if bad:
        typer.echo(f"{bad} of {len(findings)} have to be mended.")
        raise typer.Exit(1)
    typer.echo("Everything that is needed is here.")


def _found(subject: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check()
    except EverviewError as error:
        detail = f" ({' '.join(error.detail.split())})" if error.detail else ""
        yield Finding(subject, "bad", f"{error.message}{detail}", error.hint)
    except Exception as error:  # that a check fails is worth telling, and must not hide the others
        yield Finding(subject, "bad", f"{type(error).__name__}: {error}")


def _shown(finding: Finding) -> Finding:
    sign = typer.style(_SIGNS[finding.state], fg=_COLORS[finding.state])
    typer.echo(f"{sign} {finding.subject:<10} {finding.text}")
    if finding.hint is not None:
        typer.echo(f"{'':<13}{finding.hint}")
    return finding


def _check_python() -> Iterator[Finding]:
    from everview.compute.engine.java import JavaUnavailable, find_java

    here = sys.version_info[:2]
    text = f"{sys.version.split()[0]}, Everview {__version__}"
    if PYTHONS[0] <= here <= PYTHONS[1]:
        yield Finding("Python", "ok", text)
    else:
        yield Finding("Python", "bad", text, "use Python 3.11, 3.12 or 3.13: Everview is tried with those")
    try:
        java = find_java()
        yield Finding("Java", "ok", f"{java.major} in {java.home}")
    except JavaUnavailable as error:
        yield Finding("Java", "bad", f"{error.message} ({error.detail})", error.hint)


def _check_packages() -> Iterator[Finding]:
    """Whether what is installed is what Everview was tested with."""
    odd: list[str] = []
    pins = [text for text in requires("everview") or [] if "extra ==" not in text]
    for pin in pins:
        name, _, wanted = pin.partition("==")
        name = name.partition("[")[0].strip()
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Finding("packages", "bad", f"{name} is missing", f"pip install {name}=={wanted.strip()}")
            continue
        if found != wanted.strip():
            odd.append(f"{name} {found} instead of {wanted.strip()}")
    if odd:
        yield Finding("packages", "note", ", ".join(odd), "Everview was tested with the pinned versions only")
    else:
        yield Finding("packages", "ok", f"{len(pins)} as pinned")


def _check_machine() -> Iterator[Finding]:
    from everview.serve.cli import few_files

    with suppress(ValueError, OSError):  # not every system tells
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        text = f"{memory / (1 << 30):.1f} GiB of memory, {os.cpu_count()} cores"
        hint = "embedded Spark and the server need about 2 GiB" if memory < MEMORY_MIN else None
        yield Finding("machine", "note" if hint else "ok", text, hint)
    for notice in few_files():
        yield Finding("machine", "note", notice)


def _check_folder(data: Path) -> Iterator[Finding]:
    there = data if data.exists() else data.absolute().parent
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    text = f"{data} {'exists' if data.exists() else 'does not exist yet'}, {free / (1 << 30):.1f} GiB free"
    if not os.access(there, os.W_OK | os.X_OK):
        yield Finding("folder", "bad", f"{there} cannot be written to", "name another folder with --data")
    elif free < FREE_BYTES_MIN:
        yield Finding("folder", "note", text, "commits fail once the disk is full")
    else:
        yield Finding("folder", "ok", text)
    if data.exists() and data.stat().st_mode & 0o077 and data.stat().st_uid == os.geteuid():
        yield Finding(
            "folder", "note", f"other accounts can look into {data}", "it is closed to them when it is opened"
        )


def _check_ports() -> Iterator[Finding]:
    for name, port in (("SQL", PG_PORT), ("HTTP", HTTP_PORT)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                hint = "a server may be running already; --pg-port and --http-port choose others"
                yield Finding("ports", "note", f"{port}, for {name}, is in use", hint)
            else:
                yield Finding("ports", "ok", f"{port}, for {name}, is free")


def _check_metadata(data: Path, stores: StoreAddresses) -> Iterator[Finding]:
    from everview.storage.opening import check_format

    url = stores.consensus or str(data / "consensus.db")
    if stores.consensus is None and not (data / "consensus.db").exists():
        yield Finding("metadata", "ok", NO_ENVIRONMENT)
        return
    try:
        opened = open_consensus(url, read_only=True)
    except NoEnvironment:
        yield Finding("metadata", "ok", f"{without_secrets(url)} answers; {NO_ENVIRONMENT}")
    else:
        with closing(opened):
            check_format(opened)
            began = time.monotonic()
            opened.get(["format"])
            took_s = time.monotonic() - began
        slow = took_s > SLOW_S
        hint = "every commit waits for it: put the server near it" if slow else None
        text = f"{without_secrets(url)} answers in {took_s * 1000:.1f} ms"
        yield Finding("metadata", "note" if slow else "ok", text, hint)
    if stores.shared:
        server = look_at(url)
        yield _writable(server)
        yield _skew("metadata", server.clock, server.our_clock)


def _writable(server: DatabaseServer) -> Finding:
    if server.lacking is None:
        return Finding("metadata", "ok", "they can be written")
    return Finding("metadata", "bad", f"they cannot be written: {server.lacking}", server.hint)


def _skew(subject: str, theirs: float, ours: float) -> Finding:
    ahead = ours - theirs
    text = f"this machine's clock is {abs(ahead):.1f} s {'ahead of' if ahead >= 0 else 'behind'} its clock"
    if abs(ahead) <= SKEW_S_MAX:
        return Finding(subject, "ok", text)
    return Finding(subject, "note", text, "let a time service set both: a standby goes on with its own clock")


def _check_objects(data: Path, stores: StoreAddresses) -> Iterator[Finding]:
    url = stores.blob or str(data / "blob")
    if stores.blob is None and not data.exists():
        return
    key = f"doctor/{secrets.token_hex(8)}"
    with closing(open_blob(url, private=True)) as blob:
        before, began = time.time(), time.monotonic()
        blob.put(key, b"doctor")
        clocks = None
        try:
            with blob.open(key) as file:
                same = bytes(file.read()) == b"doctor"
            if stores.blob_is_remote:
                clocks = _object_clock(blob, key), (before + time.time()) / 2
        finally:
            blob.delete(key)
        took_s = time.monotonic() - began
        shown = without_secrets(url)
        if not same:
            yield Finding("data", "bad", f"{shown} gives other bytes than were written to it")
        else:
            text = f"{shown} can be written and read; a write, read and delete took {took_s:.2f} s"
            yield Finding("data", "ok", text)
        if clocks is not None:
            yield _skew("data", *clocks)
        if stores.shared:
            yield from _check_belonging(stores.consensus or "", blob)


def _object_clock(blob: BlobStore, key: str) -> float:
    """The clock of an object store when it stored this object; it tells whole seconds."""
    from everview.storage.blob.object import ObjectBlob

    assert isinstance(blob, ObjectBlob)
    return blob.stored_at(key).timestamp() + 0.5


def _check_belonging(consensus: str, blob: BlobStore) -> Iterator[Finding]:
    """Whether the data are those of the metadata."""
    from everview.storage.opening import check_blob
    from everview.storage.sealed import SealedConsensus

    with suppress(NoEnvironment), closing(open_consensus(consensus, read_only=True)) as opened:
        check_blob(SealedConsensus(opened), blob)
        yield Finding("data", "ok", "they belong to the metadata")


def _check_spark(data: Path, stores: StoreAddresses, address: str, conf: dict[str, str]) -> Iterator[Finding]:
    from everview.compute.engine.spark.reach import check_reach
    from everview.compute.engine.spark.session import start
    from everview.compute.engine.spark.store_settings import store_settings
    from everview.storage.landing import BlobFolder

    shown = without_secrets(address)
    typer.echo(f"  starting Spark at {shown} …", err=True)
    url = stores.blob or (str(data / "blob") if data.exists() else None)
    settings = {**store_settings(url), **conf}
    with TemporaryDirectory(prefix="everview-doctor-") as scratch, spark_log(Path(scratch, "spark.log")):
        began = time.monotonic()
        found = start(address, scratch=Path(scratch), options=settings)
        try:
            found.bulk.range(0, 1000, 1, 8).count()
            took_s = time.monotonic() - began
            text = f"{found.bulk.version} at {shown}{_cores(found.bulk)}, first job after {took_s:.0f} s"
            yield Finding("Spark", "ok", text)
            with closing(open_blob(url or str(Path(scratch, "blob")), private=True)) as blob:
                check_reach(found.bulk, BlobFolder(blob, f"reach/{secrets.token_hex(8)}"))
            yield Finding("Spark", "ok", "its executors can read and write the data")
        finally:
            found.stop()


def _cores(session: SparkSession) -> str:
    from everview.compute.engine.spark.jobs import is_connect

    return "" if is_connect(session) else f", {session.sparkContext.defaultParallelism} cores"
