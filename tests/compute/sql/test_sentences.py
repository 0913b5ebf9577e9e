"""Random queries as text: the same rows, names and types as from a real PostgreSQL, and the same when maintained."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.ir.relation import Get, Recursive, walk
from everview.compute.optimize.pipeline import optimize
from everview.compute.rows.collection import rows_of
from tests.compute.delta.history import Maintained, Updates, contents
from tests.compute.sql.against import Connection, create_and_load
from tests.compute.sql.outcomes import Outcome, outcome, planned
from tests.compute.sql.sentences import sentence
from tests.compute.sql.words import SCHEMAS, rows_for

QUERIES, QUERIES_LONG = 150, 5000
QUERIES_A_TABLE = 200  # after so many there are other rows
VIEWS, VIEWS_LONG = 40, 1500
TIMES = 6


@pytest.fixture
def connection(postgres_url: str) -> Iterator[Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute("SET statement_timeout = '20s'")
        yield opened
        opened.execute("DROP SCHEMA IF EXISTS words CASCADE")


def test_the_same_as_in_postgres(
    connection: Connection, rng: random.Random, long_forms: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    first, wrong, refused = rng.randrange(1 << 32), [], Counter[str]()
    outcomes = Counter[Outcome]()
    inputs: dict[str, Any] = {}
    for number in range(QUERIES_LONG if long_forms else QUERIES):
        seed = first + number
        if number % QUERIES_A_TABLE == 0:
            data = rows_for(random.Random(seed))
            create_and_load(connection, "words", SCHEMAS, data)
            inputs = {name: rows_of([(row, 1) for row in rows], types(name)) for name, rows in data.items()}
            loaded = seed
        query = sentence(seed)
        try:
            found, why = outcome(connection, query, inputs)
        except Exception as error:  # whatever it is, the query belongs to it
            wrong.append(f"sentence({seed}) over rows_for({loaded})\n{query}\n    {type(error).__name__}: {error}")
        else:
            outcomes[found] += 1
            refused.update([why] if found is Outcome.REFUSED else [])
    with capsys.disabled():
        for why, count in refused.most_common():
            print(f"\nrefused {count} times: {why}", end="")
    assert not wrong, f"{len(wrong)} queries:\n" + "\n".join(sorted(wrong, key=len)[:5])
    assert outcomes[Outcome.SAME] > 0.8 * outcomes.total(), f"most queries mean something: {outcomes}"


def test_the_same_when_maintained(rng: random.Random, long_forms: bool) -> None:
    first = rng.randrange(1 << 32)
    statements = 0
    for number in range(VIEWS_LONG if long_forms else VIEWS):
        statements += check_maintained(first + number)
    assert statements > 0, "the views do something"


def check_maintained(seed: int) -> int:
    """One query maintained over a history of its tables; gives the number of statements."""
    rng, query = random.Random(seed), sentence(seed)
    bound, _ = planned(query)
    if bound is None or any(isinstance(each, Recursive) for each in walk(bound.relation)):
        return 0
    plan = optimize(bound.relation)
    used = {each.id for each in walk(plan) if isinstance(each, Get)}
    history = {name: history_of(rng, name, rows) for name, rows in rows_for(rng).items() if name in used}
    expected = [evaluate(plan, {name: contents(each, time) for name, each in history.items()}) for time in range(TIMES)]
    if any(each.errors for each in expected):
        return 0  # errors have tests of their own
    view = Maintained(plan)
    cuts = sorted(rng.sample(range(1, TIMES), rng.randint(0, 3)))
    for lower, upper in pairwise([0, *cuts, TIMES]):
        view.tick(history, lower, upper)
    for time, each in enumerate(expected):
        assert contents(view.output, time) == each.rows, f"sentence({seed}) at {time}\n{query}"
        assert not contents(view.errors, time), f"sentence({seed}) at {time}\n{query}"
    return view.statements


def history_of(rng: random.Random, name: str, rows: list[tuple[Any, ...]]) -> Updates:
    """Rows that are born, die and come back."""
    updates = []
    for row, count in rows_of([(row, 1) for row in rows], types(name)).items():
        alive, last = False, rng.randint(0, TIMES - 1)
        for _ in range(rng.randint(1, 3)):
            updates.append((row, last, -count if alive else count))
            alive, last = not alive, rng.randint(last, TIMES - 1)
    return updates


def types(name: str) -> tuple[Any, ...]:
    """The types of a table's columns."""
    return tuple(SCHEMAS[name].values())
