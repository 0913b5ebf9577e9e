"""Plans kept for statements that come again: bound and optimized once, with places for the values of parameters.

In such a plan a parameter is a call of a function, of its number, that no engine can evaluate; putting values in
replaces these calls by literals. A statement whose meaning depends on the session or the moment is not kept, nor one
that can only be bound with the values themselves, as `LIMIT $1` can.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everview.adapter.bound import Bound
from everview.adapter.host import SessionHost
from everview.adapter.surroundings import Surroundings
from everview.compute.allowance import ROW_BYTES
from everview.compute.functions.plan_functions import PARAMETER
from everview.compute.ir.parts import all_scalars, map_scalars
from everview.compute.ir.relation import Constant, Relation, walk
from everview.compute.ir.scalar import Call, Literal, Scalar, transform
from everview.compute.ir.scalar import walk as walk_scalar
from everview.compute.ir.types import INT4, SqlType
from everview.compute.optimize.simplify import simplify
from everview.compute.sql.dml import Change
from everview.compute.sql.errors import SqlError

LATEST_MAX, IN_USE_MAX = 100, 1_000
TEXT_CHARACTERS_MAX = 10_000  # longer statements are not kept
WEIGHT_MAX = 100_000


def weight_of(relation: Relation) -> int:
    """About how many bytes the values in a plan take."""
    total = 0
    for part in walk(relation):
        if isinstance(part, Constant):
            total += len(part.rows) * ROW_BYTES + sum(_length(value) for row, _ in part.rows for value in row)
    for scalar in all_scalars(relation):
        total += sum(_length(each.value) for each in walk_scalar(scalar) if isinstance(each, Literal))
    return total


def _length(value: Any) -> int:
    if isinstance(value, list | tuple):
        return sum(50 + _length(each) for each in value)
    return len(value) if isinstance(value, str | bytes) else 0


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


@dataclass(frozen=True, slots=True)
class Template:
    """A bound and optimized statement: what it reads, and, if it writes, what it changes.

    `key` is all that it depends on: a statement with the same key means the same. `weight` is about how many bytes the
    values in it take: a short text can mean very long ones.
    """

    key: Hashable
    bound: Bound
    change: Change | None = None
    weight: int = 0

    def filled(self, values: Sequence[Literal]) -> Template:
        """The statement with the values of its parameters."""
        if not values:
            return self
        relation = filled(self.bound.plan.relation, values)
        bound = replace(self.bound, plan=replace(self.bound.plan, relation=relation))
        if self.change is None:
            return Template(self.key, bound, weight=self.weight)
        returning = self.change.returning
        if returning is not None:
            returning = replace(returning, relation=filled(returning.relation, values))
        return Template(self.key, bound, replace(self.change, relation=relation, returning=returning), self.weight)


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


class Templates:
    """Templates of statements, for all sessions.

    Who prepares a statement is given its template, so a text that never comes again, as an INSERT with its values in
    it, need not be kept. Were it, such texts would push others out. So a template is among the few latest ones until it
    is asked for again, and from then on among the many that are in use. In both the least recently used go first.
    """

    def __init__(self) -> None:
        self._latest: OrderedDict[Hashable, Template | None] = OrderedDict()
        self._in_use: OrderedDict[Hashable, Template | None] = OrderedDict()
        self._lock = threading.Lock()

    @staticmethod
    def key(text: str, around: Surroundings, types: Sequence[SqlType]) -> Hashable:
        """What the meaning of a statement depends on."""
        return (text, around.catalog.version, around.database, around.search_path, tuple(types))

    def get(self, key: Hashable) -> tuple[bool, Template | None]:
        """Whether something is known of the statement, and what; None is that it has no template."""
        with self._lock:
            if key in self._latest:
                self._in_use[key] = self._latest.pop(key)
                while len(self._in_use) > IN_USE_MAX:
                    self._in_use.popitem(last=False)
            if key not in self._in_use:
                return False, None
            self._in_use.move_to_end(key)
            return True, self._in_use[key]

    def put(self, key: Hashable, template: Template | None) -> None:
        """Keep what was made of a statement, unless it takes much memory."""
        if template is not None and template.weight > WEIGHT_MAX:
            return
        with self._lock:
            self._latest[key] = template
            while len(self._latest) > LATEST_MAX:
                self._latest.popitem(last=False)
