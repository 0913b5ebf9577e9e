"""Ranges, checkpoints and who may commit what, under any sequence of opens."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.flow.checkpoint import START, Checkpoint
from everview.flow.errors import DriverFailed, InvalidMaterialization
from everview.flow.fencing import OwnedRange, carve, merge_patch
from everview.flow.keyrange import PLACE_MAX, WHOLE, KeyRange, check_partition
from everview.storage.shard import FOREVER

EDGES = [0, 1, 2**30, 2**31 - 1, 2**31, 3 * 2**30, PLACE_MAX - 1, PLACE_MAX]


@st.composite
def ranges(draw: st.DrawFn) -> KeyRange:
    begin, end = sorted((draw(st.sampled_from(EDGES)), draw(st.sampled_from(EDGES))))
    return KeyRange(begin, end)


@given(ranges(), ranges())
def test_ranges(one: KeyRange, other: KeyRange) -> None:
    common, rest = one.meet(other), one.minus(other)
    assert one.overlaps(other) == (common is not None)
    pieces = sorted([*rest, *([common] if common else [])])
    assert sum(each.end - each.begin + 1 for each in pieces) == one.end - one.begin + 1
    assert all(one.meet(each) == each for each in pieces)
    assert KeyRange.parse(str(one)) == one


@pytest.mark.parametrize("count", [1, 2, 3, 7, 256])
def test_splits_partition(count: int) -> None:
    assert check_partition(WHOLE.split(count)) == WHOLE.split(count)


@pytest.mark.parametrize("wrong", [[], [KeyRange(0, 5)], [KeyRange(0, 5), KeyRange(5, PLACE_MAX)]])
def test_not_a_partition(wrong: list[KeyRange]) -> None:
    with pytest.raises(InvalidMaterialization):
        check_partition(wrong)


@given(st.lists(st.tuples(ranges(), st.integers(1, 5)), min_size=1, max_size=12))
def test_every_place_goes_on_from_where_it_was(opens: list[tuple[KeyRange, int]]) -> None:
    """Opens and commits of any ranges, beside a model that has one frontier and one owner for each place."""
    rows: dict[KeyRange, OwnedRange] = {}
    frontier = dict.fromkeys(EDGES, START)
    owner: dict[int, int] = {}
    for number, (range, step) in enumerate(opens):
        carved = carve(rows.values(), range)
        for gone in carved.removed:
            del rows[gone]
        for row in carved.written:
            assert row.range not in rows
            rows[row.range] = row
        ordered = sorted(rows)
        assert all(a.end < b.begin for a, b in pairwise(ordered)), "rows are disjoint"
        mine = carved.mine
        places = np.array([place for place in EDGES if range.begin <= place <= range.end])
        assert mine.checkpoint.frontiers(places).tolist() == [frontier[place] for place in places.tolist()]
        for place in places.tolist():
            owner[place] = number
        # Whoever owned a part of it before finds no row of its own any more.
        assert all(row.fence == mine.fence for row in carved.written)
        rows[range] = OwnedRange(range, mine.fence, Checkpoint.at(range, mine.checkpoint.highest + step))
        for place in places.tolist():
            frontier[place] = mine.checkpoint.highest + step


@given(ranges())
def test_an_older_owner_has_no_row(range: KeyRange) -> None:
    first = carve([], WHOLE).mine
    second = carve([first], range)
    assert (first.range, first.fence) not in {(row.range, row.fence) for row in second.written}


def test_intents_are_kept_where_they_are() -> None:
    low, high = WHOLE.split(2)
    rows = [
        OwnedRange(low, 1, Checkpoint.at(low, 5), intent=Checkpoint.at(low, 9)),
        OwnedRange(high, 2, Checkpoint.at(high, 7)),
    ]
    mine = carve(rows, WHOLE).mine
    assert mine.intent == Checkpoint(((low, 9), (high, 7)))
    assert carve(rows, high).mine.intent is None


def test_checkpoints_as_text() -> None:
    low, high = WHOLE.split(2)
    checkpoint = Checkpoint(((low, 5), (high, FOREVER)))
    assert Checkpoint.decode(checkpoint.encode()) == checkpoint
    assert checkpoint.within(KeyRange(low.end, high.begin)).pieces == (
        (KeyRange(low.end, low.end), 5),
        (KeyRange(high.begin, high.begin), FOREVER),
    )
    for text in ("", "{}", "[]", '[["x", 1]]', "[[1]]"):
        with pytest.raises((DriverFailed, InvalidMaterialization)):
            Checkpoint.decode(text)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
        ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": [2]}, {"a": [2]}),
    ],
)
def test_merge_patch(target: dict[str, object], patch: dict[str, object], result: dict[str, object]) -> None:
    assert merge_patch(target, patch) == result
