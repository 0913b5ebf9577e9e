"""`everview connector`: checking drivers, ours or a stranger's, and running ours as programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from everview.errors import EverviewError
from everview.flow.check.endpoints import CLEAN, READ, make_endpoint
from everview.flow.check.suite import Result, run_suite
from everview.flow.driver_program import serve_streams
from everview.flow.drivers.registry import DRIVERS, driver_class
from everview.flow.errors import InvalidMaterialization, MissingLibrary
from everview.storage.rendering import Cell, Printer

app = typer.Typer(
    name="connector",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Check the drivers that deliver collections into other systems, and run them.",
)

Name = Annotated[str, typer.Argument(metavar="DRIVER", help=f"One of {', '.join(DRIVERS)}.")]


def _options(given: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise InvalidMaterialization(f"not an option: {each}", hint="write name=value")
        result[name] = json.loads(value) if value.startswith("{") and name == "config" else value
    return result


@app.command("ls")
def list_drivers() -> None:
    """List the drivers, with what they guarantee and the options that they take."""
    rows: list[list[Cell]] = []
    for name in DRIVERS:
        try:
            kind = driver_class(name)
        except MissingLibrary as error:
            rows.append([name, error.message, None, None])
            continue
        options = ", ".join(
            each.name + ("" if each.required else "?") for each in (*kind.options, *kind.resource_options)
        )
        rows.append([name, kind.pattern.value, kind.guarantee.value, options])
    Printer().table(["driver", "pattern", "guarantee", "options"], rows)


@app.command("check")
def check(
    name: Name,
    *,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option of the driver.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option("--resource", metavar="JSON", help="A binding's resource; {name} is put in.")
    ] = None,
    clean: Annotated[
        str | None,
        typer.Option(
            "--clean", metavar="COMMAND", help="A command that removes a place of a program; {name} is put in."
        ),
    ] = None,
    read: Annotated[
        str | None,
        typer.Option(
            "--read",
            metavar="COMMAND",
            help="A command that prints the rows of a place of a program, as JSON objects; {name} is put in.",
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", metavar="TEXT", help="Scenarios with this in their name.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Where the data come from.")] = 0,
) -> None:
    """Run the conformance and fault suite against a driver, and print a report.

    Each scenario delivers a ledger whose every slip shows, while the runtime crashes, stalls, repeats itself, is taken
    over, split or joined; then what the endpoint holds is compared with the source. Places of its own are used, and
    removed; for those of a program `--clean` says how, because the protocol has no word for it. Without it, the program
    is told to begin anew after each scenario, which empties its places for the next. What stays is named. A
    program is asked for its rows by loading them. Those of the append-only binding, which cannot be loaded, are only
    compared where `--read` says how they are read.

    **Examples**

    * `everview connector check sqlite`

    * `everview connector check postgres -o connection=postgresql://localhost/postgres`

    * `everview connector check command -o command=./driver -o config='{"path": "x"}' --resource '{"table": "{name}"}'`

    * `everview connector check connector -o connector=./materialize-x -o config='{…}' --clean './drop-table {name}'`
    """
    config = _options(option or [])
    for given, own, hint in (
        (clean, CLEAN, "our own drivers remove what they made"),
        (read, READ, "what our own drivers have delivered is read without"),
    ):
        if given is not None:
            if name.lower() not in ("command", "connector"):
                raise InvalidMaterialization(f"--{own} is for programs", hint=hint)
            config[own] = given
    place = None if resource is None else json.loads(resource)

    def make(folder: Path) -> Any:
        return make_endpoint(name.lower(), config, folder, place)

    results: list[Result] = []
    for result in run_suite(make, seed=seed, only=only):
        results.append(result)
        typer.echo(f"{_mark(result)} {result.scenario.name}", err=True)
    if not results:
        raise InvalidMaterialization(f"no scenario has {only} in its name")
    _report(results)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _mark(result: Result) -> str:
    if result.skipped is not None:
        return "skipped"
    return "passed" if result.passed else "FAILED"


def _report(results: list[Result]) -> None:
    printer = Printer()
    rows: list[list[Cell]] = [
        [each.scenario.name, _mark(each), f"{each.seconds:.2f} s", each.error or each.skipped or each.scenario.about]
        for each in results
    ]
    printer.table(["scenario", "result", "took", "about"], rows, right=["took"])
    ran = [each for each in results if each.skipped is None]
    passed = sum(each.passed for each in ran)
    printer.note(f"{passed} of {len(ran)} scenarios passed, {len(results) - len(ran)} do not apply")
    if uncompared := sorted({name for each in ran for name in each.uncompared}):
        printer.note(f"not compared: {', '.join(uncompared)}, which cannot be loaded; --read says how it is read")
    if left := list(dict.fromkeys(place for each in ran for place in each.left)):
        printer.note(f"left behind, because --clean does not say how to remove them: {', '.join(left)}")


@app.command("run")
def run(name: Name) -> None:
    """Run a driver as a program: it speaks the materialization protocol in lines of JSON on its standard streams.

    **Examples**

    * `everview connector run sqlite < conversation.jsonl`
    """
    try:
        serve_streams(name.lower(), sys.stdin.buffer, sys.stdout.buffer)
    except EverviewError:
        raise
    except BrokenPipeError:
        raise typer.Exit(1) from None
