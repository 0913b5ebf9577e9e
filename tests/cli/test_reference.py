"""The SQL reference says what the code says."""

from __future__ import annotations

from tests.cli.reference import DOCUMENT, written


def test_the_reference_is_up_to_date() -> None:
    text = DOCUMENT.read_text()
    assert written(text) == text, "run: python -m tests.cli.reference"
