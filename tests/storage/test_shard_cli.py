"""`everview shard` as a person and a script meet it: what it prints into a pipe and at a terminal, and how it fails."""

from __future__ import annotations

import datetime
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from everview import cli
from everview.storage.batch import update_schema
from everview.storage.codec import FORMAT
from everview.storage.consensus.sqlite import SqliteConsensus
from everview.storage.contract import AdvanceClock, Clone, Drop, Follow
from everview.storage.environment import Environment
from everview.storage.row_text import csv_lines, json_lines, row_values
from everview.timely.antichain import Antichain

NOW = 1_893_456_000_123  # 2030-01-01 00:00:00.123Z
ITEMS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
KINDS = pa.schema(
    {
        "yes": pa.bool_(),
        "small": pa.int16(),
        "float": pa.float64(),
        "money": pa.decimal128(12, 2),
        "text": pa.string(),
        "bytes": pa.binary(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
        "pair": pa.struct({"a": pa.int64(), "b": pa.string()}),
    }
)
Run = Callable[..., tuple[int, str, str]]


def updates(schema: pa.Schema, *rows: tuple[object, ...]) -> pa.Table:
    """Of `(time, diff, *data)`."""
    schema = update_schema(schema)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with collections of every sort, which nobody has open."""
    folder = tmp_path_factory.mktemp("shard") / "data"
    with Environment.open(folder, background=False) as environment:
        environment.commit(AdvanceClock("wall", None, NOW))
        read, write = environment.create("items", ITEMS, key=["id"], at=NOW)
        write = environment.append(
            write,
            updates(ITEMS, (NOW, 1, 1, "clock"), (NOW, 1, 2, None), (NOW + 1, -1, 1, "clock")),
            Antichain(NOW + 5),
        )
        environment.commit(
            Follow(read, "wall", lag_ms=2500), Clone(write, lease_ms=90_000), AdvanceClock("wall", NOW, NOW)
        )

        _, write = environment.create("twice", ITEMS)
        environment.append(write, updates(ITEMS, (0, 2, 1, "a\tb\n\x1b[31m"), (3, 1, 2, 'q"\\')), Antichain())

        _, write = environment.create("kinds", KINDS)
        at = datetime.datetime(2030, 1, 2, 3, 4, 5, 600000, datetime.UTC)
        values = (True, -3, 1.5, Decimal("-12.50"), "", b"\x00\xff", at.date(), at, ["x", None], {"a": 1, "b": "y,z"})
        nan = (False, 0, float("nan"), *[None] * 7)
        environment.append(write, updates(KINDS, (0, 1, *values), (0, 1, *nan), (0, 1, *[None] * 10)), Antichain(1))

        _, write = environment.create("large", ITEMS)
        rows = pa.table(
            {"_time": [0] * 60_000, "_diff": [1] * 60_000, "id": range(60_000), "name": ["x" * 20] * 60_000}
        )
        environment.append(write, rows, Antichain(1))
        environment.create("new", ITEMS)
        dropped = environment.create("dropped", ITEMS)
        environment.commit(*map(Drop, dropped))
    return folder


@pytest.fixture
def run(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `everview shard` and gives its exit code and what it wrote."""
    monkeypatch.delenv("EVERVIEW_DEBUG", raising=False)

    def run(*arguments: object, data: Path = data) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["everview", "shard", *map(str, arguments), "--data", str(data)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return (left.value.code or 0, *capsys.readouterr())  # type: ignore[return-value]

    return run


def lines(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_ls(run: Run) -> None:
    code, out, err = run("ls")
    table = lines(out)
    assert (code, err) == (0, "")
    assert table[0] == ["collection", "since", "upper", "updates", "size"]
    assert [row[:4] for row in table[1:]] == [
        ["items", str(NOW), str(NOW + 5), "3"],
        ["kinds", "0", "1", "3"],
        ["large", "0", "1", "60000"],
        ["new", "0", "0", "0"],
        ["twice", "0", "∅", "2"],
    ]
    assert all(int(row[4]) > 0 for row in table[1:] if row[0] != "new")


def test_show(run: Run) -> None:
    code, out, err = run("show", "items")
    summary, columns, capabilities, batches = (lines(block) for block in out.split("\n\n"))
    assert (code, err) == (0, "")
    assert dict(summary)["since"] == str(NOW) and dict(summary)["retractions"] == "1"
    assert columns == [["column", "type", "NULLs", "key"], ["id", "int64", "no", "1"], ["name", "string", "yes", ""]]
    assert capabilities[0] == ["capability", "kind", "frontier", "follows", "lease"]
    (read, write, leased) = sorted(row[1:] for row in capabilities[1:])
    assert read == ["read", str(NOW), "clock wall, 2.5 s behind", "\\N"]
    assert sorted([write, leased])[1] == ["write", str(NOW + 5), "\\N", "\\N"]
    assert re.fullmatch(r"1.5 min, [\d.]+ (min|s) left", sorted([write, leased])[0][3])
    assert [row[:5] for row in batches[1:]] == [["0", str(NOW), str(NOW + 5), "\\N", "3"]]
    assert batches[1][6] == "inline"


def test_show_parts(run: Run, data: Path) -> None:
    _, out, _ = run("show", "large")
    assert lines(out)[-1][-1] == "1 part"
    _, out, _ = run("show", "large", "--all")
    assert (data / "blob" / lines(out)[-1][-1]).is_file()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["items"], "id\tname\n2\t\\N\n"),
        (["items", "--as-of", NOW], "id\tname\n1\tclock\n2\t\\N\n"),
        (["items", "--as-of", "2030-01-01T00:00:00.123Z"], "id\tname\n1\tclock\n2\t\\N\n"),
        (["items", "--as-of", "2030-01-01 01:00:00.123+01:00"], "id\tname\n1\tclock\n2\t\\N\n"),
        (["twice"], '_diff\tid\tname\n2\t1\ta\\tb\\n\\x1b[31m\n1\t2\tq"\\\\\n'),
        (["twice", "--as-of", 2], "_diff\tid\tname\n2\t1\ta\\tb\\n\\x1b[31m\n"),
        (
            ["items", "--changes-from", NOW],
            f"_time\t_diff\tid\tname\n{NOW}\t1\t1\tclock\n{NOW}\t1\t2\t\\N\n{NOW + 1}\t-1\t1\tclock\n",
        ),
        (
            ["items", "--changes-from", NOW + 1, "--changes-to", NOW + 2],
            f"_time\t_diff\tid\tname\n{NOW + 1}\t-1\t1\tclock\n",
        ),
        (["items", "--format", "csv"], "_diff,id,name\n1,2,\n"),
        (["items", "--format", "json"], '{"_diff": 1, "id": 2, "name": null}\n'),
    ],
)
def test_read(run: Run, arguments: list[object], expected: str) -> None:
    code, out, err = run("read", *arguments)
    header, *rows = out.splitlines() if "json" not in arguments else ["", *out.splitlines()]
    wanted, *others = expected.splitlines() if "json" not in arguments else ["", *expected.splitlines()]
    assert (code, header, sorted(rows), err) == (0, wanted, sorted(others), "")


