"""The guides: what a reader pastes works, each page as a whole, in one session, without a pause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everview.adapter.coordinator import Coordinator
from everview.adapter.statements.lexer import split
from everview.adapter.statements.parse import parse
from tests.adapter.scripts import SessionClient

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(ROOT)) for path in [*DOCS.glob("*.md"), ROOT / "README.md"])
# What a page takes for granted: tables of the reader's own.
TPCH = "CREATE SOURCE tpch FROM LOAD GENERATOR TPCH (SCALE FACTOR 0.0001, TICK INTERVAL '1h');"
BEFORE = {
    "docs/cdc.md": "CREATE TABLE bids (id bigint, auction bigint, amount int);",
    "docs/temporal-filters.md": TPCH,
}
ELSEWHERE = ("postgresql://", "s3://", "FROM files")  # places that a test does not have


def fenced(page: str, language: str) -> list[str]:
    """The blocks of a page that are in this language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [text for named, text in found if named == language]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_pasted_as_a_whole(sql: SessionClient, tmp_path: Path, page: str) -> None:
    pasted = BEFORE.get(page, "") + "\n".join(fenced(page, "sql")).replace("/shared/", f"{tmp_path}/")
    for statement in split(pasted):
        if any(place in statement for place in ELSEWHERE):
            parse(statement)
            continue
        answer = sql(statement)
        assert not (answer and answer[0].startswith("!")), (statement, answer)


def test_the_pages_have_statements() -> None:
    counts = {page: len(split("\n".join(fenced(page, "sql")))) for page in PAGES}
    assert sum(counts.values()) > 40, counts


def test_the_difference_that_the_guide_shows(sql: SessionClient) -> None:
    first, second, *_ = fenced("docs/replacing-views.md", "sql")
    for statement in sql.session.split(first + second):
        sql(statement)
    (shown,) = fenced("docs/replacing-views.md", "")
    rows = ["|".join(cell.strip() for cell in line.split("|")) for line in shown.splitlines() if "---" not in line]
    assert sql("SHOW REPLACEMENT DIFF totals_new") == rows


def test_the_rows_that_the_readme_shows(coordinator: Coordinator, sql: SessionClient) -> None:
    (pasted,) = fenced("README.md", "sql")
    answers = [sql(statement) for statement in sql.session.split(pasted)]
    shown = next(text for text in fenced("README.md", "") if text.lstrip().startswith("name  | sold"))
    rows = ["|".join(cell.strip() for cell in line.split("|")) for line in shown.splitlines()[:-1] if "---" not in line]
    assert answers[-1] == rows
