"""The syntax tree of a long statement is gone when the statement is bound, without a look for garbage."""

from __future__ import annotations

import gc

import pytest
from sqlglot import exp

from everview.adapter.statements.nodes import Query
from everview.adapter.statements.parse import parse
from everview.compute.sql import lexer
from everview.compute.sql.errors import SqlError
from everview.compute.sql.parse import parse_query
from everview.compute.sql.query import plan
from tests.compute.sql.tables import Tables


@pytest.mark.parametrize("sound", [True, False])
def test_a_large_tree_is_taken_apart(sound: bool) -> None:
    text = "VALUES " + ", ".join(f"({number}, 'x')" for number in range(5_000)) + ("" if sound else ", (1)")
    gc.collect()
    gc.disable()
    try:
        if sound:
            plan(text, Tables())
        else:
            with pytest.raises(SqlError):
                plan(text, Tables())
        assert sum(isinstance(each, exp.Tuple) for each in gc.get_objects()) < 100
    finally:
        gc.enable()


def test_words_are_let_go_once_they_are_parsed() -> None:
    """Piece by piece: who has a list at its end lets go of all of it at once, which holds up everyone."""
    text = "VALUES (1, 2), (3, $1)"
    given = lexer.tokens(text)[:-1]
    parse_query(lexer.SqlText(text, 0, given))
    assert given == []
    given = lexer.tokens(text)[:-1]
    statement = parse(lexer.SqlText(text, 0, given))
    assert given == []
    assert isinstance(statement, Query) and isinstance(statement.query, lexer.SqlText)
    assert len(statement.query.take_tokens()) == 12