def test_every_kind_of_value(run: Run) -> None:
    _, out, _ = run("read", "kinds", "--format", "json")
    values, nulls, nan = sorted(map(json.loads, out.splitlines()), key=lambda row: str(row["yes"]), reverse=True)
    assert values == {
        "_diff": 1,
        "yes": True,
        "small": -3,
        "float": 1.5,
        "money": "-12.50",
        "text": "",
        "bytes": "\\x00ff",
        "day": "2030-01-02",
        "at": "2030-01-02 03:04:05.600000Z",
        "tags": ["x", None],
        "pair": {"a": 1, "b": "y,z"},
    }
    assert (nulls["float"], nan["float"]) == (None, "nan")
    _, out, _ = run("read", "kinds", "--format", "csv")
    row = '1,true,-3,1.5,-12.50,"",\\x00ff,2030-01-02,2030-01-02 03:04:05.600000Z,'
    assert row + '"[""x"", null]","{""a"": 1, ""b"": ""y,z""}"' in out.splitlines()
    assert "1,,,,,,,,,," in out.splitlines()
    _, out, _ = run("read", "kinds")
    row = "true\t-3\t1.5\t-12.50\t\t\\x00ff\t2030-01-02\t2030-01-02 03:04:05.600000Z\t"
    assert row + '["x", null]\t{"a": 1, "b": "y,z"}' in out.splitlines()


