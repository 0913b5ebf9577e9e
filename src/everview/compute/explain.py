"""EXPLAIN of a maintained view: the plan, the tick program, what it keeps, and the statements that Spark runs.

Whatever is recomputed from the rows of a key, rather than from totals, says so, with the key: the cost of a change of
that part follows the number of rows of the keys that change. Of what is kept it says until when: temporal filters end
the life of rows, and without one only a change of the inputs does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from everview.compute.delta import extremes
from everview.compute.delta.per_key import Operator, firsts_of, key_of
from everview.compute.delta.program import Lookup, TickProgram
from everview.compute.delta.totals import is_additive
from everview.compute.engine.contract import NotSupported
from everview.compute.engine.spark.engine import rendering
from everview.compute.engine.spark.render import render_steps
from everview.compute.ir import relation as ir
from everview.compute.ir.show import show, show_scalar
from everview.compute.lifetimes import kept_until
from everview.compute.pending_updates import state_id
from everview.compute.shared_arrangements import SharedStatus
from everview.compute.view import View
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment

SHARED = "; read from "  # in the lines of arrangements that are shared
_LINE_MAX = 160
_WORDS = re.compile(r"(?:'(?:[^'\\]|\\.)*'|`[^`]*`|\S)+")  # with what is quoted, whatever it has in it
_NAMES = {ir.Reduce: "aggregates", ir.TopK: "order and limit", ir.Window: "window functions", ir.Threshold: "set"}


def explain_view(
    view: View,
    id: GlobalId | None = None,
    environment: Environment | None = None,
    shared: Mapping[str, SharedStatus] | None = None,
) -> str:
    """The view as text; if it is installed, with the sizes of its state, and with whom it shares which of it."""
    sizes = {} if id is None or environment is None else _sizes(view, id, environment, shared or {})
    parts = [
        ("Plan", show(view.plan)),
        ("Kept", _kept(view.program, sizes, shared or {})),
        ("Recomputed per key", _recomputed(view)),
        ("Tick", _tick(view.program)),
        ("Spark SQL", _statements(view.program)),
    ]
    return "\n\n".join(f"{title}\n{_indented(text)}" for title, text in parts)


def _sizes(
    view: View, id: GlobalId, environment: Environment, shared: Mapping[str, SharedStatus]
) -> dict[str, tuple[int, int]]:
    sizes = {}
    for each in view.program.arrangements:
        kept = shared[each.name].id if each.name in shared else state_id(id, each)
        batches = environment.shard(kept).batches.values()
        sizes[each.name] = (sum(batch.rows for batch in batches), sum(batch.size_bytes for batch in batches))
    return sizes


def _kept(program: TickProgram, sizes: Mapping[str, tuple[int, int]], shared: Mapping[str, SharedStatus]) -> str:
    lines = []
    for each in program.arrangements:
        what = "totals" if each.totals else "updates to come" if each.pending else "rows"
        key = "time" if each.pending else (", ".join(f"#{index}" for index in each.key) or "nothing, all of it is read")
        line = f"{each.name}: {what} of {each.source}, found by {key}, {kept_until(each)}"
        if each.name in sizes:
            rows, size = sizes[each.name]
            line += f" ({rows:,} updates, {size:,} bytes)"
        if each.name in shared:
            line += f"{SHARED}{_shared(shared[each.name])}"
        lines.append(line)
    return "\n".join(lines) or "nothing: every change of the input is one of the output"


def _shared(status: SharedStatus) -> str:
    arranged = status.arranged
    columns, key = (", ".join(f"#{place}" for place in part) for part in (arranged.columns, arranged.key))
    return f"{status.id}, which has {columns} of {arranged.collection} by {key} for {', '.join(status.users)}"


def _recomputed(view: View) -> str:
    lines = []
    for each in ir.walk(view.plan):
        if isinstance(each, ir.Reduce) and is_additive(each):
            continue
        if isinstance(each, (ir.Reduce, ir.TopK, ir.Window, ir.Threshold)):
            lines.append(f"{_NAMES[type(each)]}: from {_rows_seen(each)}")
    return "\n".join(lines) or "nothing"


def _rows_seen(operator: Operator) -> str:
    if isinstance(operator, ir.Threshold):
        return "the copies of a row"
    key = ", ".join(f"#{index}" for index in key_of(operator))
    equal = f"the rows that are equal in {key}" if key else "all rows"
    firsts, totals = firsts_of(operator), ""
    if isinstance(operator, ir.Reduce) and extremes.is_mixed(operator):
        firsts, totals = extremes.firsts_of(operator), ", and totals"
    if not firsts:
        return equal if key else "all rows, for there is no key"
    which = f"that may be among the first {firsts[0].count}" if isinstance(operator, ir.TopK) else "that may decide"
    seen = f"those of {equal}, and of their changes, {which}{totals}"
    return f"{seen}; from all of them while they are few" if key else seen


def _tick(program: TickProgram) -> str:
    lines = []
    for number, stage in enumerate(program.stages, 1):
        lines.append(f"stage {number}")
        lines += [f"  look up {_lookup(each)}" for each in stage.lookups]
        lines.append(f"  compute {', '.join(stage.outputs)}")
    for name, step in program.steps:
        lines.append(f"{name} =")
        lines.append(_indented(show(step)))
    lines.append(f"the output changes by {program.output}{', from moment to moment' if program.moments else ''}")
    return "\n".join(lines)


def _lookup(lookup: Lookup) -> str:
    keys = [f"({', '.join(map(show_scalar, each.key))}) of {each.table}" for each in lookup.sources]
    where = f"{lookup.reading}" + (f", tag {lookup.tag}" if lookup.tag is not None else "")
    if lookup.first is not None:
        both = f"{lookup.arrangement} and {lookup.sources[0].table}"
        return f"{lookup.name} in {both}: what may be among the first {lookup.first.count}, for {where}"
    return f"{lookup.name} in {lookup.arrangement} by {' and '.join(keys) or 'everything'} for {where}"


def _statements(program: TickProgram) -> str:
    """The statements of Spark for a tick in which every input changes."""
    given: dict[str, str] = {}
    for _, step in program.steps:
        names = {each.id for each in ir.walk(step) if isinstance(each, ir.Get)}
        given |= {name: f"`{name}`" for name in names if name not in dict(program.steps)}
    statements = []
    for stage in program.stages:
        needed, steps = set(stage.outputs), []
        for name, step in reversed(program.steps):
            if name in needed and name not in given:
                steps.append((name, step))
                needed |= {each.id for each in ir.walk(step) if isinstance(each, ir.Get)}
        try:
            with rendering():
                statement, _ = render_steps(steps[::-1], stage.outputs, given)
                statements.append(statement)
        except NotSupported as error:
            return str(error)
        given |= {name: f"`{name}`" for name in stage.outputs}
    return "\n".join(_folded(line) for line in ";\n".join(statements).splitlines())


def _folded(line: str) -> str:
    """A line broken at spaces outside of quotes into lines of about a screen's width."""
    words = _WORDS.findall(line)
    lines, start = [], 0
    for place in range(len(words)):
        if place > start and sum(map(len, words[start : place + 1])) + place - start > _LINE_MAX:
            lines.append(" ".join(words[start:place]))
            start = place
    return "\n  ".join([*lines, " ".join(words[start:])])


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
