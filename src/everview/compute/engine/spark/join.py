"""Join in Spark SQL: input after input, each on the equivalences that it shares with those before it.

Spark forgets that the result of a join of two single partitions is one, unless it is told; so a join that is to stay in
one partition is a join of two inside a join of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everview.compute.engine.spark.canceled_tasks import column_to_read, still_wanted
from everview.compute.engine.spark.scalar import column, render_scalar
from everview.compute.ir.relation import Join, arity, types
from everview.compute.ir.scalar import Scalar, columns_of


def render_join(join: Join, sources: Sequence[str], *, single: bool = False, asking: bool = False) -> str:
    """The join of rendered inputs: the product of multiplicities where all members are equal.

    `asking`: before rows are joined they ask whether the task is canceled.
    """
    if single and len(sources) > 1:
        return _render_single(join, sources, asking)
    owners = [(number, place) for number, each in enumerate(join.inputs) for place in range(arity(each))]

    def place(index: int) -> str:
        number, inside = owners[index]
        return f"j{number}.{column(inside)}"

    def owner(scalar: Scalar) -> int:
        return owners[min(columns_of(scalar))][0] if columns_of(scalar) else 0

    conditions: list[list[str]] = [[] for _ in sources]
    classes = [(members, "=") for members in join.equivalences] + [(members, "<=>") for members in join.nullsafe]
    for members, sign in classes:
        first, *others = sorted(members, key=owner)
        if not others and sign == "=":
            conditions[owner(first)].append(f"{render_scalar(first, place)} IS NOT NULL")
        for other in others:
            pair = f"{render_scalar(first, place)} {sign} {render_scalar(other, place)}"
            conditions[owner(other)].append(pair)
    items = [f"{place(index)} AS {column(index)}" for index in range(len(owners))]
    diffs = " * ".join(f"j{number}._diff" for number in range(len(sources))) or "1L"
    lines = [f"SELECT {', '.join([*items, f'{diffs} AS _diff'])}"]
    if asking:
        read = [each or f"j{number}._diff" for number, each in enumerate(_columns_to_read(join, place))]
        for number in range(1, len(sources)):
            conditions[number].append(still_wanted([f"j{number}._diff", read[number]]))
            conditions[number].append(still_wanted([read[0], read[number - 1] if number > 1 else "j0._diff"]))
    for number, source in enumerate(sources):
        if number == 0:
            lines.append(f"FROM {source} AS j0")
        elif conditions[number]:
            lines.append(f"JOIN {source} AS j{number} ON {' AND '.join(conditions[number])}")
        else:
            lines.append(f"CROSS JOIN {source} AS j{number}")
    if conditions and conditions[0]:
        lines.append(f"WHERE {' AND '.join(conditions[0])}")
    return "\n".join(lines)


def _render_single(join: Join, sources: Sequence[str], asking: bool) -> str:
    """One input after the other joined to all before it, in one partition throughout."""
    classes = [(members, "=") for members in join.equivalences] + [(members, "<=>") for members in join.nullsafe]
    left, width = f"{sources[0]} AS j0", arity(join.inputs[0])
    first = _alone(classes, range(width))
    statement = ""
    for number in range(1, len(sources)):
        count = arity(join.inputs[number])
        mine = range(width, width + count)

        def place(index: int, start: int = width) -> str:
            return f"j0.{column(index)}" if index < start else f"j1.{column(index - start)}"

        conditions = []
        for members, sign in classes:
            before = [each for each in members if columns_of(each) and max(columns_of(each)) < mine.start]
            before += [each for each in members if not columns_of(each)]
            own = [each for each in members if columns_of(each) and min(columns_of(each)) in mine]
            if own and before:
                conditions += [f"{render_scalar(before[0], place)} {sign} {render_scalar(each, place)}" for each in own]
            elif own:
                conditions += [
                    f"{render_scalar(own[0], place)} {sign} {render_scalar(each, place)}" for each in own[1:]
                ]
                if len(members) == 1 and sign == "=":
                    conditions.append(f"{render_scalar(own[0], place)} IS NOT NULL")
        items = [f"{place(index)} AS {column(index)}" for index in range(mine.stop)]
        # Over few rows it is as quick to sort both sides, over many it is not; what fits into one task can be hashed.
        hints = "COALESCE(1), SHUFFLE_HASH(j1)" if conditions else "COALESCE(1)"
        if asking:
            read = _columns_to_read(join, place)
            conditions.append(still_wanted(["j1._diff", read[number] or "j1._diff"]))
            before_it = (read[0] or "j0._diff", (read[number - 1] if number > 1 else None) or "j0._diff")
            conditions.append(still_wanted(before_it))
        lines = [f"SELECT /*+ {hints} */ {', '.join([*items, 'j0._diff * j1._diff AS _diff'])}", f"FROM {left}"]
        kind = f"JOIN {sources[number]} AS j1 ON {' AND '.join(conditions)}"
        lines.append(kind if conditions else f"CROSS JOIN {sources[number]} AS j1")
        if number == 1 and first:
            lines.append(f"WHERE {' AND '.join(first)}")
        statement = "\n".join(lines)
        left, width = f"(\n{statement}\n) AS j0", mine.stop
    return statement


def _columns_to_read(join: Join, place: Callable[[int], str]) -> list[str | None]:
    """Of each input a column that no equivalence speaks of, if there is one that is cheap to hash."""
    equal = set[int]().union(*(columns_of(each) for members in join.equivalences + join.nullsafe for each in members))
    found, start = [], 0
    for input in join.inputs:
        row = enumerate(types(input), start)
        found.append(column_to_read((place(index), each) for index, each in row if index not in equal))
        start += arity(input)
    return found


def _alone(classes: Sequence[tuple[tuple[Scalar, ...], str]], side: range) -> list[str]:
    """What the classes say of the first input alone."""

    def place(index: int) -> str:
        return f"j0.{column(index)}"

    conditions = []
    for members, sign in classes:
        own = [each for each in members if columns_of(each) and min(columns_of(each)) in side]
        constants = [each for each in members if not columns_of(each)]
        if not own:
            continue
        compared = [*own[1:], *constants]
        conditions += [f"{render_scalar(own[0], place)} {sign} {render_scalar(each, place)}" for each in compared]
        if len(members) == 1 and sign == "=":
            conditions.append(f"{render_scalar(own[0], place)} IS NOT NULL")
    return conditions
