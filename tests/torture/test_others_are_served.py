"""While a statement that is written to take everything runs, another client is answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.bombs import SHORT_S, explode
from tests.torture.server import torture_server


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder: Path = tmp_path_factory.mktemp("served")
    with torture_server(folder) as server:
        yield server.port()


NAMES = [
    "like, a long segment",
    "ilike",
    "like, many segments",
    "blanks in an interval",
    "values",
    "brackets",
    "trim",
    "element",
    "escapes in an element",
    "blanks around an element",
    "blanks before a time",
    "decode",
]
NAMES += ["blanks in base64", "containment", "containment of arrays", "keys", "jsonb", "jsonb_pretty"]
NAMES += ["normalize"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_another_client_is_answered(port: int, name: str) -> None:
    """Each of these kept everyone waiting until it was done, and neither timeout nor cancel ended it."""
    outcome = explode(port, name, SHORT_S)
    assert outcome.ended.startswith(("ok", "57014", "22007", "54001", "53200")), outcome
    assert len(outcome.waits_ms) > 3, outcome
