"""`everview cdc`: reading, checking and mangling streams from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from everview import cli
from everview.cdc import inspect
from everview.cdc.codec.contract import codec_for
from everview.cdc.contract import Message, Progress, Updates
from everview.cdc.schema import StreamSchema
from everview.timely.antichain import Antichain
from tests.cdc.shards import COLUMNS

JSON, AVRO = (codec_for(suffix, StreamSchema(COLUMNS)) for suffix in (".jsonl", ".avro"))
SAID: list[Message[Any]] = [
    Updates([((n, f"row {n}"), time, 1) for time in range(3) for n in range(time * 10, time * 10 + 4)]),
    Updates([((0, "row 0"), 2, -1)]),
    Progress(Antichain(0), Antichain(2), ((0, 4), (1, 4))),
    Progress(Antichain(2), Antichain(9), ((2, 5),)),
]


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    folder = tmp_path / "stream"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(JSON.encode_file(SAID[::2]))
    (folder / "b.avro").write_bytes(AVRO.encode_file(SAID[1::2]))
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, ["cdc", *map(str, arguments)])


def output(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_cat_shows_the_history(stream: Path) -> None:
    lines = [line.split("\t") for line in output("cat", stream).splitlines()]
    assert lines[:2] == [["time", "diff", "n", "text"], ["0", "+1", "0", "row 0"]]
    assert len(lines) == 14 and [line[0] for line in lines[1:]] == ["0"] * 4 + ["1"] * 4 + ["2"] * 5


def test_cat_as_json_and_limited(stream: Path) -> None:
    result = run("cat", stream, "--format", "json", "--limit", 2)
    first = json.loads(result.stdout.splitlines()[0])
    assert first == {"data": {"n": 0, "text": "row 0"}, "time": 0, "diff": 1}
    assert len(result.stdout.splitlines()) == 2 and "11 more" in result.stderr
    assert len(output("cat", stream, "--format", "json", "--limit", 0).splitlines()) == 13


def test_cat_messages(stream: Path) -> None:
    text = output("cat", stream, "--messages")
    assert "a.jsonl\tupdates\t12\tat 0, 1, 2" in text
    assert "b.avro\tprogress\t1\t[2, 9) 2: 5" in text


def test_verify_and_stats_of_a_sound_stream(stream: Path) -> None:
    assert "sound: 13 updates at 3 times, up to 9" in run("verify", stream).stderr
    fields = dict(line.split("\t") for line in output("stats", stream).split("\n\n")[0].splitlines())
    wanted = {"files": "2", "updates": "13", "repeated updates": "0", "closed before": "9", "times with updates": "3"}
    assert wanted.items() <= fields.items()


def test_verify_says_what_is_wrong(stream: Path) -> None:
    conflict: list[Message[Any]] = [Updates([((0, "row 0"), 0, 7)]), Progress(Antichain(9), Antichain(20), ((11, 3),))]
    (stream / "c.jsonl").write_bytes(JSON.encode_file(conflict) + b"nonsense\n{")
    result = run("verify", stream)
    assert result.exit_code == 1
    assert "not sound" in str(result.exception) and "stalls: 2" in str(result.exception)
    assert "diffs conflict" in result.stdout and "have diffs 1, 7" in result.stdout
    assert "11\tmissing updates\t3\t0" in result.stdout
    assert "c.jsonl" in result.stdout and "ends within a record" in result.stdout
    assert "undecodable records\t1" in output("stats", stream)


def test_a_gap_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(JSON.encode_file([SAID[0], SAID[3]]))
    result = run("verify", tmp_path)
    assert result.exit_code == 1 and "gap" in result.stdout
    assert "no closed updates" in run("cat", tmp_path).output


def impossible(folder: Path, shape: Any, times: tuple[Any, Any]) -> Path:
    """A complete stream in which a row is there at the first time, and gone twice at the last."""
    first, last = times
    updates = Updates([((1, "x"), first, 1), ((1, "x"), last, -2)])
    upper: Any = Antichain(9) if shape == 0 else Antichain((9, 9))
    stated = Progress(Antichain(shape), upper, ((first, 1), (last, 1)))
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(codec_for(".jsonl", StreamSchema(COLUMNS, shape)).encode_file([updates, stated]))
    return folder


def test_cat_and_stats_judge_multiplicities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = impossible(tmp_path / "line", 0, (1, 5))
    plane = impossible(tmp_path / "plane", (0, 0), ((1, 1), (5, 5)))
    for folder, first, wrong in ((line, "1", "5"), (plane, "1, 1", "5, 5")):
        found = run("stats", folder).stdout
        assert "negative" in found and "open updates\t1" in found
        shown = run("cat", folder)
        assert len(shown.stdout.splitlines()) == 2 and first in shown.stdout and wrong not in shown.stdout
        assert wrong in shown.stderr and "is open: " in shown.stderr
        assert run("verify", folder).exit_code == 1
    assert "closed before\t5" in run("stats", line).stdout
    monkeypatch.setattr(inspect, "JUDGED_MAX", 1)
    for command in ("stats", "cat"):
        result = run(command, line)
        assert "'everview cdc verify' does" in result.stderr and "negative" not in result.output
    assert run("verify", line).exit_code == 1


@pytest.mark.parametrize("files", ["jsonl", "avro"])
def test_a_mangled_copy_says_the_same(stream: Path, tmp_path: Path, files: str) -> None:
    for seed in (1, 2, 3):
        target = tmp_path / f"mangled {files} {seed}"
        run("mangle", stream, target, "--seed", seed, "--files", files)
        assert run("verify", target).exit_code == 0
        same = [set(output("cat", each, "--format", "json").splitlines()) for each in (stream, target)]
        assert same[0] == same[1]
    again = run("mangle", stream, target)
    assert again.exit_code == 1 and "not empty" in str(again.exception)


def test_files_without_a_schema_need_one(tmp_path: Path) -> None:
    folder = tmp_path / "stream"
    folder.mkdir()
    header, _, rest = JSON.encode_file(SAID).partition(b"\n")
    (folder / "a.jsonl").write_bytes(rest)
    assert "--schema" in str(run("stats", folder).exception)
    (tmp_path / "schema.json").write_bytes(header)
    assert "updates\t13" in output("stats", folder, "--schema", tmp_path / "schema.json")


def test_no_stream(tmp_path: Path) -> None:
    assert "no stream in" in str(run("cat", tmp_path).exception)


@pytest.mark.parametrize("command", ["cat", "verify", "stats", "mangle"])
def test_help_has_examples(command: str) -> None:
    assert "Examples" in output(command, "--help")
