"""`push_temporal`: temporal filters below joins and whatever else keeps rows, so that what is over is not kept there.

A predicate over `mz_now()` that one input of a join decides moves into that input. There it must not fail for rows
that it did not see before, so it is *relaxed*: a bound that fails bounds nothing. Above, where the predicate was, the
bounds that can fail are still evaluated, and fail for the rows that get there. Where both inputs have their say, each
gets what follows for it, and the predicate stays; where a column is equal to one of another input, that one gets the
same. Rows that go earlier than they did no longer fail on the way, as with other filters. A constant that is not true
says of every input that its rows are never seen: the predicates behind it, which may have said until when, are gone.
Unless a condition of the row beside it can fail, which it has to do for as long as its rows are there. Rows that an
outer join pads with NULL are not there either if a bound is over a column that is NULL in them.

What all uses of a shared part say of it, is said inside of it. What is said of the rows that a LATERAL or a subquery
is computed for, is said of the values that it is asked: see `asked_keys`. Over inputs that nothing keeps rows of,
filters stay where they are: there is nothing to win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everview.compute.delta.asked_keys import asking_rows, equal_columns, is_asked, narrowed
from everview.compute.delta.choices import each_bound
from everview.compute.delta.temporal import apart, bounded
from everview.compute.delta.thresholds import speaks_of_now
from everview.compute.delta.times import bounds_of, conjuncts
from everview.compute.functions.lookup import can_fail
from everview.compute.functions.resolve import call
from everview.compute.functions.temporal import now
from everview.compute.functions.time_sets import NEVER
from everview.compute.ir import relation as ir
from everview.compute.ir.parts import mapped_columns, owner_of, sides_of
from everview.compute.ir.relation import Relation, arity
from everview.compute.ir.scalar import And, Column, Literal, Or, Scalar, columns_of, remap, shift, substitute
from everview.compute.ir.types import BOOLEAN, MZ_TIMESTAMP
from everview.compute.optimize.lets import unique_lets
from everview.compute.optimize.remove_empty import remove_empty
from everview.compute.optimize.simplify import is_literal, simplify

_KEEPING = (ir.Reduce, ir.TopK, ir.Window, ir.Threshold)
_USE = Literal(True, BOOLEAN)  # the first predicate of what is wanted of a use of a Let, until all uses are known
_NEVER = call("<", now(None), Literal(0, MZ_TIMESTAMP))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A predicate over the rows of a relation; one that `must` be met has been passed down, and is nowhere else."""

    predicate: Scalar
    must: bool = False


def push_temporal(plan: Relation, *, never: bool = True, further: bool = True) -> Relation:
    """The plan with its temporal filters as far down as it helps.

    Without `never`, constants beside them stay where they are, as in views that still are kept so. Without `further`,
    nothing follows for padded rows, from the least of several bounds, and for what LATERAL is asked.
    """
    pushed = _Descent(never=never, further=further).down(plan, [])[0]
    return unique_lets(remove_empty(pushed)) if further else pushed  # what only rows that are never there needed goes


