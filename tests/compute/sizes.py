"""How many rows a random plan may have, so that joins of joins stay small."""

from __future__ import annotations

from math import prod

from everview.compute.ir.relation import Constant, FlatMap, Get, Join, Let, Relation, Union, Window, inputs_of

ROWS_MAX, PRODUCT_MAX = 7, 400


def rows_max(relation: Relation) -> int:
    """No more distinct rows than this."""
    match relation:
        case Get(id):
            return ROWS_MAX if id.startswith("t") else PRODUCT_MAX // ROWS_MAX  # what a Let binds may be larger
        case Constant(rows):
            return len(rows)
        case Join(inputs):
            return prod(map(rows_max, inputs))
        case Union(inputs):
            return sum(map(rows_max, inputs))
        case Let(body=body):
            return rows_max(body)
        case _:
            return rows_max(inputs_of(relation)[0]) * (4 if isinstance(relation, FlatMap | Window) else 1)
