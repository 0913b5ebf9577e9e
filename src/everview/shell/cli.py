"""The command `everview sql`: a shell on a server, or on an environment that it opens itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from everview.console import DEFAULT_ROLE, LOOPBACK, PG_PORT, spark_log
from everview.errors import EverviewError
from everview.shell.output import Format
from everview.storage.cli import TakeOver
from everview.storage.stores import BLOB_VARIABLE, CONSENSUS_VARIABLE

if TYPE_CHECKING:
    from everview.shell.client import Client
    from everview.shell.output import Printer

FAILED, NOT_CONNECTED = 1, 2
OF_DATA = ("consensus", "blob", "take_over")  # what only --data has a use for


def sql(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="Files with statements to run; - is standard input.")
    ] = None,
    *,
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Option("--command", "-c", metavar="SQL", help="Statements to run; may be repeated.")
    ] = None,
    host: Annotated[str, typer.Option("--host", "-h", help="The address of the server.")] = LOOPBACK,
    port: Annotated[int, typer.Option("--port", "-p", help="The port of the server.")] = PG_PORT,
    user: Annotated[str, typer.Option("--user", "-U", help="The role to connect as.")] = DEFAULT_ROLE,
    dbname: Annotated[str, typer.Option("--dbname", "-d", help="The database.")] = "everview",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Open this folder in this process, without a server.")
    ] = None,
    consensus: Annotated[
        str | None,
        typer.Option(
            "--consensus", metavar="URL", envvar=CONSENSUS_VARIABLE, help="With --data: the store of the metadata."
        ),
    ] = None,
    blob: Annotated[
        str | None,
        typer.Option("--blob", metavar="URL", envvar=BLOB_VARIABLE, help="With --data: the store of the data."),
    ] = None,
    take_over: TakeOver = False,
    form: Annotated[
        Format, typer.Option("--format", help="How to print rows; auto is a table at a terminal, tsv into a pipe.")
    ] = "auto",
    timing: Annotated[bool, typer.Option("--timing", help="Show how long statements take.")] = False,
) -> None:
    """Run SQL: interactively, from files, from standard input, or with -c.

    The exit code is 0 if all went well, 1 if a statement failed, and 2 if there was no connection.

    **Examples**

    * `everview sql`: a shell on the server of this machine

    * `everview sql -c 'SELECT * FROM best'`, or `everview sql --format csv -c '…' > best.csv`

    * `everview sql --data everview-data setup.sql`: without a server
    """
    from everview.shell.client import CannotConnect, Client
    from everview.shell.input import TextLines, TypedLines
    from everview.shell.output import Printer
    from everview.shell.progress import Waiting
    from everview.shell.session import Session

    printer = Printer(form, timing=timing)
    options = {"host": host, "port": str(port), "user": user, "dbname": dbname, "application_name": "everview sql"}
    with ExitStack() as stack:
        if data is not None:
            options |= stack.enter_context(_embedded(data, consensus, blob, take_over))
        elif any(map(partial(_is_word, context), OF_DATA)):
            raise EverviewError(
                "--consensus, --blob and --take-over open an environment in this process",
                hint="give --data as well, for local files",
            )
        try:
            client = _connected(options, printer)
        except CannotConnect as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(NOT_CONNECTED) from None
        stack.callback(client.close)
        if sys.stderr.isatty():
            waiting = Waiting(lambda: Client(client.options), sys.stderr)
            stack.callback(waiting.close)
            client.patience = waiting
        if command or files or not sys.stdin.isatty():
            session = Session(client, printer, stop_at_errors=True)
            for text in command or ():
                if not session.run(TextLines(text.split("\n"))):
                    raise typer.Exit(FAILED)
            for name in files or ([] if command else ["-"]):
                with _opened(name) as lines:
                    if not session.run(TextLines(lines)):
                        raise typer.Exit(FAILED)
            return
        session = Session(client, printer, stop_at_errors=False)
        typed = TypedLines(client, dbname)
        typed.completing_for(session)
        typer.echo("Everview: statements end with a semicolon; \\? is help, \\q leaves.")
        session.run(typed)
        if client.lost:
            raise typer.Exit(NOT_CONNECTED)


def _is_word(context: typer.Context, name: str) -> bool:
    """Whether the command line has this option, rather than a variable of the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _connected(options: dict[str, str], printer: Printer) -> Client:
    from everview.shell.client import CannotConnect, Client

    try:
        return Client(options, printer.problem)
    except CannotConnect as error:
        if not error.needs_password or not sys.stdin.isatty():
            raise
    password = typer.prompt(f"password of {options['user']}", hide_input=True, err=True)
    return Client({**options, "password": password}, printer.problem)


@contextmanager
def _embedded(data: Path, consensus: str | None, blob: str | None, take_over: bool) -> Iterator[dict[str, str]]:
    """Start a server in this process, behind a Unix socket in a private folder; gives the options to connect."""
    from everview.instance import Folder, Instance, check_java
    from everview.server.addresses import Address
    from everview.server.run import Options, start
    from everview.storage.stores import StoreAddresses

    check_java("local[*]")
    with (
        TemporaryDirectory(prefix="everview-sql-") as private,
        Folder(data) as folder,
        spark_log(folder.path / "spark.log"),
        Instance(folder, stores=StoreAddresses(consensus, blob), take_over=take_over) as instance,
        start(
            instance.coordinator, Options(pg=Address(LOOPBACK, 0), http=None, socket_dirs=[Path(private)])
        ) as running,
    ):
        yield {"host": private, "port": str(running.pg.port)}


@contextmanager
def _opened(name: str) -> Iterator[Iterator[str]]:
    if name == "-":
        yield iter(sys.stdin)
        return
    try:
        with Path(name).open(encoding="utf-8") as file:
            yield iter(file)
    except (OSError, UnicodeDecodeError) as error:
        raise EverviewError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
