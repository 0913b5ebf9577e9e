"""The command `everview demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everview.storage.cli import Blob, Consensus, TakeOver


def demo(
    *,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="A new folder to work in, which is kept.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", envvar="DEMO_SECONDS", min=1, max=600, help="How long to run.")
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the generated data.")] = 1,
    consensus: Consensus = None,
    blob: Blob = None,
    take_over: TakeOver = False,
) -> None:
    """See it work: a live auction house, three views that Spark maintains, and the proof that they are exact.

    **Examples**

    * `everview demo`: in a temporary folder

    * `everview demo --data demo-data`, then `everview serve --data demo-data`
    """
    from everview.demo.run import run
    from everview.storage.stores import StoreAddresses

    if not run(data, seconds, seed, stores=StoreAddresses(consensus, blob), take_over=take_over):
        raise typer.Exit(1)
