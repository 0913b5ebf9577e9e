"""The command `everview serve`: opens a folder, listens, says where, and stops cleanly when it is told to."""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everview import __version__
from everview.console import HTTP_PORT, LOOPBACK, PG_PORT, spark_log
from everview.errors import EverviewError
from everview.storage.cli import Blob, Consensus, TakeOver
from everview.storage.stores import StoreAddresses
from everview.storage.urls import without_secrets

if TYPE_CHECKING:
    from everview.instance import Instance
    from everview.server.run import Running

SPARK_LOG = "spark.log"
WATCH_S = 0.2
FILES_WANTED = 4_096  # 1,000 sessions, those who connect, and what storage and Spark open
# As `server.pgwire.authentication` names them, which would take long to load for its names alone.
Auth = Literal["owner", "trust", "password"]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    *,
    data: Annotated[
        Path,
        typer.Option(
            "--data", metavar="DIR", envvar="EVERVIEW_DATA", help="The folder of the environment; created if missing."
        ),
    ] = Path("everview-data"),
    consensus: Consensus = None,
    blob: Blob = None,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="If another server has the environment open, wait until it is gone, and take over. Needs stores that"
            " both reach: --consensus and --blob.",
        ),
    ] = False,
    take_over_after: Annotated[
        str,
        typer.Option(
            "--take-over-after",
            metavar="DURATION",
            help="With --standby: take over once the other server has shown no sign of life for this long.",
        ),
    ] = "6 s",
    take_over: TakeOver = False,
    pg_host: Annotated[str, typer.Option("--pg-host", metavar="HOST", help="The address for SQL.")] = LOOPBACK,
    pg_port: Annotated[
        int, typer.Option("--pg-port", metavar="N", help="The port for SQL; 0 takes a free one.")
    ] = PG_PORT,
    http_host: Annotated[str, typer.Option("--http-host", metavar="HOST", help="The address for HTTP.")] = LOOPBACK,
    http_port: Annotated[
        int, typer.Option("--http-port", metavar="N", help="The port for HTTP; 0 takes a free one.")
    ] = HTTP_PORT,
    spark: Annotated[
        str,
        typer.Option(
            "--spark",
            metavar="ADDRESS",
            help="The Spark: `local[*]` starts one here; `spark://…`, `yarn`, `k8s://…` or `sc://…` is a cluster.",
        ),
    ] = "local[*]",
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="K=V", help="A setting of Spark; may be repeated.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="The TLS certificate with its chain, as PEM.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="The private key of the certificate, as PEM.")
    ] = None,
    max_clock_jump: Annotated[
        str,
        typer.Option(
            "--max-clock-jump", metavar="DURATION", help="Do not follow a wall clock that jumps further than this."
        ),
    ] = "1 min",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines connect without TLS; the network can read along.")
    ] = False,
    allow_address: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-address",
            metavar="ADDRESS",
            help="Let statements connect to this link-local or metadata address or network; may be repeated.",
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option(
            "--files",
            metavar="DIR",
            help="Let sinks and sources of roles that are not superusers use files in this folder; may be repeated.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="The key that secrets are sealed with: 32 random bytes as base64. Without it, the variable"
            " EVERVIEW_KEY, or a file beside the data folder.",
        ),
    ] = None,
    auth: Annotated[
        Auth,
        typer.Option(
            "--auth",
            help="Who needs no password on this machine: `owner`, the account that runs the server; `trust`, everyone;"
            " `password`, nobody.",
        ),
    ] = "owner",
    socket_dir: Annotated[
        list[Path] | None,
        typer.Option(
            "--socket-dir",
            metavar="DIR",
            help="A folder for the Unix socket; may be repeated; '' for none. By default the folders where psql looks.",
        ),
    ] = None,
) -> None:
    """Serve SQL over the PostgreSQL wire protocol, and health and metrics over HTTP.

    **Examples**

    * `everview serve`, then `psql -h 127.0.0.1 -p 6875 -U everview everview`

    * `everview serve --data /srv/everview --spark spark://host:7077 --conf spark.executor.memory=8g`

    * `everview serve --standby --consensus postgresql://host/database --blob s3://bucket/prefix`, on two machines: one
    serves, and the other takes over when it is gone
    """
    began = time.monotonic()
    # Arrow's own allocator keeps some memory for each thread, and sessions come with threads: it would only grow.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # Late, so that the other commands need not load all this.
    with kept_objects():
        from everview.instance import Folder, Instance, StandingBy, StoppedStandingBy, check_java
        from everview.reach.addresses import ALLOWED, parse_allowed
        from everview.reach.files import ALLOWED as FILES
        from everview.reach.files import checked_folders
        from everview.serve.metrics import add_metrics
        from everview.server.addresses import Address
        from everview.server.metrics import Metrics
        from everview.server.run import Options, Tls, start, start_http

    if (tls_cert is None) != (tls_key is None):
        raise EverviewError("--tls-cert and --tls-key belong together: give both")
    if allow_address:
        parse_allowed(allow_address)
        os.environ[ALLOWED] = ",".join(allow_address)  # for Spark's workers as well
    if files:
        os.environ[FILES] = checked_folders(files, data)
    options = Options(
        pg=Address(pg_host, pg_port),
        http=Address(http_host, http_port),
        tls=Tls(tls_cert, tls_key) if tls_cert and tls_key else None,
        insecure=insecure,
        auth=auth,
        socket_dirs=_socket_dirs(socket_dir, pg_port),
        sockets_needed=socket_dir is not None,
    )
    settings = parse_conf(conf or [])
    clock_jump_ms = parse_duration("--max-clock-jump", max_clock_jump)
    silence_ms = parse_duration("--take-over-after", take_over_after)
    stores = StoreAddresses(consensus, blob)
    _check_standby(standby, stores, take_over)
    metrics = Metrics()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_signals())
        pool = stack.enter_context(ThreadPoolExecutor(1))
        folder = stack.enter_context(Folder(data))
        stack.enter_context(spark_log(folder.path / SPARK_LOG))
        waiting = StandingBy(stop, silence_ms, typer.echo) if standby else None
        try:
            with start_http(options, metrics) if standby else nullcontext():
                instance = Instance(
                    folder,
                    stores=stores,
                    spark=spark,
                    conf=settings,
                    max_clock_jump_ms=clock_jump_ms,
                    key_file=key_file,
                    standby=waiting,
                    take_over=take_over,
                )
        except StoppedStandingBy:
            typer.echo("Stopping.")
            return
        if instance.turn_at is not None:
            began = instance.turn_at
        stack.enter_context(instance)
        running = stack.enter_context(start(instance.coordinator, options, metrics))
        java = pool.submit(check_java, spark)
        add_metrics(metrics, instance)
        typer.echo(_welcome(running, data, stores, spark))
        for notice in (*few_files(), *running.notices):
            typer.echo(f"note: {notice}", err=True)
        java.result()
        typer.echo(f"Ready after {time.monotonic() - began:.1f} s; Spark is starting in the background.")
        keep_serving(stop, running, instance, began)


