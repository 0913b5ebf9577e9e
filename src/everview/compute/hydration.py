"""Hydration: what a view and its arrangements hold at the first time, as plans over the contents of the inputs.

At the first time nothing is remembered and nothing has changed before, so everything is simply what its plan means.
That is what Spark is made for: each of these is one query. What several of them compute is computed once. The result
does not take longer than any query; what is kept beside it, to follow changes by, is often more, and may come later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from everview.compute.delta.program import Arrangement, TickProgram, at
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation, Steps

_HEAVY = (ir.Join, ir.Reduce, ir.TopK, ir.Window, ir.Threshold)


def can_hydrate(program: TickProgram) -> bool:
    """Whether all that is kept follows from the inputs' contents: updates to come do not."""
    return all(each.contents is not None for each in program.kept)


def hydration_steps(
    arrangements: Sequence[Arrangement], plan: Relation | None, failing: Sequence[Relation], time: int
) -> tuple[Steps, dict[str, str]]:
    """Timed steps at `time`, and the step of each arrangement's contents, by the arrangement.

    The step `output` is the view, if its plan is given, and `failing:0` and so on are the rows that fail.
    """
    wanted: dict[str, Relation] = {}
    kept: dict[str, str] = {}
    for each in arrangements:
        assert each.contents is not None
        wanted[f"kept:{each.name}"] = each.contents
        kept[each.name] = f"kept:{each.name}"
    if plan is not None:
        wanted["output"] = plan
    wanted |= {f"failing:{place}": each for place, each in enumerate(failing)}
    shared, rest = _shared(wanted)
    return [*shared, *((name, at(each, time)) for name, each in rest.items())], kept


def _shared(plans: Mapping[str, Relation]) -> tuple[Steps, dict[str, Relation]]:
    """Parts that occur in several plans, and are more than a pass over rows, as steps; and the plans over these."""
    counts: Counter[Relation] = Counter()
    for plan in plans.values():
        bound = {each.id for each in ir.walk(plan) if isinstance(each, ir.Let)}
        parts = {each for each in ir.walk(plan) if isinstance(each, _HEAVY) and not _speaks_of(each, bound)}
        counts.update(parts)
    common = {part for part, count in counts.items() if count > 1}
    names: dict[Relation, str] = {}
    steps: list[tuple[str, Relation]] = []

    def replaced(plan: Relation, *, top: bool = False) -> Relation:
        if plan in common and not top:
            if plan not in names:
                inside = replaced(plan, top=True)
                names[plan] = f"shared:{len(names)}"
                steps.append((names[plan], inside))
            return ir.Get(names[plan], ir.types(plan))
        below = ir.inputs_of(plan)
        return ir.with_inputs(plan, tuple(replaced(each) for each in below)) if below else plan

    rest = {name: replaced(plan) for name, plan in plans.items()}
    return steps, rest


def _speaks_of(plan: Relation, names: set[str]) -> bool:
    return any(isinstance(each, ir.Get) and each.id in names for each in ir.walk(plan))
