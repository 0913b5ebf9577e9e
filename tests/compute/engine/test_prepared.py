"""Statements that are planned once: over other rows they give other results, and what can't be prepared is not."""

from __future__ import annotations

import random
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from everview.compute.cancel import in_background
from everview.compute.engine.local import LocalEngine
from everview.compute.engine.spark import prepared
from everview.compute.engine.spark.engine import SparkEngine
from everview.compute.engine.spark.session import profiles
from everview.compute.ir.relation import FlatMap, Get, Join, Map, Reduce, Relation, Threshold, Union, types
from everview.compute.ir.scalar import Column, Literal
from everview.compute.ir.types import INT8, TEXT
from everview.compute.rows.arrow import rows_from_arrow, rows_to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T, U = Get("t", (INT8, TEXT)), Get("u", (INT8, TEXT))
STEPS: list[tuple[str, Relation]] = [
    ("joined", Join((T, U), ((Column(0, INT8), Column(2, INT8)),))),
    ("grouped", Reduce(Get("joined", (INT8, TEXT, INT8, TEXT)), (Column(1, TEXT),))),
    ("all", Threshold(Union((Map(T, (Literal(1, INT8),)), Map(U, (Literal(2, INT8),)))))),
]


@pytest.mark.spark
@pytest.mark.parametrize("compiled", [False, True])
def test_each_run_reads_its_own_rows(
    compiled: bool, spark: SparkSession, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "BYTES_SENT_MAX", 2_000)  # so that some go by way of a file
    monkeypatch.setattr(prepared, "BYTES_KEPT_MAX", 1_000)
    if compiled:
        monkeypatch.setattr(prepared, "INTERPRETED_ROWS_MAX", 0)
    engine, local = SparkEngine(profiles(spark).small), LocalEngine()
    for number in range(8):
        inputs = {}
        for name in ("t", "u"):
            rows = {(rng.randint(0, 20), rng.choice("abc")): 1 for _ in range(1 + 40 * number)}
            inputs[name] = rows_to_arrow(rows, (INT8, TEXT))
        names = [name for name, _ in STEPS]
        ours, theirs = (each.run_steps(STEPS, names, inputs) for each in (engine, local))
        for name, step in STEPS:
            schema = types(step)
            assert rows_from_arrow(ours[name], schema) == rows_from_arrow(theirs[name], schema), f"{name} in {number}"
    assert engine._prepared is not None
    assert len(engine._prepared) == 1, "one statement was prepared, and used from then on"


@pytest.mark.spark
def test_rows_that_are_too_large_go_another_way(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "BYTES_MAX", 1 << 20)
    engine = SparkEngine(profiles(spark).small)
    for size in (10, 1 << 20, 20):
        inputs = {"t": rows_to_arrow({(1, "x" * size): 1}, (INT8, TEXT))}
        found = engine.run_steps([("all", Threshold(T))], ["all"], inputs)["all"]
        assert rows_from_arrow(found, (INT8, TEXT)) == {(1, "x" * size): 1}


@pytest.mark.spark
def test_what_keeps_rows_between_runs_is_not_prepared(spark: SparkSession) -> None:
    statements = prepared.PreparedStatements(profiles(spark).small)
    inputs = [(rows_to_arrow({(1, "a"): 1}, (INT8, TEXT)), [0, 1], (INT8, TEXT))]
    plain = f"SELECT c0, c1, _diff FROM {prepared.input_name(0)}"
    assert statements.run(plain, inputs) is not None
    for exchanging in (
        f"SELECT /*+ REPARTITION(3) */ c0, c1, _diff FROM {prepared.input_name(0)}",
        f"SELECT /*+ BROADCAST(b) */ c0, c1, _diff FROM {prepared.input_name(0)} JOIN range(3) b ON c0 = b.id",
        f"SELECT c0, (SELECT max(c1) FROM {prepared.input_name(0)}) AS c1, _diff FROM {prepared.input_name(0)}",
    ):
        assert statements.run(exchanging, inputs) is None, exchanging
    assert len(statements) == 1


@pytest.mark.spark
@pytest.mark.parametrize("hydrates", [False, True])
def test_a_join_of_many_inputs_is_prepared(spark: SparkSession, hydrates: bool) -> None:
    """Spark multiplies their sizes, and from a size on it would divide the rows first.

    Rows of a hydration ask whether their task is canceled, and Spark derives predicates from what they ask.
    """
    engine, count = SparkEngine(profiles(spark).small), 12
    gets = tuple(Get(f"t{number}", (INT8, TEXT)) for number in range(count))
    chain = tuple((Column(2 * number, INT8), Column(2 * number + 2, INT8)) for number in range(count - 1))
    inputs = {each.id: rows_to_arrow({(1, each.id): 1}, (INT8, TEXT)) for each in gets}
    with in_background() if hydrates else nullcontext():
        found = engine.run_steps([("joined", Join(gets, chain))], ["joined"], inputs)["joined"]
    assert found.num_rows == 1
    assert engine._prepared is not None
    assert len(engine._prepared) == 1


@pytest.mark.spark
def test_rows_of_ticks_ask_only_where_they_may_take_long(spark: SparkSession) -> None:
    engine = SparkEngine(profiles(spark).small)
    small, large = (rows_to_arrow({(each, ""): 1 for each in range(count)}, (INT8, TEXT)) for count in (100, 3_000))
    series = FlatMap(T, "generate_series(int8,int8)", (Column(0, INT8), Column(0, INT8)), (INT8,))
    assert not engine._asks([T], [small, large, large])
    assert engine._asks([T], [large, large, large])
    assert not engine._asks([series], [small]) and engine._asks([series, series], [small, small])
    with in_background():
        assert engine._asks([T], [small])