def _check_standby(standby: bool, stores: StoreAddresses, take_over: bool) -> None:
    if standby and not stores.shared:
        raise EverviewError(
            "a standby needs metadata that both servers reach",
            hint="give --consensus postgresql://… and --blob to both",
        )
    if standby and take_over:
        raise EverviewError(
            "--standby waits for the other server, and --take-over does not",
            hint="give one of them; everview env promote lets a server that stands by take over now",
        )


def keep_serving(stop: threading.Event, running: Running, instance: Instance, began: float) -> None:
    """Return when `stop` is set; raise if the server ends for another reason."""
    told = told_of_reach = False
    while not stop.wait(WATCH_S) and not running.wait(0) and instance.fenced is None:
        told = told or _tell_of_spark(instance, began)
        if instance.unreachable is not None and not told_of_reach:
            typer.echo(f"error: ticks of many rows will fail: {instance.unreachable}", err=True)
            told_of_reach = True
    typer.echo("Stopping.")
    if stop.is_set():
        return
    if instance.fenced is not None:
        raise EverviewError(f"this server stops: {instance.fenced.message} ({instance.fenced.detail})")
    raise EverviewError("the server has ended on its own", hint="see what it logged")


def _socket_dirs(given: Sequence[Path] | None, port: int) -> list[Path]:
    """The folders for Unix sockets. By default none if the system chooses the port: nobody would look for it."""
    if given is not None:
        return [folder.resolve() for folder in given if str(folder) != "."]  # an empty path is written so
    from everview.server.unix_sockets import usable_dirs

    return usable_dirs() if port != 0 else []


