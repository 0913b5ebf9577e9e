"""From updates to documents, beside a model that does it row by row in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.compute.ir.types import BOOLEAN, INT8, TEXT
from everview.flow import combine as combine_module
from everview.flow.combine import combine
from everview.flow.contract import DELETE, EXISTS, Binding, Field
from everview.flow.drivers.contract import Keys
from everview.flow.errors import DuplicateKey, FlowError, Retracted
from everview.flow.keyrange import hashes_of
from everview.flow.reduction import Reduction

VIEW = Binding("u1", (Field("k", INT8), Field("v", TEXT)), ("k",))
LOG = Binding("u1", (Field("k", INT8), Field("v", TEXT)), (), delta_updates=True)
SUM = (Field("k", INT8), Field("n", INT8, Reduction.parse("sum")), Field("last", TEXT))


def updates(binding: Binding, rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of (time, diff, *values)."""
    columns = {
        field.name: pa.array([row[2 + at] for row in rows], field.type) for at, field in enumerate(binding.schema)
    }
    return pa.table(
        {
            **columns,
            "_time": pa.array([row[0] for row in rows], pa.int64()),
            "_diff": pa.array([row[1] for row in rows], pa.int64()),
        }
    )


def documents(
    binding: Binding, rows: list[tuple[Any, ...]], loaded: list[dict[str, Any]] | None = None, **more: Any
) -> Any:
    combiner = combine(binding, updates(binding, rows), more.get("keys", Keys.ENFORCED), more.get("first", False))
    asked = [key for table in combiner.loads() for key in table.to_pylist()]
    assert len(asked) == len({tuple(each.values()) for each in asked})
    if loaded:
        combiner.loaded(pa.Table.from_pylist(loaded, schema=binding.schema))
    return [row for table in combiner.stores() for row in table.to_pylist()]


HISTORY = st.lists(st.dictionaries(st.integers(0, 6), st.sampled_from(["x", "y", "z", None]), max_size=4), max_size=6)


@given(HISTORY, HISTORY, st.booleans())
def test_a_view_is_brought_from_one_state_to_the_other(
    before: list[dict[int, str | None]], steps: list[dict[int, str | None]], lying_hashes: bool
) -> None:
    state: dict[int, str] = {}
    for step in before:
        state.update({k: v for k, v in step.items() if v is not None})
    rows, now, time = [], dict(state), 10
    for step in steps:
        for k, v in step.items():
            if k in now:
                rows.append((time, -1, k, now.pop(k)))
            if v is not None:
                now[k] = v
                rows.append((time, 1, k, v))
        time += 1
    with pytest.MonkeyPatch.context() as patch:
        if lying_hashes:
            real = hashes_of
            patch.setattr(combine_module, "hashes_of", lambda table, key: real(table, key) % 3)
        stored = documents(VIEW, rows)
    held = dict(state)
    for each in stored:
        assert each[EXISTS] == (each["k"] in held)
        if each[DELETE]:
            del held[each["k"]]
        else:
            held[each["k"]] = each["v"]
    assert held == now
    assert len({each["k"] for each in stored}) == len(stored)


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2, 1, "x")],
        [(1, 1, 1, "x"), (1, 1, 1, "y")],
        [(1, -1, 1, "x"), (1, -1, 1, "y")],
        [(1, -2, 1, "x")],
    ],
)
def test_two_rows_under_one_key(rows: list[tuple[Any, ...]]) -> None:
    with pytest.raises(DuplicateKey, match="under one key"):
        documents(VIEW, rows)


def test_a_key_that_is_there_already() -> None:
    with pytest.raises(DuplicateKey, match="under one key"):
        documents(VIEW, [(1, 1, 1, "x")], [{"k": 1, "v": "y"}], keys=Keys.CHECKED)
    assert documents(VIEW, [(1, 1, 1, "x")], keys=Keys.CHECKED, first=True)[0][EXISTS] is False


def test_where_keys_are_loaded_the_endpoint_says_what_exists() -> None:
    rows = [(1, 1, 1, "x"), (1, -1, 2, "y"), (1, 1, 3, "z")]
    stored = documents(VIEW, rows, [{"k": 1, "v": "x"}], keys=Keys.LOADED)
    assert {each["k"]: (each[EXISTS], each[DELETE]) for each in stored} == {
        1: (True, False),
        2: (True, True),
        3: (False, False),
    }


def test_rows_without_a_key() -> None:
    stored = documents(LOG, [(1, 2, 1, "x"), (2, 1, None, None), (3, 1, 7, "q"), (4, -1, 7, "q")])
    assert Counter((each["k"], each["v"]) for each in stored) == Counter({(1, "x"): 2, (None, None): 1})
    with pytest.raises(Retracted, match="can only add"):
        documents(LOG, [(1, -1, 1, "x")])


def test_null_keys() -> None:
    with pytest.raises(FlowError, match='field "k" of the key is NULL'):
        documents(VIEW, [(1, 1, None, "x")])


def test_reduced_with_what_is_loaded() -> None:
    binding = Binding("u1", SUM, ("k",))
    rows = [(2, 1, 1, 5, "b"), (1, 1, 1, 3, "a"), (1, -1, 2, 4, "gone"), (3, 2, 3, 1, "new")]
    stored = documents(binding, rows, [{"k": 1, "n": 10, "last": "z"}, {"k": 2, "n": 4, "last": "gone"}])
    assert {each["k"]: (each["n"], each["last"], each[EXISTS]) for each in stored} == {
        1: (18, "b", True),
        2: (0, "gone", True),
        3: (2, "new", False),
    }


def test_delta_updates_are_what_the_transaction_alone_adds_up_to() -> None:
    binding = Binding("u1", SUM, ("k",), delta_updates=True)
    assert [each["n"] for each in documents(binding, [(1, 1, 1, -1, "a"), (1, 1, 1, 3, "b"), (2, 1, 1, 2, "c")])] == [4]
    assert [each["n"] for each in documents(binding, [(3, 1, 1, 6, "a"), (4, 1, 1, -7, "b"), (5, 1, 1, -1, "c")])] == [
        -2
    ]


def test_a_document_that_says_so_is_deleted() -> None:
    fields = (Field("k", INT8), Field("gone", BOOLEAN, Reduction(delete=True)))
    binding = Binding("u1", fields, ("k",))
    stored = documents(binding, [(1, 1, 1, False), (2, 1, 1, True), (1, 1, 2, None)], [{"k": 1, "gone": False}])
    assert {each["k"]: each[DELETE] for each in stored} == {1: True, 2: False}


def test_a_key_that_is_null_for_a_while_is_no_error() -> None:
    came_and_went = [(1, 1, None, "x"), (2, -1, None, "x"), (2, 1, 7, "y")]
    assert [row["k"] for row in documents(VIEW, came_and_went)] == [7]
    reduced = Binding("u1", SUM, ("k",))
    rows = [(1, 1, None, 5, "x"), (2, -1, None, 5, "x"), (2, 1, 7, 3, "y")]
    assert [(row["k"], row["n"]) for row in documents(reduced, rows)] == [(7, 3)]
    with pytest.raises(FlowError, match='field "k" of the key is NULL'):
        documents(reduced, rows[:1])