class _Descent:
    """One walk down a plan whose Lets have names of their own."""

    def __init__(self, *, never: bool, further: bool) -> None:
        self._never = never
        self._further = further
        self._lets: set[str] = set()

    def down(self, relation: Relation, wanted: Sequence[Wanted]) -> tuple[Relation, list[bool]]:
        """The relation at the times at which what is wanted holds, and whether each of those has been seen to.

        What must be is seen to here at the latest; the rest only where that is below something that keeps rows.
        """
        if not self._keeps(relation):
            return self._placed(relation, wanted)
        match relation:
            case ir.Filter(input, predicates) if is_asked(relation):
                inside, done = self.down(input, [*wanted, *(Wanted(each, must=True) for each in predicates[1:])])
                return inside, done[: len(wanted)]
            case ir.Filter(input, predicates):
                return self._filter(input, predicates, wanted)
            case ir.Project(input, columns):
                moved = [replace(each, predicate=remap(each.predicate, columns.__getitem__)) for each in wanted]
                inside, done = self.down(input, moved)
                return ir.Project(inside, columns), done
            case ir.Map(input, scalars):
                values = mapped_columns(input, scalars)
                moved = [replace(each, predicate=substitute(each.predicate, values)) for each in wanted]
                if self._further and any(_is_of_nulls(each.predicate, values) for each in wanted):
                    return ir.Constant((), ir.types(relation)), [True] * len(wanted)
                inside, done = self.down(input, moved)
                return ir.Map(inside, scalars), done
            case ir.Union(inputs):
                parts = [self.down(each, wanted) for each in inputs]
                done = [all(flags) for flags in zip(*(flags for _, flags in parts), strict=True)]
                return ir.Union(tuple(part for part, _ in parts)), done
            case ir.Negate() | ir.Threshold() | ir.FlatMap() | ir.TopK() | ir.Window() | ir.Reduce():
                return self._through(relation, wanted)
            case ir.Join():
                return self._join(relation, wanted)
            case ir.Let(id, value, body):
                return self._let(id, value, body, wanted)
            case ir.Get():
                predicates = tuple(dict.fromkeys(each.predicate for each in wanted))
                return (ir.Filter(relation, (_USE, *predicates)) if predicates else relation), [True] * len(wanted)
            case _:
                inputs = tuple(self.down(each, [])[0] for each in ir.inputs_of(relation))
                return self._placed(ir.with_inputs(relation, inputs), wanted)

    def _keeps(self, relation: Relation) -> bool:
        return any(
            isinstance(each, _KEEPING)
            or (isinstance(each, ir.Join) and len(each.inputs) > 1)
            or (isinstance(each, ir.Get) and each.id in self._lets)
            or is_asked(each)
            for each in ir.walk(relation)
        )

    def _placed(self, relation: Relation, wanted: Sequence[Wanted]) -> tuple[Relation, list[bool]]:
        return _relaxed(relation, [each.predicate for each in wanted if each.must]), [each.must for each in wanted]

    def _filter(
        self, input: Relation, predicates: Sequence[Scalar], wanted: Sequence[Wanted]
    ) -> tuple[Relation, list[bool]]:
        own, others = apart(predicates)
        never = (_NEVER,) if self._never and own and _rules_out(others) else ()
        inside, done = self.down(input, [*(Wanted(each) for each in (*own, *never)), *wanted])
        left = tuple(each for each, met in zip(own, done[: len(own)], strict=True) if not met)
        gone = [each for each, met in zip(own, done[: len(own)], strict=True) if met]
        kept = (*others, *left)
        filtered = ir.Filter(inside, kept) if kept else inside
        return _looked_at(filtered, gone), done[len(own) + len(never) :]

    def _through(self, relation: Relation, wanted: Sequence[Wanted]) -> tuple[Relation, list[bool]]:
        """Push through an operator of one input whatever reads only columns that are the same for all rows of a key."""
        (input,) = ir.inputs_of(relation)
        values: dict[int, Scalar]
        match relation:
            case ir.Reduce(_, keys):
                values = dict(enumerate(keys))
            case ir.TopK(_, group):
                values = {index: Column(index, ir.types(input)[index]) for index in group}
            case ir.Window(_, partition):
                values = {key.index: key for key in partition if isinstance(key, Column)}
            case _:
                values = dict(enumerate(ir.all_columns(input)))
        keeping = isinstance(relation, _KEEPING)
        places = [place for place, each in enumerate(wanted) if columns_of(each.predicate) <= values.keys()]
        width = max(values, default=-1) + 1
        row = [values.get(index, _USE) for index in range(width)]
        passed = [Wanted(substitute(wanted[place].predicate, row), keeping or wanted[place].must) for place in places]
        inside, met = self.down(input, passed)
        done = dict(zip(places, met, strict=True))
        result = ir.with_inputs(relation, (inside,))
        rest = [each for place, each in enumerate(wanted) if place not in done and each.must]
        result = _relaxed(result, [each.predicate for each in rest])
        return result, [done.get(place, each.must) for place, each in enumerate(wanted)]

    def _join(self, join: ir.Join, wanted: Sequence[Wanted]) -> tuple[Relation, list[bool]]:
        if len(join.inputs) == 1:
            inside, done = self.down(join.inputs[0], wanted)
            return replace(join, inputs=(inside,)), done
        sides = sides_of(join)
        mine: list[list[Scalar]] = [[] for _ in sides]
        done = []
        stays: list[Scalar] = []
        for each in wanted:
            owner = owner_of(each.predicate, sides)
            for side, columns in enumerate(sides):
                if side == owner or not columns_of(each.predicate):
                    implied: Scalar | None = each.predicate
                elif owner is None:
                    implied = self._implied(each.predicate, columns)
                else:
                    implied = _elsewhere(each.predicate, columns, join)
                if implied is not None and speaks_of_now(implied):
                    mine[side].append(shift(implied, -columns.start))
            if owner is None and each.must:
                stays.append(each.predicate)
            done.append(owner is not None or each.must)
        asked = self._asked(join, mine) if self._further else join.inputs
        inputs = tuple(
            self.down(input, [Wanted(each, must=True) for each in dict.fromkeys(own)])[0]
            for input, own in zip(asked, mine, strict=True)
        )
        return _relaxed(replace(join, inputs=inputs), stays), done

    def _asked(self, join: ir.Join, mine: Sequence[Sequence[Scalar]]) -> tuple[Relation, ...]:
        """The inputs of a join, each without the answers to rows of another that are over."""
        inputs, sides = list(join.inputs), sides_of(join)
        for side, input, own in zip(sides, join.inputs, mine, strict=True):
            for asking, places in asking_rows(input, own):
                equal = equal_columns(join, {side.start + index: column for index, column in places.items()})
                for index, other in enumerate(sides):
                    if other != side:
                        below = {each - other.start: column for each, column in equal.items() if each in other}
                        inputs[index] = narrowed(inputs[index], below, asking) or inputs[index]
        return tuple(inputs)

    def _implied(self, predicate: Scalar, side: range) -> Scalar | None:
        """The predicate that follows for one input of a join from a predicate over several inputs."""
        columns = set(side)
        (*several,) = conjuncts((predicate,))
        if self._never and _rules_out(several):
            return _NEVER
        if self._further and len(several) == 1:
            several = each_bound(several[0]) or several
        if len(several) > 1:
            own = [found for each in several if (found := self._implied(each, side)) is not None]
            return own[0] if len(own) == 1 else And(tuple(own)) if own else None
        (single,) = several
        if isinstance(single, Or):
            branches = [self._implied(each, side) for each in single.args]
            known = [each for each in branches if each is not None]
            return Or(tuple(known)) if len(known) == len(branches) else None
        read = columns_of(single)
        return single if read and read <= columns else None

    def _let(self, id: str, value: Relation, body: Relation, wanted: Sequence[Wanted]) -> tuple[Relation, list[bool]]:
        self._lets.add(id)
        inside, done = self.down(body, wanted)
        self._lets.discard(id)
        uses = _uses(inside, id)
        common = [each for each in uses[0] if all(each in use for use in uses)] if uses else []
        needed = list(common)
        if not common and uses and all(uses):
            # Each use says something else: a row that none of them wants is not kept.
            needed = [Or(tuple(use[0] if len(use) == 1 else And(use) for use in dict.fromkeys(uses)))]

        def settle(part: Relation) -> Relation:
            if not _is_use(part, id):
                return part
            assert isinstance(part, ir.Filter)
            return _relaxed(part.input, [each for each in part.predicates[1:] if each not in common])

        settled = ir.transform(inside, settle)
        return ir.Let(id, self.down(value, [Wanted(each, must=True) for each in needed])[0], settled), done


