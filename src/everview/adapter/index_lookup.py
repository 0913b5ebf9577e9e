"""Look-ups from memory: rows by the whole key of an index, without a plan and without waiting for anything.

For such a statement most of the cost is in what surrounds it: a plan filled with values, a time that is chosen and
held, a thread that runs it. `index_lookup_of` finds out once whether a query is one; from then on it is a key and its
rows.

They are the same rows. The time is the latest closed one, at which every strictly serializable read is; the index has
every update up to that time, or says so, and then the statement is run like any other. Reading is one step under the
index's lock, so nothing has to be held meanwhile.

Clients that write values into the text send texts that differ only in whole numbers. `literal_template` is such a text
with parameters in the places of the numbers. It means the same if every number is compared with a column of the key,
which the caller has to see to: elsewhere a number can mean something else than a parameter, as in `ORDER BY 1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from everview.adapter.bound_statement import BoundQuery, parameter_of
from everview.adapter.catalog.items import Source, Table
from everview.adapter.catalog.state import Catalog
from everview.adapter.peek_rows import plain_rows
from everview.adapter.served_indexes import ServedIndex, key_side
from everview.adapter.settings import PEEK_ENGINE, SPARK
from everview.adapter.timeline import Timeline
from everview.compute.capabilities import errors_id
from everview.compute.contract import Maintenance
from everview.compute.ir import relation as ir
from everview.compute.ir.relation import Relation
from everview.compute.ir.scalar import Call, Column, Literal, Scalar
from everview.compute.ir.types import Kind, SqlType
from everview.compute.rows.collection import Row
from everview.storage.contract import GlobalId
from everview.storage.environment import Environment

if TYPE_CHECKING:
    from everview.adapter.coordinator import Coordinator

# Types of which equal values are equal in Python, so that the rows of a key are those that the condition asks for.
_PLAIN = frozenset(
    (
        *(Kind.BOOLEAN, Kind.INT2, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.VARCHAR),
        *(Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.UUID),
    )
)
_WIDTHS = {Kind.INT2: 2, Kind.INT4: 4, Kind.INT8: 8}


TEXT_CHARACTERS_MAX = 1_000
NUMBERS_MAX = 20
# Up to nine digits: an integer, whatever they are. Not part of a name, a fraction or an exponent.
_NUMBER = re.compile(r"(?<![\w.$])(\d{1,9})(?![\w.])")
# Quotes and comments may hold what looks like numbers; parameters are there already; a semicolon ends a statement.
_OTHER = re.compile(r"['\"$;\\]|--|/\*")
_BLANK_END = "; \t\r\n"


@dataclass(frozen=True, slots=True)
class IndexLookup:
    """A look-up, as long as the statement means the same."""

    timeline: Timeline
    index: ServedIndex
    places: tuple[int | None, ...]  # for each part of the key, which parameter it is
    constants: tuple[Any, ...]  # or what
    shown: Callable[[Row], Row]
    failing: Callable[[int], bool]  # whether at a time there may be an error in place of rows

    def rows(self, values: Sequence[Any]) -> Sequence[Row] | None:
        """Look the rows up. None if the statement has to be run."""
        time = self.timeline.upper - 1
        if self.failing(time) or not self.timeline.owned:
            return None
        pairs = zip(self.places, self.constants, strict=True)
        key = tuple([constant if place is None else values[place] for place, constant in pairs])
        if None in key:
            return ()  # nothing equals NULL
        found = self.index.rows_at(key, time)
        return None if found is None else list(map(self.shown, found))


def index_lookup_of(
    bound: BoundQuery, catalog: Catalog, settings: Mapping[str, str], coordinator: Coordinator
) -> IndexLookup | None:
    """Find the look-up that a query is, with parameters as places in its key. None if the query does more."""
    plan = bound.plan
    if plan.order or not plan.names or settings.get(PEEK_ENGINE) == SPARK:
        return None
    looked = _looked_up(plan.relation)
    if looked is None or not _moved_by_writes(looked.id, catalog, coordinator.maintenance):
        return None
    columns = looked.columns[: len(plan.names)]
    for index in coordinator.indexes.of(looked.id):
        parts = _key(index, looked.predicates) if index.width >= looked.width else None
        if parts is not None:
            places = tuple(parameter_of(part) for part in parts)
            constants = tuple(part.value if isinstance(part, Literal) else None for part in parts)
            failing = _failing(looked.id, catalog, coordinator.environment)
            shown = _shown(columns, plan.types[: len(plan.names)])
            return IndexLookup(coordinator.timeline, index, places, constants, shown, failing)
    return None


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """A filtered collection, and which of its columns come out in which order."""

    id: GlobalId
    width: int
    predicates: tuple[Scalar, ...]
    columns: tuple[int, ...]


def _looked_up(relation: Relation) -> _LookedUp | None:
    """Read a plan as a choice of rows and columns of one collection. None if the plan does more."""
    match relation:
        case ir.Filter(ir.Get(id, schema), predicates):
            return _LookedUp(id, len(schema), tuple(predicates), tuple(range(len(schema))))
        case ir.Project(below, columns):
            found = _looked_up(below)
            return found and _LookedUp(
                found.id, found.width, found.predicates, tuple(found.columns[each] for each in columns)
            )
        case ir.Map(below, scalars):
            found = _looked_up(below)
            if found is None:
                return None
            chosen = list(found.columns)
            for scalar in scalars:
                if not isinstance(scalar, Column):
                    return None
                chosen.append(chosen[scalar.index])
            return _LookedUp(found.id, found.width, found.predicates, tuple(chosen))
        case _:
            return None


def _key(index: ServedIndex, predicates: Sequence[Scalar]) -> list[Scalar] | None:
    """What the conditions compare each part of the index's key with, if that is all that they do."""
    if len(predicates) != len(index.keys):
        return None
    parts: list[Scalar] = []
    for key in index.keys:
        sides = [_unwidened(side) for each in predicates if (side := key_side(each, key)) is not None]
        if len(sides) != 1 or not (isinstance(sides[0], Literal) or parameter_of(sides[0]) is not None):
            return None
        if key.type.kind not in _PLAIN or sides[0].type.kind not in _PLAIN:
            return None
        parts += sides
    return parts


