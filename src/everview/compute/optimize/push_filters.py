"""Predicates move down, so that rows go as early as they can.

A predicate that cannot fail may see any rows. One that can fail is moved only to where it sees the rows that it saw
before: through a projection, a union and a map that cannot fail, and only together with all predicates before it, for
they may guard it. Never through a join or a table function, where a row may meet nothing; nor through a negation, whose
errors keep their sign. A conjunction counts as its conjuncts, one after the other, as in PostgreSQL's WHERE. Rows that
go earlier than they did no longer fail on the way, so a plan may have fewer errors than it had, and never more.

What all alternatives of a disjunction have in common is a conjunct by itself, and may turn out to be the key of a join.
What each alternative says of one input of a join follows for that input from the whole, which stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.compute.functions.lookup import any_can_fail, can_fail
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import mapped_columns, owner_of, sides_of
from everview.compute.ir.scalar import And, Column, Or, Scalar, columns_of, remap, shift, substitute

Predicates = tuple[Scalar, ...]


def push_filters(plan: ir.Relation) -> ir.Relation:
    if isinstance(plan, ir.Filter):
        return _push(plan.input, conjuncts(plan.predicates))
    return ir.with_inputs(plan, tuple(push_filters(each) for each in ir.inputs_of(plan)))


def conjuncts(predicates: Predicates) -> Predicates:
    """The predicates with conjunctions taken apart."""
    flat: list[Scalar] = []
    for each in predicates:
        if isinstance(each, And):
            flat += conjuncts(each.args)
        else:
            flat += _factored(each) if isinstance(each, Or) else (each,)
    return tuple(dict.fromkeys(flat))


def _factored(disjunction: Or) -> Predicates:
    """The conditions that all alternatives share, and the rest of the alternatives."""
    branches = [conjuncts((each,)) for each in disjunction.args]
    common = [each for each in branches[0] if not can_fail(each) and all(each in branch for branch in branches)]
    if not common:
        return (disjunction,)
    rests = [tuple(each for each in branch if each not in common) for branch in branches]
    return (*common, _any(rests)) if all(rests) else tuple(common)


def _any(branches: Sequence[Predicates]) -> Scalar:
    alternatives = tuple(each[0] if len(each) == 1 else And(each) for each in branches)
    return alternatives[0] if len(alternatives) == 1 else Or(alternatives)


def _implied(disjunction: Or, side: range) -> Scalar | None:
    """The predicate that follows for one input of a join, if each alternative restricts it without failing."""
    columns = set(side)
    branches = [tuple(part for part in conjuncts((each,)) if _may_sink(part, columns)) for each in disjunction.args]
    return _any(list(dict.fromkeys(branches))) if all(branches) else None


def _filtered(relation: ir.Relation, predicates: Predicates) -> ir.Relation:
    return ir.Filter(relation, predicates) if predicates else relation


def _push(relation: ir.Relation, predicates: Predicates) -> ir.Relation:
    """The relation filtered, with what can go below it pushed there."""
    match relation:
        case ir.Filter(input, inner):
            first = conjuncts(inner)
            return _push(input, first + tuple(each for each in predicates if each not in first))
        case ir.Project(input, columns):
            return ir.Project(_push(input, tuple(remap(each, columns.__getitem__) for each in predicates)), columns)
        case ir.Union(inputs):
            return ir.Union(tuple(_push(each, predicates) for each in inputs))
        case ir.Let(id, value, body):
            return ir.Let(id, push_filters(value), _push(body, predicates))
        case ir.Map():
            return _push_through_map(relation, predicates)
        case ir.Join():
            return _push_through_join(relation, predicates)
        case ir.Negate(input) | ir.Threshold(input) | ir.FlatMap(input):
            return _split(relation, input, predicates, set(range(ir.arity(input))))
        case ir.TopK(input, group):
            return _split(relation, input, predicates, set(group))
        case ir.Window(input, partition):
            return _split(relation, input, predicates, {key.index for key in partition if isinstance(key, Column)})
        case ir.Reduce():
            return _push_through_reduce(relation, predicates)
        case _:
            return _filtered(push_filters(relation), predicates)


def _split(relation: ir.Relation, below: ir.Relation, predicates: Predicates, columns: set[int]) -> ir.Relation:
    """Push what cannot fail and reads only these columns, which are the same above and below."""
    down = tuple(each for each in predicates if _may_sink(each, columns))
    kept = tuple(each for each in predicates if not _may_sink(each, columns))
    return _filtered(ir.with_inputs(relation, (_push(below, down),)), kept)


def _may_sink(predicate: Scalar, columns: set[int]) -> bool:
    read = columns_of(predicate)
    return bool(read) and read <= columns and not can_fail(predicate)


def _push_through_map(mapping: ir.Map, predicates: Predicates) -> ir.Relation:
    """Push predicates over added columns as predicates over the expressions, if these cannot fail."""
    width = ir.arity(mapping.input)
    values = mapped_columns(mapping.input, mapping.scalars)
    sound = not any_can_fail(mapping.scalars)
    down: list[Scalar] = []
    kept: list[Scalar] = []
    for predicate in predicates:
        added = any(index >= width for index in columns_of(predicate))
        below = substitute(predicate, values) if added else predicate
        same_rows = sound and not kept
        if (same_rows and not added) or not can_fail(below):
            down.append(below)
        else:
            kept.append(predicate)
    return _filtered(ir.Map(_push(mapping.input, tuple(down)), mapping.scalars), tuple(kept))


def _push_through_join(join: ir.Join, predicates: Predicates) -> ir.Relation:
    sides = sides_of(join)
    down: list[list[Scalar]] = [[] for _ in sides]
    kept: list[Scalar] = []
    for predicate in predicates:
        owner = owner_of(predicate, sides)
        if owner is None or not columns_of(predicate) or can_fail(predicate):
            kept.append(predicate)
        else:
            down[owner].append(shift(predicate, -sides[owner].start))
        if owner is None and isinstance(predicate, Or):
            for mine, side in zip(down, sides, strict=True):
                if (implied := _implied(predicate, side)) is not None:
                    mine.append(shift(implied, -side.start))
    inputs = tuple(_push(each, tuple(mine)) for each, mine in zip(join.inputs, down, strict=True))
    return _filtered(replace(join, inputs=inputs), tuple(kept))


def _push_through_reduce(reduce: ir.Reduce, predicates: Predicates) -> ir.Relation:
    """Push predicates over keys, which hold for a whole group or for none of its rows."""
    keys = set(range(len(reduce.keys)))
    down: list[Scalar] = []
    kept: list[Scalar] = []
    for predicate in predicates:
        below = substitute(predicate, reduce.keys) if columns_of(predicate) <= keys else predicate
        if _may_sink(predicate, keys) and not can_fail(below):
            down.append(below)
        else:
            kept.append(predicate)
    return _filtered(ir.Reduce(_push(reduce.input, tuple(down)), reduce.keys, reduce.aggregates), tuple(kept))
