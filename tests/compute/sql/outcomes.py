"""What becomes of a query here and in PostgreSQL, and whether both agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any

import psycopg

from everview.compute.interpreter.evaluate import evaluate
from everview.compute.optimize.pipeline import optimize
from everview.compute.sql.errors import FEATURE_NOT_SUPPORTED, SqlError
from everview.compute.sql.query import Plan, plan
from everview.server.pgwire.oids import oid_of
from tests.compute.sql.against import Connection, from_postgres, shown
from tests.compute.sql.words import Words


class Outcome(Enum):
    """How far a query could be compared."""

    SAME = "the same rows"
    WRONG = "wrong in the same way"  # an error of analysis, with one SQLSTATE
    REFUSED = "refused by name"
    FAILED = "fails in PostgreSQL"  # for some row, and it does not say for which; or PostgreSQL cannot do it


def outcome(connection: Connection, query: str, inputs: Mapping[str, Any]) -> tuple[Outcome, str]:
    """How a query compares, and for one that is refused why; an assertion fails where the two differ."""
    bound, error = planned(query)
    kinds = None if bound is None else [each.kind for each in bound.types]
    try:
        names, oids, expected = from_postgres(connection, query, kinds)
    except psycopg.Error as theirs:
        state = theirs.sqlstate or ""
        if state[:2] != "42":
            return Outcome.FAILED, state
        told = f"{state} {theirs.diag.message_primary}"
        assert error is not None, f"PostgreSQL says {told}, and here it means something"
        if error.sqlstate == FEATURE_NOT_SUPPORTED:
            return Outcome.REFUSED, error.message
        # Windows are the last that PostgreSQL looks at: of two mistakes it finds the other one first.
        assert error.sqlstate == state or " OVER " in query, (
            f"PostgreSQL says {told}, and here it is {error.sqlstate} {error.message}"
        )
        return Outcome.WRONG, state
    if error is not None and error.sqlstate == FEATURE_NOT_SUPPORTED:
        return Outcome.REFUSED, error.message
    assert error is None, f"PostgreSQL answers, and here it is {error.sqlstate} {error.message}"
    assert bound is not None
    assert list(bound.names) == names, f"names: ours {bound.names}, theirs {names}"
    ours = [oid_of(each) for each in bound.types]
    assert ours == oids, f"types: ours {[str(each) for each in bound.types]}, theirs {oids}"
    for relation, which in ((bound.relation, "bound"), (optimize(bound.relation), "optimized")):
        found = evaluate(relation, inputs)
        beyond = [message for _, message in found.errors if "infinite" in message]
        if beyond:  # there are infinite intervals and numerics there
            return Outcome.REFUSED, beyond[0]
        assert not found.errors, f"{which}: fails only here with {next(iter(found.errors))}"
        rows: Counter[Any] = Counter()
        for row, count in found.rows.items():
            rows[tuple(shown(value, each) for value, each in zip(row, bound.types, strict=False))] += count
        more, less = sorted((rows - expected).items(), key=str), sorted((expected - rows).items(), key=str)
        assert not more and not less, f"{which}: only here {more[:5]}, only there {less[:5]}"
        assert all(count > 0 for count in found.rows.values()), f"{which}: rows fewer than none"
    return Outcome.SAME, ""


def planned(query: str) -> tuple[Plan | None, SqlError | None]:
    """A query bound, or what is wrong with it."""
    try:
        return plan(query, Words()), None
    except SqlError as error:
        return None, error
