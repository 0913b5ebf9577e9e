"""The `everview` command. Layers bring their own typer apps, which are added here."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from everview import __version__
from everview.cdc.cli import app as cdc
from everview.demo.cli import demo
from everview.errors import EverviewError
from everview.flow.cli import app as connector
from everview.serve.cli import serve
from everview.serve.doctor import doctor
from everview.shell.cli import sql
from everview.storage.cli import app as shard
from everview.storage.environment_cli import app as env

app = typer.Typer(
    name="everview",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Set EVERVIEW_DEBUG=1 to see the traceback of an error.",
)
app.add_typer(shard)
app.add_typer(env)
app.add_typer(connector)
app.add_typer(cdc)
app.command()(demo)
app.command()(serve)
app.command()(doctor)
app.command(context_settings={"help_option_names": ["--help"]})(sql)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everview {__version__}")
        raise typer.Exit


@app.callback()
def everview(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Keep SQL views over changing data exact and fresh, on Spark.

    **Examples**

    * `everview demo`: see it work, in a minute

    * `everview serve`: serve SQL to psql and other clients of PostgreSQL

    * `everview sql`: a shell for SQL

    * `everview doctor`: whether everything is here that Everview needs

    * `everview shard ls --data DIR`: look inside an environment

    * `everview env backup BACKUP --data DIR`: back it up, while a server runs
    """


def main() -> None:
    """Run the command line. An expected failure prints a few lines, without a traceback."""
    try:
        app()
    except EverviewError as error:
        if os.environ.get("EVERVIEW_DEBUG") == "1":
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