def few_files() -> list[str]:
    """Raise the limit on open files as far as allowed; gives a notice if it is too low for all sessions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES_WANTED:
        soft = FILES_WANTED if hard == resource.RLIM_INFINITY else min(hard, FILES_WANTED)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= FILES_WANTED:
        return []
    return [f"this process may open {soft} files, too few for 1,000 sessions: raise the limit with ulimit -n"]


def _welcome(running: Running, data: Path, stores: StoreAddresses, spark: str) -> str:
    pg = running.pg
    places = [("metadata", stores.consensus), ("objects", stores.blob)]
    lines = [
        f"Everview {__version__}",
        "",
        f"  SQL      {pg}, in PostgreSQL's wire protocol",
        *(f"           {path}" for path in running.unix),
        f"  HTTP     {running.http_url}/readyz and /metrics",
        f"  data     {data.resolve()}",
        *(f"  {name:<8} {without_secrets(url)}" for name, url in places if url is not None),
        f"  Spark    {without_secrets(spark)}, which logs to {data / SPARK_LOG}",
        "",
        f"  connect  psql -h {_reachable(pg.host)} -p {pg.port} -U everview everview",
        f"           everview sql --port {pg.port}",
        "  stop     Ctrl-C",
        "",
    ]
    return "\n".join(lines)


def _reachable(host: str) -> str:
    """The host to which a client on this machine connects: an address that means all addresses will not do."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _tell_of_spark(instance: Instance, began: float) -> bool:
    """Print that Spark is warm, or why it does not start; gives whether something was printed."""
    error = instance.spark_error
    if error is not None:
        typer.echo(f"error: Spark does not start, and views stand still: {error}", err=True)
        return True
    if instance.ready:
        typer.echo(f"Spark is warm after {time.monotonic() - began:.1f} s.")
        return True
    return False


def parse_conf(pairs: Sequence[str]) -> dict[str, str]:
    """Parse settings of Spark, given as `name=value`."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise EverviewError(f'--conf "{pair}" is not a setting: write it as name=value')
        settings[name.strip()] = value
    return settings


def parse_duration(option: str, text: str) -> int:
    """Parse a duration of at least a second, in milliseconds: the clocks that it bounds are no more exact."""
    from everview.compute.functions.datetime_input import duration_ms
    from everview.timely.lattice import TIME_MAX

    try:
        found = duration_ms(text, most_ms=TIME_MAX)
    except ValueError as error:
        raise EverviewError(f'{option} "{text}" is not a duration', detail=str(error)) from None
    if found < 1_000:
        raise EverviewError(f'{option} "{text}" is too short: give at least a second')
    return found


@contextmanager
def kept_objects() -> Iterator[None]:
    """Load modules without garbage collection: they are never garbage, and collecting takes a fifth of the time."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Within the block, Ctrl-C or SIGTERM sets the event; a second one ends the process as usual."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def asked(number: int, _: FrameType | None) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in SIGNALS:
        signal.signal(number, asked)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
