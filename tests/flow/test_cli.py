"""`everview connector`."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everview.flow.cli import app
from everview.flow.errors import DriverFailed, InvalidMaterialization
from tests.flow.conftest import PROGRAM, STRICT

runner = CliRunner()


def test_check_passes_and_reports() -> None:
    result = runner.invoke(app, ["check", "parquet", "--only", "join"])
    assert result.exit_code == 0, result.output
    assert "join_after_split\tpassed" in result.stdout and "2 of 2 scenarios passed" in result.output


def test_check_says_what_does_not_apply() -> None:
    result = runner.invoke(app, ["check", "webhook", "--only", "zombie_at_commit"])
    assert result.exit_code == 0 and "cannot be fenced" in result.stdout


def test_check_of_a_program_that_is_no_driver(tmp_path: Path) -> None:
    command = f"command={sys.executable} -c 'pass'"
    result = runner.invoke(app, ["check", "command", "-o", command, "--only", "transactions"])
    assert isinstance(result.exception, DriverFailed) and "failed to answer spec" in str(result.exception)


def test_check_of_a_program(tmp_path: Path) -> None:
    options = ["-o", f"command={sys.executable} {PROGRAM} sqlite", "-o", f'config={{"path": "{tmp_path / "x.db"}"}}']
    result = runner.invoke(app, ["check", "command", *options, "--only", "crash_at_flushed"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("codec", ["json", "proto"])
def test_check_of_a_public_connector_cleans_up(tmp_path: Path, codec: str) -> None:
    script, clean = tmp_path / "materialize-strict", tmp_path / "clean.py"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -S {STRICT}\n")
    script.chmod(0o755)
    path = tmp_path / "x.db"
    clean.write_text(
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(f'DROP TABLE \"main__{sys.argv[2]}\"')"
    )
    options = [
        "-o",
        f"connector={script}",
        "-o",
        f"codec={codec}",
        "-o",
        f'config={{"path": "{path}", "hardDelete": true}}',
    ]
    command = ["--clean", f"{sys.executable} {clean} {path} {{name}}"]
    result = runner.invoke(app, ["check", "connector", *options, *command, "--only", "cut_across"])
    assert result.exit_code == 0, result.output
    with sqlite3.connect(path) as db:
        left = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert left == ["flow_checkpoints"]


def test_ls_names_all_drivers() -> None:
    result = runner.invoke(app, ["ls"])
    assert all(name in result.stdout for name in ("sqlite", "postgres", "command", "exactly once", "at least once"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nope"], "no driver is called nope"),
        (["check", "sqlite", "-o", "path"], "not an option"),
        (["check", "sqlite", "--clean", "rm"], "--clean is for programs"),
        (["check", "sqlite", "--only", "nothing"], "no scenario has nothing"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    result = runner.invoke(app, arguments)
    assert isinstance(result.exception, InvalidMaterialization) and message in str(result.exception)
