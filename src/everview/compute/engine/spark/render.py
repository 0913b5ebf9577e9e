"""A plan as one statement of Spark SQL.

Every relation is a SELECT of its columns `c0, c1, ...` and of `_diff`, in which a row may stand many times: its
multiplicity is the sum. Linear operators and joins work on such rows as they are. An operator that must know how often
a row occurs consolidates its input first, unless that is consolidated already. A `Let` becomes a common table
expression.

What is still to come: failures as data. A call that fails gives NULL here, as the registry's contract has it, and the
row with that NULL goes on; the local engine leaves it out and counts an error instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.compute.engine.local import library
from everview.compute.engine.spark.join import render_join
from everview.compute.engine.spark.literal import render_literal
from everview.compute.engine.spark.reduce import render_reduce
from everview.compute.engine.spark.rows import consolidated, is_consolidated, occurs_once
from everview.compute.engine.spark.scalar import column, columns, render_scalar
from everview.compute.engine.spark.topk import render_topk
from everview.compute.engine.spark.window import render_window
from everview.compute.functions.spark_sql import spark_type
from everview.compute.ir.relation import (
    Constant,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    Threshold,
    TopK,
    Union,
    Window,
    arity,
)
from everview.compute.ir.scalar import Scalar, columns_of
from everview.errors import EverviewError


def render_plan(plan: Relation, tables: Mapping[str, str]) -> str:
    """The statement for the plan, consolidated; `tables` says what Spark calls each collection that the plan reads."""
    renderer = _Renderer()
    source = renderer.source(plan, tables)
    names = columns(arity(plan))
    body = f"SELECT {', '.join([*names, '_diff'])} FROM {source}"
    if not is_consolidated(plan):
        body = consolidated(source, names)
    if not renderer.shared:
        return body
    shared = ",\n".join(f"{name} AS (\n{select}\n)" for name, select in renderer.shared)
    return f"WITH {shared}\n{body}"


class _Renderer:
    """Renders relation by relation, and gathers what Lets bind."""

    def __init__(self) -> None:
        self.shared: list[tuple[str, str]] = []

    def source(self, plan: Relation, tables: Mapping[str, str]) -> str:
        """What to put behind FROM."""
        if isinstance(plan, Get):
            if plan.id not in tables:
                raise EverviewError(f"internal error: no collection {plan.id}")
            return tables[plan.id]
        if isinstance(plan, Let):
            value = self.select(plan.value, tables)
            name = f"let{len(self.shared)}"
            self.shared.append((name, value))
            return self.source(plan.body, {**tables, plan.id: name})
        return f"(\n{self.select(plan, tables)}\n)"

    def select(self, plan: Relation, tables: Mapping[str, str]) -> str:
        """The relation as a SELECT."""
        match plan:
            case Constant():
                return _constant(plan)
            case Get() | Let():
                return f"SELECT {_row(columns(arity(plan)))} FROM {self.source(plan, tables)}"
            case Project(input, chosen):
                picked = [f"{column(index)} AS {column(place)}" for place, index in enumerate(chosen)]
                return f"SELECT {_row(picked)} FROM {self.source(input, tables)}"
            case Map(input, scalars):
                return _map(scalars, arity(input), self.source(input, tables))
            case Filter(input, predicates):
                passes = " AND ".join(render_scalar(predicate) for predicate in predicates) or "true"
                return f"SELECT {_row(columns(arity(input)))} FROM {self.source(input, tables)} WHERE {passes}"
            case FlatMap(input):
                return _flat_map(plan, self.source(input, tables))
            case Join(inputs):
                return render_join(plan, [self.source(each, tables) for each in inputs])
            case Union(inputs):
                return "\nUNION ALL\n".join(self.select(each, tables) for each in inputs)
            case Negate(input):
                negated = [*columns(arity(input)), "-_diff AS _diff"]
                return f"SELECT {', '.join(negated)} FROM {self.source(input, tables)}"
            case Threshold(input):
                return consolidated(self.source(input, tables), columns(arity(input)), "> 0")
            case Reduce(input):
                return render_reduce(plan, self.source(input, tables), plain=is_consolidated(input))
            case TopK(input):
                return render_topk(plan, self._plain(input, tables))
            case Window(input):
                return render_window(plan, self._plain(input, tables), once=occurs_once(input))

    def _plain(self, plan: Relation, tables: Mapping[str, str]) -> str:
        source = self.source(plan, tables)
        return source if is_consolidated(plan) else f"(\n{consolidated(source, columns(arity(plan)), '> 0')}\n)"


def _row(items: Sequence[str]) -> str:
    return ", ".join([*items, "_diff"])


def _constant(constant: Constant) -> str:
    names = columns(len(constant.schema))
    if not constant.rows:
        nulls = [
            f"cast(NULL as {spark_type(each)}) AS {name}" for each, name in zip(constant.schema, names, strict=True)
        ]
        return f"SELECT {', '.join([*nulls, '0L AS _diff'])} WHERE false"
    rows = [
        ", ".join(
            [*(render_literal(value, each) for value, each in zip(row, constant.schema, strict=True)), f"{diff}L"]
        )
        for row, diff in constant.rows
    ]
    return f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)} AS v({_row(names)})"


def _map(scalars: Sequence[Scalar], start: int, source: str) -> str:
    """One SELECT for all scalars that read no column which another of the same SELECT adds."""
    select = f"SELECT {_row(columns(start))} FROM {source}"
    place = 0
    while place < len(scalars):
        end = place + 1
        while end < len(scalars) and max(columns_of(scalars[end]), default=-1) < start + place:
            end += 1
        added = [f"{render_scalar(scalars[each])} AS {column(start + each)}" for each in range(place, end)]
        select = f"SELECT {_row([*columns(start + place), *added])} FROM {source}"
        source, place = f"(\n{select}\n)", end
    return select


def _flat_map(flat: FlatMap, source: str) -> str:
    start = arity(flat.input)
    args = [render_scalar(arg) for arg in flat.args]
    rows = library.table_function(flat.function).spark(args, [arg.type for arg in flat.args], flat.added)
    added = columns(len(flat.added), start)
    return (
        f"SELECT {_row([*columns(start), *added])} FROM {source} AS s"
        f" LATERAL VIEW inline({rows}) e AS {', '.join(added)}"
    )
