"""The `everview` command. Each layer that has something to show brings its own typer app, added here."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from everview import __version__
from everview.errors import EverviewError

app = typer.Typer(
    name="everview",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Set EVERVIEW_DEBUG=1 to see the traceback of an error.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everview {__version__}")
        raise typer.Exit


@app.callback()
def everview(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Keep SQL views over changing data exact and fresh, on Spark.

    **Examples**

    * `everview --version`: which version this is

    * `everview --help`: the commands there are; each has its own `--help`
    """


def main() -> None:
    """Run the command line; a failure that was foreseen is told in a few lines, without a traceback."""
    try:
        app()
    except EverviewError as error:
        if os.environ.get("EVERVIEW_DEBUG") == "1":
            raise
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)
