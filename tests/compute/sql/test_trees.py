"""The syntax tree of a long statement is gone when the statement is bound, without a look for garbage."""

from __future__ import annotations

import gc

import pytest
from sqlglot import exp

from everview.compute.sql.errors import SqlError
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
