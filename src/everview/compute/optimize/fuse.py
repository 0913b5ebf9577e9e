"""Neighbours of one kind become one: projections, maps, filters, unions; what does nothing goes.

Projections move up through maps, so that what computes on a row ends as one Map, one Filter and one Project.
"""

from __future__ import annotations

from everview.compute.ir.relation import Filter, Map, Negate, Project, Relation, Threshold, Union, arity, transform
from everview.compute.ir.scalar import remap


def fuse(plan: Relation) -> Relation:
    return transform(plan, _fuse)


def _fuse(relation: Relation) -> Relation:
    match relation:
        case Map(input, scalars) if not scalars:
            return input
        case Filter(input, predicates) if not predicates:
            return input
        case Map(Map(input, first), second):
            return Map(input, first + second)
        case Map(Project()):
            return _map_over_project(relation)
        case Filter(Filter(input, first), second):
            return Filter(input, tuple(dict.fromkeys(first + second)))
        case Project(Project(input, inner), outer):
            return _fuse(Project(input, tuple(inner[column] for column in outer)))
        case Project(input, columns) if columns == tuple(range(arity(input))):
            return input
        case Union(inputs):
            flat = tuple(inner for each in inputs for inner in (each.inputs if isinstance(each, Union) else (each,)))
            return flat[0] if len(flat) == 1 else Union(flat)
        case Negate(Negate(input)):
            return input
        case Threshold(Threshold(input)):
            return Threshold(input)
        case _:
            return relation


def _map_over_project(mapping: Map) -> Relation:
    project = mapping.input
    assert isinstance(project, Project)
    columns = project.columns
    width = arity(project.input)
    # Behind the projected columns come those that the map itself adds.
    places = (*columns, *range(width, width + len(mapping.scalars)))
    scalars = tuple(remap(scalar, places.__getitem__) for scalar in mapping.scalars)
    return Project(_fuse(Map(project.input, scalars)), places)
