"""Plans kept for statements that come again: bound and optimized once, with places for the values of parameters.

In such a plan a parameter is a call of a function, of its number, that no engine can evaluate; putting values in
replaces these calls by literals. A statement whose meaning depends on the session or the moment is not kept, nor one
that can only be bound with the values themselves, as `LIMIT $1` can.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar

from everview.adapter.host import SessionHost
from everview.adapter.surroundings import Surroundings
from everview.compute.functions.internal import PARAMETER
from everview.compute.ir.parts import map_scalars
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Literal, Scalar, transform
from everview.compute.ir.types import INT4, SqlType
from everview.compute.optimize.simplify import simplify
from everview.compute.sql.errors import SqlError

KEPT_MAX = 1_000
TEXT_CHARACTERS_MAX = 10_000  # longer statements are not kept

T = TypeVar("T")


def place_of(scalar: Scalar) -> int | None:
    """Which parameter, counted from 0, a scalar is the place of; None if it is something else."""
    match scalar:
        case Call(function, (Literal(int(number)),)) if function == PARAMETER:
            return number - 1
        case _:
            return None


def filled(relation: Relation, values: Sequence[Literal]) -> Relation:
    """The plan with values in the places of its parameters."""
    if not values:
        return relation

    def look(part: Scalar) -> Scalar | None:
        place = place_of(part)
        return None if place is None else values[place]

    def change(scalar: Scalar) -> Scalar:
        changed = transform(scalar, look)
        return scalar if changed is scalar or changed == scalar else simplify(changed)

    return map_scalars(relation, change)


class TemplateHost(SessionHost):
    """Binds a statement without knowing the values of its parameters, only their types."""

    def __init__(self, surroundings: Surroundings, types: Sequence[SqlType]) -> None:
        super().__init__(surroundings)
        self._parameter_types = types

    def parameter(self, number: int, position: int | None) -> Any:
        """The place of a parameter."""
        if not 1 <= number <= len(self._parameter_types):
            raise SqlError("42P02", f"there is no parameter ${number}", position=position)
        return Call(PARAMETER, (Literal(number, INT4),), self._parameter_types[number - 1])


class Templates(Generic[T]):
    """What was made of statements, by all that it depends on; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, T | None] = OrderedDict()
        self._lock = threading.Lock()

    @staticmethod
    def key(text: str, around: Surroundings, types: Sequence[SqlType]) -> Hashable | None:
        """What the meaning of a statement depends on; None if it is not to be kept."""
        if len(text) > TEXT_CHARACTERS_MAX:
            return None
        return (text, around.catalog.version, around.database, around.search_path, tuple(types))

    def get(self, key: Hashable) -> tuple[bool, T | None]:
        """Whether something is known of the statement, and what; None is that it cannot be kept."""
        with self._lock:
            if key not in self._kept:
                return False, None
            self._kept.move_to_end(key)
            return True, self._kept[key]

    def put(self, key: Hashable, value: T | None) -> None:
        """Keep what was made of a statement."""
        with self._lock:
            self._kept[key] = value
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
