"""Equalities over a join become its keys; equal expressions are one class; a predicate of one holds for all.

An equality that cannot fail may be checked anywhere. One that can fail becomes a key only where its inputs would
otherwise be multiplied out. It is then computed for rows that a filter of the product would not have reached, if the
other side is empty or another predicate comes before it: the one rewrite after which a plan may fail that did not, as
any database with hash joins does. The alternative is the product.

Rows are found by the hash of a key, which is that of its representation. So numerics of two types become one type that
holds both before they are keys; where there is none, what they have in front of the point is the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from everview.compute.functions import lookup
from everview.compute.functions.casts import WIDENED, cast_between
from everview.compute.functions.lookup import can_fail
from everview.compute.functions.naming import merged
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import Equivalence, owner_of, sides_of
from everview.compute.ir.relation import Filter, Join, Relation, transform
from everview.compute.ir.scalar import Call, Column, Scalar, columns_of, remap, shift
from everview.compute.ir.types import NUMERIC_PRECISION, Kind, arrow_type, numeric

# Of these, values are equal exactly if their representations are: not so for intervals, and arrays of them.
_EQUAL_AS_STORED = frozenset(Kind) - {Kind.INTERVAL, Kind.ARRAY, Kind.CHAR, Kind.UNKNOWN}

_EQUALITIES = ("=", "is not distinct from")


def join_keys(plan: Relation) -> Relation:
    return transform(plan, _keys)


def _keys(relation: Relation) -> Relation:
    match relation:
        case Filter(Join() as join, predicates):
            join, kept = _extract(join, predicates)
            return Filter(_inferred(_merged(join)), kept) if kept else _inferred(_merged(join))
        case Join():
            return _inferred(_merged(relation))
        case _:
            return relation


def _extract(join: Join, predicates: tuple[Scalar, ...]) -> tuple[Join, tuple[Scalar, ...]]:
    """The join with the equalities that can be keys, and the predicates that are left."""
    sides = sides_of(join)
    equivalences, nullsafe = list(join.equivalences), list(join.nullsafe)
    kept: list[Scalar] = []
    for predicate in predicates:
        pair = _equality(predicate, sides)
        if pair is None or can_fail(predicate):
            kept.append(predicate)
            continue
        key, whole = _represented(pair)
        (nullsafe if _takes_nulls(predicate) else equivalences).append(key)
        if not whole:
            kept.append(predicate)
    for predicate in list(kept):
        pair = _equality(predicate, sides)
        if pair is not None and not _connected(pair, equivalences + nullsafe, sides):
            key, whole = _represented(pair)
            (nullsafe if _takes_nulls(predicate) else equivalences).append(key)
            if whole:
                kept.remove(predicate)
    return replace(join, equivalences=tuple(equivalences), nullsafe=tuple(nullsafe)), tuple(kept)


def _equality(predicate: Scalar, sides: list[range]) -> Equivalence | None:
    if not isinstance(predicate, Call) or lookup.function(predicate.function).name not in _EQUALITIES:
        return None
    left, right = predicate.args
    owners = {owner_of(each, sides) for each in predicate.args}
    if None in owners or len(owners) < 2 or not columns_of(left) or not columns_of(right):
        return None
    if left.type.kind is not right.type.kind or left.type.kind not in _EQUAL_AS_STORED:
        return None
    return (left, right)


def _represented(pair: Equivalence) -> tuple[Equivalence, bool]:
    """The sides of an equality in one representation, and whether these are equal only if the sides are."""
    left, right = (each.type for each in pair)
    if arrow_type(left) == arrow_type(right):
        return pair, True
    common = merged((left, right))
    casts = [cast_between(each.type, common) for each in pair]
    if all(each is not None and each.key in (None, WIDENED) for each in casts):
        wanted = arrow_type(common)
        return tuple(each if arrow_type(each.type) == wanted else Call(WIDENED, (each,), common) for each in pair), True
    # Without what is behind the point, there is room for any.
    whole = numeric(NUMERIC_PRECISION, 0)
    return tuple(Call("trunc(numeric)", (each,), whole) for each in pair), False


def _takes_nulls(equality: Scalar) -> bool:
    return isinstance(equality, Call) and not lookup.function(equality.function).strict


def _connected(pair: Equivalence, classes: list[Equivalence], sides: list[range]) -> bool:
    start, goal = (owner_of(member, sides) for member in pair)
    reached, grown = {start}, True
    while grown:
        grown = False
        for members in classes:
            owners = {owner_of(member, sides) for member in members}
            if owners & reached and not owners <= reached:
                reached |= owners
                grown = True
    return goal in reached


def _merged(join: Join) -> Join:
    """Classes that share a member are one; a member that is not NULL makes its null-safe class an ordinary one."""
    equivalences = _united(join.equivalences)
    nullsafe: list[Equivalence] = []
    for members in _united(join.nullsafe):
        if any(member in others for others in equivalences for member in members):
            equivalences = _united((*equivalences, members))
        else:
            nullsafe.append(members)
    return replace(join, equivalences=tuple(equivalences), nullsafe=tuple(nullsafe))


def _united(classes: tuple[Equivalence, ...]) -> list[Equivalence]:
    united: list[Equivalence] = []
    for members in classes:
        joined = list(members)
        apart: list[Equivalence] = []
        for other in united:
            if any(member in other for member in joined):
                joined = [*other, *(member for member in joined if member not in other)]
            else:
                apart.append(other)
        united = [*apart, tuple(member for index, member in enumerate(joined) if member not in joined[:index])]
    return united


def _inferred(join: Join) -> Join:
    """Predicates over one member of a class, which filter the inputs of the others too."""
    sides = sides_of(join)
    facts = [known_predicates(each) for each in join.inputs]
    added: list[list[Scalar]] = [[] for _ in sides]
    for members in join.equivalences + join.nullsafe:
        columns = [member for member in members if isinstance(member, Column)]
        for source in columns:
            for target in columns:
                if source.type != target.type or source == target:
                    continue
                left, right = (owner_of(each, sides) or 0 for each in (source, target))
                local = source.index - sides[left].start
                for fact in facts[left]:
                    moved = _over(fact, target.index - sides[right].start)
                    if columns_of(fact) == {local} and moved not in facts[right] + added[right]:
                        added[right].append(moved)
    inputs = tuple(Filter(each, tuple(more)) if more else each for each, more in zip(join.inputs, added, strict=True))
    return replace(join, inputs=inputs)


def _over(fact: Scalar, column: int) -> Scalar:
    """The predicate over another column than its only one."""
    return remap(fact, lambda _: column)


def known_predicates(relation: ir.Relation) -> list[Scalar]:
    """Predicates that cannot fail and are true for every row."""
    match relation:
        case ir.Constant() | ir.Get() | ir.Recursive():
            return []
        case ir.Filter(input, predicates):
            return known_predicates(input) + [each for each in predicates if not can_fail(each)]
        case ir.Project(input, columns):
            return _moved(known_predicates(input), {column: columns.index(column) for column in columns})
        case ir.Reduce(input, keys):
            places = {key.index: index for index, key in enumerate(keys) if isinstance(key, Column)}
            return _moved(known_predicates(input), places)
        case ir.Join(inputs):
            pairs = zip(inputs, sides_of(relation), strict=True)
            return [shift(each, side.start) for input, side in pairs for each in known_predicates(input)]
        case ir.Union(inputs):
            first, *others = (known_predicates(each) for each in inputs)
            return [each for each in first if all(each in other for other in others)]
        case ir.Let(_, _, body):
            return known_predicates(body)
        case _:
            return known_predicates(ir.inputs_of(relation)[0])


def _moved(predicates: list[Scalar], places: Mapping[int, int]) -> list[Scalar]:
    """Those over columns that are still there, over where they are now."""
    return [remap(each, places.__getitem__) for each in predicates if columns_of(each) <= places.keys()]
