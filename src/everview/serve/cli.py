"""The command `everview serve`: opens a folder, listens, says where, and stops cleanly when it is told to."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from everview import __version__
from everview.console import HTTP_PORT, LOOPBACK, PG_PORT, spark_log
from everview.errors import EverviewError

if TYPE_CHECKING:
    from everview.instance import Instance
    from everview.server.addresses import Address

SPARK_LOG = "spark.log"
WATCH_S = 0.2
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    *,
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", envvar="EVERVIEW_DATA", help="The folder that everything is kept in."),
    ] = Path("everview-data"),
    pg_host: Annotated[str, typer.Option("--pg-host", metavar="HOST", help="Where to speak SQL.")] = LOOPBACK,
    pg_port: Annotated[int, typer.Option("--pg-port", metavar="N", help="0 is any that is free.")] = PG_PORT,
    http_host: Annotated[str, typer.Option("--http-host", metavar="HOST", help="Where to speak HTTP.")] = LOOPBACK,
    http_port: Annotated[int, typer.Option("--http-port", metavar="N", help="0 is any that is free.")] = HTTP_PORT,
    spark: Annotated[
        str,
        typer.Option(
            "--spark",
            metavar="ADDRESS",
            help="Spark: `local[*]` embeds it; `spark://…`, `yarn`, `k8s://…` or `sc://…` reach one.",
        ),
    ] = "local[*]",
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="K=V", help="A setting of Spark; may be given several times.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option("--tls-cert", metavar="FILE", help="A certificate with its chain, as PEM.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key, as PEM.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen to other machines without TLS: everyone can read along.")
    ] = False,
) -> None:
    """Serve SQL over the PostgreSQL wire protocol, and health and metrics over HTTP.

    **Examples**

    * `everview serve`, then `psql -h 127.0.0.1 -p 6875 -U everview everview`

    * `everview serve --data /srv/everview --spark spark://host:7077 --conf spark.executor.memory=8g`
    """
    began = time.monotonic()
    # Late, so that the other commands need not load all this.
    with kept_objects():
        from everview.instance import Folder, Instance, check_java
        from everview.serve.figures import add_figures
        from everview.server.addresses import Address
        from everview.server.metrics import Metrics
        from everview.server.run import Options, Tls, start

    if (tls_cert is None) != (tls_key is None):
        raise EverviewError("--tls-cert and --tls-key belong together: give both")
    options = Options(
        pg=Address(pg_host, pg_port),
        http=Address(http_host, http_port),
        tls=Tls(tls_cert, tls_key) if tls_cert and tls_key else None,
        insecure=insecure,
    )
    settings = parse_conf(conf or [])
    metrics = Metrics()
    with (
        stop_signals() as stop,
        ThreadPoolExecutor(1) as pool,
        Folder(data) as folder,
        spark_log(folder.path / SPARK_LOG),
        Instance(folder, spark=spark, conf=settings) as instance,
        start(instance.coordinator, options, metrics) as running,
    ):
        java = pool.submit(check_java, spark)
        add_figures(metrics, instance)
        typer.echo(_welcome(running.pg, running.http_url, data, spark))
        java.result()
        typer.echo(f"Ready after {time.monotonic() - began:.1f} s; Spark is starting in the background.")
        told = False
        while not stop.wait(WATCH_S) and not running.wait(0):
            told = told or _tell_of_spark(instance, began)
        typer.echo("Stopping.")
    if not stop.is_set():
        raise EverviewError("the server has ended on its own", hint="see what it logged")


def _welcome(pg: Address, http: str | None, data: Path, spark: str) -> str:
    lines = [
        f"Everview {__version__}",
        "",
        f"  SQL      {pg}, in PostgreSQL's wire protocol",
        f"  HTTP     {http}/readyz and /metrics",
        f"  data     {data.resolve()}",
        f"  Spark    {spark}, which logs to {data / SPARK_LOG}",
        "",
        f"  connect  psql -h {_reachable(pg.host)} -p {pg.port} -U everview everview",
        f"           everview sql --port {pg.port}",
        "  stop     Ctrl-C",
        "",
    ]
    return "\n".join(lines)


def _reachable(host: str) -> str:
    """The host for a client on this machine: an address that means all addresses is none to connect to."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _tell_of_spark(instance: Instance, began: float) -> bool:
    """Say once that Spark is warm, or why it will not be; whether that is said."""
    error = instance.spark_error
    if error is not None:
        typer.echo(f"error: Spark does not start, and views stand still: {error}", err=True)
        return True
    if instance.ready:
        typer.echo(f"Spark is warm after {time.monotonic() - began:.1f} s.")
        return True
    return False


def parse_conf(pairs: Sequence[str]) -> dict[str, str]:
    """Settings of Spark, given as `name=value`."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise EverviewError(f'--conf "{pair}" is no setting: write it as name=value')
        settings[name.strip()] = value
    return settings


@contextmanager
def kept_objects() -> Iterator[None]:
    """While modules are loaded nothing is garbage, now or later, and looking for it takes a fifth of the time."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Within the block Ctrl-C and SIGTERM set the event; a second one ends the process as usual."""
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
