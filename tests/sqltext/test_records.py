"""The records over the wire: as PostgreSQL answers them, and the same in every way that Everview computes them.

All records run where small reads are computed. By columns run some files, and on Spark and as materialized views some
queries of some files, which the seed in the header chooses; in the long form all of them do.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from everview.adapter import peek
from everview.instance import Folder, Instance
from everview.server.addresses import Address
from everview.server.run import Options, start
from tests.adapter.scripts import Step
from tests.conftest import LONG
from tests.sqltext.records import NAMES, File, difference, is_query, load
from tests.sqltext.served import Run
from tests.sqltext.write import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS_MIN = 1_500
# In the short form: so many files, and so many queries of each.
FILES_CHOSEN, QUERIES_CHOSEN = 6, 7
TOGETHER = 25  # views of one run, in the long form
CHOSEN = NAMES if LONG else sorted(random.Random(os.environ["EVERVIEW_SEED"]).sample(NAMES, FILES_CHOSEN))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server without Spark."""
    with Folder(tmp_path_factory.mktemp("here")) as folder, Instance(folder, spark=None) as instance:
        yield from served(instance)


@pytest.fixture(scope="module")
def on_spark(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[str]:
    """The address of a server whose views are maintained by Spark."""
    with Folder(tmp_path_factory.mktemp("on-spark")) as folder, Instance(folder, spark=spark) as instance:
        yield from served(instance)


def served(instance: Instance) -> Iterator[str]:
    """Serve the instance."""
    with start(instance.coordinator, Options(pg=Address("127.0.0.1", 0), http=None)) as running:
        yield f"host=127.0.0.1 port={running.pg.port} user=everview dbname=everview"


def test_there_are_many() -> None:
    files = [load(name) for name in NAMES]
    assert sum(len(file.steps) for file in files) >= RECORDS_MIN
    unanswered = [f"{file.name}, line {step.line}" for file in files for step in file.steps if not step.expected]
    assert not unanswered, unanswered


@pytest.mark.parametrize("name", NAMES)
def test_postgres_answers_the_same(name: str, postgres_url: str) -> None:
    steps = load(name).steps
    found = [difference(step, answer) for step, answer in answers(steps, postgres_url)]
    wrong = [each for each in found if each is not None]
    assert not wrong, report(name, wrong)


@pytest.mark.parametrize("name", NAMES)
def test_computed_here(name: str, here: str) -> None:
    with Run(here, load(name)) as run:
        run.here()
    assert not run.wrong, report(name, run.wrong)


@pytest.mark.parametrize("name", CHOSEN)
def test_computed_by_columns(name: str, here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peek, "INTERPRETED_UPDATES_MAX", -1)
    with Run(here, load(name)) as run:
        run.here()
    assert not run.wrong, report(name, run.wrong)


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CHOSEN)
def test_computed_in_every_way(name: str, on_spark: str, rng: random.Random, long_forms: bool) -> None:
    file = load(name)
    wrong: list[str] = []
    for chosen in selections(file, rng, long_forms=long_forms):
        with Run(on_spark, file) as run:
            run.every_way(chosen)
        wrong += run.wrong
    assert not wrong, report(name, wrong)


def selections(file: File, rng: random.Random, *, long_forms: bool) -> list[list[Step]]:
    """The queries to run in every way, in groups that are run together."""
    queries = [step for step in file.steps if is_query(step.statement)]
    if not long_forms:
        return [rng.sample(queries, min(QUERIES_CHOSEN, len(queries)))]
    if not file.is_maintained:
        return [queries]
    return [queries[first : first + TOGETHER] for first in range(0, len(queries), TOGETHER)]


def report(name: str, wrong: list[str]) -> str:
    """All that is wrong with a file."""
    return f"{len(wrong)} answers of {name} are wrong:\n" + "\n".join(wrong)