def test_limits(run: Run) -> None:
    code, out, err = run("read", "large")
    assert (code, len(out.splitlines()), err) == (0, 101, "… 59,900 more rows; --limit says how many to show\n")
    code, out, err = run("read", "large", "--limit", 3, "--format", "json")
    assert (code, len(out.splitlines()), err) == (0, 3, "… 59,997 more rows; --limit says how many to show\n")
    code, out, err = run("read", "large", "--limit", 59_999, "--format", "csv")
    assert (code, len(out.splitlines()), err) == (0, 60_000, "… 1 more row; --limit says how many to show\n")
    code, out, err = run("read", "large", "--limit", 0, "--format", "csv")
    assert (code, len(out.splitlines()), err) == (0, 60_001, "")
    assert sorted(int(line.split(",")[1]) for line in out.splitlines()[1:]) == list(range(60_000))


def test_more_than_are_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everview.storage.row_text.COUNT_ROWS_MAX", 1000)
    _, out, err = run("read", "large", "--limit", 5)
    assert (len(out.splitlines()), err) == (6, "… up to 59,995 more rows; --limit says how many to show\n")


def test_the_earliest_changes_come_first(run: Run, tmp_path: Path) -> None:
    with Environment.open(tmp_path / "data", background=False) as environment:
        _, write = environment.create("u1", ITEMS)
        for time in range(50):
            write = environment.append(write, updates(ITEMS, (time, 1, time, "x")), Antichain(time + 1))
        _, out, err = run("read", "u1", "--changes-from", 3, "--limit", 4, data=tmp_path / "data")
    assert [row[0] for row in lines(out)] == ["_time", "3", "4", "5", "6"]
    assert err == "… 43 more rows; --limit says how many to show\n"


def test_nothing_to_show(run: Run, tmp_path: Path) -> None:
    Environment.open(tmp_path / "data", background=False).close()
    assert run("ls", data=tmp_path / "data") == (0, "collection\tsince\tupper\tupdates\tsize\n", "no collections\n")
    assert run("read", "items", "--changes-from", NOW, "--changes-to", NOW) == (
        0,
        "_time\t_diff\tid\tname\n",
        "no rows\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "item"], "collection item does not exist\nhint: did you mean items?"),
        (["show", "zzz"], "collection zzz does not exist\nhint: the environment has items, kinds, large, new, twice"),
        (["read", "dropped"], "collection dropped does not exist\ndetail: it was dropped"),
        (["read", "items", "--as-of", 5], f"collection items can no longer be read at 5\ndetail: since is {NOW}"),
        (["read", "large", "--as-of", 1], "collection large cannot be read at 1 yet\ndetail: upper is 1"),
        (
            ["read", "new"],
            "collection new cannot be read at any time yet\ndetail: since is 0 and upper is 0: no time lies between\n"
            "hint: it can be read once its writer moves upper on",
        ),
        (
            ["read", "items", "--changes-from", NOW, "--changes-to", NOW + 9],
            f"changes of collection items up to {NOW + 9} are not complete yet\ndetail: upper is {NOW + 5}",
        ),
        (["read", "items", "--changes-to", 3], "--changes-to needs --changes-from\nhint: say from when on"),
        (["read", "items", "--changes-from", 3, "--changes-to", 2], "--changes-to 2 is before --changes-from 3"),
        (
            ["read", "items", "--changes-from", 3, "--as-of", 2],
            "--as-of reads contents, --changes-from changes\nhint: leave one of them out",
        ),
        (
            ["read", "items", "--limit", 0],
            "a table shows at most 10000 rows\nhint: use --format csv or --format json for any number",
        ),
    ],
)
def test_errors(run: Run, arguments: list[object], message: str) -> None:
    assert run(*arguments) == (1, "", f"error: {message}\n")


@pytest.mark.parametrize("time", ["soon", "-1", str(2**63), "2030-13-01"])
def test_what_is_no_time(run: Run, time: str) -> None:
    code, out, err = run("read", "items", "--as-of", time)
    assert (code, out) == (2, "")
    assert "Invalid value for '--as-of'" in err


