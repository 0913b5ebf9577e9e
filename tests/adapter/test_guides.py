"""The guides: what a reader pastes works, from the first block to the last."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from tests.adapter.scripts import SessionClient

DOCS = Path(__file__).parents[2] / "docs"


def fenced(guide: str, language: str) -> list[str]:
    """The blocks of a guide that are in this language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / guide).read_text(), re.MULTILINE | re.DOTALL)
    return [text for named, text in found if named == language]


@pytest.mark.parametrize("guide", ["replacing-views.md"])
def test_every_block_can_be_pasted(coordinator: Coordinator, sql: SessionClient, guide: str) -> None:
    blocks = fenced(guide, "sql")
    assert len(blocks) > 5
    for block in blocks:
        for statement in sql.session.split(block):
            answer = sql(statement)
            assert not (answer and answer[0].startswith("!")), (statement, answer)
        end = time.monotonic() + 20
        while any(item.automatic for item in coordinator.catalog.state.items.values()):
            assert time.monotonic() < end, "it was never applied"
            time.sleep(0.01)


def test_the_difference_that_the_guide_shows(sql: SessionClient) -> None:
    first, second, *_ = fenced("replacing-views.md", "sql")
    for statement in sql.session.split(first + second):
        sql(statement)
    (shown,) = fenced("replacing-views.md", "")
    rows = ["|".join(cell.strip() for cell in line.split("|")) for line in shown.splitlines() if "---" not in line]
    assert sql("SHOW REPLACEMENT DIFF totals_new") == rows
