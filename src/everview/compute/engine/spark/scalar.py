"""Scalars in Spark SQL: the renderings of the registry, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.compute.engine.local import library
from everview.compute.engine.spark.literal import render_literal
from everview.compute.functions.spark_sql import render
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Column, Literal, Or, Scalar

Place = Callable[[int], str]


def column(index: int) -> str:
    """The name of the column at a position."""
    return f"c{index}"


def columns(count: int, start: int = 0) -> list[str]:
    """The names of so many columns."""
    return [column(index) for index in range(start, start + count)]


def render_scalar(scalar: Scalar, place: Place = column) -> str:
    """The expression over columns that are where `place` says; raises NotOnSpark."""
    match scalar:
        case Column(index):
            return place(index)
        case Literal(value, sql_type):
            return render_literal(value, sql_type)
        case Call(function, args, result):
            return render(library.function(function), _each(args, place), [arg.type for arg in args], result)
        case And(args):
            return f"({' AND '.join(_each(args, place))})"
        case Or(args):
            return f"({' OR '.join(_each(args, place))})"
        case Case(branches, otherwise):
            whens = " ".join(
                f"WHEN {render_scalar(when, place)} THEN {render_scalar(then, place)}" for when, then in branches
            )
            return f"CASE {whens} ELSE {render_scalar(otherwise, place)} END"
        case Coalesce(args):
            return f"coalesce({', '.join(_each(args, place))})"


def _each(scalars: Sequence[Scalar], place: Place) -> list[str]:
    return [render_scalar(scalar, place) for scalar in scalars]
