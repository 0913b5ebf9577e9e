"""The command line's manners: version, help, and errors of a few lines."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

import everview
from everview import cli
from everview.errors import EverviewError


def test_version() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"everview {everview.__version__}\n")


def test_help_has_examples() -> None:
    result = CliRunner().invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert "Examples" in result.output


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An `everview` whose one command fails in a foreseen way."""
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise EverviewError("it broke", detail="the third wheel", hint="mend it")

    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr("sys.argv", ["everview"])
    monkeypatch.delenv("EVERVIEW_DEBUG", raising=False)


@pytest.mark.usefixtures("failing")
def test_a_foreseen_error_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    assert capsys.readouterr() == ("", "error: it broke\ndetail: the third wheel\nhint: mend it\n")


@pytest.mark.usefixtures("failing")
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERVIEW_DEBUG", "1")
    with pytest.raises(EverviewError):
        cli.main()
