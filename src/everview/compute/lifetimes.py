"""Until when an arrangement keeps a row, for EXPLAIN: as what the row itself says, in terms of stored columns.

A column is written `id.#index`, by the id of its collection: who knows names puts them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everview.compute.delta.program import Arrangement
from everview.compute.functions.time_sets import INTERVALS
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import sides_of
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Case, Column, Failed, Literal, Scalar, columns_of
from everview.compute.ir.show import show_scalar

FOR_EVER = "for ever"
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "the time moved on": "+", "the time moved back": "-"}
_MICROS = {"the moment moved on": "+", "the moment moved back": "-"}

Lets = Mapping[str, Relation]


def kept_until(arrangement: Arrangement) -> str:
    """Until when, as text: for ever, if only a change of the inputs takes a row away."""
    if arrangement.pending:
        return "until their time"
    if arrangement.contents is None:
        return FOR_EVER
    ends = _ends(arrangement.contents, {})
    if not ends:
        return FOR_EVER
    return f"until {' or '.join(dict.fromkeys(ends))}"


def _ends(relation: Relation, lets: Lets) -> list[str]:
    """Whatever ends the life of a row first; empty if nothing does."""
    match relation:
        case ir.Let(id, value, body):
            return _ends(body, {**lets, id: value})
        case ir.Get(id):
            return _ends(lets[id], lets) if id in lets else []
        case ir.Temporal(input, _, uppers):
            return [_text(each, input, lets) for each in uppers] + _ends(input, lets)
        case ir.Join(inputs):
            return [each for input in inputs for each in _ends(input, lets)]
        case ir.Union(inputs):
            found = [_ends(each, lets) for each in inputs]
            return [" and ".join(dict.fromkeys(each[0] for each in found))] if all(found) else []
        case ir.Constant():
            return []
        case _:
            (input,) = ir.inputs_of(relation)
            return _ends(input, lets)


def _text(scalar: Scalar, input: Relation, lets: Lets) -> str:
    """An expression over the rows of a relation, as one would write it."""
    match scalar:
        case Column(index):
            return _column(input, index, lets)
        case Case(((Failed(), _),), otherwise):
            return _text(otherwise, input, lets)
        case Call(function, args):
            return _call(function.partition("(")[0], args, input, lets)
        case _:
            return show_scalar(scalar)


def _call(name: str, args: Sequence[Scalar], input: Relation, lets: Lets) -> str:
    inside = [_text(each, input, lets) for each in args]
    if name in _SIGNS and len(inside) == 2:
        return f"{inside[0]} {_SIGNS[name]} {inside[1]}"
    if name in _MICROS:
        by = args[1].value / 1000 if isinstance(args[1], Literal) and args[1].value is not None else None
        return f"{inside[0]} {_MICROS[name]} {inside[1] if by is None else f'{by:g} ms'}"
    if len(inside) == 1 and (name == "cast" or name.startswith("the ")):
        return inside[0]
    return f"{name}({', '.join(inside)})"


def _column(relation: Relation, index: int, lets: Lets) -> str:
    """The origin of a column, as text."""
    match relation:
        case ir.Get(id):
            return _column(lets[id], index, lets) if id in lets else f"{id}.#{index}"
        case ir.Let(id, value, body):
            return _column(body, index, {**lets, id: value})
        case ir.Project(input, columns):
            return _column(input, columns[index], lets)
        case ir.Map(input, scalars):
            width = ir.arity(input)
            if index < width:
                return _column(input, index, lets)
            below = ir.Map(input, scalars[: index - width]) if index > width else input
            return _text(scalars[index - width], below, lets)
        case ir.Join(inputs):
            side = next(place for place, each in enumerate(sides_of(relation)) if index in each)
            return _column(inputs[side], index - sides_of(relation)[side].start, lets)
        case ir.Union(inputs):
            return _column(inputs[0], index, lets)
        case ir.Reduce(input, keys) if index < len(keys):
            return _text(keys[index], input, lets)
        case ir.Reduce(input, keys, aggregates):
            aggregate = aggregates[index - len(keys)]
            return _call(aggregate.function.partition("(")[0], aggregate.args, input, lets)
        case ir.Filter(input) | ir.Negate(input) | ir.Threshold(input) | ir.TopK(input) | ir.Temporal(input):
            return _column(input, index, lets)
        case ir.FlatMap(input) | ir.Window(input) if index < ir.arity(input):
            return _column(input, index, lets)
        case ir.FlatMap(ir.Map(input, (*_, times)), function) if function.startswith(INTERVALS):
            read = dict.fromkeys(_column(input, each, lets) for each in sorted(columns_of(times)))
            return f"the last of the times by {', '.join(read)}" if read else "the last of its times"
        case _:
            return f"#{index}"
