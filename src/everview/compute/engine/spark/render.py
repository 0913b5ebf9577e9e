"""A plan as one statement of Spark SQL.

Every relation is a SELECT of its columns `c0, c1, ...` and of `_diff`, in which a row may stand many times: its
multiplicity is the sum. Linear operators and joins work on such rows as they are. An operator that must know how often
a row occurs consolidates its input first, unless that is consolidated already. A `Let` becomes a common table
expression.

Expressions that fail are NULL, by the contract of the registry. `guarded`, they end the statement instead: that is
for plans from which failures have not been separated, and costs nothing while nothing fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.compute.engine.spark.canceled_tasks import column_to_read, still_wanted
from everview.compute.engine.spark.join import render_join
from everview.compute.engine.spark.literal import render_literal
from everview.compute.engine.spark.outputs import Layout, layout
from everview.compute.engine.spark.reduce import render_accumulate, render_reduce
from everview.compute.engine.spark.rows import consolidated, is_consolidated, occurs_once
from everview.compute.engine.spark.scalar import (
    FAILED,
    column,
    columns,
    render_guarded,
    render_scalar,
    render_table,
    within,
)
from everview.compute.engine.spark.window import render_topk, render_window
from everview.compute.functions import lookup
from everview.compute.functions.spark_sql import NotOnSpark, spark_type
from everview.compute.ir import relation as ir
from everview.compute.ir.scalar import Column
from everview.compute.optimize.row_by_row import RowByRow, fused
from everview.errors import EverviewError

STATEMENT_LENGTH_MAX = 16 << 20  # characters


def render_plan(plan: ir.Relation, tables: Mapping[str, str], *, guarded: bool = False, asking: bool = False) -> str:
    """The statement for the plan, consolidated; `tables` says what Spark calls each collection that the plan reads.

    `asking`: rows that are multiplied ask whether their task is canceled, see `canceled_tasks`.
    """
    renderer = _Renderer(guarded=guarded, asking=asking)
    source = renderer.source(plan, tables)
    names = columns(ir.arity(plan))
    body = f"SELECT {', '.join([*names, '_diff'])} FROM {source}"
    if not is_consolidated(plan):
        body = consolidated(source, names)
    return renderer.statement(body)


def render_relation(
    relation: ir.Relation, tables: Mapping[str, str], *, guarded: bool = False, asking: bool = False
) -> str:
    """The statement for one relation; its rows are not consolidated."""
    renderer = _Renderer(guarded=guarded, asking=asking)
    return renderer.statement(renderer.select(relation, tables))


def render_steps(
    steps: Sequence[tuple[str, ir.Relation]],
    outputs: Sequence[str],
    tables: Mapping[str, str],
    *,
    guarded: bool = False,
    single: bool = False,
    asking: bool = False,
) -> tuple[str, Layout]:
    """One statement for several relations, each of which may read those before it; `outputs` names those to give.

    The layout says where in its result they are. Rows are not consolidated. `single`: all tables are of one partition,
    and so is everything that is computed from them, which spares Spark all shuffles.
    """
    renderer = _Renderer(guarded=guarded, single=single, asking=asking)
    together = layout(steps, outputs)
    scope = dict(tables)
    for name, relation in _needed(steps, together.bases()):
        select = renderer.select(relation, scope)
        scope[name] = f"step_{len(renderer.shared)}"
        renderer.shared.append((scope[name], select))
    return renderer.statement(together.select(scope, renderer.scalar)), together


def _needed(steps: Sequence[tuple[str, ir.Relation]], bases: Sequence[str]) -> list[tuple[str, ir.Relation]]:
    """The steps that these are, or are computed from."""
    wanted, needed = set(bases), []
    for name, relation in reversed(steps):
        if name in wanted:
            needed.append((name, relation))
            wanted |= {each.id for each in ir.walk(relation) if isinstance(each, ir.Get)}
    return needed[::-1]


class _Renderer:
    """Renders relation by relation, and gathers what Lets bind."""

    def __init__(self, *, guarded: bool, single: bool = False, asking: bool = False) -> None:
        self.shared: list[tuple[str, str]] = []
        self._guarded, self._single, self._asking = guarded, single, asking
        self.scalar = render_guarded if guarded else render_scalar

    def statement(self, body: str) -> str:
        """The whole statement, with what is shared in front."""
        if not self.shared:
            return body
        shared = ",\n".join(f"{name} AS (\n{select}\n)" for name, select in self.shared)
        return within(f"WITH {shared}\n{body}", STATEMENT_LENGTH_MAX)

    def source(self, plan: ir.Relation, tables: Mapping[str, str]) -> str:
        """What to put behind FROM."""
        if isinstance(plan, ir.Get):
            if plan.id not in tables:
                raise EverviewError(f"internal error: no collection {plan.id}")
            return tables[plan.id]
        if isinstance(plan, ir.Let):
            value = self.select(plan.value, tables)
            name = f"let{len(self.shared)}"
            self.shared.append((name, value))
            return self.source(plan.body, {**tables, plan.id: name})
        return f"(\n{self.select(plan, tables)}\n)"

    def select(self, plan: ir.Relation, tables: Mapping[str, str]) -> str:
        """The relation as a SELECT."""
        return within(self._select(plan, tables), STATEMENT_LENGTH_MAX)

    def _select(self, plan: ir.Relation, tables: Mapping[str, str]) -> str:
        match plan:
            case ir.Constant():
                return _constant(plan)
            case ir.Get() | ir.Let():
                return f"SELECT {_row(columns(ir.arity(plan)))} FROM {self.source(plan, tables)}"
            case ir.Project() | ir.Map() | ir.Filter():
                return self._row_by_row(fused(plan), tables)
            case ir.FlatMap(input):
                return self._flat_map(plan, self.source(input, tables))
            case ir.Join(inputs):
                sources = [self.source(each, tables) for each in inputs]
                return render_join(plan, sources, single=self._single, asking=self._asking)
            case ir.Union(inputs):
                return self._union([self.select(each, tables) for each in inputs], ir.arity(plan))
            case ir.Negate(input):
                negated = [*columns(ir.arity(input)), "-_diff AS _diff"]
                return f"SELECT {', '.join(negated)} FROM {self.source(input, tables)}"
            case ir.Threshold(input):
                return consolidated(self.source(input, tables), columns(ir.arity(input)), "> 0")
            case ir.Reduce(input):
                return render_reduce(plan, self.source(input, tables), plain=is_consolidated(input))
            case ir.TopK(input):
                return render_topk(plan, self._plain(input, tables))
            case ir.Window(input):
                return render_window(plan, self._plain(input, tables), once=occurs_once(input))
            case ir.Recursive():
                raise NotOnSpark("WITH RECURSIVE")
            case ir.Temporal():
                raise AssertionError("only a tick program knows times: see delta.temporal")
            case ir.Occurring(input):
                return (
                    f"SELECT {', '.join([*columns(ir.arity(input)), '1L AS _diff'])} FROM {self.source(input, tables)}"
                )
            case ir.Accumulate(input):
                return render_accumulate(plan, self.source(input, tables))

    def _row_by_row(self, rows: RowByRow, tables: Mapping[str, str]) -> str:
        items = [
            column(place)
            if isinstance(each, Column) and each.index == place
            else f"{self.scalar(each)} AS {column(place)}"
            for place, each in enumerate(rows.outputs)
        ]
        passes = " AND ".join(self.scalar(predicate) for predicate in rows.predicates)
        where = f" AS s WHERE {passes}" if passes else ""  # `FROM t WHERE (c0)` would call t WHERE, and its column c0
        return f"SELECT {_row(items)} FROM {self.source(rows.input, tables)}{where}"

    def _flat_map(self, flat: ir.FlatMap, source: str) -> str:
        start = ir.arity(flat.input)
        args = [self.scalar(arg) for arg in flat.args]
        table = lookup.table_function(flat.function)
        rows = render_table(table, args, [arg.type for arg in flat.args], flat.added)
        if self._guarded and table.fails:
            present = " AND ".join([*(f"{arg} IS NOT NULL" for arg in args), "true"])
            rows = f"coalesce({rows}, CASE WHEN {present} THEN raise_error('{FAILED}') END)"
        added = columns(len(flat.added), start)
        read = column_to_read((column(place), each) for place, each in enumerate(ir.types(flat.input)))
        asked = f" WHERE {still_wanted(['_diff', read or '_diff'])}" if self._asking else ""
        return (
            f"SELECT {_row([*columns(start), *added])} FROM {source} AS s"
            f" LATERAL VIEW inline({rows}) e AS {', '.join(added)}{asked}"
        )

    def _union(self, selects: Sequence[str], width: int) -> str:
        united = "\nUNION ALL\n".join(selects)
        if not self._single or len(selects) == 1:
            return united
        return f"SELECT /*+ COALESCE(1) */ {_row(columns(width))} FROM (\n{united}\n)"

    def _plain(self, plan: ir.Relation, tables: Mapping[str, str]) -> str:
        source = self.source(plan, tables)
        return source if is_consolidated(plan) else f"(\n{consolidated(source, columns(ir.arity(plan)), '> 0')}\n)"


def _row(items: Sequence[str]) -> str:
    return ", ".join([*items, "_diff"])


def _constant(constant: ir.Constant) -> str:
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