def _is_use(relation: Relation, id: str) -> bool:
    if not isinstance(relation, ir.Filter) or not isinstance(relation.input, ir.Get):
        return False
    return relation.input.id == id and relation.predicates[0] is _USE


def _uses(relation: Relation, id: str) -> list[tuple[Scalar, ...]]:
    if _is_use(relation, id):
        assert isinstance(relation, ir.Filter)
        return [relation.predicates[1:]]
    if isinstance(relation, ir.Get) and relation.id == id:
        return [()]
    return [use for each in ir.inputs_of(relation) for use in _uses(each, id)]


def _rules_out(predicates: Sequence[Scalar]) -> bool:
    """Whether no row meets all of these, and none fails without a bound that does."""
    never = any(is_literal(each, False) or is_literal(each, None) for each in predicates)
    return never and not any(can_fail(each) for each in predicates if not speaks_of_now(each))


def _is_of_nulls(predicate: Scalar, values: list[Scalar]) -> bool:
    """Whether the predicate sets a bound that is NULL in all rows with these values, and so is never true of them."""
    if not any(is_literal(values[index], None) for index in columns_of(predicate)):
        return False
    bounds = bounds_of((substitute(predicate, values),))
    simple = [simplify(each) for each in bounds.all]
    return NEVER in simple or any(is_literal(each, None) for each in simple)


def _elsewhere(predicate: Scalar, side: range, join: ir.Join) -> Scalar | None:
    """The predicate over columns of another input that are equal to the columns it reads."""
    places: dict[int, int] = {}
    for members in join.equivalences + join.nullsafe:
        plain = [each.index for each in members if isinstance(each, Column)]
        inside = [index for index in plain if index in side]
        if inside:
            places |= dict.fromkeys(plain, inside[0])
    if not columns_of(predicate) <= places.keys():
        return None
    types = ir.types(join)
    if any(types[index] != types[places[index]] for index in columns_of(predicate)):
        return None
    return remap(predicate, places.__getitem__)


def _relaxed(relation: Relation, predicates: Sequence[Scalar]) -> Relation:
    """The rows at the times at which the predicates hold; a row for which a bound fails, always."""
    if not predicates:
        return relation
    return bounded(relation, bounds_of(dict.fromkeys(predicates)).relaxed)


def _looked_at(relation: Relation, predicates: Sequence[Scalar]) -> Relation:
    """The same rows, after all bounds that can fail were evaluated."""
    failing = bounds_of(predicates).failing if predicates else ()
    if not failing:
        return relation
    return ir.Project(ir.Map(relation, failing), tuple(range(arity(relation))))
