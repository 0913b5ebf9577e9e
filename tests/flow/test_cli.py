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
    assert "not compared: log, which cannot be loaded; --read" in result.output
    with sqlite3.connect(tmp_path / "x.db") as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        made = [name for name in names if name.startswith("everview_check_")]
        filled = [name for name in made if db.execute(f"SELECT count(*) FROM {name}").fetchone() != (0,)]
    assert len(made) == 3 and not filled, "the program's places are there still, empty, and said to be"
    (told,) = (line for line in result.output.splitlines() if line.startswith("left behind"))
    assert sorted(told.rpartition(": ")[2].split(", ")) == sorted(made)


def test_scenarios_of_a_program_take_the_same_places_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    options = ["-o", f"command={sys.executable} -S {STRICT}", "-o", f'config={{"path": "{path}", "hardDelete": true}}']
    result = runner.invoke(app, ["check", "command", *options, "--only", "acknowledge"])
    assert result.exit_code == 0 and "3 of 3 scenarios passed" in result.output, result.output
    with sqlite3.connect(path) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        made = [name for name in names if "everview_check_" in name]
        filled = [name for name in made if db.execute(f'SELECT count(*) FROM "{name}"').fetchone() != (0,)]
    assert len(made) == 3 and not filled


@pytest.mark.parametrize("codec", ["json", "proto"])
def test_check_of_a_public_connector_cleans_up(tmp_path: Path, codec: str) -> None:
    script, clean = tmp_path / "materialize-strict", tmp_path / "clean.py"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -S {STRICT}\n")
    script.chmod(0o755)
    path = tmp_path / "x.db"
    clean.write_text(
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(f'DROP TABLE \"main__{sys.argv[2]}\"'); "
        "db.execute('DROP TABLE IF EXISTS flow_checkpoints')"
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
    result = runner.invoke(app, ["check", "connector", *options, *command, *reading(tmp_path), "--only", "cut_across"])
    assert result.exit_code == 0, result.output
    assert "not compared" not in result.output and "left behind" not in result.output
    with sqlite3.connect(path) as db:
        left = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert left == []


def test_check_compares_what_is_append_only_where_it_can_be_read(tmp_path: Path) -> None:
    """A connector that stores every row of a table of delta updates twice."""
    program = tmp_path / "doubles.py"
    inserted = 'db.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", [*key, *given])\n        return'
    code = STRICT.read_text()
    assert code.count(inserted) == 1
    twice = inserted.replace("\n        return", f"\n        {inserted}")
    program.write_text(code.replace(inserted, twice))
    path = tmp_path / "x.db"
    options = ["-o", f"command={sys.executable} -S {program}", "-o", f'config={{"path": "{path}", "hardDelete": true}}']
    only = ["--only", "crash_at_flushed"]
    result = runner.invoke(app, ["check", "command", *options, *only])
    assert result.exit_code == 0 and "not compared: log" in result.output
    result = runner.invoke(app, ["check", "command", *options, *reading(tmp_path), *only])
    assert result.exit_code == 1 and "binding log is wrong" in result.output


def reading(folder: Path) -> list[str]:
    """The option that says how rows of the strict connector are read."""
    read = folder / "read.py"
    read.write_text(
        "import json, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.row_factory = sqlite3.Row\n"
        "for row in db.execute(f'SELECT * FROM \"main__{sys.argv[2]}\"'): print(json.dumps(dict(row)))"
    )
    return ["--read", f"{sys.executable} {read} {folder / 'x.db'} {{name}}"]


def test_ls_names_all_drivers() -> None:
    result = runner.invoke(app, ["ls"])
    assert all(name in result.stdout for name in ("sqlite", "postgres", "command", "exactly once", "at least once"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nope"], "no driver is called nope"),
        (["check", "sqlite", "-o", "path"], "not an option"),
        (["check", "sqlite", "--clean", "rm"], "--clean is for programs"),
        (["check", "sqlite", "--read", "cat"], "--read is for programs"),
        (["check", "sqlite", "--only", "nothing"], "no scenario has nothing"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    result = runner.invoke(app, arguments)
    assert isinstance(result.exception, InvalidMaterialization) and message in str(result.exception)
