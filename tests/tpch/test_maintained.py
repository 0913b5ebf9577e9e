"""The 22 queries maintained over a stream of orders that come, change and go: at every time equal to recomputation."""

from __future__ import annotations

import random
from typing import Any

import pytest

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.query import plan
from tests.compute.delta.history import Maintained, Updates, contents
from tests.tpch.miniature import generate
from tests.tpch.queries import QUERIES
from tests.tpch.test_binding import Tpch

TICKS = [(0, 1), (1, 2), (2, 5), (5, 6), (6, 9)]


def stream(rng: random.Random) -> dict[str, Updates]:
    """Most rows are there from the start; orders with their lines come and go; customers and parts are updated."""
    data = generate(rng, orders=70)
    history: dict[str, list[tuple[Any, int, int]]] = {
        name: [(row, 0, 1) for row in rows] for name, rows in data.items()
    }
    lines: dict[int, list[Any]] = {}
    for line in data["lineitem"]:
        lines.setdefault(line[0], []).append(line)
    for order in data["orders"]:
        came = rng.choice([0, 0, 0, 1, 3, 6])
        went = rng.choice([None, None, came + 1, 8]) if came < 7 else None
        for name, rows in (("orders", [order]), ("lineitem", lines.get(order[0], []))):
            for row in rows:
                history[name].remove((row, 0, 1))
                history[name].append((row, came, 1))
                if went is not None:
                    history[name].append((row, went, -1))
    for name, column in (("customer", 6), ("part", 5), ("supplier", 3)):
        for row in rng.sample(data[name], 3):
            time = rng.randint(1, 8)
            other = rng.choice(data[name])[column]
            history[name] += [(row, time, -1), ((*row[:column], other, *row[column + 1 :]), time, 1)]
    return dict(history)


@pytest.mark.parametrize("number", QUERIES)
def test_maintained_is_recomputed_at_every_time(number: int) -> None:
    history = stream(random.Random(number))
    relation = optimize(plan(QUERIES[number], Tpch()).relation)
    view = Maintained(relation)
    for lower, upper in TICKS:
        view.tick(history, lower, upper)
        for time in range(lower, upper):
            found = contents(view.output, time)
            expected = evaluate(relation, {name: contents(updates, time) for name, updates in history.items()})
            assert not expected.errors
            assert found == expected.rows, f"at {time}"
