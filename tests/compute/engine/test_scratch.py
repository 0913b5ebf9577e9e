"""Temporary folders end with their process, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from everview.compute.engine.spark.scratch import PREFIX, Scratch

CHILD = """
import sys
from everview.compute.engine.spark.scratch import Scratch

print(Scratch().path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    being_made = tmp_path / f"{PREFIX}being-made"
    being_made.mkdir()
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=-1, stdout=-1, text=True) as child:
        assert child.stdout is not None
        theirs = Path(child.stdout.readline().strip())
        first = Scratch()
        assert theirs.is_dir()  # while it lives
        child.send_signal(signal.SIGKILL)
        child.wait()
    second = Scratch()
    assert not theirs.exists()
    assert first.path.is_dir() and being_made.is_dir()
    first.close()
    second.close()
    assert not first.path.exists() and not second.path.exists()
