"""Short forms of the torture, a few seconds each; `make torture` runs the long ones."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.torture.__main__ import SCENARIOS, main
from tests.torture.bombs import Outcome, anomalies, late_ms
from tests.torture.report import SHORT, Line, Report
from tests.torture.soak import MEASURES, Sample, flat, java_within_bounds


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_no_anomaly(name: str, tmp_path: Path, rng: random.Random) -> None:
    lines = list(SCENARIOS[name](SHORT, rng, tmp_path))
    assert not [anomaly for line in lines for anomaly in line.anomalies]
    assert any(line.attempts for line in lines)


def waited(*waits_ms: float) -> Outcome:
    return Outcome("a bomb", "57014 canceled", 1, 5.0, list(waits_ms))


def test_what_others_wait_while_a_bomb_runs_counts() -> None:
    """Beside what they wait without one: a slow machine is not an anomaly, and a fast one is no excuse."""
    quick, slow = waited(*[1.0] * 100), waited(*[30.0] * 100)
    assert (late_ms(quick), late_ms(slow), late_ms(waited())) == (20.0, 150.0, 20.0)
    late = waited(*[1.0] * 90, *[100.0] * 10)
    assert len(anomalies(late, late_ms(quick))) == 1
    assert anomalies(late, late_ms(slow)) == [] and anomalies(late) == []
    for stuck in (waited(), waited(1.0, 6_000.0)):
        assert len(anomalies(stuck)) == len(anomalies(stuck, late_ms(slow))) == 1


def grown(figure: str, growth: float, before: float = 40.0) -> list[Sample]:
    """A soak in which one figure is higher in its last third."""
    quiet = Sample(memory_mb=200, descriptors=40, files=30, files_mb=50, java_mb=1_000)
    return [replace(quiet, **{figure: before + growth * (number >= 20)}) for number in range(30)]


def test_what_grows_during_a_soak_counts_by_limits_of_its_own() -> None:
    measures = {measure.figure: measure for measure in MEASURES}
    for figure, growth in (("descriptors", 10), ("files", 25), ("files_mb", 25), ("memory_mb", 50)):
        assert flat(measures[figure], grown(figure, growth), long=True).anomalies, figure
        assert not flat(measures[figure], grown(figure, growth), long=False).anomalies
        assert not flat(measures[figure], grown(figure, 5), long=True).anomalies
    assert not flat(measures["memory_mb"], grown("memory_mb", 25), long=True).anomalies


def test_the_memory_of_java_is_bounded_and_flat() -> None:
    for growth, flat_too, count in ((100, True, 0), (400, True, 1), (400, False, 0), (2_000, True, 2)):
        line = java_within_bounds(grown("java_mb", growth, 1_000), flat_too=flat_too)
        assert len(line.anomalies) == count, line


def test_an_anomaly_is_told_and_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SCENARIOS, "kills", lambda *_: iter([Line("kills", 3, ["a row is gone"], "1 s")]))
    assert main(["kills", "--short", "--seed", "5"]) == 1
    said = capsys.readouterr().out
    assert "ANOMALY a row is gone" in said
    assert "seed 5, 1 anomalies" in said


def test_the_table() -> None:
    report = Report([("kills", Line("of a server", 1200)), ("soak", Line("memory", 3, ["it grew"], "5 MB"))])
    assert report.table().splitlines() == [
        "scenario  what         tried  anomalies  figures",
        "------------------------------------------------",
        "kills     of a server  1,200          0",
        "soak      memory           3          1  5 MB",
    ]


def test_what_is_asked_for_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sharks"])
    assert "no scenario named sharks" in capsys.readouterr().err