def test_no_environment(run: Run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        message = f"error: there is no environment in {folder}\nhint: name its folder with --data\n"
        assert run("ls", data=folder) == (1, "", message)


def test_a_newer_format(run: Run, tmp_path: Path) -> None:
    Environment.open(tmp_path / "data", background=False).close()
    consensus = SqliteConsensus(tmp_path / "data" / "consensus.db")
    consensus.commit({}, {FORMAT: b"7"}, 1 << 40)
    consensus.close()
    code, out, err = run("ls", data=tmp_path / "data")
    assert (code, out) == (1, "")
    assert err.startswith(
        "error: the environment has format 7, and this version of everview knows formats up to 2\nhint: "
    )


def test_damage_is_named_and_the_rest_still_listed(run: Run, tmp_path: Path) -> None:
    with Environment.open(tmp_path / "data", background=False) as environment:
        for id in ("u1", "u2"):
            _, write = environment.create(id, ITEMS)
            environment.append(write, updates(ITEMS, (0, 1, 1, "x")), Antichain(1))
    consensus = SqliteConsensus(tmp_path / "data" / "consensus.db")
    ((key, entry),) = consensus.scan("inline/u1/")
    consensus.commit({}, {key: entry.value[:-1]}, 1 << 40)
    consensus.close()
    code, out, err = run("ls", data=tmp_path / "data")
    assert (code, [row[:4] for row in lines(out)[1:]]) == (1, [["u1", "0", "1", "damaged"], ["u2", "0", "1", "1"]])
    message = "error: collection u1, batch 0 is damaged\ndetail: its checksum does not match its bytes\n"
    assert err == message
    assert run("read", "u1", data=tmp_path / "data") == (1, "", message)
    assert run("read", "u2", data=tmp_path / "data")[0] == 0


def everview(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from everview.cli import main; main()", *map(str, arguments)]


def at_a_terminal(*arguments: object) -> str:
    """What the command shows at a terminal of 100 columns, without colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(everview(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux says that the other side is closed
        return b""


def test_at_a_terminal(data: Path) -> None:
    shown = at_a_terminal("shard", "ls", "--data", data)
    assert re.search(r"^items +1893456000123 +1893456000128 +3 +\d+ B$", shown, re.MULTILINE)
    assert re.search(r"^2030-01-01 00:00:00Z +2030-01-01 00:00:00Z$", shown, re.MULTILINE)
    assert re.search(r"^large +0 +1 +60,000 +[\d.]+ KiB$", shown, re.MULTILINE)
    assert re.search(r"^twice +0 +∅ \(closed\) +2 +\d+ B$", shown, re.MULTILINE)

    shown = at_a_terminal("shard", "show", "items", "--data", data)
    assert re.search(r"^since +1893456000123 +2030-01-01 00:00:00.123Z$", shown, re.MULTILINE)

    shown = at_a_terminal("shard", "read", "twice", "--data", data)
    assert shown.startswith("twice as of 3\n") and "\\x1b[31m" in shown
    shown = at_a_terminal("shard", "read", "large", "--limit", 2, "--data", data)
    assert shown.endswith("\n… 59,998 more rows; --limit says how many to show")


def test_into_a_pipe_that_is_closed(data: Path) -> None:
    command = everview("shard", "read", "large", "--format", "csv", "--limit", 0, "--data", data)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout is not None and reading.stderr is not None
        assert reading.stdout.readline() == b"_diff,id,name\n"
        reading.stdout.close()
        assert reading.stderr.read() == b""


@pytest.mark.parametrize("command", ["ls", "show", "read"])
def test_help_has_examples(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0 and "Examples" in out and f"everview shard {command}" in out


def test_infinite_dates_and_timestamps_are_shown() -> None:
    days, moments = pa.array([2**31 - 1, -(2**31), 0], pa.int32()), pa.array([2**63 - 1, -(2**63), 0], pa.int64())
    lists = pa.array([[2**31 - 1, None], None, []], pa.list_(pa.int32()))
    table = pa.table(
        {
            "day": days.cast(pa.date32()),
            "at": moments.view(pa.timestamp("us", "UTC")),
            "days": lists.cast(pa.list_(pa.date32())),
        }
    )
    assert list(row_values(table)) == [
        ("infinity", "infinity", ["infinity", None]),
        ("-infinity", "-infinity", None),
        ("1970-01-01", "1970-01-01 00:00:00.000000Z", []),
    ]
    assert csv_lines(table) == [
        'infinity,infinity,"[""infinity"", null]"',
        "-infinity,-infinity,",
        "1970-01-01,1970-01-01 00:00:00.000000Z,[]",
    ]
    assert next(iter(json_lines(table))) == '{"day": "infinity", "at": "infinity", "days": ["infinity", null]}'