def _unwidened(scalar: Scalar) -> Scalar:
    """What a whole number was before it was made a wider one, which has the same value."""
    if isinstance(scalar, Call) and scalar.function.startswith("cast(int") and len(scalar.args) == 1:
        (arg,) = scalar.args
        if arg.type.kind in _WIDTHS and scalar.type.kind in _WIDTHS:
            return arg if _WIDTHS[arg.type.kind] <= _WIDTHS[scalar.type.kind] else scalar
    return scalar


def _moved_by_writes(id: GlobalId, catalog: Catalog, maintenance: Maintenance) -> bool:
    """Whether a collection changes only by writes to tables: then it is read at the latest closed time."""
    below, seen = [id], {id}
    while below:
        item = catalog.items.get(below.pop())
        if item is None or isinstance(item, Source):
            return False
        if isinstance(item, Table):
            if item.ttl is not None:
                return False  # its rows leave by themselves
            continue
        if item.reader is not None and not maintenance.timeless(item.id):
            return False
        below += [each for each in item.depends if each not in seen]
        seen.update(item.depends)
    return True


def _failing(id: GlobalId, catalog: Catalog, environment: Environment) -> Callable[[int], bool]:
    """Make a test of whether a collection may have errors at a time. Tables never have any, and few views do."""
    if isinstance(catalog.items[id], Table):
        return lambda time: False
    errors = errors_id(id)

    def failing(time: int) -> bool:
        standing = environment.standing(errors)
        if standing is None:
            return True
        shard, upper = standing
        asleep = upper <= shard.spec.initial
        return not asleep and (bool(shard.batches) or upper <= time)

    return failing


def _shown(columns: Sequence[int], types: Sequence[SqlType]) -> Callable[[Row], Row]:
    plain = plain_rows(types)
    if len(columns) == 1:
        (only,) = columns
        return lambda row: plain((row[only],))
    pick = itemgetter(*columns)
    if any(each.kind is Kind.ARRAY for each in types):
        return lambda row: plain(pick(row))
    return pick


def literal_template(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Replace the whole numbers of a text by parameters. None if the text has quotes, comments or no numbers."""
    if len(text) > TEXT_CHARACTERS_MAX:
        return None
    text = text.rstrip(_BLANK_END)
    if not text.isascii() or _OTHER.search(text):
        return None
    pieces = _NUMBER.split(text)
    numbers = pieces[1::2]
    if not 0 < len(numbers) <= NUMBERS_MAX:
        return None
    for place in range(len(numbers)):
        pieces[2 * place + 1] = f"${place + 1}"
    return "".join(pieces), tuple(map(int, numbers))
