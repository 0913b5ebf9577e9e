"""The times at which a predicate over `mz_now()` is true for a row.

Conjunctions of comparisons bound one interval, from the latest of its `lowers` and before the earliest of its `uppers`.
Whatever else is said with OR, NOT, IN, <>, CASE and the like is a set of intervals, computed for each row as one value.
Logic has three values: a predicate is true at some times, false at others, and at the rest it is unknown.

What only the row decides is looked at first, wherever it stands, so it guards the bounds beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everview.compute.delta.choices import is_missing, spread
from everview.compute.delta.thresholds import Reached, is_now, name_of, reached, refused, speaks_of_now
from everview.compute.functions.lookup import can_fail
from everview.compute.functions.resolve import call
from everview.compute.functions.temporal import TIME_MAX
from everview.compute.functions.time_sets import ALWAYS, NEVER, TIMES, times
from everview.compute.ir.scalar import And, Call, Case, Coalesce, Failed, Literal, Or, Scalar
from everview.compute.ir.types import INT8

ALTERNATIVES_MAX = 1_000

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_DISTINCT = {"is_distinct_from": True, "is_not_distinct_from": False}
_QUANTIFIED = tuple(f"{quantifier}_{operator}" for quantifier in ("any", "all") for operator in _TURNED)
# Which value of the argument a test asks about, and whether it asks that it is that one.
_TESTS: dict[str, tuple[bool | None, bool]] = {
    "is_true": (True, True),
    "is_not_true": (True, False),
    "is_false": (False, True),
    "is_not_false": (False, False),
    "is_unknown": (None, True),
    "is_not_unknown": (None, False),
    "is_null": (None, True),
    "is_not_null": (None, False),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a row's times: single times, and a set of times if there are several intervals."""

    lowers: tuple[Scalar, ...] = ()
    uppers: tuple[Scalar, ...] = ()
    times: Scalar | None = None

    @property
    def all(self) -> tuple[Scalar, ...]:
        """Every expression of the row among them."""
        return self.lowers + self.uppers + (() if self.times is None else (self.times,))

    @property
    def failing(self) -> tuple[Scalar, ...]:
        return tuple(each for each in self.all if can_fail(each))

    @property
    def relaxed(self) -> Bounds:
        """The same bounds, where a bound that fails bounds nothing."""
        return Bounds(
            tuple(_unless_it_fails(each, Literal(0, each.type)) for each in self.lowers),
            tuple(_unless_it_fails(each, Literal(TIME_MAX, each.type)) for each in self.uppers),
            None if self.times is None else _unless_it_fails(self.times, ALWAYS),
        )


def _unless_it_fails(value: Scalar, instead: Scalar) -> Scalar:
    return Case(((Failed(value), instead),), value, value.type) if can_fail(value) else value


def bounds_of(predicates: Iterable[Scalar], *, saturating: bool = True) -> Bounds:
    """The times at which all predicates are true; raises SqlError where they cannot be told."""
    lowers: list[Scalar] = []
    uppers: list[Scalar] = []
    sets: list[Scalar] = []
    build = _Times(saturating=saturating)
    for each in conjuncts(predicates):
        found = build.simple(each)
        if found is None:
            sets.append(build.times(each, True))
        else:
            lowers += found.lowers
            uppers += found.uppers
            sets += [] if found.times is None else [found.times]
    return Bounds(tuple(lowers), tuple(uppers), times("of all", *sets) if sets else None)


def conjuncts(predicates: Iterable[Scalar]) -> list[Scalar]:
    """The predicates that all have to be true, without the conjunctions, negations and tests around them."""
    found: list[Scalar] = []
    for each in predicates:
        plain = positive(each) if speaks_of_now(each) else each
        if isinstance(plain, And):
            found += conjuncts(plain.args)
        else:
            found.append(plain)
    return found


def positive(predicate: Scalar) -> Scalar:
    """One that is true when the predicate is, with negations and tests gone inward as far as they go."""
    if isinstance(predicate, Call):
        name = name_of(predicate)
        if name == "is_true":
            return positive(predicate.args[0])
        if name == "is_false":
            return positive(_negation(predicate.args[0]))
        if name == "not":
            return _negated(predicate.args[0]) or predicate
        if _compares(predicate):
            chosen = spread(predicate)
            return predicate if chosen is None else positive(chosen)
    return predicate


def _compares(predicate: Call) -> bool:
    """Whether the call compares, other than truth values."""
    if name_of(predicate) not in _TURNED or len(predicate.args) != 2:
        return False
    return all(each.type.kind is not predicate.type.kind for each in predicate.args)


