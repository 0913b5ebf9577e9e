"""`everview sql` on a real server: tables, formats, errors, COPY, files, subscriptions, exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from typer.testing import CliRunner, Result

from everview import cli
from everview.console import hydration_line
from everview.demo.run import hydrating
from everview.instance import Folder, Instance
from everview.server.addresses import Address
from everview.server.metrics import Metrics
from everview.server.run import Options, Running, start
from everview.shell import client as client_module
from everview.shell.client import CannotConnect, Client
from everview.shell.input import TextLines
from everview.shell.output import pointed
from everview.shell.progress import Waiting, described
from everview.shell.session import COPY_ENDS
from everview.shell.statements import Statements, complete, is_streaming
from tests.adapter.test_hydrating import WAIT_S, Endless
from tests.waiting import eventually

Shell = Callable[..., Result]


@pytest.fixture
def shell(served: Running) -> Shell:
    def run(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(cli.app, ["sql", "--port", str(served.pg.port), *arguments], input=stdin)

    return run


def test_statements_end_with_semicolons() -> None:
    statements = Statements()
    assert statements.add("SELECT 'a;") == []
    assert statements.begun
    assert statements.add("b' -- c;") == []
    assert statements.add("; SELECT $$;$$; SELECT") == ["SELECT 'a;\nb' -- c;\n;", "SELECT $$;$$;"]
    assert statements.add(" /* ; */ 3") == []
    assert statements.rest() == " SELECT\n /* ; */ 3"
    assert not statements.begun


def test_nothing_is_no_statement() -> None:
    assert complete(";; -- x\n ;") == ([], "")
    statements = Statements()
    statements.add("-- nothing")
    assert statements.rest() == ""


@pytest.mark.parametrize(
    ("text", "streams"), [("subscribe to t", True), ("select 1", False), ("", False), ("'", False)]
)
def test_what_streams(text: str, streams: bool) -> None:
    assert is_streaming(text) is streams


@pytest.mark.parametrize(
    ("statement", "position", "shown"),
    [
        ("SELECT x", 8, "LINE 1: SELECT x\n               ^"),
        ("SELECT\n  x\nFROM t", 10, "LINE 2:   x\n          ^"),
        ("SELECT x", 99, "LINE 1: SELECT x\n                ^"),
        ("", 1, "LINE 1: \n        ^"),
    ],
)
def test_a_caret_shows_the_place(statement: str, position: int, shown: str) -> None:
    assert pointed(statement, position) == shown


def test_a_long_line_is_shown_around_the_place() -> None:
    line, caret = pointed("SELECT " + "a, " * 100 + "x" + ", b" * 100, 308).split("\n")
    assert line[len(caret) - 1] == "x" and len(line) < 150


TABLE = "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'one'), (2, NULL), (3, E'two\\nlines');"


def test_tables(shell: Shell) -> None:
    answer = shell("--format", "table", "-c", TABLE, "-c", "SELECT a, b FROM t ORDER BY a")
    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        "CREATE TABLE",
        "INSERT 0 3",
        " a   b    ",
        "───┬───────",
        " 1 │ one",
        " 2 │ ·",
        " 3 │ two",
        "   │ lines",
        "(3 rows)",
        "",
    ]


def test_formats(shell: Shell) -> None:
    shell("-c", TABLE)
    query = "SELECT a, b, a > 1 AS c, a::numeric(4,2) AS d FROM t ORDER BY a"
    assert shell("-c", query).stdout == "a\tb\tc\td\n1\tone\tf\t1.00\n2\t\\N\tt\t2.00\n3\ttwo\\nlines\tt\t3.00\n"
    csv = shell("--format", "csv", "-c", query).stdout
    assert csv == 'a,b,c,d\n1,one,f,1.00\n2,,t,2.00\n3,"two\nlines",t,3.00\n'
    rows = [json.loads(line) for line in shell("--format", "json", "-c", query).stdout.splitlines()]
    assert rows[1] == {"a": 2, "b": None, "c": True, "d": "2.00"}


def test_an_error_ends_a_script(shell: Shell) -> None:
    answer = shell("-c", "SELECT 1;\nSELECT *\nFROM nowhere; SELECT 2;", "-c", "SELECT 3")
    assert answer.exit_code == 1
    assert answer.stdout == "?column?\n1\n"
    lines = answer.stderr.splitlines()
    assert lines[0] == 'ERROR: relation "nowhere" does not exist (42P01)'
    assert lines[1:3] == ["LINE 2: FROM nowhere;", "             ^"]


def test_standard_input_with_copy(shell: Shell) -> None:
    script = f"CREATE TABLE t (a int, b text);\nCOPY t FROM STDIN;\n1\tone\n2\t\\N\n{COPY_ENDS}\nSELECT count(*) FROM t"
    answer = shell(stdin=script)
    assert (answer.exit_code, answer.stdout) == (0, "count\n2\n"), answer.stderr
    assert shell("-c", "COPY (SELECT * FROM t ORDER BY a) TO STDOUT").stdout == "1\tone\n2\t\\N\n"


def test_files(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "one.sql").write_text("-- a comment;\nSELECT 1 AS one;\n\\timing\n")
    answer = shell(str(tmp_path / "one.sql"), "-", stdin="SELECT 2 AS two")
    assert answer.exit_code == 0 and "one\n1\n" in answer.stdout and "two\n2\n" in answer.stdout
    assert "time: " in answer.stderr
    missing = shell(str(tmp_path / "none.sql"))
    assert missing.exit_code == 1 and "cannot read" in str(missing.exception)


def test_a_subscription_is_shown_as_it_comes(shell: Shell) -> None:
    shell("-c", "CREATE TABLE t (a int) WITH (RETAIN HISTORY FOR '1h'); INSERT INTO t VALUES (7)")
    now = shell("-c", "SELECT mz_now() FROM t").stdout.splitlines()[1]
    shell("-c", "DELETE FROM t")
    later = shell("-c", "SELECT mz_now() AS t FROM (SELECT count(*) FROM t)").stdout.splitlines()[1]
    answer = shell("-c", f"SUBSCRIBE TO t AS OF {now} UP TO {int(later) + 1}")
    assert answer.exit_code == 0
    rows = [line.split("\t") for line in answer.stdout.splitlines()]
    assert rows[0] == ["mz_timestamp", "mz_diff", "a"]
    assert [row[1:] for row in rows[1:]] == [["1", "7"], ["-1", "7"]]


def test_notices_and_unknown_commands(shell: Shell) -> None:
    answer = shell("-c", "COMMIT")
    assert answer.exit_code == 0 and "WARNING: there is no transaction in progress" in answer.stderr
    unknown = shell("-c", "\\nope")
    assert unknown.exit_code == 1 and "there is no command \\nope" in unknown.stdout


def test_commands_that_show_what_there_is(shell: Shell) -> None:
    shell("-c", f"{TABLE} CREATE VIEW v AS SELECT a FROM t; CREATE INDEX i ON t (a)")
    answer = shell(stdin="\\dt\n\\dv\n\\d t\n")
    assert (answer.exit_code, answer.stdout) == (
        0,
        "name\tcomment\nt\t\nname\tcomment\nv\t\nname\tnullable\ttype\tcomment\na\tt\tinteger\t\nb\tt\ttext\t\n",
    ), answer.stderr
    assert "t\ttable" in shell("-c", "\\d").stdout
    for command in ("\\dm", "\\di", "\\dn", "\\l"):
        assert shell("-c", command).exit_code == 0
    missing = shell("-c", "\\d nowhere")
    assert missing.exit_code == 1 and "nowhere" in missing.stderr


def test_commands_in_the_middle_of_a_statement(shell: Shell) -> None:
    assert shell(stdin="SELECT\n\\r\nSELECT 2 AS b;\n").stdout == "b\n2\n"
    assert shell(stdin="SELECT\n\\?\n3 AS c;\n").stdout.endswith("c\n3\n")
    assert shell(stdin="SELECT '\n\\q' AS d;\n").stdout == "d\n\\n\\\\q\n"  # in quotes it is text
    assert shell(stdin="SELECT\n\\q\n").stdout == ""


def test_without_a_server() -> None:
    answer = CliRunner().invoke(cli.app, ["sql", "--port", "1", "-c", "SELECT 1"])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("error: connection to server") and "everview serve" in answer.stderr


def test_lines_of_a_text() -> None:
    lines = TextLines(["a\r\n", "b"])
    assert [lines.read(begun=False) for _ in range(3)] == ["a", "b", None]


class Asked:
    """A connection that answers with these rows, one answer after another."""

    def __init__(self, *answers: list[tuple[str | None, ...]]) -> None:
        self._answers, self.lost, self.closed = list(answers), False, False

    def values(self, _: str) -> list[tuple[str | None, ...]]:
        return self._answers.pop(0)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([("v", None, None, None, "f")], "hydrating v"),
        ([("v", None, "0", None, "f")], "hydrating v"),
        ([("w", None, None, None, "f"), ("v", None, "10", None, "f")], "hydrating v; and 1 more"),
        (
            [("v", None, None, None, "f"), ("w", "0", "8", None, "f")],
            f"hydrating w [{'.' * 20}] 0%, reading, 0 of 8 rows; and 1 more",
        ),
        (
            [("v", "1500", "6000", "47.3", "f")],
            "hydrating v [#####...............] 25%, reading, 1,500 of 6,000 rows, about 48 s left",
        ),
        ([("v", "5999", "6000", None, "t")], "hydrating v [###################.] 99%, reading, 5,999 of 6,000 rows"),
        (
            [("v", "6000", "6000", None, "f")],
            f"hydrating v [{'#' * 20}] 100%, all 6,000 rows read, writing result and state",
        ),
        ([("v", "6000", "6000", None, "t")], f"hydrating v [{'#' * 20}] 100%, all 6,000 rows read, writing state"),
    ],
)
def test_what_is_said_of_views_that_are_waited_for(rows: list[tuple[str | None, ...]], shown: str) -> None:
    assert described(rows) == shown


def test_the_shell_and_the_demo_say_the_same_of_a_real_hydration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, stream = Endless(), io.StringIO()
    monkeypatch.setattr("everview.instance.LocalEngine", lambda: engine)
    monkeypatch.setenv("COLUMNS", "200")
    options = Options(pg=Address("127.0.0.1", 0), http=None)
    with (
        Folder(tmp_path / "data") as folder,
        Instance(folder, spark=None) as instance,
        start(instance.coordinator, options, Metrics()) as running,
    ):
        client = Client({"host": "127.0.0.1", "port": str(running.pg.port), "user": "everview", "dbname": "everview"})
        waiting = Waiting(lambda: client, stream)
        client.values("CREATE TABLE t (a int)")
        client.values("INSERT INTO t VALUES (1)")
        waiting.still()
        assert stream.getvalue() == "" and hydrating(instance) == []
        engine.endless, engine.read = True, 15

        def tells(told: str) -> bool:
            return told in hydration_line(hydrating(instance))

        client.values("CREATE MATERIALIZED VIEW slow AS SELECT a, count(*) AS n FROM t GROUP BY a")
        assert engine.begun.acquire(timeout=WAIT_S)
        for read, told in (
            (15, "1%, reading, 15 of 1,000 rows"),
            (1_000, "100%, all 1,000 rows read, writing result"),
        ):
            engine.read = read
            eventually(partial(tells, told))
            line = hydration_line(hydrating(instance))
            assert line.startswith("hydrating slow [")
            waiting.still()
            assert stream.getvalue().endswith(f"\r\x1b[K{line}")
        waiting.close()


def test_a_line_says_what_is_waited_for_and_goes() -> None:
    asked, stream = Asked([("v", "1", "4", None, "f")], [("v", "2", "4", None, "f")], []), io.StringIO()
    waiting = Waiting(lambda: asked, stream)  # type: ignore[arg-type, return-value]
    waiting.over()
    assert stream.getvalue() == ""
    for _ in range(3):
        waiting.still()
    waiting.over()
    waiting.close()
    lines = stream.getvalue().split("\r\x1b[K")
    assert [line[:12] for line in lines] == ["", "hydrating v ", "hydrating v ", ""] and asked.closed


def test_who_cannot_ask_says_nothing() -> None:
    tries, stream = [], io.StringIO()

    def connect() -> Client:
        tries.append(1)
        raise CannotConnect("there are too many sessions")

    waiting = Waiting(connect, stream)
    waiting.still()
    waiting.still()
    waiting.close()
    assert len(tries) == 1 and not stream.getvalue()


def test_who_waits_long_is_told(served: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        said: ClassVar[list[str]] = []

        def still(self) -> None:
            self.said.append("still")

        def over(self) -> None:
            self.said.append("over")

    monkeypatch.setattr(client_module, "PATIENCE_S", 0.01)
    client = Client({"host": served.pg.host, "port": str(served.pg.port), "user": "everview", "dbname": "everview"})
    client.patience = Told()
    assert client.values("SELECT count(*) FROM generate_series(1, 300000)") == [("300000",)]
    client.close()
    assert "still" in Told.said and Told.said[-1] == "over"