def _negation(predicate: Scalar) -> Scalar:
    return call("not", predicate)


def _negated(inner: Scalar) -> Scalar | None:
    """The negation of a predicate, if it has a simpler form."""
    match inner:
        case And(args):
            return Or(tuple(positive(_negation(each)) for each in args))
        case Or(args):
            return And(tuple(positive(_negation(each)) for each in args))
        case Call(function, args, sql_type):
            name, bracket, rest = function.partition("(")
            if name == "not":
                return positive(args[0])
            if name in _OPPOSITE and len(args) == 2:
                return positive(Call(f"{_OPPOSITE[name]}{bracket}{rest}", args, sql_type))
            if name in _TESTS:
                other = (
                    name.replace("is_not_", "is_") if name.startswith("is_not_") else name.replace("is_", "is_not_", 1)
                )
                opposite = call(other.replace("_", " "), args[0])
                return positive(opposite)
    return None


class _Times:
    """Sets of times in the making."""

    def __init__(self, *, saturating: bool) -> None:
        self._saturating = saturating
        self._compared = 0

    def simple(self, predicate: Scalar) -> Bounds | None:
        """The bounds that a comparison sets; None for other expressions and for sets of times."""
        if not isinstance(predicate, Call) or not _compares(predicate) or name_of(predicate) == "ne":
            return None
        if not speaks_of_now(predicate):
            return None  # all times or none
        return self._bounds(predicate)

    def _bounds(self, comparison: Call) -> Bounds:
        self._compared += 1
        if self._compared > ALTERNATIVES_MAX:
            message = f"mz_now() is compared more than {ALTERNATIVES_MAX:,} times in one condition"
            raise refused(message, comparison, "keep the times in a table, and join it")
        name = name_of(comparison)
        left, right = comparison.args
        if speaks_of_now(left) and speaks_of_now(right):
            raise refused("mz_now() is compared with an expression of itself", comparison)
        if speaks_of_now(right):
            left, right, name = right, left, _TURNED[name]

        def from_when(*, strict: bool) -> Reached:
            return reached(left, right, strict=strict, saturating=self._saturating)

        parts = []
        if name in ("ge", "lt", "eq"):
            parts.append(_one(from_when(strict=False), name != "lt"))
        if name in ("gt", "le", "eq"):
            parts.append(_one(from_when(strict=True), name == "gt"))
        sets = [each.times for each in parts if each.times is not None]
        return Bounds(
            tuple(bound for each in parts for bound in each.lowers),
            tuple(bound for each in parts for bound in each.uppers),
            times("of all", *sets) if sets else None,
        )

    def times(self, predicate: Scalar, truth: bool | None) -> Scalar:
        """The set of times at which the predicate is true, or false, or unknown."""
        if not speaks_of_now(predicate):
            return _where(predicate, truth)
        match predicate:
            case And(args):
                return self._all(args, truth)
            case Or(args):
                if truth is None:
                    return self._unknown(predicate)
                opposite = tuple(_negation(each) for each in args)
                return self._all(opposite, not truth)
            case Case(branches, otherwise):
                return self._case(branches, otherwise, truth)
            case Coalesce(args):
                return self._first(args, truth)
            case Call():
                return self._call(predicate, truth)
            case _:
                raise _not_compared(predicate)

    def _call(self, predicate: Call, truth: bool | None) -> Scalar:
        name = name_of(predicate)
        if name == "not":
            return self.times(predicate.args[0], None if truth is None else not truth)
        if name in _TESTS:
            which, asked = _TESTS[name]
            if truth is None:
                return NEVER
            inner = predicate.args[0]
            if inner.type.kind is not predicate.type.kind:
                return self.times(is_missing(inner), asked is truth)
            found = self.times(inner, which)
            return found if asked is truth else times("outside", found)
        if name in _DISTINCT:
            return self._distinct(predicate, name, truth)
        if name in _QUANTIFIED:
            return self._quantified(predicate, name, truth)
        if name not in _TURNED or len(predicate.args) != 2:
            raise _not_compared(predicate)
        if any(each.type.kind is predicate.type.kind for each in predicate.args):
            return self._equal_truths(predicate, name, truth)
        chosen = spread(predicate)
        if chosen is not None:
            return self.times(chosen, truth)
        if truth is None:
            return self._unknown(predicate)
        if not truth:
            key = predicate.function
            return self._call(Call(f"{_OPPOSITE[name]}{key[len(name) :]}", predicate.args, predicate.type), True)
        if name == "ne":
            equal = self._bounds(Call(f"eq{predicate.function[2:]}", predicate.args, predicate.type))
            return _or_never(times("outside", _set_of(equal)))
        return _or_never(_set_of(self._bounds(predicate)))

    def _distinct(self, predicate: Call, name: str, truth: bool | None) -> Scalar:
        """The times of IS [NOT] DISTINCT FROM, to which NULL is a value."""
        if truth is None:
            return NEVER
        equal: Scalar = Call(f"eq{predicate.function[len(name) :]}", predicate.args, predicate.type)
        if not any(map(is_now, predicate.args)):
            equal = Or((equal, And(tuple(map(is_missing, predicate.args)))))
        same = self.times(equal, True)
        return same if _DISTINCT[name] is not truth else times("outside", same)

    def _quantified(self, predicate: Call, name: str, truth: bool | None) -> Scalar:
        """The times of `mz_now() < ANY (array)` and the like."""
        value, array = predicate.args
        if not is_now(value) or speaks_of_now(array):
            raise refused("only mz_now() itself can be compared with the elements of an array", predicate)
        if truth is None:
            return self._unknown(predicate)
        quantifier, _, operator = name.partition("_")
        if not truth:
            quantifier, operator = "all" if quantifier == "any" else "any", _OPPOSITE[operator]
        return _or_never(times(f"{quantifier} {operator}", array))

    def _all(self, args: Sequence[Scalar], truth: bool | None) -> Scalar:
        """The times of a conjunction. Conditions that only the row decides come first."""
        if truth is None:
            return self._unknown(And(tuple(args)))
        own = [each for each in args if not speaks_of_now(each)]
        others = [self.times(each, truth) for each in args if speaks_of_now(each)]
        rest = times("of all" if truth else "of any", *others)
        if not own:
            return rest
        condition: Scalar = own[0] if len(own) == 1 else And(tuple(own))
        if truth:
            return Case(((condition, rest),), NEVER, TIMES)
        return Case(((_negation(condition), ALWAYS),), rest, TIMES)

    def _unknown(self, predicate: Scalar) -> Scalar:
        return times("outside", times("of any", self.times(predicate, True), self.times(predicate, False)))

    def _case(self, branches: Sequence[tuple[Scalar, Scalar]], otherwise: Scalar, truth: bool | None) -> Scalar:
        result = self.times(otherwise, truth)
        for condition, value in reversed(branches):
            chosen = self.times(value, truth)
            if speaks_of_now(condition):
                when = self.times(condition, True)
                result = times("of any", times("of all", when, chosen), times("of all", times("outside", when), result))
            else:
                result = Case(((condition, chosen),), result, TIMES)
        return result

    def _first(self, args: Sequence[Scalar], truth: bool | None) -> Scalar:
        """The times of COALESCE: the first value that is not unknown."""
        result = self.times(args[-1], truth)
        for each in reversed(args[:-1]):
            later = times("of all", self.times(each, None), result)
            result = later if truth is None else times("of any", self.times(each, truth), later)
        return result

    def _equal_truths(self, predicate: Call, name: str, truth: bool | None) -> Scalar:
        """The bounds of a comparison of truth values."""
        if name not in ("eq", "ne"):
            raise _not_compared(predicate)
        if truth is None:
            return times("of any", *(self.times(each, None) for each in predicate.args))
        one, other = predicate.args
        same = truth is (name == "eq")
        pairs = [
            times("of all", self.times(one, value), self.times(other, value if same else not value))
            for value in (True, False)
        ]
        return times("of any", *pairs)


def _one(found: Reached, so: bool) -> Bounds:
    """The bounds of the times at which a comparison holds, or does not (`so`)."""
    if found.times.type == TIMES:
        return Bounds(times=found.times if so is found.rising else times("outside", found.times))
    return Bounds(lowers=(found.times,)) if so is found.rising else Bounds(uppers=(found.times,))


def _set_of(bounds: Bounds) -> Scalar:
    """The bounds of one comparison as a set; NULL if one of them is."""
    if bounds.times is not None:
        return bounds.times
    start = bounds.lowers[0] if bounds.lowers else Literal(0, INT8)
    end = bounds.uppers[0] if bounds.uppers else Literal(TIME_MAX, INT8)
    return times("between", start, end)


def _or_never(found: Scalar) -> Scalar:
    return Coalesce((found, NEVER), TIMES)


def _where(predicate: Scalar, truth: bool | None) -> Scalar:
    """All times or no time, as the row decides."""
    condition = predicate if truth else _negation(predicate) if truth is False else call("is null", predicate)
    return Case(((condition, ALWAYS),), NEVER, TIMES)


def _not_compared(predicate: Scalar) -> Exception:
    return refused("mz_now() must be compared with =, <>, <, <=, >, >=, BETWEEN or IN", predicate)
